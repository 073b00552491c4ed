"""The best engines for a service, and its replicas over a day."""

from mlsysim.planner.service.limits import SLO
from mlsysim.planner.service.replicas import CapacityPlan, capacity
from mlsysim.planner.service.serving_plans import SERVING_GOALS, ServingPlan, ServingTable
from mlsysim.planner.service.serving_search import plan_serving

__all__ = [
    "SERVING_GOALS",
    "SLO",
    "CapacityPlan",
    "ServingPlan",
    "ServingTable",
    "capacity",
    "plan_serving",
]
