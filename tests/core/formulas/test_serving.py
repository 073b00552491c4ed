"""Requests in a server: counted one by one, and at the limits of load and memory."""

import math
from statistics import fmean

import pytest

from mlsysim.core import formulas as f


def test_keys_and_values_of_a_llama():
    # Llama 3 8B: 32 layers, 8 heads of 128, 16 bits: 128 KiB for each token.
    assert f.kv_cache_size(32, 8, 128, 1, 2) == 128 * 1024
    assert f.kv_cache_size(32, 8, 128, 8192, 2) == 2**30


def test_heads_are_not_split():
    """Beyond a device for each head, devices hold copies (Pope et al., 2022, section 3.3)."""
    assert [f.kv_per_device(64, n, 8) for n in (1, 2, 8, 16)] == [64, 32, 8, 8]


def test_ranks_with_the_same_heads_divide_the_tokens():
    """One cached head on 8 devices: 8 copies, or a part of the tokens on each device."""
    assert [f.kv_per_context_rank(f.kv_per_device(64, 8, 1), n) for n in (1, 2, 8)] == [64, 32, 8]


def test_whole_sequences_fit_or_do_not():
    assert f.largest_batch(80, 16, 10) == 6
    assert f.largest_batch(80, 16, 8) == 8
    assert f.largest_batch(80, 90, 8) == 0
    assert f.longest_context(80, 16, 0.1, 4) == 160
    assert f.longest_context(80, 16, 0.3, 4) == 53
    assert f.longest_context(80, 90, 0.1, 4) == 0


def test_a_workspace_holds_the_wider_block():
    # 8,192 tokens of Llama 3 8B in 16 bits: 2 x 4096 of the stream, 3 x 14,336 in the block.
    assert f.pass_workspace(8192, 4096, 2 * 128 * 40, 3 * 14_336, 1, 2) == 838_860_800
    # On two devices, the block is half as wide, and the stream is not.
    assert f.pass_workspace(8192, 4096, 10_240, 43_008, 2, 2) == 8192 * (8192 + 21_504) * 2
    assert f.pass_workspace(1, 1, 9, 3, 1, 1) == 2 + 9


def test_weights_of_a_checkpoint():
    assert f.stored_weights(100, 20, 0.5, 0.25, 2) == 80 * 0.75 + 40


def test_a_request_is_admitted_after_the_steps_that_are_launched():
    # Alone: at once. With three others: three quarters of one and a half steps of 10, or of all.
    assert f.admission_wait(10, 1, 1.5, 100) == 0
    assert f.admission_wait(10, 4, 1.5, 100) == 0.75 * 15
    assert f.admission_wait(10, 4, 1.5, 2) == 0.75 * 10
    assert f.admission_wait(10, 4, 1.5, 1) == f.admission_wait(10, 4, 1.5, 0) == 0


def test_operations_of_a_prompt_and_of_a_step():
    # Logits of a prompt are those of its last token.
    assert f.prefill_flops(1000, 4, 6, 3, 50) == 9000 + 200
    assert f.decode_flops(4, 6, 3, 50) == 4 * 59
    assert f.mean_context(1000, 200) == fmean([1000, 1200])


def test_the_mean_request_of_a_burst_waits_for_half_of_it():
    """Twelve prompts, three to a pass: the first three have theirs at the end of the first."""
    ends = [3 * 0.5 * (1 + k // 3) for k in range(12)]
    assert f.burst_prefill_time(0.5, 12, 3) == fmean(ends)
    assert f.burst_prefill_time(0.5, 1, 1) == 0.5


def test_a_pass_reads_the_prompts_that_fit_and_at_least_one():
    assert f.prompts_per_pass(8192, 1000, 64, 1) == 8
    assert f.prompts_per_pass(8192, 1000, 5, 1) == 5
    assert f.prompts_per_pass(8192, 9000, 5, 1) == 1
    # Each of four ranks takes a part of a long prompt.
    assert f.prompts_per_pass(512, 2048, 64, 4) == 4


def test_ranks_prefill_chunks_of_different_prompts_in_a_pass():
    # Four passes for each of eight prompts, one after the other or on four ranks.
    assert f.passes_per_prompt(512, 2048, 1, 1) == 4
    assert f.passes_per_prompt(512, 2048, 1, 4) == 4
    assert f.passes_per_prompt(512, 2048, 4, 4) == 1
    # Two short prompts share a pass.
    assert f.passes_per_prompt(512, 256, 2, 1) == 0.5


def test_places_that_fall_free_together():
    # 64 requests of 17 tokens, 16 steps: four end with each. Of 129 tokens: one every other step.
    assert f.arrivals_together(64, 17, 1, 1) == 4
    assert f.arrivals_together(64, 129, 1, 1) == 1
    assert f.arrivals_together(64, 17, 10, 1) == 10
    assert f.arrivals_together(64, 17, 100, 1) == 64
    assert f.arrivals_together(64, 1, 1, 1) == 64
    # Admitted every other step, eight start together.
    assert f.arrivals_together(64, 17, 1, 2) == 8


def test_the_first_wave_is_one_of_all():
    assert f.mean_over_waves(8, 3, 5) == fmean([8, 3, 3, 3, 3])
    assert f.mean_over_waves(8, 3, 1) == 8
    assert f.mean_over_waves(8, 3, math.inf) == 3


def test_clients_without_a_place_wait():
    """By Little's law 12 clients, 4 at work for a second each, wait two seconds for the third."""
    assert f.place_wait(12, 4, 1.0, math.inf) == 2
    # One wave of twelve: four wait nothing, four a stay, four two.
    assert f.place_wait(12, 4, 1.0, 1) == fmean([0, 1, 2])
    assert f.place_wait(4, 4, 1.0, 1) == 0
    assert f.place_wait(12, 4, 3.0, math.inf) == 6


def test_a_request_and_a_server_take_the_time_of_their_tokens():
    assert f.request_time(2.0, 0.1, 11) == 3
    assert f.request_time(2.0, 0.1, 1) == f.request_time(2.0, 0.1, 0) == 2
    assert f.continuous_batching_rate(6, 11, 0.1, 2.0) == 2
    assert f.continuous_batching_rate(6, 1, 0.1, 2.0) == f.continuous_batching_rate(6, 0, 0.1, 2.0)
    assert f.continuous_batching_rate(6, 0, 0.1, 2.0) == 3


def test_prompts_that_others_bring_are_read_between_tokens():
    """While a request decodes 10 tokens more, 8 prompts are read, less what its first token saw."""
    assert f.interference_time(0.5, 8, 1.0, 11, 0) == pytest.approx(0.3)
    assert f.interference_time(0.5, 8, 4.0, 11, 0) == 0
    assert f.interference_time(0.5, 8, 1.0, 1, 0) == 3
    # Two of twelve steps pass before the request is admitted.
    assert f.interference_time(0.5, 8, 1.0, 11, 2) == pytest.approx(3 / 12)
