"""Themes in a real browser: what the system says, what a page says instead, and what stands in an `<img>`."""

from __future__ import annotations

import io
from base64 import b64encode
from typing import Any

import pytest
from oracles import needs

import warpmma as wm
from warpmma.show import PALETTE
from warpmma.show.drawing.drawing import box, document

pytestmark = needs("browser")

PICTURE = document([box(0, 0, 40, 40, "free", stroke="none")], 40, 40, "a picture")
FILLS = {f"rgb({', '.join(str(int(form[i : i + 2], 16)) for i in (1, 3, 5))})": theme
         for theme, form in zip(("light", "dark"), PALETTE["free"], strict=False)}  # fmt: skip
ASKED = "[...document.querySelectorAll('svg rect')].map(x => getComputedStyle(x).fill)"

# What a page has around a picture, and the theme that this asks for; where it asks for none, the system's.
PAGES = {
    "<div>{}</div>": "", "<div class='warpmma-dark'>{}</div>": "dark", "<div class='warpmma-light'>{}</div>": "light",
    "<div data-jp-theme-light='false'>{}</div>": "dark", "<div data-jp-theme-light='true'>{}</div>": "light",
    "<div class='vscode-dark'>{}</div>": "dark", "<div class='vscode-light'>{}</div>": "light",
    "<div data-md-color-scheme='slate'>{}</div>": "dark", "<div data-theme='dark'>{}</div>": "dark",
    "<div theme='dark'>{}</div>": "dark", "<div class='warpmma'>{}</div>": "",
    "<div class='warpmma-dark'><div class='warpmma warpmma-card'>{}</div></div>": "dark",
}  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_a_page_says(browser: Any, scheme: str) -> None:
    page = browser.new_page(color_scheme=scheme)
    for around, theme in PAGES.items():
        page.set_content(around.format(PICTURE))
        assert FILLS[page.evaluate(ASKED)[1]] == (theme or scheme), around
        other = "light" if (theme or scheme) == "dark" else "dark"
        page.set_content(around.format(PICTURE.replace("class='warpmma'", f"class='warpmma warpmma-{other}'", 1)))
        assert FILLS[page.evaluate(ASKED)[1]] == other, around
    for fixed in ("light", "dark"):  # which another picture's style does not change
        page.set_content(PICTURE + document([box(0, 0, 9, 9, "free")], 9, 9, "another", theme=fixed))
        assert [FILLS[fill] for fill in page.evaluate(ASKED)[1::2]] == [scheme, fixed]
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_an_img(browser: Any, scheme: str) -> None:
    image = pytest.importorskip("PIL.Image")
    page = browser.new_page(color_scheme=scheme, viewport={"width": 60, "height": 60})
    page.set_content(f"<img src='data:image/svg+xml;base64,{b64encode(PICTURE.encode()).decode()}'>")
    page.wait_for_function("document.images[0].complete")
    pixels = image.open(io.BytesIO(page.screenshot())).convert("RGB")
    assert FILLS[f"rgb{pixels.getpixel((25, 25))}"] == scheme
    page.close()


def test_cards_do_not_touch_the_page(browser: Any) -> None:
    """In a dark notebook of a light system a card is dark, its pictures too; and the page's own text stays as it is."""
    page = browser.new_page(color_scheme="light")
    card = wm.parse("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")._repr_html_()
    page.set_content(f"<body data-jp-theme-light='false'><h4 id='own'>x</h4><table><tr><td>y</td></tr></table>{card}")
    colour = "getComputedStyle(document.querySelector('{}')).{}"
    own = page.evaluate(colour.format("#own", "color")), page.evaluate(colour.format("table td", "padding"))
    assert own == ("rgb(0, 0, 0)", "1px")
    assert page.evaluate(colour.format(".warpmma-card", "backgroundColor")) == "rgb(20, 24, 29)"
    assert page.evaluate(colour.format(".warpmma-card svg", "fill")) == "rgb(242, 244, 246)"
    page.close()
