"""The hardware registry: every row is sourced and plausible; a few are typed from data sheets."""

import dataclasses

import pytest

from mlsysim.core.errors import UnknownEntryError
from mlsysim.core.types import GENERATIONS, Accelerator, Source, cite
from mlsysim.core.units import Q_
from mlsysim.registry.hardware import Hardware

ROWS = dict(Hardware.items())
# By name or by generation.
# Blackwell Ultra gave up most of int8 for fp4; TPU v4 computes int8 at the rate of bf16.
# fmt: off
UNUSUAL = {(key, narrow) for key in ("B300", "GB300") for narrow in ("int8", "fp4")} | {
    ("TPUv4", "int8"),
    # Trainium computes tf32 at the rate of fp16, and its block formats of 8 and 4 bits at one rate.
    ("Trainium2", "fp16"), ("Trainium3", "fp16"), ("Trainium3", "fp8"), ("Trainium3", "fp4"),
    # Rubin gave up most of int8, and has most of its arithmetic in fp4 and fp8.
    ("Rubin", "fp8"), ("Rubin", "int8"),
    # Cards for games halve products with 32-bit sums, of 16 bits and of fp8, but not int8 and fp4.
    ("RTX_3090", "int8"), ("RTX_4090", "int8"), ("RTX_5090", "int8"), ("RTX_5090", "fp4"),
    ("RTX_3060", "int8"), ("RTX_3080", "int8"), ("RTX_4070", "int8"), ("RTX_5070", "int8"),
    ("RTX_5070", "fp4"), ("RTX_5080", "fp4"),
    ("RTX_3070", "int8"), ("RTX_3080_Ti", "int8"), ("RTX_4080", "int8"),
    # CDNA 2 and CDNA 5 compute int8 at the rate of fp16.
    ("cdna2", "int8"), ("cdna5", "int8"),
    # The chips of 2026 have most of their arithmetic in fp8 and fp4, and no more int8 than bf16.
    ("Ascend_950DT", "fp8"), ("MI455X", "fp8"), ("TPU8t", "fp8"),
    ("TPU8t", "int8"), ("TPU8t", "fp4"), ("TPU8t", "int4"),
    ("TPU8i", "fp8"), ("TPU8i", "fp4"),
}

# fmt: on

OPTIONAL = ("tdp", "interconnect_bandwidth", "host_bandwidth", "unit_price")


def valued_fields(row: Accelerator) -> list[str]:
    """Return the dotted names of all numbers that the row states."""
    found = ["release_year", "memory.capacity", "memory.bandwidth"]
    found += [f"compute.{name}" for name in row.compute.precisions]
    if row.memory.reported is not None:
        found.append("memory.reported")
    return found + [name for name in OPTIONAL if getattr(row, name) is not None]


def test_every_number_is_sourced_or_marked_as_estimated():
    for key, row in ROWS.items():
        stated = valued_fields(row)
        for path in stated:
            source = row.source_of(path)
            assert isinstance(source, Source)
            if source is cite("assumption"):
                assert row.is_estimated(path), f"{key}.{path} rests on an assumption"
            else:
                assert source.url.startswith("https://"), (key, path)
                assert source.locator, (key, path)
                assert source.checked, (key, path)
        for path in row.estimated:
            assert any(field == path or field.startswith(f"{path}.") for field in stated), path


def test_numbers_are_within_bounds():
    for key, row in ROWS.items():
        assert 2010 <= row.release_year <= 2030, key
        assert 1e5 <= row.memory.si("capacity") <= 1e12, key
        assert 1e8 <= row.memory.si("bandwidth") <= 5e13, key
        for name in row.compute.precisions:
            assert 1e8 <= row.compute.si(name) <= 1e17, (key, name)
            ridge = row.ridge_point(name).to("flop/byte").magnitude
            assert 1e-3 <= ridge <= 1e4, (key, name)
        if row.tdp is not None:
            best = max(row.compute.si(name) for name in row.compute.precisions)
            assert 1e9 <= best / row.si("tdp") <= 2e13, key


@pytest.mark.parametrize(
    ("wide", "narrow", "lowest", "highest"),
    [
        # fp32 runs on vector lanes, the narrow formats on matrix units where there are some
        ("fp32", "fp16", 1.0, 32.0),
        ("fp32", "int8", 1.0, 64.0),
        ("tf32", "fp16", 1.9, 2.1),
        ("fp16", "bf16", 1.0, 1.0),
        ("fp16", "fp8", 1.9, 2.1),
        ("bf16", "fp8", 1.0, 2.1),
        ("fp16", "int8", 0.5, 4.1),
        ("bf16", "int8", 1.9, 2.1),
        ("fp8", "int8", 1.0, 2.0),
        ("fp8", "fp4", 1.9, 2.1),
        ("int8", "int4", 1.9, 2.1),
    ],
)
def test_narrower_formats_run_faster_by_a_plausible_factor(wide, narrow, lowest, highest):
    for key, row in ROWS.items():
        usual = UNUSUAL.isdisjoint({(key, narrow), (row.generation, narrow)})
        if usual and {wide, narrow} <= set(row.compute.precisions):
            ratio = row.compute.si(narrow) / row.compute.si(wide)
            assert lowest - 1e-9 <= ratio <= highest + 1e-9, f"{key}: a mistake, or UNUSUAL"


def test_decimal_capacities_come_with_what_the_driver_reports():
    for key, row in ROWS.items():
        capacity = row.memory.si("capacity")
        if capacity % 1e9 == 0:
            assert row.memory.reported is not None, key
            assert row.memory.si("reported") == pytest.approx(capacity, rel=0.08), key


@pytest.mark.parametrize("key", ["B300", "GB300"])
def test_blackwell_ultra_trades_int8_and_fp64_for_fp4(key):
    compute = ROWS[key].compute
    assert 2.9 <= compute.si("fp4") / compute.si("fp8") <= 3.1
    assert compute.si("int8") < 0.1 * compute.si("bf16")
    assert compute.si("fp64") < 0.1 * Hardware.B200.compute.si("fp64")


def test_rows_of_one_chip_share_their_rates():
    assert dataclasses.replace(Hardware.H800.compute, fp64=None) == dataclasses.replace(
        Hardware.H100.compute, fp64=None
    )
    assert Hardware.A100.compute == Hardware.A100_40GB.compute
    assert Hardware.H200.compute == Hardware.H100.compute


# The beginnings of names that show the generation of a chip.
GENERATION = {
    "V100": "volta", "T4": "turing", "A100": "ampere", "A30": "ampere", "A10": "ga10x",
    "A40": "ga10x", "H": "hopper", "GH": "hopper", "B": "blackwell", "GB": "blackwell", "L4": "ada",
    "RTX_PRO": "blackwell_rtx", "Rubin": "rubin", "MI250": "cdna2", "MI300": "cdna3",
    "MI325": "cdna3", "MI35": "cdna4", "MI455": "cdna5", "TPUv4": "tpu_v4", "TPUv5e": "tpu_v5e",
    "TPUv5p": "tpu_v5p", "TPUv6e": "tpu_v6e", "TPUv7x": "tpu_v7x", "TPU8t": "tpu_8t",
    "TPU8i": "tpu_8i", "Trainium1": "trainium1", "Trainium2": "trainium2",
    "Trainium3": "trainium3", "Gaudi2": "gaudi2", "Gaudi3": "gaudi3", "Max_1550": "xe_hpc",
    "Ascend_950": "ascend_950",
}  # fmt: skip


def test_every_data_center_chip_has_its_generation_and_nothing_else_has_one():
    for key, row in ROWS.items():
        starts = [start for start in GENERATION if key.startswith(start)]
        if key not in Hardware.Cloud:
            assert row.generation is None, key
        elif starts:
            assert row.generation == GENERATION[max(starts, key=len)], key
    assert {row.generation for row in Hardware.Cloud} == set(GENERATIONS)


@pytest.mark.parametrize("name", ["Hopper", "h100", "", 9, ["hopper"]])
def test_an_unknown_generation_is_refused(name):
    with pytest.raises(UnknownEntryError, match=r"Accelerator\.generation"):
        dataclasses.replace(Hardware.H100, generation=name)


# Typed from the data sheets, not from the registry.
@pytest.mark.parametrize(
    ("key", "path", "printed"),
    [
        ("V100", "compute.fp16", "125 TFLOP/s"),
        ("V100", "memory.bandwidth", "900 GB/s"), ("T4", "compute.int8", "130 TOPS"),
        ("A100_40GB", "memory.bandwidth", "1555 GB/s"), ("A100", "memory.bandwidth", "2.039 TB/s"),
        ("A100", "compute.bf16", "312 TFLOP/s"), ("H100", "compute.bf16", "989.4 TFLOP/s"),
        ("H100", "memory.capacity", "80 GB"), ("H100", "memory.bandwidth", "3.35 TB/s"),
        ("H100", "tdp", "700 W"), ("H200", "memory.capacity", "141 GB"),
        ("H200", "memory.bandwidth", "4.8 TB/s"), ("H200", "memory.reported", "143771 MiB"),
        ("B200", "compute.fp8", "4500 TFLOP/s"), ("B200", "memory.bandwidth", "7.7 TB/s"),
        ("H800", "compute.fp64", "1 TFLOP/s"), ("GB200", "compute.bf16", "2500 TFLOP/s"),
        ("GB200", "memory.capacity", "186 GB"), ("GB300", "compute.fp4", "15 PFLOP/s"),
        ("GB300", "memory.reported", "284208 MiB"), ("B300", "memory.bandwidth", "7.7 TB/s"),
        ("B300", "compute.int8", "153.5 TOPS"), ("TPUv4", "compute.bf16", "275 TFLOP/s"),
        ("M2_Ultra", "memory.bandwidth", "800 GB/s"), ("M4_Max", "memory.bandwidth", "546 GB/s"),
        ("MI300X", "compute.fp16", "1307.4 TFLOP/s"), ("MI300X", "memory.capacity", "192 GB"),
        ("MI325X", "memory.capacity", "256 GiB"), ("MI325X", "memory.bandwidth", "6 TB/s"),
        ("MI355X", "compute.fp8", "5033.2 TFLOP/s"), ("MI355X", "tdp", "1400 W"),
        ("H100_PCIe", "compute.bf16", "756 TFLOP/s"),
        ("H100_PCIe", "memory.bandwidth", "2000 GB/s"),
        ("H100_PCIe", "memory.reported", "81559 MiB"), ("H100_HBM2e", "memory.capacity", "96 GiB"),
        ("H100_HBM2e", "memory.bandwidth", "2.4 TB/s"), ("H100_HBM2e", "tdp", "500 W"),
        ("H20", "compute.fp8", "296 TFLOP/s"), ("H20", "memory.bandwidth", "4 TB/s"),
        ("H20", "tdp", "500 W"), ("H20", "memory.reported", "97871 MiB"),
        ("TPUv6e", "compute.bf16", "918 TFLOP/s"), ("TPUv6e", "compute.int8", "1836 TOPS"),
        ("TPUv6e", "memory.bandwidth", "1638 GB/s"), ("TPUv7x", "compute.bf16", "2307 TFLOP/s"),
        ("TPUv7x", "compute.fp8", "4614 TFLOP/s"), ("TPUv7x", "memory.capacity", "192 GiB"),
        ("TPUv5p", "compute.bf16", "459 TFLOP/s"), ("TPUv5p", "memory.capacity", "95 GiB"),
        ("Jetson_Orin_NX", "memory.bandwidth", "102 GB/s"),
        ("TPUv5e", "compute.bf16", "197 TFLOP/s"), ("TPUv5e", "memory.bandwidth", "819 GB/s"),
        ("TPUv5e", "memory.capacity", "16 GiB"), ("Trainium2", "compute.fp8", "1299 TFLOP/s"),
        ("Trainium2", "memory.capacity", "96 GiB"), ("Trainium3", "compute.bf16", "671 TFLOP/s"),
        ("Trainium3", "memory.bandwidth", "4.9 TB/s"), ("Gaudi3", "compute.bf16", "1677 TFLOP/s"),
        ("L40S", "memory.reported", "46068 MiB"), ("L4", "tdp", "72 W"),
        ("RTX_PRO_6000", "memory.bandwidth", "1597 GB/s"),
        ("RTX_PRO_6000", "compute.fp32", "120 TFLOP/s"), ("GH200", "memory.reported", "97871 MiB"),
        ("H100_NVL", "compute.fp8", "1670.5 TFLOP/s"),
        ("H200_NVL", "memory.reported", "143771 MiB"), ("MI350X", "compute.int8", "4613.7 TOPS"),
        ("RTX_3090", "compute.bf16", "71.2 TFLOP/s"), ("RTX_4070", "tdp", "200 W"),
        ("RTX_4090", "memory.reported", "24564 MiB"), ("RTX_4090", "compute.fp16", "165.2 TFLOP/s"),
        ("RTX_5090", "memory.reported", "32607 MiB"), ("DGX_Spark", "compute.mxfp4", "500 TFLOP/s"),
        ("RTX_5070", "compute.mxfp4", "494 TFLOP/s"), ("M3_Ultra", "memory.capacity", "512 GiB"),
        ("A100_PCIe", "memory.bandwidth", "1935 GB/s"), ("A30", "compute.bf16", "165 TFLOP/s"),
        ("A10", "compute.int8", "250 TOPS"), ("L40", "tdp", "300 W"),
        ("RTX_6000_Ada", "memory.bandwidth", "960 GB/s"),
        ("RTX_A6000", "memory.bandwidth", "768 GB/s"),
        ("RTX_PRO_6000_Workstation", "memory.bandwidth", "1792 GB/s"),
        ("MI455X", "compute.bf16", "5 PFLOP/s"), ("MI455X", "memory.capacity", "432 GiB"),
        ("Ascend_950DT", "compute.bf16", "486 TFLOP/s"),
        ("GH200_HBM3e", "memory.bandwidth", "4.8 TB/s"), ("TPU8t", "compute.fp4", "12.6 PFLOP/s"),
        ("TPU8t", "memory.capacity", "216 GiB"), ("TPU8i", "memory.bandwidth", "8601 GB/s"),
        ("Coral", "compute.int8", "4 TOPS"),
    ],
)  # fmt: skip
def test_published_values(key, path, printed):
    value = ROWS[key]
    for part in path.split("."):
        value = getattr(value, part)
    assert value.to_base_units().magnitude == pytest.approx(Q_(printed).to_base_units().magnitude)
    assert not ROWS[key].is_estimated(path)


@pytest.mark.parametrize(
    ("key", "both_directions"),
    [("V100", 300), ("A100", 600), ("H100", 900), ("H200", 900), ("B200", 1800), ("GB200", 1800),
     ("H800", 400), ("GB300", 1800), ("MI300X", 896), ("TPUv5p", 1200),
     ("TPUv6e", 800), ("TPUv7x", 1200), ("H100_PCIe", 600), ("H20", 900),
     ("A100_PCIe", 600), ("H100_NVL", 600), ("H200_NVL", 900), ("MI455X", 3600), ("TPU8t", 2400),
     ("Rubin", 3600), ("RTX_A6000", 112.5)],
)  # fmt: skip
def test_links_are_per_direction(key, both_directions):
    rate = ROWS[key].interconnect_bandwidth.to("GB/s").magnitude
    assert 2 * rate == pytest.approx(both_directions)


@pytest.mark.parametrize(
    ("key", "precision", "with_sparsity"),
    [("A100", "fp16", 624), ("A100", "int8", 1248), ("H100", "fp16", 1979), ("H100", "fp8", 3958),
     ("H200", "bf16", 1979), ("B200", "fp8", 9000), ("B200", "fp4", 18000),
     ("GB200", "fp8", 10_000), ("GB200", "fp4", 20_000), ("GB300", "bf16", 5000)],
)  # fmt: skip
def test_rates_are_dense(key, precision, with_sparsity):
    rate = ROWS[key].compute.rate(precision).to("TFLOP/s").magnitude
    assert 2 * rate == pytest.approx(with_sparsity, rel=1e-3)


def test_jetson_counts_the_gpu_alone():
    """Of 100 sparse TOPS, 40 are the fixed-function engines'; half of the rest is dense."""
    assert ROWS["Jetson_Orin_NX"].compute.int8.to("TOPS").magnitude == pytest.approx(
        (100 - 40) / 2, rel=0.01
    )


def test_a_variant_is_made_by_replacing_fields():
    overclocked = dataclasses.replace(Hardware.T4, name="T4 at 75 W", tdp=Q_("75 W"))
    assert overclocked.si("tdp") == 75
    assert Hardware.T4.si("tdp") == 70
