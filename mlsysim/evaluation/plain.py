"""Results as plain data for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """Convert a result to mappings, lists, numbers and text.

    A quantity becomes ``{"value": 4.2, "unit": "ms"}``, and a registry row becomes its name.
    Unknown and infinite values become `None`.

    Parameters
    ----------
    value
        A result, a quantity, a number, text, or a collection of them.

    Returns
    -------
    object
        Data that `json.dumps` accepts.
    """
    if hasattr(value, "magnitude"):
        return {"value": plain(value.magnitude), "unit": f"{value.units:~C}".replace("**", "^")}
    if hasattr(value, "item"):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(getattr(value, "name", value))
