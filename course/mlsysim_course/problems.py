"""Problem sets whose numbers differ from student to student, computed by the package.

`mlsysim assign STUDENT` writes a student's notebook, and `mlsysim grade FOLDER` grades the files
that students hand in.
"""

from __future__ import annotations

import dataclasses
import hashlib
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.units import Q_
from mlsysim.registry import Hardware, Infra, Models, Systems
from mlsysim.solvers import ReliabilitySolver, ServingSolver, SustainabilitySolver
from mlsysim_course.answers import AmountAsked, Exercise, Parts

POINTS = 2
"""Points for each problem."""


@dataclass(frozen=True)
class Problem:
    """A task with open numbers.

    Attributes
    ----------
    name : str
        The name that answers use.
    points : int
        Points for all of its parts, in equal shares.
    choices : Mapping
        The values from which each open number is drawn.
    text : str
        The task, with the open numbers in braces.
    parts : Callable
        Takes the drawn values and returns the parts of the task by name.
    """

    name: str
    points: int
    choices: Mapping[str, Sequence[Any]]
    text: str
    parts: Callable[..., Parts]


def _problem(text: str, **choices: Sequence[Any]) -> Callable[[Callable[..., Parts]], Problem]:
    """Make a problem of a function from its open numbers to its parts, named after it."""

    def declared(parts: Callable[..., Parts]) -> Problem:
        return Problem(parts.__name__.strip("_"), POINTS, choices, text, parts)

    return declared


@dataclass(frozen=True, kw_only=True)
class Task(Exercise):
    """A problem with one student's numbers."""

    points: int
    text: str


def draw(problem: Problem, student: str) -> dict[str, Any]:
    """Return a student's values for a problem: always the same for the same name."""
    if not isinstance(student, str) or not student.strip():
        raise ConfigError(f"student = {shown(student)} must be a name", argument="student")
    # Some file systems and archives write accents as separate characters.
    name = unicodedata.normalize("NFC", student.strip())
    found = {}
    for key, options in problem.choices.items():
        digest = hashlib.sha256(f"{problem.name}/{key}/{name}".encode()).digest()
        found[key] = options[int.from_bytes(digest[:8], "big") % len(options)]
    return found


def _task(problem: Problem, student: str) -> Task:
    values = draw(problem, student)
    words = {key: getattr(value, "name", value) for key, value in values.items()}
    return Task(
        name=problem.name,
        answer=partial(problem.parts, **values),
        points=problem.points,
        text=problem.text.format(**words),
    )


def problem_set(student: str) -> dict[str, Task]:
    """Return a student's tasks by their names.

    Parameters
    ----------
    student
        Any text that names the student, such as a number. It determines the values.
    """
    return {name: _task(problem, student) for name, problem in PROBLEMS.items()}


def answer(name: str, value: Any = None, /, **parts: Any) -> str:
    """Record an answer in a notebook that will be handed in. This call does not grade it.

    The grader reads the call without running it, so write literal answers: numbers, or text with
    a unit such as ``"2.7 GB"``.

    Parameters
    ----------
    name
        Name of the problem.
    value
        The answer.
    **parts
        Answers by name, if the problem has several parts.

    Raises
    ------
    UnknownEntryError
        If there is no such problem.
    ConfigError
        If an answer is of the wrong kind.
    """
    if not isinstance(name, str) or name not in PROBLEMS:
        raise UnknownEntryError.build(name, "problem", PROBLEMS)
    task = _task(PROBLEMS[name], "student")  # the kind of an answer is the same for all
    given = task.given(value, {part: each for part, each in parts.items() if each is not None})
    for part, each in given.items():
        task.parts[part].admit(each)
    return f"{name}: {', '.join(given) or 'nothing'} recorded"


@_problem(
    "How large is the KV cache of one sequence of {tokens:,} tokens in {model}, in {precision}?",
    model=(Models.Llama3_8B, Models.Llama3_70B, Models.Qwen3_32B, Models.Qwen3_14B),
    tokens=(3000, 6000, 12_000, 20_000, 40_000),
    precision=("bf16", "fp8"),
)
def _cache(model: Any, tokens: int, precision: str) -> Parts:
    def size(heads: int) -> Any:
        return heads / model.kv_heads * model.kv_cache_bytes(precision, tokens)

    yield AmountAsked(
        "cache",
        asks="the cache of one sequence",
        unit="GB",
        truth=size(model.kv_heads),
        hint="Count keys and values for every layer, every key-value head and every token.",
        mistakes={size(model.heads): "Count the key-value heads, not the query heads."},
    )


@_problem(
    "{model} is trained with Adam in mixed precision on {gpus} GPUs in data parallelism. "
    "How much memory do weights, gradients and optimizer state take on each, without ZeRO "
    "and with ZeRO stage 1?",
    model=(
        Models.Llama3_2_3B,
        Models.Qwen3_14B,
        Models.Llama3_8B,
        Models.Qwen3_32B,
    ),
    gpus=(4, 8, 16, 32, 64),
)
def _states(model: Any, gpus: int) -> Parts:
    def size(shared: float, whole: float) -> Any:
        return model.parameters * Q_(whole + shared / gpus, "byte")

    yield AmountAsked(
        "plain",
        asks="weights, gradients and optimizer state on each GPU without ZeRO",
        unit="GB",
        truth=size(0, 16),
        hint="Add up the bytes for each parameter in mixed precision with Adam.",
        mistakes={size(0, 2): "Those are the weights alone."},
    )
    yield AmountAsked(
        "sharded",
        asks="the same with ZeRO stage 1",
        unit="GB",
        truth=size(12, 4),
        hint="Stage 1 shards only the optimizer state.",
        mistakes={size(16, 0): "That is the memory with stage 3."},
    )


@_problem(
    "{model} in {precision} on one {hardware}: what is the time between tokens for one "
    "user with a prompt of 1,024 tokens and 128 tokens of answer? Use the "
    "textbook's roofline (efficiency=0.5).",
    model=(Models.Llama3_8B, Models.Qwen3_14B, Models.Mistral_7B),
    hardware=(
        Hardware.H100,
        Hardware.H200,
        Hardware.MI300X,
        Hardware.L40S,
        Hardware.B200,
    ),
    precision=("bf16", "fp8"),
)
def _decode(model: Any, hardware: Any, precision: str) -> Parts:
    result = ServingSolver.solve(
        model=model,
        hardware=hardware,
        precision=precision,
        seq_len=1024,
        output_len=128,
        efficiency=0.5,
    )
    yield AmountAsked(
        "time",
        asks="the time between tokens for one user",
        unit="ms",
        tolerance=0.04,
        truth=result.itl,
        hint="For one user, divide the bytes of the weights and of the cache by the bandwidth.",
    )


@_problem(
    "{gpus:,} H100 GPUs fail as often as those that trained Llama 3. A checkpoint stops "
    "the job for {pause} seconds. What is the time between failures, and what is the best "
    "time between checkpoints?",
    gpus=(512, 1024, 2048, 4096, 8192, 12_288),
    pause=(5, 10, 20, 30, 45, 60),
)
def _failures(gpus: int, pause: int) -> Parts:
    fleet = dataclasses.replace(Systems.Clusters.Research_256, name="problem", count=gpus // 8)
    result = ReliabilitySolver.solve(fleet=fleet, job_duration_hours=24, checkpoint_time_s=pause)
    yield AmountAsked(
        "between",
        asks="the time between failures of the fleet",
        unit="h",
        truth=result.fleet_mtbf,
        hint="Divide the time between failures of one GPU by the number of GPUs.",
    )
    yield AmountAsked(
        "interval",
        asks="the best time between checkpoints",
        unit="minute",
        truth=result.optimal_checkpoint_interval,
        hint="Use Young's formula.",
    )


@_problem(
    "The 256 H100 GPUs of `Systems.Clusters.Research_256` run for {days} days at design "
    "power in {place}. How much electricity do they and the building use, and how much "
    "carbon does it emit?",
    place=(
        Infra.Colocation_Poland,
        Infra.Hyperscale_US,
        Infra.Hyperscale_Quebec,
        Infra.Nordic_Free_Cooling,
    ),
    days=(7, 14, 21, 30, 45, 60),
)
def _carbon(place: Any, days: int) -> Parts:
    month = SustainabilitySolver.solve(
        fleet=Systems.Clusters.Research_256,
        duration_days=Q_(days, "day"),
        datacenter=place,
    )
    yield AmountAsked(
        "energy",
        asks="the electricity, including the building",
        unit="MWh",
        truth=month.total_energy,
        hint="Multiply the power of the servers by time and PUE.",
        mistakes={month.it_energy: "You left out the building."},
    )
    yield AmountAsked(
        "carbon",
        asks="the carbon of this electricity",
        unit="tonne",
        truth=month.carbon_footprint,
        hint="Multiply the electricity by the grid's intensity.",
        mistakes={
            month.total_carbon: "That includes the carbon of the hardware. The question is "
            "only about electricity.",
        },
    )


PROBLEMS: dict[str, Problem] = {
    one.name: one for one in (_cache, _states, _decode, _failures, _carbon)
}
"""Every problem of the set, by its name."""
