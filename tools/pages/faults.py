"""What is wrong with a source file, and where."""

from __future__ import annotations

from pathlib import Path


class Fault(Exception):  # noqa: N818 - not an error of the program
    """One mistake on one line of a source file, which its author can fix."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(path, line, message)
        self.path, self.line, self.message = path, line, message

    def __str__(self) -> str:
        """Print as editors and terminals like it, so that a click opens the line."""
        return f"{self.path}:{self.line}: {self.message}"
