"""Devices and servers in YAML files."""

import pytest

from mlsysim import Q_, Accelerator, ConfigError, Node, SimulationConfig, Systems, load_hardware
from tests.cli.calls import call, data

CARD = """
name: Workshop card
source: Made up
release_year: 2026
compute: {bf16: 200 TFLOP/s, int8: 400 TOPS}
memory: {capacity: 48 GB, bandwidth: 900 GB/s}
tdp: 300 W
estimated: [tdp]
"""
BOX = """
name: Workshop box
source: {title: Made up, note: for a test}
accelerator: card.yaml
accelerators_per_node: 2
scale_up: PCIe5
nics_per_node: 1
"""


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "card.yaml").write_text(CARD)
    (tmp_path / "box.yaml").write_text(BOX)
    return tmp_path


def test_a_file_has_the_fields_of_a_device_or_a_server():
    card, box = load_hardware("card.yaml"), load_hardware("box.yaml")
    assert isinstance(card, Accelerator)
    assert isinstance(box, Node)
    assert card.compute.precisions == ("bf16", "int8")
    assert card.memory.bandwidth == Q_(900, "GB/s")
    assert card.tdp == Q_(300, "W")
    assert card.is_estimated("tdp")
    assert not card.is_estimated("memory")
    assert box.accelerator == card
    assert box.accelerators_per_node == 2
    assert box.scale_up == Systems.Links.PCIe5
    assert box.source.note == "for a test"
    assert box.power is None


def test_a_server_may_contain_its_device_and_its_links(files):
    whole = BOX.replace("card.yaml", "{" + ", ".join(CARD.strip().splitlines()) + "}").replace(
        "PCIe5", "{name: Bridge, source: Made up, bandwidth: 50 GB/s, latency: 1 us}"
    )
    (files / "whole.yaml").write_text(whole)
    server = load_hardware("whole.yaml")
    assert server.accelerator == load_hardware("card.yaml")
    assert server.scale_up.bandwidth == Q_(50, "GB/s")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("tdp: 300 W", "tdp: 300 GB", 7),
        ("tdp: 300 W", "tdp: 300", 7),
        ("tdp: 300 W", "colour: red", 7),
        ("tdp: 300 W", "generation: hoper", 7),
        ("release_year: 2026", "release_year: 2026.5", 4),
        ("900 GB/s", "0 GB/s", 6),
        ("bandwidth: 900 GB/s", "latency: 1 us", 6),
        ("estimated: [tdp]", "estimated: [price]", None),
        ("name: Workshop card\n", "", None),
        ("estimated: [tdp]", "- tdp", None),
    ],
)
def test_a_fault_is_refused_with_its_file_and_line(files, old, new, line):
    (files / "wrong.yaml").write_text(CARD.replace(old, new))
    with pytest.raises(ConfigError) as refused:
        load_hardware("wrong.yaml")
    (fault,) = refused.value.faults[:1]
    assert fault.file == "wrong.yaml"
    assert line is None or fault.line == line


def test_commands_take_files_as_hardware():
    step = data(
        *("solve", "inference", "--model", "Llama3_8B", "--hardware", "card.yaml"),
        *("--set", "seq_len=1", "--set", "precision=bf16"),
    )
    assert step["result"]["memory_time"]["value"] > 2 * 8.0 / 0.9
    plan = data(
        *("serve-plan", "--model", "Llama3_8B", "--node", "box.yaml", "--arrival-rate", "1"),
        *("--ttft-p99", "5 s", "--confidence", "null"),
    )
    assert plan["servers"] == {"Workshop box": 1}
    training = data(
        *("advise", "--model", "Llama3_8B", "--node", "box.yaml", "--count", "2"),
        *("--fabric", "Ethernet_100G", "--lora-rank", "8", "--batch-size", "16"),
        *("--seq-len", "1024", "--precision", "bf16"),
    )
    assert training["can_run"] > 0
    assert training["configuration"]["fleet"] == "2 x Workshop box"


def test_a_part_of_a_server_trains_and_serves():
    """LoRA of a model of 32B on two of the eight cards of a server."""
    words = ("--model", "Qwen3_32B", "--node", "L40S_Server:2", "--precision", "bf16")
    found = data("advise", *words, "--lora-rank", "16", "--batch-size", "16", "--seq-len", "2048")
    sizes = found["configuration"]
    assert sizes["tp_size"] * sizes["pp_size"] * sizes["cp_size"] <= 2
    assert sizes["recompute"] == "full"
    served = data("serve-plan", *words, "--arrival-rate", "0.1", "--ttft-p99", "30 s")
    assert served["best"]["tp_size"] == 2


def test_a_configuration_takes_files_and_parts():
    given = {"name": "own", "task": "serving", "model": "Llama3_8B"}
    given["arguments"] = {"seq_len": 1024, "precision": "bf16"}
    for system in ({"hardware": "card.yaml"}, {"node": "box.yaml"}, {"node": "L40S_Server:2"}):
        scenario = SimulationConfig.from_dict({**given, "system": system}).scenario()
        assert scenario.system.name in {
            "Workshop card",
            "Workshop box",
            "Server of L40S, 2 of 8 devices",
        }


@pytest.mark.parametrize(
    "name", ["box.yaml", "L40S_Server:2", "L40S:2", "missing.yaml", "L40S_Server:9"]
)
def test_other_hardware_and_parts_that_do_not_exist_are_refused(name):
    words = ["solve", "inference", "--model", "Llama3_8B", "--hardware", name]
    assert call(*words).exit_code == 2
