"""The folder that a lab page runs on: Pyodide, and the Python packages that mlsysim imports there.

The package itself is not in it: the page takes the same wheel that the site offers to pip.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from tools.preview import npm

PYODIDE = {
    ("pyodide", "314.0.7"): (
        "0YvXxEhfEdpLfb/XkM2BFAeMROq0iMUX2bzzH9pOttyMcWkwq+HbE5uyuGD82LN7y2q+SNvi/6V5JEsOlD2R1A==",
        (
            "pyodide.mjs",
            "pyodide.asm.mjs",
            "pyodide.asm.wasm",
            "pyodide-lock.json",
            "python_stdlib.zip",
        ),
    )
}
# Without NumPy, matplotlib and PyYAML, which no lab needs.
REQUIREMENTS = ("pint", "flexcache", "flexparser", "platformdirs", "typing_extensions")
ARCHIVE, MANIFEST = "requirements.zip", "manifest.json"
LEFT_OUT = {"__pycache__", "testsuite", "..", "INSTALLER", "RECORD", "REQUESTED"}
DATE = (2024, 1, 1, 0, 0, 0)  # one for all files: the same input gives the same bytes
UNREACHABLE = "Pyodide could not be fetched from npm when this site was built."


def build(folder: Path, wheel: Path, cache: Path) -> dict[str, Any]:
    """Write the folder and return its manifest, whose ``missing`` says why it is not complete."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    manifest: dict[str, Any] = {"missing": None, "wheel": wheel.name}
    try:
        for source in npm.files(cache, PYODIDE):
            shutil.copyfile(source, folder / source.name)
    except OSError:
        manifest["missing"] = UNREACHABLE
    else:
        _bundle(folder / ARCHIVE)
        # The page shows how much of this it has loaded.
        sizes = {path.name: path.stat().st_size for path in [*folder.iterdir(), wheel]}
        ((_, version),) = PYODIDE
        manifest |= {"archive": ARCHIVE, "files": sizes, "pyodide": version}
    text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    return manifest


def _bundle(target: Path) -> None:
    """Pack the requirements, with their licenses, as they are installed here."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, path in sorted(_files()):
            archive.writestr(zipfile.ZipInfo(name, DATE), path.read_bytes(), zipfile.ZIP_DEFLATED)


def _files() -> Iterator[tuple[str, Path]]:
    for requirement in REQUIREMENTS:
        for file in distribution(requirement).files or ():
            if not LEFT_OUT.intersection(file.parts):
                yield file.as_posix(), Path(str(file.locate()))
