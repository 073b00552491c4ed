"""``python -m tools.api`` writes docs/api."""

from __future__ import annotations

from pathlib import Path

from tools.api.build import build

if __name__ == "__main__":
    print(f"    {build(Path(__file__).resolve().parents[2])} files in docs/api")
