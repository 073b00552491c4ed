"""Registries: numbers with their sources, and no equations."""

from mlsysim.registry.hardware import Hardware
from mlsysim.registry.infrastructure import Infra
from mlsysim.registry.models import Models
from mlsysim.registry.systems import Systems

__all__ = ["Hardware", "Infra", "Models", "Systems"]
