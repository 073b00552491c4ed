"""The runtime folder of pages: Pyodide, the requirements of mlsysim, the package and the course.

The package and the course are two archives: the modules that explorers import, and all others. A
page loads the second one when a lab, an exercise or a block of code needs it. If there is Node.js,
the archives are compiled, and the second one also has what no explorer imports of the library.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath
from typing import Any

from tools.labs.compiled import EXPLORERS, LIBRARY, REQUIREMENTS, REST, read, stored
from tools.preview import npm

LOCK = "pyodide-lock.json"
HERE = Path(__file__).parent
PYODIDE = {
    ("pyodide", "314.0.7"): (
        "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A==",
        (
            "pyodide.mjs",
            "pyodide.asm.mjs",
            "pyodide.asm.wasm",
            LOCK,
            LIBRARY,
        ),
    )
}
# The charts of explorers. Plot takes D3 from the page.
CHARTS = {
    ("d3", "7.9.0"): (
        "e1U46jVP+w7Iut8Jt8ri1YsPOvFpg46k+K8TpCb0P+zjCkjkPnV7WzfDJzMHy1LnA+wj5pLT1wjO901gLXeEhA==",
        ("dist/d3.min.js", "LICENSE"),
    ),
    ("@observablehq/plot", "0.6.17"): (
        "/qaXP/7mc4MUS0s4cPPFASDRjtsWp85/TbfsciqDgU1HwYixbSbbytNuInD8AcTYC3xaxACgVX06agdfQy9W+g==",
        ("dist/plot.umd.min.js", "LICENSE"),
    ),
}
# What blocks of pages import, loaded only for these. Pyodide's own distribution has the wheels; its
# lock file, which the hash above covers, has the hash of each.
EXTRAS = ("numpy", "matplotlib")
DISTRIBUTION = "https://cdn.jsdelivr.net/pyodide/v{}/full/"
SECONDS = 20
# Without NumPy, matplotlib, PyYAML and jsonschema, which no lab needs.
REQUIRED = ("pint", "flexcache", "flexparser", "platformdirs", "typing_extensions")
MANIFEST = "manifest.json"
# Within gzip. So are the archives, which are a quarter smaller than if each file was compressed.
PACKED = ("pyodide.asm.mjs", "pyodide.asm.wasm")
LEFT_OUT = {"__pycache__", "testsuite", "..", "INSTALLER", "RECORD", "REQUESTED"}
UNREACHABLE = "Pyodide could not be fetched from npm when this site was built."


def build(folder: Path, wheels: Sequence[Path], cache: Path) -> dict[str, Any]:
    """Write the folder and return its manifest; ``missing`` is the reason if it is incomplete."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    manifest: dict[str, Any] = {"missing": None}
    try:
        sources = {source.name: source for source in npm.files(cache, PYODIDE)}
    except OSError:
        manifest["missing"] = UNREACHABLE
    else:
        library = sources.pop(LIBRARY)
        archives = {LIBRARY: read(library), REQUIREMENTS: dict(_files()), **_split(wheels)}
        for name, content in _compiled(archives, library.parent).items():
            (folder / f"{name}.bin").write_bytes(gzip.compress(content, mtime=0))
        for source in sources.values():
            _copy(source, folder)
        contents = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        build = hashlib.sha256(b"".join(hashlib.sha256(one).digest() for one in contents.values()))
        early, later = [f"{name}.bin" for name in (REQUIREMENTS, EXPLORERS)], f"{REST}.bin"
        # The page shows how much of the first files it has loaded.
        sizes = {name: len(content) for name, content in contents.items() if name != later}
        ((_, version),) = PYODIDE
        manifest |= {"archives": early, "rest": later, "files": sizes}
        manifest |= {"pyodide": version, "build": build.hexdigest()[:16]}
        _charts(folder, cache)
        manifest["extras"] = _extras(folder, cache, version)
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    return manifest


def _copy(source: Path, folder: Path) -> None:
    """Put a file of Pyodide into the folder, as small as a page can read it."""
    content = source.read_bytes()
    if source.name in PACKED:
        (folder / f"{source.name}.bin").write_bytes(gzip.compress(content, mtime=0))
    elif source.name == LOCK:
        lock = json.loads(content)
        lock["packages"] = {name: lock["packages"][name] for name in _needed(lock["packages"])}
        (folder / LOCK).write_text(json.dumps(lock), encoding="utf-8")
    else:
        (folder / source.name).write_bytes(content)


def _needed(packages: dict[str, Any]) -> list[str]:
    """Return the names of `EXTRAS` and of what they import."""
    names = list(EXTRAS)
    for name in names:
        names += [one for one in packages[name]["depends"] if one not in names]
    return names


def _charts(folder: Path, cache: Path) -> None:
    """Copy the chart library, each file with its license."""
    for package, (sha512, members) in CHARTS.items():
        files = npm.files(cache, {package: (sha512, members)})
        short = package[0].rpartition("/")[2]
        for source in files:
            name = f"{short}.LICENSE.txt" if source.name == "LICENSE" else source.name
            shutil.copyfile(source, folder / name)


def _extras(folder: Path, cache: Path, version: str) -> dict[str, Any] | None:
    """Copy the wheels of `EXTRAS` and of what they import; `None` if they cannot be fetched."""
    files: dict[str, int] = {}
    try:
        lock = json.loads((folder / LOCK).read_text(encoding="utf-8"))["packages"]
        for name in _needed(lock):
            file, digest = lock[name]["file_name"], lock[name]["sha256"]
            wheel = cache / f"pyodide-{version}-wheels" / file
            if not wheel.is_file():
                data = _download(DISTRIBUTION.format(version) + file)
                if hashlib.sha256(data).hexdigest() != digest:
                    raise RuntimeError(f"{file}: the download does not have the pinned hash")
                wheel.parent.mkdir(parents=True, exist_ok=True)
                wheel.with_suffix(".part").write_bytes(data)
                wheel.with_suffix(".part").rename(wheel)
            shutil.copyfile(wheel, folder / file)
            files[file] = wheel.stat().st_size
    except OSError as fault:
        print(f"    Blocks that need {' or '.join(EXTRAS)} will not run on the pages: {fault}")
        for file in files:
            (folder / file).unlink()
        return None
    return {"names": list(EXTRAS), "files": files}


def _download(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=SECONDS) as answer:
        return bytes(answer.read())


def _compiled(archives: Mapping[str, dict[str, bytes]], pyodide: Path) -> dict[str, bytes]:
    """Return the archives, compiled by the Python of pages if there is Node.js to run it."""
    with tempfile.TemporaryDirectory() as place:
        paths = {name: Path(place, name) for name in archives}
        for name, path in paths.items():
            path.write_bytes(stored(archives[name]))
        command = ["node", *map(str, (HERE / "compile.mjs", pyodide, HERE / "compiled.py", place))]
        if shutil.which("node") is None or subprocess.run(command, check=False).returncode:
            print("    Pages will start Python slowly, because Node.js has not compiled it.")
        return {name: path.read_bytes() for name, path in paths.items()}


def _split(wheels: Sequence[Path]) -> dict[str, dict[str, bytes]]:
    """Return what explorers import, and the rest. A package has its data in its own archive."""
    from tools.labs.browser import answer  # dev.py imports this module before .venv is there

    files: dict[str, bytes] = {}
    for wheel in wheels:
        files |= read(wheel)
    imported = set(answer("modules"))
    packages = {str(PurePosixPath(name).parent) for name in imported}

    def is_first(name: str) -> bool:
        if name.endswith((".py", ".pyi")):  # nothing imports a stub
            return name in imported
        owners = (str(parent) for parent in PurePosixPath(name).parents)
        return next((one for one in owners if f"{one}/__init__.py" in files), "") in packages

    return {
        archive: {name: one for name, one in files.items() if is_first(name) == early}
        for archive, early in ((EXPLORERS, True), (REST, False))
    }


def _files() -> Iterator[tuple[str, bytes]]:
    """Yield the requirements that are installed here, with their licenses."""
    for requirement in REQUIRED:
        for file in distribution(requirement).files or ():
            if not LEFT_OUT.intersection(file.parts):
                yield file.as_posix(), Path(str(file.locate())).read_bytes()
