"""Compare the closed form of arrivals with the simulator: ``python -m research.open_loop_law``.

The systems are random: engines with all kinds of passes and limits, and traffic from evenly spaced
to bursty, with equal or varying lengths. Each system is solved by `queue_at` and simulated by
`simulate`. The table shows the errors of the closed form for each kind of system.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlsysim.core.units import Q_
from mlsysim.solvers.traffic.engine import Engine
from mlsysim.solvers.traffic.queue import queue_at
from mlsysim.traffic import Traffic, simulate
from research import MEASUREMENTS
from research.rows import write_table

TIMES = tuple(
    f"{time}_{what}" for time in ("ttft", "tpot", "e2e") for what in ("mean", "p50", "p90", "p99")
)
REQUESTS = 3_000
WARM_UP = 600
"""Requests that are left out: the server is empty at first."""
TABLE = MEASUREMENTS / "open_loop_law.csv"


@dataclass(frozen=True)
class System:
    """An engine and its traffic."""

    engine: Engine
    output_len: float
    burstiness: float
    input_variation: float
    output_variation: float
    utilization: float

    @classmethod
    def drawn(cls, seed: int) -> System:
        """Make one up. Decode steps grow with the batch: first memory bound, then compute bound."""
        choose = random.Random(seed)
        places = float(choose.choice([8, 32, 128, 256, 512]))
        base = choose.uniform(3e-3, 30e-3)
        each = base * 10 ** choose.uniform(-3, -1.3)
        knee = 10 ** choose.uniform(1, 3)
        prompt = round(10 ** choose.uniform(2, 4.3))
        sizes = tuple(min(2.0**power, places) for power in range(15))
        prefill = base * 10 ** choose.uniform(-0.7, 0.7) * prompt / 1000 + 2e-3
        decodes = tuple(max(base, base * size / knee) + each * size for size in sizes)
        budget = float(choose.choice([2048, 8192]))
        delay = float(choose.choice([0, 0, 1, 2.9]))
        full = max(1.0, budget / prompt)
        shared = base * choose.uniform(0.6, 1)  # those of the registry's models and devices
        engine = Engine(
            empty=base,
            prefill=prefill,
            prompts=(1.0, full),
            reads=(base + prefill, base + full * prefill),
            lengths=(0.0, 1_000.0),
            lone=(base, base + 1_000 * prefill),
            sizes=sizes,
            decodes=decodes,
            savings=(shared,) * len(sizes),
            waits=tuple(
                (1.5 + delay) * (1 - 1 / size) * step
                for size, step in zip(sizes, decodes, strict=True)
            ),
            powers=(1.0,) * len(sizes),
            places=places,
            fits=places,
            seq_len=float(prompt),
            pass_tokens=budget,
            delay_steps=delay,
        )
        return cls(
            engine,
            float(round(10 ** choose.uniform(0.5, 3))),
            choose.choice([0.0, 0.5, 1.0, 1.0, 1.0, 2.0, 4.0]),
            choose.choice([0.0, 0.0, 0.5, 1.0, 2.0]),
            choose.choice([0.0, 0.0, 0.5, 1.0, 2.0]),
            choose.uniform(0.05, 0.9),
        )

    def predicted(self) -> dict[str, Any]:
        """Ask the closed form, at the system's utilization."""
        spread = (self.output_len, self.burstiness, self.input_variation, self.output_variation)
        capacity = queue_at(self.engine, 1e-9, *spread)["request_capacity"]
        rate = self.utilization * capacity
        return {"rate": rate, **queue_at(self.engine, rate, *spread)}

    def played(self, rate: float, seed: int, requests: int = REQUESTS) -> dict[str, float]:
        """Play it through."""
        traffic = Traffic(
            arrival_rate=Q_(rate, "1/s"),
            seq_len=self.engine.seq_len,
            output_len=self.output_len,
            burstiness=self.burstiness,
            input_variation=self.input_variation,
            output_variation=self.output_variation,
        )
        trace = traffic.sample(requests, seed)
        found = simulate(self.engine, trace.arrivals, trace.prompts, trace.answers)
        skip = requests * WARM_UP // REQUESTS
        times = {}
        for name in TIMES:
            time, what = name.split("_")
            times[name] = (
                found.mean(time, skip)
                if what == "mean"
                else found.percentile(time, float(what[1:]), skip)
            )
        return times


@dataclass(frozen=True)
class Case:
    """A system, and by how much the closed form is off."""

    system: System
    requests_in_flight: float
    waiting_probability: float
    prompt_load: float
    """Share of time that reading prompts takes."""
    errors: dict[str, float]
    """Predicted over simulated, less one, by time."""


def case(seed: int, requests: int = REQUESTS) -> Case:
    """Compare one system."""
    system = System.drawn(seed)
    said = system.predicted()
    played = system.played(said["rate"], seed, requests)
    return Case(
        system,
        said["requests_in_flight"],
        said["waiting_probability"],
        said["rate"] * system.engine.prefill,
        {name: said[name] / played[name] - 1 for name in TIMES},
    )


Part = tuple[str, Callable[[Case], bool]]
PARTS: tuple[Part, ...] = (
    ("all", lambda c: True),
    ("evenly spaced", lambda c: c.system.burstiness == 0),
    ("burstiness 0.5", lambda c: c.system.burstiness == 0.5),
    ("Poisson", lambda c: c.system.burstiness == 1),
    ("burstiness 2", lambda c: c.system.burstiness == 2),
    ("burstiness 4", lambda c: c.system.burstiness == 4),
    ("utilization below 0.3", lambda c: c.system.utilization < 0.3),
    ("0.3 to 0.6", lambda c: 0.3 <= c.system.utilization < 0.6),
    ("0.6 to 0.8", lambda c: 0.6 <= c.system.utilization < 0.8),
    ("0.8 to 0.9", lambda c: c.system.utilization >= 0.8),
    ("less than one in flight", lambda c: c.requests_in_flight < 1),
    ("1 to 5", lambda c: 1 <= c.requests_in_flight < 5),
    ("5 to 20", lambda c: 5 <= c.requests_in_flight < 20),
    ("20 or more", lambda c: c.requests_in_flight >= 20),
    ("8 places", lambda c: c.system.engine.places == 8),
    ("2 % or more wait for a place", lambda c: c.waiting_probability >= 0.02),
    ("prompts take half of the time", lambda c: c.prompt_load >= 0.5),
    ("prompts longer than a pass", lambda c: c.system.engine.seq_len > c.system.engine.pass_tokens),
    ("answers of fewer than 10 tokens", lambda c: c.system.output_len < 10),
    ("one length", lambda c: c.system.input_variation == c.system.output_variation == 0),
)
"""Where systems differ, for a table of errors."""


def rows(cases: Sequence[Case]) -> Iterator[dict[str, Any]]:
    """Yield the median and the 90th percentile of the error, and its bias, of each part.

    `low` and `high` are the 10th and 90th percentile of simulated over predicted times.
    """
    for part, belongs in PARTS:
        found = [item.errors for item in cases if belongs(item)]
        if not found:
            continue
        row: dict[str, Any] = {"part": part, "systems": len(found)}
        for name in TIMES:
            errors = 100 * np.array([each[name] for each in found])
            row[f"{name}_median"] = round(float(np.median(np.abs(errors))), 1)
            row[f"{name}_p90"] = round(float(np.percentile(np.abs(errors), 90)), 1)
            row[f"{name}_bias"] = round(float(np.median(errors)), 1)
            low, high = np.percentile(1 / (1 + errors / 100), (10, 90))
            row[f"{name}_low"], row[f"{name}_high"] = round(float(low), 3), round(float(high), 3)
        yield row


def main() -> int:
    """Compare many systems, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", type=int, default=1000)
    parser.add_argument("--worst", type=int, default=0, help="print this many of the worst")
    parser.add_argument("--output", type=Path, default=TABLE)
    given = parser.parse_args()
    cases = [case(seed) for seed in range(given.systems)]
    table = list(rows(cases))
    write_table(given.output, table)
    for row in table:
        print(
            row["part"],
            row["systems"],
            *(f"{n} {row[f'{n}_median']}/{row[f'{n}_p90']}" for n in TIMES),
        )
    for item in sorted(cases, key=lambda c: -abs(c.errors["e2e_mean"]))[: given.worst]:
        print(asdict(item))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
