"""Addresses that pages used to have: each leads to the page that has its contents now.

A page names them in its front matter, as Quarto does: ``aliases: [/docs/old.html]``. Quarto writes
such files itself. These replace them, since they also work without scripts, as in the preview.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from html import escape
from pathlib import Path

from tools.pages.links import html_path
from tools.pages.project import Project, title_of

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Moved: {title}</title>
<meta name="robots" content="noindex">
<meta http-equiv="refresh" content="1; url={address}">
<script>location.replace({script} + location.search + location.hash)</script>
</head>
<body><main><p>This page is now <a href="{address}">{title}</a>.</p></main></body>
</html>
"""


def moved(project: Project) -> Iterator[tuple[str, str, str]]:
    """Yield each old address with the new one and its title, both without a leading slash."""
    for href, page in project.pages.items():
        for old in page.meta.get("aliases", []):
            yield old.lstrip("/"), html_path(href), title_of(page)


def write(project: Project, folder: Path) -> None:
    """Write a page at each old address whose new page was rendered."""
    for old, new, title in moved(project):
        target = folder / old
        if not (folder / new).is_file():
            continue
        address = os.path.relpath(folder / new, target.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = PAGE.format(
            title=escape(title), address=escape(address, quote=True), script=json.dumps(address)
        )
        target.write_text(text, encoding="utf-8")
