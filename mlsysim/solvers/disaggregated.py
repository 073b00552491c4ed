"""How fast is a server that runs prefill and decode on separate devices?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Unpack

from mlsysim.core import formulas as f
from mlsysim.core.errors import ConfigError
from mlsysim.core.fields import Record, derived, number, quantity, record
from mlsysim.core.forms import replaced
from mlsysim.core.inputs import default
from mlsysim.core.numeric import Value, is_zero, maximum, minimum, where, zero_like
from mlsysim.core.result import Result
from mlsysim.core.types import (
    Accelerator,
    Fleet,
    NetworkFabric,
    Node,
    Precision,
    ServingCalibration,
    TransformerModel,
    find_precision,
)
from mlsysim.core.units import Quantity
from mlsysim.registry.calibration.serving import serving_calibration_for
from mlsysim.solvers.arguments import Noun, Whole
from mlsysim.solvers.base import Model, Rule, Solver
from mlsysim.solvers.device import edges, memory_account
from mlsysim.solvers.serving.adapters import batch_adapters, most_sequences
from mlsysim.solvers.serving.inputs import (
    NOTHING_TO_LOAD,
    PLAN,
    ClientArguments,
    EngineArguments,
    ServingInputs,
    check_generates,
    device_in,
    with_bands,
)
from mlsysim.solvers.serving.inputs import RULES as SERVING_RULES
from mlsysim.solvers.serving.memory import (
    device_prompt,
    loading_time,
    pass_budget,
    server_memory,
)
from mlsysim.solvers.serving.passes import decode_pass, device_rates, new_tokens, prefill_pass
from mlsysim.solvers.serving.sessions import (
    Prefixes,
    fixed_point,
    prefixes_at,
    reusable_share,
    thinking,
)


@record
class DisaggregatedResult(Result):
    """Answer of `DisaggregatedSolver`: a pool of devices for prefills, and one for decodes.

    A band, from a `_low` to a `_high` field, covers four of five comparable runs; its bounds are
    `None` if no such run is known.
    """

    ttft: Quantity = quantity("ms")
    """Mean time to first token that clients see: queue, prefill, transfer, and the wait for room in
    the decode pool."""
    ttft_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `ttft`."""
    ttft_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `ttft`."""
    itl: Quantity = quantity("ms")
    """Mean time between tokens. No prefill delays it."""
    itl_low: Quantity | None = quantity("ms")
    """Lower bound of the band around `itl`."""
    itl_high: Quantity | None = quantity("ms")
    """Upper bound of the band around `itl`."""
    latency: Quantity = quantity("ms")
    """Time from a request to the last token of its answer."""
    prefill_latency: Quantity = quantity("ms")
    """Time to prefill one prompt on an idle worker."""
    kv_transfer_time: Quantity = quantity("ms")
    """Time to move the keys and values of a prompt from one pool to the other."""
    loading_latency: Quantity = quantity("ms", zero=True)
    """Mean time to load a prompt's prefix, and the request's adapter if it is not resident, in the
    prefill pool, without the wait for the link; part of the time to first token."""
    cached_tokens: float = number(unit="token", zero=True)
    """Mean tokens of a prompt that are cached in the memory of the prefill pool."""
    loaded_tokens: float = number(unit="token", zero=True)
    """Mean tokens of a prompt that are loaded over the host link of the prefill pool."""
    prefix_hit_share: float | None = number()
    """Share of the repeated part of prompts that is still in the prefill pool's or its host's
    memory; `None` without `turns`."""
    sessions: float | None = number()
    """Sessions with a request in flight or a user who is thinking; `None` without `turns`."""
    batch_adapters: float | None = number()
    """Mean number of different adapters in a decode step of one rank; `None` without adapters."""
    request_throughput: Quantity = quantity("1/s")
    """Requests per second."""
    output_throughput: Quantity = quantity("token/s")
    """Generated tokens per second."""
    throughput_per_device: Quantity = quantity("token/s")
    """Tokens per second, of prompts and answers, divided by the devices of both pools."""
    throughput_per_device_low: Quantity | None = quantity("token/s")
    """Lower bound of the band around `throughput_per_device`."""
    throughput_per_device_high: Quantity | None = quantity("token/s")
    """Upper bound of the band around `throughput_per_device`."""
    prefill_throughput_per_device: Quantity = quantity("token/s")
    """Prompt tokens per second, divided by the devices of the prefill pool."""
    decode_throughput_per_device: Quantity = quantity("token/s")
    """Generated tokens per second, divided by the devices of the decode pool."""
    prefill_utilization: float = number()
    """Share of the time that the prefill pool is busy."""
    decode_batch_size: float = number()
    """Average number of sequences on a decode worker."""
    decode_places: int = number(whole=True)
    """Most sequences that a decode worker runs at once, by memory and by resident adapters."""
    balanced_ratio: float = number()
    """Prefill workers per decode worker at which prefill just keeps up with decode at this load."""
    device_count: int = number(whole=True)
    """Devices in both pools."""
    bottleneck: str
    """What limits throughput: ``"prefill"``, ``"decode"`` if that pool is full, or ``"clients"`` if
    more clients would raise it."""
    prefill_memory_required: Quantity = quantity("GB")
    """Memory that each device of the prefill pool needs, with one prompt per rank, on the fullest
    pipeline stage."""
    prefill_fullest_stage: int = number(whole=True)
    """This stage, counted from 0."""
    decode_memory_required: Quantity = quantity("GB")
    """Memory that each device of the decode pool needs, with all sequences at full length, on the
    fullest pipeline stage."""
    decode_fullest_stage: int = number(whole=True)
    """This stage, counted from 0."""
    prefill_memory_capacity: Quantity = quantity("GB")
    """Memory that each device of the prefill pool has."""
    decode_memory_capacity: Quantity = quantity("GB")
    """Memory that each device of the decode pool has."""
    feasible: bool
    """Whether both pools have enough memory for a sequence."""
    reasons: tuple[str, ...]
    """Why it does not fit; empty if it does."""
    calibration: str
    """The constants used for the decode pool."""


_SMALL = 1e-9
_ROUNDS = 3
"""Number of iterations for the load of the decode pool, which depends on its own step time."""


class DisaggregatedArguments(ClientArguments, EngineArguments[int, str | None], total=False):
    """Arguments of `DisaggregatedSolver` that it shares with other solvers."""


_DERIVED = tuple(
    name for name in dir(ServingInputs) if isinstance(getattr(ServingInputs, name), derived)
)
"""Numbers of an engine that follow from its device and calibration, in each pool."""


class DisaggregatedInputs(ServingInputs):
    """Inputs of a disaggregated server. Fields of `ServingInputs` describe the decode pool."""

    calibration: ServingCalibration = default(
        lambda i: serving_calibration_for(i.device, pools=True)
    )
    prefill_hardware: Accelerator | Node | Fleet = default(lambda i: i.hardware)
    prefill_calibration: ServingCalibration = default(
        lambda i: (
            i.calibration
            if i.prefill_hardware is i.hardware
            else serving_calibration_for(i.prefill_device, pools=True)
        )
    )
    prefill_wide_precision: Precision = default(
        lambda i: find_precision(i.prefill_device.compute.wide_precision(i.precision.name))
    )
    transfer_link: NetworkFabric = default(lambda i: i.fabric or i.links)
    efficiency: Value = default(lambda i: math.nan)
    max_sequences: Value = default(lambda i: math.nan)
    arrivals: Value = default(lambda i: 1.0)
    prefill_workers: Value
    decode_workers: Value
    prefill_tp_size: Value
    prefill_pp_size: Value
    prefill_attention_dp: Value
    prefill_ep_size: Value

    @property
    def kept_output(self) -> Value:
        """Tokens of an answer in the prefix cache: the prefill pool has none of them."""
        return zero_like(self.output_len)

    @property
    def most_ranks(self) -> Value:
        """Ranks of data-parallel attention, in the pool that has the most."""
        return maximum(self.attention_dp, self.prefill_attention_dp)

    @property
    def most_groups(self) -> Value:
        """Groups of experts, in the pool that has the most."""
        return maximum(self.ep_size, self.prefill_ep_size)

    @property
    def prefill_device(self) -> Accelerator:
        """The device of the prefill pool."""
        return device_in(self.prefill_hardware)

    @derived
    def prefill_numbers(self) -> Record:
        """Numbers of the prefill pool that follow from its device and calibration."""
        pool = replaced(
            self,
            hardware=self.prefill_hardware,
            calibration=self.prefill_calibration,
            wide_precision=self.prefill_wide_precision,
        )
        numbers = Record()
        for name in _DERIVED:
            numbers.__dict__[name] = getattr(ServingInputs, name).function(pool)
        return numbers

    def prefill_pool(self) -> DisaggregatedInputs:
        """Return the inputs of the prefill pool, in the same form as those of the decode pool."""
        return self.but(
            hardware=self.prefill_hardware,
            calibration=self.prefill_calibration,
            wide_precision=self.prefill_wide_precision,
            **{name: getattr(self, f"prefill_{name}", 1.0) for name in PLAN},
            **{name: getattr(self.prefill_numbers, name) for name in _DERIVED},
        )


def _of_prefill(rule: Rule[Any]) -> Rule[Any]:
    """Return a serving rule applied to the prefill pool."""
    return Rule(
        f"prefill_{rule.argument}" if rule.argument in PLAN else rule.argument,
        lambda i: rule.holds(i.prefill_pool()),
        lambda i: f"the prefill pool: {rule.message(i.prefill_pool())}",
        rule.error,
    )


RULES: tuple[Rule[Any], ...] = (
    *SERVING_RULES,
    *(_of_prefill(rule) for rule in SERVING_RULES if rule.argument in (*PLAN, "host_link")),
    NOTHING_TO_LOAD,
)


@dataclass(frozen=True)
class _Prefills:
    """Prompts in the prefill pool."""

    alone: Value
    """Time of one prompt on an idle worker."""
    each: Value
    """Time of each prompt on a worker whose passes are full."""
    loading: Value
    """Time to load a prompt's prefix and adapter from the host."""
    capacity: Value
    """Most prompts per second, which the links to the hosts of either pool may limit."""


def _prefills(i: DisaggregatedInputs, pool: DisaggregatedInputs) -> _Prefills:
    """Return the times and the rate of prompts in the prefill pool of a server."""
    device = device_rates(pool)
    alone = prefill_pass(pool, device, 1)
    waiting = maximum(1, i.batch_size / i.prefill_workers)
    prompts = f.prompts_per_pass(pass_budget(pool), new_tokens(pool), waiting, pool.attention_dp)
    prompts = minimum(prompts, maximum(1, pool.attention_dp * most_sequences(pool)))
    each = prefill_pass(pool, device, prompts).time / (prompts * pool.pp_size)
    capacity = i.prefill_workers / each
    # Prefixes and adapters come from the host, over a link of each rank. The decode pool loads its
    # adapters during prefill.
    loading = loading_time(pool)
    adapter_loading = loading_time(i.but(loaded_share=zero_like(i.loaded_share)))
    if not (is_zero(loading) and is_zero(adapter_loading)):
        tiny = _SMALL * alone.time
        for time, links in (
            (loading, i.prefill_workers * pool.attention_dp),
            (adapter_loading, i.decode_workers * i.attention_dp),
        ):
            capacity = where(time > 0, minimum(capacity, links / maximum(time, tiny)), capacity)
    return _Prefills(alone.time, each, loading, capacity)


def serve_disaggregated(i: DisaggregatedInputs) -> dict[str, Any]:
    """Model prefill in one pool, the transfer of the cache, and decode in the other pool."""
    c, pool, device = i.calibration, i.prefill_pool(), device_rates(i)
    prefills = _prefills(i, pool)

    # Transfer of one prompt's cache, over the ports of the devices that hold it
    size, link = maximum(device_prompt(pool), device_prompt(i)), i.transfer_link
    transfer = f.point_to_point_time(size, link.bandwidth, link.latency)

    # Decode: the number of sequences in this pool follows from its own step time. A full pool lets
    # requests wait.
    decodes = maximum(i.output_len - 1, 0)
    context = f.mean_context(i.seq_len, i.output_len)
    before = prefills.alone + prefills.loading + transfer + c.request_overhead
    memory = server_memory(i)
    fitting = memory.fits(memory.reserved(1, i.seq_len + i.output_len))
    places = maximum(1, minimum(fitting, i.copies * most_sequences(i)))
    sequences = minimum(i.batch_size / i.decode_workers, places)
    for _ in range(_ROUNDS):
        step = decode_pass(i, device, maximum(1, sequences), context)
        itl = step.time / i.accepted
        leaving = i.decode_workers * places / (decodes * itl)
        capacity = minimum(prefills.capacity, leaving)
        rate = f.pool_request_rate(capacity, i.batch_size, before, decodes, itl)
        sequences = f.pool_sequences(rate, decodes, itl, i.decode_workers)

    # Little's law: requests that are not in decode are in prefill, or wait for it or for decode.
    steady = f.pool_first_token_time(i.batch_size, rate, decodes, itl)
    burst = f.burst_prefill_time(prefills.each / i.prefill_workers, i.batch_size, i.prefill_workers)
    first_wave = maximum(steady, burst + prefills.loading + transfer + c.request_overhead)
    ttft = f.mean_over_waves(first_wave, steady, i.waves)
    latency = f.request_time(ttft, itl, i.output_len)
    # In a run of a few waves, the queue of the first wave lowers the mean rate.
    mean_rate = i.batch_size / latency

    prefill_devices = i.prefill_workers * pool.replica_devices
    decode_devices = i.decode_workers * i.replica_devices
    per_device = (i.seq_len + i.output_len) * mean_rate / (prefill_devices + decode_devices)
    prefill_memory = server_memory(pool)
    prefill_needed, prefill_stage = prefill_memory.fullest(pool.attention_dp, i.seq_len)
    decode_needed, stage = memory.fullest(maximum(1, sequences), i.seq_len + i.output_len)
    busy = rate / prefills.capacity
    return {
        "ttft": ttft,
        **edges("ttft", c.ttft_band, ttft),
        "itl": itl,
        **edges("itl", c.itl_band, itl),
        "latency": latency,
        "prefill_latency": prefills.alone,
        "kv_transfer_time": transfer,
        "loading_latency": prefills.loading,
        "cached_tokens": i.cached_share * i.seq_len,
        "loaded_tokens": i.loaded_share * i.seq_len,
        "prefix_hit_share": math.nan * busy,
        "sessions": math.nan * busy,
        "batch_adapters": batch_adapters(i, sequences),
        "request_throughput": mean_rate,
        "output_throughput": i.output_len * mean_rate,
        "throughput_per_device": per_device,
        **edges("throughput_per_device", c.throughput_band, per_device),
        "prefill_throughput_per_device": i.seq_len * mean_rate / prefill_devices,
        "decode_throughput_per_device": i.output_len * mean_rate / decode_devices,
        "prefill_utilization": busy,
        "decode_batch_size": sequences,
        "decode_places": places,
        "balanced_ratio": prefills.each * rate / i.decode_workers,
        "device_count": prefill_devices + decode_devices,
        "bottleneck": where(
            busy > 1 - _SMALL,
            "prefill",
            where(sequences > (1 - _SMALL) * places, "decode", "clients"),
        ),
        "prefill_memory_required": prefill_needed,
        "prefill_fullest_stage": prefill_stage,
        "decode_memory_required": decode_needed,
        "decode_fullest_stage": stage,
        "feasible": (prefill_needed <= prefill_memory.capacity) & (fitting >= 1),
        "prefill_memory_capacity": prefill_memory.capacity,
        "decode_memory_capacity": memory.capacity,
    }


def serve_disaggregated_sessions(i: DisaggregatedInputs) -> dict[str, Any]:
    """Serve sessions at the request rate that is consistent with the prefixes that stay cached.

    A prefix waits in the prefill pool while the decode pool generates the answer and the user
    thinks. The prefill pool reads answers again with the next prompt.
    """

    def served(prefixes: Prefixes) -> dict[str, Any]:
        return serve_disaggregated(
            i.but(cached_share=prefixes.cached, loaded_share=prefixes.loaded)
        )

    pool = i.prefill_pool()
    taken = server_memory(pool).reserved(pool.attention_dp, i.seq_len)
    reusable = reusable_share(i)
    none = Prefixes(zero_like(reusable), zero_like(reusable), 0)
    whole = Prefixes(reusable, zero_like(reusable), 1)
    plain = served(none)
    low, high = plain["request_throughput"], served(whole)["request_throughput"]
    decodes = maximum(i.output_len - 1, 0)
    for _ in range(_ROUNDS):
        away = pool.but(think_time=i.think_time + decodes * plain["itl"])

        def cached_at(rate: Value, away: DisaggregatedInputs = away) -> Prefixes:
            return prefixes_at(away, rate / i.prefill_workers, taken)

        rate = fixed_point(lambda rate: served(cached_at(rate))["request_throughput"], low, high)
        prefixes = cached_at(rate)
        plain = served(prefixes)
    return plain | {
        "prefix_hit_share": prefixes.hits,
        "sessions": i.batch_size + thinking(i, rate),
    }


class DisaggregatedSolver(Solver[DisaggregatedInputs, DisaggregatedResult]):
    """How fast is a server that runs prefill and decode on separate devices?

    A worker of the prefill pool processes a prompt, its keys and values move over a link, and a
    worker of the decode pool generates the answer, so prefill never delays decode. Each pool has
    its own plan and may have its own devices. The slower pool limits throughput; a good ratio of
    workers keeps both busy. A request's memory in the decode pool is reserved for its whole answer,
    so there is no preemption (`reserved_output` of `ServingSolver` and `OpenLoopSolver`). Requests
    for which there is no room wait; the wait counts toward the time to first token.
    """

    inputs = DisaggregatedInputs
    rules = RULES
    result = DisaggregatedResult

    @classmethod
    def solve(
        cls,
        *,
        model: Annotated[TransformerModel, Noun(hint="Models.DeepSeek_V3")],
        hardware: Annotated[
            Accelerator | Node | Fleet, Noun(hint="the node Systems.Nodes.GB200_NVL72")
        ],
        output_len: Annotated[int, Whole(minimum=2, unit="token")] = 256,
        batch_size: Annotated[int, Whole()] = 64,
        prefill_workers: Annotated[int, Whole()] = 1,
        decode_workers: Annotated[int, Whole()] = 1,
        prefill_tp_size: Annotated[int, Whole()] = 1,
        prefill_pp_size: Annotated[int, Whole()] = 1,
        prefill_attention_dp: Annotated[int, Whole()] = 1,
        prefill_ep_size: Annotated[int, Whole()] = 1,
        prefill_hardware: Annotated[
            Accelerator | Node | Fleet | None, Noun(hint="Systems.Nodes.DGX_H100")
        ] = None,
        transfer_link: Annotated[
            NetworkFabric | None, Noun(hint="Systems.Fabrics.InfiniBand_NDR")
        ] = None,
        prefill_calibration: Annotated[
            ServingCalibration | None, Noun(hint="ServingCalibrations.Hopper_TensorRT")
        ] = None,
        **engine: Unpack[DisaggregatedArguments],
    ) -> DisaggregatedResult:
        """Time prefills, transfers and decodes of the requests in flight.

        Parameters
        ----------
        model
            A transformer that generates text.
        hardware
            Device, node or fleet of the decode pool, large enough for one worker.
        output_len
            Tokens generated for each prompt, 2 or more.
        batch_size
            Requests in flight, in both pools together.
        prefill_workers, decode_workers
            Replicas of the model in each pool.
        prefill_tp_size, prefill_pp_size, prefill_attention_dp, prefill_ep_size
            Plan of a prefill worker. The other sizes are those of a decode worker.
        prefill_hardware
            Device, node or fleet of the prefill pool; `None` takes `hardware`.
        transfer_link
            Link that carries keys and values between the pools; each device has a port.
            `None` takes the network of a fleet, or the links of a node.
        calibration
            Constants of the decode pool; `None` takes those of its devices.
        prefill_calibration
            Constants of the prefill pool; `None` takes those of its devices, or `calibration` if
            both pools have the same.

        Returns
        -------
        DisaggregatedResult
            Latencies, throughput per pool and per device, and memory.

        Raises
        ------
        ConfigError
            If an argument is out of range, or no link between the pools is known.
        ParallelismError
            If a plan does not fit the model or the hardware.

        Examples
        --------
        >>> from mlsysim import DisaggregatedSolver, Models, Systems
        >>> r = DisaggregatedSolver.solve(
        ...     model=Models.Llama3_70B,
        ...     hardware=Systems.Nodes.DGX_H100,
        ...     seq_len=4096,
        ...     output_len=512,
        ...     batch_size=32,
        ...     precision="fp8",
        ...     tp_size=4,
        ...     prefill_tp_size=2,
        ...     prefill_workers=2,
        ... )
        >>> r.bottleneck, r.device_count
        ('clients', 8)

        References
        ----------
        Zhong et al. (2024), DistServe, https://arxiv.org/abs/2401.09670; Patel et al. (2024),
        Splitwise, https://arxiv.org/abs/2311.18677
        """
        return cls._answer(locals(), engine)

    @classmethod
    def check(cls, inputs: DisaggregatedInputs) -> None:
        """Reject formats in which a device cannot compute, and pools without a link."""
        for device in (inputs.device, inputs.prefill_device):
            device.compute.rate(inputs.precision.name)
        check_generates(inputs)
        if inputs.transfer_link is None:
            raise ConfigError(
                "transfer_link is missing: hardware is a single device, so no link between the "
                "pools is known; pass one such as Systems.Fabrics.InfiniBand_NDR",
                argument="transfer_link",
            )

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> DisaggregatedInputs:
        """Check every argument, and that the arguments are consistent."""
        return with_bands(super().admit(given))

    @classmethod
    def model(cls, inputs: DisaggregatedInputs) -> Model[DisaggregatedInputs]:
        """Return the model of sessions, or of prompts with a given prefix."""
        return serve_disaggregated if inputs.turns == 1 else serve_disaggregated_sessions

    @classmethod
    def rest(
        cls, values: Mapping[str, Any], inputs: DisaggregatedInputs
    ) -> dict[str, Callable[[], Any]]:
        """Add the names and the reasons."""
        return {
            "calibration": lambda: inputs.calibration.name,
            "reasons": lambda: _reasons(values, inputs),
        }


def _reasons(values: Mapping[str, Any], inputs: DisaggregatedInputs) -> tuple[str, ...]:
    reasons = []
    for pool, stages in (("prefill", inputs.prefill_pp_size), ("decode", inputs.pp_size)):
        need, have = values[f"{pool}_memory_required"], values[f"{pool}_memory_capacity"]
        if need > have:
            stage = f"stage {values[f'{pool}_fullest_stage']} of " if stages > 1 else ""
            reasons.append(
                f"memory: a device of {stage}the {pool} pool needs {memory_account(need, have)}; "
                "store weights in a narrower format, or use more devices per worker"
            )
    return tuple(reasons)
