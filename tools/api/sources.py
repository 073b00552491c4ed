"""The package's own source as pages, one a module, a link target on every line."""

from __future__ import annotations

import ast
from pathlib import Path

from tools.api.docstrings import definition
from tools.api.renderer import front_matter, join

FENCE = "`" * 6


def write_sources(root: Path, folder: Path) -> dict[Path, str]:
    """The pages by the path they belong at, with an index of them."""
    texts, rows = {}, []
    for path in sorted((root / "mlsysim").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        name = module_name(path.relative_to(root))
        if not text.strip():
            continue
        about = (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0]
        about = " ".join(about.split())
        texts[folder / f"{name}.qmd"] = listing(name, path.relative_to(root), text)
        rows.append(definition(f"[`{name}`]({name}.qmd)", about))
    intro = "The package as it is installed, module by module."
    texts[folder / "index.qmd"] = join(front_matter("Source listings", intro), *rows)
    return texts


def module_name(path: Path) -> str:
    """The dotted name of the module in a file."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def listing(name: str, path: Path, text: str) -> str:
    """A page with one block; pandoc gives its lines the ids src-1, src-2, ..."""
    front = front_matter(name, search=False)
    block = f"{FENCE} {{#src .python}}\n{text.rstrip()}\n{FENCE}"
    return join(front, f"`{path.as_posix()}`", block)
