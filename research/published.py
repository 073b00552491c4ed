"""Write the best published training run of each model, device, format and length of sequences.

``python -m research.published`` reads `research/measurements/training.csv` and writes
`mlsysim/registry/data/published.csv`, with which `advise` compares its plans. Runs of every
split are in it: nothing is fitted to them here.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from mlsysim import Models
from mlsysim.core.types import TransformerModel
from mlsysim.registry.calibration.published import COLUMNS, PATH
from research import MEASUREMENTS
from research.readers.aliases import accelerator_named, model_named
from research.readers.training import measured, precision_of
from research.rows import Row, Skip, rows_of, usable

_SOURCE = MEASUREMENTS / "training.csv"
_AVERAGE = re.compile(r"= ([0-9.]+) tokens/s/GPU")
_KNOWN = {row.name for row in Models if isinstance(row, TransformerModel)}


def _run(row: Row) -> dict[str, str]:
    """Return one run; tokens per second are those of a step, or the mean of a whole run."""
    model, device = model_named(row), accelerator_named(row.text("hardware"))
    if model.name not in _KNOWN or "lora" in (row.text("model") + row.group).lower():
        raise Skip("not a model of the registry, or only its adapters are trained")
    if not row.text("precision"):
        raise Skip("the number format is not stated")
    devices = row.whole("n_gpus")
    seq_len = row.whole("seq_len", default=int(model.seq_len))
    average = _AVERAGE.search(row.text("note"))
    if row.text("step_time_s"):
        rate = row.whole("global_batch") * seq_len / measured(row) / devices
    elif average:
        rate = float(average[1])
    else:
        raise Skip("neither a step nor a mean rate")
    return {
        "model": model.name,
        "device": device.name,
        "precision": precision_of(row.text("precision")),
        "seq_len": str(seq_len),
        "devices": str(devices),
        "tokens_per_second": f"{rate:.5g}",
        "id": row.name,
        "source": row.text("source"),
    }


def best_runs() -> list[dict[str, str]]:
    """Return the fastest run of each kind, in order."""
    best: dict[tuple[str, ...], dict[str, str]] = {}
    for _, run in usable(rows_of(_SOURCE), _run):
        kind = tuple(run[name] for name in ("model", "device", "precision", "seq_len"))
        known = best.get(kind)
        if known is None or float(run["tokens_per_second"]) > float(known["tokens_per_second"]):
            best[kind] = run
    return [best[kind] for kind in sorted(best)]


def written() -> str:
    """Return the file's contents."""
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(best_runs())
    return text.getvalue()


if __name__ == "__main__":
    Path(str(PATH)).write_text(written(), encoding="utf-8")
