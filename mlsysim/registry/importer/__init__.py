"""Models from published configuration files."""

from __future__ import annotations

from mlsysim.registry.importer.entry import from_config
from mlsysim.registry.importer.model import model_of

__all__ = ["from_config", "model_of"]
