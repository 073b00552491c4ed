"""Mistakes in source files, with their locations."""

from __future__ import annotations

from pathlib import Path


class Fault(Exception):  # noqa: N818 - not an error of the program
    """A mistake on one line of a source file, which its author can fix."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(path, line, message)
        self.path, self.line, self.message = path, line, message

    def __str__(self) -> str:
        """Return the location in the format of editors and terminals, so that a click opens it."""
        return f"{self.path}:{self.line}: {self.message}"
