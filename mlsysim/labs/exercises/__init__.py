"""The exercises of the tutorials: one module for each page, one declaration for each exercise."""

from mlsysim.labs.answers import Exercise
from mlsysim.labs.exercises import distributed, hello_world, llm_serving, sustainability

__all__ = ["EXERCISES"]

EXERCISES: dict[str, Exercise] = {
    exercise.name: exercise
    for page in (hello_world, llm_serving, distributed, sustainability)
    for exercise in page.EXERCISES
}
"""Every exercise that has a checker, by its name."""
