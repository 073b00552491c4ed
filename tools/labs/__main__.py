"""``python -m tools.labs``: write docs/labs/runtime, or print why its Python is missing."""

from __future__ import annotations

from pathlib import Path

from tools.labs.forms import write_answers, write_forms
from tools.labs.runtime import build


def main() -> None:
    """Run the command line."""
    root = Path()
    wheels = sorted((root / "dist").glob("*.whl"))
    runtime = root / "docs/labs/runtime"
    manifest = build(runtime, wheels, root / "build/npm")
    write_forms(runtime)
    write_answers(runtime)
    if manifest["missing"]:
        print(f"    The lab pages will not run in this build: {manifest['missing']}")


if __name__ == "__main__":
    main()
