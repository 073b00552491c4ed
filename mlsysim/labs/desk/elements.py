"""marimo's elements for a lab's controls. They are created once and outlive every drawing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from mlsysim.labs.controls import Control, Controls, Estimate, Question, Selector, Slider, Toggle

__all__ = ["elements"]

Change = Callable[[str, Any], None]


def elements(controls: Controls, state: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """Return an element for every control, by its name.

    Parameters
    ----------
    controls
        The controls of the lab.
    state
        The values that the student has set so far.
    change
        Called with a control's name and its new value.
    """
    full = controls.complete(state)
    return {
        name: _element(control, full[name], partial(change, name))
        for name, control in controls.by_id.items()
    }


def _element(control: Control, value: Any, change: Callable[[Any], None]) -> Any:
    import marimo as mo

    if isinstance(control, Question):
        return _question(control, value, change)
    if isinstance(control, Estimate):
        return _estimate(control, value, change)
    if isinstance(control, Slider):
        label = f"{control.label} ({control.unit})" if control.unit else control.label
        return mo.ui.slider(
            steps=control.values, value=value, show_value=True, label=label, on_change=change
        )
    if isinstance(control, Selector):
        return mo.ui.dropdown(
            options=_by_label(control.options),
            value=control.options[value],
            allow_select_none=False,
            label=control.label,
            on_change=change,
        )
    if isinstance(control, Toggle):
        return mo.ui.switch(value=value, label=control.label, on_change=change)
    raise TypeError(f"{control.id} has no element")


def _question(control: Question, value: str | None, change: Callable[[Any], None]) -> Any:
    import marimo as mo

    options = _by_label(control.options)
    chosen = None if value is None else control.options[value]
    if not control.locks:
        return mo.ui.radio(options=options, value=chosen, label=control.label, on_change=change)

    def lock(answer: str | None) -> None:
        if answer is not None:
            change(answer)

    asked = mo.ui.radio(options=options, value=chosen, label=control.label)
    return asked.form(submit_button_label="Lock in my answer", on_change=lock)


def _estimate(control: Estimate, value: float | None, change: Callable[[Any], None]) -> Any:
    import marimo as mo

    def lock(answer: float | None) -> None:
        if answer is not None:
            change(answer)

    label = f"{control.label} ({control.unit})"
    asked = mo.ui.number(start=control.low, stop=control.high, value=value, label=label)
    return asked.form(submit_button_label="Lock in my answer", on_change=lock)


def _by_label(options: Mapping[str, str]) -> dict[str, str]:
    return {label: value for value, label in options.items()}
