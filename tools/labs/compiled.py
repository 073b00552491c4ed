"""Compile what pages import. `compile.mjs` runs this module in Pyodide when the site is built.

Otherwise a reader's browser compiles it, which is more than half of the time that Python takes to
start.
"""

from __future__ import annotations

import importlib.util
import io
import marshal
import sys
import zipfile
from pathlib import Path
from types import CodeType

ARCHIVES = LIBRARY, REQUIREMENTS, EXPLORERS, REST = (
    "python_stdlib.zip", "requirements.zip", "explorers.zip", "rest.zip",
)  # fmt: skip
# In a table of line numbers: no number, for up to this many units of code.
NO_LINE, UNITS = 0xF8, 8
# Derivations and notes are read from these sources.
READ = ("mlsysim/core/formulas/", "mlsysim/registry/")
DATE = (2024, 1, 1, 0, 0, 0)  # one for all files: the same input gives the same bytes
UNCHECKED = (1).to_bytes(4, "little")  # by PEP 552: not compared with a source


def compiled(name: str, source: bytes) -> bytes:
    """Return a module as Python imports it, without line numbers, which are a third of it."""
    code = compile(source, name, "exec", dont_inherit=True)
    header = importlib.util.MAGIC_NUMBER + UNCHECKED + importlib.util.source_hash(source)
    return header + marshal.dumps(_without_lines(code))


def _without_lines(code: CodeType) -> CodeType:
    full, rest = divmod(len(code.co_code) // 2, UNITS)
    table = bytes([NO_LINE + UNITS - 1] * full + [NO_LINE + rest - 1] * (rest > 0))
    constants = (
        _without_lines(one) if isinstance(one, CodeType) else one for one in code.co_consts
    )
    return code.replace(co_linetable=table, co_consts=tuple(constants))


def main(folder: Path) -> None:
    """Compile the archives in this folder; what no explorer imports of the library joins the rest.

    The rest of the library stays source: few readers need a module of it.
    """
    files = {name: read(folder / name) for name in ARCHIVES}
    first = _imported([folder / REQUIREMENTS, folder / EXPLORERS])
    later = {name: one for name, one in files[LIBRARY].items() if name not in first}
    files[LIBRARY] = {name: files[LIBRARY][name] for name in files[LIBRARY].keys() - later}
    made = {archive: all_compiled(content) for archive, content in files.items()}
    made[REST] |= later
    for archive, content in made.items():
        (folder / archive).write_bytes(stored(content))


def all_compiled(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files of an archive with its modules compiled."""
    made = {}
    for name, data in files.items():
        if name.endswith(".py"):
            made[f"{name}c"] = compiled(name, data)
        if not name.endswith(".py") or name.startswith(READ):
            made[name] = data
    return made


def read(path: Path) -> dict[str, bytes]:
    """Return the files in a zip archive."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def stored(files: dict[str, bytes]) -> bytes:
    """Return a zip archive that is not compressed."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, DATE), data)
    return content.getvalue()


def _imported(paths: list[Path]) -> set[str]:
    """Ask each explorer for a derivation; return the files in archives that this imports."""
    sys.path += map(str, paths)
    from mlsysim_course import archives, bridge  # noqa: F401  a page asks through these
    from mlsysim_course.explorers import EXPLORERS

    for one in EXPLORERS.values():
        one.derivation({}, 0)
    modules = (str(getattr(one, "__file__", None)) for one in [*sys.modules.values()])
    return {file.partition(".zip/")[2] for file in modules if ".zip/" in file}
