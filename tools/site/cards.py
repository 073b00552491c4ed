"""``python -m tools.site.cards``: the pictures that messengers show next to a link to a page.

There is one for each folder of pages, which names it in its ``_metadata.yml``. Each shows the
roofline of a device with models on it, computed by the package.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mlsysim import Hardware, Models, SingleNodeSolver

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (1200, 630)
DPI = 100
BACK, LINE, TEXT, MUTED, MARK = "#15181c", "#79bfe6", "#f2f4f6", "#a0a9b3", "#ffd27a"
CARDS = {
    "start": "Closed-form physics of\nmachine-learning systems",
    "tutorials": "Tutorials: predict, run, vary",
    "labs": "Labs: predict, then try it\nin your browser",
    "how-to": "How to: one task, one page",
    "zoo": "Hardware, models, fleets:\neach number with its source",
    "concepts": "Concepts: equations, errors,\nterms",
    "api": "API reference",
}


def write(folder: Path) -> None:
    """Draw every card into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in CARDS.items():
        # The defaults, whatever the machine's settings for plots are.
        with mpl.rc_context(mpl.rcParamsDefault):
            figure = draw("mlsysim", text)
            figure.savefig(folder / f"{name}.png", dpi=DPI, metadata={"Software": None})


def draw(name: str, text: str) -> Figure:
    """Return one card."""
    figure = Figure(figsize=(SIZE[0] / DPI, SIZE[1] / DPI), facecolor=BACK)
    FigureCanvasAgg(figure)
    _roofline(figure.add_axes((0.42, 0.08, 0.54, 0.72)))
    figure.text(0.06, 0.74, name, color=TEXT, fontsize=64, weight="bold")
    figure.text(0.06, 0.66, text, color=LINE, fontsize=27, va="top", linespacing=1.4)
    figure.text(
        0.06, 0.1, "shows its work\ncites its numbers\nstates its error",
        color=MUTED, fontsize=17, linespacing=1.6,
    )  # fmt: skip
    return figure


def _roofline(ax: Axes) -> None:
    """Draw the roofline of an H100, and networks under half of it, without axes."""
    device = Hardware.H100
    peak = device.compute.rate("fp16").to("TFLOP/s").magnitude
    slope = device.memory.bandwidth.to("TB/s").magnitude
    ridge = peak / slope
    left, right = 2, 20_000
    for roof, style, width in ((peak, "-", 7.0), (peak / 2, "--", 2.5)):
        ax.plot(
            [left, roof / slope, right], [left * slope, roof, roof],
            style, color=LINE, lw=width, solid_capstyle="round",
        )  # fmt: skip
    for model, batch in (
        (Models.AlexNet, 1),
        (Models.MobileNetV2, 8),
        (Models.ResNet50, 1),
        (Models.BERT_Base, 1),
        (Models.BERT_Base, 16),
    ):
        r = SingleNodeSolver.solve(
            model=model, hardware=device, batch_size=batch, efficiency=0.5
        )  # fmt: skip
        rate = (r.flops / r.latency).to("TFLOP/s").magnitude
        ax.plot(r.arithmetic_intensity.magnitude, rate, "o", ms=17, color=MARK, mec=BACK, mew=3)
    ax.set(xscale="log", yscale="log", xlim=(left, right), ylim=(5, peak * ridge**0.2))
    ax.set_axis_off()


if __name__ == "__main__":
    write(Path("docs/assets/cards"))
