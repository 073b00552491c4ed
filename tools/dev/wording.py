"""Find wording that this project avoids, line by line.

    python -m tools.dev.wording [FILE ...]

Prints each hit with a suggestion, and exits with 1 if there is one. A list of words finds only the
simple cases; the others need an editor.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FOLDERS = ("course", "docs", "examples", "mlsysim", "research", "tools")
SUFFIXES = {".md", ".py", ".qmd"}
# Generated files, files by others, and the list itself.
SKIPPED = ("docs/api/", "docs/assets/", "docs/labs/runtime/", "tools/dev/wording.py")

_THINGS = "GPUs|ranks|chunks|stages|sequences|tokens|layers"
_PROGRAMS = "programs?|solvers?|models?|engines?|compilers?|simulators?|formulas?|frameworks?"
AVOIDED: dict[str, str] = {
    r"in the mean\b(?! of)": "on average",
    r"\bheld against\b|\bholds? [^.]{0,30} against\b": "compared with",
    r"\bstands? (?:on|for|beside|at|where|there|apart|alone)\b": "is on, is, next to, separate",
    r"\bbeside\b": "next to, compared with",
    r"\bin place of\b": "instead of",
    r"\bfitted on\b": "fitted to; held out",
    r"\bdeal(?:s|t|ing)? out\b": "distribute",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\banew\b": "again",
    r"\broads?\b": "a common mistake",
    r"\bas (?:they|it) stands?\b": "as written, unchanged",
    r"\btimes fewer\b": "1/N as many",
    r"\b(?:nobody|somebody|whoever|everybody|anybody)\b": "we, you, or the passive",
    rf"\b(?:{_THINGS}) to an? (?:layer|stage|GPU|sequence|rank|node)\b": "TP = 8, chunks per stage",
    rf"\b(?:{_PROGRAMS}) (?:knows?|wants?|forgives?)\b": "models, requires, accepts",
    r"\bof which only\b": "subject first",
    r"\bgo(?:es)? round\b": "travel around",
    r"\bput right\b": "corrected",
    r"\bshall\b": "will, must",
    r"\b(?:was|were) not seen\b": "held out",
    r"\bread (?:as quoted|as summarized|as reported|in transcriptions)\b": "quoted from",
    r"\bhave (?:not read|read no)\b|\bnot at hand\b": "not published; we assume",
    r'"""Tell (?:whether|which)\b': "Return whether",
    r"\b(?:course notes (?:say|list|warn)|often said|our first tutorial)\b": "the source",
}
_PATTERNS = {re.compile(words, re.IGNORECASE): better for words, better in AVOIDED.items()}


class Hit(NamedTuple):
    """A place with wording to avoid."""

    path: Path
    line: int
    words: str
    instead: str


def pages(root: Path = ROOT) -> Iterator[Path]:
    """Yield every file whose English is checked."""
    yield from sorted(path for path in root.iterdir() if path.suffix in SUFFIXES)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            inside = path.relative_to(root).as_posix()
            if path.suffix in SUFFIXES and not inside.startswith(SKIPPED):
                yield path


def hits(path: Path) -> Iterator[Hit]:
    """Yield each place in a file with wording to avoid."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = re.sub(r"\]\([^)]*\)|\{#[\w-]+\}|\{python\}[^`]*`", "", line)
        for pattern, better in _PATTERNS.items():
            for match in pattern.finditer(text):
                yield Hit(path, number, match[0], better)


def main(arguments: Iterable[str]) -> int:
    """Check the files that are named, or all."""
    found = [hit for path in map(Path, arguments) for hit in hits(path)]
    for hit in found:
        print(f"{hit.path}:{hit.line}: {hit.words!r}: write {hit.instead}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [str(path) for path in pages()]))
