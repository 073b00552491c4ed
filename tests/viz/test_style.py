"""The style of figures: its colors stand out from the page and from each other; labels at lines."""

from __future__ import annotations

import itertools
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
import yaml
from matplotlib.colors import to_rgb

from mlsysim.viz import COLORS, label_lines
from tests.conftest import ROOT

CSS = (ROOT / "docs/assets/site.css").read_text(encoding="utf-8")
TO_XYZ = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])
# Machado, Oliveira and Fernandes 2009: colors as seen without one kind of cone.
CONES = {
    "all": np.eye(3),
    "no red": np.array(
        [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]
    ),
    "no green": np.array(
        [[0.3673, 0.8607, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]]
    ),
    "no blue": np.array(
        [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]]
    ),
}
# Of CIELAB, where a difference of about 2 can just be seen.
APART = 15


@pytest.fixture(autouse=True)
def _styled():
    with plt.style.context("mlsysim.viz.figures"):
        yield
    plt.close("all")


def turned_over(color: np.ndarray) -> np.ndarray:
    """What a dark page makes of a color: the filter of the style sheet."""
    share = float(re.findall(r"filter: invert\(([\d.]+)\) hue-rotate\(180deg\)", CSS)[0])
    turn = 2 * np.array([0.213, 0.715, 0.072]) - np.eye(3)
    return np.clip(turn @ (share + (1 - 2 * share) * color), 0, 1)


def linear(color: np.ndarray) -> np.ndarray:
    return np.where(color <= 0.04045, color / 12.92, ((color + 0.055) / 1.055) ** 2.4)


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    low, high = sorted(float(linear(color) @ TO_XYZ[1]) for color in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(color: np.ndarray, cones: np.ndarray) -> np.ndarray:
    seen = np.clip(cones @ linear(color), 0, 1)
    x, y, z = np.cbrt(np.maximum(TO_XYZ @ seen / TO_XYZ.sum(axis=1), 0.009))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def palette() -> list[np.ndarray]:
    return [np.array(to_rgb(entry["color"])) for entry in plt.rcParams["axes.prop_cycle"]]


def pages() -> list[np.ndarray]:
    """Background of the light and of the dark page."""
    light, dark = re.findall(r"--bg:\s*(#[0-9a-f]{6})", CSS)
    return [np.array(to_rgb(light)), np.array(to_rgb(dark))]


def test_colors_stand_out_on_both_pages():
    light, dark = pages()
    for color in palette():
        assert contrast(color, light) >= 3, color
        assert contrast(turned_over(color), dark) >= 3, color
    text = np.array(to_rgb(plt.rcParams["text.color"]))
    assert contrast(text, light) >= 7
    assert contrast(turned_over(text), dark) >= 7


@pytest.mark.parametrize("cones", CONES)
def test_colors_can_be_told_apart(cones):
    for shown in (lambda color: color, turned_over):
        for one, other in itertools.combinations(palette(), 2):
            distance = np.linalg.norm(
                lab(shown(one), CONES[cones]) - lab(shown(other), CONES[cones])
            )
            assert distance >= APART, (one, other)


def test_what_colors_mean_is_in_the_palette():
    assert {int(color.removeprefix("C")) for color in COLORS.values()} <= set(range(len(palette())))
    assert len({COLORS[name] for name in ("compute", "communication", "memory", "idle")}) == 4


def test_both_renderers_use_the_style():
    settings = yaml.safe_load((ROOT / "_quarto.yml").read_text(encoding="utf-8"))["format"]["html"]
    size = [settings["fig-width"], settings["fig-height"]]
    assert size == plt.rcParams["figure.figsize"]


def lines(*ends: float):
    _, ax = plt.subplots()
    for end in ends:
        ax.plot([0, 1], [0, end], label=f"to {end}")
    ax.set(xlim=(0, 1), ylim=(0, 10))
    return ax


def test_labels_are_at_the_ends_of_their_lines():
    ax = lines(9, 1, 5)
    ax.plot([0, 1], [2, 2])
    labels = label_lines(ax)
    assert [label.get_text() for label in labels] == ["to 1", "to 5", "to 9"]
    for label in labels:
        box = label.get_window_extent()
        x, y = ax.transData.transform(label.xy)
        assert x < box.x0
        assert (box.y0 + box.y1) / 2 == pytest.approx(y, abs=1)


def test_labels_that_would_overlap_move_apart():
    labels = label_lines(lines(5, 5.01, 5.02, 9, 0.5))
    boxes = [label.get_window_extent() for label in labels]
    assert all(low.y1 <= high.y0 + 1e-6 for low, high in itertools.pairwise(boxes))
    # Three in the middle, around the mean of their places; the others stay.
    assert labels[2].get_text() == "to 5.01"
    assert [labels[i].xyann[1] for i in (0, 2, 4)] == pytest.approx([0, 0, 0], abs=0.01)
    assert labels[1].xyann[1] < 0 < labels[3].xyann[1]


def test_a_line_is_labeled_where_it_is_last_seen():
    _, ax = plt.subplots()
    ax.plot([0, 1, 2, 3], [1, 2, 50, 60], label="leaves")
    ax.plot([0, 1, 2, 3], [1, 2, 3, np.nan], label="ends")
    ax.plot([0, 1], [50, 50], label="away")
    ax.set(xlim=(3, 0), ylim=(0, 10))
    assert {label.get_text(): label.xy for label in label_lines(ax)} == {
        "leaves": (1, 2),
        "ends": (2, 3),
    }


def test_labels_have_the_contrast_of_text():
    _, ax = plt.subplots()
    light, dark = pages()
    for i in range(len(palette())):
        ax.plot([0, 1], [i, i], label=str(i))
    for label in label_lines(ax):
        color = np.array(to_rgb(label.get_color()))
        assert contrast(color, light) >= 4.5
        assert contrast(turned_over(color), dark) >= 4.5
