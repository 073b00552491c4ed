"""The picture of a pipeline: a block for each pass, where it ran."""

import matplotlib.pyplot as plt
import pytest

from mlsysim import ConfigError, plot_timeline, simulate_pipeline


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.mark.parametrize(
    ("schedule", "chunks", "named"),
    [
        ("1f1b", 1, ["forward", "backward"]),
        ("zb-h1", 1, ["forward", "input gradients", "weight gradients"]),
        ("1f1b", 2, [f"{w}, chunk {c}" for w in ("forward", "backward") for c in (1, 2)]),
    ],
)
def test_a_block_for_each_pass(schedule, chunks, named):
    step = simulate_pipeline(schedule, pp_size=3, microbatch_count=6, virtual_stages=chunks)
    _, ax = plot_timeline(step)
    drawn = {(b.get_x(), b.get_width(), round(b.get_y() + b.get_height() / 2)) for b in ax.patches}
    assert drawn == {(float(e.start), float(e.duration), e.stage + 1) for e in step.events}
    assert [text.get_text() for text in ax.get_legend().get_texts()] == named
    assert sorted(text.get_text() for text in ax.texts) == sorted(
        str(event.microbatch + 1) for event in step.events
    )


def test_numbers_fit_their_blocks_or_are_left_out():
    step = simulate_pipeline(pp_size=4, microbatch_count=16)
    figure, ax = plot_timeline(step)
    figure.canvas.draw()
    assert ax.texts
    for text in ax.texts:
        assert (
            text.get_window_extent().width
            < ax.transData.transform((2, 0))[0] - (ax.transData.transform((0, 0))[0])
        )
    assert len(ax.texts) < len(step.events)


def test_it_draws_on_axes_that_are_given():
    figure, ax = plt.subplots()
    step = simulate_pipeline(pp_size=2, microbatch_count=2)
    assert plot_timeline(step, ax=ax) == (figure, ax)


def test_only_timelines_are_drawn():
    with pytest.raises(ConfigError, match="not a Timeline"):
        plot_timeline([1, 2])
