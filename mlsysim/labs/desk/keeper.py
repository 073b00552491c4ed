"""Keep a ledger in a file: read it at the start, write it after every change."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError
from mlsysim.core.files import read_bytes

__all__ = ["Keeper"]

MAX_BYTES = 1024 * 1024


@dataclass
class Keeper:
    """The file of a ledger. A file that could not be read is never overwritten.

    Attributes
    ----------
    path
        The file.
    restore
        Reads the state from a ledger's text; raises `ConfigError` if the text is damaged.
    fault
        Why the file could not be read; empty if it could, or if there was none.
    """

    path: Path
    restore: Callable[[str], dict[str, Any]]
    fault: str = field(default="", init=False)

    def load(self) -> dict[str, Any]:
        """Return the state in the file, or the start if the file is missing or cannot be read."""
        self.fault = ""
        try:
            if not self.path.exists():
                return {}
            return self.restore(read_bytes(self.path, MAX_BYTES).decode("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            self.fault = f"the file cannot be read: {error}"
        except ConfigError as error:
            self.fault = error.message
        return {}

    def save(self, ledger: Mapping[str, Any]) -> tuple[bool, str]:
        """Write the ledger; return whether that succeeded, and a message."""
        if self.fault:
            return False, (
                f"Not saved: {self.path} is not a ledger of this lab and is left unchanged "
                f"({self.fault}). Move it away, or start the lab with another --ledger."
            )
        part = self.path.with_name(f"{self.path.name}.part")
        try:
            part.write_text(json.dumps(ledger, indent=1) + "\n", encoding="utf-8")
            part.replace(self.path)
        except OSError as error:
            return False, (
                f"Not saved: {self.path} cannot be written ({error.strerror or error}). Start the "
                "lab with another --ledger, or download the ledger below."
            )
        return True, f"Saved in {self.path}."
