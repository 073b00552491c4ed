"""Catalog entries: frozen records of devices, models, systems and infrastructure."""

from mlsysim.core.types.attention import (
    Attention,
    Chunks,
    LatentAttention,
    LinearAttention,
    SlidingWindow,
    TopKeys,
)
from mlsysim.core.types.calibration import Calibration, Covered, Machine, Software
from mlsysim.core.types.hardware import GENERATIONS, Accelerator, Compute, Generation, Memory
from mlsysim.core.types.infrastructure import Datacenter, GridProfile, Rack
from mlsysim.core.types.kernel_calibration import LinkCalibration, ProductCalibration
from mlsysim.core.types.layers import Experts, FeedForward, Layers
from mlsysim.core.types.network_calibration import NetworkCalibration
from mlsysim.core.types.options import (
    ATTENTION,
    CP_KINDS,
    LOSSES,
    OPTIMIZERS,
    RECOMPUTE,
    SCHEDULES,
    AttentionKernel,
    ContextExchange,
    Loss,
    Optimizer,
    Recompute,
    Schedule,
)
from mlsysim.core.types.power_calibration import PowerCalibration
from mlsysim.core.types.precision import (
    FILE_FORMATS,
    PRECISIONS,
    Formats,
    Precision,
    find_precision,
)
from mlsysim.core.types.serving_calibration import ServingCalibration
from mlsysim.core.types.source import Entry, Source, cite
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
    MoETransformerModel,
    TransformerModel,
    VisionTower,
    Workload,
)

__all__ = [
    "ATTENTION",
    "COMMITMENTS",
    "CP_KINDS",
    "FILE_FORMATS",
    "GENERATIONS",
    "LOSSES",
    "OPTIMIZERS",
    "PRECISIONS",
    "RECOMPUTE",
    "SCHEDULES",
    "Accelerator",
    "Attention",
    "AttentionKernel",
    "Calibration",
    "Chunks",
    "Commitment",
    "Compute",
    "ContextExchange",
    "Covered",
    "Datacenter",
    "DeploymentTier",
    "Entry",
    "Experts",
    "FeedForward",
    "FixedShapeModel",
    "Fleet",
    "Formats",
    "Generation",
    "GridProfile",
    "LatentAttention",
    "Layers",
    "LinearAttention",
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
    "SlidingWindow",
    "Software",
    "Source",
    "TopKeys",
    "TransformerModel",
    "VisionTower",
    "Workload",
    "cite",
    "find_precision",
]
