"""The folder that lab pages run on: the same from the same input, honest when it is not whole."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import marshal
import re
import shutil
import subprocess
import sys
import traceback
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlsysim.core.errors import ConfigError
from mlsysim_course.controls import Paste
from mlsysim_course.exercises import EXERCISES
from mlsysim_course.labs.catalog import explorer
from tests.conftest import ROOT
from tools.labs import runtime
from tools.labs.browser import HIDDEN, answer
from tools.labs.compiled import all_compiled, compiled, stored
from tools.labs.forms import write_answers
from tools.preview import npm

# Explorers import the first files of each; `planner` they do not.
PACKAGE = ["mlsysim/__init__.py", "mlsysim/core/__init__.py", "mlsysim/core/units.txt"]
LATER = ["mlsysim/planner/__init__.py", "mlsysim/planner/data/table.csv", "mlsysim-1.0/METADATA"]
PACKAGE += LATER
COURSE = ["mlsysim_course/archives.py", "mlsysim_course/bridge.py"]
HEADER = 16  # bytes before the code in a compiled module


@pytest.fixture
def wheels(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{name}-1.0-py3-none-any.whl" for name in ("mlsysim", "mlsysim_course")]
    for path, names in zip(paths, (PACKAGE, COURSE), strict=True):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, f"content of {name}")
    return paths


def packed(path: Path) -> list[str]:
    return zipfile.ZipFile(io.BytesIO(gzip.decompress(path.read_bytes()))).namelist()


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
    loader, program, library, lock = (
        tmp_path / name
        for name in ("pyodide.mjs", "pyodide.asm.mjs", runtime.LIBRARY, runtime.LOCK)
    )
    loader.write_text("export {}", encoding="utf-8")
    program.write_text("export default 1", encoding="utf-8")
    with zipfile.ZipFile(library, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("abc.py", "pass")
    packages: dict[str, dict[str, list[str]]] = {
        "numpy": {"depends": []},
        "matplotlib": {"depends": ["numpy", "cycler"]},
        "cycler": {"depends": []},
        "scipy": {"depends": ["numpy"]},
    }
    lock.write_text(json.dumps({"info": 1, "packages": packages}), encoding="utf-8")
    sources = {id(runtime.PYODIDE): [loader, program, library, lock]}
    monkeypatch.setattr(npm, "files", lambda _, packages: iter(sources.get(id(packages), [])))
    monkeypatch.setattr(runtime, "_extras", lambda *_: None)
    monkeypatch.setattr(runtime.shutil, "which", lambda _: None)  # no Node.js, which compiles
    first, second = tmp_path / "one", tmp_path / "two"
    manifest = runtime.build(first, wheels, tmp_path)
    runtime.build(second, wheels, tmp_path)
    assert manifest["missing"] is None
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()
    rest, explorers = first / f"{runtime.REST}.bin", first / f"{runtime.EXPLORERS}.bin"
    outside = (runtime.MANIFEST, rest.name)
    files = [path for path in first.iterdir() if path.name not in outside]
    assert manifest["files"] == {path.name: path.stat().st_size for path in files}
    assert gzip.decompress((first / f"{program.name}.bin").read_bytes()) == program.read_bytes()
    assert packed(first / f"{library.name}.bin") == ["abc.py"]
    left = json.loads((first / runtime.LOCK).read_text(encoding="utf-8"))
    assert left == {"info": 1, "packages": {n: packages[n] for n in packages if n != "scipy"}}
    assert manifest["archives"] == [f"{runtime.REQUIREMENTS}.bin", explorers.name]
    assert set(packed(rest)) == set(LATER)
    assert set(packed(explorers)) == {*PACKAGE, *COURSE} - set(LATER)
    names = packed(first / f"{runtime.REQUIREMENTS}.bin")
    for requirement in runtime.REQUIRED:
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


def test_explorers_are_answered_from_the_first_archive_and_the_rest_from_both(
    tmp_path: Path,
) -> None:
    """As the page's worker does it: Python imports from one archive, and later from another.

    Both are compiled, and derivations still read their sources.
    """
    sources = [(ROOT, file) for file in sorted((ROOT / "mlsysim").rglob("*")) if file.is_file()]
    course = ROOT / "course"
    sources += [(course, file) for file in (course / "mlsysim_course").rglob("*") if file.is_file()]
    whole = tmp_path / "whole.whl"
    with zipfile.ZipFile(whole, "w") as archive:
        for root, file in sources:
            if "__pycache__" not in file.parts:
                archive.write(file, file.relative_to(root).as_posix())
    archives = {
        name: stored(all_compiled(files)) for name, files in runtime._split([whole]).items()
    }
    # The goal for what a reader of one explorer downloads of the package and the course.
    assert len(gzip.compress(archives[runtime.EXPLORERS])) < 900_000
    for name, archive in archives.items():
        (tmp_path / name).write_bytes(archive)
    code = f"""
import sys
sys.modules.update(dict.fromkeys({HIDDEN}))
sys.path = [one for one in sys.path if {str(ROOT)!r} not in one or "site-packages" in one]
sys.meta_path = [one for one in sys.meta_path if "editable" not in str(one)]
sys.path.insert(0, {str(tmp_path / runtime.EXPLORERS)!r})
from mlsysim_course.archives import also_import_from
from mlsysim_course.bridge import ask
print(ask("derive", '{{"name": "ring", "state": {{}}, "index": 0}}'))
print(ask("explore", '{{"name": "roofline/plan", "state": {{}}}}'))
also_import_from({str(tmp_path / runtime.REST)!r})
print(ask("explore", '{{"name": "roofline/plan", "state": {{}}}}'))
print(ask("check", '{{"name": "hello-world-1", "answers": {{"batch": "2"}}}}'))
import mlsysim_course.labs.catalog
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    first, early, late, checked = map(json.loads, done.stdout.splitlines())
    assert first["value"]["steps"]
    assert early["needs"].startswith("mlsysim_course.labs")
    assert "readings" in late["value"]
    assert checked["value"]["right"] is False


def test_a_compiled_module_behaves_like_its_source_and_has_no_line_numbers() -> None:
    source = (
        b"""def ratio(a, b=2):
    """
        + b'"""Half."""'
        + b"""
    return [a / one for one in range(b, b + 1)]
"""
    )
    code = marshal.loads(compiled("one.py", source)[HEADER:])
    names: dict[str, Any] = {}
    exec(code, names)
    assert (names["ratio"](3), names["ratio"].__doc__) == ([1.5], "Half.")
    with pytest.raises(ZeroDivisionError) as caught:
        names["ratio"](1, 0)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].lineno is None


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js on this machine")
def test_node_compiles_what_explorers_import(tmp_path: Path) -> None:
    """Of the library, only the files that they import come first, without their sources."""
    try:
        (*_, library) = npm.files(ROOT / "build/npm", runtime.PYODIDE)
        wheels = [*(ROOT / "dist").glob("*.whl")]
    except OSError as error:
        pytest.skip(str(error))
    if not wheels:
        pytest.skip("the site has not been built here")
    archives = {runtime.LIBRARY: runtime.read(library), **runtime._split(wheels)}
    archives[runtime.REQUIREMENTS] = dict(runtime._files())
    made = runtime._compiled(archives, library.parent)
    names = {one: zipfile.ZipFile(io.BytesIO(made[one])).namelist() for one in made}
    assert {"json/decoder.pyc", "zipfile/__init__.pyc"} <= {*names[runtime.LIBRARY]}
    assert not [one for one in names[runtime.LIBRARY] if one.endswith(".py")]
    assert {"statistics.py", "json/tool.py"} <= {*names[runtime.REST]}
    assert "mlsysim/core/formulas/roofline.py" in names[runtime.EXPLORERS]


def test_the_build_answers_for_each_setting_that_is_one_control_away(tmp_path: Path) -> None:
    write_answers(tmp_path)
    for name in ("split", "parallelism_paradox/split", "import"):
        path = tmp_path / f"answers-{name.replace('/', '-')}.json"
        known = json.loads(path.read_text(encoding="utf-8"))
        one = explorer(name)
        away = [
            (control.id, value)
            for control in one.controls
            if not isinstance(control, Paste)
            for value in control.choices
            if value != control.first
        ]
        assert len(known) == 1 + len(away)
        assert known.pop("") == {"value": json.loads(json.dumps(one.view({})))}
        for (key, answered), (control, value) in zip(known.items(), away, strict=True):
            assert key == f"{control}={value}"
            try:
                view = one.view({control: value})
            except ConfigError:
                assert answered["refused"]
            else:
                assert answered == {"value": json.loads(json.dumps(view))}


def test_the_runtime_is_not_kept_in_the_repository() -> None:
    assert "docs/labs/runtime/" in (ROOT / ".gitignore").read_text(encoding="utf-8").split("\n")


@pytest.fixture(scope="module")
def found() -> dict[str, list[dict[str, object]]]:
    """The blocks of every page with exercises, run in a process where NumPy is hidden."""
    return dict(answer("blocks", ROOT))


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
