"""Lists of the site's pages: for search engines, and for language models."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

from tools.pages.project import Project
from tools.site.copies import path
from tools.site.entries import REFERENCE, Entry
from tools.site.head import address_of

NOTE = """\
Python package with a site whose every number was computed when it was built. Another package is
published under this name on the public index: install the wheel that the page "Getting started"
offers. These links lead to Markdown; each page is also there as .html, each tutorial as .ipynb."""


def write(entries: list[Entry], project: Project, folder: Path, base: str) -> None:
    """Write the three files into the root of the site."""
    files = {
        "sitemap.xml": sitemap(entries, base),
        "robots.txt": robots(base),
        "llms.txt": llms(entries, project, base),
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def sitemap(entries: list[Entry], base: str) -> str:
    """Return the sitemap. The protocol requires full addresses; without them, it lists paths."""
    rows = (f"<url><loc>{escape(address_of(entry, base or '/'))}</loc></url>" for entry in entries)
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return "\n".join([head, f'<urlset xmlns="{space}">', *rows, "</urlset>", ""])


def robots(base: str) -> str:
    """Allow all crawlers, and name the sitemap if its address is known."""
    return "User-agent: *\nAllow: /\n" + (f"Sitemap: {base}sitemap.xml\n" if base else "")


def llms(entries: list[Entry], project: Project, base: str) -> str:
    """Return the list for language models, in the format of https://llmstxt.org."""
    lines = [f"# {project.website['title']}", "", f"> {project.website['description']}", "", NOTE]
    sections = dict.fromkeys(entry.section for entry in entries)
    for section in sections:
        # What may be left out stands last, under a name that the proposal reserves for it.
        lines += ["", f"## {'Optional' if section == REFERENCE else section}", ""]
        lines += [
            f"- [{entry.title}]({base}{path(entry)}): {entry.description}"
            for entry in entries
            if entry.section == section
        ]
    return "\n".join([*lines, ""])
