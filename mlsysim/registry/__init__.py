"""Registries: numbers with their sources, and no equations."""

from mlsysim.registry.catalogs import Infra, Systems
from mlsysim.registry.hardware import Hardware
from mlsysim.registry.models import Models

__all__ = ["Hardware", "Infra", "Models", "Systems"]
