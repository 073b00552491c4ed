"""Which inputs a result depends on, and how strongly: elasticities by exact derivatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mlsysim.core.calls import expects
from mlsysim.core.derivation import Derivation
from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.gradient import Slope, plain, slopes
from mlsysim.core.recording import Recorded
from mlsysim.core.result import Result
from mlsysim.core.table import Column, Table
from mlsysim.core.units import Quantity, si_factor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Sensitivity(Table):
    """Answer of `sensitivity`: one row per input, the strongest first.

    Inputs that the result follows only in steps, such as the number of stages, come last. The
    columns are `input` (its path, as `explain` prints it), `elasticity`, `value` in `unit`,
    `source`, and `note`, which marks special cases: the result follows the input in steps, or the
    input is zero.

    Attributes
    ----------
    field : str
        The field of the result.
    answer : Quantity
        Its value, in SI base units.
    """

    field: str
    answer: Quantity

    def __init__(self, field: str, answer: Quantity, rows: Sequence[Slope]) -> None:
        size = plain(answer)
        elasticities = {id(row): row.slope * row.value / size for row in rows}
        # Between two steps a slope is exact, but it does not predict the next step.
        ranked = sorted(
            rows, key=lambda row: (row.stepped, -abs(elasticities[id(row)]), row.input.origin)
        )
        inputs = [row.input for row in ranked]
        super().__init__(
            {
                "input": Column([item.origin for item in inputs]),
                "elasticity": Column([elasticities[id(row)] for row in ranked]),
                "value": Column(
                    [row.value / si_factor(row.input.unit) for row in ranked],
                    sources=[item.source for item in inputs],
                    estimated=[item.estimated for item in inputs],
                ),
                "unit": Column([item.unit if item.unit != "1" else "" for item in inputs]),
                "source": Column([str(item.source or "") for item in inputs]),
                "note": Column([_note(row) for row in ranked]),
            }
        )
        self.field = field
        self.answer = answer
        self._by_path = dict(zip(self["input"], self["elasticity"], strict=True))

    def elasticity(self, path: str) -> float:
        """Return the elasticity for one input; zero if the result does not depend on it.

        Raises
        ------
        UnknownEntryError
            If `path` is not one of the inputs.
        """
        if path not in self._by_path:
            raise UnknownEntryError.build(path, f"input of {self.field}", self._by_path)
        return float(self._by_path[path])

    def plot(self, *, most: int = 12, ax: Axes | None = None) -> tuple[Figure, Axes]:
        """Draw a tornado plot of the strongest inputs, as `plot_sensitivity` does."""
        from mlsysim.viz.tornado import plot_sensitivity

        return plot_sensitivity(self, most=most, ax=ax)


@expects(field=str)
def sensitivity(result: Result | Derivation, field: str | None = None) -> Sensitivity:
    """Compute how strongly a field of a result depends on each input.

    An elasticity is the change of the result in percent when one input changes by one percent and
    all others stay the same. An elasticity of -0.7 for a bandwidth means that 1% more bandwidth
    saves 0.7% of the time. Elasticities are exact derivatives through the arithmetic of the model,
    the same arithmetic that `explain` shows.

    Parameters
    ----------
    result
        A result of a solver's `solve` or `explain`.
    field
        A numeric field of the result; `None` takes the only field of a derivation.

    Returns
    -------
    Sensitivity
        A table with the strongest input first, which can be plotted.

    Raises
    ------
    UnknownEntryError
        If there is no such field, or it is not a computed number.
    ConfigError
        If the field is zero or unknown here, so that a relative change is undefined.

    Notes
    -----
    Each input counts separately, even if one usually follows from another: the parameters of a
    model stay the same while its layers change. Whole numbers are treated as continuous. At a
    maximum or a choice, the branch taken counts; if the result follows an input only through
    rounding, the elasticity is zero and the note is "in steps". To find how far an input must move
    to change the outcome, use `required`, which solves again.

    Examples
    --------
    >>> from mlsysim import DistributedSolver, Models, Systems, sensitivity
    >>> r = DistributedSolver.solve(
    ...     model=Models.Llama3_70B,
    ...     fleet=Systems.Clusters.Research_256,
    ...     batch_size=256,
    ...     tp_size=8,
    ...     pp_size=4,
    ...     microbatch_count=32,
    ...     efficiency=0.5,
    ... )
    >>> table = sensitivity(r, "step_latency_total")
    >>> print(f"{table.elasticity('efficiency'):.2f}")
    -0.79
    """
    name, number = recorded_field(result, field)
    size = plain(number)
    if not math.isfinite(size) or size == 0:
        raise ConfigError(
            f"{name} = {size:g} here, so a relative change is undefined: choose a field that is "
            "not zero",
            argument="field",
        )
    return Sensitivity(name, number.value, slopes(number))


def recorded_field(result: Any, field: str | None) -> tuple[str, Recorded]:
    """Return the name of a field, and its recorded number."""
    if isinstance(result, Derivation):
        numbers = result.numbers
        if field is None and len(numbers) == 1:
            field = next(iter(numbers))
    elif isinstance(result, Result):
        numbers = result.explain().numbers
        field = result._derived(field) if isinstance(field, str) else field
    else:
        raise ConfigError(
            f"result = {shown(result)} is not a result: give what a solver's solve or explain "
            "returns",
            argument="result",
        )
    if field is None or field not in numbers:
        raise UnknownEntryError.build(field, "computed number", numbers)
    return field, numbers[field]


def _note(row: Slope) -> str:
    if row.value == 0:
        return "zero here"
    if row.stepped:
        return "in steps" if row.slope == 0 else "partly in steps"
    return "at a kink" if row.tied else ""
