"""The advisor: the best split of a training job, the reasons, and the flaws of other splits."""

from mlsysim.planner.advice import Advice, Alternative
from mlsysim.planner.advisor import advise
from mlsysim.planner.certainty import Odds, odds
from mlsysim.planner.contrasts import Contrast, contrast
from mlsysim.planner.diagnosis import Diagnosis, diagnose
from mlsysim.planner.plans import Plans, front
from mlsysim.planner.sensitivities import Sensitivity, sensitivity
from mlsysim.planner.serving import SERVING_GOALS, ServingPlan, ServingTable, plan_serving
from mlsysim.planner.targets import Requirement, required

__all__ = [
    "Advice",
    "Alternative",
    "Contrast",
    "Diagnosis",
    "Odds",
    "Plans",
    "Requirement",
    "SERVING_GOALS",
    "Sensitivity",
    "ServingPlan",
    "ServingTable",
    "advise",
    "contrast",
    "diagnose",
    "front",
    "odds",
    "plan_serving",
    "required",
    "sensitivity",
]
