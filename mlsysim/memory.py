"""Free memory, and a check for sweeps that are too large for it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path

from mlsysim.core.errors import ConfigError
from mlsysim.core.units import Q_, format_number

__all__ = ["check_room", "free_memory"]

_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
# Smaller sweeps are not checked.
_SMALL = 64e6


def check_room(
    lengths: Mapping[str, int], count: int, bytes_of_each: float, things: str = "rows"
) -> None:
    """Reject a sweep that is too large for the memory, before allocating any.

    Parameters
    ----------
    lengths
        Values of each axis.
    count
        Rows of the sweep, or other items that it holds in memory.
    bytes_of_each
        Minimum number of bytes for each of them.
    things
        What is counted.

    Raises
    ------
    ConfigError
        If the sweep needs more than the free memory.
    """
    need = count * bytes_of_each
    if need < _SMALL or need <= (free := free_memory()):
        return
    longest = max(lengths, key=lengths.__getitem__)
    one = count > lengths[longest] or sum(length > 1 for length in lengths.values()) == 1
    raise ConfigError(
        f"the sweep has {count:,} {things}, which need at least {format_number(Q_(need, 'byte'))} "
        f"of memory, but only {format_number(Q_(free, 'byte'))} are free, enough for "
        f"{int(free / bytes_of_each):,}: cut {longest if one else 'all axes'} into "
        f"{math.ceil(need / free):,} parts or more, and sweep each part",
        argument=longest,
    )


def free_memory() -> float:
    """Return the bytes that this process may still allocate, or infinity if that is not known."""
    found = [math.inf]
    available = re.search(r"MemAvailable: +([0-9]+) kB", _text("/proc/meminfo"))
    if available:
        found.append(1024 * int(available[1]))
    elif hasattr(os, "sysconf") and {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(os.sysconf_names):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    found += [int(limit) for limit in map(_text, _CONTAINER) if limit.strip().isdigit()]
    return min(found)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except OSError:
        return ""
