"""The best split of a training job, the reasons, and the flaws of other splits."""

from mlsysim.planner.training.advice import Advice, Alternative, Bill
from mlsysim.planner.training.advisor import advise
from mlsysim.planner.training.contrasts import Contrast, contrast
from mlsysim.planner.training.diagnosis import Diagnosis, diagnose
from mlsysim.planner.training.plans import Plans, front

__all__ = [
    "Advice",
    "Alternative",
    "Bill",
    "Contrast",
    "Diagnosis",
    "Plans",
    "advise",
    "contrast",
    "diagnose",
    "front",
]
