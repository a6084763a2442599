"""The page is for everybody: names, contrast and keys, in both themes; a link leads back to what was seen."""

from __future__ import annotations

from typing import Any

import pytest
from explorer_page import opened, turned
from oracles import needs

pytestmark = needs("browser")

SCALED = "i=mxf4nvf4%204x&op=scale_a"
SHARED = "view=shared&i=wgmma m64n32k16.f32.f16.f16&op=B"
SPARSE = "i=mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32&op=metadata"
STATES = {
    "registers": "",
    "lanes": "by=lane",
    "sums": "view=sums",
    "shared": SHARED,
    "metadata": SPARSE,
    "scales": SCALED,
}

# Controls without a name, headings out of order, regions and ids that stand twice, references that lead nowhere.
UNNAMED = """() => {
  const CONTROLS = "button, input, select, a, summary, [role=grid], [role=listbox], [tabindex]";
  const wrong = [];
  for (const element of document.querySelectorAll(CONTROLS)) {
    const label = element.labels?.length ? element.labels[0].textContent : "";
    const name = element.getAttribute("aria-label") || label || element.textContent;
    if (!name.trim() && element.id !== "main") wrong.push(element.outerHTML.slice(0, 120));
  }
  const headings = [...document.querySelectorAll("h1, h2, h3, h4")].map((each) => Number(each.tagName[1]));
  wrong.push(...headings.filter((level, i) => level > (headings[i - 1] ?? 0) + 1).map((level) => `h${level}`));
  const regions = [...document.querySelectorAll("[role=region], [role=grid]")].map((each) => each.ariaLabel);
  wrong.push(...regions.filter((name, i) => regions.indexOf(name) !== i));
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  wrong.push(...ids.filter((id, i) => ids.indexOf(id) !== i));
  for (const element of document.querySelectorAll("[aria-activedescendant]")) {
    if (!document.getElementById(element.getAttribute("aria-activedescendant"))) wrong.push("aria-activedescendant");
  }
  return wrong;
}"""

# Texts that are in sight, with less contrast to what is behind them than WCAG 2.2 asks for (1.4.3: 4.5).
PALE = """() => {
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const channels = (colour) => known.get(colour) ?? known.set(colour, painted(colour)).get(colour);
  const painted = (colour) => {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const linear = (x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = channels(getComputedStyle(each).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  // Options that were not drawn yet would be styled one by one, each for the question whether it is in sight.
  for (const option of document.querySelectorAll("[role=option]")) option.style.contentVisibility = "visible";
  const wrong = new Map();
  let seen = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!/[\\p{L}\\p{N}]/u.test(text) || !element.checkVisibility()) continue;
    if (element.closest("script, style, .offscreen")) continue;
    seen += 1;
    const colours = [channels(getComputedStyle(element).color), behind(element)];
    const [high, low] = colours.map(luminance).sort((x, y) => y - x);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < 4.5) wrong.set(`${element.tagName} ${element.className}`, [text.slice(0, 40), contrast.toFixed(2)]);
  }
  return [seen, [...wrong]];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_has_a_name_and_can_be_read(browser: Any, scheme: str) -> None:
    with opened(browser, scheme=scheme) as page:
        for state in STATES.values():
            turned(page, state)
            assert page.evaluate(UNNAMED) == []
            seen, wrong = page.evaluate(PALE)
            assert seen > 100 and wrong == [], state


def test_the_checks_can_fail(browser: Any) -> None:
    with opened(browser) as page:
        page.evaluate(
            """() => {
              document.body.insertAdjacentHTML("beforeend", "<button id=main></button><p class=pale>pale</p>");
              document.querySelector("p.pale").style.color = "#b0b0b0";
            }"""
        )
        assert len(page.evaluate(UNNAMED)) == 1
        assert [name for name, _ in page.evaluate(PALE)[1]] == ["P pale"]


def focused(page: Any) -> str:
    text: str = page.evaluate(
        """() => {
          const element = document.activeElement;
          const label = element.labels?.[0]?.firstChild.textContent;
          return element.getAttribute("aria-label") || label || element.textContent;
        }"""
    )
    return text


def test_the_page_is_walked_by_keys_alone(browser: Any) -> None:
    with opened(browser) as page:
        page.keyboard.press("Tab")
        assert focused(page) == "Skip to the instruction"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        walked = []
        for _ in range(9):
            page.keyboard.press("Tab")
            walked.append(focused(page))
        assert walked[:5] == [
            "Matrices",
            "Lanes",
            "Smaller A",
            "Larger A",
            "A[3, 5]: a1 of lane 14, register 0, bits 16 to 31",
        ]
        page.locator("#cell-A").focus()
        for key in ("Home", "PageDown", "ArrowRight", "End", "Control+Home"):
            page.keyboard.press(key)
        assert focused(page) == "A[0, 0]: a0 of lane 0, register 0, bits 0 to 15"
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"


COVERED = """() => {
  const [bar, focused] = [document.querySelector(".bar"), document.activeElement].map((x) => x.getBoundingClientRect());
  return focused.height < 200 && focused.bottom > bar.top && focused.top < bar.bottom;
}"""


def test_what_has_the_focus_is_not_behind_the_bar(browser: Any) -> None:
    with opened(browser, size="phone") as page:
        page.locator("main").focus()
        for _ in range(25):
            page.keyboard.press("Tab")
            assert not page.evaluate(COVERED), focused(page)


def test_instructions_are_chosen_by_keys(browser: Any) -> None:
    with opened(browser) as page:
        page.locator("#filter").focus()
        page.keyboard.type("m16n8k32 e4m3 sm_89")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        assert page.evaluate("warpmma.state.i").startswith("mma.sync.aligned.m16n8k32")
        assert page.evaluate("document.activeElement.getAttribute('role')") == "listbox"
        assert page.locator("[role=option][aria-selected=true]").count() == 1


def test_controls_keep_the_focus(browser: Any) -> None:
    """What rebuilds a part of the page gives the focus back to the control that was used."""
    with opened(browser, SPARSE) as page:
        page.locator("#Order-lane").press("Enter")
        assert page.evaluate("document.activeElement.id") == "Order-lane"
        page.locator("#select-Selector").select_option("1")
        page.locator("#lane").fill("7")
        page.locator("#lane").press("Enter")
        assert page.evaluate("document.activeElement.id") == "lane"
        assert "of lane 7" in page.locator("#sentence").inner_text()


def test_a_link_leads_back(browser: Any) -> None:
    with opened(browser, "i=m16n8k32%20e4m3&op=D&row=9&col=3&by=lane&unknown=1&view=nothing") as page:
        assert page.locator("h1").inner_text().endswith("m16n8k32.row.col.f32.e4m3.e4m3.f32")
        page.locator("#View-sums").click()
        page.locator("#values-c").fill("2^-3")
        link = page.url
    assert "unknown" not in link and "view=sums" in link
    with opened(browser, link.partition("#")[2]) as page:
        assert page.locator("#values-c").input_value() == "2^-3"
        turned(page, "by=lane&op=B&row=15&col=7")
        assert page.locator("#sentence").inner_text().startswith("B[15, 7]")


def test_themes_are_switched_and_remembered(browser: Any) -> None:
    with opened(browser, scheme="light") as page:
        ground = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        page.locator("#Theme-dark").click()
        dark = page.evaluate(ground)
        assert dark != light
        page.reload()
        page.wait_for_function(f"{ground} === {dark!r}")  # the page may still be starting
        assert page.locator("#Theme-dark").get_attribute("aria-pressed") == "true"
        page.locator("#Theme-auto").click()
        assert page.evaluate(ground) == light
        page.emulate_media(color_scheme="dark")
        assert page.evaluate(ground) == dark
