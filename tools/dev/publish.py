"""Build the site: generated pages, notebooks, the wheels, then Quarto or the preview."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.dev import quarto, versions
from tools.dev.cleaning import remove
from tools.dev.console import ROOT, DevError, must, run, say, step
from tools.dev.fingerprint import Stamp, changed_pages, digests, fingerprint
from tools.dev.lock import alone
from tools.dev.venv import COURSE, PYPROJECT, PYTHON
from tools.labs.runtime import CHARTS, PYODIDE
from tools.pages import EXERCISES, RESTS_ON
from tools.preview import npm

PACKAGE = ROOT / "mlsysim"
COURSE_NAME = "mlsysim_course"
DIST = ROOT / "dist"
API_PAGES = ROOT / "docs" / "api"
API_CONFIG = API_PAGES / "_quartodoc.yml"
TUTORIALS = ROOT / "docs" / "tutorials"
LAB_RUNTIME = ROOT / "docs" / "labs" / "runtime"
CARDS = ROOT / "docs" / "assets" / "cards"
VARIABLES = ROOT / "_variables.yml"
ADDRESS = ROOT / "_address.yml"
NEXT = ROOT / "build" / "next"
NPM = ROOT / "build" / "npm"
LOCK = ROOT / "build" / "site.lock"

PREVIEW_INSTEAD = f"""\
Quarto is not installed: building a preview of the site, which looks nearly the same, in _preview/.
To build the site as published, install Quarto ({quarto.WHERE}) and run this again."""

QUARTO_REQUIRED = f"""\
MLSYSIM_REQUIRE_QUARTO is set, but Quarto was not found in $QUARTO, the PATH or .venv.
Get it from {quarto.WHERE}, or try pip again: python3 dev.py site --retry-quarto"""


def site(*, retry_quarto: bool, force: bool, into: Path | None = None) -> int:
    """Build everything that changed and print the page to open first.

    With a folder, also put the site there, next to those of other versions.
    """
    path = ""
    if into:
        versions.check(into)
        path = versions.move_address(version())
    program = quarto.find(retry=retry_quarto)
    if program is None and quarto.required():
        raise DevError(QUARTO_REQUIRED)
    if program is None:
        say(PREVIEW_INSTEAD)
    folder = build(program, force=force)
    if into:
        place = versions.add(folder, into, version(), path)
        say(f"\nThe site of this version, and the list of all versions:\n  {place}")
        say(f"  {into / versions.NAME}")
    say(f"\nThe first page to open:\n  {folder / 'index.html'}")
    say("Or serve the site, then open the address it prints:\n  python3 dev.py serve")
    return 0


def build(program: Path | None, *, force: bool = False) -> Path:
    """Update ``_site/``, or ``_preview/`` without Quarto, and return the folder."""
    with alone(LOCK, "building the site"):
        return _build(program, force=force)


def _build(program: Path | None, *, force: bool) -> Path:
    missing = browser_files(program)
    generate()
    folder = ROOT / ("_site" if program else "_preview")
    made_of = digests(sources(), ROOT) | {
        "program": f"{program} of {program.resolve().stat().st_mtime_ns}" if program else "",
        "missing": ", ".join(missing),
    }
    stamp, current = Stamp(f"{folder.name}.json"), json.dumps(made_of, indent=0)
    before = stamp.read() if (folder / "index.html").is_file() and not force else ""
    if before == current:
        say(f"Nothing changed since {folder.name}/ was built.")
        return folder
    # What is there stays until the new one is whole, also when a page does not build.
    fresh = NEXT / folder.name
    remove(fresh)
    if program:
        pages = changed_pages(json.loads(before), made_of) if before else None
        if pages:
            shutil.copytree(folder, fresh)
        published(program, fresh, pages or ())
    else:
        preview(fresh)
    finish(fresh)
    replace(folder, fresh)
    stamp.write(current)
    return folder


def published(program: Path, folder: Path, pages: Sequence[str]) -> None:
    """Run the cells, then render with Quarto; if it fails, let the preview find page and line."""
    chosen = [word for page in pages for word in ("--page", page)]
    with step("running the cells of pages"):
        must(
            [PYTHON, "-m", "tools.preview", "--freeze", *chosen],
            "a page has a mistake; the words of the renderer are above",
        )
    try:
        quarto.render(program, folder, pages)
    except quarto.UnrenderedError as error:
        chosen = [word for page in error.pages for word in ("--page", page)]
        if chosen:
            say("\nThe strict renderer on the same pages:")
            run([PYTHON, "-m", "tools.preview", "--quiet", "--out", NEXT / "_faults", *chosen])
        raise


def replace(folder: Path, fresh: Path) -> None:
    """Replace an old folder with a new one."""
    old = NEXT / f"{folder.name}.old"
    remove(old)
    if folder.exists():
        folder.rename(old)
    fresh.rename(folder)
    remove(old)


def sources() -> list[Path]:
    """Return everything that determines the contents of the built site."""
    folders = [
        ROOT / name
        for name in ("mlsysim", "course", "docs", "research", "examples", "tools", "dist")
    ]
    return [*folders, *(path for path in ROOT.iterdir() if path.is_file())]


def browser_files(program: Path | None) -> list[str]:
    """Fetch the code that browsers run; without npm, print what is missing before rendering."""
    wanted: dict[str, npm.Packages] = {"lab pages will be text only": {**PYODIDE, **CHARTS}}
    if not program:
        wanted["the preview will look plain"] = npm.PACKAGES
    missing: dict[str, str] = {}
    for what, packages in wanted.items():
        try:
            list(npm.files(NPM, packages))
        except OSError as error:
            missing[what] = str(error)
        except RuntimeError as error:  # a file that is not the one that was pinned
            raise DevError(str(error)) from error
    if missing:
        reason = next(iter(missing.values()))
        say(f"npm is out of reach, so {' and '.join(missing)}: {reason}")
    return list(missing)


def generate() -> None:
    """Generate everything that both renderers read, what is independent at the same time."""
    build_wheels()
    with ThreadPoolExecutor() as pool:
        for chain in [pool.submit(one) for one in (reference, for_browsers)]:
            chain.result()


def reference() -> None:
    """Generate the reference, the notebooks of tutorials, which read its names, and the cards."""
    api()
    answers()
    notebooks()
    cards()


def for_browsers() -> None:
    """Generate what lab pages and blocks of code load."""
    lab_runtime()
    blocks()


def generated(
    title: str,
    module: str,
    *,
    inputs: Iterable[Path],
    outputs: Iterable[Path],
) -> None:
    """Run a module of the tools, unless its outputs exist and its inputs have not changed."""
    stamp, current = Stamp(module), fingerprint(inputs)
    if all(path.exists() for path in outputs) and stamp.read() == current:
        return
    stamp.forget()
    with step(title):
        must([PYTHON, "-m", module], f"{module} failed; see its output above")
    stamp.write(current)


def version() -> str:
    """Return the package's version, read without importing it."""
    text = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__(?:: \w+)? = "([^"]+)"', text, flags=re.MULTILINE)
    if not found:
        raise DevError("mlsysim/__init__.py does not set __version__")
    return found[1]


def write_variables() -> None:
    """Write the values that pages show with the ``var`` shortcode, and the site's address."""
    package, course = wheel_names()
    address = os.environ.get(versions.ADDRESS, "").rstrip("/")
    website = {"site-url": address} if address else {}
    for path, text in (
        (VARIABLES, f'version: "{version()}"\nwheel: "{package}"\ncourse: "{course}"\n'),
        (ADDRESS, f"website: {json.dumps(website)}\n"),
    ):
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def wheel_names() -> tuple[str, str]:
    """Return the two files that the site offers to pip: the package, and the course."""
    package, course = (f"{name}-{version()}-py3-none-any.whl" for name in ("mlsysim", COURSE_NAME))
    return package, course


def build_wheels() -> None:
    """Put the wheels of this project into dist/, unless they are there and nothing has changed."""
    readme = [ROOT / name for name in ("README.md", "LICENSE", "LICENSE-docs")]
    stamp, current = Stamp("wheel"), fingerprint([PACKAGE, COURSE, PYPROJECT, *readme])
    names = wheel_names()
    if all((DIST / name).is_file() for name in names) and stamp.read() == current:
        return
    stamp.forget()
    with step(f"building {' and '.join(names)}"), tempfile.TemporaryDirectory() as folder:
        options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index")
        # One date for all files in them: the same source gives the same bytes.
        must(
            [PYTHON, "-m", "pip", "wheel", *options, "--wheel-dir", folder, ROOT, COURSE],
            "the wheels could not be built; pip's words are above",
            env={"SOURCE_DATE_EPOCH": "1704067200"},
        )
        built = {path.name for path in Path(folder).glob("*.whl")}
        if built != set(names):
            raise DevError(f"expected {', '.join(names)}, got {', '.join(sorted(built))}")
        DIST.mkdir(exist_ok=True)
        for old in DIST.glob("*.whl"):
            old.unlink()
        for name in names:
            shutil.move(Path(folder) / name, DIST / name)
    stamp.write(current)


def lab_runtime() -> None:
    """Put the Python for lab pages in the browser next to them."""
    tools = [ROOT / "tools" / name for name in ("labs", "pages", "preview/npm.py")]
    generated(
        "bundling Python for the lab pages",
        "tools.labs",
        inputs=[DIST, PYPROJECT, *tools],
        # If npm was out of reach, the second is missing: it is asked again next time.
        outputs=[LAB_RUNTIME / "manifest.json", LAB_RUNTIME / "pyodide.mjs"],
    )


def blocks() -> None:
    """List the blocks of code that readers can run in the browser, next to its Python."""
    pages = [path for path in ROOT.glob("docs/**/*.qmd") if path.parent != API_PAGES]
    generated(
        "listing the code blocks that run in the browser",
        "tools.labs.blocks",
        inputs=[DIST, *(ROOT / "tools" / name for name in ("labs", "pages")),
                *(page for page in pages if EXERCISES in page.read_text(encoding="utf-8"))],
        outputs=[LAB_RUNTIME / "blocks.json"],
    )  # fmt: skip


def api() -> int:
    """Write docs/api, and the values that pages show."""
    write_variables()
    generated(
        "writing the API reference",
        "tools.api",
        inputs=[PACKAGE, COURSE, API_CONFIG, ROOT / "tools" / "api"],
        outputs=[API_PAGES / "_sidebar.yml"],
    )
    return 0


def answers() -> None:
    """Write the worked answers that pages include."""
    generated(
        "writing the worked answers",
        "tools.pages.answers",
        inputs=[COURSE, ROOT / "tools" / "pages" / "answers.py"],
        outputs=[ROOT / "build" / "answers"],
    )


def notebooks() -> None:
    """Write each tutorial as two notebooks next to its page, with the numbers in its sentences."""
    pages = [page for page in TUTORIALS.glob("*.qmd") if page.stem != "index"]
    others = [ROOT / name for name in (*RESTS_ON, "tools/pages", "_quarto.yml")]
    ends = (".ipynb", ".student.ipynb")
    generated(
        "writing the tutorials as notebooks",
        "tools.pages.notebooks",
        inputs=[*pages, *others, VARIABLES, ADDRESS],
        outputs=[page.with_suffix(end) for page in pages for end in ends],
    )


def cards() -> None:
    """Draw the pictures that messengers show with links to pages."""
    generated(
        "drawing page cards",
        "tools.site.cards",
        inputs=[PACKAGE, ROOT / "tools" / "site" / "cards.py"],
        outputs=[CARDS / "start.png"],
    )


def preview(folder: Path) -> None:
    """Render with our own small renderer."""
    with step("rendering the preview"):
        must(
            [PYTHON, "-m", "tools.preview", "--out", folder],
            "the preview renderer found a mistake; its words are above",
        )


def finish(folder: Path) -> None:
    """Check the built site, and make its search and its service worker."""
    with step("the search and requests to other hosts"):
        must([PYTHON, "-m", "tools.site", folder], "the site is not finished; see the output above")
