#!/usr/bin/env python3
"""One command for the project: build the site and run the tests. You need only Python.

    python3 dev.py site     build the site and run every tutorial again
    python3 dev.py test     run all checks, then all tests

The first command creates ``.venv`` and installs the requirements there; later ones need no network.
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):
    sys.exit(f"mlsysim needs Python 3.11 or newer; {sys.executable} is {sys.version.split()[0]}.")

import argparse
import errno
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.dev import checks, cleaning, publish, serving, venv
from tools.dev.console import ROOT, DevError, Stopped, complain, stop_on_signals


def site(options: argparse.Namespace) -> int:
    """Build the site with Quarto if it is installed, or else a preview of it."""
    venv.ensure()
    return publish.site(
        retry_quarto=options.retry_quarto, force=options.force, into=options.versions
    )


def serve(options: argparse.Namespace) -> int:
    """Serve the built site on this machine, at a loopback address."""
    return serving.serve(options.port)


def test(options: argparse.Namespace) -> int:
    """Run every check and then pytest; arguments after -- are passed to pytest."""
    venv.ensure()
    return checks.test(options.rest)


def check(_: argparse.Namespace) -> int:
    """Run the import contracts, ruff, types, spelling and wording, but no tests."""
    venv.ensure()
    return checks.check()


def bench(options: argparse.Namespace) -> int:
    """Measure the speed of the package's hot paths on this machine."""
    venv.ensure()
    return checks.bench(options.rest)


def api(_: argparse.Namespace) -> int:
    """Write the API reference and what else a page needs to be rendered by itself."""
    venv.ensure()
    return publish.api()


def clean(options: argparse.Namespace) -> int:
    """Remove all build outputs; with --all, also remove .venv and caches."""
    return cleaning.clean(everything=options.all)


COMMANDS: tuple[Callable[[argparse.Namespace], int], ...] = (
    site, serve, test, check, bench, api, clean,
)  # fmt: skip


def port(text: str) -> int:
    """Read the number of a port; 0 means any free port."""
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 2**16):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a port: give 0 to 65535")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The command line: one subcommand per function above, its docstring as help."""
    top = argparse.ArgumentParser(
        prog="dev.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    sub = {}
    for command in COMMANDS:
        name, text = command.__name__, command.__doc__ or ""
        sub[name] = commands.add_parser(name, help=text, description=text)
        sub[name].set_defaults(command=command)
    sub["site"].add_argument("--force", action="store_true", help="build even if nothing changed")
    sub["site"].add_argument(
        "--retry-quarto", action="store_true", help="try again to install Quarto from PyPI"
    )
    sub["site"].add_argument(
        "--versions", type=Path, metavar="FOLDER",
        help="also put the site into FOLDER/vX.Y, next to those of other versions",
    )  # fmt: skip
    sub["serve"].add_argument("--port", type=port, default=4200, help="default: %(default)s")
    for name in ("test", "bench"):
        sub[name].add_argument("rest", nargs="*", metavar="-- ARGS", help="arguments passed on")
    sub["clean"].add_argument("--all", action="store_true", help="remove .venv and caches as well")
    return top


def command(words: Sequence[str] | None = None) -> int:
    """Read the command line, run its command, and return the exit status."""
    top = parser()
    options = top.parse_args(words)
    if not hasattr(options, "command"):
        top.print_help()
        return 0
    status: int = options.command(options)
    return status


def main() -> int:
    """Run the command line; errors are reported in a line or two."""
    stop_on_signals()
    try:
        try:
            return command()
        finally:
            sys.stdout.flush()  # a full disk shows here
    except DevError as error:
        return complain(str(error))
    except Stopped as signal:
        return complain("stopped", status=signal.status)
    except OSError as error:
        sys.stdout = None
        # The reader of a pipe may leave when it has seen enough.
        if isinstance(error, BrokenPipeError):
            return 1
        advice = f"\ndev.py writes to {ROOT}: use a copy of the project that you may write to"
        refused = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
        return complain(f"{error}{advice if refused else ''}")


if __name__ == "__main__":
    sys.exit(main())
