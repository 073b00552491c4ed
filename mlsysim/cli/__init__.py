"""The command line: `mlsysim`, or `python -m mlsysim`."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        # Here, so that Ctrl-C while the commands are imported ends in the same way as later.
        from mlsysim.cli.app import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()
