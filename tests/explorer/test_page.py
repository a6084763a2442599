"""The explorer's page: it asks for nothing, and does what its controls say."""

from __future__ import annotations

from typing import Any

import pytest
from explorer_page import SIZES, opened
from oracles import needs

from warpmma.show import explorer_page

pytestmark = needs("browser")


def test_the_page_is_small_and_names_no_address() -> None:
    page = explorer_page()
    assert len(page.encode()) < 600_000
    assert "http:" not in page and "https:" not in page and "url(" not in page and "@import" not in page
    assert page.count("default-src 'none'") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("view", ["registers", "sums"])
def test_nothing_overflows_or_complains(browser: Any, view: str, size: str, scheme: str) -> None:
    with opened(browser, f"view={view}", size=size, scheme=scheme) as page:
        page.wait_for_selector("h1")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_an_element_is_told_by_mouse_and_by_keys(browser: Any) -> None:
    with opened(browser) as page:
        sentence = page.locator("#sentence")
        assert sentence.inner_text() == "A[3, 5]: a1 of lane 14, register 0, bits 16 to 31"
        grid = page.get_by_role("grid", name="A by row and column")
        box = grid.bounding_box()
        page.mouse.move(box["x"] + 38 + 13, box["y"] + 22 + 17)
        assert sentence.inner_text() == "A[0, 0]: a0 of lane 0, register 0, bits 0 to 15"
        page.mouse.move(0, 0)
        assert sentence.inner_text().startswith("A[3, 5]")
        grid.get_by_role("gridcell").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        assert sentence.inner_text() == "A[4, 6]: a0 of lane 19, register 0, bits 0 to 15"
        assert page.locator("#live").inner_text() == sentence.inner_text()
        assert "row=4" in page.url and "col=6" in page.url


def test_presets_show_where_bits_went(browser: Any) -> None:
    with opened(browser, "view=sums") as page:
        page.get_by_role("button", name="1 and two half ulps").click()
        codes = [panel.get_attribute("data-code") for panel in page.locator(".panel").all()]
        assert codes == ["0x3f800000", "0x3f800001"]
        page.locator("#values-a").fill("1, 2^-2x")
        assert "no number" in page.get_by_role("alert").inner_text()
