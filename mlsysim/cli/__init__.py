"""The command line: `mlsysim`, or `python -m mlsysim`."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        # Imported here, so that Ctrl-C during the import of commands is handled as it is later.
        from mlsysim.cli.app import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()
