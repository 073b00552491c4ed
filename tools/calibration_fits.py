"""Names and switches of constants in the fit, and the groups of runs."""

from __future__ import annotations

SCALES = {
    "collective_overhead": 1e-6,
    "layer_launch": 1e-3,
    "expert_launch": 1e-3,
    "step_overhead": 1e-3,
}
"""SI units of the registry's, for constants that are times."""
SWITCHED = {"layer_launch", "expert_launch", "exchange_overlap", "tensor_overlap"}
"""Constants that a recipe can switch off: its runs have zero of them."""
FORMATS = {"": 16, "_fp8": 8, "_fp4": 4}
"""Bits of the formats, by the ending of the products' constants."""
LIMITED = ("H100_HBM2e", "B200_Limited")
"""Machines under a limit of power: how far it lowers their clocks is not published, so what their
products reach of the datasheet may lie far from what others do."""
LIMITED_SPREAD = 0.3
