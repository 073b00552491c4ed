"""The preview renderer: what it supports comes out right, what it does not is named by line."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pypandoc", reason="the docs extra is not installed")
pytest.importorskip("jinja2", reason="the docs extra is not installed")

from tests.conftest import ROOT
from tests.tools.test_dev_processes import runs, wait
from tools.pages.execute import execute
from tools.pages.faults import Fault
from tools.pages.frozen import FREEZER
from tools.pages.pages import Cell, Text, read_page
from tools.pages.project import load
from tools.preview.site import build, freeze

CONFIG = """\
project: {type: website, output-dir: _site, execute-dir: project, render: [index.qmd, "docs/*.qmd"]}
bibliography: references.bib
website:
  title: A site
  favicon: icon.svg
  navbar: {left: [{text: Docs, href: docs/one.qmd}]}
  sidebar:
    - id: docs
      contents:
        - docs/one.qmd
        - section: More
          contents: [docs/two.qmd]
  page-footer: {left: "Version {{< var version >}}"}
format: {html: {css: site.css}}
"""
BIBLIOGRAPHY = """\
@article{roof2009, title={Roofline}, author={Williams, Samuel}, journal={CACM}, year={2009}}
"""
EVERYTHING = """\
---
title: One
subtitle: Under it
description: What it says
---

## Words {#words}

A note[^n], a citation [@roof2009], version {{< var version >}}, and [two](two.qmd#there).
See @fig-line, @tbl-rows, @eq-roof and @fig-flow.

[^n]: The note.

$$
t = \\frac{F}{P}
$$ {#eq-roof}

```{python}
x = 41
print("printed", x)
```

It is `{python} x + 1`, as text `{python} "a*b"`.

```{python}
#| label: fig-line
#| fig-cap: A *line*.
#| fig-alt: A line that rises.
#| code-fold: true
#| code-summary: Unfold
import matplotlib.pyplot as plt
plt.plot([0, 1]);
```

| a | b |
|---|--:|
| 1 | 2 |

: Rows {#tbl-rows}

```{python}
#| label: tbl-cell
#| tbl-cap: A "cell".
from IPython.display import Markdown
Markdown("| c |\\n|---|\\n| 3 |")
```

```{python}
#| output: asis
#| echo: false
print("- a **list**")
```

```{python}
#| error: true
1 / 0
```

```{python}
#| warning: false
import sys
print("un" + "seen", file=sys.stderr)
```

```{python}
#| include: false
hidden = "not shown"
```

```{python}
#| eval: false
never_defined()
```

::: {.callout-tip collapse="true" title="An *answer*"}
It was `{python} x`.

```{python}
print("inside")
```
:::

::: {.callout-warning}
## Careful
Mind it.
:::

::: {.panel-tabset}
### First

1

### Second

2
:::

::: {#fig-flow}
```{=html}
<svg role="img" aria-label="A leads to B."><text>unfindable</text></svg>
```

A flow.
:::

```bash
pip install {{< var wheel >}}
```

<div class="raw">raw</div>
"""


def make_site(folder: Path) -> Path:
    """Make a site of three small pages."""
    (folder / "docs/assets").mkdir(parents=True)
    (folder / "mlsysim").mkdir()
    files = {
        "_quarto.yml": CONFIG,
        "_variables.yml": 'version: "1.2.3"\nwheel: a.whl\ncourse: b.whl\n',
        "references.bib": BIBLIOGRAPHY,
        "index.qmd": "---\ntitle: Start\n---\n\nGo to [two](docs/two.qmd).\n",
        "docs/one.qmd": "---\ntitle: One\n---\n\nWords.\n",
        "docs/two.qmd": "---\ntitle: Two\ndescription: Second\n---\n\n## There {#there}\n\nEnd.\n",
        "docs/assets/site.js": "",
        "mlsysim/__init__.py": "",
        "site.css": "",
        "icon.svg": "<svg/>",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module", autouse=True)
def no_npm() -> Iterator[None]:
    """The small sites do without the files from npm."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tools.preview.npm.files", lambda cache: [])
        yield


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site of its own for each test."""
    return make_site(tmp_path)


def render(root: Path) -> list[str]:
    faults: list[Fault] = []
    try:
        project = load(root, faults)
        faults += build(project, root / "out", [], quiet=True)
    except Fault as fault:
        faults.append(fault)
    return [str(fault) for fault in faults]


def test_everything_that_pages_use(site: Path) -> None:
    (site / "docs/one.qmd").write_text(EVERYTHING)
    assert render(site) == []
    html = (site / "out/docs/one.html").read_text()
    for expected in (
        "<title>One – A site</title>",
        '<meta name="generator" content="mlsysim preview renderer (not the published site)">',
        "printed 41",
        "It is 42, as text a*b.",
        "version 1.2.3, and",
        'href="two.html#there"',
        '<a href="#fig-line" class="quarto-xref">Figure\xa01</a>',
        '<a href="#tbl-rows" class="quarto-xref">Table\xa01</a>',
        '<a href="#eq-roof" class="quarto-xref">Equation\xa01</a>',
        '<a href="#fig-flow" class="quarto-xref">Figure\xa02</a>',
        "<figcaption>Figure\xa02: A flow.</figcaption>",
        "<figcaption>Table\xa02: A “cell”.</figcaption>",
        'alt="A line that rises."',
        "<summary>Unfold</summary>",
        "<figcaption>Figure\xa01: A <em>line</em>.</figcaption>",
        "<li>a <strong>list</strong></li>",
        "ZeroDivisionError: division by zero",
        "never_defined",
        'aria-expanded="false"',
        "An <em>answer</em>",
        "callout-warning",
        'role="tablist"',
        'aria-label="A leads to B."',
        "<mfrac><mi>F</mi><mi>P</mi></mfrac>",
        'role="doc-endnotes"',
        "Williams, Samuel. 2009.",
        '<div class="raw">',
        "Version 1.2.3",
        "pip</span> install a.whl",
        'rel="next"',
        'aria-current="page"',
        'href="../docs/one.qmd.txt"',
    ):
        assert expected in html, expected
    for unwanted in ("not shown", "unseen", "@fig-", "{python}", ":::", "{{"):
        assert unwanted not in html, unwanted
    assert (
        (site / "out/docs/one_files/figure-html/fig-line-1.svg")
        .read_text()
        .lstrip()
        .startswith("<?xml")
    )
    index = (site / "out/site_libs/search-index.js").read_text()
    entries = json.loads(index.removeprefix("window.searchIndex = ").rstrip(";\n"))
    assert ["docs/two.html", "Two", "there", "There", "End.", []] in entries
    assert "unfindable" not in index


def test_quarto_finds_the_results_of_cells_and_the_figures(site: Path) -> None:
    (site / "docs/one.qmd").write_text(EVERYTHING)
    stale = site / FREEZER / "docs/one/figure-html/gone.svg"
    stale.parent.mkdir(parents=True)
    stale.touch()
    faults: list[Fault] = []
    assert freeze(load(site, faults), [], quiet=True) == faults == []
    assert not stale.exists()
    assert [path.stem for path in (site / FREEZER / "docs").iterdir()] == ["one"]
    folder = site / FREEZER / "docs/one"
    frozen = json.loads((folder / "execute-results/html.json").read_text())
    # Quarto runs the cells of a page with another hash itself.
    page = (site / "docs/one.qmd").read_bytes()
    assert frozen["hash"] == hashlib.md5(page, usedforsecurity=False).hexdigest()
    result = frozen["result"]
    assert result["supporting"] == ["one_files"]
    assert result["markdown"].startswith("---\ntitle: One\n")
    [figure] = re.findall(r"\(one_files/(.*?)\)\{#fig-line ", result["markdown"])
    assert (folder / figure).read_text().lstrip().startswith("<?xml")
    for expected in (
        "```\nprinted 41\n```",
        "It is 42, as text a\\*b.",
        '::: {#tbl-cell .cell tbl-cap="A \\"cell\\"."}',
        '{.python .cell-code code-fold="true" code-summary="Unfold"}',
        "\n- a **list**\n",
        "ZeroDivisionError: division by zero",
    ):
        assert expected in result["markdown"], expected
    for unwanted in ("not shown", "unseen", "{python}"):
        assert unwanted not in result["markdown"], unwanted


def test_nothing_runs_again_until_something_changes(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site / "docs/one.qmd").write_text("---\ntitle: One\n---\n\n```{python}\nprint(6 * 7)\n```\n")
    assert render(site) == []

    def refuse(*_: Any) -> None:
        raise AssertionError("the cells run again")

    monkeypatch.setattr("tools.pages.cache.execute", refuse)
    assert render(site) == []
    assert "42" in (site / "out/docs/one.html").read_text()


OUTPUTS = """\
```{python}
class Shown:
    def _repr_html_(self): return "<b data-sort='1'>```</b>"
    def _repr_markdown_(self): return "**worse**"
Shown()
```

```{python}
display(Shown(), Shown())
```

```{python}
#| error: true
1 / 0
```

```{python}
import sys
for line in ("| a |", "|---|", "| 1 |"):
    print(line)
    sys.stdout.flush()
```

```{python}
print("before")
display(1)
print("after")
2;
```
"""


def test_kernels_send_what_both_renderers_can_show(tmp_path: Path) -> None:
    """No HTML, for which Quarto loads scripts; no paths of this machine; streams in one piece."""
    (tmp_path / "p.qmd").write_text(OUTPUTS)
    ran = execute(read_page(Path("p.qmd"), tmp_path), tmp_path)
    (last,), displayed, (error,), (printed,), mixed = (
        outputs for outputs in ran.values() if outputs
    )
    for output in (last, *displayed):
        assert "text/html" not in output["data"]
        assert output["data"]["text/markdown"] == "````{=html}\n<b data-sort='1'>```</b>\n````"
    assert (error["ename"], error["evalue"]) == ("ZeroDivisionError", "division by zero")
    assert printed["text"] == "| a |\n|---|\n| 1 |\n"
    shown = [output.get("text") or output["data"]["text/plain"] for output in mixed]
    assert shown == ["before\n", "1", "after\n"]


SLEEPS = """\
```{python}
import os, time
from pathlib import Path
Path("pid").write_text(f"{os.getpid()}.")
time.sleep(600)
```
"""
PROGRAM = """
import sys
from pathlib import Path
from tools.pages.execute import execute
from tools.pages.pages import read_page
root = Path(sys.argv[1])
execute(read_page(Path("p.qmd"), root), root)
"""


@pytest.mark.skipif(os.name == "nt", reason="the test looks up processes as Unix does")
def test_cells_end_with_the_program_that_runs_them(tmp_path: Path) -> None:
    (tmp_path / "p.qmd").write_text(SLEEPS)
    pid = tmp_path / "pid"
    with subprocess.Popen([sys.executable, "-c", PROGRAM, tmp_path], cwd=ROOT) as program:
        wait(lambda: pid.exists() and pid.read_text().endswith("."))
        program.kill()
    wait(lambda: not runs(int(pid.read_text().rstrip("."))))


@pytest.mark.parametrize("printed", ["", "print(color)"], ids=["same words", "other words"])
def test_a_change_in_the_package_runs_the_cells_again(site: Path, printed: str) -> None:
    from tools.pages import cache

    cell = "#| fig-alt: A line.\nimport matplotlib.pyplot as plt\n"
    cell += "from pathlib import Path\ncolor = Path('mlsysim/color').read_text()\n"
    cell += f"{printed}\nplt.plot([0, 1], color=color);"
    (site / "docs/one.qmd").write_text(f"---\ntitle: One\n---\n\n```{{python}}\n{cell}\n```\n")
    for color in ("#123456", "#654321"):
        (site / "mlsysim/color").write_text(color)
        cache._contents.cache_clear()
        assert render(site) == []
        assert color in (site / "out/docs/one_files/figure-html/figure-1.svg").read_text()
        assert (color in (site / "out/docs/one.html").read_text()) == bool(printed)


MISTAKES = {
    "unknown callout": ("::: {.callout-hint}\nx\n:::", 5, "unknown callout 'callout-hint'"),
    "unknown cell option": ("```{python}\n#| ecko: false\n```", 6, "unknown python key 'ecko'"),
    "bad value": ("```{python}\n#| echo: maybe\n```", 6, "'maybe' is not of type 'boolean'"),
    "broken link": ("x\n\n[there](nowhere.qmd)", 7, "broken link: nowhere.html"),
    "dead anchor": ("[there](two.qmd#nowhere)", 5, "dead anchor: two.html#nowhere"),
    "dead anchor here": ("[there](#nowhere)", 5, "dead anchor: #nowhere"),
    "dangling reference": ("x\nSee @fig-none.", 6, "dangling reference @fig-none"),
    "numbered section": ("See @sec-one.", 5, "headings have no numbers"),
    "unresolved citation": ("x\n\nSee [@nobody2020].", 7, "unresolved citation @nobody2020"),
    "stray fence": ("Words.\n\n:::\n", 7, "stray `:::`"),
    "open div": ("x\n\n::: {.note}\nWords.\n", 7, "never closed"),
    "div without a gap": ("x\n::: {.note}\nWords.\n:::", 6, "needs an empty line"),
    "unknown column": ("::: {.column-margin}\nx\n:::", 5, "unknown class 'column-margin'"),
    "unknown attribute": ("::: {layout-ncol=2}\nx\n:::", 5, "unknown attribute 'layout-ncol'"),
    "unknown shortcode": ("x\n\n{{< video a.mp4 >}}", 7, "unknown shortcode 'video a.mp4'"),
    "image without alt text": ("x\n\n![](../icon.png)", 7, "image without alt text"),
    "figure without alt text": (
        "```{python}\nimport matplotlib.pyplot as plt\nplt.plot([1]);\n```",
        5,
        "a figure without alt text",
    ),
    "label without caption": ("```{python}\n#| label: fig-a\n1\n```", 5, "needs fig-cap"),
    "shown Python": ("x\n\n```python\nx = 1\n```", 7, "Python that is only shown"),
    "unknown language": ("```fortran\nx\n```", 5, "unknown language 'fortran'"),
    "unknown kernel": ("```{julia}\n1\n```", 5, "no kernel for a {julia} cell"),
    "indented cell": ("- a\n\n  ```{python}\n  1\n  ```", 7, "has to start in the first column"),
    "hidden name": (
        "```{python}\n#| include: false\nx = 1\n```\n\n```{python}\nprint(x)\n```",
        10,
        "'x' is defined in a cell that readers do not see",
    ),
    "open code": ("x\n\n```{python}\n1", 7, "is never closed"),
    "exception": (
        "```{python}\n#| echo: false\nx = 1\n\nx / 0\n```",
        9,
        "ZeroDivisionError: division by zero in `x / 0`",
    ),
    "no exception": (
        "```{python}\n#| error: true\n1\n```",
        5,
        "says `error: true` and does not raise",
    ),
    "hidden warning": (
        "```{python}\nimport warnings\nwarnings.warn('old', PendingDeprecationWarning)\n```",
        5,
        "PendingDeprecationWarning",
    ),
    "hidden warning of the package": (
        "```{python}\nfrom warnings import warn_explicit\n"
        "warn_explicit('old', DeprecationWarning, 'old.py', 1, module='mlsysim.old')\n```",
        5,
        "DeprecationWarning: old",
    ),
    "syntax": ("```{python}\nx = 1\nx = = 2\n```", 7, "SyntaxError"),
    "ended process": ("```{python}\nimport os\nos._exit(3)\n```", 1, "has ended"),
    "inline exception": ("x\ny `{python} 1 / 0`", 6, "ZeroDivisionError"),
    "stderr": (
        "```{python}\nimport sys\nprint('!', file=sys.stderr)\n```",
        5,
        "writes to stderr: !",
    ),
    "memory address": ("```{python}\nobject()\n```", 5, "says only <object at 0x"),
    "TeX": (r"x $\frac{1$ y", 5, "Could not convert TeX math"),
    "label twice": ("::: {#fig-a}\nx\n\nA\n:::\n\n::: {#fig-a}\nx\n\nA\n:::", 5, "used twice"),
    "another host": ("![alt](https://example.org/a.png)", 5, "a request to another host"),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The faults of one site that has a page for each mistake."""
    folder = make_site(tmp_path_factory.mktemp("mistakes"))
    for i, (text, _, _) in enumerate(MISTAKES.values()):
        (folder / f"docs/m{i}.qmd").write_text(f"---\ntitle: One\n---\n\n{text}\n")
    return render(folder)


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_named_with_its_line(found: list[str], name: str) -> None:
    _, line, message = MISTAKES[name]
    place = f"docs/m{list(MISTAKES).index(name)}.qmd"
    wanted = re.compile(rf"{place}:{line}: .*{re.escape(message)}")
    faults = [fault for fault in found if fault.startswith(f"{place}:")]
    assert any(wanted.match(fault) for fault in faults), faults


def test_pages_without_a_mistake_are_not_named(found: list[str]) -> None:
    assert not [fault for fault in found if fault.startswith(("index", "docs/one", "docs/two"))]


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        (
            "docs/one.qmd",
            "title: One",
            "title: One\ntitel: Two",
            "docs/one.qmd:3: unknown page key 'titel'",
        ),
        (
            "_quarto.yml",
            "docs/two.qmd]",
            "docs/three.qmd]",
            "_quarto.yml:12: the navigation lists docs/three.qmd, which is no page",
        ),
        (
            "_quarto.yml",
            "{css: site.css}",
            "{css: site.css, code-coppy: true}",
            "_quarto.yml:14: unknown project key 'code-coppy'",
        ),
        (
            "_quarto.yml",
            "  favicon: icon.svg",
            "  favicon: icon.svg\n  navbarr: {}",
            "_quarto.yml:6: unknown project key 'navbarr'",
        ),
        (
            "_quarto.yml",
            "[index.qmd, ",
            "[index.qmd, gone.qmd, ",
            "_quarto.yml:1: there is no gone.qmd",
        ),
        (
            "_quarto.yml",
            "bibliography: references.bib",
            "bibliography: works.bib",
            "_quarto.yml:2: there is no works.bib",
        ),
        ("_variables.yml", "wheel: a.whl\n", "", "_variables.yml:1: 'wheel' is a required"),
    ],
)
def test_a_mistake_in_a_configuration(
    site: Path, name: str, old: str, new: str, expected: str
) -> None:
    text = (site / name).read_text()
    assert old in text
    (site / name).write_text(text.replace(old, new))
    assert any(fault.startswith(expected) for fault in render(site)), render(site)


def test_resources_that_are_built_later_may_be_linked(site: Path) -> None:
    config = CONFIG.replace(
        "execute-dir: project", 'execute-dir: project, resources: ["/dist/*.whl"]'
    )
    (site / "_quarto.yml").write_text(config)
    (site / "docs/one.qmd").write_text("---\ntitle: One\n---\n\n[Wheel](/dist/a.whl).\n")
    assert render(site) == []
    (site / "dist").mkdir()
    (site / "dist/b.whl").write_text("")
    assert render(site) == ["docs/one.qmd:5: broken link: ../dist/a.whl"]


def test_a_page_that_nothing_leads_to(site: Path) -> None:
    (site / "docs/three.qmd").write_text("---\ntitle: Three\n---\n\nAlone.\n")
    assert render(site) == ["docs/three.qmd:1: no navigation and no link leads to this page"]


def test_a_page_is_split_into_words_and_cells(tmp_path: Path) -> None:
    text = "---\ntitle: T\n---\n\nA\n\n````text\n```{python}\n```\n````\n\n"
    (tmp_path / "p.qmd").write_text(text + "```{python}\n#| echo: false\n\nx = 1\n```\nB")
    page = read_page(Path("p.qmd"), tmp_path)
    before, cell, after = page.parts
    assert page.meta == {"title": "T"}
    assert isinstance(before, Text)
    assert "```{python}" in before.text
    assert "```{python}" not in before.prose
    assert isinstance(cell, Cell)
    assert (cell.language, cell.line, cell.code_line) == ("python", 12, 14)
    assert (cell.options, cell.code) == ({"echo": False}, "\nx = 1")
    assert isinstance(after, Text)
    assert (after.text, after.line) == ("B", 17)
