"""Options of a command, its help and its completion, from the signature of a function."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem
from click.types import StringParamType

from mlsysim.core.errors import ConfigError, UnknownEntryError, hint
from mlsysim.core.types import (
    Accelerator,
    Calibration,
    Fleet,
    NetworkFabric,
    Node,
    TransformerModel,
)
from mlsysim.registry.names import entries
from mlsysim.scenario.files import read_file, refusal, scalar_of
from mlsysim.scenario.names import fleet_text, read_argument
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
from mlsysim.solvers.base import Solver
from mlsysim.solvers.signatures import arguments_of, notes_of

REQUIRED = inspect.Parameter.empty
"""Default of an argument that has none."""

Words = Mapping[str, Iterable[str]]
"""Texts given for each argument by the option with its name."""


class Parameter(NamedTuple):
    """An argument of a function."""

    kind: Argument
    default: Any
    note: str


@dataclass(frozen=True)
class Signature:
    """The arguments of a function, in its order, which errors call by this name."""

    name: str
    parameters: Mapping[str, Parameter]

    @classmethod
    def of(cls, function: Callable[..., Any], name: str = "") -> Signature:
        """Read a function's signature and docstring. Arguments without a kind are left out."""
        kinds, notes = arguments_of(function), notes_of(function)
        parameters = {
            key: Parameter(kinds[key], item.default, notes.get(key, ""))
            for key, item in inspect.signature(function).parameters.items()
            if key in kinds
        }
        return cls(name or function.__name__, parameters)

    def read(self, words: Words, settings: Iterable[str], *, axes: bool = False) -> dict[str, Any]:
        """Read the arguments of a call from the texts of options and of ``KEY=VALUE``.

        With `axes`, values separated by commas become a list.

        Raises
        ------
        ConfigError
            If a value is invalid, given twice, or missing.
        """
        read = self._several if axes else self._value
        given = {name: read(name, text) for name, text in self._texts(words, settings).items()}
        missing = {
            name: item.kind
            for name, item in self.parameters.items()
            if item.default is REQUIRED and name not in given
        }
        if missing:
            ways = " ".join(f"{_flag(name)} {_example(kind)}" for name, kind in missing.items())
            raise ConfigError(
                f"{self.name} needs {', '.join(missing)}: add them, as in {ways}",
                argument=next(iter(missing)),
            )
        return given

    def changes(self, settings: Iterable[str]) -> dict[str, Any]:
        """Read the arguments that differ in another call, given as ``KEY=VALUE`` after `--against`.

        Raises
        ------
        ConfigError
            If a value is invalid or given twice.
        """
        texts = self._texts({}, settings, option="against")
        return {name: self._value(name, text) for name, text in texts.items()}

    def _several(self, name: str, text: str) -> Any:
        values = [self._value(name, part.strip()) for part in text.split(",")]
        return values if len(values) > 1 else values[0]

    def _value(self, name: str, text: str) -> Any:
        return read_argument(self.parameters[name].kind, name, scalar_of(text))

    def _texts(self, words: Words, settings: Iterable[str], option: str = "set") -> dict[str, str]:
        """Return the one text that is given for each argument."""
        pairs = [(name, text) for name, given in words.items() for text in given]
        # Options are spelled with hyphens, so keys may be too.
        keyed = (key_value(text, option) for text in settings)
        pairs += [(key.replace("-", "_"), text) for key, text in keyed]
        texts: dict[str, str] = {}
        for name, text in pairs:
            if name in texts:
                raise ConfigError(f"{name} is given twice", argument=name)
            if name not in self.parameters:
                known = hint(name, self.parameters, f"it takes {', '.join(self.parameters)}")
                raise UnknownEntryError(
                    f"{self.name} has no argument {name}; {known}", argument=name
                )
            texts[name] = text
        return texts


def key_value(text: str, option: str, form: str = "KEY=VALUE") -> tuple[str, str]:
    """Return the two sides of a text that an option has in this form."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--{option} {text!r} is not {form}", argument=option)
    return key.strip(), value.strip()


def signature_of(solver: type[Solver[Any, Any]]) -> Signature:
    """Return the arguments of a solver."""
    return Signature.of(solver.solve, solver.__name__)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _example(kind: Argument) -> str:
    """Return a value that an argument of this kind might have."""
    if isinstance(kind, Noun):
        return kind.hint.split(",")[0].rpartition(".")[2]
    return str(getattr(kind, "minimum", 1))


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

    section = "Other arguments"


class Asking(click.Command):
    """A command that takes the arguments of a function, each as an option or with `--set`.

    The callback receives them as `arguments`; with `axes`, some of them may be lists. The help
    begins with the `example`.
    """

    def __init__(
        self,
        signature: Signature,
        *,
        params: list[click.Parameter],
        axes: bool = False,
        example: str = "",
        **kwargs: Any,
    ):
        self.signature, self.axes, self.example = signature, axes, example
        arguments = [_option(name, item) for name, item in signature.parameters.items()]
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
        parts = map(_part_of_fleet, _PARTS) if "fleet" in signature.parameters else ()
        super().__init__(params=[*arguments, *parts, setting, file, *params], **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Read the arguments, and run the command."""
        settings = ctx.params.pop("settings")
        for setting in settings:
            name = setting.partition("=")[0].strip().replace("-", "_")
            if ctx.get_parameter_source(name) is ParameterSource.DEFAULT_MAP:
                ctx.params[name] = ()  # `--set` replaces a value of the file
        if "fleet" in self.signature.parameters:
            _build_fleet(ctx)
        options = {name: ctx.params.pop(name) for name in self.signature.parameters}
        ctx.params["arguments"] = self.signature.read(options, settings, axes=self.axes)
        return super().invoke(ctx)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example below the text."""
        super().format_help_text(ctx, formatter)
        if self.example:
            with formatter.section("Example"):
                formatter.write_text(self.example)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments that are needed, the function's other arguments, and the options."""
        sections: dict[str, list[tuple[str, str]]] = {
            title: [] for title in ("Needed arguments", _Option.section, "Options")
        }
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                sections[getattr(param, "section", "Options")].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


_PARTS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "node": (
        (Node, Accelerator),
        "Server or device of a fleet of your own, such as DGX_H100; L40S_Server:2 for two devices "
        "of a server, or a YAML file.",
    ),
    "count": ((), "Number of these servers; 1 if left out."),
    "fabric": ((NetworkFabric,), "Network between them, such as InfiniBand_NDR."),
}
"""Options that describe a fleet instead of `--fleet`."""


def _part_of_fleet(name: str) -> _Option:
    kinds, note = _PARTS[name]
    if not kinds:
        return _Option([f"--{name}", name], type=click.IntRange(1), metavar="N", help=note)
    known = Names(lambda _: choices(Noun(kinds=kinds)))
    return _Option([f"--{name}", name], type=known, metavar="NAME", help=note)


def _build_fleet(ctx: click.Context) -> None:
    """Combine the options that describe a fleet into one value of `--fleet`."""
    given = {name: ctx.params.pop(name) for name in _PARTS}
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
    given: dict[str, Any] = {}
    for key, value in document.data.items():
        name = key.replace("-", "_")
        if name not in known:
            nearest = hint(name, known, f"it takes {', '.join(known)}")
            document.fault((key,), f"{ctx.command.name} has no argument {key}; {nearest}")
            continue
        parts = value if isinstance(value, list) else [value]
        if name == "fleet":
            parts = [_fleet_word(document, part) for part in parts]
        if not parts or any(isinstance(part, (dict, list)) for part in parts):
            document.fault((key,), "write a name, a number or text, or a list of them")
            continue
        option, words = known[name], [_word(part) for part in parts]
        target = str(option.name)
        if target in given:
            document.fault((key,), "the argument has a value already, under another name")
        elif not option.multiple:
            given[target] = ",".join(words)
        else:
            given[target] = [",".join(words)] if isinstance(option, _Option) else words
    if document.faults:
        raise refusal(document.faults)
    ctx.default_map = given


def _fleet_word(document: Any, value: Any) -> Any:
    """Return the text of a fleet that a file gives as a mapping."""
    if not isinstance(value, dict):
        return value
    if "node" not in value or not value.keys() <= _PARTS.keys():
        document.fault(("fleet",), "write node, count and fabric, or the name of a fleet")
        return ""
    return fleet_text(**value)


def _word(value: Any) -> str:
    """Convert a value of a file to its form on the command line."""
    return json.dumps(value) if value is None or isinstance(value, bool) else str(value)


def _option(name: str, parameter: Parameter) -> _Option:
    kind, default, note = parameter
    metavar, words = _described(kind)
    flags = [_flag(name)]
    if isinstance(kind, Noun) and Node in kind.kinds and not name.startswith("prefill_"):
        flags.append("--node")  # a server is accepted instead of a device
    note = note.replace("`None`", "null").replace("`", "")
    facts = "; ".join(filter(None, [words, _default(kind, default)]))
    option = _Option(
        [*flags, name],
        type=Names(lambda _: choices(kind)),
        metavar=metavar,
        multiple=True,  # to reject values given twice
        help=f"{note}  [{facts}]".strip(),
    )
    if default is REQUIRED:
        option.section = "Needed arguments"
    return option


def _default(kind: Argument, default: Any) -> str:
    if default is REQUIRED:
        return "required"
    if default is None:
        # Without null, the function chooses the default.
        return "default: null" if kind.optional else "optional"
    return f"default: {str(default).lower() if isinstance(default, bool) else default}"


def _described(kind: Argument) -> tuple[str, str]:
    """Return a placeholder for the values of a kind, and a description."""
    match kind:
        case Noun():
            types = " or ".join(item.__name__ for item in kind.kinds)
            return "NAME", f"{types} of the catalog, such as {_example(kind)}{_other_forms(kind)}"
        case Amount():
            number = f'a number with a unit, such as "5 {kind.unit}"'
            number += f", or in {kind.unit}" if kind.plain else ""
            return "AMOUNT", f"{number}; {'0 or more' if kind.zero else 'above 0'}"
        case Number():
            return "N" if isinstance(kind, Whole) else "NUMBER", kind.wanted
        case PrecisionName():
            return "FORMAT", f"one of {', '.join(choices(kind))}"
        case _:
            return "|".join(choices(kind)) or "VALUE", ""


def _other_forms(kind: Noun) -> str:
    """Describe what an entry may be on a command line, other than its name."""
    if kind.kinds == (Fleet,):
        return ", a server or a device, or 64xDGX_H100@InfiniBand_NDR"
    if Calibration in kind.kinds:
        return ", or the YAML file of a calibration"
    if any(issubclass(TransformerModel, item) for item in kind.kinds):
        return ", or the path of a config.json, of its directory or of a .gguf file"
    if Node in kind.kinds:
        return ", the YAML file of one, or some devices of a server, as in L40S_Server:2"
    return ", the YAML file of one" if Accelerator in kind.kinds else ""


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


answer_fields = click.option(
    "--field", "fields", multiple=True, help="A column to show; may be repeated."
)
"""Adds the option `--field` to a command, to choose columns."""
