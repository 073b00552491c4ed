"""How long does a forward pass take on one device, and what limits it?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast

from mlsysim.core import formulas as f
from mlsysim.core.errors import ConfigError
from mlsysim.core.fields import number, quantity, record
from mlsysim.core.inputs import default
from mlsysim.core.numeric import Value, first_known, maximum, where
from mlsysim.core.result import Result
from mlsysim.core.types import (
    Accelerator,
    FixedShapeModel,
    NetworkCalibration,
    PowerCalibration,
    ServingCalibration,
    TransformerModel,
    Workload,
)
from mlsysim.core.types.layers import Experts
from mlsysim.core.units import Quantity, format_number
from mlsysim.registry.calibration.networks import network_calibration_for
from mlsysim.registry.calibration.serving import pass_calibration_for
from mlsysim.registry.conventions import TEXTBOOK_EFFICIENCY, Efficiency
from mlsysim.solvers.arguments import Noun, PrecisionName, Share, Whole
from mlsysim.solvers.base import Model, Solver, check_one_model, within_context
from mlsysim.solvers.device import drawn_power, edges, flops_share, within_peak
from mlsysim.solvers.inference import InferenceInputs, inference_device, inference_layer
from mlsysim.solvers.layer import Device, Routed, head
from mlsysim.solvers.tower import IMAGE_RULES, tower_flops, tower_of, tower_pass, tower_traffic
from mlsysim.solvers.work import by_blocks, kv_cache, stored_weights, token_flops, weights_read


@record
class SingleNodeResult(Result):
    """Answer of `SingleNodeSolver`: one forward pass of a batch on one device."""

    latency: Quantity = quantity("ms")
    """Time of the pass. Operator-level model: the sum of all operators, each limited by arithmetic
    or memory. Textbook model: the longer of `compute_time` and `memory_time`. Models of fixed
    shape: this time plus `overhead_time`."""
    latency_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `latency` that covers four of five comparable passes;
    `None` if there is no band."""
    latency_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `latency`."""
    calibration: str
    """The calibration used, or the words "not validated"."""
    throughput: Quantity = quantity("sample/s")
    """Samples per second when batches run back to back."""
    bottleneck: str
    """What takes the most time: ``"compute"``, ``"memory"``, or, with fitted constants,
    ``"overhead"``."""
    compute_time: Quantity = quantity("ms")
    """Time of the arithmetic alone."""
    memory_time: Quantity = quantity("ms")
    """Time of the memory traffic alone."""
    overhead_time: Quantity | None = quantity("ms")
    """Fixed time of the layers, which neither operations nor bytes explain: kernel launches and
    partly filled tiles, or, on a microcontroller, scaling outputs and loading weights. `None` in
    the textbook model, which has no such time."""
    flops: Quantity = quantity("TFLOP")
    """Operations of the pass."""
    bytes_moved: Quantity = quantity("GB")
    """Memory traffic of the pass. In the textbook model, a transformer only reads its weights and
    writes its keys and values."""
    arithmetic_intensity: Quantity = quantity("flop/byte")
    """Operations per byte moved."""
    ridge_point: Quantity = quantity("flop/byte")
    """Intensity at which the device's arithmetic and memory balance, at the efficiencies
    reached."""
    mfu: float = number()
    """Share of the dense peak rate that the pass uses. Each operation counts at the peak rate of
    its number format."""
    mbu: float = number()
    """Model bandwidth utilization: `bytes_moved` divided by what the device's bandwidth allows."""
    device_power: Quantity | None = quantity("W")
    """Mean power of the device while passes run back to back, from its operations and its memory
    traffic; `None` if the device has no design power."""
    power_utilization: float | None = number()
    """Where `device_power` lies between idle (0) and design power (1)."""
    power_calibration: str
    """The power calibration used, and whether any measurement supports it."""
    energy: Quantity | None = quantity("J")
    """Energy of the pass: `device_power` times `latency`. `None` if the device has no design
    power."""
    memory: Quantity = quantity("GB")
    """Memory for weights (and, for a transformer, keys and values): a lower bound."""
    memory_capacity: Quantity = quantity("GB")
    """Memory that the device has."""
    feasible: bool
    """Whether it fits in the device's memory."""
    reasons: tuple[str, ...]
    """Why the pass is not feasible; empty if it is."""


class PassInputs(InferenceInputs):
    """Inputs of a forward pass: the arguments of `SingleNodeSolver.solve`, and constants."""

    model: TransformerModel | FixedShapeModel
    hardware: Accelerator
    batch_size: Value
    efficiency: Value
    seq_len: Value = default(
        lambda i: i.model.seq_len if isinstance(i.model, TransformerModel) else math.nan
    )
    images: Value
    calibration: ServingCalibration = default(lambda i: pass_calibration_for(i.hardware))
    network_calibration: NetworkCalibration | None = default(
        lambda i: (
            None
            if isinstance(i.model, TransformerModel)
            else network_calibration_for(i.hardware, i.precision.name, network=i.model.name)
        )
    )
    textbook: Efficiency = default(lambda i: TEXTBOOK_EFFICIENCY)

    @property
    def transformer(self) -> TransformerModel:
        """The model of a question about a transformer."""
        return cast(TransformerModel, self.model)

    @property
    def network(self) -> FixedShapeModel:
        """The model of a question about a network of fixed shape."""
        return cast(FixedShapeModel, self.model)

    @property
    def network_constants(self) -> NetworkCalibration:
        """The constants of a measured engine, for a network of fixed shape."""
        return cast(NetworkCalibration, self.network_calibration)

    @property
    def device(self) -> Accelerator:
        """The device."""
        return self.hardware

    @property
    def share(self) -> Value:
        """Share of the peak rate that arithmetic reaches in the textbook model."""
        return first_known(self.efficiency, self.textbook.value)

    @property
    def hidden_bytes(self) -> Value:
        """Memory traffic of element-wise operators per element of the residual stream."""
        return self.calibration.hidden_bytes

    @property
    def ffn_bytes(self) -> Value:
        """The same per element of the feed-forward block's inner width."""
        return self.calibration.ffn_bytes


def operator_pass(i: PassInputs) -> dict[str, Any]:
    """Time a forward pass over whole sequences, operator by operator."""
    model, layers, c = i.transformer, i.transformer.layers, i.calibration
    d = inference_device(i, model, i.precision, i.precision.training_bytes)
    tokens = i.batch_size * i.seq_len
    layer = inference_layer(d, model, tokens, i.seq_len, 1, lambda b: _whole_experts(d, b, tokens))
    logits = head(d, model, tokens, 1)
    fixed = by_blocks(model, c.prompt_overhead)
    layer_time = layer.products.time + layer.attention + layer.elementwise + fixed
    latency = layers * layer_time + logits.time

    # The same operators, grouped by their bottleneck
    arithmetic = layers * (layer.products.compute + layer.attention) + logits.compute
    traffic = layers * (layer.products.memory + layer.elementwise) + logits.memory
    overhead = layers * fixed
    each = token_flops(model, i.seq_len, i.conventions.flops_per_mac)
    flops = f.forward_flops(tokens, each.matrix, each.score, each.logit)
    wide_flops = tokens * (each.score + each.logit)
    if tower := tower_of(i):
        images = i.batch_size * i.images
        vision = tower_pass(d, tower, images, 1)
        latency = latency + vision.time
        arithmetic, traffic = arithmetic + vision.compute, traffic + vision.memory
        more = tower_flops(tower, images)
        flops, wide_flops = flops + more, wide_flops + more
    slower = where(arithmetic >= traffic, "compute", "memory")

    moved = d.memory * traffic
    mfu = flops_share(i, flops, wide_flops, latency, devices=1)
    power = _power(i, latency, mfu, moved)
    capacity = i.hardware.memory.capacity
    memory = stored_weights(model, i.precision) + kv_cache(
        model,
        i.batch_size,
        i.seq_len,
        i.precision.bytes_per_element,
        i.precision.training_bytes,
    )
    return {
        "latency": latency,
        **edges("latency", within_peak(c.pass_band, maximum(mfu, power["mbu"])), latency),
        "throughput": i.batch_size / latency,
        "bottleneck": where(overhead > maximum(arithmetic, traffic), "overhead", slower),
        "compute_time": arithmetic,
        "memory_time": traffic,
        "overhead_time": overhead,
        "flops": flops,
        "bytes_moved": moved,
        "arithmetic_intensity": f.arithmetic_intensity(flops, moved),
        "ridge_point": f.ridge_point(d.product, d.memory),
        "mfu": mfu,
        **power,
        "memory": memory,
        "memory_capacity": capacity,
        "feasible": memory <= capacity,
    }


def _whole_experts(d: Device, block: Experts, tokens: Value) -> Routed:
    """Return the work of all experts of a layer on one device."""
    return Routed(
        rows=block.per_token * tokens,
        matrices=f.experts_visited(block.count, block.per_token, tokens),
        shards=1,
        rate=d.product,
    )


def _fixed_shape_pass(i: PassInputs) -> dict[str, Any]:
    """Time a forward pass of a network of fixed shape, from its totals."""
    flops, traffic = _network_work(i)
    return _roofline(i, i.share, flops, traffic, _network_memory(i))


def _network_pass(i: PassInputs) -> dict[str, Any]:
    """Time a network of fixed shape with the constants of an engine.

    The time is the roofline of its totals, plus a fixed time per layer, plus the work for each
    element written and each weight loaded, which an in-order core cannot overlap with its products.
    """
    network, c = i.network, i.network_constants
    flops, traffic = _network_work(i)
    weights = first_known(network.dense_parameters, network.parameters)
    around = i.batch_size * (
        c.output_flops * network.activations_per_sample + c.weight_flops * weights
    )
    starts = first_known(network.layers, 0) * c.layer_time
    overhead = f.compute_time(around, i.peak_rate, c.efficiency) + starts
    answer = _roofline(i, c.efficiency, flops, traffic, _network_memory(i), overhead)
    latency, used = answer["latency"], maximum(answer["mfu"], answer["mbu"])
    return {
        **answer,
        **edges("latency", within_peak(c.pass_band, used), latency),
        "overhead_time": overhead,
    }


def _network_work(i: PassInputs) -> tuple[Value, Value]:
    """Return the operations and the traffic of a batch through a network of fixed shape."""
    network = i.network
    traffic = f.fixed_shape_traffic(
        first_known(network.dense_parameters, network.parameters),
        network.gathered_parameters,
        network.activations_per_sample,
        i.batch_size,
        i.precision.bytes_per_element,
    )
    return i.batch_size * network.flops_per_sample, traffic


def _network_memory(i: PassInputs) -> Value:
    return i.network.parameters * i.precision.bytes_per_element


def _transformer_pass(i: PassInputs) -> dict[str, Any]:
    """Time a forward pass of a transformer over whole sequences (a prefill).

    Weights are read, and keys and values written. Activations are not counted: with few tokens they
    are small compared with the weights; with many, the arithmetic takes longer than their traffic.
    """
    model, each = i.transformer, i.precision.bytes_per_element
    tokens = i.batch_size * i.seq_len
    work = token_flops(model, i.seq_len, i.conventions.flops_per_mac)
    flops = f.forward_flops(tokens, work.matrix, work.score, work.logit)
    cache = kv_cache(model, i.batch_size, i.seq_len, each, i.precision.training_bytes)
    traffic = weights_read(model, i.precision, tokens) + cache
    if tower := tower_of(i):
        images = i.batch_size * i.images
        flops = flops + tower_flops(tower, images)
        traffic = traffic + tower_traffic(tower, images, each)
    return _roofline(i, i.share, flops, traffic, stored_weights(model, i.precision) + cache)


def _roofline(
    i: PassInputs, share: Value, flops: Value, traffic: Value, memory: Value, overhead: Value = None
) -> dict[str, Any]:
    """Return the result for the operations and the traffic of a pass, plus any additional time."""
    bandwidth, capacity = i.hardware.memory.bandwidth, i.hardware.memory.capacity
    compute_time = f.compute_time(flops, i.peak_rate, share)
    memory_time = f.memory_time(traffic, bandwidth)
    bottleneck = where(compute_time >= memory_time, "compute", "memory")
    if overhead is None:
        latency = f.roofline_time(compute_time, memory_time)
    else:
        products = f.roofline_time(compute_time, memory_time)
        bottleneck = where(overhead > products, "overhead", bottleneck)
        latency = products + overhead
    mfu = f.flops_utilization(flops, latency, i.peak_rate, devices=1)
    return {
        "latency": latency,
        "throughput": i.batch_size / latency,
        "bottleneck": bottleneck,
        "compute_time": compute_time,
        "memory_time": memory_time,
        "flops": flops,
        "bytes_moved": traffic,
        "arithmetic_intensity": f.arithmetic_intensity(flops, traffic),
        "ridge_point": f.ridge_point(share * i.peak_rate, bandwidth),
        "mfu": mfu,
        **_power(i, latency, mfu, traffic),
        "memory": memory,
        "memory_capacity": capacity,
        "feasible": memory <= capacity,
    }


def _power(i: PassInputs, time: Value, mfu: Value, bytes_moved: Value) -> dict[str, Value]:
    """Return power and energy of the device from the work and the time of one pass."""
    mbu = f.bandwidth_utilization(bytes_moved, time, i.hardware.memory.bandwidth)
    drawn = drawn_power(i, mfu, mbu)  # a forward pass recomputes nothing, so HFU equals MFU
    return {"mbu": mbu, **drawn, "energy": drawn["device_power"] * time}


class SingleNodeSolver(Solver[PassInputs, SingleNodeResult]):
    """How long does a forward pass take on one device, and what limits it?

    A transformer is timed operator by operator: matrix products by their shapes, attention,
    element-wise traffic, logits, and a fixed time per layer, with the constants of a calibration.
    With `efficiency`, the model is the textbook roofline: arithmetic at that share of the peak rate
    and memory traffic at the datasheet's bandwidth, fully overlapped. A model of fixed shape has
    only totals. Its time is their roofline plus a fixed time per layer on GPUs, or the work around
    the products on microcontrollers, with the constants of a measured engine (`calibration` of the
    result names it, or says that nothing was validated).
    """

    inputs = PassInputs
    rules = (*IMAGE_RULES, within_context(lambda i: i.seq_len, "seq_len"))
    result = SingleNodeResult

    @classmethod
    def solve(
        cls,
        *,
        model: Annotated[
            Workload, Noun(kinds=(TransformerModel, FixedShapeModel), hint="Models.ResNet50")
        ],
        hardware: Annotated[Accelerator, Noun(hint="Hardware.A100")],
        batch_size: Annotated[int, Whole()] = 1,
        precision: Annotated[str, PrecisionName()] = "fp16",
        efficiency: Annotated[float | None, Share()] = None,
        seq_len: Annotated[int | None, Whole(unit="token")] = None,
        images: Annotated[int, Whole(minimum=0)] = 0,
        calibration: Annotated[
            ServingCalibration | None, Noun(hint="ServingCalibrations.Hopper_Library")
        ] = None,
        network_calibration: Annotated[
            NetworkCalibration | None, Noun(hint="NetworkCalibrations.Cortex_M4_XCubeAI")
        ] = None,
        power_calibration: Annotated[
            PowerCalibration | None, Noun(hint="PowerCalibrations.Hopper")
        ] = None,
    ) -> SingleNodeResult:
        """Time one forward pass of a batch.

        Parameters
        ----------
        model
            A transformer or a model of fixed shape.
        hardware
            The device.
        batch_size
            Samples in the batch; sequences, for a transformer.
        precision
            Number format of arithmetic, weights and activations.
        efficiency
            Share of the dense peak rate that the arithmetic reaches: the textbook's one constant.
            `None` takes fitted constants instead: of every operator of a transformer, or of the
            totals and layers of a model of fixed shape.
        seq_len
            Tokens per sequence; `None` takes the model's training length. For transformers only.
        images
            Images in each sequence; their tokens count toward `seq_len`. Each image is a pass of
            the model's vision tower, timed from its totals by one roofline. Only for models with a
            known tower (`vision`); 0 means text only.
        calibration
            Constants for the operators; `None` takes those fitted for the device. For transformers
            only.
        network_calibration
            Constants of an engine for models of fixed shape; `None` takes those fitted for the
            device, or for similar ones without a band. For models of fixed shape only.
        power_calibration
            Constants for the power that operations and memory traffic draw; `None` takes those
            fitted for the device's generation.

        Returns
        -------
        SingleNodeResult
            Times, traffic, power, energy, memory and the bottleneck.

        Raises
        ------
        ConfigError
            If an argument is out of range, or the device cannot compute in `precision`.

        Examples
        --------
        >>> from mlsysim import Hardware, Models, SingleNodeSolver
        >>> r = SingleNodeSolver.solve(model=Models.ResNet50, hardware=Hardware.A100, batch_size=32)
        >>> r.bottleneck
        'compute'
        >>> print(f"{r.latency.to('ms'):.2f}")
        2.06 ms
        >>> r = SingleNodeSolver.solve(model=Models.BERT_Base, hardware=Hardware.A100, seq_len=128)
        >>> print(f"{r.latency:.2f}, of which {r.overhead_time:.2f} is overhead: {r.calibration}")
        0.81 ms, of which 0.59 ms is overhead: Ampere, called as a library

        References
        ----------
        Williams, Waterman and Patterson (2009), Roofline, https://doi.org/10.1145/1498765.1498785
        """
        return cls._answer(locals())

    @classmethod
    def check(cls, inputs: PassInputs) -> None:
        """Reject formats the device cannot compute in, and arguments for other kinds of models."""
        inputs.hardware.compute.rate(inputs.precision.name)
        check_one_model(inputs)
        if inputs.gives("network_calibration"):
            _check_network_calibration(inputs)
        if isinstance(inputs.model, TransformerModel):
            return
        for name, why in (("seq_len", "work per sample is fixed"), ("calibration", _NO_OPERATORS)):
            if inputs.gives(name):
                value = getattr(inputs, name)
                raise ConfigError(
                    f"{name} = {getattr(value, 'name', value)} has no meaning "
                    f"for {inputs.model.name}, whose {why}; leave it out",
                    argument=name,
                )

    @classmethod
    def model(cls, inputs: PassInputs) -> Model[PassInputs]:
        """Choose the operator-level model, or the textbook for an efficiency or a fixed shape."""
        if isinstance(inputs.model, FixedShapeModel):
            plain = inputs.network_calibration is None or inputs.efficiency is not None
            return _fixed_shape_pass if plain else _network_pass
        return operator_pass if inputs.efficiency is None else _transformer_pass

    @classmethod
    def rest(cls, values: Mapping[str, Any], inputs: PassInputs) -> dict[str, Callable[[], Any]]:
        """Add the reasons and the names of the calibrations."""
        return {
            "calibration": lambda: _basis(values, inputs),
            "power_calibration": lambda: inputs.power_calibration.name,
            "reasons": lambda: _reasons(values, inputs),
        }


def _reasons(values: Mapping[str, Any], inputs: PassInputs) -> tuple[str, ...]:
    if values["feasible"]:
        return ()
    lack = values["memory"] - values["memory_capacity"]
    return (
        f"{inputs.model.name} needs {format_number(values['memory'])}, which is "
        f"{format_number(lack)} more than {inputs.hardware.name} has "
        f"({format_number(values['memory_capacity'])}): use a narrower precision, a "
        "smaller batch, or split the model over several devices",
    )


def _check_network_calibration(inputs: PassInputs) -> None:
    """Reject constants for other kinds of models and for other number formats."""
    constants = inputs.network_constants
    if isinstance(inputs.model, TransformerModel):
        raise ConfigError(
            f"network_calibration = {constants.name} is for networks of fixed shape, and "
            f"{inputs.model.name} is a transformer: leave it out, or give calibration",
            argument="network_calibration",
        )
    if constants.precision not in ("", inputs.precision.name):
        raise ConfigError(
            f"network_calibration = {constants.name} holds for {constants.precision}, not for "
            f"precision = {inputs.precision.name}: choose constants of the same format",
            argument="network_calibration",
        )


_NO_OPERATORS = "operators are not known, only their totals"


def _basis(values: Mapping[str, Any], inputs: PassInputs) -> str:
    """Name the calibration used, and say whether its error is known."""
    if inputs.efficiency is not None:
        return "textbook: one efficiency"
    name: str = inputs.calibration.name
    if isinstance(inputs.model, FixedShapeModel):
        if inputs.network_calibration is None:
            return f"not validated: the textbook's efficiency of {inputs.textbook.value:g}"
        name = inputs.network_calibration.name
    known = values["latency_low"] is not None
    return name if known else f"{name} (no band: too few passes measured)"
