"""The exercises of the tutorials: one module for each page, one declaration for each exercise."""

from mlsysim_course.answers import Exercise
from mlsysim_course.exercises import (
    cost,
    distributed,
    edge,
    error_museum,
    failures,
    hello_world,
    kernels,
    long_context,
    mixtures,
    pipelines,
    quantization,
    serving_fleet,
    serving_one_gpu,
    serving_under_load,
    strategy,
    sustainability,
    tensor_parallel,
    training_memory,
)

__all__ = ["EXERCISES"]

_PAGES = (
    hello_world,
    serving_fleet,
    serving_one_gpu,
    serving_under_load,
    distributed,
    pipelines,
    tensor_parallel,
    strategy,
    sustainability,
    failures,
    training_memory,
    mixtures,
    quantization,
    long_context,
    edge,
    cost,
    kernels,
    error_museum,
)

EXERCISES: dict[str, Exercise] = {
    one.name: one for page in _PAGES for one in vars(page).values() if isinstance(one, Exercise)
}
"""Every exercise that has a checker, by its name."""
