"""A browser test is skipped only while nothing that it rests on has changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import proofs
from tests.conftest import ROOT


class Run:
    """One test of a page and a package, in as many runs of the suite as are wanted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package, self.page, self.missing = (folder / n for n in ("m.py", "a.html", "none.js"))
        self.package.write_text("1")
        self.page.write_text("one")

    def runs(self, *, outcome: str = "passed", again: bool = False, args: object = None) -> bool:
        """Whether the test runs; it then asks for a page, and for a file that is missing."""
        proofs.digest.cache_clear()
        plugin = proofs.Proofs(lambda _: None, again=again, folder=self.folder / "proofs")
        mark = pytest.mark.rests_on(args or str(self.package)).mark
        item = SimpleNamespace(
            nodeid="test", path=ROOT / "tests/conftest.py", get_closest_marker=lambda _: mark
        )
        try:
            plugin.pytest_runtest_setup(item)
        except pytest.skip.Exception:
            return False
        for path in (self.page, self.missing):
            proofs.note(path)
        for when, found in (("setup", "passed"), ("call", outcome), ("teardown", "passed")):
            report = plugin.pytest_runtest_makereport(item)
            next(report)
            with pytest.raises(StopIteration):
                report.send(SimpleNamespace(when=when, outcome=found))
        return True


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(proofs, "served", {})
    return Run(tmp_path)


def test_it_runs_once(run: Run) -> None:
    assert [run.runs(), run.runs(), run.runs(again=True), run.runs()] == [True, False, True, False]


@pytest.mark.parametrize(
    "change",
    [
        lambda run: run.package.write_text("2"),
        lambda run: run.page.write_text("two"),
        lambda run: run.page.unlink(),
        lambda run: run.missing.write_text(""),
        lambda run: run.missing.mkdir() or (run.missing / "index.html").write_text("here"),
    ],
    ids=["package", "page", "page is gone", "file is there", "folder is there"],
)
def test_it_runs_again_when_something_changed(run: Run, change: Callable[[Run], object]) -> None:
    assert run.runs()
    change(run)
    assert run.runs()
    assert not run.runs()


def test_what_failed_has_no_proof(run: Run) -> None:
    assert run.runs(outcome="failed")
    assert run.runs(outcome="skipped")
    assert run.runs()
    assert not run.runs()


def test_the_machine_is_a_part_of_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run.runs()
    monkeypatch.setattr(proofs, "_machine", lambda: "another browser")
    assert run.runs()
