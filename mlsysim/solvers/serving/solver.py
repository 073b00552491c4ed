"""How fast does a device or a node answer prompts, and how many requests fit at once?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

from mlsysim.core.errors import ConfigError
from mlsysim.core.types import (
    Accelerator,
    Fleet,
    NetworkFabric,
    Node,
    PowerCalibration,
    ServingCalibration,
    TransformerModel,
)
from mlsysim.core.units import Quantity, format_number
from mlsysim.registry.calibration.serving import ServingCalibrations
from mlsysim.solvers.arguments import (
    Amount,
    Factor,
    Noun,
    Portion,
    PrecisionName,
    Share,
    Stage,
    Whole,
)
from mlsysim.solvers.base import Model, Solver, check_one_model
from mlsysim.solvers.device import memory_account
from mlsysim.solvers.serving.inputs import RULES, ServingInputs
from mlsysim.solvers.serving.operators import serve_operators
from mlsysim.solvers.serving.result import ServingResult
from mlsysim.solvers.serving.sessions import serve_sessions
from mlsysim.solvers.serving.textbook import serve_textbook

__all__ = ["ServingSolver"]


class ServingSolver(Solver[ServingInputs, ServingResult]):
    """How fast does a device or a node answer prompts, and how many requests fit at once?

    Prefill processes a prompt in one pass, with many operations per byte. Each decode pass yields
    one token per sequence and reads all keys and values and all weights (of experts, only those
    visited), so it does few operations per byte. By default every operator is timed with the
    constants of a serving engine, and requests are batched continuously: when one ends, the next is
    prefilled while the others keep decoding. With `efficiency`, each pass is one roofline, with
    arithmetic at that share of the peak rate and memory at the datasheet's bandwidth, and the batch
    is static: all prompts are prefilled together, then decoded.
    """

    inputs = ServingInputs
    rules = RULES
    result = ServingResult

    @classmethod
    def solve(
        cls,
        *,
        model: Annotated[TransformerModel, Noun(hint="Models.Llama3_8B")],
        hardware: Annotated[
            Accelerator | Node | Fleet,
            Noun(hint="Hardware.H100, or the node Systems.Nodes.DGX_H100"),
        ],
        seq_len: Annotated[int, Whole(unit="token")] = 2048,
        images: Annotated[int, Whole(minimum=0)] = 0,
        output_len: Annotated[int, Whole(minimum=0, unit="token")] = 0,
        batch_size: Annotated[int, Whole()] = 1,
        precision: Annotated[str, PrecisionName()] = "fp16",
        weight_precision: Annotated[str | None, PrecisionName(files=True)] = None,
        kv_precision: Annotated[str | None, PrecisionName()] = None,
        tp_size: Annotated[int, Whole()] = 1,
        pp_size: Annotated[int, Whole()] = 1,
        attention_dp: Annotated[int, Whole()] = 1,
        ep_size: Annotated[int, Whole()] = 1,
        dcp_size: Annotated[int, Whole()] = 1,
        redundant_experts: Annotated[int, Whole(minimum=0)] = 0,
        expert_imbalance: Annotated[float, Factor()] = 1,
        dispatch_precision: Annotated[str | None, PrecisionName()] = None,
        overlap_batches: Annotated[int, Whole(minimum=0, maximum=2)] = 0,
        cached_share: Annotated[float, Portion()] = 0,
        loaded_share: Annotated[float, Portion()] = 0,
        host_link: Annotated[NetworkFabric | None, Noun(hint="Systems.Links.PCIe5")] = None,
        lora_rank: Annotated[int | None, Whole()] = None,
        adapters: Annotated[int, Whole()] = 1,
        resident_adapters: Annotated[int | None, Whole()] = None,
        turns: Annotated[int, Stage()] = 1,
        turn_tokens: Annotated[int | None, Whole(unit="token")] = None,
        think_time: Annotated[Quantity | None, Amount(unit="s")] = None,
        host_memory: Annotated[Quantity | None, Amount(unit="GB")] = None,
        token_budget: Annotated[int | None, Whole(unit="token")] = None,
        max_sequences: Annotated[int | None, Whole()] = None,
        block_size: Annotated[int, Whole(unit="token")] = 1,
        reserved_output: Annotated[float | None, Portion()] = None,
        draft_tokens: Annotated[int, Whole(minimum=0, unit="token")] = 0,
        acceptance_length: Annotated[float | None, Factor()] = None,
        waves: Annotated[int | None, Whole()] = None,
        arrivals: Annotated[int, Whole()] = 1,
        efficiency: Annotated[float | None, Share()] = None,
        calibration: Annotated[
            ServingCalibration | None, Noun(hint="ServingCalibrations.Hopper_vLLM")
        ] = None,
        power_calibration: Annotated[
            PowerCalibration | None, Noun(hint="PowerCalibrations.Hopper")
        ] = None,
    ) -> ServingResult:
        """Predict latencies, throughput and memory of the requests in flight.

        Parameters
        ----------
        model
            A transformer that generates text.
        hardware
            A device; a node, if one replica uses several devices; or a fleet of nodes.
        seq_len
            Tokens of each prompt.
        images
            Images in each prompt; their tokens count toward `seq_len`. Each image is a pass of the
            model's vision tower, timed from its totals by one roofline. Only for models with a
            known tower (`vision`); 0 means text only.
        output_len
            Tokens generated for each prompt. The decode step is timed at the mean context,
            `seq_len` plus half of `output_len`; memory is counted at the full one. With 0 or 1
            there is no decode, as in classification: each prompt waits for those before it.
        batch_size
            Requests in flight: the number of clients. Each client sends its next request as soon as
            the last one is answered.
        precision
            Number format of the arithmetic and the activations.
        weight_precision
            Format in which weights are stored; `None` takes `precision`. Narrow formats apply to
            the layers' matrices and include their scales (those of NVFP4 for ``"fp4"``, of AWQ for
            ``"int4"``); embeddings and output projection stay in 16 bits. Parts for which the model
            states a format (`formats`) keep it.
        kv_precision
            Format in which keys and values are stored; `None` takes `precision`.
        tp_size
            Devices that share each layer.
        pp_size
            Pipeline stages. The same number of request groups pass through them, one after another.
        attention_dp
            Ranks of data-parallel attention. Each has `tp_size` devices, its own requests, and its
            own copy of all weights except the experts, which all ranks share. Tokens are sent to
            experts and back in an exchange between the ranks.
        ep_size
            Groups into which the `tp_size` x `attention_dp` devices of a stage divide the experts;
            the devices of a group split each of its experts. 1 splits every expert over all these
            devices; their number places each expert whole on one device.
        dcp_size
            Ranks of decode context parallelism: of the `tp_size` devices, those that hold the same
            keys and values divide their tokens. Each rank attends to its own part of the context,
            and two exchanges per layer combine the results. It divides `tp_size` / KV heads, where
            latent attention has one KV head. Prefill takes as long as before; windows, states and
            the keys of an indexer are not divided.
        redundant_experts
            Additional copies of busy experts per layer. They take memory; what they gain is a lower
            `expert_imbalance`.
        expert_imbalance
            Load (rows) of the busiest group of experts divided by the mean, with the
            `redundant_experts` in place, if there are many tokens. With few tokens, chance adds to
            it. The model does not compute how much copies lower it: pass the ratio that remains.
        dispatch_precision
            Format of tokens on the way to experts; results come back in at least 16 bits. `None`
            takes 8 bits if `precision` has 8 or 4.
        overlap_batches
            What hides the exchange with experts. 2: a rank splits each batch into halves, and one
            half computes while tokens of the other are sent (SGLang's two-batch overlap, vLLM's
            dual-batch overlap). Each half reads the weights, which can cost more than it hides. 1:
            only shared experts and the experts' last product run meanwhile (single-batch overlap).
            0: nothing does.
        cached_share
            Share of each prompt that is already in the prefix cache. It is not computed again, but
            tokens still attend to it, and each request still counts with its whole cache in memory.
        loaded_share
            Share of each prompt whose keys and values are in the host's memory or on a disk. They
            are loaded before the first token, which takes no device time.
        host_link
            Link over which each device loads them, such as PCIe or an SSD. `None` takes the
            device's bandwidth to its host, without latency. Waits for the link are part of the cost
            of device time; memory and disks of the host have no price and no energy here.
        lora_rank
            Rank of low-rank adapters (LoRA) of all matrices in the layers, in 16 bits; each request
            uses one. `None` serves the model without adapters. Passes read each adapter in use, and
            stream each token's inputs and outputs once more.
        adapters
            Adapters to choose from, each with the same probability.
        resident_adapters
            Adapters that the devices set memory aside for, which also limits how many different
            ones run together. The others are loaded over `host_link`. `None` keeps all of them.
        turns
            Requests per session. Each prompt repeats everything before it and adds new tokens;
            `seq_len` is the mean over all turns. `cached_share` and `loaded_share` then follow from
            the memory, the request rate and `think_time`.
        turn_tokens
            New tokens per prompt after the first, in addition to the previous answer.
        think_time
            Mean time from an answer to the session's next request, exponentially distributed.
        host_memory
            Host memory (or disk) per device for prefixes that the device has evicted; `None` means
            there is none.
        token_budget
            Most tokens per rank in one pass, which limits the chunks of a prefill; `None` takes the
            calibration's.
        max_sequences
            Most requests that run together; with `None`, only memory limits them.
        block_size
            Tokens per block of the engine's cache: 16 in vLLM, 32 or 64 in TensorRT-LLM. On
            average, half of each sequence's last block is empty. The default of 1 counts single
            tokens, as in the fit of the constants.
        reserved_output
            Share of the output for which memory is reserved when a request is admitted. With 1, no
            request is ever preempted. With less, more requests run, and while the cache is full,
            each new token evicts another one, which is recomputed later. `None` takes the
            calibration's share; its fitted times include the tokens that its engine recomputes.
        draft_tokens
            Tokens that a draft head (MTP, EAGLE) proposes before each pass. Each costs one average
            layer and the output projection, and the pass verifies all of them.
        acceptance_length
            Mean tokens that a pass then yields, including its own: from 1 to `draft_tokens` + 1. It
            depends on the text, so it has no default.
        waves
            Requests that each client sends, one after the other. All clients start at once, so the
            first requests queue. `None` means a run long enough that its start does not matter;
            only then do requests in flight equal rate times latency for every output length.
        arrivals
            Requests that arrive together after the start: 1 if clients are independent.
        efficiency
            Share of the dense peak rate that arithmetic reaches: the textbook's one constant.
            `None` times every operator instead, with a calibration's constants.
        calibration
            Constants for the operators; `None` takes those fitted for the device, which are
            TensorRT-LLM's on recent NVIDIA GPUs. To compare devices, give both the constants of one
            engine that has runs in the same format on each, and see `calibration` of the results.
        power_calibration
            Constants for power; `None` takes those fitted for the device's generation.

        Returns
        -------
        ServingResult
            Latencies, throughput, power, energy and memory.

        Raises
        ------
        ConfigError
            If an argument is out of range, or the model does not generate.
        ParallelismError
            If `tp_size` does not divide the heads, a plan needs more devices than there are, or
            groups or ranks do not divide what they share.

        Notes
        -----
        If not all requests fit, those that fit run and the others wait. The result still has times,
        with `feasible` False and the `reasons`. With more memory, more of them run: under a steady
        load (`waves` is `None`), throughput rises, latency falls, and the time between tokens
        grows; with a few `waves`, latency may rise too.

        Examples
        --------
        >>> from mlsysim import Hardware, Models, ServingSolver
        >>> r = ServingSolver.solve(model=Models.Llama3_8B, hardware=Hardware.H100, seq_len=2048)
        >>> r.itl_bottleneck
        'memory'
        >>> print(f"{r.itl.to('ms'):.2f}")
        6.70 ms
        >>> busy = ServingSolver.solve(
        ...     model=Models.Llama3_8B,
        ...     hardware=Hardware.H100,
        ...     seq_len=2048,
        ...     output_len=256,
        ...     batch_size=64,
        ... )
        >>> print(f"{busy.decode_latency.to('ms'):.1f}, with prefills {busy.itl.to('ms'):.1f}")
        13.0 ms, with prefills 24.0 ms

        References
        ----------
        Pope et al. (2022), Efficiently Scaling Transformer Inference, https://arxiv.org/abs/2211.05102
        """
        return cls._answer(locals())

    @classmethod
    def check(cls, inputs: ServingInputs) -> None:
        """Reject formats in which the device cannot compute, and models that do not generate."""
        _check_rate(inputs)
        check_one_model(inputs)
        if not inputs.model.causal:
            raise ConfigError(
                f"model = {inputs.model.name} encodes text but does not generate any; time its "
                "forward pass with SingleNodeSolver",
                argument="model",
            )
        if inputs.gives("power_calibration") and inputs.device.tdp is None:
            raise ConfigError(
                f"power_calibration = {inputs.power_calibration.name} has no effect, because the "
                f"design power of {inputs.device.name} is unknown: leave it out, or add tdp to the "
                "device",
                argument="power_calibration",
            )

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> ServingInputs:
        """Check every argument, and that the arguments are consistent."""
        inputs = super().admit(given)
        constants = inputs.calibration.in_format(inputs.precision.name).serving(inputs.model.name)
        return inputs.but(calibration=constants)

    @classmethod
    def model(cls, inputs: ServingInputs) -> Model[ServingInputs]:
        """Choose the operator-level model, or the textbook model if an efficiency is given."""
        if inputs.efficiency is not None:
            return serve_textbook
        return serve_operators if inputs.turns == 1 else serve_sessions

    @classmethod
    def rest(cls, values: Mapping[str, Any], inputs: ServingInputs) -> dict[str, Callable[[], Any]]:
        """Add the reasons."""
        return {
            "calibration": lambda: _basis(values, inputs),
            "power_calibration": lambda: inputs.power_calibration.name,
            "reasons": lambda: _reasons(values, inputs),
        }


def _reasons(values: Mapping[str, Any], inputs: ServingInputs) -> tuple[str, ...]:
    if values["feasible"]:
        return ()
    need, have = values["total_memory_required"], values["memory_capacity"]
    advice = (
        f"at most {values['max_batch_size']:.0f} such sequences fit"
        if values["max_batch_size"] >= 1
        else "not even one such sequence fits: store weights in a narrower format, shorten the "
        "context, or raise tp_size"
    )
    if (running := int(values["running_batch_size"])) < inputs.batch_size:
        advice += f"; {running} requests run at a time, and the others wait"
        if values["running_limit"] == "adapters":
            advice += (
                f", because there is memory for {inputs.resident_adapters} of "
                f"{inputs.adapters} adapters"
            )
    again = values.get("recomputed_tokens") or 0
    if again >= 1 and values["max_batch_size"] >= 1:
        advice += (
            f"; running requests outgrow the cache, so that {again:,.0f} tokens per request are "
            "recomputed"
        )
    if values.get("batch_adapters") is not None:
        advice += f"; {format_number(values['adapter_memory'])} of all devices are for adapters"
    return (
        f"memory: a device needs {memory_account(need, have)}, "
        f"{format_number(need - have)} short; {advice}",
    )


def _basis(values: Mapping[str, Any], inputs: ServingInputs) -> str:
    if inputs.efficiency is not None:
        return "textbook: one efficiency"
    name = inputs.calibration.name
    if values["itl_low"] is None:
        return f"{name} (no run to compare with)"
    if name == ServingCalibrations.Uncalibrated.name:
        return f"{name} (the band is that of all engines)"
    return name


def _check_rate(inputs: ServingInputs) -> None:
    """Reject a format that the device can only store, and name the arguments for storage."""
    try:
        inputs.device.compute.rate(inputs.precision.name)
    except ConfigError as fault:
        fault.message += (
            "; to store weights or the cache in a format in which it cannot compute, pass "
            "weight_precision= or kv_precision="
        )
        raise
