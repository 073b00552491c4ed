"""The folder that lab pages run on: the same from the same input, honest when it is not whole."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlsysim_course.exercises import EXERCISES
from tests.conftest import ROOT
from tools.labs import runtime
from tools.preview import npm


@pytest.fixture
def wheels(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{name}-1.0-py3-none-any.whl" for name in ("mlsysim", "mlsysim_course")]
    for path in paths:
        path.write_bytes(path.name.encode())
    return paths


def unreachable(*_: object) -> Iterator[Path]:
    raise OSError("no network")
    yield


def test_a_build_without_npm_says_what_is_missing(
    tmp_path: Path, wheels: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npm, "files", unreachable)
    folder = tmp_path / "runtime"
    manifest = runtime.build(folder, wheels, tmp_path)
    assert "npm" in manifest["missing"]
    assert [path.name for path in folder.iterdir()] == [runtime.MANIFEST]
    assert json.loads((folder / runtime.MANIFEST).read_text(encoding="utf-8")) == manifest


def test_the_runtime_is_whole_and_the_same_each_time(
    tmp_path: Path, wheels: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With stand-ins for the files from npm: their hashes are checked where they are fetched."""
    source = tmp_path / "pyodide.mjs"
    source.write_text("export {}", encoding="utf-8")
    monkeypatch.setattr(npm, "files", lambda *_: iter([source]))
    first, second = tmp_path / "one", tmp_path / "two"
    manifest = runtime.build(first, wheels, tmp_path)
    runtime.build(second, wheels, tmp_path)
    assert manifest["missing"] is None
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()
    files = [path for path in first.iterdir() if path.name != runtime.MANIFEST]
    assert manifest["files"] == {path.name: path.stat().st_size for path in [*files, *wheels]}
    assert manifest["wheels"] == [path.name for path in wheels]
    names = zipfile.ZipFile(first / runtime.ARCHIVE).namelist()
    for requirement in runtime.REQUIREMENTS:
        assert any(name.startswith((f"{requirement}/", f"{requirement}.py")) for name in names)
        licences = [name for name in names if name.startswith(f"{requirement}-")]
        assert any("LICENSE" in name for name in licences), requirement
    assert not [name for name in names if "testsuite" in name or name.endswith(".pyc")]


def test_extras_bring_what_they_import_and_are_left_out_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels: dict[str, list[str]] = {"numpy": [], "matplotlib": ["numpy", "cycler"], "cycler": []}
    lock = {
        name: {
            "depends": depends,
            "file_name": f"{name}.whl",
            "sha256": hashlib.sha256(name.encode()).hexdigest(),
        }
        for name, depends in wheels.items()
    }
    folder = tmp_path / "runtime"
    folder.mkdir()
    (folder / "pyodide-lock.json").write_text(json.dumps({"packages": lock}), encoding="utf-8")

    def answer(address: str) -> bytes:
        if "cycler" in address and offline:
            raise OSError("no network")
        return Path(address).stem.encode()

    monkeypatch.setattr(runtime, "_download", answer)
    offline = True
    assert runtime._extras(folder, tmp_path / "cache", "1.0") is None
    assert list(folder.glob("*.whl")) == []
    offline = False
    expected = {f"{name}.whl": len(name) for name in wheels}
    found = runtime._extras(folder, tmp_path / "cache", "1.0")
    assert found == {"names": list(runtime.EXTRAS), "files": expected}
    assert {path.name for path in folder.glob("*.whl")} == set(expected)
    monkeypatch.setattr(runtime, "_download", lambda address: b"something else")
    with pytest.raises(RuntimeError, match="numpy"):
        runtime._extras(folder, tmp_path / "other", "1.0")


def test_a_download_with_another_hash_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npm, "_download", lambda name, version: b"something else")
    with pytest.raises(RuntimeError, match="pyodide"):
        list(npm.files(tmp_path, runtime.PYODIDE))


def test_the_runtime_is_not_kept_in_the_repository() -> None:
    assert "docs/labs/runtime/" in (ROOT / ".gitignore").read_text(encoding="utf-8").split("\n")


@pytest.fixture(scope="module")
def found() -> dict[str, list[dict[str, object]]]:
    """The blocks of every page with exercises, run in a process where NumPy is hidden."""
    command = [sys.executable, "-m", "tools.labs.blocks"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return dict(json.loads(done.stdout))


def test_blocks_that_use_numpy_or_matplotlib_are_marked(
    found: dict[str, list[dict[str, object]]],
) -> None:
    for page, blocks in found.items():
        for block in blocks:
            if re.search(r"\bplt\.|\bax\.", str(block["code"])) and "def " not in str(
                block["code"]
            ):
                assert block["needs"], (page, block["code"])
    running = {page: sum(not block["needs"] for block in blocks) for page, blocks in found.items()}
    assert min(running.values()) > 2, running


def test_every_exercise_of_the_tutorials_has_its_place(
    found: dict[str, list[dict[str, object]]],
) -> None:
    """Checkers are put next to the first visible block that calls them."""
    placed = {
        name
        for blocks in found.values()
        for block in blocks
        if block["shown"]
        for name in re.findall(r'^check\(\s*"([\w-]+)"', str(block["code"]), re.MULTILINE)
    }
    assert placed == set(EXERCISES)
