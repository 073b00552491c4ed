"""How certain a choice between two plans is, and which number it hinges on.

The constants of a calibration are uncertain. To first order, the logarithm of a step time is linear
in the logarithms of the constants, with the elasticities of `sensitivity` as coefficients. The same
holds for the difference between two plans, in which everything they share cancels, so the
probability that one beats the other follows from a normal distribution.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from mlsysim.core.errors import ConfigError, MLSysError, shown
from mlsysim.core.fields import priors, record
from mlsysim.core.files import printable
from mlsysim.core.gradient import plain, slopes
from mlsysim.core.numeric import NINETIETH, erf
from mlsysim.core.types import Machine, Software
from mlsysim.core.units import Quantity, format_number
from mlsysim.planner.sensitivities.questions import Question, question_of
from mlsysim.planner.sensitivities.targets import crossing
from mlsysim.solvers import DistributedResult, DistributedSolver

BAND_WIDTH = 2 * NINETIETH
"""Standard deviations of a normal distribution from its tenth to its ninetieth percentile."""
_FARTHEST = 3.0
"""Factor by which a number may change for a choice to hinge on it."""
_TRIED = 8
_FIELD = "step_latency_total"
_CONSTANTS, _HARDWARE = "calibration.", "fleet."
_BANDS = ("band.low", "band.high")
_SAME = 5e-4
"""Margin below which two plans are reported as equally fast."""
_PARTS: Mapping[str, type[Any]] = {"machine": Machine, "software": Software}
_UNKNOWN = 0.1
"""Uncertainty of constants without a known prior, such as memory efficiency."""


@record
class Odds:
    """Answer of `odds`.

    Attributes
    ----------
    probability : float or None
        Probability that the first plan takes less time per token than the second, given the
        uncertainty of the calibration's constants; `None` if the calibration has no band.
    margin : float
        By how much it is predicted to be faster: the logarithm of the ratio of the times per token.
        Negative if it is slower.
    feasible : bool
        Whether both plans can run. The other numbers compare their times even if not.
    notes : tuple of str
        Which plan cannot run and why, and why there is no probability.
    spread : float or None
        Standard deviation of that margin.
    hinge : str
        The number on which the choice depends most: a constant, or a rate of the fleet.
    flips_at : object or None
        The value of that number at which the two plans are equally fast; `None` if no change within
        a factor of three makes them equal.
    words : str
        The same in words.
    """

    probability: float | None
    margin: float
    feasible: bool
    notes: tuple[str, ...]
    spread: float | None
    hinge: str
    flips_at: Quantity | float | None
    words: str

    def __str__(self) -> str:
        return printable(self.words, lines=True)


def odds(result: DistributedResult, against: DistributedResult) -> Odds:
    """Estimate how certain it is that one plan is faster, and what could reverse the order.

    Parameters
    ----------
    result
        A result of `DistributedSolver.solve`.
    against
        Another, of the same model and sequence length.

    Returns
    -------
    Odds
        A probability, and the number on which the choice hinges.

    Raises
    ------
    ConfigError
        If one of them is not such a result.

    Notes
    -----
    The constants of the calibration vary independently, each by as much as it differs between
    machines or frameworks, all scaled so that the first plan's time varies as much as its band.
    Influences that both plans share, such as most of the efficiency of matrix products, cancel. The
    probability is exact to first order; the value at which the choice flips is found by solving
    both plans. The probability does not cover effects that the model leaves out.

    Examples
    --------
    >>> from mlsysim import DistributedSolver, Models, Systems, odds
    >>> job = dict(
    ...     model=Models.Llama3_70B,
    ...     fleet=Systems.Clusters.Research_256,
    ...     batch_size=256,
    ...     seq_len=2048,
    ...     tp_size=8,
    ...     pp_size=4,
    ... )
    >>> few = DistributedSolver.solve(microbatch_count=4, **job)
    >>> many = DistributedSolver.solve(microbatch_count=16, **job)
    >>> odds(many, few).probability > 0.5
    True
    """
    for name, value in (("result", result), ("against", against)):
        if not isinstance(value, DistributedResult) or "_origin" not in value.__dict__:
            raise ConfigError(
                f"{name} = {shown(value)} was not made by DistributedSolver.solve: give what it "
                "returns",
                argument=name,
            )
    return odds_between(*(dict(item.__dict__["_origin"][1]) for item in (result, against)))


def odds_between(first: Mapping[str, Any], second: Mapping[str, Any]) -> Odds:
    """Return the odds of two plans, given by their arguments."""
    ours, theirs = (question_of(DistributedSolver, plan) for plan in (first, second))
    one, other = _elasticities(ours), _elasticities(theirs)
    margin = _difference(ours, theirs)
    if margin is None:  # both were solved before
        raise ConfigError("the two plans have no step time to compare", argument="against")
    constants = [
        name for name in {**one, **other} if name.startswith(_CONSTANTS) and not _band(name)
    ]
    changes = {name: other.get(name, 0.0) - one.get(name, 0.0) for name in {**one, **other}}
    spread = probability = None
    width = _band_width(ours)
    own = math.hypot(*(_doubt(name) * one.get(name, 0.0) for name in constants))
    if width is not None and own > 0:
        scale = width / own
        spread = scale * math.hypot(*(_doubt(name) * changes[name] for name in constants))
        probability = _probability(margin, spread)
    hinge, flips, way = _hinge(ours, theirs, margin, changes)
    lacking = _lacking(first, second)
    notes = lacking if probability is not None else (*lacking, _without_band(ours))
    return Odds(
        probability=probability,
        margin=margin,
        feasible=not lacking,
        notes=notes,
        spread=spread,
        hinge=hinge,
        flips_at=flips,
        words=_words(probability, margin, notes, ours, hinge, flips, way),
    )


def _probability(margin: float, spread: float) -> float:
    if spread == 0:
        return 0.5 if margin == 0 else float(margin > 0)
    return float(normal(margin / spread))


def normal(score: Any) -> Any:
    """Return the probability that a normal variable is below a score."""
    return (1 + erf(score / math.sqrt(2))) / 2


def _elasticities(question: Question) -> dict[str, float]:
    number = question.recorded(_FIELD)
    size = plain(number)
    return {
        item.input.origin: item.slope * item.value / size
        for item in slopes(number)
        if item.slope and item.value and not item.stepped
    }


def _doubt(name: str) -> float:
    """Return by how much a constant differs between machines or frameworks, as a share."""
    kind, _, constant = name.removeprefix(_CONSTANTS).partition(".")
    known = priors(_PARTS[kind]).get(constant) if kind in _PARTS else None
    return _UNKNOWN if known is None or known.spread is None else known.spread


def _band(name: str) -> bool:
    return name.endswith(_BANDS)


def _band_width(question: Question) -> float | None:
    """Return the standard deviation of the logarithm of a step time, from its band."""
    out = question.outputs()
    low, high = (float(out.get(f"step_latency_{edge}", math.nan)) for edge in ("low", "high"))
    return math.log(high / low) / BAND_WIDTH if 0 < low < high else None


def _difference(ours: Question, theirs: Question) -> float | None:
    """Return the logarithm of the ratio of the second plan's time per token to the first's."""
    times = []
    for question in (ours, theirs):
        plain_inputs: Any = question.inputs.plain()
        tokens = plain_inputs.batch_size * plain_inputs.seq_len
        times.append(float(question.outputs()[_FIELD]) / tokens)
    return math.log(times[1] / times[0]) if min(times) > 0 else None


def _hinge(
    ours: Question, theirs: Question, margin: float, changes: Mapping[str, float]
) -> tuple[str, Any, float]:
    """Return the number whose change makes the two equal first, its value there, and the way."""
    same = ours.given["fleet"] == theirs.given["fleet"]
    best: tuple[float, str, Any, float] | None = None
    for path, way in _candidates(margin, changes, same):
        place = ours.place(path)

        def difference(value: float, path: str = path) -> float | None:
            try:
                return _difference(
                    *(item.changed(item.place(path), value) for item in (ours, theirs))
                )
            except (MLSysError, OverflowError, ZeroDivisionError):
                return None

        value = crossing(difference, place.value, way, factor=_FARTHEST)
        if value is not None:
            far = abs(math.log(value / place.value)) / _doubt(path)
            if best is None or far < best[0]:
                best = far, path, place.dressed(value), way
    return ("", None, 0.0) if best is None else best[1:]


def _candidates(
    margin: float, changes: Mapping[str, float], same_fleet: bool
) -> Iterator[tuple[str, float]]:
    """Yield numbers with the direction of their change, the most likely one first."""
    kinds = (_CONSTANTS, _HARDWARE) if same_fleet else (_CONSTANTS,)
    rates = [
        # In units of its uncertainty; rates of the fleet come from a datasheet.
        (abs(margin / slope / _doubt(path)), path, -math.copysign(1.0, margin * slope))
        for path, slope in changes.items()
        if slope
        and path.startswith(kinds)
        and not _band(path)
        and not _counts(path)
        and abs(margin) <= 2 * math.log(_FARTHEST) * abs(slope)
    ]
    for _, path, way in sorted(rates)[:_TRIED]:
        yield path, way


def _counts(path: str) -> bool:
    """Return whether a path is a count, which is known exactly."""
    return path.endswith(("count", "_per_node"))


def _share(probability: float) -> str:
    """Format a probability in percent, but never as certain."""
    if probability > 0.99:
        return "over 99%"
    return "under 1%" if probability < 0.01 else f"{probability:.0%}"


def _lacking(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[str, ...]:
    """Return which of the plans cannot run, and why."""
    found = []
    for name, plan in (("first", first), ("second", second)):
        result = DistributedSolver.solve(**plan)
        if not result.feasible:
            found.append(f"the {name} plan cannot run ({'; '.join(result.reasons)})")
    return tuple(found)


def _without_band(question: Question) -> str:
    if getattr(question.inputs, "efficiency", None) is not None:
        return "no probability, because a constant efficiency has no band"
    return "no probability, because no band is known for the first plan"


def _words(
    probability: float | None,
    margin: float,
    notes: tuple[str, ...],
    question: Question,
    hinge: str,
    flips: Any,
    way: float,
) -> str:
    parts = []
    if probability is not None:
        parts.append(f"faster in {_share(probability)} of the band")
    elif abs(margin) < _SAME:
        parts.append("as fast as the other")
    else:
        time = "less" if margin > 0 else "more"
        parts.append(f"takes {abs(math.expm1(-margin)):.1%} {time} time than the other")
    parts += notes
    if flips is not None:
        place = question.place(hinge)
        now = format_number(place.dressed(place.value))
        parts.append(
            f"flips if {hinge} {'rises above' if way > 0 else 'drops below'} "
            f"{format_number(flips)} (now {now})"
        )
    return "; ".join(parts)
