"""Plans of a service: the table of plans that meet its limits, and the result that contains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import record
from mlsysim.core.files import printable
from mlsysim.core.table import Column, Table
from mlsysim.core.types import Accelerator, Fleet, Node
from mlsysim.core.units import format_number
from mlsysim.planner.engines import LEVERS, applied, device_of
from mlsysim.solvers import OpenLoopResult, OpenLoopSolver

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["POOL_LEVERS", "SLO", "UNITS", "ServingPlan", "ServingTable"]

SLO = tuple(f"{t}_{p}" for t in ("ttft", "tpot", "e2e") for p in ("mean", "p50", "p90", "p99"))
"""Times that can be limited by an SLO."""
POOL_LEVERS = tuple(
    name for name in LEVERS if name not in ("draft_tokens", "kv_precision", "batch_limit")
)
"""Levers of a prefill pool that can differ; the format of keys and values cannot, and only decode
has drafts."""
UNITS = {
    **dict.fromkeys(SLO, "ms"),
    "cost_per_token": "USD/Mtoken",
    "cost_per_input_token": "USD/Mtoken",
    "cost_per_output_token": "USD/Mtoken",
    "cost_per_cached_token": "USD/Mtoken",
    "energy_per_token": "J",
    "tokens_per_s_per_user": "token/s",
    "tokens_per_s_per_user_low": "token/s",
    "tokens_per_s_per_user_high": "token/s",
    "tokens_per_s_per_device": "token/s",
}


class ServingTable(Table):
    """Plans: levers, replicas, times and costs, best first."""

    def __init__(
        self,
        columns: Mapping[str, Column],
        traffic: Mapping[str, Any],
        others: Mapping[str, Any],
        nouns: Mapping[str, Any],
    ) -> None:
        super().__init__(columns)
        self._traffic, self._nouns = dict(traffic), dict(nouns)
        self._fixed = {**traffic, **others}

    def configuration(self, index: int, role: str = "") -> dict[str, Any]:
        """Return the arguments of `OpenLoopSolver` for one engine of a row.

        Parameters
        ----------
        index
            The row.
        role
            Of separate pools, ``"prefill"`` or ``"decode"``, which is the default.

        Raises
        ------
        ConfigError
            If there is no such row, or it has no engine of this role.
        """
        row = self.row(index)
        apart = row.get("pools") == "separate"
        known = ("", "prefill", "decode") if apart else ("", "both")
        if role not in known:
            raise ConfigError(
                f"role = {shown(role)} is not one of plan {index}: choose one of "
                f"{', '.join(known[1:])}",
                argument="role",
            )
        levers = {name: row[name] for name in LEVERS}
        replicas = row["replicas"]
        if role == "prefill":
            levers |= {name: row[f"prefill_{name}"] for name in POOL_LEVERS}
            replicas = row["prefill_replicas"]
        levers |= {name: self._nouns[levers[name]] for name in ("hardware", "calibration")}
        rate = self._fixed["arrival_rate"] / replicas
        if apart:
            levers["role"] = role or "decode"
        return applied({**self._fixed, **levers, "arrival_rate": rate})

    def engine(self, index: int, role: str = "") -> dict[str, Any]:
        """Return the arguments of `capacity` for one engine of a row, without the traffic.

        Parameters
        ----------
        index
            The row.
        role
            Of separate pools, ``"prefill"`` or ``"decode"``, which is the default.

        Raises
        ------
        ConfigError
            If there is no such row, or it has no engine of this role.
        """
        given = self.configuration(index, role)
        return {name: value for name, value in given.items() if name not in self._traffic}

    def result(self, index: int, role: str = "") -> OpenLoopResult:
        """Solve one engine of a row, for its derivation.

        Parameters
        ----------
        index
            The row.
        role
            Of separate pools, ``"prefill"`` or ``"decode"``, which is the default.

        Raises
        ------
        ConfigError
            If there is no such row, or it has no engine of this role.
        """
        return OpenLoopSolver.solve(**self.configuration(index, role))

    @property
    def devices(self) -> dict[str, str]:
        """Name of the device in each kind of hardware of the search."""
        kinds = Accelerator | Node | Fleet
        return {
            n: device_of(noun).name for n, noun in self._nouns.items() if isinstance(noun, kinds)
        }

    def front(self) -> ServingTable:
        """Return the plans that no other one beats both per user and per device."""
        user = -np.asarray(self["tokens_per_s_per_user"].magnitude)
        device = -np.asarray(self["tokens_per_s_per_device"].magnitude)
        order = np.lexsort((device, user))
        before = np.minimum.accumulate(np.concatenate([[np.inf], device[order][:-1]]))
        return self.take(order[device[order] < before])

    def take(self, indices: Sequence[int] | Any) -> ServingTable:
        """Return the rows at `indices`, in that order."""
        rows = np.asarray(indices, dtype=int)
        return self._rebuilt({n: Column(c.values[rows], c.unit) for n, c in self._columns.items()})

    def _rebuilt(self, columns: Mapping[str, Column]) -> ServingTable:
        return ServingTable(columns, self._traffic, self._fixed, self._nouns)


@record
class ServingPlan:
    """Answer of `plan_serving`.

    Attributes
    ----------
    goal : str
        The quantity that was minimized.
    searched : int
        Plans that were tried. With separate pools, each pool's engines are tried separately, and
        this counts their pairs.
    plans : ServingTable
        Plans that meet every limit, best first. Pairs of pools in which one of the two is worse
        than another one in every respect are left out.
    front : ServingTable
        Plans among these that no other plan beats both in tokens per second per user and in tokens
        per second per device. Four of five measured runs are between `tokens_per_s_per_user_low`
        and `tokens_per_s_per_user_high`.
    alternatives : Table
        For each other value of each lever, the best plan, and how much worse the goal is.
    headroom : Mapping[str, float]
        The growth of each time of the best plan before it exceeds its limit, and of the rate before
        it reaches capacity, as shares.
    keeps_limits : float
        Probability that the best plan meets every limit, given the errors of pass times and of the
        queueing model.
    certainty : Table
        For several probabilities of meeting every limit (`confidence`), the best plan that has it:
        its devices, how many more these are than in the best plan if predictions were exact
        (`confidence` 0), and how much worse the goal is. The last rows are missing if no plan is so
        certain.
    stays_best : float or None
        Probability that it beats the best plan on other devices; `None` if there is no such plan.
    refused : Mapping[str, int]
        Number of engines that cannot run, by reason.
    """

    goal: str
    searched: int
    plans: ServingTable
    front: ServingTable
    alternatives: Table
    headroom: Mapping[str, float]
    keeps_limits: float
    certainty: Table
    stays_best: float | None
    refused: Mapping[str, int]

    @property
    def best(self) -> dict[str, Any]:
        """The best plan, with its times and costs."""
        return self.plans.row(0)

    @property
    def outside(self) -> tuple[str, ...]:
        """Ways in which the load of the best plan is outside all simulated systems.

        The errors of its times are not known there, and `keeps_limits` does not include them.
        """
        roles = ("prefill", "decode") if self.best.get("pools") == "separate" else ("",)
        found = [way for role in roles for way in self.plans.result(0, role).outside]
        return tuple(dict.fromkeys(found))

    def measured(self, source: Any, *, within: float | None = 2) -> Table:
        """Return published runs of the model, each with its prediction.

        These are runs on the devices of the search, with weights in a format of the plans. The
        package contains no runs. Those that its constants were fitted to are in the repository;
        rows of your own have the same columns.

        Parameters
        ----------
        source
            Runs as `validate` takes them, such as the path of ``measurements/serving_2.csv``: one
            row per run in a closed loop, with its clients and mean times to the first token and per
            token.
        within
            Largest factor between a run's mean prompts and answers and those of the traffic; `None`
            takes runs of all lengths.

        Returns
        -------
        Table
            Each run with its source, its output tokens per second, and those that the model
            predicts for the same clients, formats and engine. Runs with `split` "calibrate" were
            available to the fit; others were held out. Runs that cannot be predicted are left out;
            `validate` gives the reasons.

        Raises
        ------
        ConfigError
            If `source` cannot be read or has no times, or `within` is less than one.
        """
        from mlsysim.planner.published import published_runs

        fixed = self.plans._fixed
        return published_runs(
            source,
            model=fixed["model"].name,
            devices=self.plans.devices.values(),
            formats=np.unique(self.plans["weight_precision"]).tolist(),
            lengths=(float(fixed["seq_len"]), float(fixed["output_len"])),
            within=within,
        )

    def plot(self, measured: Table | None = None, *, ax: Axes | None = None) -> tuple[Figure, Axes]:
        """Draw the frontier of each kind of hardware, as `plot_frontier` does."""
        from mlsysim.viz.frontier import plot_frontier

        return plot_frontier(self, measured, ax=ax)

    def _more_certain(self) -> list[str]:
        """Return what more certainty costs, in words."""
        rows = [self.certainty.row(index) for index in range(len(self.certainty))]
        plans = [
            f"{row['confidence']:.0%} with {row['devices']} devices "
            f"({row['devices'] - self.best['devices']:+})"
            for row in rows
            if row["confidence"] > self.keeps_limits
        ]
        return [f"more certain plans (confidence): {', '.join(plans)}"] if plans else []

    def __str__(self) -> str:
        best = self.best
        apart = best.get("pools") == "separate"
        lines = [
            f"{'decode: ' * apart}{_engine(best)}, keys and values in {best['kv_precision']}, at "
            f"most {best['batch_limit']} sequences",
            *([f"prefill: {_engine(best, 'prefill_')}"] if apart else []),
            f"{best['devices']} devices, which meet every limit with a probability of "
            f"{self.keeps_limits:.0%}",
            *(f"this probability is not reliable: {way}" for way in self.outside),
            *self._more_certain(),
            *(
                f"{name}: {format_number(best[name])}"
                for name in (*SLO, *UNITS)
                if name in best and best[name] is not None
            ),
            "headroom: " + ", ".join(f"{n} {share:.0%}" for n, share in self.headroom.items()),
            f"{len(self.plans):,} of {self.searched:,} plans meet every limit",
        ]
        if self.stays_best is not None:
            lines.insert(-1, f"beats other devices with a probability of {self.stays_best:.0%}")
        lines += [
            f"engines that cannot run: {count} ({why})" for why, count in self.refused.items()
        ]
        return "\n".join([*map(printable, dict.fromkeys(lines)), "", str(self.alternatives)])


def _engine(plan: Mapping[str, Any], prefix: str = "") -> str:
    """Describe the engines of a pool, without sizes of 1."""
    sizes = ("tp_size", "pp_size", "attention_dp", "ep_size", "dcp_size")
    parts = [f"{name} = {plan[prefix + name]}" for name in sizes if plan[prefix + name] > 1]
    parts += [
        f"{name} = {value}"
        for name in ("overlap_batches", "redundant_experts", "draft_tokens")
        if (value := plan.get(prefix + name))
    ]
    hardware = f"{plan[f'{prefix}replicas']} x {plan[f'{prefix}hardware']}"
    weights = f"weights in {plan[f'{prefix}weight_precision']}"
    return ", ".join([hardware, plan[f"{prefix}calibration"], *parts, weights])
