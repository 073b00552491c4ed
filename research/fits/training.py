"""Fit the constants of training steps: ``python -m research.fits.training``.

Reads the measured runs in ``measurements`` that have a step time. Only rows marked ``calibrate``
are fitted; rows marked ``check`` are held out, and their errors are reported. The constants of all
machines and all frameworks are fitted together. Each constant is pulled toward the others of its
kind, more strongly if these are similar: the result is the most probable point of a hierarchical
model. The fit evaluates the solver's own model on arrays of all runs.

``--families`` leaves out one family of runs at a time, fits the constants to the others, and
predicts the family that was left out. The spread of these errors is the band of systems that have
not been measured.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.stats import t

from mlsysim.core.fields import priors
from mlsysim.core.forms import replaced
from mlsysim.core.types import Calibration, Machine, Software
from mlsysim.fitting.constants import SPREAD
from mlsysim.registry.calibration.training import Frameworks
from mlsysim.registry.catalogs import Machines
from mlsysim.registry.tables import read_toml
from mlsysim.solvers import DistributedSolver
from mlsysim.solvers.training.inputs import TrainingInputs
from mlsysim.solvers.training.operators import operator_step
from mlsysim.solvers.training.work import training_work
from research import MEASUREMENTS
from research.families import FAMILIES, family_of
from research.fits.files import hierarchical, write_rows
from research.fits.stacks import MeasuredRuns, Stack
from research.readers import memory, training
from research.rows import Row, read_rows, usable, write_table

Floats = NDArray[np.float64]
FOLDS = 5
WEIGHT = 0.2
"""Families with more runs count more, but less than by their number: runs are not independent."""
TOLD = 0.85
"""What is left of a constant's spread where runs are said to tell it."""
DATA = MEASUREMENTS
SCALES = {
    "collective_overhead": 1e-6,
    "layer_launch": 1e-3,
    "expert_launch": 1e-3,
    "step_overhead": 1e-3,
}
"""SI units of the registry's, for constants that are times."""
SWITCHED = {"layer_launch", "expert_launch", "exchange_overlap", "tensor_overlap"}
"""Constants that a recipe can switch off: its runs have zero of them."""
FORMATS = {"": 16, "_fp8": 8, "_fp4": 4}
"""Bits of the formats, by the ending of the products' constants."""
LIMITED = ("H100_HBM2e", "B200_Limited")
"""Machines under a limit of power: how far it lowers their clocks is not published, so what their
products reach of the datasheet may lie far from what others do."""
LIMITED_SPREAD = 0.3
TABLES: dict[str, Any] = {"training": training, "memory": memory}
PRIORS = {
    part: {
        name: (prior.expected, prior.spread, prior.low, prior.high)
        for name, prior in priors(kind).items()
        if prior.spread is not None
    }
    for part, kind in (("machine", Machine), ("software", Software))
}
"""Expected value, spread, and physical limits of each constant that is fitted."""
Key = tuple[str, str]
"""A machine or a framework, by its key in the registry, and one of its constants."""


@dataclass(frozen=True)
class Runs(MeasuredRuns[TrainingInputs]):
    """Measured runs as arrays of the model's inputs."""

    bits: Floats
    time: Floats
    group: NDArray[np.object_]
    machine: NDArray[np.object_]
    framework: NDArray[np.object_]
    name: NDArray[np.object_]
    split: NDArray[np.object_]
    ideal: Floats
    """Step time at full utilization of the peak rate."""

    def predict(self, constants: dict[Key, float]) -> Floats:
        """Evaluate the solver's model with other constants than the registry's."""
        owners = {"machine": self.machine, "software": self.framework}

        def change(i: TrainingInputs, places: NDArray[np.intp]) -> TrainingInputs:
            return _with(i, constants, {k: v[places] for k, v in owners.items()}, self.bits[places])

        return self.inputs.run(operator_step, change)["step_latency_total"]


def _with(
    i: TrainingInputs, constants: dict[Key, float], owners: dict[str, Any], bits: Floats
) -> TrainingInputs:
    """Return inputs with other constants, each for the runs of its owner."""
    made: dict[str, dict[str, Floats]] = {"machine": {}, "software": {}}
    own: dict[str, Any] = {}
    for (owner, field), value in constants.items():
        part = "machine" if owner in Machines.names() and field in PRIORS["machine"] else "software"
        mask = owners[part] == owner
        if not mask.any():
            continue
        held = getattr(i.calibration, part)
        before = made[part].get(field, np.broadcast_to(getattr(held, field), mask.shape))
        # What a run's recipe switches off stays off.
        off = (np.broadcast_to(getattr(held, field), mask.shape) == 0) & (field in SWITCHED)
        made[part][field] = np.where(mask & ~off, value * SCALES.get(field, 1.0), before)
    calibration = replaced(
        i.calibration,
        **{part: replaced(getattr(i.calibration, part), **made[part]) for part in made},
    )
    machine, speed = made["machine"], made["software"].get("gemm_speed", 1.0)
    rates = [machine.get(f"gemm_efficiency{ending}") for ending in ("", "_fp8", "_fp4")]
    if any(rate is not None for rate in rates):
        now = np.broadcast_to(i.gemm_efficiency, bits.shape)
        wide, eight, four = (now if rate is None else speed * rate for rate in rates)
        own["wide_gemm_efficiency"] = wide
        own["gemm_efficiency"] = np.where(bits == 8, eight, np.where(bits == 4, four, wide))
    for field in ("hidden_bytes", "ffn_bytes", "score_bytes", "routing_bytes"):
        if field in made["software"]:
            own[field] = made["software"][field]
    if "cast_bytes" in made["software"]:
        own["cast_bytes"] = np.where(bits < 16, made["software"]["cast_bytes"], 0.0)
    return i.but(calibration=calibration, **own)


def load(*splits: str) -> Runs:
    """Read all runs of some splits whose machine and framework are known."""
    found: list[tuple[Row, tuple[TrainingInputs, float]]] = []
    machines = {id(row): key for key, row in Machines.items()}
    frameworks = {str(getattr(row, "name", "")): key for key, row in Frameworks.items()}
    for table, reader in TABLES.items():

        def run(row: Row, reader: Any = reader) -> tuple[TrainingInputs, float]:
            return DistributedSolver.admit(reader.arguments(row)), reader.measured(row)

        rows = [row for row in read_rows(DATA / f"{table}.csv") if row.text("split") in splits]
        found += usable((row for row in rows if family_of(row.group) is not None), run)
    rows, runs = [row for row, _ in found], [inputs for _, (inputs, _) in found]

    def words(values: Any) -> NDArray[np.object_]:
        made = np.empty(len(found), dtype=object)
        made[:] = list(values)
        return made

    calibrations: list[Calibration] = [i.calibration for i in runs]
    return Runs(
        Stack.of(runs),
        np.array([i.precision.bits for i in runs], dtype=float),
        np.array([time for _, (_, time) in found]),
        words(row.group for row in rows),
        words(machines[id(c.machine)] for c in calibrations),
        words(frameworks[c.software.name] for c in calibrations),
        words(row.name for row in rows),
        words(row.text("split") for row in rows),
        np.array([_ideal(i) for i in runs]),
    )


def _ideal(i: TrainingInputs) -> float:
    plain = i.plain()
    return float(training_work(plain).flops.model / (plain.devices * plain.peak_rate))


def free(runs: Runs) -> dict[Key, tuple[float, float, float, float]]:
    """Return the constants of the runs' machines and frameworks: prior, spread, least and most."""
    found = {}
    for part, owners in (("machine", runs.machine), ("software", runs.framework)):
        for owner in sorted(set(owners)):
            bits = runs.bits[owners == owner]
            for field, prior in PRIORS[part].items():
                ending = field.removeprefix("gemm_efficiency")
                if ending not in FORMATS or (bits == FORMATS[ending]).any():
                    found[owner, field] = prior
                    if ending in FORMATS and owner in LIMITED:
                        expected, _, least, most = prior
                        found[owner, field] = (expected, LIMITED_SPREAD, least, most)
    return found


class Posterior:
    """How probable constants are, given runs: their priors, and the errors that are left.

    Errors are logarithms of ratios; beyond the spread they count linearly, since a few runs of any
    set have errors that no model includes. Families count by the root of their runs, which are
    not independent. A constant is counted in spreads of its prior.
    """

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        told = free(runs)
        self.names = list(told)
        priors, widths, low, high = (
            np.array(column) for column in zip(*told.values(), strict=True)
        )
        self.start, self.width = np.log(priors), widths
        self.edges = [(np.log(edge) - self.start) / widths for edge in (low, high)]
        counts = Counter(runs.group)
        self.weight = np.array([counts[name] ** -WEIGHT for name in runs.group])

    def constants(self, x: Floats) -> dict[Key, float]:
        """Return constants in the units of the registry."""
        return dict(zip(self.names, np.exp(self.start + self.width * x).tolist(), strict=True))

    def _errors(self, x: Floats) -> Floats:
        errors = np.log(self.runs.predict(self.constants(x)) / self.runs.time) / SPREAD
        soft: Floats = np.sign(errors) * np.sqrt(2 * (np.sqrt(1 + errors**2) - 1))
        return self.weight * soft

    def residuals(self, x: Floats) -> Floats:
        """Return what is to be small: errors of runs, and distances from the priors."""
        return np.concatenate([self._errors(x), x])

    def slopes(self, x: Floats) -> Floats:
        """Return the residuals' derivatives.

        Machines have no run in common, nor have frameworks: one step in a constant of all of them
        tells the slopes for each.
        """
        step, here = 1e-4, self._errors(x)
        slopes = np.zeros((len(here), len(x)))
        for part, owners in (("machine", self.runs.machine), ("software", self.runs.framework)):
            for field in PRIORS[part]:
                columns = [k for k, (_, name) in enumerate(self.names) if name == field]
                moved = x.copy()
                moved[columns] += step
                slope = (self._errors(moved) - here) / step
                for k in columns:
                    mine = owners == self.names[k][0]
                    slopes[mine, k] = slope[mine]
        return np.concatenate([slopes, np.eye(len(x))])

    def solve(self, near: dict[Key, float] | None = None) -> Floats:
        """Return the most probable constants, in spreads from their priors.

        `near` are those of almost the same runs, from where it is not far.
        """
        known = near or {}
        start = [np.log(known[name]) if name in known else np.nan for name in self.names]
        guess = np.nan_to_num((np.array(start) - self.start) / self.width)
        answer = least_squares(
            self.residuals,
            np.clip(guess, self.edges[0] + 1e-9, self.edges[1] - 1e-9),
            self.slopes,
            bounds=self.edges,
            max_nfev=12 if near else 40,
            ftol=1e-4,
        )
        best: Floats = answer.x
        return best

    def told(self, x: Floats) -> set[Key]:
        """Return the constants that the runs tell: known better than half of their spread alone."""
        slopes = self.slopes(x)
        left = np.sqrt(np.diag(np.linalg.inv(slopes.T @ slopes)))
        return {name for name, share in zip(self.names, left, strict=True) if share < TOLD}


def solve(runs: Runs, near: dict[Key, float] | None = None) -> dict[Key, float]:
    """Return the most probable constants."""
    posterior = Posterior(runs)
    return posterior.constants(posterior.solve(near))


def errors(runs: Runs, constants: dict[Key, float]) -> dict[str, tuple[int, float, float]]:
    """Return runs, mean absolute error and bias in percent, per group."""
    relative = 100 * (runs.predict(constants) / runs.time - 1)
    return {
        name: (
            int((runs.group == name).sum()),
            float(np.abs(relative[runs.group == name]).mean()),
            float(relative[runs.group == name].mean()),
        )
        for name in sorted(set(runs.group))
    }


def show(title: str, found: dict[str, tuple[int, float, float]]) -> None:
    """Print errors by group."""
    print(title)
    for name, (count, mape, bias) in found.items():
        print(f"  {name:26s} n={count:4d} MAPE {mape:5.1f} bias {bias:+6.1f}")


@dataclass(frozen=True)
class Unseen:
    """A family, predicted from the others."""

    runs: Runs
    predicted: Floats
    constant: Floats
    """By one utilization per machine and number format, from the other families as well."""

    @property
    def ratio(self) -> Floats:
        """Measured over predicted."""
        return self.runs.time / self.predicted


def unseen(runs: Runs, every: Runs) -> Iterator[tuple[str, Unseen]]:
    """Yield each family of `every` run as constants predict it that were fitted without it."""
    near = solve(runs)
    for family, groups in FAMILIES.items():
        out = np.isin(runs.group.astype(str), groups)
        if not out.any():
            continue
        others, held = runs.take(~out), every.take(np.isin(every.group.astype(str), groups))
        constants = solve(others, near)
        # A framework that no other family ran is known by the population of frameworks alone.
        missing = {key: prior for key, (prior, *_) in free(held).items() if key not in constants}
        yield (
            family,
            Unseen(held, held.predict(constants | missing), constant_utilization(others, held)),
        )


def without_runs(machine: str) -> dict[tuple[str, str], float]:
    """Return the constants of a machine as if it had no runs: those of the slowest other one."""
    others = [
        row
        for key, row in Machines.items()
        if isinstance(row, Machine) and key not in (machine, "Uncalibrated")
    ]
    measured = [row for row in others if "gemm_efficiency" not in row.estimated]
    slowest = min(measured, key=lambda row: row.gemm_efficiency)
    constants = {name: prior.usual for name, prior in priors(Machine).items()} | {
        name: getattr(slowest, name) for name in ("gemm_efficiency", "attention_efficiency")
    }
    for name in ("gemm_efficiency_fp8", "gemm_efficiency_fp4"):
        constants[name] = min(getattr(r, name) for r in others if name not in r.estimated)
    del constants["state_efficiency"]  # one value for all machines
    return {(machine, name): value for name, value in constants.items()}


def machine_ratios(runs: Runs) -> dict[tuple[str, str], Floats]:
    """Return measured over predicted times of each machine's families, without its constants."""
    ratios = {}
    for machine in dict.fromkeys(runs.machine):
        for family, groups in FAMILIES.items():
            held = runs.take(np.isin(runs.group.astype(str), groups) & (runs.machine == machine))
            if held.time.size:
                predicted = held.predict(without_runs(machine))
                ratios[machine, family] = held.time / predicted
    return ratios


def constant_utilization(others: Runs, held: Runs) -> Floats:
    """Predict runs by the median utilization of others on the same machine in the same format.

    Where there are none, by that of all others.
    """
    found = others.ideal / others.time
    predicted = np.empty_like(held.time)
    for row, (machine, bits) in enumerate(zip(held.machine, held.bits, strict=True)):
        alike = (others.machine == machine) & (others.bits == bits)
        predicted[row] = held.ideal[row] / np.median(found[alike] if alike.any() else found)
    return predicted


def write(path: Path, found: dict[str, Unseen]) -> None:
    """Write what each family's runs took, and what was predicted without them."""
    rows = []
    for family, one in found.items():
        times = {
            "measured_s": one.runs.time,
            "predicted_s": one.predicted,
            "constant_mfu_s": one.constant,
        }
        for place, (name, split) in enumerate(zip(one.runs.name, one.runs.split, strict=True)):
            row = {"family": family, "id": name, "split": split}
            rows.append(row | {title: f"{time[place]:.4g}" for title, time in times.items()})
    write_table(path, rows)


def within(runs: Runs) -> dict[tuple[str, str], Floats]:
    """Return measured over predicted per machine and framework, by fits that did not see a run.

    Runs of one configuration, repeated over releases, stay in one fold: they are not independent.
    """
    plan, near = runs.inputs.plans(), solve(runs)
    ratio = np.empty_like(runs.time)
    for number in range(FOLDS):
        out = plan % FOLDS == number
        held = runs.take(out)
        constants = solve(runs.take(~out), near)
        missing = {key: prior for key, (prior, *_) in free(held).items() if key not in constants}
        ratio[out] = held.time / held.predict(constants | missing)
    pairs = np.array([f"{a} {b}" for a, b in zip(runs.machine, runs.framework, strict=True)])
    return {
        (str(pair).split()[0], str(pair).split()[1]): ratio[pairs == pair]
        for pair in sorted(set(pairs))
    }


def edges_of(ratio: Floats) -> tuple[float, float]:
    """Return the edges that a new run passes once in ten times each.

    Below the k-th of n values lie, on average over samples, k / (n + 1) of all: so the edges lie
    at k = (n + 1) / 10 from either end, further out than percentiles of the sample.
    """
    level = max(0.0, ((len(ratio) + 1) / 10 - 0.5) / len(ratio))
    low, high = np.quantile(ratio, [level, 1 - level], method="hazen")
    return float(low), float(high)


def band(ratios: list[Floats]) -> tuple[float, float]:
    """Return the edges of a band that holds four of five runs of an unseen family.

    A family effect and a run effect, both normal in logarithms: the spread between families and
    that within them, and a quantile of Student's distribution for as few families. Medians, since
    a few runs of any set have errors that no model includes.
    """
    logs = [np.log(ratio) for ratio in ratios]
    means = np.array([np.median(log) for log in logs])
    inside = np.median([np.abs(log - np.median(log)).mean() for log in logs if len(log) > 2])
    between = means.std(ddof=1)
    reach = t.ppf(0.9, len(means) - 1) * np.hypot(between, inside * np.sqrt(np.pi / 2))
    middle = np.median(means)
    return float(np.exp(middle - reach)), float(np.exp(middle + reach))


def main() -> None:
    """Fit all constants and write them; or predict each family from the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", action="store_true", help="leave out one family at a time")
    parser.add_argument("--bands", action="store_true", help="cross-validate within families")
    parser.add_argument("--machines", action="store_true", help="leave out one machine at a time")
    options = parser.parse_args()
    runs = load("calibrate")
    if options.families:
        found = {}
        for family, one in unseen(runs, load("calibrate", "check")):
            found[family] = one
            misses = [100 * (time / one.runs.time - 1) for time in (one.predicted, one.constant)]
            print(
                f"without {family:26s} n={len(one.ratio):4d} MAPE {np.abs(misses[0]).mean():5.1f} "
                f"bias {misses[0].mean():+6.1f}, constant MFU {np.abs(misses[1]).mean():5.1f}",
                flush=True,
            )
        own = [one.ratio[one.runs.split == "calibrate"] for one in found.values()]
        print("band of unseen systems", [round(edge, 3) for edge in band(own)])
        write(DATA / "families.csv", found)
        return
    if options.machines:
        ratios = machine_ratios(runs)
        for (machine, family), ratio in ratios.items():
            print(f"{machine:12s} {family:26s} n={len(ratio):4d} median {np.median(ratio):.3f}")
        print(
            "band of a device without runs", [round(edge, 3) for edge in band([*ratios.values()])]
        )
        return
    if options.bands:
        for (machine, framework), ratio in within(runs).items():
            edges = [round(edge, 3) for edge in edges_of(ratio)]
            print(f"{machine} {framework} n={len(ratio)} {edges}", flush=True)
        return
    posterior = Posterior(runs)
    best = posterior.solve()
    known = posterior.told(best)
    constants = {key: float(f"{value:.3g}") for key, value in posterior.constants(best).items()}
    for owner in dict.fromkeys(owner for owner, _ in constants):
        mine = {field: value for (name, field), value in constants.items() if name == owner}
        file = "machines.toml" if owner in Machines.names() else "frameworks.toml"
        determined = {field for name, field in known if name == owner}
        sections = hierarchical(read_toml(file)["rows"][owner], mine, determined)
        write_rows(file, {owner: sections})
        print(owner, json.dumps(sections))
    show("fitted", errors(runs, constants))
    show("check", errors(load("check"), constants))


if __name__ == "__main__":
    main()
