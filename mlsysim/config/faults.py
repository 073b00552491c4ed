"""Faults of a configuration: what is wrong, where it is, and what is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlsysim.core.errors import ConfigError

__all__ = ["Fault", "KeyPath", "refusal", "spell"]

KeyPath = tuple[str | int, ...]


def spell(path: KeyPath) -> str:
    """Write a key path as text: ``limits.latency.at_most``, ``macro.limits[2]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a configuration.

    Attributes
    ----------
    file : str
        Name of the file; empty if there is none.
    line : int or None
        Line number, from 1.
    path : str
        The key at fault, as in ``"arguments.tp_size"``; empty for the whole file.
    message : str
        What is wrong, what is allowed, and the nearest valid name.
    """

    file: str
    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        numbered = f"line {self.line}" if self.line else ""
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file or numbered
        return ": ".join(part for part in (place, self.path, self.message) if part)


def refusal(faults: Sequence[Fault]) -> ConfigError:
    """Compose the one error that reports all faults, in the order of the file."""
    ordered = sorted(set(faults), key=lambda fault: (fault.line or 0, fault.path, fault.message))
    count = f"{len(ordered)} faults" if len(ordered) > 1 else "a fault"
    where = next((fault.file for fault in ordered if fault.file), "")
    head = f"the configuration{f' {where}' if where else ''} has {count}:"
    lines = [f"  {fault}" for fault in ordered]
    return ConfigError("\n".join([head, *lines]), argument=ordered[0].path, faults=ordered)
