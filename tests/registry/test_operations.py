"""What fleets draw, cost, embody and break: sourced, marked as estimates, plausible."""

import pytest

from mlsysim.core.types import Entry
from mlsysim.registry import operations

ROWS = {key: row for key, row in vars(operations).items() if isinstance(row, Entry)}


def test_there_are_rows():
    assert set(ROWS) == {name for name in operations.__all__ if name.isupper()}


def test_every_row_is_sourced():
    for name, row in ROWS.items():
        for source in (row.source, *row.field_sources.values()):
            assert source.title, name
            assert source.url.startswith("http"), name
            assert source.checked, name
            assert source.note, "each of these figures needs a word on how it came about"


def test_every_default_is_marked_as_an_estimate():
    """No figure of the trade holds for every fleet; only records of a run or a trace are facts."""
    for name in sorted(set(ROWS) - {"INTERRUPTIONS", "CHAT_LENGTHS"}):
        row = ROWS[name]
        numbers = set(row._si)
        assert numbers == row.estimated, name


def test_shares_follow_from_what_the_notes_say():
    assert operations.POWER_DRAW.idle_share == pytest.approx(70.1 / 700, rel=0.01)
    assert operations.POWER_DRAW.host_share == pytest.approx((8.4 - 5.6) / (10.2 - 5.6), abs=0.005)
    assert operations.EMBODIED_CARBON.si("device") == pytest.approx(1312 / 8)
    assert operations.EMBODIED_BLACKWELL.si("device") == pytest.approx(2274 / 8, abs=0.5)
    assert operations.EMBODIED_TRAY.si("host") == operations.EMBODIED_CARBON.si("host") / 2
    assert 0.136 < operations.POWER_DRAW_BLACKWELL.idle_share < 0.196
    low, high = 5, 20
    assert operations.RECOVERY.restart_time.to("minute").magnitude == pytest.approx(
        (low * high) ** 0.5
    )
