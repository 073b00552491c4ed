"""The engine that the simulator plays requests through, from the arguments of the solver."""

from __future__ import annotations

from typing import Any

from mlsysim.core.errors import ConfigError
from mlsysim.solvers import OpenLoopSolver
from mlsysim.solvers.traffic.engine import Engine, engine_of

__all__ = ["engine_for"]


def engine_for(**arguments: Any) -> Engine:
    """Return the engine of `OpenLoopSolver`, to play requests through with `simulate`.

    Parameters
    ----------
    **arguments
        Those of `OpenLoopSolver.solve`. An engine does not depend on `arrival_rate`, so you may
        leave it out.

    Returns
    -------
    Engine
        Times of its passes, and its limits.

    Raises
    ------
    ConfigError
        If an argument is unknown or out of range, or not even one sequence fits in memory.

    Examples
    --------
    >>> from mlsysim import Hardware, Models
    >>> from mlsysim.traffic import engine_for, simulate
    >>> engine = engine_for(
    ...     model=Models.Llama3_8B, hardware=Hardware.H100, seq_len=1000, output_len=200
    ... )
    >>> alone, next_to_it = simulate(engine, [0, 0.5], [1000, 1000], [200, 200]).ttft
    >>> bool(next_to_it > alone)
    True
    """
    if unknown := sorted(arguments.keys() - OpenLoopSolver.parameters.keys()):
        raise ConfigError(
            f"{', '.join(unknown)}: not an argument of OpenLoopSolver; choose among "
            f"{', '.join(OpenLoopSolver.parameters)}",
            argument=unknown[0],
        )
    inputs = OpenLoopSolver.admit({"arrival_rate": 1} | arguments)
    for fault in OpenLoopSolver.faults(inputs):
        raise fault
    if inputs.turns > 1:
        raise ConfigError(
            f"turns = {inputs.turns} is not simulated, because an engine here has the same cached "
            "prefix at every rate: leave it out, and pass cached_share = cached_tokens / seq_len "
            "of OpenLoopSolver's result",
            argument="turns",
        )
    engine = engine_of(inputs.plain())
    if engine.fits < 1:
        raise ConfigError(
            "hardware: not one sequence of full length fits in memory: raise tp_size, or store "
            "weights in a narrower format",
            argument="hardware",
        )
    return engine
