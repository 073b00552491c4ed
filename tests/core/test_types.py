"""Nouns: what they need, what they refuse, and where their numbers come from."""

import dataclasses
import math
import pickle

import numpy as np
import pytest

from mlsysim import Models, NetworkCalibrations, ServingCalibrations
from mlsysim.core.errors import ConfigError, UnknownEntryError
from mlsysim.core.provenance import cited
from mlsysim.core.types import (
    ATTENTION,
    PRECISIONS,
    Accelerator,
    Compute,
    Datacenter,
    DeploymentTier,
    FixedShapeModel,
    Fleet,
    GridProfile,
    Memory,
    NetworkFabric,
    Node,
    Rack,
    Source,
    TransformerModel,
    find_precision,
)
from mlsysim.core.units import Q_
from mlsysim.registry.calibration.power import PowerCalibrations
from mlsysim.registry.calibration.training import Calibrations, Frameworks

SHEET = Source(title="A data sheet", url="https://example.org/sheet", locator="Table 1")
PAPER = Source(title="A paper", locator="section 2")

DEVICE = {
    "name": "Device",
    "source": SHEET,
    "release_year": 2024,
    "compute": Compute(fp16=Q_(100, "TFLOP/s"), int8=Q_(200, "TOPS")),
    "memory": Memory(capacity=Q_(16, "GiB"), bandwidth=Q_(1, "TB/s")),
}
LINK = {
    "name": "Link",
    "source": SHEET,
    "bandwidth": Q_(100, "Gbit/s"),
    "latency": Q_(2, "us"),
}
NODE = {
    "name": "Node",
    "source": SHEET,
    "accelerator": Accelerator(**DEVICE),
    "accelerators_per_node": 8,
    "scale_up": NetworkFabric(**LINK),
    "nics_per_node": 8,
}
GRID = {
    "name": "Grid",
    "source": SHEET,
    "carbon_intensity": Q_(400, "g/kWh"),
    "pue": 1.2,
    "wue": Q_(0, "L/kWh"),
}
TRANSFORMER = {
    "name": "Transformer",
    "source": SHEET,
    "parameters": Q_(835_715_072, "param"),  # 16 (2 x 2048 x 128 x 20 + 2 x 2048 x 8192) + tables
    "layers": 16,
    "hidden_dim": 2048,
    "heads": 16,
    "kv_heads": 4,
    "head_dim": 128,
    "ffn_dim": 8192,
    "vocab_size": 32_000,
    "seq_len": 2048,
}
FIXED = {
    "name": "CNN",
    "source": SHEET,
    "parameters": Q_(25, "Mparam"),
    "flops_per_sample": Q_(8, "GFLOP"),
    "activations_per_sample": Q_(10, "Mcount"),
}
ENTRIES = {
    Accelerator: DEVICE,
    NetworkFabric: LINK,
    Node: NODE,
    GridProfile: GRID,
    Rack: {"name": "Rack", "source": SHEET, "power": Q_(40, "kW"), "cooling": "air", "pue": 1.5},
    Datacenter: {
        "name": "Site",
        "source": SHEET,
        "grid": GridProfile(**GRID),
        "pue": 1.1,
        "wue": Q_(1, "L/kWh"),
    },
    DeploymentTier: {
        "name": "Edge",
        "source": SHEET,
        "memory": Q_(8, "GB"),
        "power": Q_(15, "W"),
        "latency": Q_(20, "ms"),
    },
    TransformerModel: TRANSFORMER,
    FixedShapeModel: FIXED,
}
every_entry = pytest.mark.parametrize("kind", ENTRIES, ids=lambda kind: kind.__name__)


def test_a_row_can_be_made_and_pickled_but_not_without_a_source():
    for kind, arguments in ENTRIES.items():
        row = kind(**arguments)
        assert row.source_of("name") is SHEET, kind
        assert repr(row) == f"<{kind.__name__} {row.name}>"
        assert pickle.loads(pickle.dumps(row)) == row, kind
        with pytest.raises(TypeError, match="source"):
            kind(**{key: value for key, value in arguments.items() if key != "source"})


@every_entry
@pytest.mark.parametrize("source", [None, "https://example.org", SHEET.title])
def test_a_source_must_be_one(kind, source):
    with pytest.raises(ConfigError, match="source must be a Source"):
        kind(**ENTRIES[kind] | {"source": source})


@every_entry
@pytest.mark.parametrize("where", ["field_sources", "estimated"])
def test_provenance_of_a_field_that_does_not_exist(kind, where):
    wrong = {"named": PAPER} if where == "field_sources" else {"named"}
    with pytest.raises(UnknownEntryError, match=r"'named' does not exist.*name"):
        kind(**ENTRIES[kind] | {where: wrong})


ROWS = {
    PowerCalibrations.Hopper: {
        "measured_on": [5, np.arange(2), None],
        "power_band": [(0.9, 1.2), None],
    },
    NetworkCalibrations.GPU_TensorRT: {"pass_band": [(0.9, 1.2), None]},
    ServingCalibrations.Ampere: {"unseen_itl_band": [(0.9, 1.2), None]},
    PRECISIONS["fp16"]: {"name": [5, ["fp16"]]},
    ATTENTION["fused"]: {"name": [5, ["fused"]]},
    Frameworks.FSDP2: {"release": [5]},
    Calibrations.H100_Megatron: {
        "basis": ["x", 5],
        "machine": [Frameworks.FSDP2],
        "band": [(0.9, 1.2), None],
        "formats": [("fp16", 5), ("x",), ("fp16", ["fp8"]), "fp16"],
    },
    Models.ResNet50: {"input_shape": [("a", -1), (3, 0), (3, 1.5), (True,), 5]},
    Models.DeepSeek_V3: {"latent": [576, {"kv_rank": 512}], "kv_heads": [1, 64]},
    SHEET: {"title": [5, None], "note": [["x"]]},
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: type(row).__name__)
def test_words_shapes_and_formats_are_checked(row):
    for name, values in ROWS[row].items():
        for value in values:
            with pytest.raises(ConfigError, match=name) as caught:
                dataclasses.replace(row, **{name: value})
            assert caught.value.argument == name


# Provenance


def test_sources_per_field():
    row = Accelerator(
        **DEVICE,
        tdp=Q_(300, "W"),
        unit_price=Q_(9000, "USD"),
        field_sources={"memory.bandwidth": PAPER, "compute": PAPER},
        estimated={"unit_price", "compute.int8"},
    )
    assert row.source_of("tdp") is SHEET
    assert row.source_of("memory.capacity") is SHEET
    assert row.source_of("memory.bandwidth") is PAPER
    assert row.source_of("compute.fp16") is PAPER  # what holds for the whole holds for its parts
    assert row.is_estimated("unit_price")
    assert row.is_estimated("compute.int8")
    assert not row.is_estimated("compute.fp16")
    assert row.estimated == frozenset({"unit_price", "compute.int8"})


def test_nested_provenance_is_checked_to_the_last_part():
    with pytest.raises(UnknownEntryError, match=r"memory\.bandwidt.*bandwidth"):
        Accelerator(**DEVICE, field_sources={"memory.bandwidt": PAPER})
    with pytest.raises(UnknownEntryError, match="memory"):
        Accelerator(**DEVICE, field_sources={"memory.bandwidth.unit": PAPER})


def test_a_source_prints_title_and_place():
    assert str(SHEET) == "A data sheet, Table 1"
    assert str(Source(title="An assumption")) == "An assumption"


def test_a_source_in_markdown_links_its_title_and_escapes_marks():
    assert cited(SHEET) == "[A data sheet](https://example.org/sheet), Table 1"
    assert cited(PAPER) == "A paper, section 2"
    odd = Source(title="a_b [c] | d*", locator="--arch-*")
    assert cited(odd) == r"a_b \[c\] \| d\*, -\-arch-\*"
    assert repr(SHEET) == "<Source A data sheet, Table 1>"


# Devices and precisions


def test_rates_per_precision():
    compute = Accelerator(**DEVICE).compute
    assert compute.precisions == ("fp16", "int8")
    assert compute.rate("int8") == Q_(200, "TFLOP/s")
    assert compute.peak_flops == Q_(100, "TFLOP/s")
    assert Compute(int8=Q_(1, "TOPS")).peak_flops == Q_(1, "TFLOP/s")
    assert Compute(bf16=Q_(2, "TFLOP/s"), fp32=Q_(1, "TFLOP/s")).default_precision == "bf16"


def test_a_precision_that_the_device_lacks():
    with pytest.raises(ConfigError, match=r"precision = 'fp8'.*fp16, int8") as caught:
        Accelerator(**DEVICE).compute.rate("fp8")
    assert caught.value.argument == "precision"


@pytest.mark.parametrize("name", ["fp17", "FP16", "", None, 16])
def test_an_unknown_precision(name):
    with pytest.raises(ConfigError, match=r"precision = .*fp16") as caught:
        find_precision(name)
    assert caught.value.argument == "precision"


def test_bytes_per_element():
    for name, size in [
        ("fp64", 8),
        ("fp32", 4),
        ("tf32", 4),
        ("bf16", 2),
        ("fp8", 1),
        ("int4", 0.5),
    ]:
        assert PRECISIONS[name].bytes_per_element == Q_(size, "byte"), name
        assert find_precision(PRECISIONS[name]) is PRECISIONS[name], name


def test_ridge_point_of_a_device():
    device = Accelerator(**DEVICE)
    assert device.ridge_point() == Q_(100, "flop/byte")
    assert device.ridge_point("int8") == Q_(200, "flop/byte")


# Systems and models


def test_a_fleet_needs_no_source():
    fleet = Fleet(name="Mine", node=Node(**NODE), count=4, fabric=NetworkFabric(**LINK))
    assert fleet.total_accelerators == 32
    assert fleet.source is None


@pytest.mark.parametrize(("field", "value"), [("node", None), ("fabric", "NDR"), ("fabric", 400)])
def test_a_fleet_is_made_of_nodes_and_a_fabric(field, value):
    parts = {"name": "Mine", "node": Node(**NODE), "count": 4, "fabric": NetworkFabric(**LINK)}
    with pytest.raises(ConfigError, match=field) as caught:
        Fleet(**parts | {field: value})
    assert caught.value.argument == field


@pytest.mark.parametrize("count", [0, -1, 1.5, math.nan, True, "four"])
def test_a_fleet_counts_in_whole_nodes(count):
    with pytest.raises(ConfigError, match="count"):
        Fleet(name="Mine", node=Node(**NODE), count=count, fabric=NetworkFabric(**LINK))


def test_key_value_heads_divide_the_heads():
    with pytest.raises(ConfigError, match=r"kv_heads = 5 must divide heads = 16") as caught:
        TransformerModel(**TRANSFORMER | {"kv_heads": 5})
    assert caught.value.argument == "kv_heads"
