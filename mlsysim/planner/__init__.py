"""Questions about many plans: the best training job or service, sensitivities, and benchmarks."""

from mlsysim.planner.benchmarks import Benchmark, Gap, compare, read_benchmark
from mlsysim.planner.prices import Price
from mlsysim.planner.sensitivities import (
    Odds,
    Requirement,
    Sensitivity,
    odds,
    required,
    sensitivity,
)
from mlsysim.planner.service import (
    SERVING_GOALS,
    CapacityPlan,
    ServingPlan,
    ServingTable,
    capacity,
    plan_serving,
)
from mlsysim.planner.training import (
    Advice,
    Alternative,
    Bill,
    Contrast,
    Diagnosis,
    Plans,
    advise,
    contrast,
    diagnose,
    front,
)

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
