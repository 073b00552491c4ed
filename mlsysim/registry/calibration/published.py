"""The best published training runs, to compare plans with: `research.published` writes them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from mlsysim.core.fields import Record, number, record
from mlsysim.core.types import PRECISIONS
from mlsysim.registry.tables import DATA

PATH = DATA / "published.csv"
COLUMNS = (
    "model",
    "device",
    "precision",
    "seq_len",
    "devices",
    "tokens_per_second",
    "id",
    "source",
)
_ALIKE = 2
"""Largest factor between the lengths of sequences of comparable runs."""


@record
class PublishedRun(Record):
    """A published training run.

    Attributes
    ----------
    model, device, precision : str
        Names of the model and the device, and the number format.
    seq_len, devices : int
        Tokens per sequence, and devices.
    tokens_per_second : float
        Tokens per second and device.
    id : str
        Name of the run in `research/measurements/training.csv` of the repository.
    source : str
        Who published it.
    """

    model: str
    device: str
    precision: str
    seq_len: int = number(whole=True)
    devices: int = number(whole=True)
    tokens_per_second: float = number()
    id: str
    source: str


@cache
def _runs() -> tuple[PublishedRun, ...]:
    lines: Iterable[Mapping[str, Any]] = csv.DictReader(PATH.read_text("utf-8").splitlines())
    return tuple(
        PublishedRun(
            **{
                **line,
                "seq_len": int(line["seq_len"]),
                "devices": int(line["devices"]),
                "tokens_per_second": float(line["tokens_per_second"]),
            }
        )
        for line in lines
    )


def best_published(model: str, device: str, precision: str, seq_len: int) -> PublishedRun | None:
    """Return the fastest published run of a model on a device, if one is comparable.

    Its number format has the same width, and its sequences are at most twice as long or as short.
    """
    bits = PRECISIONS[precision].bits
    alike = [
        run
        for run in _runs()
        if (run.model, run.device) == (model, device)
        and PRECISIONS[run.precision].bits == bits
        and 1 / _ALIKE <= run.seq_len / seq_len <= _ALIKE
    ]
    return max(alike, key=lambda run: run.tokens_per_second, default=None)
