"""Draw a chart block as SVG."""

from __future__ import annotations

import io

from mlsysim.labs.blocks import Block

__all__ = ["plot"]

# From the palette in mlsysim.viz.figures; the other lines are gray.
_COLORS = {"plain": "C0", "good": "C0", "warn": "C4", "bad": "C1"}
_OTHERS = ("C5", "#999999", "#BBBBBB")


def plot(block: Block) -> str:
    """Return the SVG of a chart, in the style of the site's figures."""
    from matplotlib import style

    with style.context("mlsysim.viz.figures"):
        return _draw(block)


def _draw(block: Block) -> str:
    from matplotlib.figure import Figure

    figure = Figure(facecolor="white")
    axes = figure.subplots()
    for number, line in enumerate(block["series"]):
        x, y = zip(*line["points"], strict=True)
        first = number == 0 or line["tone"] != "plain"
        color = _COLORS[line["tone"]] if first else _OTHERS[number % len(_OTHERS)]
        axes.plot(x, y, marker="o", markersize=4, label=line["name"], color=color)
    if (marker := block["marker"]) is not None:
        axes.plot(marker["x"], marker["y"], "D", markersize=9, color="C6")
        axes.annotate(
            marker["label"],
            (marker["x"], marker["y"]),
            textcoords="offset points",
            xytext=(8, 8),
        )
    if (rule := block["rule"]) is not None:
        axes.axhline(rule["y"], linestyle="--", color="C5")
        axes.annotate(rule["label"], (block["x"]["ticks"][0], rule["y"]), va="bottom")
    if block["x"]["scale"] == "log2":
        axes.set_xscale("log", base=2)
    axes.set_yscale(block["y"].get("scale", "linear"))
    ticks = block["x"]["ticks"]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set(xlabel=block["x"]["label"], ylabel=block["y"]["label"])
    axes.set_ylim(block["y"]["min"], block["y"]["max"])
    axes.legend()
    page = io.StringIO()
    figure.savefig(page, format="svg", metadata={"Date": None})
    return page.getvalue().partition("<svg")[1] + page.getvalue().partition("<svg")[2]
