"""How long do requests wait if they arrive at random, not when others are answered?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Unpack

from mlsysim.core.fields import number, quantity, record
from mlsysim.core.result import Result
from mlsysim.core.types import Accelerator, Fleet, Node, TransformerModel
from mlsysim.core.units import Quantity, format_number
from mlsysim.solvers.arguments import Amount, Choice, Noun, Ratio
from mlsysim.solvers.base import Model, Solver
from mlsysim.solvers.serving.adapters import most_sequences
from mlsysim.solvers.serving.inputs import with_bands
from mlsysim.solvers.serving.solver import ServingSolver
from mlsysim.solvers.traffic.bands import outside
from mlsysim.solvers.traffic.inputs import ROLES, RULES, OpenLoopArguments, OpenLoopInputs
from mlsysim.solvers.traffic.queue import serve_open_loop, serve_open_sessions


@record
class OpenLoopResult(Result):
    """Answer of `OpenLoopSolver`: one engine with requests that arrive from outside.

    Times are `None` if more requests arrive than the engine can serve. Each time has a band, from
    its `_low` to its `_high` field, that should contain four of five measured runs. It combines the
    error of the pass times in the runs to which the constants were fitted with the error of the
    queueing model on random systems, compared with `mlsysim.traffic.simulate`. Bands are `None` if
    no such run is known, or if the load is `outside` these systems. Upper bounds are also `None` if
    the engine could not keep up with passes as slow as the band allows.

    Attributes
    ----------
    ttft_mean_low, ttft_p50_low, ttft_p90_low, ttft_p99_low : Quantity or None
        Lower bounds of the bands around the time to first token.
    ttft_mean_high, ttft_p50_high, ttft_p90_high, ttft_p99_high : Quantity or None
        Upper bounds of the bands around the time to first token.
    tpot_mean_low, tpot_p50_low, tpot_p90_low, tpot_p99_low : Quantity or None
        Lower bounds of the bands around the time per output token.
    tpot_mean_high, tpot_p50_high, tpot_p90_high, tpot_p99_high : Quantity or None
        Upper bounds of the bands around the time per output token.
    e2e_mean_low, e2e_p50_low, e2e_p90_low, e2e_p99_low : Quantity or None
        Lower bounds of the bands around the whole time.
    e2e_mean_high, e2e_p50_high, e2e_p90_high, e2e_p99_high : Quantity or None
        Upper bounds of the bands around the whole time.
    """

    ttft_mean: Quantity | None = quantity("ms")
    """Mean time to first token, including all waits in the server."""
    ttft_mean_low: Quantity | None = quantity("ms")
    ttft_mean_high: Quantity | None = quantity("ms")
    ttft_p50: Quantity | None = quantity("ms")
    """Median of the time to first token."""
    ttft_p50_low: Quantity | None = quantity("ms")
    ttft_p50_high: Quantity | None = quantity("ms")
    ttft_p90: Quantity | None = quantity("ms")
    """Time to first token that one request in ten exceeds."""
    ttft_p90_low: Quantity | None = quantity("ms")
    ttft_p90_high: Quantity | None = quantity("ms")
    ttft_p99: Quantity | None = quantity("ms")
    """Time to first token that one request in a hundred exceeds."""
    ttft_p99_low: Quantity | None = quantity("ms")
    ttft_p99_high: Quantity | None = quantity("ms")
    tpot_mean: Quantity | None = quantity("ms")
    """Mean time per output token after the first; `None` without decode."""
    tpot_mean_low: Quantity | None = quantity("ms")
    tpot_mean_high: Quantity | None = quantity("ms")
    tpot_p50: Quantity | None = quantity("ms")
    """Median over requests of a request's mean time per output token."""
    tpot_p50_low: Quantity | None = quantity("ms")
    tpot_p50_high: Quantity | None = quantity("ms")
    tpot_p90: Quantity | None = quantity("ms")
    """Mean time per output token that one request in ten exceeds."""
    tpot_p90_low: Quantity | None = quantity("ms")
    tpot_p90_high: Quantity | None = quantity("ms")
    tpot_p99: Quantity | None = quantity("ms")
    """Mean time per output token that one request in a hundred exceeds."""
    tpot_p99_low: Quantity | None = quantity("ms")
    tpot_p99_high: Quantity | None = quantity("ms")
    e2e_mean: Quantity | None = quantity("ms")
    """Mean time from a request's arrival to its last token."""
    e2e_mean_low: Quantity | None = quantity("ms")
    e2e_mean_high: Quantity | None = quantity("ms")
    e2e_p50: Quantity | None = quantity("ms")
    """Median time from a request's arrival to its last token."""
    e2e_p50_low: Quantity | None = quantity("ms")
    e2e_p50_high: Quantity | None = quantity("ms")
    e2e_p90: Quantity | None = quantity("ms")
    """Time from arrival to last token that one request in ten exceeds."""
    e2e_p90_low: Quantity | None = quantity("ms")
    e2e_p90_high: Quantity | None = quantity("ms")
    e2e_p99: Quantity | None = quantity("ms")
    """Time from arrival to last token that one request in a hundred exceeds."""
    e2e_p99_low: Quantity | None = quantity("ms")
    e2e_p99_high: Quantity | None = quantity("ms")
    request_capacity: Quantity = quantity("1/s")
    """Requests per second that the engine can serve."""
    utilization: float = number()
    """Arrival rate divided by capacity; at 1 or above there is no steady state."""
    output_throughput: Quantity = quantity("token/s")
    """Generated tokens per second: as many as requested, up to capacity."""
    requests_in_flight: float | None = number()
    """Mean number of requests in the server: arrival rate times mean time."""
    waiting_probability: float | None = number()
    """Share of the requests that wait because every slot of the engine is taken."""
    place_wait: Quantity | None = quantity("ms")
    """Mean wait for a slot, over all requests."""
    decode_latency: Quantity | None = quantity("ms")
    """Time of a decode step with the mean number of requests in flight, without prefill."""
    prefill_latency: Quantity = quantity("ms")
    """Time that one prompt adds to a pass."""
    prompt_steps: float | None = number(zero=True)
    """Decode steps that take as long as `prefill_latency`; `None` without decode or without a
    steady state."""
    places: int = number(whole=True)
    """Most sequences that the engine runs at once, by its limit or by memory."""
    max_batch_size: int = number(whole=True)
    """Most sequences of full length that fit in memory."""
    cached_tokens: float = number(unit="token", zero=True)
    """Mean tokens of a prompt that are cached in the devices' memory."""
    loaded_tokens: float = number(unit="token", zero=True)
    """Mean tokens of a prompt that are loaded over the host link."""
    loading_latency: Quantity = quantity("ms", zero=True)
    """Mean time to load them, and the request's adapter if it is not resident, without the wait for
    the link; part of the time to first token."""
    recomputed_tokens: float = number(unit="token", zero=True)
    """Mean tokens recomputed per request because it was preempted while the cache was full."""
    adapter_memory: Quantity = quantity("GB", zero=True)
    """Resident low-rank adapters on all devices."""
    batch_adapters: float | None = number()
    """Mean number of different adapters in a decode step of one rank; `None` without adapters."""
    prefix_hit_share: float | None = number()
    """Share of the repeated part of prompts that is still in the devices' or the host's memory;
    `None` without `turns`."""
    sessions: float | None = number()
    """Sessions with a request in flight or a user who is thinking; `None` without `turns`."""
    device_power: Quantity | None = quantity("W")
    """Mean power of one device, which is idle while there are no requests; `None` if it has no
    design power."""
    calibration: str
    """The calibration used."""
    feasible: bool
    """Whether a sequence fits in memory, and the engine keeps up with the arrivals."""
    reasons: tuple[str, ...]
    """Why not; empty if it is feasible."""
    outside: tuple[str, ...]
    """Ways in which the load is outside the simulated systems with which the queueing model was
    compared, such as larger bursts. The error is not known there, so there are no bands: simulate
    the load with `mlsysim.traffic.simulate`."""


class OpenLoopSolver(Solver[OpenLoopInputs, OpenLoopResult]):
    """How long do requests wait if they arrive at random or in bursts?

    `ServingSolver` models clients that wait for an answer before they send the next request (closed
    loop). Here requests arrive at a given rate whether or not earlier ones have been answered (open
    loop), so a queue can grow. The engine works in passes: each one prefills the prompts that have
    arrived and gives every running sequence a token. Pass times are those of `ServingSolver` at the
    steady-state number of sequences in flight. Percentiles come from pass times as well: with the
    same percentile of the numbers of sequences and prompts, and of the lengths of prompts. Times
    therefore grow with the load and fall if hardware gets faster, except for a few, mostly times
    per token of long prompts with short answers. Of 2,160 times of 180 random engines, 76 fell
    anywhere by more than 0.1% while the load grew, one of them by 28% and the others by less than
    8%. Of 324,000 times at one load, 144 rose by more than 0.1% with twice the bandwidth or
    arithmetic, the worst by 23%.

    The mean pass over a long run stands in for the passes that a request meets, except that its
    first decode steps also meet the prompts that queued behind its own. With long prompts and short
    answers this is not enough: for Llama 3 8B on one H100 at 60% load, 20,000 tokens in and 50 out,
    the mean time per token is a quarter below that of `mlsysim.traffic.simulate`.

    `burstiness` is not enough to describe requests that arrive in long trains with pauses between
    them, as in many traces: two traces with the same value can have very different waits. Beyond
    the bursts and lengths that were simulated, `outside` of the result names the difference, and
    times have no band. Simulate such loads.

    The capacity is the throughput of `ServingSolver` with a client for each slot of the engine: the
    same functions compute the passes of a prompt and the time that it shares with decode steps.
    Ranks of data-parallel attention prefill different prompts in the same pass, and the more passes
    a prompt takes, the more of the ranks prefill at once. A simulated backlog of requests of
    different lengths is served at the same rate within 10% for 97% of 370 random engines, and up to
    28% faster if prompts have few new tokens. Requests of equal length that all begin at once also
    end together, so that more prompts share a pass, and a simulated backlog of them is served
    faster.
    """

    inputs = OpenLoopInputs
    rules = RULES
    result = OpenLoopResult

    @classmethod
    def solve(
        cls,
        *,
        model: Annotated[TransformerModel, Noun(hint="Models.Llama3_8B")],
        hardware: Annotated[
            Accelerator | Node | Fleet,
            Noun(hint="Hardware.H100, or the node Systems.Nodes.DGX_H100"),
        ],
        arrival_rate: Annotated[float | Quantity, Amount(unit="1/s", plain=True)],
        seq_len: Annotated[float, Amount(unit="token", plain=True)] = 2048,
        output_len: Annotated[float, Amount(unit="token", plain=True)] = 256,
        burstiness: Annotated[float, Ratio()] = 1,
        input_variation: Annotated[float, Ratio()] = 0,
        output_variation: Annotated[float, Ratio()] = 0,
        role: Annotated[str, Choice(options=ROLES)] = "both",
        **engine: Unpack[OpenLoopArguments[int, str | None]],
    ) -> OpenLoopResult:
        """Return means and percentiles of time to first token, time per token, and total time.

        Parameters
        ----------
        model
            A transformer that generates text.
        hardware
            A device, a node for tensor parallelism, or a fleet for engines that span nodes.
        arrival_rate
            Requests per second that arrive at this engine.
        seq_len
            Mean tokens of a prompt.
        output_len
            Mean tokens of an answer.
        burstiness
            Squared coefficient of variation of the times between arrivals: 0 if they are evenly
            spaced, 1 for Poisson arrivals, more for bursts. It is the reciprocal of `--burstiness`
            in vLLM's benchmark, which is the shape of a Gamma distribution.
        input_variation
            Standard deviation of the lengths of prompts, divided by their mean. If a share q of the
            prompts is not cached at all and the others are, give the square root of (1 - q) / q,
            and 1 - q as `cached_share`.
        output_variation
            Standard deviation of the lengths of answers, divided by their mean.
        role
            ``"both"``; or, for separate pools, ``"prefill"`` for an engine that generates the
            first token and sends keys and values on, and ``"decode"`` for one that receives them.
            The arguments of the traffic still describe the whole service.

        Returns
        -------
        OpenLoopResult
            Times, capacity, and requests in flight.

        Raises
        ------
        ConfigError
            If an argument is out of range, or the model does not generate.
        ParallelismError
            If `tp_size` does not divide the heads, or exceeds the number of devices.

        Examples
        --------
        >>> from mlsysim import Hardware, Models, OpenLoopSolver
        >>> r = OpenLoopSolver.solve(
        ...     model=Models.Llama3_8B,
        ...     hardware=Hardware.H100,
        ...     arrival_rate=8,
        ...     seq_len=1000,
        ...     output_len=200,
        ... )
        >>> print(f"{r.ttft_p50.to('ms'):.0f}, {r.ttft_p99.to('ms'):.0f}")
        45 ms, 71 ms
        >>> OpenLoopSolver.solve(
        ...     model=Models.Llama3_8B, hardware=Hardware.H100, arrival_rate=100
        ... ).reasons[0]
        'arrivals exceed capacity by 711%...'

        References
        ----------
        Whitt (2004), A Diffusion Approximation for the G/GI/n/m Queue,
        https://doi.org/10.1287/opre.1040.0136
        """
        return cls._answer(locals(), engine)

    @classmethod
    def check(cls, inputs: OpenLoopInputs) -> None:
        """Reject formats in which the device cannot compute, and models that do not generate."""
        ServingSolver.check(inputs)

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> OpenLoopInputs:
        """Check every argument, and that the arguments are consistent."""
        return with_bands(super().admit(given))

    @classmethod
    def model(cls, inputs: OpenLoopInputs) -> Model[OpenLoopInputs]:
        """Return the queueing model."""
        return serve_open_loop if inputs.turns == 1 else serve_open_sessions

    @classmethod
    def rest(
        cls, values: Mapping[str, Any], inputs: OpenLoopInputs
    ) -> dict[str, Callable[[], Any]]:
        """Add the reasons."""
        return {
            "calibration": lambda: inputs.calibration.name,
            "reasons": lambda: tuple(_reasons(values, inputs)),
            "outside": lambda: outside(inputs.plain(), values["prompt_steps"]),
        }


def overload(utilization: float) -> str:
    """Return by how much arrivals exceed a capacity, in words."""
    if utilization == 1:
        return "arrivals equal capacity"
    return f"arrivals exceed capacity by {format_number(100 * float(utilization - 1), 2)}%"


def _reasons(values: Mapping[str, Any], inputs: OpenLoopInputs) -> list[str]:
    reasons = []
    if values["max_batch_size"] < 1:
        reasons.append(
            "memory: not one sequence of full length fits: store weights in a narrower format, "
            "shorten the context, or raise tp_size"
        )
    elif values["utilization"] >= 1:
        capacity = format_number(values["request_capacity"])
        limit = inputs.copies * most_sequences(inputs.plain())
        adapters = (
            f", because there is memory for {inputs.resident_adapters} of {inputs.adapters} "
            "adapters"
            if limit <= values["places"]
            else ""
        )
        reasons.append(
            f"{overload(values['utilization'])}: the engine serves "
            f"{capacity}, with at most {values['places']} sequences at once{adapters}; share the "
            f"requests among at least {int(values['utilization']) + 1} engines"
        )
    return reasons
