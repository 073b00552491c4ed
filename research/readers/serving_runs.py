"""Measured serving runs, one run per row with all its figures, as calls of `ServingSolver`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Any

from mlsysim.core.errors import shown
from mlsysim.core.types import Accelerator, Band, Fleet, Node, TransformerModel, find_precision
from mlsysim.core.units import Q_
from mlsysim.registry import Hardware, Systems
from mlsysim.registry.calibration.serving import serving_calibration_for
from mlsysim.solvers import DisaggregatedSolver, ServingSolver
from mlsysim.validation.columns import LABELS
from mlsysim.validation.report import Comparison, combined_band
from research.readers import open_loop
from research.readers.aliases import accelerator_named, server_of, usual_server
from research.readers.formats import as_stored, formats_of
from research.readers.recipes import drafts_of, recipe_of
from research.readers.sizes import model_or_estimate
from research.rows import Row, Skip, rows_of, usable

_REQUESTS = 10
"""Assumed requests per client in a closed loop, as in serving.csv."""
_POOL_REQUESTS = 2
"""The same for disaggregated prefill: in the `calibrate` rows, times to first token and rates agree
best with few requests per client."""
_MEAN_LENGTH = 0.9
"""Mean of lengths that are uniform between 0.8 and 1.0 of the stated ones."""
_LOADS = ("closed loop", "one batch", "one sequence")
# These give each device its own layers, so a sequence passes through devices in turn.
_BY_LAYERS = ("llama.cpp", "llamacpp", "ollama")
_RANGE = re.compile(r"\d+ runs, (\d+(?:\.\d+)?)-(\d+(?:\.\d+)?) tok/s")
_REMOTE_READ = 31e9
"""Bytes per second at which a Max 1550 reads layers of another one: `calibrate` rows of two and
four cards."""
_REMOTE_BAND = Band(low=0.931, high=1.064)
"""Percentiles 10 and 90 of measured over predicted times of these rows."""
_OF_SIZE = 1.1
"""Factor by which bands are wider for shapes that only a size states. They then hold 89 percent of
these `calibrate` rows, 76 percent without it; constants were fitted to the same rows."""
_OPEN = "open loop"
_SINGLE = ("one request", "one request at a time")
_DRAFTS = ("", "0", "none", "unstated", "not flagged", "mtp", "ambiguous", "unmatched")
_OLLAMA_DRAFTS = re.compile(r"gemma4:.*-mlx")
"""Models for which Ollama drafts by default: Gemma 4 for MLX, since release 0.31 of June 2026, is
1.9 times as fast on average ("Faster Gemma 4 on MLX with multi-token prediction", ollama.com)."""
_MODES = ("", "agg", "disagg")
_PASS = 128
"""Least tokens of a pass that llama.cpp is told to take; fewer are requests. Also the least prompt
whose rate says more of a device than of its overhead."""
_OTHER_DEVICE = 0.1
"""Share of the expected rate of prefill below which the stated device did not run it. All
`calibrate` rows reach a quarter of that rate."""


def _single(row: Row) -> bool:
    """Return whether a run had one request at a time.

    The batch of llama.cpp is the tokens of a pass over prompts (`-b`, 2,048 by default); that of
    other engines may count requests.
    """
    load = row.text("load")
    passes = load == "batch" and _by_layers(row) and (row.number("concurrency") or 0) >= _PASS
    # Without that format, rows of equal settings differ twelvefold: another setting varied.
    return load in _SINGLE or (passes and row.text("kv_precision") not in ("", "unstated"))


def _by_layers(row: Row) -> bool:
    return row.text("engine").lower() in _BY_LAYERS


def refuse_what_is_not_modeled(row: Row) -> None:
    """Skip a run that no argument of the solver describes.

    Raises
    ------
    Skip
        If the run has a feature that the solver lacks.
    """
    if row.text("dubious"):
        raise Skip("marked dubious: left out")
    if (spread := _RANGE.search(row.text("note"))) and float(spread[2]) > 2 * float(spread[1]):
        raise Skip(f"its runs differ by more than a factor of two: {spread[0]}")
    if row.text("load") == "batch" and not _single(row):
        raise Skip(
            "load = 'batch': it may count tokens in a pass or requests, or kv_precision is not "
            "stated, and rows with equal settings differ up to twelvefold"
        )
    spec = row.text("spec_decoding")
    if spec.startswith("mtp ("):
        raise Skip("the length of its drafts is not stated")
    if row.text("engine").lower() == "ollama" and _OLLAMA_DRAFTS.match(row.text("model").lower()):
        raise Skip(
            "Ollama drafts for Gemma 4 in MLX unless told otherwise, and the source does not state "
            "how many tokens were accepted"
        )
    if spec not in _DRAFTS:
        raise Skip(
            f"spec_decoding = {shown(spec)}: the length and the acceptance of its drafts are not "
            "known; write none for a run without drafts, or mtp for multi-token prediction"
        )
    if row.text("mode") not in _MODES:
        raise Skip(f"mode = {shown(row.text('mode'))} is not one of agg, disagg")


def refuse_what_does_not_fit(row: Row, given: dict[str, Any], result: Any) -> None:
    """Skip a run that did not have its device's memory alone, or had it in parts.

    Raises
    ------
    Skip
        With what does not fit.
    """
    if row.text("load") == "one batch" and result.running_batch_size < given["batch_size"]:
        raise Skip("the batch does not fit, and the source does not state how it was divided")
    rate, prompt = row.number("prefill_tokens_per_s"), given["seq_len"]
    if _single(row) and rate and prompt >= _PASS:
        usual = prompt / result.ttft.to("s").magnitude
        if rate < _OTHER_DEVICE * usual:
            raise Skip(
                f"prefill_tokens_per_s = {rate:g}, where the device is expected to reach "
                f"{usual:.0f}: another device, such as the host, ran it"
            )
    if _single(row) and not result.feasible and not _file_fits(row, given):
        raise Skip(
            "the device cannot hold it, and the source does not state which part the host held"
        )


def _file_fits(row: Row, given: dict[str, Any]) -> bool:
    """Return whether a GGUF file and its cache fit into the memory that a row states.

    llama.cpp takes all of it, in binary units, without the reserves of servers.
    """
    memory = row.number("device_memory_gb")
    if memory is None or not _by_layers(row):
        return False
    stored = find_precision(given["weight_precision"], files=True)
    each = stored.si("bytes_per_element") + stored.si("scale_bytes")
    model, tokens = given["model"], given["seq_len"] + given["output_len"]
    cache = model.kv_cache_bytes(given["kv_precision"], tokens).to("byte").magnitude
    return bool(model.si("parameters") * each + cache <= memory * 1024**3)


def _plan(row: Row) -> dict[str, int]:
    """Return the sizes of the groups that share a model."""
    count, tp = row.whole("n_gpus", default=1), row.number("tp")
    if _by_layers(row):
        return {"tp_size": 1}
    stages = row.whole("pp", default=1)
    # Engines that serve one replica on several devices split its layers by tensor parallelism.
    size = count // stages if tp is None else row.whole("tp")
    if size * stages != count:
        raise Skip(
            "n_gpus differs from tp x pp: replicas, or experts on more devices than requests are "
            "counted for"
        )
    # Ranks of attention are as many as the devices, each with its own requests.
    ranks = size if _own_requests(row) else 1
    plan = {"attention_dp": ranks, "ep_size": row.whole("ep", default=1), "pp_size": stages}
    used = {name: value for name, value in plan.items() if value > 1}
    return {"tp_size": size // ranks, **used}


def _own_requests(row: Row) -> bool:
    """Return whether ranks of attention had requests of their own.

    Where it is not stated, the tool that the runs were collected from counts a batch for each rank.
    """
    if _has_stated_ranks(row):
        return row.text("dp_attention") == "1"
    return row.whole("batch") * row.whole("tp") == row.whole("concurrency")


def _has_stated_ranks(row: Row) -> bool:
    return row.text("dp_attention") in ("", "0", "1")


def _note(row: Row) -> str:
    """Return what a prediction assumes that the table does not state."""
    _, shape = model_or_estimate(row)
    label, default = _label(row)
    count = row.whole("n_gpus", default=1)
    split = not (row.text("tp") or count == 1 or _by_layers(row) or row.text("mode") == "disagg")
    found = (
        assumption(row),
        f"assumes the {shape}" if shape else "",
        "assumes tp x pp = n_gpus" if split else "",
        f"assumes weights in {label}" if default else "",
    )
    return "; ".join(part for part in found if part)


def assumption(row: Row) -> str:
    """Return what a prediction assumes of drafts and ranks; empty if the table states them."""
    drafts = drafts_of(row)
    if drafts is not None:
        return drafts.note
    shared = "" if _own_requests(row) else "no "
    ranks = f"assumes {shared}ranks of attention with requests of their own"
    return "" if _has_stated_ranks(row) else ranks


def _counted(row: Row, plan: dict[str, Any]) -> int:
    """Return the ranks by which the stated concurrency has to be multiplied.

    The collection notes that for some runs the concurrency may be per rank. Their `calibrate` rows
    support this: it halves the error of the time between tokens.
    """
    return int(plan.get("attention_dp", 1)) if "one attention rank" in row.text("note") else 1


def _pools(row: Row, model: TransformerModel, node: Node) -> dict[str, Any]:
    """Return workers and plans of a run whose prefills and decodes have devices of their own."""
    found: dict[str, Any] = {}
    for pool, prefix in (("prefill", "prefill_"), ("decode", "")):
        size = row.whole(f"{pool}_tp")
        ranks = size if row.text(f"{pool}_dp_attention") == "1" else 1
        found[f"{pool}_workers"] = row.whole(f"{pool}_workers")
        found[f"{prefix}tp_size"] = size // ranks
        found[f"{prefix}attention_dp"] = ranks
        # Some of the source's tables have 0 where experts were not split.
        split = row.text(f"{pool}_ep") not in ("", "0")
        found[f"{prefix}ep_size"] = row.whole(f"{pool}_ep") if split else 1
    # Enough copies of busy experts for all devices to hold equally many.
    found["redundant_experts"] = -model.experts % found["ep_size"]
    count = max(2, -(-row.whole("n_gpus") // node.accelerators_per_node))
    fabric = Systems.Fabrics.InfiniBand_NDR
    found["hardware"] = Fleet(name=f"{count} x {node.name}", node=node, count=count, fabric=fabric)
    return found


def _label(row: Row) -> tuple[str, bool]:
    """Return the format of a run's weights, and whether it is the engine's default."""
    label = row.text("weight_precision")
    if label.lower() not in ("", "unstated"):
        return label, False
    # Tags of Ollama without a format are files in Q4_K_M, and those for MLX have 4 bits.
    default = "4bit" if row.text("model").endswith("-mlx") else "Q4_K_M"
    return (default, True) if _by_layers(row) else (label, False)


def _year(row: Row) -> int:
    """Return the year of the engine, as far as the group tells."""
    return 2024 if row.group.startswith("llm_inference_bench") else 2026


def _length(row: Row, column: str, default: int | None = None) -> int:
    stated = row.whole(column, default=default)
    uniform = row.text("len_note") == "uniform 0.8-1.0"
    return max(1, round(_MEAN_LENGTH * stated)) if uniform else stated


def _device(row: Row) -> Accelerator:
    if row.text("group").startswith("llm_inference_bench") and row.text("hardware") == "a100":
        # The models that fit imply that it is the smaller one; the source does not state it.
        return Hardware.A100_40GB
    label = row.text("hardware")
    try:
        device = accelerator_named(label)
    except Skip:
        raise Skip(f"hardware {shown(label)} is not in the registry") from None
    if row.text("note").startswith("cpu_only") and device is not Hardware.Ryzen_7_7840HS:
        raise Skip("it ran on a processor without an accelerator, not on its hardware")
    return device


def _across_cards(row: Row, device: Accelerator, constants: Any) -> Any:
    """Return constants that read the layers of other cards over the host's link.

    On Data Center GPU Max, llama.cpp with layers on several cards takes longer in proportion to
    the share of layers on the other ones, as if it read them at the rate of PCIe. On other devices
    each card reads its own.
    """
    count = row.whole("n_gpus", default=1)
    if device is not Hardware.Max_1550 or count == 1 or not _by_layers(row):
        return constants
    remote = (count - 1) / count * device.memory.si("bandwidth") / _REMOTE_READ
    efficiency = 1 / (1 / constants.memory_efficiency + remote)
    name = f"{constants.name}, several cards"
    names = ("itl_band", "ttft_band", "unseen_itl_band", "unseen_ttft_band")
    bands = dict.fromkeys(names, _REMOTE_BAND)
    return replace(constants, name=name, memory_efficiency=efficiency, **bands)


def arguments(row: Row) -> dict[str, Any]:
    """Return the solver's arguments for a measured run; those of `OpenLoopSolver` in an open loop.

    Raises
    ------
    Skip
        If the row lacks required data, or the run has a feature that the solver lacks.
    """
    refuse_what_is_not_modeled(row)
    device = _device(row)
    model, _ = model_or_estimate(row)
    load = row.text("load")
    single = _single(row)
    if load not in _LOADS and not single and not load.startswith(_OPEN):
        raise Skip(f"load = {shown(load)} is not one of {', '.join((*_LOADS, *_SINGLE))}")
    recipe = recipe_of(row)
    precision, weight, kv = formats_of(
        _label(row)[0], row.text("kv_precision") or recipe.kept, device
    )
    node = usual_server(device)
    apart = row.text("mode") == "disagg"
    plan = _pools(row, model, server_of(device)) if apart else _plan(row)
    if not apart and max(plan.values()) > 1 and node is None:
        raise Skip(f"several devices, and no server of {device.name} is in the registry")
    if load.startswith(_OPEN):
        formats = {"precision": precision, "weight_precision": weight, "kv_precision": kv}
        where = {"model": model, "hardware": node or device, "tp_size": plan["tp_size"]}
        return open_loop.arguments(row, where | formats, device)
    if row.group == "localmaxxing" and not row.text("prefill_tokens_per_s"):
        for column in ("isl", "osl"):
            if not row.text(column):
                raise Skip(f"{column} is missing, and the rate includes the prompt's prefill")
    drafts = drafts_of(row)
    constants = serving_calibration_for(
        device, row.text("engine"), _year(row), apart, row.text("engine_version")
    )
    return {
        "model": as_stored(model, weight) if single else model,
        "hardware": node or device,
        "seq_len": _length(row, "isl", 1 if single else None),
        "output_len": _length(row, "osl", 200 if single else None),
        "batch_size": 1 if single else row.whole("concurrency") * _counted(row, plan),
        "precision": precision,
        "weight_precision": weight,
        "kv_precision": kv,
        **({} if apart else {"arrivals": 1}),
        **plan,
        **(drafts.arguments() if drafts else {}),
        **({} if recipe.budget is None else {"token_budget": recipe.budget}),
        "waves": 1 if load != "closed loop" else _POOL_REQUESTS if apart else _REQUESTS,
        "calibration": recipe.applied(_across_cards(row, device, constants)),
    }


def tidy(row: Row) -> dict[str, Any]:
    """Return a run as `mlsysim.validate` takes it, with all its figures.

    Raises
    ------
    Skip
        If the row lacks required data, or the run has a feature that the solver lacks.
    """
    given = arguments(row)
    labels = {name: row.text(name) for name in LABELS}
    labels["source"] = f"{row.text('source')} {row.text('url')}".strip()
    measured = {
        figure.field: Q_(figure.to_field(row.measured(figure.column)), figure.field_unit)
        for figure in figures(row, given)
    }
    return labels | given | measured


def tidy_runs(source: Any, model: TransformerModel) -> Iterator[dict[str, Any]]:
    """Yield the runs of a model whose clients wait for their answers, as `tidy` returns them.

    Runs with separate pools are left out, because they have other arguments, and so are those that
    cannot be predicted.
    """
    closed = (row for row in rows_of(source) if row.text("load") == "closed loop")
    together = [row for row in closed if row.text("mode") != "disagg"]
    for row, (shape, _) in usable(together, model_or_estimate):
        if shape.name == model.name:
            yield from (run for _, run in usable([row], tidy))


@dataclass(frozen=True)
class Figure:
    """A measured figure, and the matching field of the result."""

    column: str
    quantity: str
    unit: str
    field: str
    factor: float
    """Factor from the figure to the field."""
    inverse: bool = False
    """Numerator if the field is a number divided by the figure."""

    @property
    def field_unit(self) -> str:
        """The field's unit in SI."""
        rates = {"request_throughput": "1/s"}
        return rates.get(self.field, "token/s" if "throughput" in self.field else "s")

    def to_field(self, value: float) -> float:
        """Return the field's value from a measured figure, in SI units."""
        return self.factor / value if self.inverse else self.factor * value

    def from_field(self, value: float) -> float:
        """Return the figure from a predicted field."""
        return self.factor / value if self.inverse else value / self.factor


def figures(row: Row, given: dict[str, Any]) -> tuple[Figure, ...]:
    """Return the figures of a run that the solver predicts."""
    load = row.text("load")
    # Rows whose concurrency is not that of requests leave the rate per user empty.
    user, total = "output_tokens_per_s_per_user", "output_tokens_per_s"
    column = user if row.text(user) else total
    if load == "closed loop":
        ranks = given.get("attention_dp", 1) * given.get("pp_size", 1)
        devices = given["tp_size"] * ranks
        rate = devices / (given["seq_len"] + given["output_len"])
        field = "request_throughput"
        if "decode_workers" in given:
            rate, field = 1, "throughput_per_device"
        found: tuple[Figure, ...] = (
            Figure("ttft_mean_ms", "ttft", "ms", "ttft", 1e-3),
            Figure("tpot_mean_ms", "tpot", "ms", "itl", 1e-3),
            Figure(
                "total_tokens_per_s_per_gpu",
                "tokens per device",
                "token/s",
                field,
                rate,
            ),
        )
    elif row.group == "localmaxxing" and not row.text("prefill_tokens_per_s"):
        # Its rates fall with the length of the prompt as the whole answer's do, first token and
        # all, but for rows that state the rate of the prefill separately: some of these would have
        # read the prompt for longer than the whole answer took.
        answer = given["output_len"]
        found = (Figure(column, "rate of an answer", "token/s", "latency", answer, inverse=True),)
    elif _single(row):
        found = (Figure(column, "decode rate", "token/s", "decode_throughput", 1),)
    else:
        found = (Figure("e2e_mean_ms", "batch time", "ms", "latency", 1e-3),)
    return tuple(figure for figure in found if row.text(figure.column))


def _cases(row: Row, given: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the arguments of a run in all cases that what is published leaves open.

    The first is the usual one. Where drafts are not certain, the second has none.
    """
    drafts = drafts_of(row)
    if drafts is None:
        return [given]
    plain = {name: value for name, value in given.items() if name not in drafts.arguments()}
    edges = [plain | drafts.arguments(accepted) for accepted in (drafts.low, drafts.high)]
    return [given, *([] if drafts.certain else [plain]), *edges]


def compare(row: Row) -> tuple[Comparison, ...]:
    """Predict every figure of a run that the solver has.

    Raises
    ------
    Skip
        If the row lacks required data, or the run has a feature that the solver lacks.
    """
    given = arguments(row)
    if row.text("load").startswith(_OPEN):
        return open_loop.compare_open_loop(row, given)
    solver = DisaggregatedSolver if "decode_workers" in given else ServingSolver
    cases: list[Any] = [solver.solve(**case) for case in _cases(row, given)]
    drafts = drafts_of(row)
    usual = cases[:1] if drafts is None or drafts.certain else cases[:2]
    refuse_what_does_not_fit(row, given, cases[0])
    wider = _OF_SIZE if "estimated" in model_or_estimate(row)[1] else 1
    found = []
    for figure in figures(row, given):
        values = [figure.from_field(case[figure.field].to_base_units().magnitude) for case in usual]
        bands = [combined_band(case, figure.field, figure.field_unit) for case in cases]
        edges = [figure.from_field(edge) for band in bands for edge in band if edge is not None]
        found.append(
            row.compared(
                f"{figure.quantity} ({figure.unit})",
                row.measured(figure.column),
                geometric_mean(values),
                min(edges) / wider if edges else None,
                max(edges) * wider if edges else None,
                group=f"{row.group}: {figure.quantity}",
                note=_note(row),
            )
        )
    if not found:
        load = shown(row.text("load"))
        raise Skip(f"no measured quantity is predicted for load = {load}")
    return tuple(found)
