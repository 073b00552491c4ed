"""``python -m tools.site FOLDER``: finish a site that Quarto or the preview has built."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from tools.pages.faults import Fault
from tools.pages.project import load
from tools.pages.scan import requests
from tools.site import search


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.site", description=__doc__)
    parser.add_argument("folder", type=Path, help="the built site")
    parser.add_argument("--root", type=Path, default=Path(), help="the project (default: here)")
    options = parser.parse_args()
    faults: list[Fault] = []
    project = load(options.root.resolve(), faults)
    for page in sorted(options.folder.rglob("*.html")):
        faults += [Fault(page, 1, f"a request to another host: {url}") for url in requests(page)]
    search.write(project, options.folder)
    # A service worker controls only pages below its own address.
    shutil.copyfile(project.root / "docs/assets/offline.js", options.folder / "offline.js")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
