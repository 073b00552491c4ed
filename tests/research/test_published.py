"""The file of published runs is what the measurements say."""

from mlsysim.registry.calibration.published import PATH
from research.published import best_runs, written


def test_the_file_is_up_to_date():
    assert PATH.read_text(encoding="utf-8") == written()


def test_a_run_is_the_fastest_of_its_kind():
    runs = best_runs()
    kinds = [
        tuple(run[name] for name in ("model", "device", "precision", "seq_len")) for run in runs
    ]
    assert len(set(kinds)) == len(kinds) > 100
    (dsv3,) = (run for run in runs if run["id"] == "run_dsv3_pretrain")
    assert float(dsv3["tokens_per_second"]) == 1543.2
