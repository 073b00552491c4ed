"""Configurations: scenarios as files that people write and programs check."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlsysim.core.fields import Record, plain_data, read_only, record
from mlsysim.scenario.files import Document, document_of, read_file, read_text, write_yaml
from mlsysim.scenario.scenario import Scenario
from mlsysim.scenario.schema import KEYS, checked, json_schema

__all__ = ["SimulationConfig"]


@record
class SimulationConfig(Record):
    """A scenario in plain data: names of registry rows, numbers, and amounts as text.

    A configuration is checked when it is created, before anything runs. All errors are reported
    together in one `ConfigError`. Its `faults` have file, line and key.

    Attributes
    ----------
    name : str
        Name of the scenario.
    description : str
        One sentence about it.
    task : str
        ``"inference"``, ``"serving"`` or ``"training"``.
    model : str
        Name of a registry row, such as ``"Llama3_8B"``.
    system : Mapping[str, object]
        ``{"hardware": name}``, ``{"node": name}``, ``{"cluster": name}``, or a fleet:
        ``{"node": name, "count": number, "fabric": name}``.
    arguments : Mapping[str, object]
        Further arguments of the task's solver.
    limits : Mapping[str, object]
        Limits on the solver's result: ``{"latency": {"at_most": "200 ms"}}``.
    macro : Mapping[str, object]
        How long the system runs and where: `duration_days`, `region`, `utilization`,
        `kwh_price`, `unit_price`, `rental_price`, `maintenance_rate`, `service_life`; and
        `limits` on energy, carbon, water and cost. With
        `facility` false the system is not in a data center, and its PUE is 1.

    Examples
    --------
    >>> from mlsysim import SimulationConfig, evaluate
    >>> config = SimulationConfig.from_text('''
    ... name: Chat
    ... task: serving
    ... model: Llama3_8B
    ... system: {hardware: H100}
    ... arguments: {seq_len: 2048, batch_size: 16}
    ... limits:
    ...   itl: {at_most: 20 ms}
    ... ''')
    >>> evaluate(config.scenario()).status
    'pass'
    """

    name: str
    task: str
    model: str
    system: Mapping[str, Any]
    description: str = ""
    arguments: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    limits: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    macro: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        document = document_of(self._plain())
        object.__setattr__(self, "_scenario", checked(document))
        for field, value in document.data.items():
            self._keep(field, read_only(value))

    def _plain(self) -> dict[str, Any]:
        """Return every key with a value, in the order of the schema."""
        values = {key: getattr(self, key) for key in KEYS}
        optional = ("description", "arguments", "limits", "macro")
        return {k: v for k, v in values.items() if k not in optional or (v != "" and v != {})}

    @classmethod
    def from_file(cls, path: str | Path) -> SimulationConfig:
        """Read a file; its suffix determines whether it is YAML or JSON.

        Parameters
        ----------
        path
            A file that ends in ``.yaml``, ``.yml`` or ``.json``.

        Raises
        ------
        ConfigError
            If the file cannot be read, or its contents are invalid.
        """
        return cls._from(read_file(path))

    @classmethod
    def from_text(cls, text: str, *, kind: str = "yaml") -> SimulationConfig:
        """Read a configuration from text.

        Parameters
        ----------
        text
            The configuration.
        kind
            ``"yaml"`` or ``"json"``.

        Raises
        ------
        ConfigError
            If the text is not a valid configuration.
        """
        return cls._from(read_text(text, kind))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SimulationConfig:
        """Create a configuration from data with the structure of a file.

        Raises
        ------
        ConfigError
            If the data is not a valid configuration.
        """
        return cls._from(document_of(data))

    @classmethod
    def _from(cls, document: Document) -> SimulationConfig:
        # Checked here first, because the line numbers are known here.
        checked(document)
        return cls(**document.data)

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data, which `from_dict` accepts."""
        data: dict[str, Any] = plain_data(self._plain())
        return data

    def to_yaml(self) -> str:
        """Return the configuration as YAML, which `from_text` accepts."""
        return write_yaml(self.to_dict())

    def scenario(self) -> Scenario:
        """Return the scenario that the configuration describes."""
        made: Scenario = self._scenario  # type: ignore[attr-defined]
        return made

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON Schema of configurations, for editors that complete and check."""
        return json_schema()
