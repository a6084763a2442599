"""Drawing: the few primitives of SVG, their theme, and the style sheet that pictures and pages share.

1. A primitive takes names of `PALETTE` and writes their light forms, so a picture is right, and light, for readers that
   know nothing of style sheets. It returns one line of SVG.
2. `document` adds what translates light forms to dark ones. `theme="auto"`: as the reader's system says
   (`prefers-color-scheme`), unless a page says otherwise: by the class `warpmma-dark` or `warpmma-light` on the picture
   or around it, or as JupyterLab, VS Code, MkDocs Material, Sphinx and Colab say it. "light" and "dark" are for
   readers without style sheets, and for print: only colours are written, and styles of other pictures have no effect.
3. Every colour is also a variable, `--warpmma-ink`, of each element of class `warpmma`: `style_sheet` gives them to
   HTML. The variables `--warpmma-light` and `--warpmma-dark` choose: one of them is empty, the other is not set, so
   that of `var(--warpmma-light, #fff) var(--warpmma-dark, #000)` one colour is left.
4. `data` of a primitive becomes attributes `data-...`, for readers that are programs.
5. All that is written is escaped, and attributes stand between single quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Literal, get_args

from ..._arguments import check_choice
from .palette import PALETTE

Theme = Literal["auto", "light", "dark"]
THEMES: tuple[Theme, ...] = get_args(Theme)
Data = Mapping[str, object]

FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
MONOSPACE = "DejaVu Sans Mono, Menlo, Consolas, Liberation Mono, monospace"

# Advance widths of DejaVu Sans, thousandths of an em, from the blank to the tilde; Verdana's are nearly the same.
_WIDTHS = (
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636, 636, 636,
    636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863,
    748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635,
    615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636,
    337, 636, 838,
)  # fmt: skip
_MONO = 602
_BOLD = 1.15  # of words; single wide letters are wider yet


def text_width(words: str, size: float = 13, *, bold: bool = False, mono: bool = False) -> float:
    """Return the width of a text in the units of the picture.

    Examples
    --------
    >>> text_width("T14", 10)
    18.83
    """
    widths = (_MONO if mono else _WIDTHS[ord(x) - 32] if 32 <= ord(x) < 127 else 1000 for x in words)
    return round(sum(widths) * size / 1000 * (_BOLD if bold and not mono else 1), 3)


def text(
    x: float,
    y: float,
    words: str,
    *,
    size: float = 13,
    weight: str = "normal",
    anchor: str = "start",
    fill: str = "ink",
    mono: bool = False,
    data: Data | None = None,
) -> str:
    """Write a line of text whose baseline is at y; `anchor` is "start", "middle" or "end"."""
    marks = f" text-anchor='{anchor}'" if anchor != "start" else ""
    marks += f" font-weight='{weight}'" if weight != "normal" else ""
    marks += f" font-family='{escape(MONOSPACE)}'" if mono else ""
    marks += f" fill='{PALETTE[fill].light}'" if fill != "ink" else ""  # the document's
    return f"<text x='{x:g}' y='{y:g}' font-size='{size:g}'{marks}{_attributes(data)}>{escape(words)}</text>"


def characters(
    xs: Iterable[float], y: float, words: str, *, size: float = 13, weight: str = "normal", fill: str = "ink"
) -> str:
    """Write characters with their middles at `xs`, one for each; empty for no characters."""
    if not words:
        return ""
    marks = f" font-weight='{weight}'" if weight != "normal" else ""
    marks += f" fill='{PALETTE[fill].light}'" if fill != "ink" else ""
    at = " ".join(f"{x:g}" for x in xs)
    return (
        f"<text x='{at}' y='{y:g}' font-size='{size:g}' text-anchor='middle' font-family='{escape(MONOSPACE)}'{marks}>"
        f"{escape(words)}</text>"
    )


def box(
    x: float,
    y: float,
    width: float,
    height: float,
    fill: str,
    *,
    stroke: str = "line",
    note: str = "",
    data: Data | None = None,
    weight: float = 1,
    dashed: bool = False,
) -> str:
    """Draw a rectangle, with a note that shows when it is pointed at; a `fill` or `stroke` of "none" draws none."""
    marks = _strokes(weight, "3 2" if dashed else "")
    place = f"x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}'"
    return _noted(
        f"<rect {place} fill='{_light(fill)}' stroke='{_light(stroke)}'{marks}{_attributes(data)}", note, "rect"
    )


def _strokes(weight: float, dashes: str) -> str:
    """Return the attributes of a stroke's width and dashes."""
    marks = f" stroke-width='{weight:g}'" if weight != 1 else ""
    return marks + (f" stroke-dasharray='{dashes}'" if dashes else "")


def line(
    x1: float, y1: float, x2: float, y2: float, stroke: str = "line", *, weight: float = 1, dashed: bool = False
) -> str:
    """Draw a straight line."""
    marks = _strokes(weight, "4 3" if dashed else "")
    return f"<line x1='{x1:g}' y1='{y1:g}' x2='{x2:g}' y2='{y2:g}' stroke='{_light(stroke)}'{marks}/>"


def path(
    d: str, stroke: str = "line", *, fill: str = "none", weight: float = 1, dashed: bool = False, note: str = ""
) -> str:
    """Draw a path, in SVG's own words: "M0 0L10 5"."""
    marks = _strokes(weight, "4 3" if dashed else "")
    return _noted(f"<path d='{escape(d)}' fill='{_light(fill)}' stroke='{_light(stroke)}'{marks}", note, "path")


def group(parts: Iterable[str], *, note: str = "", data: Data | None = None) -> str:
    """Put parts together, with one note and data of their own."""
    inside = f"<title>{escape(note)}</title>" if note else ""
    return f"<g{_attributes(data)}>{inside}{''.join(parts)}</g>"


def document(
    body: Iterable[str],
    width: float,
    height: float,
    title: str,
    *,
    theme: Theme = "auto",
    description: str = "",
    data: Data | None = None,
) -> str:
    """Write a whole picture of a size in pixels; it shrinks with the page that shows it.

    `title` is one line, and `description` more of it, for screen readers. Another theme is an `OperandError`.
    """
    check_choice("theme", theme, THEMES)
    width, height = round(width), round(height)
    parts = [f"<title>{escape(title)}</title>"]
    parts += [f"<desc>{escape(description)}</desc>"] if description else []
    drawn = "\n".join([*parts, f"<rect width='{width}' height='{height}' fill='{_light('paper')}'/>", *body])
    ink = _light("ink")
    if theme == "dark":
        drawn, ink = _PAINT.sub(lambda found: f"{found[1]}'{_DARK.get(found[2], found[2])}'", drawn), _DARK[ink]
    named, sheet = (" class='warpmma'", f"<style>{_sheet(drawn)}</style>\n") if theme == "auto" else ("", "")
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg'{named} width='{width}' height='{height}' "
        f"viewBox='0 0 {width} {height}' style='max-width:100%;height:auto' role='img' "
        f"font-family='{escape(FONT)}' font-size='13' fill='{ink}'{_attributes(data)}>\n{sheet}{drawn}\n</svg>\n"
    )


def style_sheet(names: Iterable[str] = tuple(PALETTE)) -> str:
    """Write CSS that gives elements of class `warpmma`, and pictures in them, these colours in both themes."""
    picked = list(names)
    colours = "".join(
        f"--warpmma-{name}:var(--warpmma-light,{PALETTE[name].light}) var(--warpmma-dark,{PALETTE[name].dark});"
        for name in picked
    )
    return f"{_SWITCH}.warpmma{{{colours}}}"


# Rule 2. Later rules win: the page's theme over the system's, and the picture's own class over the page's.
_LIGHT_ON, _DARK_ON = "{--warpmma-light:initial;--warpmma-dark: }", "{--warpmma-light: ;--warpmma-dark:initial}"
_LIGHT_PAGES = (
    ".warpmma-light,[data-jp-theme-light=true],.vscode-light,[data-md-color-scheme=default],[data-theme=light],"
    "[theme=light]"
)
_DARK_PAGES = (
    ".warpmma-dark,[data-jp-theme-light=false],.vscode-dark,[data-md-color-scheme=slate],[data-theme=dark],[theme=dark]"
)
_SWITCH = (
    f".warpmma{_LIGHT_ON}@media(prefers-color-scheme:dark){{.warpmma{_DARK_ON}}}"
    f":is({_LIGHT_PAGES}) .warpmma{_LIGHT_ON}:is({_DARK_PAGES}) .warpmma{_DARK_ON}"
    f".warpmma.warpmma-light.warpmma-light{_LIGHT_ON}.warpmma.warpmma-dark.warpmma-dark{_DARK_ON}"
)

_DARK = {colour.light: colour.dark for colour in PALETTE.values()}
_PAINT = re.compile(r"((?:fill|stroke)=)'(#[0-9a-f]{6})'")
_NAMES = {colour.light: name for name, colour in reversed(tuple(PALETTE.items()))}


def _sheet(drawn: str) -> str:
    """Write the style sheet of a picture: of the colours that it uses, and the ink."""
    ink = _light("ink")
    used = dict.fromkeys([("fill", ink), *sorted({(found[1][:-1], found[2]) for found in _PAINT.finditer(drawn)})])
    rules = "".join(
        f"svg.warpmma [{kind}='{light}']{{{kind}:var(--warpmma-{_NAMES[light]})}}"
        for kind, light in used
        if light in _NAMES
    )
    names = dict.fromkeys(_NAMES[light] for _, light in used if light in _NAMES)
    return f"{style_sheet(names)}svg.warpmma{{fill:var(--warpmma-ink)}}{rules}"


def _light(name: str) -> str:
    return "none" if name == "none" else PALETTE[name].light


def _noted(start: str, note: str, tag: str) -> str:
    return f"{start}><title>{escape(note)}</title></{tag}>" if note else f"{start}/>"


def _attributes(data: Data | None) -> str:
    return "".join(f" data-{name}='{escape(str(value))}'" for name, value in (data or {}).items())
