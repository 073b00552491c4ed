"""Writes plain data as YAML that our own reader reads back unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from mlsysim.config.document import scalar_of
from mlsysim.core.errors import ConfigError

__all__ = ["write_yaml"]


class _Dumper(yaml.SafeDumper):
    """Quotes text that the reader would interpret as a number or a keyword."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    try:
        plain = scalar_of(value) == value
    except ConfigError:
        plain = False
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if plain else '"')


_Dumper.add_representer(str, _text)


def write_yaml(data: Mapping[str, Any]) -> str:
    """Return the data as a YAML document."""
    return yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
