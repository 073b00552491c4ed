"""A prefix cache that requests pass through in order, block by block."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence

__all__ = ["BLOCK", "cached_by_blocks"]

BLOCK = 512
"""Tokens in a block of Mooncake's traces."""


def cached_by_blocks(
    hashes: Sequence[Sequence[Hashable]],
    prompts: Sequence[float],
    block: int,
    capacity: int | None = None,
) -> list[float]:
    """Return the tokens of each prompt that a cache holds from earlier requests.

    These are the leading blocks that are in the cache. Only full blocks are stored.

    Parameters
    ----------
    hashes
        For each prompt, a hash of each of its blocks with everything before it.
    prompts
        Tokens of each prompt.
    block
        Tokens in a block.
    capacity
        Blocks that the cache keeps, the most recently used ones; `None` keeps all.

    Returns
    -------
    list of float
        Cached tokens of each prompt.
    """
    kept: OrderedDict[Hashable, None] = OrderedDict()  # in order of use
    found = []
    for own, tokens in zip(hashes, prompts, strict=True):
        full = own[: int(tokens // block)]
        hits = 0
        while hits < len(full) and full[hits] in kept:
            hits += 1
        found.append(float(hits * block))
        # A block is of use only after those before it, so the first one is used last.
        for item in reversed(full):
            kept[item] = None
            kept.move_to_end(item)
        if capacity is not None:
            while len(kept) > capacity:
                kept.popitem(last=False)
    return found
