"""Calibrations of one cluster, as records and as files."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.fields import Record, number, record, units_of
from mlsysim.core.files import printable, write_text
from mlsysim.core.result import plain
from mlsysim.core.table import Column, Table
from mlsysim.core.types import Band, Calibration, Covered, Machine, Software, Source
from mlsysim.scenario.files import (
    NUMBER,
    TEXT,
    Document,
    Schema,
    document_of,
    read_file,
    record_schema,
    refusal,
    section,
    write_yaml,
)

_OPEN = 0.9
"""Share of the prior's spread above which the runs do not identify a constant."""
_FAR = 2.0
"""Standard deviations of the prior beyond which a factor is surprising."""


@record
class FittedFactor(Record):
    """The fitted factor of a constant.

    Attributes
    ----------
    name : str
        The constant, a field of `Machine` or of `Software`.
    factor : float
        Its value divided by that of the base.
    uncertainty : float
        Standard deviation of the factor's logarithm, given the runs.
    prior : float
        The same without any runs.
    """

    name: str
    factor: float = number()
    uncertainty: float = number(zero=True)
    prior: float = number()

    @property
    def identified(self) -> bool:
        """Whether the runs identify the constant."""
        return self.uncertainty <= _OPEN * self.prior

    @property
    def deviations(self) -> float:
        """How far the factor is from 1, in standard deviations of published constants."""
        return math.log(self.factor) / self.prior

    @property
    def surprising(self) -> bool:
        """Whether it is farther from the published constant than those of 95% of systems."""
        return abs(self.deviations) > _FAR


@record
class UsedRow(Record):
    """A run to which the constants were fitted.

    Attributes
    ----------
    id : str
        Identifier of the row.
    measured : float
        Time of a step, in seconds.
    before, after : float
        Prediction with the base's constants, and with the fitted ones.
    """

    id: str
    measured: float = number()
    before: float = number()
    after: float = number()


@record
class RefusedRow(Record):
    """A row that was left out.

    Attributes
    ----------
    id : str
        Identifier of the row.
    reason : str
        Why it was left out, and what to change.
    """

    id: str
    reason: str


@record
class Conflict(Record):
    """Two runs that contradict each other; it is unclear which of them is wrong.

    Attributes
    ----------
    fast, slow : str
        Identifiers of the rows.
    ratio : float
        Ratio of the slow run's time to the fast run's, divided by the ratio that the base predicts.
    """

    fast: str
    slow: str
    ratio: float = number(least=1)

    def __str__(self) -> str:
        fast, slow = printable(self.fast), printable(self.slow)
        return (
            f"{fast} and {slow} contradict each other: {slow} took {self.ratio:.3g} times as "
            f"long, compared with {fast}, as the constants imply. It is unclear which of them is "
            "wrong, so both were used: measure both again, or a third plan."
        )


@record
class NextRun(Record):
    """The single run that would narrow the band most.

    Attributes
    ----------
    like : str
        Identifier of the row from which it differs.
    changes : Mapping[str, object]
        Arguments of `DistributedSolver.solve` that differ; ``nodes`` is the count of the fleet.
    band : Band
        The band after this measurement.
    """

    like: str
    changes: Mapping[str, Any]
    band: Band

    def __str__(self) -> str:
        changes = ", ".join(f"{name} = {value}" for name, value in self.changes.items())
        return f"like {printable(self.like)}, with {changes}"


FORMAT = 1
MAX_BYTES = 256 * 1024


@record
class ClusterCalibration(Calibration):
    """Constants that `calibrate` fitted to the runs of one cluster.

    It is a `Calibration` like those of the registry: pass it as ``calibration=``.

    Attributes
    ----------
    base_machine, base_software : str
        Names of the constants from which the fit started.
    made_with : str
        Version of the package that made the fit. Another version may model a step differently, so
        calibrate again from the same rows after an upgrade.
    factors : tuple of FittedFactor
        The factor of each constant, and its uncertainty.
    rows : tuple of UsedRow
        The runs to which it was fitted.
    refused : tuple of RefusedRow
        The rows that were left out, with reasons.
    next_run : NextRun or None
        The run to measure next.
    conflicts : tuple of Conflict
        Runs that contradict each other.
    """

    base_machine: str = ""
    base_software: str = ""
    made_with: str = ""
    factors: tuple[FittedFactor, ...] = ()
    rows: tuple[UsedRow, ...] = ()
    refused: tuple[RefusedRow, ...] = ()
    next_run: NextRun | None = None
    conflicts: tuple[Conflict, ...] = ()

    @property
    def unidentified(self) -> tuple[str, ...]:
        """Constants that the runs do not identify; they stay near those of the base."""
        return tuple(each.name for each in self.factors if not each.identified)

    @property
    def surprising(self) -> tuple[FittedFactor, ...]:
        """Factors more than two standard deviations of published constants away from 1."""
        return tuple(each for each in self.factors if each.surprising)

    def errors(self) -> tuple[float, float]:
        """Return the mean absolute error over the rows in percent, before and after."""

        def mean(predicted: str) -> float:
            each = [abs(float(getattr(row, predicted)) / row.measured - 1) for row in self.rows]
            return 100 * sum(each) / len(each)

        return mean("before"), mean("after")

    def table(self) -> Table:
        """Return the factors as a table, with the constants' uncertainty in percent.

        `prior` is the uncertainty without any runs, and `deviations` is the distance of the factor
        from 1 in units of `prior`.
        """
        return Table(
            {
                "constant": Column([each.name for each in self.factors]),
                "factor": Column([each.factor for each in self.factors]),
                "uncertainty": Column([100 * each.uncertainty for each in self.factors], "%"),
                "prior": Column([100 * each.prior for each in self.factors], "%"),
                # The sum with zero has no minus sign in front of a zero.
                "deviations": Column([round(each.deviations, 2) + 0.0 for each in self.factors]),
            },
            limit=None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the calibration as plain data, as in a file."""
        run, covered, factors = self.next_run, self.covered, ("factor", "uncertainty", "prior")
        data = {
            "format": FORMAT,
            "mlsysim": self.made_with,
            "name": self.name,
            "device": self.device,
            "base": {"machine": self.base_machine, "software": self.base_software},
            "band": plain(self.band),
            "unseen_band": plain(self.unseen_band),
            "formats": list(self.formats),
            "factors": {each.name: {n: getattr(each, n) for n in factors} for each in self.factors},
            "rows": plain(self.rows),
            "refused": plain(self.refused),
            "next_run": run
            and {"like": run.like, "changes": plain(run.changes), "band": plain(run.band)},
        }
        if covered is not None:
            sizes = {n: {"least": low, "most": high} for n, low, high in covered.ranges()}
            data["covers"] = sizes | {n: list(getattr(covered, n)) for n in covered.choices()}
        if self.conflicts:
            data["conflicts"] = plain(self.conflicts)
        data["machine"] = written(self.machine)
        data["software"] = {"release": self.software.release} | written(self.software)
        return data

    def _coverage(self) -> str:
        """Describe in words what the runs covered."""
        if self.covered is None:
            return "none, because the file does not state what they covered; calibrate again"
        parts = [
            f"{name} {least:,}" if least == most else f"{name} {least:,} to {most:,}"
            for name, least, most in self.covered.ranges()
            if most > 1
        ]
        parts += [" or ".join(self.covered.precision), " or ".join(self.covered.networks)]
        return f"{', '.join(parts)}; beyond: {self.unseen_band}"

    def to_yaml(self) -> str:
        """Return the calibration as YAML, which `load_calibration` reads from a file."""
        return write_yaml(self.to_dict())

    def save(self, path: str | Path) -> None:
        """Write the calibration to a YAML file, which `load_calibration` reads.

        Parameters
        ----------
        path
            A file that ends in ``.yaml`` or ``.yml``; an existing file is replaced.

        Raises
        ------
        ConfigError
            If the name has another ending, or the file cannot be written.
        """
        place = _yaml_path(path)
        try:
            write_text(place, self.to_yaml())
        except (OSError, ValueError) as fault:
            raise ConfigError(
                f"path = {shown(path)} cannot be written: {fault}", argument="path"
            ) from fault

    def __str__(self) -> str:
        before, after = self.errors()
        runs = "run" if len(self.rows) == 1 else "runs"
        lines = [
            f"{printable(self.name)}: {self.device}, calibrated to {len(self.rows)} {runs}",
            f"started from: {self.base_machine}, {self.base_software}",
            f"mean error on these runs: {before:.1f}% before, {after:.1f}% after",
            f"band: {self.band} times the prediction",
            f"applies to plans like the runs: {self._coverage()}",
            "",
            str(self.table()),
        ]
        if self.unidentified:
            lines += ["", f"not identified by these runs: {', '.join(self.unidentified)}"]
        if self.surprising:
            factors = ", ".join(
                f"{each.name} (x{each.factor:.3g}, {abs(each.deviations):.1f} standard deviations)"
                for each in self.surprising
            )
            lines += ["", f"far from all published constants: {factors}", _CHECK_FIRST]
        lines += [f"\n{each}" for each in self.conflicts]
        if self.next_run is not None:
            lines += ["", f"measure next: {self.next_run} (band: {self.next_run.band})"]
        if self.refused:
            lines += ["", f"{len(self.refused)} rejected:"]
            lines += [f"  {printable(row.id)}: {printable(row.reason)}" for row in self.refused]
        return "\n".join(lines)


_CHECK_FIRST = (
    "check the rows before the machine: recompute, the framework (base=), precision, the number "
    "of devices and the batch size; a wrong cell distorts a constant"
)


def load_calibration(path: str | Path) -> ClusterCalibration:
    """Read a calibration made by `calibrate` and written by `ClusterCalibration.save`.

    Parameters
    ----------
    path
        A file that ends in ``.yaml`` or ``.yml``.

    Returns
    -------
    ClusterCalibration
        The same constants, to pass as ``calibration=``.

    Raises
    ------
    ConfigError
        If the file cannot be read, has another format, or contains invalid values.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from mlsysim import Q_, calibrate, load_calibration
    >>> run = dict(
    ...     id="first",
    ...     model="Llama3_8B",
    ...     fleet="DGX_H100",
    ...     batch_size=16,
    ...     microbatch_count=2,
    ...     seq_len=8192,
    ...     precision="bf16",
    ...     zero_stage=3,
    ...     step_latency_total=Q_(3.2, "s"),
    ... )
    >>> ours = calibrate([run], name="ours")
    >>> file = Path(mkdtemp()) / "ours.yaml"
    >>> ours.save(file)
    >>> load_calibration(file) == ours
    True
    """
    return _made(read_file(_yaml_path(path), most=MAX_BYTES))


def assemble(data: Mapping[str, Any]) -> ClusterCalibration:
    """Return the calibration from plain data, marked as made by this version."""
    # The package of this module; importing it by name would violate the layering.
    version = sys.modules[__name__.partition(".")[0]].__version__
    marks = {"format": FORMAT, "mlsysim": version, "next_run": None}
    return _made(document_of(marks | dict(data)))


def written(row: Machine | Software) -> dict[str, Any]:
    """Return a record's numbers: plain numbers as such, others as text with their unit."""
    numbers: dict[str, Any] = {}
    for name, unit, bare in units_of(type(row)):
        value = getattr(row, name)
        numbers[name] = value if bare else f"{value.to(unit).magnitude:.6g} {unit}"
    return numbers


def _yaml_path(path: Any) -> Path:
    if not isinstance(path, (str, PathLike)) or Path(path).suffix.lower() not in (".yaml", ".yml"):
        raise ConfigError(
            f"path = {shown(path)} is not the name of a YAML file: give one that ends in .yaml",
            argument="path",
        )
    return Path(path)


def _made(document: Document) -> ClusterCalibration:
    """Create the record that a document describes, or reject the document."""
    data = document.data
    version = data.get("format") if isinstance(data, Mapping) else None
    if version != FORMAT:
        text = "no format" if version is None else f"format {shown(version)}"
        raise document.stop(
            f"has {text}, but this version reads format {FORMAT} of calibrations: give a file "
            "that `mlsysim calibrate` wrote, or calibrate again from the runs",
            path=("format",),
        )
    calibration: ClusterCalibration = document.read(_schema())
    if document.faults:
        raise refusal(document.faults)
    return calibration


@cache
def _schema() -> Schema:
    """Return the schema of a file."""
    factor = record_schema(FittedFactor)["properties"]
    band, edge = _band_of(NUMBER), {"type": ["number", "null"]}
    texts: Schema = {"type": "array", "items": TEXT, "reads": tuple}
    covered = {name: _group({"least": NUMBER, "most": NUMBER}) for name in Covered.sizes()}
    return _group(
        {
            "format": {"const": FORMAT},
            "mlsysim": TEXT,
            "name": TEXT,
            "device": TEXT,
            "base": _group({"machine": TEXT, "software": TEXT}),
            "band": band,
            # Constants without any compared run have no such band.
            "unseen_band": _band_of(edge),
            "formats": texts,
            "factors": {
                "type": "object",
                "additionalProperties": _group({n: factor[n] for n in factor if n != "name"}),
                "reads": lambda values: tuple(FittedFactor(name=n, **values[n]) for n in values),
            },
            "rows": {
                **_list_of(UsedRow),
                "minItems": 1,
                "faults": {"minItems": "is empty: a calibration has at least one run"},
            },
            "refused": _list_of(RefusedRow),
            "next_run": {
                **_group({"like": TEXT, "changes": {"type": "object"}, "band": band}),
                "type": ["object", "null"],
                "reads": lambda values: values and NextRun(**values),
            },
            "machine": _group(_constants_of(Machine)),
            "software": _group({"release": TEXT} | _constants_of(Software)),
            "covers": _group(covered | dict.fromkeys(Covered.choices(), texts), reads=_covered_of),
            "conflicts": _list_of(Conflict),
        },
        # Files of earlier versions lack these.
        optional=("covers", "conflicts"),
        reads=_calibration_of,
    )


def _group(properties: Mapping[str, Schema], optional: Sequence[str] = (), **rest: Any) -> Schema:
    required = [name for name in properties if name not in optional]
    return section(properties, required=required, **rest)


def _list_of(kind: type[Record]) -> Schema:
    return {"type": "array", "items": record_schema(kind), "reads": tuple}


def _constants_of(kind: type[Machine | Software]) -> dict[str, Schema]:
    fields = record_schema(kind)["properties"]
    return {name: fields[name] for name, _, _ in units_of(kind)}


def _band_of(edge: Schema) -> Schema:
    return _group({"low": edge, "high": edge}, reads=lambda values: Band(**values))


def _covered_of(values: Mapping[str, Any]) -> Covered:
    sizes = {
        f"{name}_{edge}": size for name in Covered.sizes() for edge, size in values[name].items()
    }
    return Covered(**sizes, **{name: values[name] for name in Covered.choices()})


def _calibration_of(values: Mapping[str, Any]) -> ClusterCalibration:
    name, made_with, base = values["name"], values["mlsysim"], values["base"]
    source = Source(
        title=f"Calibrated to runs of {name}",
        locator=f"rows: {len(values['rows'])}; mlsysim {made_with}",
        note=f"started from {base['machine']}, {base['software']}",
    )
    identified = {each.name for each in values["factors"] if each.identified}

    def constants(kind: type[Machine | Software], numbers: Mapping[str, Any]) -> Any:
        """Return a record, in which constants that no run identifies are estimates."""
        estimated = frozenset(unit[0] for unit in units_of(kind)) - identified
        return kind(name=name, source=source, estimated=estimated, **numbers)

    copied_keys = ("name", "device", "formats", "factors", "rows", "refused", "next_run")
    return ClusterCalibration(
        source=source,
        machine=constants(Machine, values["machine"]),
        software=constants(Software, values["software"]),
        band=values["band"],
        unseen_band=values["unseen_band"],
        base_machine=base["machine"],
        base_software=base["software"],
        made_with=made_with,
        covered=values.get("covers"),
        conflicts=values.get("conflicts", ()),
        **{key: values[key] for key in copied_keys},
    )
