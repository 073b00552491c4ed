"""Fetches the few browser files from npm once, each package held to its version and hash."""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
import subprocess
import tarfile
import urllib.request
from pathlib import Path

DEFAULT_REGISTRY = "https://registry.npmjs.org/"
PACKAGES = {
    ("bootstrap", "5.3.8"): (
        "HP1SZDqaLDPwsNiqRqi5NcP0SSXciX2s9E+RyqJIIqGo+vJeN5AJVM98CXmW/Wux0nQ5L7jeWUdplCEf0Ee+tg==",
        ("dist/css/bootstrap.min.css", "dist/js/bootstrap.bundle.min.js"),
    ),
    ("mermaid", "11.12.0"): (
        "ZudVx73BwrMJfCFmSSJT84y6u5brEoV8DOItdHomNLz32uBjNrelm7mg95X7g+C6UoQH/W6mBLGDEDv73JdxBg==",
        ("dist/mermaid.min.js",),
    ),
}


def files(cache: Path) -> list[Path]:
    """Return the browser files, downloading what ``cache`` does not hold yet."""
    found = []
    for (name, version), (sha512, members) in PACKAGES.items():
        folder = cache / f"{name}-{version}"
        targets = [folder / Path(member).name for member in members]
        if not all(target.is_file() for target in targets):
            data = _download(name, version)
            if base64.b64encode(hashlib.sha512(data).digest()).decode() != sha512:
                raise RuntimeError(f"{name} {version}: the download does not have the pinned hash")
            _extract(data, members, folder)
        found += targets
    return found


def _download(name: str, version: str) -> bytes:
    registry = DEFAULT_REGISTRY
    if npm := shutil.which("npm"):
        command = [npm, "config", "get", "registry"]
        asked = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        registry = asked if asked.startswith("http") else registry
    url = f"{registry.rstrip('/')}/{name}/-/{name}-{version}.tgz"
    with urllib.request.urlopen(url, timeout=120) as answer:
        data: bytes = answer.read()
    return data


def _extract(data: bytes, members: tuple[str, ...], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in members:
            content = archive.extractfile(f"package/{member}")
            assert content is not None, member
            text = content.read().decode("utf-8")
            # Source maps are not kept, so the line that names one would be a dead link.
            kept = (line for line in text.split("\n") if "sourceMappingURL=" not in line)
            (folder / Path(member).name).write_text("\n".join(kept), encoding="utf-8")
