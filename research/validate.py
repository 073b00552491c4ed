"""Compare the model with published tables: ``python -m research.validate FILE``.

The tables have the columns of their sources, which `research.readers` turns into arguments of the
solvers. ``--kind``, ``--split``, ``--calibration``, ``--output`` and ``--json`` are as in
``mlsysim validate``.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from mlsysim.cli.formats import print_json, print_text
from mlsysim.core.errors import ConfigError, MLSysError
from mlsysim.core.types import Calibration
from mlsysim.solvers.arguments import Choice
from mlsysim.validation.report import Report
from mlsysim.validation.rows import rows_of_split
from mlsysim.validation.validate import Compared, admitted_calibration, report_on
from research.rows import Row, rows_of

# A column that only this kind of table has.
KINDS = {
    "tiny": "energy_uJ",
    "energy": "tokens_per_s",
    "training": "global_batch",
    "serving": "isl",
    "memory": "zero_stage",
    "kernels": "message_bytes",
    "passes": "sequences",
}


def validate(
    source: str | Path | Iterable[Row | Mapping[str, Any]] | Any,
    *,
    kind: str | None = None,
    split: str | None = None,
    calibration: Calibration | str | Path | None = None,
) -> Report:
    """Compare the model with published measurements.

    Parameters
    ----------
    source
        A CSV file, or rows in memory, with the columns of our tables.
    kind
        One of `KINDS`; `None` infers it from the columns.
    split
        Only rows with this value in the ``split`` column; `None` takes all.
    calibration
        Constants for all rows of training: a calibration, its name, or the path of its file.
        `None` chooses them by the group and the device of each row.

    Raises
    ------
    ConfigError
        If `source` cannot be read, holds no measurement of a known kind, or has no row of `split`.
    """
    rows = rows_of(source)
    if not rows:
        raise ConfigError("source = [] holds no measurements", argument="source")
    name = _kind_of(rows) if kind is None or (isinstance(kind, str) and not kind) else kind
    Choice.among(KINDS).admit("kind", name)
    compare: Callable[..., Compared]
    compare = importlib.import_module(f"research.readers.{name}").compare
    if calibration is not None:
        constants = admitted_calibration(calibration, name)
        compare = functools.partial(compare, calibration=constants)
    return report_on(rows_of_split(rows, split), compare)


def _kind_of(rows: list[Row]) -> str:
    columns = set(rows[0].cells)
    found = [kind for kind, column in KINDS.items() if column in columns]
    if not found:
        raise ConfigError(
            "the columns fit no kind of measurement: name one with kind= (--kind on the command "
            f"line), one of {', '.join(KINDS)}; they differ in the columns "
            f"{', '.join(KINDS.values())}",
            argument="kind",
        )
    return found[0]


def main(words: list[str]) -> int:
    """Print the report on a file."""
    parser = argparse.ArgumentParser(prog="python -m research.validate", description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--kind", help=", ".join(KINDS))
    parser.add_argument("--split")
    parser.add_argument("--calibration", help="training constants: a name or a YAML file")
    parser.add_argument("--output", help="write every comparison to this CSV file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(words)
    try:
        report = validate(
            given.file, kind=given.kind, split=given.split, calibration=given.calibration
        )
        if given.output is not None:
            report.to_csv(given.output)
    except MLSysError as fault:
        print(f"Error: {fault}", file=sys.stderr)
        return 2
    if given.json:
        print_json(report.to_dict())
    else:
        print_text(str(report))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
