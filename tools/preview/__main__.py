"""``python -m tools.preview``: build the preview, say what is wrong."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tools.preview.faults import Fault
from tools.preview.project import load
from tools.preview.site import build


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.preview", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the project (default: here)")
    parser.add_argument("--out", type=Path, default=Path("_preview"), help="where to write")
    parser.add_argument("--page", action="append", default=[], help="only this page; repeatable")
    parser.add_argument("--quiet", action="store_true", help="print faults only")
    options = parser.parse_args()
    start, faults = time.perf_counter(), list[Fault]()
    say = (lambda _: None) if options.quiet else (lambda text: print(text, flush=True))
    try:
        project = load(options.root.resolve(), faults)
        faults += build(project, options.root / options.out, options.page, say)
    except Fault as fault:
        faults.append(fault)
    for fault in faults:
        print(fault, file=sys.stderr)
    pages = f"{options.out}/index.html in {time.perf_counter() - start:.1f} s"
    say(f"{len(faults)} faults" if faults else f"Wrote {pages}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
