"""``python -m tools.slides PAGE.qmd``: a tutorial as a deck of slides, in one file."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.dev import publish, quarto
from tools.dev.console import ROOT, DevError
from tools.pages.faults import Fault
from tools.pages.project import load
from tools.slides.deck import Deck

STYLE = Path(__file__).with_name("slides.css")


def render(program: Path, names: list[str], out: Path) -> list[Path]:
    """Write a deck for each page into a folder.

    Parameters
    ----------
    program
        Quarto.
    names
        Pages, as paths from the project's folder.
    out
        The folder.

    Raises
    ------
    DevError
        If a page does not exist, or Quarto fails or warns.
    """
    project, made = load(ROOT, []), []
    for name in names:
        if name not in project.pages:
            raise DevError(
                f"{name} is not a page; give its path, such as {next(iter(project.pages))}"
            )
    out.mkdir(parents=True, exist_ok=True)
    # A folder outside the project: its settings are for the site.
    with tempfile.TemporaryDirectory() as place:
        shutil.copyfile(STYLE, Path(place) / STYLE.name)
        for name in names:
            page = project.pages[name]
            source = Deck(page, project).write(Path(place), page.path.stem)
            done = subprocess.run(
                [program, "render", source.name, "--to", "revealjs"],
                cwd=place, capture_output=True, encoding="utf-8", check=False,
            )  # fmt: skip
            lines = [line for line in done.stderr.split("\n") if quarto.is_trouble(line)]
            if done.returncode or lines:
                raise DevError(f"Quarto on the slides of {name}:\n{done.stderr.strip()}")
            made.append(out / f"{page.path.stem}.html")
            shutil.move(source.with_suffix(".html"), made[-1])
            print(made[-1], flush=True)
    return made


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.slides", description=__doc__)
    parser.add_argument("pages", nargs="+", metavar="PAGE", help="such as docs/tutorials/cost.qmd")
    parser.add_argument("--out", type=Path, default=Path("slides"), help="where (default: slides)")
    options = parser.parse_args()
    try:
        program = quarto.present()
        if program is None:
            raise DevError(f"slides need Quarto: get it from {quarto.WHERE}")
        publish.write_variables()
        render(program, options.pages, options.out)
    except (DevError, Fault) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
