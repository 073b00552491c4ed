"""Every split of a training step that the solver accepts, as arrays with one row per split."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlsysim.core.errors import ConfigError, ParallelismError, shown
from mlsysim.core.numeric import zero_like
from mlsysim.core.types import (
    SCHEDULES,
    Fleet,
    Node,
    TransformerModel,
)
from mlsysim.registry.calibration.training import Options

Rows = dict[str, NDArray[Any]]

MOST_CONFIGURATIONS = 4_000_000
"""Most configurations of one search; more would take minutes, and gigabytes to rank."""

LEVERS = (
    "tp_size",
    "pp_size",
    "cp_size",
    "ep_size",
    "microbatch_count",
    "virtual_stages",
    "schedule",
    "zero_stage",
    "sequence_parallel",
    "recompute",
)
"""Arguments of `DistributedSolver` that are searched if the caller leaves them out."""

EXCHANGE = ("exchange_overlap", "expert_nodes", "dispatch_precision")
"""Arguments for the exchanges with experts. If the caller leaves them out, each plan uses what its
framework offers for it, because none of them makes a step longer."""


def layouts(
    model: TransformerModel,
    fleet: Fleet,
    batch_size: int,
    seq_len: int,
    given: Mapping[str, Sequence[Any]],
) -> Rows:
    """Return consistent group sizes, microbatches and chunks, unless there are too many or none.

    The result has every tensor group that divides the heads, every pipeline no deeper than the
    model, every context group that divides a sequence, and every expert group that divides the
    experts, if they tile the fleet and leave replicas that share the batch evenly. It has every
    number of whole microbatches, and every number of chunks that divides the layers evenly, with or
    without separate chunks for the embedding and the output.
    """
    devices = fleet.total_accelerators
    largest = np.iinfo(np.int64).max // devices
    if batch_size > largest:
        raise ConfigError(
            f"batch_size = {batch_size:.3g} is too large to split over {devices} devices: give at "
            f"most {largest:.3g}",
            argument="batch_size",
        )
    chunks = set(divisors(model.layers)) | set(divisors(model.layers + 2))
    choices = {
        "tp_size": [n for n in divisors(devices) if model.split_heads % n == 0],
        "pp_size": [n for n in divisors(devices) if n <= model.layers + 2],
        "cp_size": [n for n in divisors(devices) if seq_len % n == 0],
        "ep_size": divisors(int(model.experts)),
        "microbatch_count": divisors(batch_size),
        "virtual_stages": sorted(chunks),
    }
    choices |= {name: list(given[name]) for name in choices if given.get(name) is not None}
    rows: Rows = {}
    for name, values in choices.items():
        if rows and len(rows["tp_size"]) * len(values) > 4 * MOST_CONFIGURATIONS:
            raise too_many(name)
        rows = _crossed(rows, name, values)
        rows = masked(rows, _agree(rows, name, model, devices, batch_size, seq_len))
    if not len(rows["tp_size"]):
        held = ", ".join(
            f"{n} = {shown(list(v))}" for n, v in given.items() if v is not None and n in rows
        )
        raise ParallelismError(
            f"no split of {devices} devices and {batch_size} sequences is "
            f"valid{f' with {held}' if held else ''}: choose group sizes whose product divides "
            "the devices, and a batch_size that the replicas share evenly"
        )
    rows["dp_size"] = devices // (rows["tp_size"] * rows["pp_size"] * rows["cp_size"])
    return rows


def by_words(
    rows: Rows,
    given: Mapping[str, Sequence[Any]],
    attention: str,
    schedules: Sequence[str],
) -> Iterator[tuple[dict[str, Any], Rows]]:
    """Yield blocks of rows with the values that they share.

    Levers that are switches or names cannot be arrays. `schedules` are those of the framework, with
    the usual one first.
    """
    # Fused attention never keeps the scores, so "none" and "selective" are the same plan.
    words = ["selective", "full"] if attention == "fused" else ["none", "selective", "full"]
    stages = [int(stage) for stage in given.get("zero_stage") or range(4)]
    for schedule in given.get("schedule") or schedules:
        usual = "schedule" in given or schedule == schedules[0]
        layout = masked(rows, _in_schedule(rows, schedule, usual))
        for parallel in given.get("sequence_parallel") or (False, True):
            # A tensor group of one rank has nothing to share; neither has a single replica.
            shared = layout
            if parallel and given.get("sequence_parallel") is None:
                shared = masked(layout, layout["tp_size"] > 1)
            parts = []
            for stage in stages:
                part = shared
                if stage and given.get("zero_stage") is None:
                    part = masked(shared, shared["dp_size"] * shared["cp_size"] > 1)
                parts.append(part | {"zero_stage": np.full(len(part["tp_size"]), stage)})
            joined = {n: np.concatenate([p[n] for p in parts]) for n in parts[0]}
            for word in given.get("recompute") or words:
                if len(joined["tp_size"]):
                    yield (
                        {"schedule": schedule, "sequence_parallel": parallel, "recompute": word},
                        joined,
                    )


def _in_schedule(rows: Rows, name: str, usual: bool) -> Any:
    """Return which rows a schedule can run; omit what the usual one runs identically."""
    schedule = SCHEDULES[name]
    able = np.ones(len(rows["tp_size"]), dtype=bool)
    if schedule.all_forward_first or schedule.split_backward:
        able &= rows["virtual_stages"] == 1
    if schedule.bidirectional:
        stages, count = rows["pp_size"], rows["microbatch_count"]
        able &= (stages % 2 == 0) & (count % 2 == 0) & (count >= 2 * stages)
    if not usual:
        # Without a pipeline, or with one microbatch, there is nothing to schedule.
        able &= (rows["pp_size"] > 1) & (rows["microbatch_count"] > 1)
    return able


def by_exchange(
    shared: Mapping[str, Any],
    rows: Rows,
    model: TransformerModel,
    node: Node,
    options: Options,
    narrow: bool,
) -> Iterator[tuple[dict[str, Any], Rows]]:
    """Yield blocks of rows with the best exchange with experts that the framework has for them.

    An exchange overlaps with the computation of another microbatch, so a pipeline must be
    interleaved or bidirectional, and layers must not be recomputed as a whole. `narrow` is whether
    arithmetic is in 8 bits or fewer; only then are tokens sent in such a format.
    """
    spread = rows["ep_size"] > 1
    nodes = rows["ep_size"] // np.gcd(rows["ep_size"], node.accelerators_per_node)
    interleaved = (rows["pp_size"] == 1) | (rows["virtual_stages"] > 1)
    if SCHEDULES[shared["schedule"]].bidirectional:
        interleaved |= True
    hidden = spread & interleaved & (rows["microbatch_count"] > 1)
    hidden &= shared["recompute"] != "full" and options.exchange_overlap is not None
    limited = (nodes > 1) & options.sends_by_node
    blocks = [group.experts for group in model.groups if group.experts is not None]
    most = np.min([block.most_nodes(nodes) + zero_like(nodes) for block in blocks], axis=0)
    for overlaps, by_node, sent in product((False, True), repeat=3):
        chosen = (hidden == overlaps) & (limited == by_node) & (spread == sent)
        if not chosen.any():
            continue
        block = masked(rows, chosen)
        each: dict[str, Any] = {
            "exchange_overlap": options.exchange_overlap if overlaps else None,
            "dispatch_precision": options.dispatch_precision if sent and narrow else None,
        }
        if by_node:
            block = block | {"expert_nodes": most[chosen].astype(np.int64)}
        else:
            each["expert_nodes"] = None
        yield {**shared, **each}, block


def partial_recomputes(base: str, modules: Sequence[str], model: TransformerModel) -> list[str]:
    """Return the ways to recompute some modules besides `base`, the most of them first."""
    latent = any(kind.expansions(model.hidden_dim) for _, kind in model.attentions)
    usable = [name for name in modules if latent or name != "mla_up"]
    chosen = [c for n in range(len(usable), 0, -1) for c in combinations(usable, n)]
    return ["+".join([*([] if base == "none" else [base]), *parts]) for parts in chosen]


def too_many(lever: str) -> ConfigError:
    """Compose the error for a search that would take too long."""
    return ConfigError(
        f"there are more than {MOST_CONFIGURATIONS:,} configurations to search: hold some of "
        f"{', '.join(LEVERS)} at a value or a short list, such as {lever}=[1, 2, 4]; or give a "
        "batch_size with fewer divisors, or fewer fleets and batches",
        argument=lever,
    )


def _crossed(rows: Rows, name: str, values: Sequence[int]) -> Rows:
    """Combine every row with every value."""
    if not rows:
        return {name: np.asarray(values, dtype=np.int64)}
    size = len(next(iter(rows.values())))
    repeated = {n: np.repeat(v, len(values)) for n, v in rows.items()}
    return repeated | {name: np.tile(np.asarray(values, dtype=np.int64), size)}


def masked(rows: Rows, mask: Any) -> Rows:
    """Return the rows for which `mask` is true."""
    return {name: values[mask] for name, values in rows.items()}


def _agree(
    r: Rows, name: str, model: TransformerModel, devices: int, batch_size: int, seq_len: int
) -> Any:
    """Return the rows that still obey the solver's rules once `name` is added."""
    split = r["tp_size"] * r.get("pp_size", 1) * r.get("cp_size", 1)
    if name in ("tp_size", "pp_size"):
        return (devices % split == 0) & (model.split_heads % r["tp_size"] == 0)
    if name == "cp_size":
        tiled = (devices % split == 0) & (seq_len % r["cp_size"] == 0)
        return tiled & (batch_size * split % devices == 0)
    if name == "ep_size":
        spread = (r["ep_size"] == 1) | (devices % (r["pp_size"] * r["ep_size"]) == 0)
        return spread & (model.experts % r["ep_size"] == 0)
    sequences = batch_size * split // devices
    if name == "microbatch_count":
        return sequences % r["microbatch_count"] == 0
    chunks = r["pp_size"] * r["virtual_stages"]
    even = (model.layers % chunks == 0) | ((model.layers + 2) % chunks == 0)
    full = r["microbatch_count"] % r["pp_size"] == 0
    plain = (r["virtual_stages"] == 1) & (r["pp_size"] <= model.layers)
    return plain | ((r["virtual_stages"] > 1) & (r["pp_size"] > 1) & even & full)


def divisors(number: int) -> list[int]:
    """Return all divisors of a whole number, from 1 to the number itself."""
    found, rest, factor = [1], int(number), 2
    while factor * factor <= rest:
        powers = [1]
        while rest % factor == 0:
            rest //= factor
            powers.append(powers[-1] * factor)
        found = [n * power for n in found for power in powers]
        factor += 1 if factor == 2 else 2
    if rest > 1:
        found += [n * rest for n in found]
    return sorted(found)
