"""``python -m tools.labs.blocks``: list the code blocks of pages that readers can run."""

from __future__ import annotations

from pathlib import Path

from tools.labs.browser import answer, write

if __name__ == "__main__":
    write(Path("docs/labs/runtime/blocks.json"), answer("blocks"))
