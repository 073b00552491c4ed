"""Catalog entries: frozen records of devices, models, systems and infrastructure."""

from mlsysim.core.types.calibration import Calibration
from mlsysim.core.types.hardware import GENERATIONS, Accelerator, Compute, Generation, Memory
from mlsysim.core.types.infrastructure import Datacenter, GridProfile, Rack
from mlsysim.core.types.kernel_calibration import LinkCalibration, ProductCalibration
from mlsysim.core.types.options import ATTENTION, SCHEDULES, AttentionKernel, Schedule
from mlsysim.core.types.power_calibration import PowerCalibration
from mlsysim.core.types.precision import PRECISIONS, Precision, find_precision
from mlsysim.core.types.recompute import RECOMPUTE, Recompute
from mlsysim.core.types.serving_calibration import ServingCalibration
from mlsysim.core.types.source import Entry, Source
from mlsysim.core.types.system import DeploymentTier, Fleet, NetworkFabric, Node
from mlsysim.core.types.workload import (
    FixedShapeModel,
    MoETransformerModel,
    TransformerModel,
    Workload,
)

__all__ = [
    "ATTENTION",
    "GENERATIONS",
    "PRECISIONS",
    "RECOMPUTE",
    "SCHEDULES",
    "Accelerator",
    "AttentionKernel",
    "Calibration",
    "Compute",
    "Datacenter",
    "DeploymentTier",
    "Entry",
    "FixedShapeModel",
    "Fleet",
    "Generation",
    "GridProfile",
    "LinkCalibration",
    "Memory",
    "MoETransformerModel",
    "NetworkFabric",
    "Node",
    "PowerCalibration",
    "Precision",
    "ProductCalibration",
    "Rack",
    "Recompute",
    "Schedule",
    "ServingCalibration",
    "Source",
    "TransformerModel",
    "Workload",
    "find_precision",
]
