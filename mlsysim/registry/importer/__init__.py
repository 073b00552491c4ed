"""Models from published configuration files."""

from __future__ import annotations

from mlsysim.registry.importer.entry import from_config

__all__ = ["from_config"]
