"""The look of the site: both themes carry the tokens of the style sheet, and the fonts are ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TOKENS = {
    "body-bg": "bg",
    "body-color": "text",
    "primary": "accent",
    "secondary": "muted",
    "light": "raised",
    "border-color": "line",
    "callout-color-note": "note",
    "callout-color-tip": "tip",
    "callout-color-important": "important",
    "callout-color-warning": "warning",
    "callout-color-caution": "caution",
}
NORMAL_TEXT = 4.5


def properties(css: str, selector: str) -> dict[str, str]:
    """The custom properties of the rule that begins with a selector."""
    body = re.search(rf"^{re.escape(selector)} {{(.*?)^}}", css, re.DOTALL | re.MULTILINE)
    assert body, selector
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", body[1]))


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest, root: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The variables that Quarto compiles and the properties of the style sheet."""
    assets = root / "docs" / "assets"
    scss = (assets / "theme" / f"{request.param}.scss").read_text(encoding="utf-8")
    css = (assets / "site.css").read_text(encoding="utf-8")
    own = properties(css, "body" if request.param == "light" else "body.quarto-dark")
    return dict(re.findall(r"^\$([\w-]+): (#[0-9a-f]{6});", scss, re.MULTILINE)), own


def luminance(color: str) -> float:
    parts = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_quarto_compiles_the_tokens_of_the_style_sheet(
    theme: tuple[dict[str, str], dict[str, str]],
) -> None:
    scss, css = theme
    assert {name: scss[name] for name in TOKENS} == {
        name: css[token] for name, token in TOKENS.items()
    }


def test_words_and_controls_stand_out(theme: tuple[dict[str, str], dict[str, str]]) -> None:
    scss, css = theme
    words = {name: value for name, value in css.items() if name.startswith("code-")}
    words |= {name: css[name] for name in ("text", "muted", "accent", "note", "tip", "important")}
    words |= {name: scss[name] for name in ("navbar-fg",)}
    faint = {
        (name, ground)
        for name, value in words.items()
        for ground in ("bg", "raised")
        if contrast(value, css[ground]) < NORMAL_TEXT
    }
    assert not faint


def test_every_font_is_shipped_with_its_license(root: Path) -> None:
    css = (root / "docs/assets/site.css").read_text(encoding="utf-8")
    fonts = root / "docs" / "assets" / "fonts"
    used = set(re.findall(r'url\("fonts/([^"]+)"\)', css))
    assert used == {path.name for path in fonts.glob("*.woff2")}
    terms = (fonts / "LICENSE.txt").read_text(encoding="utf-8")
    families = set(re.findall(r'font-family: "?([^";]+?)"?; src', css))
    assert all(family in terms for family in families)
    assert sum(path.stat().st_size for path in fonts.glob("*.woff2")) < 250_000
