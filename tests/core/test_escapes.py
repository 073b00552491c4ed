"""Names that people choose cannot drive a terminal or a page, wherever they are printed."""

from dataclasses import replace
from itertools import pairwise

import pytest

from mlsysim import (
    Hardware,
    Models,
    Scenario,
    SingleNodeSolver,
    SustainabilitySolver,
    Systems,
    advise,
    contrast,
    diagnose,
    evaluate,
)
from mlsysim.core.provenance import describe
from mlsysim.registry import Infra

DRIVING = "a\x1b[31mred\x1b[0m\x07\u202e"
GPU = replace(Hardware.H100, name=DRIVING, source=replace(Hardware.H100.source, title=DRIVING))
MODEL = replace(Models.Llama3_8B, name=DRIVING)
FLEET = replace(Systems.Clusters.Research_256, name=DRIVING)


def printed():
    result = SingleNodeSolver.solve(model=Models.Llama3_70B, hardware=GPU)
    yield "result", str(result)
    yield "derivation", str(result.explain("latency"))
    yield "whole derivation", str(result.explain())
    grid = replace(Infra.Quebec, name=DRIVING)
    yield (
        "region",
        str(SustainabilitySolver.solve(fleet=FLEET, duration_days=1, datacenter=grid)),
    )
    card = evaluate(
        Scenario(
            name=DRIVING,
            description=DRIVING,
            task="inference",
            workload=MODEL,
            system=GPU,
        )
    )
    yield "scorecard", str(card)
    few = {"tp_size": [1, 8], "cp_size": 1, "schedule": "1f1b", "zero_stage": 1}
    advice = advise(
        model=MODEL, fleet=[FLEET, Systems.Clusters.Research_256], batch_size=256, **few
    )
    yield "advice", str(advice)
    for item in advice.alternatives:
        yield f"alternative {item.lever}", str(item)
    yield "contrast", str(contrast(advice.best, advice.plans.result(5)))
    plan = {"model": MODEL, "fleet": FLEET, "batch_size": 256, "tp_size": 16, "pp_size": 4}
    for found in diagnose(plan | {"seq_len": 2048, "microbatch_count": 32}):
        yield "diagnosis", str(found)
    yield "repr", repr(GPU)


def test_nothing_printed_drives_the_terminal():
    seen = dict(printed())
    assert len(seen) > 9
    assert [name for name, text in seen.items() if "\x1b" in text or "\u202e" in text] == []
    assert "\\x1b[31mred" in seen["scorecard"]


@pytest.mark.parametrize("key", ["a`](javascript:x)", "a b", "<b>x</b>", "]{#x}\n\n# head"])
def test_keys_are_text_on_a_page(key):
    (line, *_) = describe({key: Hardware.H100}, {}).split("\n\n:   ")
    term, anchor = line.rsplit("{#", 1)
    assert "\n" not in line
    assert not set("`<>") & {b for a, b in pairwise(term) if a != "\\"}
    assert anchor[:-1].replace("-", "").isalnum()
    assert describe({"H100": Hardware.H100}, {}).startswith("[`H100`]{#H100}\n")
