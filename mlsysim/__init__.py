"""mlsysim: closed-form physics of machine-learning systems.

Every answer shows its work (`result.explain()`), every number names its source, and the same
formula that teaches also sweeps a million configurations a second (`sweep`).
"""

from mlsysim.core.errors import (
    ConfigError,
    InfeasibleError,
    MLSysError,
    OOMError,
    ParallelismError,
    SLAViolation,
    UnknownEntryError,
)
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
)
from mlsysim.core.units import Q_, Quantity, ureg
from mlsysim.registry import Hardware, Infra, Models, Systems
from mlsysim.solvers import (
    DistributedModel,
    DistributedSolver,
    Engine,
    SingleNodeModel,
    SingleNodeSolver,
)

__version__ = "0.1.0"

__all__ = [
    "Accelerator",
    "Compute",
    "ConfigError",
    "Datacenter",
    "DeploymentTier",
    "DistributedModel",
    "DistributedSolver",
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
    "SLAViolation",
    "SingleNodeModel",
    "SingleNodeSolver",
    "Source",
    "Systems",
    "TransformerModel",
    "UnknownEntryError",
    "ureg",
]
