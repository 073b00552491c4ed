"""Catalog entries: frozen records of devices, models, systems and infrastructure."""

from mlsysim.core.types.calibration import Calibration, Machine, Software
from mlsysim.core.types.hardware import GENERATIONS, Accelerator, Compute, Generation, Memory
from mlsysim.core.types.infrastructure import Datacenter, GridProfile, Rack
from mlsysim.core.types.kernel_calibration import LinkCalibration, ProductCalibration
from mlsysim.core.types.network_calibration import NetworkCalibration
from mlsysim.core.types.options import (
    ATTENTION,
    CP_KINDS,
    LOSSES,
    OPTIMIZERS,
    SCHEDULES,
    AttentionKernel,
    ContextExchange,
    Loss,
    Optimizer,
    Schedule,
)
from mlsysim.core.types.power_calibration import PowerCalibration
from mlsysim.core.types.precision import PRECISIONS, Precision, find_precision
from mlsysim.core.types.recompute import RECOMPUTE, Recompute
from mlsysim.core.types.serving_calibration import ServingCalibration
from mlsysim.core.types.source import Entry, Source
from mlsysim.core.types.system import (
    COMMITMENTS,
    Commitment,
    DeploymentTier,
    Fleet,
    NetworkFabric,
    Node,
    RentalOffer,
)
from mlsysim.core.types.workload import (
    FixedShapeModel,
    LatentAttention,
    MoETransformerModel,
    TransformerModel,
    Workload,
)

__all__ = [
    "ATTENTION",
    "COMMITMENTS",
    "CP_KINDS",
    "GENERATIONS",
    "LOSSES",
    "OPTIMIZERS",
    "PRECISIONS",
    "RECOMPUTE",
    "SCHEDULES",
    "Accelerator",
    "AttentionKernel",
    "Calibration",
    "Commitment",
    "Compute",
    "ContextExchange",
    "Datacenter",
    "DeploymentTier",
    "Entry",
    "FixedShapeModel",
    "Fleet",
    "Generation",
    "GridProfile",
    "LatentAttention",
    "LinkCalibration",
    "Loss",
    "Machine",
    "Memory",
    "MoETransformerModel",
    "NetworkCalibration",
    "NetworkFabric",
    "Node",
    "Optimizer",
    "PowerCalibration",
    "Precision",
    "ProductCalibration",
    "Rack",
    "Recompute",
    "RentalOffer",
    "Schedule",
    "ServingCalibration",
    "Software",
    "Source",
    "TransformerModel",
    "Workload",
    "find_precision",
]
