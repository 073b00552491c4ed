"""Tables with one run per row: how rows are read, what is skipped, and errors on check rows."""

from __future__ import annotations

import csv
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mlsysim import (
    Hardware,
    Models,
    OpenLoopSolver,
    ServingCalibrations,
    ServingSolver,
    Systems,
)
from mlsysim.core.types import Formats
from mlsysim.validation.report import Report
from research.readers import energy_runs, serving_runs
from research.readers.formats import formats_of
from research.readers.recipes import recipe_of
from research.rows import Row, Skip, read_rows
from research.validate import validate

DATA = Path(__file__).parents[2] / "research/measurements"
SERVING = {row.name: row for row in read_rows(DATA / "serving_2.csv")}
ENERGY = {row.name: row for row in read_rows(DATA / "energy_2.csv")}
LLMIB = "llmib_a100_vllm_Llama-2-7b-hf_n1_1024_b16"
ENGINES = ServingCalibrations.names()
SILICON = "silicon_dsr1_b200_trtllm_fp8_agg_1024x1024_c32_cfg75"


@pytest.fixture(scope="module")
def serving(report_on):
    return report_on("serving_2")


@pytest.fixture(scope="module")
def energy(report_on):
    return report_on("energy_2")


# Check rows and mean absolute errors in percent, as measured and rounded up. The constants of
# serving were fitted to the other rows. With more models in the registry there are more rows.
@pytest.mark.parametrize(
    ("table", "group", "least", "bound"),
    [
        ("serving", "llm_inference_bench: batch time", 580, 11),
        ("serving", "llm_inference_bench_llamacpp: batch time", 70, 6),
        ("serving", "silicon_moe_agg: ttft", 280, 31),
        ("serving", "silicon_moe_agg: tpot", 280, 10),
        ("serving", "silicon_moe_agg: tokens per device", 100, 9),
        ("serving", "silicon_disagg: tokens per device", 55, 13),
        ("serving", "silicon_disagg: tpot", 90, 9),
        # Open loops: constants were fitted to the calibrate rows.
        ("serving", "openloop_vllm: p50 TTFT", 5, 8),
        ("serving", "openloop_vllm: TPOT", 5, 6),
        ("serving", "openloop_vllm: p99 TTFT", 5, 44),
        ("serving", "openloop_simreal: mean TTFT", 5, 21),
        ("serving", "openloop_simreal: p99 TTFT", 6, 41),
        ("serving", "openloop_simreal: TPOT", 5, 7),
        ("energy", "infx_energy: device power", 6, 9),
        ("energy", "infx_energy: energy per token", 6, 11),
        ("energy", "mlenergy_llm: device power", 73, 9),
        ("energy", "mlenergy_llm: energy per token", 73, 13),
    ],
)
def test_error_of_a_group(request, table, group, least, bound):
    report = request.getfixturevalue(table).only("check")
    stated = [row for row in report.comparisons if not row.note or group.startswith("llm_")]
    found = Report(stated, []).groups[group]
    assert found.n >= least
    assert found.mape <= bound


# Single users report their own runs, which differ more than those of a laboratory.
@pytest.mark.parametrize(
    ("group", "least", "median", "mean"),
    [
        ("llmfit: decode rate", 80, 6, 12),
        ("localmaxxing: decode rate", 70, 10, 15),
        ("localmaxxing: rate of an answer", 8, 6, 21),
    ],
)
def test_error_of_single_users(serving, group, least, median, mean):
    found = serving.only("check").groups[group]
    assert found.n >= least
    assert found.median_ape <= median
    assert found.mape <= mean
    assert 65 <= found.band_coverage <= 95


def test_several_cards_that_read_from_each_other(serving):
    """llama.cpp on Data Center GPU Max: the share of layers on other cards passes over PCIe."""
    found = [
        item
        for item in serving.only("check").comparisons
        if SERVING[item.id].text("hardware") == "max1550"
        and item.group.startswith("llm_inference_bench_llamacpp")
    ]
    counts = Counter(SERVING[item.id].text("n_gpus") for item in found)
    assert set(counts) == {"1", "2", "4"}
    assert max(abs(item.error) for item in found) < 0.2


@pytest.mark.parametrize(("table", "rows"), [("serving", SERVING), ("energy", ENERGY)])
def test_no_row_is_lost(request, table, rows):
    report = request.getfixturevalue(table)
    predicted = {item.id for item in report.comparisons}
    skipped = [name for name, _ in report.skipped]
    assert len(skipped) == len(set(skipped))
    assert len(predicted) + len(skipped) == len(rows)
    assert predicted | set(skipped) == set(rows)
    assert all(reason for _, reason in report.skipped)


def test_one_batch_by_hand():
    assert serving_runs.arguments(SERVING[LLMIB]) == {
        "model": Models.Llama2_7B,
        # Not stated: the source calls it A100.
        "hardware": Systems.Nodes.DGX_A100_40GB,
        "seq_len": 1024,
        "output_len": 1024,
        "batch_size": 16,
        "precision": "bf16",
        "weight_precision": "bf16",
        "kv_precision": "bf16",
        "tp_size": 1,
        "waves": 1,
        "arrivals": 1,
        "calibration": ServingCalibrations.Ampere_vLLM,
    }
    (found,) = serving_runs.compare(SERVING[LLMIB])
    assert found.measured == SERVING[LLMIB].number("e2e_mean_ms")
    tokens = 2 * 1024 * 16
    assert found.measured / 1000 == pytest.approx(
        tokens / SERVING[LLMIB].number("total_tokens_per_s"), rel=1e-3
    )


def test_a_closed_loop_by_hand():
    given = serving_runs.arguments(SERVING[SILICON])
    assert given == {
        "model": Models.DeepSeek_V3,
        "hardware": Systems.Nodes.DGX_B200,
        # Lengths are uniform between 0.8 and 1.0 of 1,024.
        "seq_len": 922,
        "output_len": 922,
        "batch_size": 32,
        "precision": "fp8",
        "weight_precision": "fp8",
        "kv_precision": "fp8",
        "tp_size": 8,
        # The script that started it: clients, a prompt and 64 more, in blocks of 64.
        "token_budget": 1152,
        "waves": 10,
        "arrivals": 1,
        "calibration": replace(ServingCalibrations.Blackwell_TensorRT, aligned_ranks=1),
    }
    r = ServingSolver.solve(**given)
    ttft, tpot, rate = serving_runs.compare(SERVING[SILICON])
    assert (ttft.measured, tpot.measured, rate.measured) == (428.351, 23.0563, 333.68)
    assert ttft.predicted == pytest.approx(r.ttft.to("ms").magnitude)
    assert tpot.predicted == pytest.approx(r.itl.to("ms").magnitude)
    per_device = 1844 * r.request_throughput.to("1/s").magnitude / 8
    assert rate.predicted == pytest.approx(per_device)


def test_one_request_on_a_desktop():
    base = {"id": "x", "group": "mine", "load": "one request", "concurrency": "1", "isl": "512"}
    base |= {"model": "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF", "hardware": "RTX 4090"}
    base |= {"weight_precision": "Q4_K_M", "engine": "llama.cpp", "osl": "128"}
    base |= {"output_tokens_per_s_per_user": "120", "split": "check", "tpot_mean_ms": ""}
    given = serving_runs.arguments(Row(base))
    # Files of llama.cpp hold the output projection in Q6_K.
    assert given["model"] == replace(Models.Llama3_8B, formats=Formats(embeddings="q6_k"))
    assert given["hardware"] is Hardware.RTX_4090
    assert (given["precision"], given["weight_precision"]) == ("bf16", "q4_k_m")
    (found,) = validate([base]).comparisons
    assert found.group == "mine: decode rate"
    assert 60 < found.predicted < 240


def test_layers_on_several_devices_take_the_time_of_one():
    """A sequence passes llama.cpp's devices one after the other."""
    rows = [row for row in SERVING.values() if row.group == "llm_inference_bench_llamacpp"]
    given = [serving_runs.arguments(r) for r in rows if r.text("hardware") == "h100_sxm"
             and "Llama-2-7b" in r.text("model")]  # fmt: skip
    assert {item["tp_size"] for item in given} == {1}


BASE = {"id": "x", "group": "mine", "load": "one request", "concurrency": "1", "isl": "",
        "engine": "llama.cpp", "hardware": "RTX 3060",
        "output_tokens_per_s_per_user": "100"}  # fmt: skip


def test_rows_that_are_no_multiple_of_a_block_are_stored_wider():
    """SmolLM2 135M is 576 wide: its files in Q4_K_M have 6.2 bits per weight."""
    row = Row(BASE | {"model": "SmolLM2-135M-Instruct", "weight_precision": "Q4_K_M"})
    formats = serving_runs.arguments(row)["model"].formats
    assert formats.embeddings.name == "q8_0"
    assert formats.attention.name == formats.feed_forward.name == "q5_k_m"


@pytest.mark.parametrize(
    ("model", "label", "part", "stored"),
    [
        # Experts of 704 and 1,856: rows of 2.75 and 7.25 blocks.
        ("gemma-4-26B-A4B-it", "Q4_K_M", "experts", "q5_k_s"),
        ("Nemotron-3-Nano-30B-A3B", "Q4_K_M", "experts", "q5_k_m"),
        # Formats with blocks of 32 weights, and experts of 768, stay as they are.
        ("gemma-4-26B-A4B-it", "Q4_0", "experts", None),
        ("Qwen3-30B-A3B", "Q4_K_M", "experts", None),
        # The width of an estimate is rounded, and says nothing.
        ("Someone_New-9B", "Q4_K_M", "feed_forward", None),
    ],
)
def test_blocks_of_no_whole_number_of_blocks_have_a_wider_last_matrix(model, label, part, stored):
    row = Row(BASE | {"model": model, "weight_precision": label})
    found = getattr(serving_runs.arguments(row)["model"].formats, part)
    assert (found and found.name) == stored


@pytest.mark.parametrize(
    ("model", "engine", "refused"),
    [
        ("gemma4:12b-mlx", "ollama", True),
        ("gemma4:e4b", "ollama", False),
        ("qwen3.5:9b-mlx", "ollama", False),
    ],
)
def test_ollama_drafts_for_gemma_4_in_mlx(model, engine, refused):
    row = Row(BASE | {"model": model, "engine": engine, "weight_precision": "unstated"})
    if refused:
        with pytest.raises(Skip, match="tokens were accepted"):
            serving_runs.compare(row)
    else:
        assert serving_runs.compare(row)


def test_a_prompt_that_takes_far_too_long_ran_elsewhere():
    row = BASE | {"model": "Qwen3-8B", "weight_precision": "Q4_K_M", "isl": "512"}
    result = ServingSolver.solve(**serving_runs.arguments(Row(row)))
    usual = 512 / result.ttft.to("s").magnitude
    assert serving_runs.compare(Row(row | {"prefill_tokens_per_s": f"{usual / 5}"}))
    with pytest.raises(Skip, match="another device"):
        serving_runs.compare(Row(row | {"prefill_tokens_per_s": f"{usual / 20}"}))
    # The rate of a short prompt is that of its overhead.
    short = row | {"isl": "30", "prefill_tokens_per_s": f"{usual / 20}"}
    assert serving_runs.compare(Row(short))


def test_what_is_assumed_is_in_the_comparison(tmp_path):
    named = BASE | {"model": "Someone_New-9B-Q4_K_M.gguf", "weight_precision": "Q4_K_M"}
    (found,) = validate([named]).comparisons
    assert found.note == "assumes the shape estimated from its size: dense model of 9B"
    tag = BASE | {"model": "gemma3:4b", "weight_precision": "unstated", "engine": "ollama"}
    (other,) = validate([tag]).comparisons
    assert other.note == "assumes weights in Q4_K_M"
    split = dict(SERVING[LLMIB].cells) | {"n_gpus": "2", "tp": ""}
    assert serving_runs.arguments(Row(split))["tp_size"] == 2
    (halved,) = serving_runs.compare(Row(split))
    assert halved.note == "assumes tp x pp = n_gpus"
    assert not serving_runs.compare(SERVING[LLMIB])[0].note
    path = tmp_path / "out.csv"
    validate([named]).to_csv(path)
    assert path.read_text().splitlines()[0].endswith(",error_percent,note")


def test_formats_follow_the_device_and_the_label():
    b200, h100 = Hardware.B200, Hardware.H100
    assert formats_of("NVFP4", "", b200) == ("fp4", "fp4", "fp8")
    # A device without the format stores it and computes in 16 bits.
    assert formats_of("NVFP4", "", h100) == ("bf16", "fp4", "bf16")
    assert formats_of("Q8_0", "q8_0", h100) == ("bf16", "q8_0", "int8")
    assert formats_of("bf16", "fp8", h100) == ("bf16", "bf16", "fp8")
    assert formats_of("f16 (gguf)", "16 bit", Hardware.V100) == ("fp16",) * 3


def test_power_and_energy_by_hand():
    name = "infx_energy_dsr1_b200_sglang_fp4_agg_1024x1024_c16_cfg202"
    given = energy_runs.arguments(ENERGY[name])
    assert given == {
        "model": Models.DeepSeek_V3,
        "hardware": Systems.Nodes.DGX_B200,
        # Nine tenths of 1,024, as in the other runs of this client.
        "seq_len": 922,
        "output_len": 922,
        "batch_size": 16,
        "precision": "fp4",
        "weight_precision": "fp4",
        "kv_precision": "fp8",
        "tp_size": 4,
        "attention_dp": 1,
        "ep_size": 4,
        "token_budget": None,
        "calibration": ServingCalibrations.Blackwell_SGLang,
    }
    power, energy = energy_runs.compare(ENERGY[name])
    assert power.measured == 2674.8 / 4
    assert energy.measured == 2.25477
    # Power over rate is energy, as long as both are of the same run.
    assert energy.measured == pytest.approx(2674.8 / 1186.3, rel=1e-3)


def test_prompts_of_a_benchmark_and_mean_batches():
    row = next(r for r in ENERGY.values() if "lm-arena-chat_Qwen3-32B" in r.name)
    given = energy_runs.arguments(row)
    assert given["seq_len"] == 150
    assert given["batch_size"] == round(row.number("batch"))
    assert given["model"] is Models.Qwen3_32B
    assert given["calibration"] in (
        ServingCalibrations.Hopper_vLLM_0_11,
        ServingCalibrations.Blackwell_vLLM_0_11,
    )


@pytest.mark.parametrize(
    ("model", "padding"),
    [
        ("Qwen3-235B-A22B-Thinking-2507-FP8", 127),
        ("Qwen3-235B-A22B-Thinking-2507", 0),
        # FlashInfer, and scales per channel
        ("DeepSeek-V3.1", 0),
        ("Llama-4-Maverick-17B-128E-Instruct-FP8", 0),
    ],
)
def test_experts_with_a_scale_per_block_are_aligned(model, padding):
    row = next(row for row in ENERGY.values() if row.text("model").endswith(model)
               and row.group == "mlenergy_llm")  # fmt: skip
    given = energy_runs.arguments(row)
    assert given["calibration"].expert_padding == padding
    assert given["calibration"].expert_waiting == 1
    assert given["kv_precision"] == "bf16"


def test_ranks_with_their_own_requests():
    rows = [row for row in ENERGY.values() if row.whole("dp", default=1) > 1]
    assert rows
    for row in rows:
        given = energy_runs.arguments(row)
        assert given["tp_size"] * given["attention_dp"] == row.whole("n_gpus")
        assert given["ep_size"] == row.whole("ep")


def test_code_is_predicted_with_an_assumption(energy):
    rows = [row for row in energy.comparisons if "sourcegraph" in row.id]
    assert rows
    assert all("1,000 tokens are assumed" in row.note for row in rows)
    assert not any(row.note for row in energy.comparisons if "gpqa" in row.id)


def test_a_device_that_waits_for_its_host_idles():
    shares = {"constant_share": 0.3, "compute_share": 1.0, "memory_share": 0.5}
    result = SimpleNamespace(hfu=0.2, mbu=0.4)
    device = Hardware.H100

    def share(faster):
        drawn = energy_runs.Drawn.at_rate(device, result, faster)
        return drawn.power(shares) / device.tdp.to("W").magnitude

    assert share(1) == pytest.approx(0.3 + 0.2 + 0.2)
    # Half of the time it works, and half of it idles at a tenth of the design power.
    assert share(0.5) == pytest.approx(0.5 * 0.7 + 0.5 * 0.1)
    # It cannot be busier than all of the time.
    assert share(1.2) == pytest.approx(0.3 + 1.2 * 0.4)


# Runs whose drafts, or ranks of attention, the table does not state: their predictions assume them.
@pytest.mark.parametrize(
    ("group", "least", "bound"),
    [
        ("silicon_moe_agg: tpot", 55, 24),
        ("silicon_moe_agg: ttft", 55, 43),
        ("silicon_disagg: tpot", 50, 16),
    ],
)
def test_error_of_runs_predicted_with_an_assumption(serving, group, least, bound):
    assumed = [row for row in serving.only("check").comparisons if row.note]
    found = Report(assumed, []).groups[group]
    assert found.n >= least
    assert found.mape <= bound
    assert 50 <= found.band_coverage <= 95


def changed(**cells):
    return Row({**SERVING[SILICON].cells, **cells})


@pytest.mark.parametrize(
    ("cells", "tokens", "accepted"),
    [
        # Drafts of the published scripts, and the middle of the published acceptance lengths.
        ({}, 3, (2.49 + 2.97) / 2),
        ({"dp_attention": "1"}, 1, (1.79 + 1.92) / 2),
        ({"engine": "sglang"}, 2, (2.27 + 2.61) / 2),
        ({"engine": "sglang", "model": "Qwen/Qwen3.5-397B-A17B"}, 3, (3.33 + 3.39) / 2),
        ({"engine": "sglang", "model": "moonshotai/Kimi-K2.5"}, 3, (2.49 + 3.39) / 2),
    ],
)
def test_drafts_are_those_of_published_scripts(cells, tokens, accepted):
    given = serving_runs.arguments(changed(spec_decoding="mtp", **cells))
    assert given["draft_tokens"] == tokens
    assert given["acceptance_length"] == pytest.approx(accepted)


def test_drafts_that_are_assumed_widen_the_band():
    row = changed(spec_decoding="mtp", total_tokens_per_s_per_gpu="")
    given = serving_runs.arguments(row)
    _, tpot = serving_runs.compare(row)
    low, high = (
        ServingSolver.solve(**{**given, "acceptance_length": accepted}) for accepted in (2.49, 2.97)
    )
    assert tpot.low == pytest.approx(high.itl_low.to("ms").magnitude)
    assert tpot.high == pytest.approx(low.itl_high.to("ms").magnitude)
    assert "2.73" in tpot.note


def test_a_run_that_may_have_drafted_is_between_both_cases():
    plain, mtp, either = (
        serving_runs.compare(changed(spec_decoding=spec))[1]
        for spec in ("none", "mtp", "unmatched")
    )
    assert either.predicted == pytest.approx(math.sqrt(plain.predicted * mtp.predicted))
    assert either.low == pytest.approx(mtp.low)
    assert either.high == pytest.approx(plain.high)
    assert plain.note == ""


@pytest.mark.parametrize(("batch", "size", "ranks"), [("32", 8, 1), ("4", 1, 8)])
def test_ranks_that_are_not_stated_follow_from_the_batch(batch, size, ranks):
    row = changed(dp_attention="unstated", batch=batch)
    given = serving_runs.arguments(row)
    assert (given["tp_size"], given.get("attention_dp", 1)) == (size, ranks)
    assert "ranks of attention" in serving_runs.compare(row)[0].note


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"dubious": "too fast"}, "dubious"),
        ({"mode": "disagg"}, "prefill_tp is missing"),
        ({"load": "open loop"}, "the arrival rate is not stated"),
        ({"load": "open loop", "arrival_rate_rps": "5 then 10"}, "stages of different rates"),
        ({"load": "open loop, bursts", "arrival_rate_rps": "5"}, "how requests are spaced"),
        ({"load": "batch"}, "tokens in a pass or requests"),
        ({"note": "discrete; 3 runs, 0.27-13.3 tok/s"}, "differ by more than a factor of two"),
        ({"load": "parade"}, "is not one of"),
        ({"spec_decoding": "mtp (in the name)"}, "length of its drafts"),
        ({"spec_decoding": "eagle"}, "acceptance of its drafts"),
        ({"mode": "two pools"}, "not one of agg, disagg"),
        ({"n_gpus": "16"}, "differs from tp"),
        ({"hardware": "abacus"}, "'abacus' is not in the registry"),
        ({"model": "org/None"}, "none in the registry"),
        ({"weight_precision": "AVQ2"}, "not modeled"),
        ({"weight_precision": "unstated"}, "not stated"),
        ({"kv_precision": "turbo2"}, "keys and values of that width"),
        ({"concurrency": ""}, "concurrency is missing"),
        ({"isl": ""}, "isl is missing"),
        ({"note": "cpu_only; Ryzen"}, "without an accelerator"),
        (
            {"ttft_mean_ms": "", "tpot_mean_ms": "", "total_tokens_per_s_per_gpu": ""},
            "no measured quantity is predicted",
        ),
    ],
)
def test_serving_rows_that_cannot_be_predicted_say_why(changed, reason):
    with pytest.raises(Skip, match=reason):
        serving_runs.compare(Row({**SERVING[SILICON].cells, **changed}))


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"architecture": "diffusion"}, "diffusion"),
        ({"task": "image-chat"}, "images"),
        ({"task": "riddles", "prompt": ""}, "length of its prompts"),
        ({"hardware": "M4_Max"}, "no server"),
        ({"dubious": "yes"}, "dubious"),
        ({"power_W": ""}, "power_W is missing"),
    ],
)
def test_energy_rows_that_cannot_be_predicted_say_why(changed, reason):
    row = ENERGY["infx_energy_dsr1_b200_sglang_fp4_agg_1024x1024_c16_cfg202"]
    with pytest.raises(Skip, match=reason):
        energy_runs.compare(Row({**row.cells, **changed}))


CASES = (
    SERVING[SILICON],
    SERVING[LLMIB],
    next(r for r in SERVING.values() if r.group == "llm_inference_bench_llamacpp"),
    ENERGY["infx_energy_dsr1_b200_sglang_fp4_agg_1024x1024_c16_cfg202"],
    next(r for r in ENERGY.values() if "lm-arena-chat_Qwen3-32B" in r.name),
)


@pytest.mark.parametrize("row", CASES, ids=lambda row: row.group)
@pytest.mark.parametrize("cell", ["", "abc", "0", "-1", "1.5", "inf", "1e18", "1e300", "9" * 5000])
def test_a_row_is_predicted_or_says_why_whatever_is_in_a_cell(row, cell):
    kind = "energy" if "power_W" in row.cells else "serving"
    for column in row.cells:
        found = validate([{**row.cells, column: cell}], kind=kind)
        assert len(found.skipped) == (0 if found.comparisons else 1), column
        assert all(0 < item.predicted < 1e30 for item in found.comparisons)
    bare = validate([{k: v for k, v in row.cells.items() if k != "hardware"}], kind=kind)
    assert len(bare.skipped) == 1


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, row in SERVING.items()
        if row.text("load").startswith("open")
        and row.text("dubious")
        and "CodeLlama" not in row.text("model")  # it is not in the registry
    ],
)
def test_open_loops_that_could_not_keep_up_are_said_to(name):
    """Requests waited for minutes, and many timed out."""
    row = Row(dict(SERVING[name].cells) | {"dubious": ""})
    result = OpenLoopSolver.solve(**serving_runs.arguments(row))
    assert result.utilization > 1
    assert not result.feasible
    with pytest.raises(Skip, match="no steady state is predicted: arrivals exceed capacity"):
        serving_runs.compare(row)


def test_an_open_loop_by_hand():
    name = "openloop_20260217-231439-llama-2-7b-tp1-general_stage0"
    given = serving_runs.arguments(SERVING[name])
    calibration = given.pop("calibration")
    assert calibration.pass_tokens == 2048
    assert given == {
        "model": Models.Llama2_7B,
        "hardware": Systems.Nodes.DGX_H100,
        "tp_size": 1,
        "precision": "fp16",
        "weight_precision": "fp16",
        "kv_precision": "bf16",
        "arrival_rate": 8,
        "burstiness": 0,
        "seq_len": 575,
        "output_len": 248,
        # Nine system prompts with five users each: 45 of 4,800 requests are the first of theirs.
        "cached_share": pytest.approx(1 - (45 * 575 + 4755 * 8) / 4800 / 575),
        "input_variation": pytest.approx(math.sqrt(45 * 4755) * 567 / (45 * 575 + 4755 * 8)),
        "batch_limit": 128,
    }
    later = serving_runs.arguments(SERVING[name.replace("stage0", "stage1")])
    assert (later["cached_share"], later["input_variation"]) == (pytest.approx(1 - 8 / 575), 0)


def test_bands_of_open_loops_hold_four_of_five(serving):
    found = [item for item in serving.only("check").comparisons if item.id in SERVING]
    found = [item for item in found if item.group.startswith("openloop")]
    held = [item.within_band for item in found]
    assert len(held) >= 80
    assert None not in held
    assert 0.7 <= sum(held) / len(held) <= 0.95


def test_a_run_that_the_device_cannot_hold_is_skipped(serving):
    """The host held a part of it, and the table does not say which."""
    names = {name for name, reason in serving.skipped if "cannot hold" in reason}
    assert names
    for name in names:
        given = serving_runs.arguments(SERVING[name])
        assert given["batch_size"] == 1
        assert not ServingSolver.solve(**given).feasible


@pytest.mark.parametrize(
    ("changed", "recipe"),
    [
        # In 16 bits unless the script says otherwise, and until it does.
        (
            {"engine": "vllm", "model": "a/MiniMax-M2.5", "measured_on": "2026-03-30"},
            ("16 bit", None, 1, 0),
        ),
        (
            {"engine": "vllm", "model": "a/MiniMax-M2.5", "measured_on": "2026-04-03"},
            ("fp8", 2048, 1, 0),
        ),
        ({"engine": "sglang", "concurrency": "15"}, ("fp8", 32_768, 10, 0)),
        ({"engine": "sglang", "concurrency": "16"}, ("fp8", 32_768, 30, 0)),
        (
            {"engine": "sglang", "concurrency": "16", "hardware": "h200_sxm"},
            ("16 bit", 32_768, 1, 0),
        ),
        ({"concurrency": "64", "measured_on": "2026-02-01"}, ("fp8", 8192, 1, 40)),
        # Ranks of attention hold prompts back, to take them together.
        (
            {"concurrency": "64", "dp_attention": "1", "measured_on": "2026-02-01"},
            ("fp8", 8192, 60, 40),
        ),
        ({"source": "mine", "concurrency": "64"}, ("", None, 1, 0)),
    ],
)
def test_settings_that_scripts_state(changed, recipe):
    found = recipe_of(Row({**SERVING[SILICON].cells, **changed}))
    assert (found.kept, found.budget, found.poll_steps, found.hold_steps) == recipe


def test_models_that_no_constant_has_seen():
    """Leave out each model in turn, and predict its time between tokens."""
    with (DATA / "serving_families.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["quantity"] == "TPOT"]
    errors = [abs(float(row["predicted_s"]) / float(row["measured_s"]) - 1) for row in rows]
    assert len({row["model"] for row in rows}) >= 10
    assert 100 * sum(errors) / len(errors) <= 18


def test_the_band_of_an_unseen_model_holds_its_runs():
    """It has to be wider than the band of models that the constants were fitted to."""
    engines = {ServingCalibrations[key].name: ServingCalibrations[key] for key in ENGINES}
    fields = {"TPOT": "itl", "TTFT": "ttft"}
    inside: dict[str, list[bool]] = {"": [], "unseen_": []}
    with (DATA / "serving_families.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            engine, field = engines[row["engine"]], fields[row["quantity"]]
            ratio = float(row["measured_s"]) / float(row["predicted_s"])
            for width, found in inside.items():
                band = getattr(engine, f"{width}{field}_band")
                found.append(band.low <= ratio <= band.high)
    seen, unseen = (100 * sum(found) / len(found) for found in inside.values())
    assert 70 <= unseen <= 95
    assert seen < unseen


def test_the_first_full_pass_of_one_release_compiles_kernels():
    cells = {"engine": "sglang", "weight_precision": "fp4", "measured_on": "2025-11-10"}
    cells |= {"concurrency": "32", "total_tokens_per_s_per_gpu": ""}
    slow, plain, few = (
        serving_runs.compare(changed(**{**cells, **more}))[0].predicted
        for more in ({}, {"measured_on": "2025-11-18"}, {"concurrency": "8"})
    )
    # 70 s in the first of ten waves.
    assert slow - plain == pytest.approx(7000)
    assert few < plain
