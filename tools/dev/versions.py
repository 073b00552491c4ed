"""A folder with the site of each version: `v0.1/`, `v0.2/`, and a list of them for their pages.

A page of a site that is in such a folder reads ``versions.json`` there, and offers itself in other
versions (``docs/assets/site.js``). When a version is added, old ones stay as they were built: only
the list changes, and the start page that leads to the newest.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

from tools.dev.cleaning import remove
from tools.dev.console import DevError

NAME = "versions.json"
ADDRESS = "MLSYSIM_SITE_URL"
TITLE = "mlsysim"
FOLDER = re.compile(r"v(\d+)\.(\d+)")
# Addresses of the page for missing pages: it is shown at any address, so they are full paths.
FULL = re.compile(r'\b((?:href|src|content)=")/(?!/)')
START = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={newest}/index.html">
<link rel="canonical" href="{newest}/index.html">
<title>{title}</title>
</head>
<body>
<p><a href="{newest}/index.html">{title} {newest}</a></p>
</body>
</html>
"""


def folder_of(version: str) -> str:
    """Return the folder of a version: the sites of 0.2.0 and 0.2.1 have the same address.

    Raises
    ------
    DevError
        If the version does not begin with two numbers.
    """
    found = re.match(r"\d+\.\d+(?!\d)", version)
    if not found:
        raise DevError(f"{version!r} does not begin with two numbers, such as 0.2")
    return f"v{found[0]}"


def move_address(version: str) -> str:
    """Set the site's address to that of its version, and return the path of all versions.

    Notebooks, page cards and lists of pages are then written for the address of this version.
    """
    given = os.environ.get(ADDRESS, "")
    if given:
        os.environ[ADDRESS] = f"{given.rstrip('/')}/{folder_of(version)}/"
    return urlsplit(given).path or "/"


def check(folder: Path) -> None:
    """Reject a folder with other contents, before anything is built or written.

    Raises
    ------
    DevError
        If it has a start page and no list of versions.
    """
    if (folder / "index.html").exists() and not (folder / NAME).is_file():
        raise DevError(f"{folder} has an index.html but no {NAME}: name another folder")


def add(site: Path, folder: Path, version: str, path: str = "/") -> Path:
    """Put a built site into the folder, and replace an earlier one of the same version.

    Parameters
    ----------
    site
        The built site.
    folder
        Where the versions are, or will be.
    version
        Version of the package that computed the site.
    path
        Path of the folder's address, for the page that is shown for missing pages.

    Returns
    -------
    Path
        The site in its new place.

    Raises
    ------
    DevError
        If the folder has a start page and no list of versions, so that it is something else.
    """
    name = folder_of(version)
    check(folder)
    place, part = folder / name, folder / f"{name}.part"
    remove(part)
    shutil.copytree(site, part)
    missing = part / "404.html"
    base = f"{path.rstrip('/')}/{name}/"
    if missing.is_file():
        text = missing.read_text(encoding="utf-8")
        missing.write_text(FULL.sub(lambda found: found[1] + base, text), encoding="utf-8")
    # Keep the old one until the new one is complete.
    remove(place)
    part.rename(place)
    _finish(folder)
    return place


def _finish(folder: Path) -> None:
    """Write the list of versions, newest first, the start page and the page for missing pages."""
    names = [path.name for path in folder.iterdir() if FOLDER.fullmatch(path.name)]
    names.sort(key=lambda name: [int(part) for part in name[1:].split(".")], reverse=True)
    pages = {
        name: sorted(
            path.relative_to(folder / name).as_posix()
            for path in (folder / name).rglob("*.html")
            if path.name != "404.html"
        )
        for name in names
    }
    (folder / NAME).write_text(json.dumps(pages, indent=0), encoding="utf-8")
    newest = folder / names[0]
    start = START.format(newest=names[0], title=TITLE)
    (folder / "index.html").write_text(start, encoding="utf-8")
    for name in ("404.html", "robots.txt"):
        if (newest / name).is_file():
            shutil.copyfile(newest / name, folder / name)
