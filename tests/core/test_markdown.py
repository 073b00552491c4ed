"""Markdown representations show names as they are, whatever the names hold."""

import dataclasses
import re

import pytest

from mlsysim import (
    Q_,
    Calibrations,
    ConfigError,
    DistributedSolver,
    Hardware,
    Infra,
    Limit,
    Models,
    Scenario,
    SingleNodeSolver,
    Source,
    SustainabilitySolver,
    Systems,
    evaluate,
)
from mlsysim.core.provenance import describe, escaped
from mlsysim.core.table import Column, Table

EVIL = "<script>x</script> [a](javascript:b) | `c` *d* _e_ $f$ &lt;"
PAPER = Source(title=EVIL, url="https://example.org/a_(b)|c", locator=EVIL, note=EVIL)
# Marks that no backslash takes their meaning from.
BARE = re.compile(r"(?<!\\)(<script|<|>|\[a|\]\(javascript)")


def bare(text, *allowed):
    for known in allowed:
        text = text.replace(known, "")
    return BARE.findall(text)


def test_marks_are_escaped_and_words_stay():
    assert escaped("GPT-4 (unofficial), Qwen3_32B 50%") == "GPT-4 (unofficial), Qwen3_32B 50%"
    assert escaped("a|b") == r"a\|b"
    assert escaped("<b>") == r"\<b\>"
    assert escaped("two\nlines") == "two lines"
    assert not bare(escaped(EVIL))


def test_results():
    constants = dataclasses.replace(Calibrations.H100_Megatron, name=EVIL)
    step = DistributedSolver.solve(
        model=Models.Llama3_8B,
        fleet=Systems.Research_256,
        batch_size=256,
        calibration=constants,
    )
    text = step._repr_markdown_()
    assert not bare(text)
    rows = [line for line in text.splitlines() if "script" in line]
    assert rows
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 3 for row in rows)
    device = dataclasses.replace(Hardware.T4, name=EVIL)
    passed = SingleNodeSolver.solve(model=Models.Llama3_8B, hardware=device)
    assert EVIL in passed.reasons[0]
    assert not bare(passed._repr_markdown_())
    grid = dataclasses.replace(Infra.Quebec, name=EVIL)
    year = SustainabilitySolver.solve(
        fleet=Systems.Research_256, duration_days=365, datacenter=grid
    )
    assert not bare(year._repr_markdown_())


def test_derivations():
    device = dataclasses.replace(Hardware.A100, name=EVIL, source=PAPER, field_sources={})
    text = SingleNodeSolver.solve(model=Models.ResNet50, hardware=device)
    text = text.explain("latency")._repr_markdown_()
    assert escaped(EVIL) in text
    table = text[text.index("| Input |") :]
    assert not bare(table)


def test_tables_and_lists_of_rows():
    table = Table({EVIL: Column([EVIL, 1.5], sources=[PAPER, PAPER], head=EVIL)})
    text = table._repr_markdown_()
    assert not bare(text)
    assert "(https://example.org/a_%28b%29%7Cc)" in text
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 2 for row in text.splitlines())
    row = dataclasses.replace(
        Hardware.A100, name=EVIL, source=PAPER, field_sources={}, estimated={"tdp"}
    )
    assert not bare(describe({"row": row}, {}))


def test_scorecards():
    scenario = Scenario(
        name=EVIL,
        task="inference",
        workload=Models.ResNet50,
        system=dataclasses.replace(Hardware.T4, name=EVIL),
        limits=(Limit(metric="latency", at_most=Q_(10, "ms")),),
    )
    assert not bare(evaluate(scenario)._repr_markdown_())


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "https://a b", "//a", "ftp://a",
     'https://a"onclick="b', "https://a<b>", "https://a\n"],
)  # fmt: skip
def test_sources_link_to_pages_only(url):
    with pytest.raises(ConfigError) as caught:
        Source(title="A page", url=url)
    assert caught.value.argument == "url"


def test_html_links_to_the_same_address():
    table = Table({"x": Column([1.5], sources=[PAPER])})
    assert 'href="https://example.org/a_(b)|c"' in table._repr_html_()
