"""Each page as Markdown, for people and programs that read text: `page.md` next to the page."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pypandoc

from tools.pages.cache import remember
from tools.pages.project import Project
from tools.site.built import body
from tools.site.entries import Entry

PANDOC = ["--from=html", "--to=gfm-raw_html", "--wrap=none"]
# A drawing within the page is replaced by its description.
DRAWING = re.compile(r'<svg\b[^>]*\saria-label="([^"]*)"[^>]*>.*?</svg>', re.DOTALL)
UNWANTED = re.compile(r"<(script|style|svg|button|noscript)\b.*?</\1>", re.DOTALL)
# Pandoc takes the first class for the language of a block, and a callout's title for its text.
CODE = re.compile(r'<pre class="sourceCode (\w+)[^"]*"')
TITLE = re.compile(r'(<div class="callout-title-container[^>]*>)(.*?)(</div>)', re.DOTALL)


def path(entry: Entry) -> str:
    """Return the path of the copy of a page."""
    return entry.path.removesuffix(".html") + ".md"


def write(entries: list[Entry], project: Project, folder: Path) -> None:
    """Write the copy of every page that was rendered."""
    built = [entry for entry in entries if (folder / entry.path).is_file()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        texts = pool.map(lambda entry: markdown(entry, project, folder), built)
    for entry, text in zip(built, texts, strict=True):
        (folder / path(entry)).write_text(text, encoding="utf-8")


def markdown(entry: Entry, project: Project, folder: Path) -> str:
    """Return a page as Markdown, including all output of its cells."""
    html = DRAWING.sub(r"<p><em>Drawing: \1</em></p>", body(folder / entry.path))
    html = UNWANTED.sub("", html)
    html = TITLE.sub(r"\1<strong>\2</strong>\3", CODE.sub(r'<pre class="\1"', html))
    command = [pypandoc.get_pandoc_path(), *PANDOC]

    def make() -> dict[str, str]:
        done = subprocess.run(
            command, input=html, capture_output=True, encoding="utf-8", check=True
        )
        return {"text": done.stdout}

    text = remember(project.root, ["copy", *PANDOC, html], make)["text"]
    version = project.variables["version"]
    head = f"# {entry.title}\n\n> {entry.description}\n\nComputed by mlsysim {version}."
    return f"{head}\n\n{text}"
