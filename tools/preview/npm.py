"""Fetches the few browser files from npm once, each package held to its version and hash."""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
import subprocess
import tarfile
import urllib.request
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from pathlib import Path

USUAL = "https://registry.npmjs.org/"
SECONDS = 30

# Name and version of a package; its hash, and which of its files are wanted.
Packages = Mapping[tuple[str, str], tuple[str, tuple[str, ...]]]

PACKAGES: Packages = {
    ("bootstrap", "5.3.8"): (
        "HP1SZDqaLDPwsNiqRqi5NcP0SSXciX2s9E+RyqJIIqGo+vJeN5AJVM98CXmW/Wux0nQ5L7jeWUdplCEf0Ee+tg==",
        ("dist/css/bootstrap.min.css", "dist/js/bootstrap.bundle.min.js"),
    ),
}


def files(cache: Path, packages: Packages = PACKAGES) -> Iterator[Path]:
    """Yield the browser files, downloading what ``cache`` does not hold yet."""
    for (name, version), (sha512, members) in packages.items():
        folder = cache / f"{name}-{version}"
        targets = {member: folder / Path(member).name for member in members}
        if not all(target.is_file() for target in targets.values()):
            data = _download(name, version)
            if base64.b64encode(hashlib.sha512(data).digest()).decode() != sha512:
                raise RuntimeError(f"{name} {version}: the download does not have the pinned hash")
            part = folder.with_name(f"{folder.name}.part")
            for unfinished in (part, folder):
                shutil.rmtree(unfinished, ignore_errors=True)
            part.mkdir(parents=True)
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                for member, target in targets.items():
                    content = archive.extractfile(f"package/{member}")
                    (part / target.name).write_bytes(content.read() if content else b"")
            # Renamed when it is whole: an interruption leaves no half of one behind.
            part.rename(folder)
        yield from targets.values()


def _download(name: str, version: str) -> bytes:
    """Ask the registry that npm is set to, if there is an npm.

    Raises
    ------
    OSError
        If it cannot be asked, or answers with something else; the message names npm.
    """
    registry, npm = USUAL, shutil.which("npm")
    if npm:
        done = subprocess.run([npm, "config", "get", "registry"], capture_output=True, check=False)
        registry = done.stdout.decode().strip() or registry
    scopeless = name.rpartition("/")[2]
    url = f"{registry.rstrip('/')}/{name}/-/{scopeless}-{version}.tgz"
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            return bytes(answer.read())
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        message = f"{name} {version} cannot be fetched from {registry} ({reason})"
        raise OSError(message if npm else f"{message}; no npm here names another one") from error
