"""Rows by their names, over all catalogs."""

import pytest

from mlsysim import Accelerator, Hardware, Models, Systems, UnknownEntryError, Workload
from mlsysim.core.types import Calibration, GridProfile, Node, TransformerModel
from mlsysim.registry.names import entries, row_of


@pytest.mark.parametrize(
    ("name", "kinds", "row"),
    [
        ("H100", (Accelerator,), Hardware.H100),
        ("h100", (Accelerator,), Hardware.H100),
        ("llama-3-8b", (Workload,), Models.Llama3_8B),
        ("dgx h100", (Node, Accelerator), Systems.Nodes.DGX_H100),
    ],
)
def test_a_row_has_one_name_in_several_spellings(name, kinds, row):
    assert row_of(name, kinds) is row


@pytest.mark.parametrize("name", ["H1000", "DGX_H100", "", 5, None])
def test_a_name_of_another_kind_is_refused(name):
    with pytest.raises(UnknownEntryError):
        row_of(name, (Accelerator,))


def test_entries_are_those_of_a_kind():
    assert entries(Accelerator)["H100"] is Hardware.H100
    assert "DGX_H100" not in entries(Accelerator)
    assert all(isinstance(row, Calibration) for row in entries(Calibration).values())
    assert len(entries(Accelerator, Node)) == len(entries(Accelerator)) + len(entries(Node))


@pytest.mark.parametrize(
    ("name", "kinds", "wanted"),
    [
        ("DGX_H100", (Accelerator,), "H100"),
        ("dgx-h100", (Accelerator,), "H100"),
        ("Research_256", (Accelerator, Node), "H100"),
        ("ResNet50", (TransformerModel,), "TransformerModel"),
        ("H100", (GridProfile,), "GridProfile"),
    ],
)
def test_a_row_of_another_kind_is_named_as_such(name, kinds, wanted):
    with pytest.raises(UnknownEntryError) as caught:
        row_of(name, kinds, "argument")
    row = row_of(name, (object,))
    assert type(row).__name__ in caught.value.message
    assert wanted in caught.value.message.rpartition("must be")[2]
