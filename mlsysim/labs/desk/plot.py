"""A chart block as a picture in SVG."""

from __future__ import annotations

import io

from mlsysim.labs.blocks import Block

__all__ = ["plot"]

# Orange and blue differ for those who do not tell red from green.
_COLORS = {"plain": "#0072B2", "good": "#0072B2", "warn": "#E69F00", "bad": "#D55E00"}
_OTHERS = ("#666666", "#999999", "#BBBBBB")


def plot(block: Block) -> str:
    """Return the SVG of a chart."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    for number, line in enumerate(block["series"]):
        x, y = zip(*line["points"], strict=True)
        first = number == 0 or line["tone"] != "plain"
        color = _COLORS[line["tone"]] if first else _OTHERS[number % len(_OTHERS)]
        axes.plot(x, y, marker="o", markersize=4, label=line["name"], color=color)
    if (marker := block["marker"]) is not None:
        axes.plot(marker["x"], marker["y"], "D", markersize=9, color="black")
        axes.annotate(
            marker["label"],
            (marker["x"], marker["y"]),
            textcoords="offset points",
            xytext=(8, 8),
        )
    if (rule := block["rule"]) is not None:
        axes.axhline(rule["y"], linestyle="--", color="#666666")
        axes.annotate(rule["label"], (block["x"]["ticks"][0], rule["y"]), va="bottom")
    if block["x"]["scale"] == "log2":
        axes.set_xscale("log", base=2)
    ticks = block["x"]["ticks"]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set(xlabel=block["x"]["label"], ylabel=block["y"]["label"])
    axes.set_ylim(block["y"]["min"], block["y"]["max"])
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    page = io.StringIO()
    figure.savefig(page, format="svg", metadata={"Date": None})
    return page.getvalue().partition("<svg")[1] + page.getvalue().partition("<svg")[2]
