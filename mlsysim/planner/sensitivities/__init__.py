"""What a result depends on, what reaches a target, and which of two results is better."""

from mlsysim.planner.sensitivities.certainty import Odds, odds
from mlsysim.planner.sensitivities.elasticities import Sensitivity, sensitivity
from mlsysim.planner.sensitivities.targets import Requirement, required

__all__ = [
    "Odds",
    "Requirement",
    "Sensitivity",
    "odds",
    "required",
    "sensitivity",
]
