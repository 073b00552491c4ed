"""Questions about many plans: the best training job or service, sensitivities, and benchmarks."""

from mlsysim.planner.benchmarks.gaps import Gap, compare
from mlsysim.planner.benchmarks.load_files import Benchmark, read_benchmark
from mlsysim.planner.prices import Price
from mlsysim.planner.sensitivities.certainty import Odds, odds
from mlsysim.planner.sensitivities.elasticities import Sensitivity, sensitivity
from mlsysim.planner.sensitivities.targets import Requirement, required
from mlsysim.planner.service.replicas import CapacityPlan, capacity
from mlsysim.planner.service.serving_plans import SERVING_GOALS, ServingPlan, ServingTable
from mlsysim.planner.service.serving_search import plan_serving
from mlsysim.planner.training.advice import Advice, Alternative, Bill
from mlsysim.planner.training.advisor import advise
from mlsysim.planner.training.contrasts import Contrast, contrast
from mlsysim.planner.training.diagnosis import Diagnosis, diagnose
from mlsysim.planner.training.search import Plans, front

__all__ = [
    "SERVING_GOALS",
    "Advice",
    "Alternative",
    "Benchmark",
    "Bill",
    "CapacityPlan",
    "Contrast",
    "Diagnosis",
    "Gap",
    "Odds",
    "Plans",
    "Price",
    "Requirement",
    "Sensitivity",
    "ServingPlan",
    "ServingTable",
    "advise",
    "capacity",
    "compare",
    "contrast",
    "diagnose",
    "front",
    "odds",
    "plan_serving",
    "read_benchmark",
    "required",
    "sensitivity",
]
