"""The advisor: the best split of a training job, the reasons, and the flaws of other splits."""

from mlsysim.planner.advice import Advice, Alternative
from mlsysim.planner.advisor import advise
from mlsysim.planner.contrasts import Contrast, contrast
from mlsysim.planner.diagnosis import Diagnosis, diagnose
from mlsysim.planner.plans import Plans, front

__all__ = [
    "Advice",
    "Alternative",
    "Contrast",
    "Diagnosis",
    "Plans",
    "advise",
    "contrast",
    "diagnose",
    "front",
]
