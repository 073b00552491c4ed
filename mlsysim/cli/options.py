"""Options of a command, its help and its completion, from the signature of a function."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem
from click.types import StringParamType

from mlsysim.cli.arguments import REQUIRED, Signature, example, flag
from mlsysim.core.errors import ConfigError
from mlsysim.core.types import (
    Accelerator,
    Calibration,
    Fleet,
    NetworkFabric,
    Node,
    TransformerModel,
)
from mlsysim.registry.names import entries
from mlsysim.scenario.files import read_file, refusal
from mlsysim.scenario.names import fleet_text
from mlsysim.solvers.arguments import (
    Amount,
    Argument,
    Choice,
    Noun,
    Number,
    PrecisionName,
    Switch,
    Whole,
)

__all__ = ["Asking", "Names", "answer_fields", "choices"]


class Names(StringParamType):
    """Text with completion from known names.

    The command itself parses the text, so its errors are those of the package.
    """

    def __init__(self, known: Callable[[click.Context], Iterable[str]]) -> None:
        self.known = known

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the last of the values separated by commas."""
        before, comma, last = incomplete.rpartition(",")
        return [
            CompletionItem(f"{before}{comma}{name}")
            for name in self.known(ctx)
            if name.startswith(last)
        ]


class _Option(click.Option):
    """An option for an argument of the function that a command calls."""

    needed = False


_SECTIONS = ("Needed arguments", "Other arguments", "Options")


def _section_of(param: click.Parameter) -> int:
    """Return the number of the section of the help that lists a parameter."""
    if not isinstance(param, _Option):
        return 2
    return 0 if param.needed else 1


class Asking(click.Command):
    """A command that takes the arguments of a function, each as an option or with `--set`.

    The callback receives a tuple of texts for each name, and `settings`. The help begins with the
    `example`.
    """

    def __init__(
        self,
        signature: Signature,
        *,
        params: list[click.Parameter],
        example: str = "",
        **kwargs: Any,
    ):
        self.example = example
        arguments = [_option(name, signature) for name in signature.kinds]
        setting = click.Option(
            ["--set", "settings"],
            metavar="KEY=VALUE",
            multiple=True,
            help="Any argument, by its Python name; may be repeated.",
        )
        file = click.Option(
            ["--file", "argument_file"],
            type=click.Path(),
            is_eager=True,
            expose_value=False,
            callback=_take_from_file,
            help="A YAML or JSON file with any of these arguments and options; those on the "
            "command line replace its values.",
        )
        self.builds_fleets = "fleet" in signature.kinds
        parts = [_part_of_fleet(*part) for part in _PARTS] if self.builds_fleets else []
        super().__init__(params=[*arguments, *parts, setting, file, *params], **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; `--set` also replaces a value of the file."""
        for setting in ctx.params["settings"]:
            name = setting.partition("=")[0].strip().replace("-", "_")
            if ctx.get_parameter_source(name) is ParameterSource.DEFAULT_MAP:
                ctx.params[name] = ()
        if self.builds_fleets:
            _build_fleet(ctx)
        return super().invoke(ctx)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example below the text."""
        super().format_help_text(ctx, formatter)
        if self.example:
            with formatter.section("Example"):
                formatter.write_text(self.example)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments that are needed, the function's other arguments, and the options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in sorted(self.get_params(ctx), key=_section_of):
            record = param.get_help_record(ctx)
            if record is not None:
                sections.setdefault(_SECTIONS[_section_of(param)], []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


_PARTS: tuple[tuple[str, tuple[type, ...], str], ...] = (
    (
        "node",
        (Node, Accelerator),
        "Server or device of a fleet of your own, such as DGX_H100; L40S_Server:2 for two devices "
        "of a server, or a YAML file.",
    ),
    ("count", (), "Number of these servers; 1 if left out."),
    ("fabric", (NetworkFabric,), "Network between them, such as InfiniBand_NDR."),
)
"""Options that describe a fleet instead of `--fleet`."""


def _part_of_fleet(name: str, kinds: tuple[type, ...], note: str) -> _Option:
    if not kinds:
        return _Option([f"--{name}", name], type=click.IntRange(1), metavar="N", help=note)
    known = Names(lambda _: choices(Noun(kinds=kinds)))
    return _Option([f"--{name}", name], type=known, metavar="NAME", help=note)


def _build_fleet(ctx: click.Context) -> None:
    """Combine the options that describe a fleet into one value of `--fleet`."""
    given = {name: ctx.params.pop(name) for name, _, _ in _PARTS}
    given = {name: text for name, text in given.items() if text is not None}
    if not given:
        return
    if "node" not in given:
        raise ConfigError(
            f"--{next(iter(given))} needs --node, the servers of the fleet: add it, as in --node "
            "DGX_H100, or choose a fleet by its name",
            argument="node",
        )
    if ctx.get_parameter_source("fleet") is ParameterSource.DEFAULT_MAP:
        ctx.params["fleet"] = ()
    ctx.params["fleet"] = (*ctx.params["fleet"], fleet_text(**given))


def _take_from_file(ctx: click.Context, _: click.Parameter, path: str | None) -> None:
    """Add the arguments and options of a file to the command."""
    if path is None or ctx.resilient_parsing:
        return
    document = read_file(path)
    if not isinstance(document.data, dict):
        raise document.stop("write one argument per line, such as model: Llama3_8B")
    known = {
        word.lstrip("-").replace("-", "_"): item
        for item in ctx.command.params
        if isinstance(item, click.Option) and item.expose_value and item.name != "settings"
        for word in item.opts
    }
    found: dict[str | None, Any] = {}
    for key, value in document.data.items():
        name = key.replace("-", "_")
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(known)}"
            document.fault((key,), f"{ctx.command.name} has no argument {key}; {hint}")
            continue
        parts = value if isinstance(value, list) else [value]
        if name == "fleet":
            parts = [_fleet_word(document, part) for part in parts]
        if not parts or any(isinstance(part, (dict, list)) for part in parts):
            document.fault((key,), "write a name, a number or text, or a list of them")
            continue
        option, words = known[name], [_word(part) for part in parts]
        if option.name in found:
            document.fault((key,), "the argument has a value already, under another name")
        elif not option.multiple:
            found[option.name] = ",".join(words)
        else:
            found[option.name] = [",".join(words)] if isinstance(option, _Option) else words
    if document.faults:
        raise refusal(document.faults)
    ctx.default_map = {name: value for name, value in found.items() if name}


def _fleet_word(document: Any, value: Any) -> Any:
    """Return the text of a fleet that a file gives as a mapping."""
    if not isinstance(value, dict):
        return value
    known = [name for name, _, _ in _PARTS]
    if "node" not in value or not value.keys() <= set(known):
        document.fault(("fleet",), "write node, count and fabric, or the name of a fleet")
        return ""
    return fleet_text(**value)


def _word(value: Any) -> str:
    """Convert a value of a file to its form on the command line."""
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def _option(name: str, signature: Signature) -> _Option:
    kind, default = signature.kinds[name], signature.defaults[name]
    metavar, words = _described(kind)
    flags = [flag(name)]
    if isinstance(kind, Noun) and Node in kind.kinds and not name.startswith("prefill_"):
        flags.append("--node")  # a server is accepted instead of a device
    note = signature.notes.get(name, "").replace("`None`", "null").replace("`", "")
    facts = "; ".join(filter(None, [words, _default(kind, default)]))
    option = _Option(
        [*flags, name],
        type=Names(lambda _: choices(kind)),
        metavar=metavar,
        multiple=True,  # to reject values given twice
        help=f"{note}  [{facts}]".strip(),
    )
    option.needed = default is REQUIRED
    return option


def _default(kind: Argument, default: Any) -> str:
    if default is REQUIRED:
        return "required"
    if default is None and not kind.optional:
        return "optional"  # the function chooses the default
    if default is None:
        return "default: null"
    return f"default: {str(default).lower() if isinstance(default, bool) else default}"


def _described(kind: Argument) -> tuple[str, str]:
    """Return a placeholder for the values of a kind, and a description."""
    match kind:
        case Noun():
            what = " or ".join(item.__name__ for item in kind.kinds)
            file = ", or the YAML file of a calibration" if Calibration in kind.kinds else ""
            if any(issubclass(TransformerModel, item) for item in kind.kinds):
                file = (
                    ", or the path of a config.json, of its directory (with a trailing /) or of a "
                    ".gguf file"
                )
            if Accelerator in kind.kinds or Node in kind.kinds:
                file = ", the YAML file of one"
            if Node in kind.kinds:
                file += ", or some devices of a server, as in L40S_Server:2"
            if kind.kinds == (Fleet,):
                file = ", a server or a device, or 64xDGX_H100@InfiniBand_NDR"
            return "NAME", f"{what} of the zoo, such as {example(kind)}{file}"
        case Amount():
            sign = "0 or more" if kind.zero else "above 0"
            unit = f'a number with a unit, such as "5 {kind.unit}"'
            return (
                "AMOUNT",
                f"{unit}, or in {kind.unit}; {sign}" if kind.plain else f"{unit}; {sign}",
            )
        case Number():
            return "N" if isinstance(kind, Whole) else "NUMBER", kind.wanted
        case PrecisionName():
            return "FORMAT", f"one of {', '.join(choices(kind))}"
        case _:
            known = choices(kind)
            return "|".join(known) or "VALUE", ""


def choices(kind: Argument) -> list[str]:
    """Return the names that an argument of this kind may have; none for numbers."""
    match kind:
        case Noun():
            return sorted(entries(*kind.kinds))
        case PrecisionName():
            return list(kind.names)
        case Choice():
            return list(kind.options or {})
        case Switch():
            return ["true", "false"]
    return []


def answer_fields(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option `--field` to a command, to choose columns."""
    return click.option(
        "--field", "fields", multiple=True, help="A column to show; may be repeated."
    )(function)
