"""Shared by all commands: exit codes, and errors as messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

import click

from mlsysim.core.errors import (
    ConfigError,
    InfeasibleError,
    MLSysError,
    UnknownEntryError,
    in_shell,
)

__all__ = ["BAD_INPUT", "BROKEN", "FAILED", "INTERRUPTED", "NOT_KNOWN", "Commands", "NotWritten"]

ENTRY_POINTS = "mlsysim.commands"
FAILED, BAD_INPUT, BROKEN, NOT_KNOWN, INTERRUPTED = 1, 2, 3, 4, 130


class _BadInput(click.ClickException):
    exit_code = BAD_INPUT


class _Broken(click.ClickException):
    exit_code = BROKEN


class NotWritten(click.ClickException):
    """An output file cannot be written."""

    exit_code = FAILED


class Commands(click.Group):
    """Converts the package's errors to messages and exit codes.

    `member` is the term for its commands in errors. `sections` are the titles under which the help
    lists them. `neighbors` are commands that other distributions offer as entry points, each with
    the name of its distribution; they are loaded when they are needed.
    """

    def __init__(
        self,
        *args: Any,
        member: str = "command",
        sections: Mapping[str, Sequence[str]] | None = None,
        neighbors: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.member = member
        self.sections = sections
        self.neighbors = neighbors or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, whether they are installed or not."""
        return sorted({*self.commands, *self.neighbors})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; one of a neighbor is loaded, or explains what to install."""
        if cmd_name in self.commands or cmd_name not in self.neighbors:
            return super().get_command(ctx, cmd_name)
        for point in entry_points(group=ENTRY_POINTS, name=cmd_name):
            command: click.Command = point.load()
            return command
        return _not_installed(cmd_name, self.neighbors[cmd_name])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first sentence of each command, section by section."""
        for title, names in (self.sections or {"Commands": self.list_commands(ctx)}).items():
            with formatter.section(title):
                commands = {name: self.get_command(ctx, name) for name in names}
                formatter.write_dl(
                    [
                        (name, command.get_short_help_str(limit=1000))
                        for name, command in commands.items()
                        if command is not None
                    ]
                )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except MLSysError as fault:
            kind = _Broken if isinstance(fault, InfeasibleError) else _BadInput
            raise kind(in_shell(fault.message)) from fault

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest the most similar one."""
        # During completion, words of the line may be unfinished.
        known = self.list_commands(ctx)
        unknown = args and args[0] not in known and not args[0].startswith("-")
        if unknown and not ctx.resilient_parsing:
            raise UnknownEntryError.build(args[0], self.member, known)
        return super().resolve_command(ctx, args)


def _not_installed(name: str, distribution: str) -> click.Command:
    """Return a command that takes any arguments and names the distribution to install."""

    def refuse(**_: Any) -> None:
        raise ConfigError(
            f"`mlsysim {name}` is part of {distribution}, which is not installed: install it from "
            'the wheel or the source of this release, as the page "Getting started" shows',
            argument=name,
        )

    return click.Command(
        name,
        callback=refuse,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        help=f"Needs {distribution}, which is not installed.",
        context_settings={"ignore_unknown_options": True},
    )
