"""The picture of a scorecard: a point for each limit, on the right side of the line."""

import dataclasses

import matplotlib.pyplot as plt
import pytest

from mlsysim import Q_, ConfigError, Hardware, Limit, Scenarios, evaluate, plot_scorecard


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def points(ax):
    lines = [line for line in ax.get_lines() if line.get_marker() not in ("None", None, "")]
    return [(float(line.get_xdata()[0]), line.get_marker()) for line in lines]


def test_broken_limits_stand_to_the_right():
    _, ax = plot_scorecard(evaluate(Scenarios.Smart_Doorbell))
    drawn = points(ax)
    assert [marker for _, marker in drawn] == ["o", "X", "o"]
    assert drawn[1][0] == pytest.approx(1.376, rel=0.01)
    assert all(share < 1 for share, marker in drawn if marker == "o")


def test_a_limit_from_below_is_turned_round():
    card = evaluate(Scenarios.Frontier_Training)
    _, ax = plot_scorecard(card)
    assert all(share < 1 for share, _ in points(ax))


def test_what_is_not_known_has_a_shape_of_its_own():
    scenario = dataclasses.replace(
        Scenarios.Autonomous_Vehicle,
        system=dataclasses.replace(Hardware.Jetson_Orin_NX, tdp=None),
        limits=(Limit(metric="energy", at_most=Q_(1, "J")),),
    )
    _, ax = plot_scorecard(evaluate(scenario))
    assert (1.0, "D") in points(ax)


def test_it_draws_on_axes_that_are_given():
    figure, ax = plt.subplots()
    assert plot_scorecard(evaluate(Scenarios.Local_Training), ax=ax) == (figure, ax)
    figure.canvas.draw()


def test_only_scorecards_are_drawn():
    with pytest.raises(ConfigError, match="not a Scorecard"):
        plot_scorecard(Scenarios.Local_Training)
