"""An IPython extension for kernels that run a page instead of a notebook.

The profile in `ipython/` loads it. Quarto finds that profile through the project's `_environment`
file, the preview through `execute`, so both renderers show the same.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

from IPython.core.formatters import DisplayFormatter


class PageFormatter(DisplayFormatter):
    """A formatter that returns HTML as raw HTML in Markdown.

    Quarto adds two scripts from another host to every page on which a cell's output has the type
    text/html.
    """

    def format(self, obj: object, include: Any = None, exclude: Any = None) -> tuple[Any, Any]:
        """Return an object's representations and their metadata, by type."""
        data, metadata = super().format(obj, include, exclude)  # type: ignore[no-untyped-call]
        if html := data.pop("text/html", None):
            runs = [len(run) for run in re.findall("`{3,}", html)]
            fence = "`" * (max(runs, default=2) + 1)
            data["text/markdown"] = f"{fence}{{=html}}\n{html}\n{fence}"
        return data, metadata


def load_ipython_extension(shell: Any) -> None:
    """Change the shell of a kernel that runs a page; IPython calls this."""
    shell.display_formatter = PageFormatter(parent=shell)
    # Python hides some kinds. What a cell or the package is warned of is a fault of the page.
    warnings.filterwarnings("default", module=r"__main__|mlsysim\b")
    whole = shell._showtraceback

    def shown(kind: type[BaseException], error: BaseException, lines: list[str]) -> None:
        # A page that shows an error on purpose shows its name and message. The traceback, with
        # the paths of the machine that built the page, is for an author whose cell fails.
        on_purpose = shell.get_parent()["content"].get("stop_on_error") is False
        whole(kind, error, [] if on_purpose else lines)

    shell._showtraceback = shown
