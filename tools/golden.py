"""Golden values: answers of the package, frozen before a change that must not affect answers.

    python -m tools.golden freeze FILE    write questions and the answers of this checkout
    python -m tools.golden compare FILE   ask them again; exit 1 if an answer differs

A file has questions to all solvers (answers, refusals, and the inputs that derivations reach),
sweeps, plans of training and serving, every prediction of `validate`, the readings of every
explorer, the truths and hints of every exercise, and the output of commands. It uses only the
public interface, and the questions are read from the file, so that it stays valid if everything
below is redesigned.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner

import mlsysim
from mlsysim import (
    Hardware,
    Infra,
    MLSysError,
    Models,
    Systems,
    advise,
    capacity,
    contrast,
    diagnose,
    plan_serving,
    sweep,
)
from mlsysim.cli.app import app
from mlsysim.core.units import Q_, is_quantity
from mlsysim.traffic import Traffic
from mlsysim_course.exercises import EXERCISES
from mlsysim_course.explorers import EXPLORERS
from mlsysim_course.labs.catalog import explorer
from research.validate import validate as validate_published
from tools.sweep_questions import ONE, SOLVERS, candidates

ROOT = Path(__file__).resolve().parents[1]
TOLERANCE = 1e-12
EACH = 700
"""Questions to each solver."""
DERIVED = 40
"""Questions to each solver with a derivation."""
SHOWN = 40
"""Rows of a table of plans."""
STATES = 25
"""Settings of each explorer."""

CATALOGS: Mapping[str, Any] = {
    "Models": Models,
    "Hardware": Hardware,
    "Nodes": Systems.Nodes,
    "Clusters": Systems.Clusters,
    "Fabrics": Systems.Fabrics,
    "Links": Systems.Links,
    "Offers": Systems.Offers,
    "Grids": Infra.Grids,
    "Infra": Infra,
    "Calibrations": mlsysim.Calibrations,
    "ServingCalibrations": mlsysim.ServingCalibrations,
    "NetworkCalibrations": mlsysim.NetworkCalibrations,
    "PowerCalibrations": mlsysim.PowerCalibrations,
}
JOBS: tuple[dict[str, Any], ...] = (
    {"model": "Models.Llama3_70B", "fleet": "Clusters.Research_256", "batch_size": 256},
    {"model": "Models.DeepSeek_V3", "fleet": "Clusters.DeepSeek_2048", "batch_size": 15360},
    {"model": "Models.Mixtral_8x7B", "fleet": "Clusters.Research_256", "batch_size": 512},
    {
        "model": "Models.GPT3",
        "fleet": "Clusters.Frontier_8K",
        "batch_size": 2048,
        "efficiency": 0.4,
    },
    {
        "model": "Models.Llama3_8B",
        "fleet": "Clusters.Research_256",
        "batch_size": 512,
        "goal": "cost",
    },
)
SERVICES: tuple[dict[str, Any], ...] = (
    {"model": "Models.Llama3_70B", "devices": ["Nodes.DGX_H100"], "precision": "fp8"},
    {"model": "Models.DeepSeek_V3", "devices": ["Nodes.HGX_H200", "Nodes.DGX_B200"]},
    {"model": "Models.Qwen3_30B_A3B", "devices": ["Hardware.H100"], "goal": "cost"},
)
COMMANDS: tuple[str, ...] = (
    "solve inference --model ResNet50 --hardware A100 --json",
    "solve serving --model Llama3_8B --hardware H100 --json",
    "solve training --model Llama3_70B --fleet Research_256 --batch-size 256 --json",
    "explain serving --model Llama3_8B --hardware H100 itl",
    "sweep inference --model ResNet50 --hardware A100,H100 --format csv",
    "support --model GPT2,ResNet50 --device T4",
    "zoo models --json",
    "zoo hardware --json",
)


def encoded(value: Any) -> Any:
    """Return a value as text that `decoded` reads, or None if it has no name."""
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if is_quantity(value):
        return {"quantity": [float(value.magnitude), str(value.units)]}
    for name, catalog in CATALOGS.items():
        key = next((key for key in catalog.names() if catalog[key] is value), None)
        if key is not None:
            return f"{name}.{key}"
    return None


def decoded(value: Any) -> Any:
    """Return the value that a text of a question names."""
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if isinstance(value, dict):
        return Q_(*value["quantity"])
    catalog, _, key = value.partition(".") if isinstance(value, str) else ("", "", "")
    return CATALOGS[catalog][key] if catalog in CATALOGS and key else value


def questions() -> Iterator[dict[str, Any]]:
    """Yield questions of every kind; drawn at random, but always the same ones."""
    for solver in SOLVERS:
        chance = random.Random(solver.__name__)
        needed = {name: encoded(value) for name, value in ONE[solver].items()}
        needed = {name: value for name, value in needed.items() if value is not None}
        for number in range(EACH):
            given = dict(needed)
            for name in chance.sample(list(solver.parameters), chance.choice((1, 2, 3, 4, 6))):
                value = encoded(chance.choice(candidates(name, solver.parameters[name])))
                if value is not None:
                    given[name] = value
            derived = number < DERIVED
            yield {"kind": "solve", "solver": solver.__name__, "given": given, "derived": derived}
        for name, kind in solver.parameters.items():
            values = [encoded(value) for value in candidates(name, kind)[:6]]
            axis = [value for value in values if value is not None]
            if len(axis) > 1:
                given = needed | {name: axis}
                yield {"kind": "sweep", "solver": solver.__name__, "given": given}
    yield from ({"kind": "advise", "given": job} for job in JOBS)
    yield from ({"kind": "plan_serving", "given": service} for service in SERVICES)
    yield {"kind": "capacity", "given": {"model": "Models.Llama3_70B", "tp_size": 4}}
    yield {"kind": "capacity", "given": {"model": "Models.Llama3_8B", "precision": "fp8"}}
    yield {"kind": "contrast"}
    for path in sorted((ROOT / "research/measurements").glob("*.csv")):
        yield {"kind": "validate", "file": path.name}
    for name, one in EXPLORERS.items():
        chance = random.Random(name)
        for _ in range(STATES):
            yield {"kind": "explorer", "name": name, "state": explorer_state(one, chance)}
    yield from ({"kind": "exercise", "name": name} for name in EXERCISES)
    yield from ({"kind": "command", "line": line} for line in COMMANDS)


def explorer_state(explorer: Any, chance: random.Random) -> dict[str, Any]:
    """Return a setting of an explorer's controls that have a list of values."""
    state = {}
    for control in explorer.declaration()["controls"]:
        values = control.get("options") or control.get("values")
        if values:
            value = chance.choice(values)
            state[control["id"]] = value[0] if isinstance(value, list) else value
    return state


def answer_to(question: Mapping[str, Any]) -> Any:
    """Return the answer to a question as plain data, or the kind and argument of its refusal."""
    try:
        return ANSWERS[question["kind"]](question)
    except MLSysError as fault:
        return ["refused", type(fault).__name__, getattr(fault, "argument", None)]


def given_to(question: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a question."""
    return {name: decoded(value) for name, value in question["given"].items()}


def solved(question: Mapping[str, Any]) -> Any:
    """Solve once, and list the inputs that the derivation reaches."""
    result = getattr(mlsysim, question["solver"]).solve(**given_to(question))
    answer = plain(dict(result))
    if question["derived"]:
        inputs = result.explain().unpruned().inputs
        reached = {f"{item.origin} {plain(item.value)[0]:.12g}" for item in inputs}
        answer["reached"] = sorted(reached)
    return answer


def swept(question: Mapping[str, Any]) -> Any:
    """Return all rows of a sweep."""
    solver = getattr(mlsysim, question["solver"])
    return [plain(row) for row in sweep(solver, **given_to(question), invalid="mark")]


def advised(question: Mapping[str, Any]) -> Any:
    """Return the advice in words, and its best plans."""
    advice = advise(**given_to(question))
    return [str(advice), [plain(advice.plans.row(i)) for i in range(min(SHOWN, len(advice.plans)))]]


TRAFFIC = Traffic(
    arrival_rate=Q_(20, "1/s"), seq_len=2000, output_len=300, input_variation=0, output_variation=0
)
LIMITS = {"ttft_p99": Q_(2, "s"), "tpot_p99": Q_(100, "ms")}


def service_plan(question: Mapping[str, Any]) -> Any:
    """Return the best plan of a service in words, and the first rows of its table."""
    given = given_to(question)
    plan = plan_serving(given.pop("model"), TRAFFIC, LIMITS, given.pop("devices"), **given)
    return [str(plan), plain(dict(plan.best))]


def service_capacity(question: Mapping[str, Any]) -> Any:
    """Return the replicas of a service over a day, in words."""
    given, day = given_to(question), [0.3, 1.0, 0.6]
    model, node = given.pop("model"), Systems.Nodes.DGX_H100
    return str(capacity(model, node, TRAFFIC, LIMITS, day=day, slot=Q_(8, "h"), **given))


def contrasted(_: Mapping[str, Any]) -> Any:
    """Compare two plans, and list the flaws of one."""
    job: dict[str, Any] = {
        "model": Models.Llama3_70B,
        "fleet": Systems.Clusters.Research_256,
        "batch_size": 256,
    }
    one, other = (
        mlsysim.DistributedSolver.solve(**job, tp_size=tp, pp_size=4, microbatch_count=8)
        for tp in (4, 8)
    )
    return [str(contrast(one, other)), [str(flaw) for flaw in diagnose(one)]]


def validated(question: Mapping[str, Any]) -> Any:
    """Return every prediction of a table of measurements, and why rows are skipped."""
    report = validate_published(ROOT / "research/measurements" / question["file"])
    rows = [[r.id, r.quantity, r.predicted, r.low, r.high] for r in report.comparisons]
    return [rows, [list(skip) for skip in report.skipped]]


def explored(question: Mapping[str, Any]) -> Any:
    """Return what an explorer shows, and the inputs of its first derivation."""
    asked, state = explorer(question["name"]), question["state"]
    shown = asked.view(state)
    first = asked.derivation(state, 0) if shown["readings"] else None
    return [shown, first and first["inputs"]]


def exercised(question: Mapping[str, Any]) -> Any:
    """Return the truths of an exercise and its hints for common mistakes."""
    parts = EXERCISES[question["name"]].parts
    return {
        name: [
            part.asks,
            plain(part.truth),
            part.hint,
            [[plain(wrong), hint] for wrong, hint in getattr(part, "mistakes", {}).items()],
        ]
        for name, part in parts.items()
    }


def printed(question: Mapping[str, Any]) -> Any:
    """Return what a command prints."""
    done = CliRunner().invoke(app, question["line"].split())
    return [done.exit_code, done.output]


ANSWERS = {
    "solve": solved,
    "sweep": swept,
    "advise": advised,
    "plan_serving": service_plan,
    "capacity": service_capacity,
    "contrast": contrasted,
    "validate": validated,
    "explorer": explored,
    "exercise": exercised,
    "command": printed,
}


def plain(value: Any) -> Any:
    """Return a value of a result as JSON holds it: SI numbers, texts, lists and mappings."""
    if hasattr(value, "to_base_units"):
        base = value.to_base_units()
        return [float(base.magnitude), str(base.units)]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield where two answers differ by more than the tolerance."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() | new.keys():
            if key not in old or key not in new:
                yield f"{path}/{key}: only {'before' if key in old else 'now'}"
            else:
                yield from differences(old[key], new[key], f"{path}/{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, f"{path}[{index}]")
    elif isinstance(old, float) and isinstance(new, int | float):
        same = old == new or (math.isnan(old) and math.isnan(new))
        if not same and not math.isclose(old, new, rel_tol=TOLERANCE):
            yield f"{path}: {old!r} -> {new!r}"
    elif old != new:
        yield f"{path}: {str(old)[:300]!r} -> {str(new)[:300]!r}"


def main(arguments: list[str]) -> int:
    """Freeze or compare."""
    if len(arguments) != 2 or arguments[0] not in {"freeze", "compare"}:
        print(__doc__)
        return 2
    what, path = arguments[0], Path(arguments[1])
    if what == "freeze":
        path.parent.mkdir(parents=True, exist_ok=True)
        frozen = [[question, answer_to(question)] for question in questions()]
        with gzip.open(path, "wt", encoding="utf-8") as file:
            json.dump(frozen, file)
        print(f"{len(frozen):,} answers in {path}")
        return 0
    with gzip.open(path, "rt", encoding="utf-8") as file:
        frozen = json.load(file)
    changed = 0
    for question, before in frozen:
        now = json.loads(json.dumps(answer_to(question)))
        for difference in list(differences(before, now))[:5]:
            changed += 1
            if changed <= 60:
                print(f"{json.dumps(question)[:200]} {difference}")
    print(f"{changed:,} differences in {len(frozen):,} answers")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
