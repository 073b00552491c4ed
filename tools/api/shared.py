"""Write out arguments that functions share, which only the imported function has."""

from __future__ import annotations

import inspect
import re
from functools import reduce
from importlib import import_module
from typing import Any

from griffe import Parameter, ParameterKind

_MODULES = re.compile(r"\b(?:\w+\.)+(?=\w)")


def write_out(obj: Any) -> None:
    """Replace ``**engine: Unpack[...]`` of a parsed function by the arguments, with their texts."""
    packed = [item for item in obj.parameters if str(item.annotation).startswith("Unpack[")]
    if not packed:
        return
    module = obj.final_target.module.path if obj.is_alias else obj.module.path
    names = obj.canonical_path.removeprefix(f"{module}.").split(".")
    function: Any = reduce(getattr, names, import_module(module))
    for item in packed:
        del obj.parameters[item.name]
    for name, item in inspect.signature(function).parameters.items():
        if name not in obj.parameters:
            obj.parameters.add(
                Parameter(
                    name,
                    annotation=_MODULES.sub("", inspect.formatannotation(item.annotation)),
                    kind=ParameterKind.keyword_only,
                    default=None if item.default is item.empty else repr(item.default),
                )
            )
    obj.docstring.value = inspect.getdoc(function)
