"""How long do requests wait if they arrive at random, not when others are answered?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Annotated, Any

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
from mlsysim.solvers.arguments import (
    Amount,
    Choice,
    Factor,
    Noun,
    Number,
    Portion,
    PrecisionName,
    Ratio,
    Stage,
    Whole,
)
from mlsysim.solvers.base import Model, Solver
from mlsysim.solvers.serving.adapters import most_sequences
from mlsysim.solvers.serving.solver import ServingSolver
from mlsysim.solvers.traffic.bands import outside
from mlsysim.solvers.traffic.inputs import ROLES, RULES, OpenLoopInputs
from mlsysim.solvers.traffic.queue import serve_open_loop, serve_open_sessions
from mlsysim.solvers.traffic.result import OpenLoopResult

__all__ = ["OpenLoopSolver", "overload"]


class OpenLoopSolver(Solver[OpenLoopInputs, OpenLoopResult]):
    """How long do requests wait if they arrive at random or in bursts?

    `ServingSolver` models clients that wait for an answer before they send the next request (closed
    loop). Here requests arrive at a given rate whether or not earlier ones have been answered (open
    loop), so a queue can grow. The engine works in passes: each one prefills the prompts that have
    arrived and gives every running sequence a token. Pass times are those of `ServingSolver` at the
    steady-state number of sequences in flight. Percentiles come from the mean and the variance of
    each time. A percentile can therefore be higher on a faster device: with faster memory, a pass
    is shorter, but depends more on its number of prompts and on their lengths, so the variance can
    grow while the mean falls. With twice the bandwidth or arithmetic, one of 350 times of random
    engines rises by more than 0.1%, usually by less than 10%. Most of these fall in
    `mlsysim.traffic.simulate`.

    The mean pass over a long run stands in for the passes that a request meets, except that its
    first decode steps also meet the prompts that queued behind its own. With long prompts and short
    answers this is not enough: for Llama 3 8B on one H100 at 60% load, 20,000 tokens in and 50 out,
    the mean time per token is a quarter below that of `mlsysim.traffic.simulate`.

    `burstiness` is not enough to describe requests that arrive in long trains with pauses between
    them, as in many traces: two traces with the same value can have very different waits. Beyond
    the bursts and lengths that were simulated, `outside` of the result names the difference, and
    times have no band. Simulate such loads.

    The capacity is the throughput of `ServingSolver` with a client for each slot of the engine, and
    never more. Both charge each pass with prompts its fixed time and the memory traffic that it
    does not share with a decode step. A simulated backlog of requests of different lengths is
    served at the same rate within 10% for prompts of 500 tokens and answers of 100, or more, and
    within 14% for mixtures of experts with prompts of 200 tokens. Requests of equal length
    that all begin at once also end together, so that more prompts share a pass, and a simulated
    backlog of them is served faster.
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
        cached_share: Annotated[float, Portion()] = 0,
        loaded_share: Annotated[float, Portion()] = 0,
        host_link: Annotated[NetworkFabric | None, Noun(hint="Systems.Links.PCIe5")] = None,
        lora_rank: Annotated[int | None, Whole()] = None,
        adapters: Annotated[int, Whole()] = 1,
        resident_adapters: Annotated[int | None, Whole()] = None,
        turns: Annotated[int, Stage()] = 1,
        turn_tokens: Annotated[float | None, Amount(unit="token", plain=True)] = None,
        think_time: Annotated[Quantity | None, Amount(unit="s")] = None,
        host_memory: Annotated[Quantity | None, Amount(unit="GB")] = None,
        batch_limit: Annotated[int, Whole()] = 256,
        block_size: Annotated[int, Whole(unit="token")] = 1,
        reserved_output: Annotated[float | None, Portion()] = None,
        precision: Annotated[str, PrecisionName()] = "fp16",
        weight_precision: Annotated[str | None, PrecisionName(files=True)] = None,
        kv_precision: Annotated[str | None, PrecisionName()] = None,
        dispatch_precision: Annotated[str | None, PrecisionName()] = None,
        tp_size: Annotated[int, Whole()] = 1,
        pp_size: Annotated[int, Whole()] = 1,
        attention_dp: Annotated[int, Whole()] = 1,
        ep_size: Annotated[int, Whole()] = 1,
        dcp_size: Annotated[int, Whole()] = 1,
        redundant_experts: Annotated[int, Whole(minimum=0)] = 0,
        expert_imbalance: Annotated[float, Factor()] = 1,
        overlap_batches: Annotated[int, Whole(minimum=0, maximum=2)] = 0,
        token_budget: Annotated[int | None, Whole(unit="token")] = None,
        draft_tokens: Annotated[int, Whole(minimum=0, unit="token")] = 0,
        acceptance_length: Annotated[float | None, Factor()] = None,
        role: Annotated[str, Choice(options=ROLES)] = "both",
        calibration: Annotated[
            ServingCalibration | None, Noun(hint="ServingCalibrations.Hopper_vLLM")
        ] = None,
        power_calibration: Annotated[
            PowerCalibration | None, Noun(hint="PowerCalibrations.Hopper")
        ] = None,
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
            Standard deviation of the lengths of prompts, divided by their mean.
        output_variation
            Standard deviation of the lengths of answers, divided by their mean.
        cached_share
            Share of each prompt that is already in the prefix cache. If instead a share q of the
            prompts is not cached at all and the others are, give 1 - q, and the square root of
            (1 - q) / q as `input_variation`.
        loaded_share
            Share of each prompt that is loaded from the host's memory or a disk.
        host_link
            Link over which each device loads it; `None` takes the device's bandwidth to its host.
            Loading takes time on the link, but no device time and no energy.
        lora_rank
            Rank of low-rank adapters (LoRA), as in `ServingSolver`; `None` means none.
        adapters
            Adapters to choose from, each with the same probability.
        resident_adapters
            Adapters that the devices set memory aside for, which also limits how many different
            ones run together; `None` keeps all. Others are loaded over `host_link`.
        turns
            Requests per session. Each prompt repeats everything before it and adds new tokens;
            `seq_len` is the mean over all turns. The cached and loaded shares follow from memory.
            A prefill pool caches prompts but no answers, which it reads again with the next turn.
        turn_tokens
            Mean new tokens per prompt after the first, in addition to the previous answer.
        think_time
            Mean time from an answer to the session's next request, exponentially distributed. For a
            prefill pool, it starts at the first token, so it includes the time in the decode pool.
        host_memory
            Host memory per device for prefixes that the device has evicted; `None` means none.
        batch_limit
            Most sequences that the engine runs at once, such as vLLM's `max_num_seqs`. Memory may
            allow fewer.
        block_size
            Tokens per block of the paged KV cache, such as 16.
        reserved_output
            Share of the output for which memory is reserved when a request is admitted, as in
            `ServingSolver`. With less than 1, a full cache evicts a token for each new one, and
            recomputing them lengthens decode steps. `None` takes the calibration's share, whose
            fitted times include recomputed tokens.
        precision
            Number format of the arithmetic and the activations.
        weight_precision
            Format in which weights are stored; `None` takes `precision`.
        kv_precision
            Format in which keys and values are stored; `None` takes `precision`.
        dispatch_precision
            Format in which tokens are sent to experts; `None` takes 8 bits where `precision` has at
            most 8.
        tp_size
            Devices that share each layer of a rank.
        pp_size
            Stages of the pipeline.
        attention_dp
            Ranks that attend to different requests. They share the experts of a layer.
        ep_size
            Groups into which the devices of a stage divide the experts.
        dcp_size
            Ranks that divide the tokens of the same keys and values in decode, as in
            `ServingSolver`.
        redundant_experts
            Copies of experts of each layer that balance the load.
        expert_imbalance
            Tokens of the busiest device's experts over the mean, with these copies in place.
        overlap_batches
            What hides the exchange with experts, as in `ServingSolver`: 2 halves of a batch take
            turns, 1 batch hides part of its own, and 0 hides nothing.
        token_budget
            Most prompt tokens in a pass of one rank; `None` takes the engine's default.
        draft_tokens
            Tokens that a decode step drafts and verifies.
        acceptance_length
            Mean tokens that such a step generates, including its own one.
        role
            ``"both"``; or, for separate pools, ``"prefill"`` for an engine that generates the
            first token and sends keys and values on, and ``"decode"`` for one that receives them.
            The arguments of the traffic still describe the whole service.
        calibration
            Constants for the operators; `None` takes those fitted to the device, which are
            TensorRT-LLM's on recent NVIDIA GPUs.
        power_calibration
            Constants for power; `None` takes those fitted to the device's generation.

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
        44 ms, 72 ms
        >>> OpenLoopSolver.solve(
        ...     model=Models.Llama3_8B, hardware=Hardware.H100, arrival_rate=100
        ... ).reasons[0]
        'arrivals exceed capacity by 711%...'

        References
        ----------
        Whitt (2004), A Diffusion Approximation for the G/GI/n/m Queue,
        https://doi.org/10.1287/opre.1040.0136
        """
        return cls._answer(locals())

    @classmethod
    def check(cls, inputs: OpenLoopInputs) -> None:
        """Reject formats in which the device cannot compute, and models that do not generate."""
        ServingSolver.check(inputs)

    @classmethod
    def admit(cls, given: Mapping[str, Any]) -> OpenLoopInputs:
        """Check every argument, and that the arguments are consistent."""
        inputs = super().admit(given).but(**_of_serving(cls.parameters))
        constants = inputs.calibration.in_format(inputs.precision.name).serving(inputs.model.name)
        return inputs.but(calibration=constants)

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


def _of_serving(own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults of arguments that only `ServingSolver` has, such as `arrivals`.

    The model of passes needs them. Defaults of `None` are resolved by the inputs.
    """
    found = {}
    for name, item in signature(ServingSolver.solve).parameters.items():
        kind = ServingSolver.parameters[name]
        if name in own or item.default in (item.empty, None):
            continue
        value = kind.admit(name, item.default)
        found[name] = float(value) if isinstance(kind, Number) else value
    return found


def overload(utilization: float) -> str:
    """Return by how much arrivals exceed a capacity, in words."""
    if utilization == 1:
        return "arrivals equal capacity"
    return f"arrivals exceed capacity by {format_number(100 * float(utilization - 1), 2)}%"


def _reasons(values: Mapping[str, Any], inputs: OpenLoopInputs) -> list[str]:
    found = []
    if values["max_batch_size"] < 1:
        found.append(
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
        found.append(
            f"{overload(values['utilization'])}: the engine serves "
            f"{capacity}, with at most {values['places']} sequences at once{adapters}; share the "
            f"requests among at least {int(values['utilization']) + 1} engines"
        )
    return found
