"""Nouns: frozen records of devices, models, systems and infrastructure."""

from mlsysim.core.types.hardware import Accelerator, Compute, Memory
from mlsysim.core.types.infrastructure import Datacenter, GridProfile, Rack
from mlsysim.core.types.precision import PRECISIONS, Precision, find_precision
from mlsysim.core.types.recompute import RECOMPUTE, Recompute
from mlsysim.core.types.source import Entry, Source
from mlsysim.core.types.system import DeploymentTier, Fleet, NetworkFabric, Node
from mlsysim.core.types.workload import FixedShapeModel, TransformerModel, Workload

__all__ = [
    "PRECISIONS",
    "RECOMPUTE",
    "Accelerator",
    "Compute",
    "Datacenter",
    "DeploymentTier",
    "Entry",
    "FixedShapeModel",
    "Fleet",
    "GridProfile",
    "Memory",
    "NetworkFabric",
    "Node",
    "Precision",
    "Rack",
    "Recompute",
    "Source",
    "TransformerModel",
    "Workload",
    "find_precision",
]
