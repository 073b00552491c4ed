"""mlsysim: closed-form physics of machine-learning systems.

Every result shows its work (`result.explain()`), every number has a source, and the same formulas
that explain one result can sweep a million configurations per second (`sweep`).
"""

# First, so that Ctrl-C has no traceback while a command loads the rest.
import mlsysim.core.interrupts  # noqa: F401 # isort: skip

import importlib
from typing import TYPE_CHECKING, Any

from mlsysim.compat import (
    DistributedModel,
    EconomicsModel,
    Engine,
    ReliabilityModel,
    ServingModel,
    SingleNodeModel,
    SustainabilityModel,
)
from mlsysim.core.errors import (
    ConfigError,
    ExecutorError,
    InfeasibleError,
    MLSysError,
    OOMError,
    ParallelismError,
    SLAViolation,
    UnknownEntryError,
)
from mlsysim.core.table import Table
from mlsysim.core.types import (
    Accelerator,
    Attention,
    Band,
    Calibration,
    Chunks,
    Compute,
    Datacenter,
    DeploymentTier,
    Experts,
    FeedForward,
    FixedShapeModel,
    Fleet,
    Formats,
    GridProfile,
    LatentAttention,
    Layers,
    LinearAttention,
    Machine,
    Memory,
    MoETransformerModel,
    NetworkCalibration,
    NetworkFabric,
    Node,
    PowerCalibration,
    Rack,
    RentalOffer,
    ServingCalibration,
    SlidingWindow,
    Software,
    Source,
    TopKeys,
    TransformerModel,
    VisionTower,
    Workload,
)
from mlsysim.core.units import Q_, Quantity, ureg
from mlsysim.registry import Hardware, Infra, Models, Systems
from mlsysim.registry.calibration.networks import NetworkCalibrations
from mlsysim.registry.calibration.power import PowerCalibrations
from mlsysim.registry.calibration.serving import ServingCalibrations
from mlsysim.registry.calibration.training import Calibrations, Frameworks, Machines
from mlsysim.solvers import (
    DisaggregatedResult,
    DisaggregatedSolver,
    DistributedResult,
    DistributedSolver,
    EconomicsResult,
    EconomicsSolver,
    OpenLoopResult,
    OpenLoopSolver,
    ReliabilityResult,
    ReliabilitySolver,
    ServingResult,
    ServingSolver,
    SingleNodeResult,
    SingleNodeSolver,
    SustainabilityResult,
    SustainabilitySolver,
)
from mlsysim.viz import plot_roofline

if TYPE_CHECKING:
    from mlsysim.coverage import support
    from mlsysim.fitting import calibrate
    from mlsysim.planner import (
        Advice,
        CapacityPlan,
        Diagnosis,
        Gap,
        Odds,
        Requirement,
        Sensitivity,
        ServingPlan,
        advise,
        capacity,
        compare,
        contrast,
        diagnose,
        odds,
        plan_serving,
        required,
        sensitivity,
    )
    from mlsysim.scenario import (
        Limit,
        Scenario,
        Scenarios,
        Scorecard,
        evaluate,
        part_of_server,
        standalone_fleet,
    )
    from mlsysim.scenario.cluster import ClusterCalibration, load_calibration
    from mlsysim.scenario.config import SimulationConfig
    from mlsysim.scenario.hardware import load_hardware
    from mlsysim.schedules import Timeline, simulate_pipeline
    from mlsysim.sweeps import Best, Pareto, Quantiles, Sweep, sweep
    from mlsysim.traffic import Traffic
    from mlsysim.validation import Comparison, Report, validate
    from mlsysim.viz import plot_frontier, plot_scorecard, plot_sensitivity, plot_timeline

__version__ = "0.1.0"

__all__ = [
    "Accelerator",
    "Advice",
    "Attention",
    "Band",
    "Best",
    "Calibration",
    "Calibrations",
    "CapacityPlan",
    "Chunks",
    "ClusterCalibration",
    "Comparison",
    "Compute",
    "ConfigError",
    "Datacenter",
    "DeploymentTier",
    "Diagnosis",
    "DisaggregatedResult",
    "DisaggregatedSolver",
    "DistributedModel",
    "DistributedResult",
    "DistributedSolver",
    "EconomicsModel",
    "EconomicsResult",
    "EconomicsSolver",
    "Engine",
    "ExecutorError",
    "Experts",
    "FeedForward",
    "FixedShapeModel",
    "Fleet",
    "Formats",
    "Frameworks",
    "Gap",
    "GridProfile",
    "Hardware",
    "InfeasibleError",
    "Infra",
    "LatentAttention",
    "Layers",
    "Limit",
    "LinearAttention",
    "MLSysError",
    "Machine",
    "Machines",
    "Memory",
    "MoETransformerModel",
    "Models",
    "NetworkCalibration",
    "NetworkCalibrations",
    "NetworkFabric",
    "Node",
    "OOMError",
    "Odds",
    "OpenLoopResult",
    "OpenLoopSolver",
    "ParallelismError",
    "Pareto",
    "PowerCalibration",
    "PowerCalibrations",
    "Q_",
    "Quantiles",
    "Quantity",
    "Rack",
    "ReliabilityModel",
    "ReliabilityResult",
    "ReliabilitySolver",
    "RentalOffer",
    "Report",
    "Requirement",
    "SLAViolation",
    "Scenario",
    "Scenarios",
    "Scorecard",
    "Sensitivity",
    "ServingCalibration",
    "ServingCalibrations",
    "ServingModel",
    "ServingPlan",
    "ServingResult",
    "ServingSolver",
    "SimulationConfig",
    "SingleNodeModel",
    "SingleNodeResult",
    "SingleNodeSolver",
    "SlidingWindow",
    "Software",
    "Source",
    "SustainabilityModel",
    "SustainabilityResult",
    "SustainabilitySolver",
    "Sweep",
    "Systems",
    "Table",
    "Timeline",
    "TopKeys",
    "Traffic",
    "TransformerModel",
    "UnknownEntryError",
    "VisionTower",
    "Workload",
    "advise",
    "calibrate",
    "capacity",
    "compare",
    "contrast",
    "diagnose",
    "evaluate",
    "load_calibration",
    "load_hardware",
    "odds",
    "part_of_server",
    "plan_serving",
    "plot_frontier",
    "plot_roofline",
    "plot_scorecard",
    "plot_sensitivity",
    "plot_timeline",
    "required",
    "sensitivity",
    "simulate_pipeline",
    "standalone_fleet",
    "support",
    "sweep",
    "ureg",
    "validate",
]


# Loaded on first use: sweeps need NumPy, files need PyYAML and jsonschema, and loading scenarios
# creates and checks them. The scalar path needs none of these.
_LATE = {
    "ClusterCalibration": "scenario.cluster",
    "Limit": "scenario",
    "Scenario": "scenario",
    "Scenarios": "scenario",
    "Scorecard": "scenario",
    "SimulationConfig": "scenario.config",
    "Comparison": "validation",
    "Report": "validation",
    "Advice": "planner",
    "Diagnosis": "planner",
    "Gap": "planner",
    "Odds": "planner",
    "Requirement": "planner",
    "Sensitivity": "planner",
    "ServingPlan": "planner",
    "Best": "sweeps",
    "Pareto": "sweeps",
    "Quantiles": "sweeps",
    "Sweep": "sweeps",
    "Timeline": "schedules",
    "Traffic": "traffic",
    "CapacityPlan": "planner",
    "advise": "planner",
    "capacity": "planner",
    "compare": "planner",
    "calibrate": "fitting",
    "contrast": "planner",
    "diagnose": "planner",
    "evaluate": "scenario",
    "load_calibration": "scenario.cluster",
    "load_hardware": "scenario.hardware",
    "plot_scorecard": "viz",
    "plot_frontier": "viz",
    "plot_sensitivity": "viz",
    "plot_timeline": "viz",
    "odds": "planner",
    "plan_serving": "planner",
    "required": "planner",
    "sensitivity": "planner",
    "simulate_pipeline": "schedules",
    "part_of_server": "scenario",
    "standalone_fleet": "scenario",
    "support": "coverage",
    "sweep": "sweeps",
    "validate": "validation",
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(importlib.import_module(f"mlsysim.{_LATE[name]}"), name)
    raise AttributeError(f"module 'mlsysim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
