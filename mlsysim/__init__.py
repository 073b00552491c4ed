"""mlsysim: closed-form physics of machine-learning systems.

Every answer shows its work (`result.explain()`), every number names its source, and the same
formula that teaches also sweeps a million configurations a second (`sweep`).
"""

from typing import TYPE_CHECKING, Any

from mlsysim.core.errors import (
    ConfigError,
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
    Compute,
    Datacenter,
    DeploymentTier,
    FixedShapeModel,
    Fleet,
    GridProfile,
    Memory,
    NetworkFabric,
    Node,
    Rack,
    Source,
    TransformerModel,
    Workload,
)
from mlsysim.core.units import Q_, Quantity, ureg
from mlsysim.registry import Hardware, Infra, Models, Systems
from mlsysim.solvers import (
    DistributedModel,
    DistributedResult,
    DistributedSolver,
    EconomicsModel,
    EconomicsResult,
    EconomicsSolver,
    Engine,
    ReliabilityModel,
    ReliabilityResult,
    ReliabilitySolver,
    ServingModel,
    ServingResult,
    ServingSolver,
    SingleNodeModel,
    SingleNodeResult,
    SingleNodeSolver,
    SustainabilityModel,
    SustainabilityResult,
    SustainabilitySolver,
)
from mlsysim.viz import plot_roofline

if TYPE_CHECKING:
    from mlsysim.sweeps import Sweep, sweep

__version__ = "0.1.0"

__all__ = [
    "Accelerator",
    "Compute",
    "ConfigError",
    "Datacenter",
    "DeploymentTier",
    "DistributedModel",
    "DistributedResult",
    "DistributedSolver",
    "EconomicsModel",
    "EconomicsResult",
    "EconomicsSolver",
    "Engine",
    "FixedShapeModel",
    "Fleet",
    "GridProfile",
    "Hardware",
    "InfeasibleError",
    "Infra",
    "MLSysError",
    "Memory",
    "Models",
    "NetworkFabric",
    "Node",
    "OOMError",
    "ParallelismError",
    "Q_",
    "Quantity",
    "Rack",
    "ReliabilityModel",
    "ReliabilityResult",
    "ReliabilitySolver",
    "SLAViolation",
    "ServingModel",
    "ServingResult",
    "ServingSolver",
    "SingleNodeModel",
    "SingleNodeResult",
    "SingleNodeSolver",
    "Source",
    "SustainabilityModel",
    "SustainabilityResult",
    "SustainabilitySolver",
    "Sweep",
    "Systems",
    "Table",
    "TransformerModel",
    "UnknownEntryError",
    "Workload",
    "plot_roofline",
    "sweep",
    "ureg",
]


def __getattr__(name: str) -> Any:
    # Sweeps need NumPy. Loaded late, they leave the scalar path free of it.
    if name in ("Sweep", "sweep"):
        from mlsysim import sweeps

        return getattr(sweeps, name)
    raise AttributeError(f"module 'mlsysim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
