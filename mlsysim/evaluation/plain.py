"""Answers as plain data: what JSON can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """Turn an answer into mappings, lists, numbers and text.

    A quantity becomes ``{"value": 4.2, "unit": "ms"}``, a registry row its name. What is not
    known, or not finite, becomes `None`.

    Parameters
    ----------
    value
        A result, a quantity, a number, text, or a collection of them.

    Returns
    -------
    object
        What `json.dumps` takes.
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
