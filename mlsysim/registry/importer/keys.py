"""Keys of a configuration: alternative names, library defaults, and the origin of each value."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from typing import Any

from mlsysim.core.errors import ConfigError, shown
from mlsysim.core.types import Source, cite
from mlsysim.registry.tables import DATA, read_toml

__all__ = ["LIBRARY", "NAMES", "Keys", "defaults_of"]

_LIBRARY = cite(read_toml("architectures.toml")["source"])
LIBRARY = _LIBRARY.title
"""Release of the library whose configuration classes state the defaults."""

MOST = 10**9
"""Larger numbers cannot be a width or count of a network."""
MAX_LAYERS = 2_000

NAMES: Mapping[str, tuple[str, ...]] = {
    field: tuple(keys) for field, keys in read_toml("architectures.toml")["keys"].items()
}
"""Keys of each field in the files of various families."""


class Keys:
    """Reads fields of one configuration, and records the key and origin of each.

    Parameters
    ----------
    data
        The configuration, or its `text_config`.
    library
        Folder of the class with the defaults in the library; empty without one.
    names
        Keys of fields that have other names in this kind of model.
    defaults
        Defaults of the class, by key.
    around
        The configuration that `data` is a part of.
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        *,
        library: str = "",
        names: Mapping[str, tuple[str, ...]] | None = None,
        defaults: Mapping[str, Any] | None = None,
        around: Mapping[str, Any] | None = None,
        title: str = "config.json",
    ) -> None:
        self.data = data
        self.around = around or {}
        self.title = title
        self.sources: dict[str, Source] = {}
        self.missing: dict[str, tuple[str, ...]] = {}
        self.layer: int | None = None
        """The layer being read, for lists with one number per layer."""
        self._library = library
        self._names = {**NAMES, **(names or {})}
        self._of_kind = {key for keys in (names or {}).values() for key in keys}
        self._defaults = defaults or {}

    def names(self, field: str) -> tuple[str, ...]:
        """Return the possible keys of a field."""
        return self._names.get(field, (field,))

    def _stated(self, field: str) -> tuple[str, Any] | None:
        """Return the first key that is there, and its value."""
        found = None
        for name in self.names(field):
            place: Any = self.data
            for part in (name,) if name in place else name.split("."):
                place = place.get(part, _ABSENT) if isinstance(place, Mapping) else _ABSENT
            if place is not _ABSENT and (found is None or found[1] is None):
                found = (name, place)
        if found is None and field == "tied" and "tie_word_embeddings" in self.around:
            found = ("tie_word_embeddings", self.around["tie_word_embeddings"])
        return found

    def value(self, field: str) -> Any:
        """Return a field's value of any kind: the stated one, or the default; `None` if neither."""
        found = self._stated(field)
        if found is not None:
            self.sources[field] = Source(title=self.title, locator=found[0])
            return found[1]
        for name in self.names(field):
            if name in self._defaults:
                self.sources[field] = self._filled_in(name)
                return self._defaults[name]
        return None

    def stated(self, field: str) -> bool:
        """Return whether the file has one of the keys of a field, even if it is null."""
        return self._stated(field) is not None

    def filled_in(self) -> list[str]:
        """Return the keys of sizes that are the library's defaults."""
        return sorted(
            source.locator
            for field, source in self.sources.items()
            if source.title.startswith(LIBRARY)
            and field != "seq_len"
            and type(self._defaults.get(source.locator)) is int
        )

    def unread(self) -> list[str]:
        """Return the keys that state something, but that no field was read from.

        Among them are those of inner mappings that were read in part.
        """
        read = {source.locator for source in self.sources.values()}
        partly = {key.partition(".")[0] for key in read if "." in key}
        stated = [(key, item) for key, item in self.data.items() if not isinstance(item, Mapping)]
        for key, item in self.data.items():
            if isinstance(item, Mapping):
                inner = item.items() if key in partly else ()
                stated += [(f"{key}.{name}", part) for name, part in inner] or [(key, item)]
        nothing: tuple[Any, ...] = (None, False, "", 0, [], {})
        return [key for key, item in stated if item not in nothing and key not in read]

    def known(self, key: str) -> bool:
        """Return whether a key belongs to the kind, or to a field that was read."""
        if key in self._defaults or key in self._of_kind:
            return True
        read = [name for field in self.sources for name in self.names(field)]
        computed = (source.locator for source in self.sources.values() if " " in source.locator)
        return key in read or any(key in re.split(r"[^\w]", text) for text in computed)

    def _filled_in(self, key: str) -> Source:
        if not self._library:
            return Source(
                title="Code that comes with the weights",
                locator=key,
                note=f"default of that code; {self.title} does not state it",
            )
        file = f"configuration_{self._library}.py"
        return Source(
            title=f"{LIBRARY}, {file}",
            url=f"{_LIBRARY.url}/{self._library}/{file}",
            locator=key,
            note=f"default of the library; {self.title} does not state it",
        )

    def number(self, field: str, *, zero: bool = False) -> int | None:
        """Return a whole number, or `None` if it is null or absent.

        Raises
        ------
        ConfigError
            If the value is not a whole number, or out of range.
        """
        value = self.value(field)
        if isinstance(value, list):
            value = self._of_layer(field, value)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int or not (0 if zero else 1) <= value <= MOST:
            key = self.sources[field].locator
            raise ConfigError(
                f"{self.title}: {key} = {shown(value)} must be a whole number from "
                f"{0 if zero else 1} to {MOST:,}: correct it"
                + (", without quotes" if isinstance(value, str) else ""),
                argument=key,
            )
        return value

    def _of_layer(self, field: str, listed: list[Any]) -> Any:
        """Return a layer's item of a list with one for each."""
        key, layers = self.sources[field].locator, self.depth()
        if len(listed) != layers:
            raise ConfigError(
                f"{self.title}: {key} lists {len(listed)} numbers, but the model has {layers} "
                "layers: correct one of them",
                argument=key,
            )
        if self.layer is not None:
            return listed[self.layer]
        if any(type(item) is not int or item != listed[0] for item in listed):
            raise ConfigError(
                f"{self.title}: {key} = {shown(listed)} differs from layer to layer, which is not "
                "modeled: describe the network as a TransformerModel with a stack",
                argument=key,
            )
        return listed[0]

    def needed(self, field: str) -> int:
        """Return a required whole number.

        If it is missing, this is recorded and 1 returned, so that one error can list all missing
        keys.
        """
        found = self.number(field)
        if found is None:
            self.missing[field] = self.names(field)
            return 1
        return found

    def either(self, field: str, otherwise: int, from_: str) -> int:
        """Return a whole number or, if there is none, the value computed from `from_`."""
        found = self.number(field)
        if found is None:
            self.sources[field] = Source(title=self.title, locator=from_)
            return otherwise
        return found

    def count(self, field: str) -> int:
        """Return a whole number; absent and null mean zero."""
        return self.number(field, zero=True) or 0

    def flag(self, field: str | bool) -> bool:
        """Return a Boolean; absent or null means false.

        Raises
        ------
        ConfigError
            If the value is neither true nor false.
        """
        if isinstance(field, bool):
            return field
        value = self.value(field)
        if value is not None and not isinstance(value, bool):
            key = self.sources[field].locator
            raise ConfigError(
                f"{self.title}: {key} = {shown(value)} must be true or false, without quotes",
                argument=key,
            )
        return bool(value)

    def list_of(self, field: str, kind: type) -> list[Any] | None:
        """Return a list with one item for each layer, or `None`."""
        value = self.value(field)
        if value is None:
            return None
        if not isinstance(value, list) or not all(type(item) is kind for item in value):
            key = self.sources[field].locator
            raise ConfigError(
                f"{self.title}: {key} = {shown(value)} must be a list of {kind.__name__}",
                argument=key,
            )
        return value

    def depth(self) -> int:
        """Return the number of layers.

        Raises
        ------
        ConfigError
            If there are more than any network has, which would take long to read.
        """
        listed = self.value("layer_types")
        stated = self._stated("layers")
        if isinstance(listed, list) and listed and stated is None:
            layers = len(listed)
            self.sources["layers"] = self.sources["layer_types"]
        elif stated is not None and isinstance(stated[1], list):
            raise ConfigError(
                f"{self.title}: {stated[0]} = {shown(stated[1])} must be one whole number",
                argument=stated[0],
            )
        else:
            layers = self.needed("layers")
        if layers > MAX_LAYERS:
            raise ConfigError(
                f"{self.title}: {self.sources['layers'].locator} = {layers:,} is more than "
                f"{MAX_LAYERS:,} layers, the limit",
                argument=self.sources["layers"].locator,
            )
        return layers

    def check(self, model_type: str, known: str = "") -> None:
        """Reject a configuration that lacks required keys."""
        if not self.missing:
            return
        lines = [
            f"  {field}: {' or '.join(names[:3])}" for field, names in sorted(self.missing.items())
        ]
        raise ConfigError(
            f"{self.title} of model_type {shown(model_type)} does not state\n"
            + "\n".join(lines)
            + "\nAdd these keys to the file, or to the mapping with its content."
            + known,
            argument=next(iter(self.missing.values()))[0],
        )


_ABSENT = object()


@functools.cache
def _library_defaults() -> Mapping[str, Mapping[str, Any]]:
    contents: dict[str, dict[str, Any]] = json.loads(
        (DATA / "library_defaults.json").read_text(encoding="utf-8")
    )
    return contents


def defaults_of(library: str) -> Mapping[str, Any]:
    """Return the defaults of a configuration class of the library, by key."""
    return _library_defaults().get(library, {})
