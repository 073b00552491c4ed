"""Turns one page into its HTML, and remembers the result until something it rests on changes."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pypandoc

from tools.preview import scan
from tools.preview.compose import Composer
from tools.preview.faults import Fault, line_of
from tools.preview.pages import Page, Text
from tools.preview.project import Project, is_generated, title_of

HERE = Path(__file__).parent
CACHE = Path("build/preview")
VERSIONS = [version(name) for name in ("nbclient", "ipykernel", "pypandoc-binary", "matplotlib")]
TEMPLATE = "$if(toc)$$table-of-contents$$endif$\n<!-- body -->\n$body$"


@cache
def _digest(folder: Path, suffixes: tuple[str, ...]) -> str:
    files = sorted(path for path in folder.rglob("*") if path.suffix in suffixes)
    parts = [path.name.encode() + b"\0" + path.read_bytes() for path in files]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def remember(root: Path, kind: str, key: list[str], make: Callable[[], Any]) -> Any:
    """Return ``make()``, or what it returned when it was last called with this key."""
    key = [*key, *VERSIONS, _digest(HERE, (".py", ".lua", ".yml"))]
    name = hashlib.sha256("\0".join(key).encode()).hexdigest()[:32]
    path = root / CACHE / f"{kind}-{name}.json"
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    value = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return value


def run(page: Page, root: Path) -> dict[str, list[Any]]:
    """Return the outputs of the page's cells; every file of the package counts for the cache."""

    def make() -> dict[str, list[Any]]:
        from tools.preview.execute import execute  # slow to import, and seldom needed

        return execute(page, root)

    package = _digest(root / "mlsysim", (".py", ".txt", ".yml", ".yaml", ".json", ".csv"))
    return dict(remember(root, "run", [str(page.path), page.source, package], make))


def render(page: Page, project: Project) -> dict[str, Any]:
    """Return the page's body, table of contents, images and what ``scan`` sees in it."""
    composer = Composer(page, run(page, project.root), project.variables)
    library = project.root / (project.bibliography or "none")
    works = library.read_text(encoding="utf-8") if library.is_file() else ""

    def make() -> dict[str, Any]:
        toc, body = _pandoc(page, composer, project, library if works else None)
        return {"body": body, "toc": toc, "images": composer.images, **scan.scan(body)}

    key = [str(page.path), composer.markdown, page.meta_text, works]
    return dict(remember(project.root, "html", key, make))


def _pandoc(
    page: Page, composer: Composer, project: Project, library: Path | None
) -> tuple[str, str]:
    template = project.root / CACHE / "body.html"
    template.write_text(TEMPLATE, encoding="utf-8")
    depth = page.meta.get("toc-depth", project.html.get("toc-depth", 3))
    meta = {"title": title_of(page), "offset": "../" * (len(page.path.parts) - 1)}
    meta |= {"nocite": page.meta.get("nocite", ""), "link-citations": True, "toc-title": ""}
    command = [pypandoc.get_pandoc_path(), "--from=markdown", "--to=html5", "--mathml"]
    command += ["--section-divs", "--wrap=none", f"--template={template}", f"--toc-depth={depth}"]
    command += ["--toc"] * page.meta.get("toc", True)
    command += [f"--lua-filter={HERE / 'filter.lua'}"]
    command += ["--citeproc", f"--bibliography={library}"] if library else []
    text = f"---\n{json.dumps(meta)}\n---\n" + composer.markdown
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.stderr.strip():
        raise ExceptionGroup("pandoc", _faults(page, composer, done.stderr))
    toc, _, body = done.stdout.partition("<!-- body -->")
    return toc.strip(), body


def _faults(page: Page, composer: Composer, stderr: str) -> list[Fault]:
    """Translate what the filter and pandoc complain about into lines of the page."""
    faults = []
    prose = [part for part in page.parts if isinstance(part, Text)]
    for message in re.split(r"\n(?=FAULT\t|\[)", stderr.strip()):
        needle, where = "", re.search(r"\bline (\d+)", message)
        if message.startswith("FAULT\t"):
            _, needle, message = message.split("\t", 2)
        elif named := re.search(r"citation (\S+) not found", message):
            needle, message = f"@{named[1]}", f"unresolved citation @{named[1]}"
        elif math := re.search(r"TeX math (.*)", message):
            needle = math[1].split("\n")[0].removesuffix(", rendering as TeX:")
        lines = (line_of(needle, part.text, part.line) for part in prose if needle)
        line = next((line for line in lines if line), 1)
        if where and not needle:
            line = composer.origin[min(int(where[1]) - 4, len(composer.origin) - 1)]
        faults.append(Fault(page.path, line, " ".join(message.split())))
    return faults
