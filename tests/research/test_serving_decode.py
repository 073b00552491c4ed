"""Decode against published measurements: the error that docs/concepts/accuracy-serving.qmd states.

The times are worked out here once more, in plain numbers and without the package, so that page and
solver are held by arithmetic that neither of them shares.
"""

from __future__ import annotations

import csv
import dataclasses
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mlsysim import Hardware, Models, ServingSolver, Systems
from tests.conftest import ROOT
from tools.pages.pages import Cell, read_page

PAGE = Path("docs/concepts/accuracy-serving.qmd")
with (ROOT / "research/measurements/serving_decode.csv").open(encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))
LOADED = [row for row in ROWS if row["group"] == "nvidia_silicon_sample_dense_agg"]
PREFILLS = [row for row in ROWS if row["quantity"] == "prefill latency"]
SINGLE = [row for row in ROWS if row not in LOADED and row not in PREFILLS]

# Datasheets: memory (byte/s), links one way (byte/s), dense fp16 and fp8 (FLOP/s).
DEVICES: dict[str, tuple[float, float, float, float]] = {
    "A100-SXM-80GB (330 W limit)": (2039e9, 300e9, 312e12, 0),
    "A100-40GB": (1555e9, 300e9, 312e12, 0),
    "MI250X (one GCD)": (1638.4e9, 1, 191.5e12, 0),
    "Apple M2 Max 30-core (400 GB/s)": (400e9, 1, 14e12, 0),
    "Apple M1 Max (400 GB/s)": (400e9, 1, 14e12, 0),
    "h100_sxm": (3350e9, 450e9, 989.4e12, 1978.9e12),
    "h200_sxm": (4800e9, 450e9, 989.4e12, 1978.9e12),
    "b200_sxm": (7700e9, 900e9, 2250e12, 4500e12),
}
LINK_LATENCY = 0.6e-6
BYTES = {"bf16": 2, "fp16": 2, "int8": 1, "fp8": 1, "fp8_block": 1}
CAPACITY = {"h100_sxm": 80e9, "h200_sxm": 141e9, "b200_sxm": 180e9}


class Arithmetic:
    """One row in plain numbers."""

    def __init__(self, row: dict[str, str]) -> None:
        self.memory, self.link, fp16, fp8 = DEVICES[row["hardware"]]
        # Four bits, and two and a half bytes of scale and zero point for 128 weights.
        self.weight_bytes = BYTES.get(row["weight_precision"], 0.5 + 2.5 / 128)
        narrow = row["weight_precision"].startswith("fp8")
        self.kv_bytes, self.activation_bytes = (1, 1) if narrow else (2, 2)
        self.rate = 0.5 * (fp8 if narrow else fp16)
        self.parameters = float(row["params_b"]) * 1e9
        self.layers, self.hidden = int(row["layers"]), int(row["hidden"])
        self.heads, self.kv_heads = int(row["heads"]), int(row["kv_heads"])
        self.head = 128 if "qwen" in row["model"] else self.hidden // self.heads
        matrices = 2 if "13B" in row["model"] else 3
        attention = 2 * self.hidden * self.head * (self.heads + self.kv_heads)
        self.matrix = 2 * self.layers * (attention + matrices * self.hidden * int(row["ffn"]))
        self.logit = 2 * self.hidden * int(row["vocab"] or 50_257)
        # A gated block has two tables of embeddings, the older one of 13B shares one. In 16 bits.
        self.tables = (matrices - 1) * self.logit / 2
        self.prompt, self.output = int(row["isl"] or 1), int(row["osl"] or 200)
        self.batch, self.devices = int(row["concurrency"]), int(row["tp"])

    def held(self, tokens_each: float) -> float:
        """Bytes of weights, keys and values on one device."""
        cache = 2 * self.layers * self.kv_heads * self.head * tokens_each * self.kv_bytes
        shared = min(self.devices, self.kv_heads)
        inner = self.parameters - self.tables
        weights = inner * self.weight_bytes + 2 * self.tables
        return weights / self.devices + self.batch * cache / shared

    def time(self, flops: float, context: float, tokens_each: int) -> float:
        """Seconds of a pass: arithmetic beside memory, then the all-reduces."""
        n = self.devices
        message = tokens_each * self.batch * self.hidden * self.activation_bytes
        ring = 2 * (n - 1) / n * message / self.link + 2 * (n - 1) * LINK_LATENCY
        pass_ = max(flops / n / self.rate, self.held(context) / self.memory)
        return pass_ + 2 * self.layers * ring

    def decode(self) -> float:
        context = self.prompt + self.output / 2
        score = 4 * self.layers * self.heads * self.head * context
        return self.time(self.batch * (self.matrix + score + self.logit), context, 1)

    def prefill(self) -> float:
        score = 4 * self.layers * self.heads * self.head * self.prompt / 2
        flops = self.batch * (self.prompt * (self.matrix + score) + self.logit)
        return self.time(flops, self.prompt, self.prompt)

    def with_prefills(self) -> float:
        return ((self.output - 1) * self.decode() + self.prefill()) / self.output


def measured(row: dict[str, str]) -> float:
    value = float(row["value"])
    return value / 1000 if row["unit"] == "ms" else 1 / value


def errors(rows: list[dict[str, str]], method: str) -> list[float]:
    return [getattr(Arithmetic(row), method)() / measured(row) - 1 for row in rows]


def mean_size(values: list[float]) -> float:
    return sum(map(abs, values)) / len(values)


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def fits(row: dict[str, str]) -> bool:
    one = Arithmetic(row)
    return one.held(one.prompt + one.output) <= CAPACITY[row["hardware"]]


@cache
def page() -> dict[str, Any]:
    """The page's cells, run; the figures are left out."""
    namespace: dict[str, Any] = {"__name__": "page"}
    for part in read_page(PAGE, ROOT).parts:
        if isinstance(part, Cell) and "fig-alt" not in part.options:
            exec(part.code, namespace)
    return namespace


@pytest.fixture(autouse=True)
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_every_row_has_what_the_arithmetic_takes() -> None:
    assert len(ROWS) == 158
    for row in ROWS:
        assert all(row[name] for name in ("seen_in", "model", "hardware", "unit"))
        assert float(row["value"]) > 0


def test_rows_of_servers_are_for_checking_only() -> None:
    assert {row["split"] for row in LOADED} == {"check"}
    assert {row["weight_precision"] for row in LOADED} == {"fp8", "fp8_block"}


def test_one_sequence_at_a_time() -> None:
    found = errors(SINGLE, "decode")
    assert mean_size(found) <= 0.465
    assert max(found) < -0.2  # the model is a floor: no run was faster
    assert found == pytest.approx(list(page()["single_error"]), abs=1e-3)


def test_servers_under_load() -> None:
    kept = [row for row in LOADED if fits(row)]
    assert len(LOADED) - len(kept) == 1
    alone, busy = errors(kept, "decode"), errors(kept, "with_prefills")
    assert mean_size(alone) <= 0.65
    assert mean(alone) < -0.6
    assert mean_size(busy) <= 0.44
    assert mean(busy) < -0.4
    assert alone == pytest.approx(list(page()["decode_error"]), abs=1e-3)
    assert busy == pytest.approx(list(page()["load_error"]), abs=1e-3)


def test_prefill_alone() -> None:
    found = errors(PREFILLS, "prefill")
    assert found == pytest.approx(list(page()["prefill_error"]), abs=1e-3)


def test_the_words_of_the_page_are_those_of_its_cells() -> None:
    """A number in the prose comes from an expression, or stands in a source."""
    text = re.sub(r"```.*?```", "", (ROOT / PAGE).read_text(encoding="utf-8"), flags=re.DOTALL)
    typed = re.findall(r"(?<![\d.,])\d+%", re.sub(r"`\{python\}[^`]*`", "", text))
    assert typed == ["40%"]  # the limit of an expression next to it


CHECKPOINTS = {
    # "total_size" of model.safetensors.index.json
    "Llama3_8B": 16_060_522_496,
    "Llama3_70B": 141_107_412_992,
    # less the rotary frequencies that this checkpoint stores: 80 layers x 64 x 4 bytes
    "Llama2_70B": 137_953_316_864 - 80 * 64 * 4,
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_weights_are_those_of_the_published_checkpoint(name: str) -> None:
    found = ServingSolver.solve(model=Models[name], hardware=Hardware.H100, precision="bf16")
    assert found.model_weights_size.to("byte").magnitude == CHECKPOINTS[name]


def test_keys_and_values_of_opt_13b() -> None:
    """Kwon et al. (2023), section 3: 2 x 5120 x 40 x 2 bytes, 800 KB for a token."""
    model = dataclasses.replace(
        Models.GPT3,
        name="OPT-13B",
        layers=40,
        hidden_dim=5120,
        heads=40,
        kv_heads=40,
        ffn_dim=20_480,
        parameters=None,
    )
    assert model.parameters.to("Gparam").magnitude == pytest.approx(13, rel=0.02)
    found = ServingSolver.solve(model=model, hardware=Hardware.A100, seq_len=1)
    assert found.kv_cache_size.to("KiB").magnitude == 800


def test_keys_and_values_of_a_70b_model_on_eight_gpus() -> None:
    """16K tokens of a Llama 70B are 5 GiB, and 640 MiB on each of eight GPUs."""
    found = ServingSolver.solve(
        model=Models.Llama3_70B,
        hardware=Systems.Nodes.DGX_H100,
        seq_len=16_384,
        tp_size=8,
        efficiency=0.5,
    )
    assert found.kv_cache_size.to("GiB").magnitude == 5
    weights = found.model_weights_size / 8
    each = found.total_memory_required.to("byte") - weights.to("byte")
    assert each.to("MiB").magnitude == pytest.approx(640, abs=1e-6)
