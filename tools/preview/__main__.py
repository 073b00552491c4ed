"""``python -m tools.preview``: build the preview, and print mistakes."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tools.pages.faults import Fault
from tools.pages.frozen import FREEZER
from tools.pages.project import load
from tools.preview.site import build, freeze


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.preview", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the project (default: here)")
    parser.add_argument("--out", type=Path, default=Path("_preview"), help="where to write")
    parser.add_argument("--page", action="append", default=[], help="only this page; repeatable")
    parser.add_argument("--freeze", action="store_true", help="only run the cells, for Quarto")
    parser.add_argument("--quiet", action="store_true", help="print faults only")
    options = parser.parse_args()
    start, faults = time.perf_counter(), list[Fault]()
    try:
        project = load(options.root.resolve(), faults)
        if options.freeze:
            faults += freeze(project, options.page, quiet=options.quiet)
        else:
            faults += build(project, options.root / options.out, options.page, quiet=options.quiet)
    except Fault as fault:
        faults.append(fault)
    for mistake in sorted(faults, key=lambda one: (str(one.path), one.line)):
        print(mistake, file=sys.stderr)
    summary = (
        f"{len(faults)} fault{'s' * (len(faults) > 1)}"
        if faults
        else f"Wrote {FREEZER if options.freeze else options.out / 'index.html'}"
    )
    if faults or not options.quiet:
        print(f"{summary} in {time.perf_counter() - start:.1f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
