"""Exercises of the tutorial on carbon, water and place."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mlsysim import (
    Q_,
    DistributedSolver,
    Fleet,
    Infra,
    Models,
    SustainabilityResult,
    SustainabilitySolver,
    Systems,
)
from mlsysim.core.formulas import facility_energy, operational_carbon
from mlsysim_course.answers import AmountAsked, ChoiceAsked, CountAsked, Parts, exercise

_CLUSTER = Systems.Clusters.Research_256
# Llama 2's card as the tutorial quotes it: GPU-hours and tonnes, in all and by model.
_ALL = (3_311_616, 539.00)
_SHOWN = ((184_320, 31.22), (368_640, 62.44), (1_720_320, 291.42))


def _solve(**given: Any) -> SustainabilityResult:
    common: dict[str, Any] = {"fleet": _CLUSTER, "duration_days": 30}
    return SustainabilitySolver.solve(**{**common, **given})


def _equal(energy: str) -> Any:
    """Return the grid intensity at which the energy's carbon equals the hardware's share."""
    month = _solve(datacenter=Infra.Hyperscale_Quebec)
    return month.embodied_carbon / month[energy]


def _power_of_a_gpu(pue: float, *, rest: bool = True) -> Any:
    """Return the power that makes the published carbon, of the model not shown or of all."""
    hours, tonnes = _ALL
    if rest:
        hours -= sum(shown for shown, _ in _SHOWN)
        tonnes -= sum(shown for _, shown in _SHOWN)
    energy = facility_energy(Q_(hours, "W*h"), pue)
    return (Q_(tonnes, "tonne") / operational_carbon(energy, Q_(385, "g/kWh"))) * Q_(1, "W")


@lru_cache(maxsize=2)
def _run(node: str, fabric: str) -> SustainabilityResult:
    """Train on 100 billion tokens in Québec, as the tutorial does."""
    fleet = Fleet(name=node, node=Systems.Nodes[node], count=32, fabric=Systems.Fabrics[fabric])
    step = DistributedSolver.solve(
        model=Models.Llama3_70B,
        fleet=fleet,
        batch_size=256,
        seq_len=2048,
        tp_size=8,
        pp_size=4,
        microbatch_count=32,
        sequence_parallel=True,
    )
    days = (Q_(100, "Gtoken") / step.token_throughput).to("day")
    return _solve(fleet=fleet, duration_days=days, datacenter=Infra.Quebec)


def _left_on(**given: Any) -> SustainabilityResult:
    return _solve(datacenter=Infra.US_Avg, **given)


def _switched_off(field: str = "carbon_footprint") -> Any:
    return _left_on(utilization=0.6)[field] - _left_on(duration_days=18)[field]


@exercise
def _sustainability_1() -> Parts:
    intensity = _equal("total_energy")
    grids: Any = Infra.Grids
    below = sum(grid.carbon_intensity < intensity for grid in grids)
    yield AmountAsked(
        "intensity",
        asks="the carbon intensity at which both weigh the same",
        unit="g/kWh",
        truth=intensity,
        hint="Set the two terms of the equation equal. The time cancels.",
        mistakes={
            _equal("it_energy"): "You left out the building. The electricity is that of the "
            "servers times PUE.",
            _equal("it_energy") * Infra.Hyperscale_Quebec.pue: "The building takes more "
            "electricity, not less: PUE divides here.",
        },
    )
    yield CountAsked(
        "below",
        asks="how many of our grids lie below",
        truth=below,
        hint="Compare with every row of Infra.Grids.",
    )


@exercise
def _sustainability_2() -> Parts:
    yield AmountAsked(
        "power",
        asks="the power of a GPU",
        unit="W",
        truth=_power_of_a_gpu(1.1),
        hint="Subtract the given rows, hours and tonnes, and solve for the power.",
        mistakes={
            _power_of_a_gpu(1.0): "LLaMA's rule includes a PUE.",
            _power_of_a_gpu(1.1, rest=False): "That is the mean over all models. Subtract the "
            "published rows.",
            Q_(
                400, "W"
            ): "That is the power of the other models, and with it the totals do not add up.",
        },
    )


@exercise
def _sustainability_3() -> Parts:
    new = _run("DGX_H100", "InfiniBand_NDR")
    old = _run("DGX_A100", "InfiniBand_HDR")
    saved = old.total_energy - new.total_energy
    intensity = new.embodied_carbon / saved
    yield AmountAsked(
        "intensity",
        asks="the carbon intensity above which the new machines emit less",
        unit="g/kWh",
        truth=intensity,
        hint="Divide the embodied carbon of the new machines by the electricity that they save.",
        mistakes={
            intensity - old.embodied_carbon / saved: "The old machines' carbon has already "
            "been emitted, so do not subtract it.",
            new.embodied_carbon / new.total_energy: "Divide by the electricity that is "
            "saved, not by all that the new machines use.",
        },
    )
    yield ChoiceAsked(
        "place",
        asks='whether it is `"above"` or `"below"` Québec\'s',
        options=("above", "below"),
        truth="below" if intensity < Infra.Quebec.carbon_intensity else "above",
        hint="Compute it, and look up Infra.Quebec.carbon_intensity.",
    )


@exercise
def _sustainability_4() -> Parts:
    saved_from_idle_devices = 0.4 * _left_on().carbon_footprint
    saved_at_mean_load = 0.4 * _left_on(utilization=0.6).carbon_footprint
    left_carbon = _left_on(duration_days=18).carbon_footprint
    yield AmountAsked(
        "saving",
        asks="the carbon that is saved in the month",
        unit="tonne",
        truth=_switched_off(),
        hint="Compare a month at a utilization of 0.6 with fewer days of full work.",
        mistakes={
            saved_from_idle_devices: "Idle devices draw less power than busy ones, so there "
            "is less to save.",
            saved_at_mean_load: "Servers that are off draw nothing, and servers that are on "
            "are busy. The mean power of the month does not scale that way.",
            _switched_off("total_carbon"): "The carbon of the hardware is the same whether it runs "
            "or not.",
            left_carbon: "That is what is left, not what is saved.",
        },
    )


@exercise
def _sustainability_self_check() -> Parts:
    places = (
        Infra.Colocation_Poland,
        Infra.Hyperscale_US,
        Infra.Hyperscale_Quebec,
        Infra.Nordic_Free_Cooling,
    )
    pue = [place.pue for place in places]
    gamma = [place.grid.carbon_intensity for place in places]
    yield ChoiceAsked(
        "ask",
        asks='which to ask for first: `"PUE"`, `"gamma"`, or the time `"t"`',
        options=("PUE", "gamma", "t"),
        truth="gamma" if max(gamma) / min(gamma) > max(pue) / min(pue) else "PUE",
        hints={
            "PUE": "The provider has already given you that one.",
            "t": "That one you know yourself. Which of the others varies most?",
        },
    )
