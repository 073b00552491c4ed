"""Reading files from elsewhere, and printing their contents safely."""

from __future__ import annotations

import secrets
import shutil
import stat
from pathlib import Path
from typing import Any

from mlsysim.core.errors import UNPRINTABLE, ConfigError, printable, shown

__all__ = ["UNPRINTABLE", "inert", "named", "printable", "read_bytes", "write_text"]

# Characters that begin a formula in Excel, LibreOffice and Google Sheets, including full-width
# ones.
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def named(path: str | Path) -> str:
    """Write a path for an error message, shortened if it is too long."""
    return str(path) if len(str(path)) <= 200 else shown(str(path))


def read_bytes(path: str | Path, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes, but no pipe, which might never end."""
    name = named(path)
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            raise ConfigError(f"{name} is not a regular file")
        with Path(path).open("rb") as file:
            content = file.read(limit + 1)
    except ConfigError:
        raise
    except (OSError, TypeError, ValueError) as fault:  # a null character is a ValueError
        reason = getattr(fault, "strerror", None) or fault
        raise ConfigError(f"{name} cannot be read: {reason}") from None
    if len(content) > limit:
        raise ConfigError(f"{name} is larger than {limit // 1024:,} KiB, the limit for such files")
    return content


def write_text(path: str | Path, text: str) -> None:
    """Write a text file. An existing file is replaced only after everything is written."""
    target = Path(path).resolve()
    if target.exists() and not target.is_file():  # a terminal or a pipe cannot be replaced
        target.write_text(text, encoding="utf-8", newline="")
        return
    part = target.with_name(f".mlsysim-{secrets.token_hex(8)}.part")
    try:
        part.write_text(text, encoding="utf-8", newline="")
        if target.exists():
            shutil.copymode(target, part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def inert(value: Any) -> Any:
    """Return a CSV cell that a spreadsheet displays but never executes."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
