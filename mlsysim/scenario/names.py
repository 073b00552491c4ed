"""Names: what an argument of a solver may be in a file or on the command line."""

from __future__ import annotations

import re
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from mlsysim.core.errors import ConfigError, UnknownEntryError, shown
from mlsysim.core.types import (
    Accelerator,
    Calibration,
    Fleet,
    NetworkFabric,
    Node,
    TransformerModel,
)
from mlsysim.core.units import read_amount
from mlsysim.registry import Models
from mlsysim.registry.names import row_of
from mlsysim.scenario.systems import node_of, part_of_server, standalone_fleet
from mlsysim.solvers.arguments import Amount, Argument, Noun, Switch

FILE = re.compile(r"\.[yY][aA]?[mM][lL]$")
"""Suffixes of the file of a calibration, a device or a server."""
PART = re.compile(r"(.+):([1-9][0-9]{0,8})")
"""Some devices of a server, as in ``L40S_Server:2``."""
MODEL_FILE = re.compile(r"\.([jJ][sS][oO][nN]|[gG][gG][uU][fF])$|/$")
"""Suffixes of the path of a model's configuration or its directory."""


def find_entry(name: object, kinds: tuple[type, ...], label: str = "") -> Any:
    """Return the row of that name, which errors call `label`.

    Case, hyphens, underscores, dots and spaces may differ. A name can also be a path relative to
    the working directory: for a training calibration, of a YAML file made by `calibrate`; for a
    device or a server, of one that `load_hardware` reads; for a transformer, of a ``config.json``,
    of its directory or of a ``.gguf`` file. ``"L40S_Server:2"`` means two devices of a server.

    Raises
    ------
    ConfigError
        If there is no such row, a file cannot be read or describes something else, or a server has
        too few devices.
    """
    if Calibration in kinds and isinstance(name, str) and FILE.search(name):
        # Imported here, because only files need PyYAML.
        from mlsysim.scenario.cluster import load_calibration

        return load_calibration(name)
    if isinstance(name, str) and (Accelerator in kinds or Node in kinds):
        server = PART.fullmatch(name)
        if server is not None:
            return part_of_server(find_entry(server[1], (Accelerator, Node), label), int(server[2]))
        if FILE.search(name):
            return _hardware_of(name, kinds)
    transformers = any(issubclass(TransformerModel, kind) for kind in kinds)
    if transformers and isinstance(name, str) and MODEL_FILE.search(name):
        return Models.from_config(name)
    try:
        return row_of(name, kinds, label)
    except UnknownEntryError as fault:
        if not transformers or not isinstance(name, str):
            raise
        if _is_directory(name):
            return Models.from_config(name)
        if re.search(r"[/\\]", name):
            fault.message += "; the path of a model is a directory, or ends in .json or .gguf"
        raise


def _is_directory(path: str) -> bool:
    with suppress(OSError, ValueError):  # a path that the system does not allow
        return Path(path).is_dir()
    return False


def _hardware_of(path: str, kinds: tuple[type, ...]) -> Accelerator | Node:
    """Return the device or the server that a file describes."""
    # Imported here, because only files need PyYAML.
    from mlsysim.scenario.hardware import load_hardware

    hardware = load_hardware(path)
    if isinstance(hardware, kinds):
        return hardware
    kind = "a server, with the key accelerator" if Node in kinds else "a device, without a server"
    raise ConfigError(f"{shown(path)} describes something else: give the file of {kind}")


_CALIBRATION = Noun(
    kinds=(Calibration,),
    hint="Calibrations.H100_Megatron, its name, or the path of the YAML file that calibrate made",
)


def named_calibration(value: Any, argument: str) -> Calibration:
    """Return a training calibration, given as an object, by its name, or by its file."""
    if isinstance(value, PathLike):
        value = str(value)
    if isinstance(value, str):
        try:
            value = find_entry(value, (Calibration,), argument)
        except UnknownEntryError as fault:
            raise UnknownEntryError(
                f'{fault.message}; the path of a file ends in .yaml, such as "my_cluster.yaml"',
                argument=argument,
            ) from None
    calibration: Calibration = _CALIBRATION.admit(argument, value)
    return calibration


_BUILT = re.compile(r"([0-9]{1,9})x([^@]+)(?:@(.+))?")


def fleet_text(node: Any, count: Any = 1, fabric: Any = None) -> str:
    """Return the text for some servers on a network, as `find_fleet` reads it."""
    return f"{count}x{node}" + ("" if fabric is None else f"@{fabric}")


def find_fleet(text: object, argument: str) -> Fleet:
    """Return the fleet of a name, or of a number of servers and the network between them.

    The name may be that of a server or a device, which is a fleet of one. With a number, the text
    is like ``"64xDGX_H100@InfiniBand_NDR"``.

    Raises
    ------
    ConfigError
        If there is no such fleet, server, device or network, if several servers have no network, or
        if the number is zero.
    """
    parts = _BUILT.fullmatch(text) if isinstance(text, str) else None
    if parts is None:
        return standalone_fleet(find_entry(text, (Fleet, Node, Accelerator), argument))
    count, node = int(parts[1]), node_of(find_entry(parts[2], (Node, Accelerator), "node"))
    if parts[3] is None:
        if count == 1:
            return standalone_fleet(node)
        raise ConfigError(
            f"{argument} = {shown(text)} has no network between its {count} servers: add one, as "
            f"in fabric: InfiniBand_NDR, or {count}x{parts[2]}@InfiniBand_NDR; for some devices of "
            "one server, write them after its name, as in L40S_Server:2",
            argument=argument,
        )
    fabric = find_entry(parts[3], (NetworkFabric,), "fabric")
    return Fleet(name=f"{count} x {node.name}", node=node, count=count, fabric=fabric)


def read_argument(kind: Argument, name: str, value: Any) -> Any:
    """Read an argument of a solver from a number, true or false, or text, and check it.

    Raises
    ------
    ConfigError
        If the value is invalid. The message states what to write.
    """
    if isinstance(kind, Noun) and value is not None:
        fleet = kind.kinds == (Fleet,)
        value = find_fleet(value, name) if fleet else find_entry(value, kind.kinds, name)
    if isinstance(kind, Amount) and isinstance(value, str):
        value = read_amount(value, kind.unit, name)
    if isinstance(kind, Switch) and value is not None and not isinstance(value, bool):
        raise ConfigError(
            f"{name} = {shown(value)} is not a Boolean: write true or false",
            argument=name,
        )
    kind.admit(name, value)
    return value
