"""What is wrong with a source file, and where."""

from __future__ import annotations

import re
from pathlib import Path


class Fault(Exception):
    """One mistake in one source file, which the person who wrote it can mend."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(path, line, message)
        self.path, self.line, self.message = path, line, message

    def __str__(self) -> str:
        """Print as editors and terminals like it, so that a click opens the line."""
        return f"{self.path}:{self.line}: {self.message}"


def line_of(needle: str, text: str, first: int = 1) -> int | None:
    """Return the line where ``needle`` stands as a whole word, or None."""
    found = re.search(rf"(?<![\w-]){re.escape(needle)}(?![\w-])", text)
    return first + text.count("\n", 0, found.start()) if found else None
