"""Registries: numbers with their sources, and no equations."""
