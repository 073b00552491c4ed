"""Traces: what is read, and errors that name the row."""

import json

import numpy as np
import pytest

from mlsysim import Q_, ConfigError, Hardware, Models, OpenLoopSolver, Traffic
from mlsysim.traffic import Trace, engine_for, read_trace, simulate

HEAD = "arrival_s,input_tokens,output_tokens"


@pytest.fixture
def trace(tmp_path):
    def write(*lines, head=HEAD):
        path = tmp_path / "trace.csv"
        path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
        return path

    return write


def test_a_trace_by_hand(trace):
    found = Traffic.from_trace(trace("10,100,8", "11,300,8", "14,200,32"))
    assert found.arrival_rate == Q_(0.5, "1/s")  # two gaps in four seconds
    assert found.burstiness == pytest.approx((1 / 2) ** 2)  # gaps of 1 and 3 s
    assert found.seq_len == 200
    assert found.input_variation == pytest.approx(np.sqrt(2 / 3) / 2)
    assert found.output_len == 16
    assert found.output_variation == pytest.approx(np.sqrt(2) / 2)


def test_what_a_trace_tells_is_what_the_solver_takes(trace):
    found = Traffic.from_trace(trace("0,100,8", "1,301,8", "4,200,32"))
    answer = OpenLoopSolver.solve(
        model=Models.Llama3_8B, hardware=Hardware.H100, **found.arguments()
    )
    assert answer.feasible


def test_one_of_several_traces(trace):
    lines = ("0,10,1,a", "1,10,1,a", "0,20,2,b", "4,20,2,b")
    path = trace(*lines, head=f"{HEAD},trace")
    assert len(read_trace(path, only={"trace": "b"})) == 2
    assert Traffic.from_trace(path, only={"trace": "b"}).arrival_rate == Q_(0.25, "1/s")
    with pytest.raises(ConfigError, match=r"line 4.*only="):
        read_trace(path, ignore="trace")
    with pytest.raises(ConfigError, match=r"\(0\)"):
        read_trace(path, only={"trace": "c"})
    with pytest.raises(ConfigError, match="no column service"):
        read_trace(path, only={"service": "c"})


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("-1,10,1", "arrival_s = -1"),
        ("0.5,10,1", "is before 1"),
        (",10,1", "arrival_s is empty"),
        ("2,,1", "input_tokens is empty"),
        ("2,10", "fewer cells"),
        ("2,10,1,1", "more or fewer cells"),
        ("2 s,10,1", "'2 s' is not a number.*without a unit"),
        ("2023-11-16 18:17:03,10,1", "is not a number: give a time"),
        ("1700158623,10,1", "since 1970"),
        ("", "it is empty"),
        (",,", "arrival_s is empty"),
        ("   ", "fewer cells"),
        ("1_000,10,1", "'1_000' is not a number"),
        ("nan,10,1", "finite"),
        ("inf,10,1", "finite"),
        ("2,0,1", "input_tokens = 0"),
        ("2,10,0", "output_tokens = 0"),
        ("2,10,-3", "output_tokens = -3"),
        ("2,10.5,1", "whole number of tokens"),
        ("2,1e12,1", "out of range"),
        ("2,1.5k,1", "'1.5k' is not a number: give a whole number"),
    ],
)
def test_a_wrong_row_is_named(trace, row, words):
    with pytest.raises(ConfigError, match=rf"line 4: .*{words}") as caught:
        read_trace(trace("0,10,1", "1,10,1", row, "3,10,1"))
    assert caught.value.argument == "trace"


def test_a_trace_that_is_mostly_one_gap_is_refused(trace):
    lines = [f"{at},10,1" for at in range(10)] + [f"{at},10,1" for at in range(100, 110)]
    with pytest.raises(ConfigError, match=r"line 12: .*91 s"):
        read_trace(trace(*lines))


@pytest.mark.parametrize(
    ("head", "lines", "words"),
    [
        ("time,input_tokens,output_tokens", ["0,1,1"], "no column arrival_s"),
        (HEAD, [], r"\(0\)"),
        (HEAD, ["0,1,1"], r"\(1\)"),
    ],
)
def test_a_file_that_is_no_trace(trace, head, lines, words):
    with pytest.raises(ConfigError, match=words):
        read_trace(trace(*lines, head=head))


def test_requests_that_all_arrive_at_once_have_no_rate(trace):
    with pytest.raises(ConfigError, match="no duration"):
        Traffic.from_trace(trace("3,1,1", "3,1,1"))


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"only": "trace"}, "only"),
        ({"ignore": None}, "ignore"),
        ({"ignore": 3}, "ignore"),
        ({"ignore": [3]}, "ignore"),
        ({"time_unit": 1}, "time_unit"),
        ({"time_unit": ["s"]}, "time_unit"),
    ],
)
def test_arguments_of_other_types(trace, given, argument):
    with pytest.raises(ConfigError) as caught:
        read_trace(trace("0,10,1", "1,10,1"), **given)
    assert caught.value.argument == argument


def test_an_open_quote_names_its_row(trace):
    with pytest.raises(ConfigError, match="line 3: it cannot be read as a table"):
        read_trace(trace("0,10,1", '1,10,"1'))


def test_empty_lines_are_allowed_only_at_the_end(trace):
    assert len(read_trace(trace("0,10,1", "1,10,1", "", ""))) == 2


def test_a_short_row_of_another_trace_is_not_lost(trace):
    """Without its last cell, the row belongs to no trace, so a filter would drop it."""
    path = trace("0,10,1,a", "1,10,1", "2,10,1,a", head=f"{HEAD},trace")
    with pytest.raises(ConfigError, match="line 3: it has more or fewer cells"):
        read_trace(path, only={"trace": "a"})


def test_columns_that_nothing_reads(trace):
    path = trace("0,10,1,9,x", "1,10,1,9,y", head=f"{HEAD},cached_token,model")
    with pytest.raises(ConfigError, match=r"not read: 'cached_token, model'.*ignore") as caught:
        read_trace(path)
    assert caught.value.argument == "trace"
    assert read_trace(path, ignore=["cached_token", "model"]).cached is None
    with pytest.raises(ConfigError, match="no column models to ignore") as caught:
        read_trace(path, ignore="models")
    assert caught.value.argument == "ignore"
    with pytest.raises(ConfigError, match="arrival_s more than once"):
        read_trace(trace("0,1,1,1", "1,1,1,1", head=f"{HEAD},arrival_s"))
    with pytest.raises(ConfigError, match="arrival_s and arrival_ms, which give"):
        read_trace(trace("0,1,1,1", "1,1,1,1", head=f"{HEAD},arrival_ms"))


TIMES = {
    ("arrival_s", None): ("0", "0.5", "2"),
    ("arrival_ms", None): ("0", "500", "2000"),
    ("arrival_ms", "ms"): ("0", "500", "2000"),
    ("timestamp", "s"): ("1700158623", "1700158623.5", "1700158625"),
    ("timestamp", "ms"): ("1700158623000", "1700158623500", "1700158625000"),
    ("timestamp", "us"): ("7", "500007", "2000007"),
    ("timestamp", "ns"): (
        "1700158623000000000",
        "1700158623500000000",
        "1700158625000000000",
    ),
    ("timestamp", None): (
        "2023-11-16 18:17:03.9799600",
        "2023-11-16T18:17:04.479960",
        "2023-11-16 18:17:05.97996",
    ),
    ("TIMESTAMP", None): (
        "2024-05-10 23:59:59.5+00:00",
        "2024-05-11 00:00:00+00:00",
        "2024-05-11 01:00:01.5+01:00",
    ),
}


@pytest.mark.parametrize(("clock", "unit"), list(TIMES))
def test_units_of_time(trace, clock, unit):
    lines = [f"{time},10,1" for time in TIMES[clock, unit]]
    found = read_trace(trace(*lines, head=HEAD.replace("arrival_s", clock)), time_unit=unit)
    assert (found.arrivals - found.arrivals[0]).tolist() == pytest.approx([0, 0.5, 2], abs=1e-6)


@pytest.mark.parametrize(
    ("clock", "unit", "times", "words", "argument"),
    [
        ("timestamp", None, ("0", "500"), "line 2: timestamp = 0 has no unit", "trace"),
        ("timestamp", None, ("20231116", "20231117"), "line 2: .* has no unit", "trace"),
        ("timestamp", None, ("", "500"), "line 2: timestamp is empty", "trace"),
        ("timestamp", None, ("18:17", "18:18"), "line 2: .* is not a date", "trace"),
        ("timestamp", "ms", ("0", "2023-11-16"), "line 3: .* is not a number", "trace"),
        ("timestamp", "s", ("1", "0.5"), "line 3: timestamp = 0.5 is before 1 ", "trace"),
        ("timestamp", None, ("2023-11-16", "2023-11-16+01:00"), "line 3: .* not a date", "trace"),
        (
            "timestamp",
            None,
            ("2023-11-16 18:17:03", "2023-11-16 18:17:03+00:00"),
            "line 3: .*time zone in some rows",
            "trace",
        ),
        ("timestamp", None, ("2023-11-17", "2023-11-16"), "line 3: .* is before", "trace"),
        ("timestamp", "min", ("0", "1"), "time_unit", "time_unit"),
        ("arrival_s", "ms", ("0", "1"), "time_unit = ms contradicts", "time_unit"),
        ("arrival_ms", None, ("0", "2e11"), "line 3: .* more than three years", "trace"),
    ],
)
def test_times_without_a_clear_unit(trace, clock, unit, times, words, argument):
    path = trace(*[f"{time},10,1" for time in times], head=HEAD.replace("arrival_s", clock))
    with pytest.raises(ConfigError, match=words) as caught:
        read_trace(path, time_unit=unit)
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("clock", "gap", "other"), [("arrival_s", 180, "arrival_ms"), ("arrival_ms", 0.05, "arrival_s")]
)
def test_milliseconds_in_a_column_of_seconds(trace, clock, gap, other):
    """Azure's 5.5 requests per second are 180 s apart if its milliseconds are read as seconds."""
    lines = [f"{gap * k},10,1" for k in range(20)]
    path = trace(*lines, head=HEAD.replace("arrival_s", clock))
    own = clock.partition("_")[2]
    words = rf"line 21: .*apart on average.*name the column {other}.*time_unit = {own}"
    with pytest.raises(ConfigError, match=words) as caught:
        read_trace(path)
    assert caught.value.argument == "trace"
    found = read_trace(path, time_unit=own)
    assert found.arrivals[-1] == pytest.approx(19 * gap * (1 if own == "s" else 1e-3))


def test_cached_tokens_by_hand(trace):
    lines = ("0,100,8,0", "1,300,8,260", "4,200,32,200")
    path = trace(*lines, head=f"{HEAD},cached_tokens")
    found = read_trace(path)
    assert found.cached.tolist() == [0, 260, 200]
    assert found.new_tokens.tolist() == [100, 40, 1]  # the last token is always computed
    load = Traffic.of(found)
    assert load.seq_len == 200
    assert load.cached_share == pytest.approx(460 / 600)
    new = np.array([100, 40, 1])
    assert load.input_variation == pytest.approx(new.std() / new.mean())
    assert load.arguments()["cached_share"] == load.cached_share
    assert Traffic.from_trace(path, ignore="cached_tokens").cached_share is None
    assert "cached_share" not in Traffic.from_trace(path, ignore="cached_tokens").arguments()


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("2,10,1,11", "cached_tokens = 11 is more than the prompt has"),
        ("2,10,1,-1", "cached_tokens = -1 is out of range"),
        ("2,10,1,", "cached_tokens is empty"),
        ("2,10,1,2.5", "whole number of tokens"),
    ],
)
def test_wrong_cached_tokens_name_the_row(trace, row, words):
    path = trace("0,10,1,0", row, head=f"{HEAD},cached_tokens")
    with pytest.raises(ConfigError, match=f"line 3: .*{words}"):
        read_trace(path)


MOONCAKE = [
    {"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [1, 2, 3]},
    {"timestamp": 1000, "input_length": 1500, "output_length": 5, "hash_ids": [1, 2, 4]},
    {"timestamp": 3000, "input_length": 1536, "output_length": 8, "hash_ids": [1, 2, 4]},
    {"timestamp": 4000, "input_length": 1600, "output_length": 8, "hash_ids": [1, 2, 5, 6]},
    {"timestamp": 6000, "input_length": 600, "output_length": 8, "hash_ids": [9, 2]},
]


@pytest.fixture
def mooncake(tmp_path):
    def write(rows=MOONCAKE):
        path = tmp_path / "trace.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


def test_a_trace_of_mooncake_by_hand(mooncake):
    """Block 4 is partial in the second prompt, so the third does not find it in the cache."""
    found = read_trace(mooncake(), time_unit="ms")
    assert found.arrivals.tolist() == [0, 1, 3, 4, 6]
    assert found.cached.tolist() == [0, 1024, 1024, 1024, 0]
    assert Traffic.of(found).cached_share == pytest.approx(3 * 1024 / (1100 + 1500 + 1536 + 2200))
    # Two blocks: the first ones of the last prompt evict those of the others.
    again = [*MOONCAKE, {**MOONCAKE[0], "timestamp": 7000}]
    all_kept = read_trace(mooncake(again), time_unit="ms")
    few_kept = read_trace(mooncake(again), time_unit="ms", cache_blocks=2)
    assert all_kept.cached.tolist() == [0, 1024, 1024, 1024, 0, 1024]
    assert few_kept.cached.tolist() == [0, 1024, 1024, 1024, 0, 512]


def test_hashes_in_a_table(trace):
    """As pandas writes them, and with a block size of its own."""
    lines = ('0,40,1,"[7, 8, 9]"', '1,40,1,"[7, 8, 10]"', '2,32,1,"[""a"", ""b""]"')
    path = trace(*lines, head=f"{HEAD},hash_ids")
    assert read_trace(path, hash_block=16).cached.tolist() == [0, 32, 0]
    with pytest.raises(ConfigError, match=r"line 2: hash_ids has 3 blocks.*1 blocks of 512"):
        read_trace(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hash_ids": [1, 2]}, "hash_ids has 2 blocks, but 1536 tokens are 3 blocks of 512"),
        ({"hash_ids": "1 2 4"}, "hash_ids = '1 2 4' is not a list"),
        ({"hash_ids": [1, 2, None]}, "is not a list"),
        ({"hash_ids": [1, 2, True]}, "is not a list"),
        ({"timestamp": None}, "timestamp is empty"),
        ({"timestamp": -5}, "timestamp = -5 is out of range"),
        ({"timestamp": float("nan")}, "timestamp = nan is out of range"),
        ({"input_length": True}, "'True' is not a number"),
        ({"output_length": 0}, "output_length = 0 is out of range"),
        ({"turn": 1}, "its keys are"),
    ],
)
def test_wrong_rows_of_mooncake_are_named(mooncake, change, words):
    rows = [*MOONCAKE]
    rows[2] = rows[2] | change
    with pytest.raises(ConfigError, match=f"line 3: .*{words}"):
        read_trace(mooncake(rows), time_unit="ms")


def test_text_that_is_not_json_lines(tmp_path):
    path = tmp_path / "trace.jsonl"
    for text, line in (('{"a": 1}\n\n{"a": 2}', 2), ('{"a": 1}\n[2]', 2), ('{"a": 1', 1)):
        path.write_text(text.replace('"a"', '"timestamp"'), encoding="utf-8")
        with pytest.raises(ConfigError, match=rf"line {line}: |no column") as caught:
            read_trace(path, time_unit="ms")
        assert caught.value.argument == "trace"


def test_arguments_about_blocks_need_blocks(trace, mooncake):
    path = trace("0,10,1", "1,10,1")
    for name in ("hash_block", "cache_blocks"):
        with pytest.raises(ConfigError, match="no effect") as caught:
            read_trace(path, **{name: 16})
        assert caught.value.argument == name
        for wrong in (0, -1, 1.5, True):
            with pytest.raises(ConfigError, match="whole number") as caught:
                read_trace(mooncake(), time_unit="ms", **{name: wrong})
            assert caught.value.argument == name
    both = trace('0,10,1,0,"[1]"', '1,10,1,0,"[1]"', head=f"{HEAD},cached_tokens,hash_ids")
    with pytest.raises(ConfigError, match="cached_tokens and hash_ids, which give"):
        read_trace(both)
    assert read_trace(both, ignore="hash_ids").cached.tolist() == [0, 0]


def test_a_trace_of_azure(trace):
    path = trace(
        "2023-11-16 18:17:03.9799600,4808,10",
        "2023-11-16 18:17:04.0319600,3180,8",
        head="TIMESTAMP,ContextTokens,GeneratedTokens",
    )
    found = read_trace(path)
    assert found.arrivals.tolist() == pytest.approx([0, 0.052])
    assert found.prompts.tolist() == [4808, 3180]
    assert found.answers.tolist() == [10, 8]


def test_solver_and_simulator_use_the_cached_share():
    """Half of the prompts are cached: the engine computes what it does for prompts half as long."""
    half = Traffic(
        arrival_rate=Q_(4, "1/s"),
        seq_len=4000,
        output_len=50,
        cached_share=0.5,
        input_variation=0,
        output_variation=0,
    )
    plan = {"model": Models.Llama3_8B, "hardware": Hardware.H100}
    answer = OpenLoopSolver.solve(**plan, **half.arguments())
    assert answer.cached_tokens == Q_(2000, "token")
    drawn = half.sample(2_000, seed=2)
    assert drawn.new_tokens.tolist() == [2000] * 2_000
    engine = engine_for(**plan, **half.arguments())
    played = simulate(engine, drawn.arrivals, drawn.new_tokens, drawn.answers)
    said = answer.ttft_mean.to("s").magnitude
    assert said == pytest.approx(played.mean("ttft", skip=200), rel=0.15)
    whole = simulate(engine, drawn.arrivals, drawn.prompts, drawn.answers)
    assert whole.mean("ttft", skip=200) > 1.5 * said


def test_a_trace_that_varies_in_what_is_cached(trace):
    """Each prompt is cached or not. The solver follows the simulator of these very requests."""
    at = np.cumsum(np.random.default_rng(5).exponential(1 / 6, 3_000))
    prompts, answers = np.full(3_000, 4000.0), np.full(3_000, 20.0)
    cached = np.where(np.arange(3_000) % 2, 3500.0, 0.0)
    played = Trace(at, prompts, answers, cached)
    load = Traffic.of(played)
    assert load.cached_share == pytest.approx(3500 / 8000)
    assert load.input_variation == pytest.approx(1750 / 2250)
    plan = {"model": Models.Llama3_8B, "hardware": Hardware.H100}
    said = OpenLoopSolver.solve(**plan, **load.arguments())
    engine = engine_for(**plan, **load.arguments())
    found = simulate(engine, at, played.new_tokens, answers)
    mean = said.ttft_mean.to("s").magnitude
    assert mean == pytest.approx(found.mean("ttft", skip=300), rel=0.25)


@pytest.mark.parametrize("burstiness", [0, 0.5, 1, 4])
def test_samples_have_the_moments_that_were_asked_for(burstiness):
    asked = Traffic(
        arrival_rate=Q_(5, "1/s"),
        seq_len=800,
        output_len=200,
        burstiness=burstiness,
        input_variation=0.5,
        output_variation=1,
    )
    found = Traffic.of(asked.sample(200_000, seed=3))
    assert found.arrival_rate.magnitude == pytest.approx(5, rel=0.02)
    assert found.burstiness == pytest.approx(burstiness, rel=0.05, abs=1e-9)
    assert found.seq_len == pytest.approx(800, rel=0.01)
    assert found.output_len == pytest.approx(200, rel=0.02)
    assert found.input_variation == pytest.approx(0.5, rel=0.03)
    assert found.output_variation == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize("requests", [0, -1, 10**9])
def test_a_number_of_requests_is_refused(requests):
    asked = Traffic(
        arrival_rate=Q_(5, "1/s"),
        seq_len=800,
        output_len=200,
        input_variation=0,
        output_variation=0,
    )
    with pytest.raises(ConfigError) as caught:
        asked.sample(requests)
    assert caught.value.argument == "requests"
