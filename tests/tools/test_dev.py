"""The steps of dev.py that decide something: what is up to date, which Quarto, what is an error."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tools.dev import publish, quarto, serving, venv
from tools.dev.console import DevError
from tools.dev.fingerprint import Stamp, fingerprint

posix = pytest.mark.skipif(os.name == "nt", reason="the stand-in for Quarto is a shell script")


def program(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return path


def test_no_command_prints_the_help() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "dev.py"], capture_output=True, encoding="utf-8", check=True
    )
    for command in ("site", "serve", "test", "check", "bench", "api", "clean"):
        assert f"\n    {command} " in done.stdout


def test_dev_needs_nothing_installed() -> None:
    """Without site-packages, as on a fresh machine."""
    command = [sys.executable, "-I", "-S", "-c", "import sys; sys.path[:0] = ['.']; import dev"]
    subprocess.run(command, cwd=ROOT, check=True)


def test_requirements_name_every_extra_once() -> None:
    names = venv.requirements()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(venv.EXTRAS) == extras["project"]["optional-dependencies"].keys()
    assert len(names) == len(set(names))
    assert not [name for name in names if name.startswith("quarto-cli")]


def test_a_fingerprint_sees_names_and_bytes(tmp_path: Path) -> None:
    first = tmp_path / "a.txt"
    first.write_text("one", encoding="utf-8")
    before = fingerprint([tmp_path])
    assert before == fingerprint([tmp_path])
    first.write_text("two", encoding="utf-8")
    changed = fingerprint([tmp_path])
    first.rename(tmp_path / "b.txt")
    assert len({before, changed, fingerprint([tmp_path]), fingerprint([tmp_path], "x")}) == 4


def test_a_stamp_holds_until_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.dev.fingerprint.STAMPS", tmp_path)
    stamp = Stamp("step")
    assert not stamp.matches("1")
    stamp.write("1")
    assert stamp.matches("1")
    assert not stamp.matches("2")
    stamp.forget()
    assert not stamp.matches("1")


def test_version_and_wheel_are_those_of_the_package() -> None:
    import mlsysim

    assert publish.version() == mlsysim.__version__
    assert publish.wheel_name() == f"mlsysim-{mlsysim.__version__}-py3-none-any.whl"


class TestQuarto:
    @pytest.fixture(autouse=True)
    def elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """No Quarto of this machine, and no attempt to install one."""
        monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
        monkeypatch.delenv("QUARTO", raising=False)
        monkeypatch.setattr(quarto, "SCRIPTS", tmp_path / "scripts")
        monkeypatch.setattr(quarto, "NO_QUARTO", tmp_path / "no-quarto")
        monkeypatch.setattr(quarto, "_install", lambda: (tmp_path / "no-quarto").touch())

    def test_one_try_is_remembered(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tries: list[int] = []
        monkeypatch.setattr(quarto, "_install", lambda: tries.append(1))
        quarto.NO_QUARTO.touch()
        assert quarto.find(retry=False) is None
        assert not tries
        assert quarto.find(retry=True) is None
        assert len(tries) == 1

    def test_a_wrong_variable_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("QUARTO", "/no/such/quarto")
        with pytest.raises(DevError, match=r"/no/such/quarto"):
            quarto.find(retry=False)

    @posix
    def test_the_variable_comes_first(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        named = program(tmp_path / "mine", "exit 0")
        monkeypatch.setenv("QUARTO", str(named))
        assert quarto.find(retry=False) == named

    @posix
    def test_a_launcher_without_quarto_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "scripts").mkdir()
        program(tmp_path / "scripts" / "quarto", "exit 1")
        assert quarto.find(retry=False) is None

    def test_publishing_refuses_the_preview(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MLSYSIM_REQUIRE_QUARTO", "1")
        with pytest.raises(DevError, match="MLSYSIM_REQUIRE_QUARTO"):
            publish.site(retry_quarto=False, force=False)

    @posix
    def test_a_warning_in_the_log_is_an_error(self, tmp_path: Path) -> None:
        warns = program(tmp_path / "warns", "echo 'WARN: Unable to resolve crossref @fig-x' >&2")
        with pytest.raises(DevError, match="@fig-x"):
            quarto.render(warns)
        quarto.render(program(tmp_path / "quiet", "echo Output created: _site/index.html"))
        with pytest.raises(DevError, match="failed"):
            quarto.render(program(tmp_path / "fails", "exit 1"))


def test_serving_needs_a_built_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "ROOT", tmp_path)
    with pytest.raises(DevError, match=r"dev\.py site"):
        serving.built()
    (tmp_path / "_preview").mkdir()
    (tmp_path / "_preview" / "index.html").touch()
    assert serving.built() == tmp_path / "_preview"
