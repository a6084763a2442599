"""The explorer's page: it asks for nothing, and does what its controls say."""

from __future__ import annotations

from typing import Any

import pytest
from explorer_page import SIZES, frames, opened, turned
from oracles import needs

from warpmma.show import explorer_page

pytestmark = needs("browser")

STATES = (
    "", "by=lane", "i=m16n8k256", "i=m64n256k16.f32.f16&op=C", "i=mxf4nvf4%204x&op=scale_b", "view=sums",
    "view=sums&i=m16n8k16.row.col.f64", "i=mma.sp.sync.aligned.m16n8k128&op=metadata",
    "view=shared", "view=shared&i=wgmma m64n256k16.f32.f16&op=A",
    "i=ldmatrix.sync.aligned.m8n8.x4.trans.b16&matrix=3", "i=wmma.mma.sync.aligned.row.col.m32n8k16&on=sm_70",
    "i=wmma.load.a.sync.aligned.row.m16n16k16.f16&by=lane", "i=stmatrix.sync.aligned.m16n8&op=address&view=sums",
)  # fmt: skip


def test_the_page_is_small_and_names_no_address() -> None:
    page = explorer_page()
    assert len(page.encode()) < 600_000
    assert "http:" not in page and "https:" not in page and "url(" not in page and "@import" not in page
    assert page.count("default-src 'none'") == 1


@pytest.mark.parametrize("size", SIZES)
def test_nothing_overflows_or_complains(browser: Any, size: str) -> None:
    with opened(browser, size=size) as page:
        for state in STATES:
            turned(page, state)
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                frames(page)
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (state, scheme)


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
        assert "not a number" in page.get_by_role("alert").inner_text()


def test_hostile_texts_are_refused_in_a_line(browser: Any) -> None:
    with opened(browser, "view=__proto__&by=constructor&op=toString&row=-1&col=1e9") as page:
        assert page.locator("#sentence").is_visible()
        turned(page, "view=sums")
        for text in ("9" * 20_000, "0x" + "f" * 20_000, "<script>alert(1)</script>", "2^-99999999", "1/0"):
            page.locator("#values-a").fill(text)
            said = page.get_by_role("alert").inner_text()
            assert said.startswith(f"A's row: {text[:20]}") and len(said) < 160
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_whole_ulps_are_told_exactly(browser: Any) -> None:
    state = "view=sums&i=m16n8k32.row.col.f32.e4m3.e4m3&t1=sm_89&t2=sm_90&a=256,+31x2&b=256,+31x2&c=0"
    with opened(browser, state) as page:
        assert "error \u2212124 (15872 ulp)" in page.locator(".panel").first.inner_text()


def test_registers_and_lanes_are_looked_at(browser: Any) -> None:
    with opened(browser) as page:
        page.locator("#chip-C-2").click()
        assert page.locator("#sentence").inner_text() == "C[11, 4]: c2 of lane 14, register 2, bits 0 to 31"
        page.locator("#lane").fill("31")
        page.locator("#lane").press("Enter")
        assert page.locator("#sentence").inner_text() == "C[15, 6]: c2 of lane 31, register 2, bits 0 to 31"
        page.locator("#chip-A-1").hover()
        page.locator("#slot-2").click()
        page.locator("#Order-lane").click()
        assert page.get_by_role("grid", name="A by lane and register").get_attribute("aria-rowcount") == "32"


def test_selectors_and_words_are_controls(browser: Any) -> None:
    state = "i=mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32&op=metadata&row=9&col=6"
    with opened(browser, state) as page:
        assert "nibble 6 of lane 5, bits 24 to 27" in page.locator("#sentence").inner_text()
        page.locator("#select-Selector").select_option("1")
        assert "nibble 6 of lane 7, bits 24 to 27" in page.locator("#sentence").inner_text()
        page.locator("#word").fill("0x0D000000")
        row = page.locator(".words tr.here").inner_text().split("\t")
        assert row[0] == "6: D" and row[1:3] == ["9, 6", "(1, 3)"] and row[3].strip() == "25, 27"
        page.locator("#word").fill("0x05000000")
        assert "not legal" in page.locator(".words tr.here").inner_text()
        page.locator("#word").fill("?")
        assert "hexadecimal" in page.locator(".word-table").inner_text()


def test_a_link_shows_what_lies_far_away(browser: Any) -> None:
    state = "i=wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16&op=D&row=63&col=255"
    with opened(browser, state, size="phone") as page:
        frames(page)
        cell = page.locator("#cell-C").bounding_box()
        grid = page.locator("[data-operand=C] .grid").bounding_box()
        assert grid["x"] <= cell["x"] and cell["x"] + cell["width"] <= grid["x"] + grid["width"] + 1
        assert grid["y"] <= cell["y"] and cell["y"] + cell["height"] <= grid["y"] + grid["height"] + 1


def test_instructions_of_every_kind_are_shown(browser: Any) -> None:
    """One of every kind of types, shapes of a warp and qualifiers; of wgmma, one of all n."""
    with opened(browser) as page:
        shown = page.evaluate(
            """() => {
              const seen = new Map();
              for (const record of warpmma.instructions.filter((each) => !each.held)) {
                const { a, b, c, d, kind, stype, sparsity, warpgroup, layouts } = record;
                const types = warpgroup ? [a, d] : [a, b === a, c, d, kind, stype, sparsity !== "", layouts];
                seen.set(JSON.stringify(types), record.name);
              }
              for (const name of seen.values()) {
                for (const view of ["registers", "sums"]) {
                  warpmma.update({ i: name, view });
                  if (document.querySelector("h1").textContent !== name) throw new Error(name);
                  const parts = view === "sums" ? ".panel + .panel" : ".card + .card";
                  if (!document.querySelector(parts)) throw new Error(name);
                }
              }
              return seen.size;
            }"""
        )
        assert shown > 60


def test_on_a_phone_the_list_makes_way(browser: Any) -> None:
    with opened(browser, size="phone") as page:
        shell = page.locator(".picker-shell")
        assert shell.get_attribute("open") is None
        shell.locator("summary").click()
        page.locator("#filter").fill("m16n8k64 s4 satfinite")
        page.locator("[role=option]").first.click()
        assert shell.get_attribute("open") is None
        assert page.locator("h1").inner_text().endswith("m16n8k64.row.col.satfinite.s32.s4.s4.s32")
        grid = page.locator("[data-operand=A] .grid").bounding_box()
        page.mouse.click(grid["x"] + 38 + 6, grid["y"] + 22 + 17 + 34)
        assert page.locator(".bar").inner_text().startswith("A[1, 0]")


def test_every_fragment_that_is_moved_is_shown(browser: Any) -> None:
    """Its grids, and in place of sums why there are none."""
    with opened(browser) as page:
        shown = page.evaluate(
            """() => {
              const moves = warpmma.instructions.filter((each) => each.held);
              for (const record of moves) {
                for (const view of ["registers", "sums"]) {
                  warpmma.update({ i: record.name, view });
                  if (document.querySelector("h1").textContent !== record.name) throw new Error(record.name);
                  const cards = document.querySelectorAll(".card").length;
                  if (cards !== (view === "sums" ? 0 : record.held.length)) throw new Error(record.name);
                }
              }
              return moves.length;
            }"""
        )
        assert shown == 280
        assert page.locator("#main .note").inner_text().startswith("wmma.mma is executed as mma")


def test_a_matrix_of_ldmatrix_and_the_address_of_its_row(browser: Any) -> None:
    with opened(browser, "i=ldmatrix.sync.aligned.m8n8.x4.trans.b16&op=D&row=3&col=5") as page:
        sentence = page.locator("#sentence")
        assert sentence.inner_text() == "D[3, 5] of matrix 0: d1 of lane 21, register 0, bits 16 to 31"
        page.locator("#select-Matrix").select_option("2")
        assert sentence.inner_text() == "D[3, 5] of matrix 2: d5 of lane 21, register 2, bits 16 to 31"
        assert page.locator("#row-address").inner_text() == "Row 3 is at the address of lane 19."
        assert "measured on an H200" in page.locator(".toolbar .note").inner_text()
        turned(page, "i=ldmatrix.sync.aligned.m8n8.x1.b16&op=address&row=7&by=lane")
        assert sentence.inner_text() == "address[7, 0] of matrix 0: p0 of lane 7, register 0, bits 0 to 63"
        grid = page.get_by_role("grid", name="Addresses of rows by lane and register")
        assert grid.get_attribute("aria-rowcount") == "8"
        page.locator("#lane").fill("31")
        page.locator("#lane").press("Enter")
        assert "lane 7" in sentence.inner_text()


def test_fragments_of_wmma_are_those_of_the_target(browser: Any) -> None:
    with opened(browser, "i=wmma.load.a.sync.aligned.row.m16n16k16.f16&row=3&col=5") as page:
        sentence, on = page.locator("#sentence"), page.locator("#select-On")
        assert sentence.inner_text() == "A[3, 5], copy 0: a1 of lane 14, register 0, bits 16 to 31"
        assert on.locator("option").all_text_contents() == ["sm_70 to sm_72", "sm_75 to sm_121a"]
        on.select_option("sm_70")
        page.locator("#select-Copy").select_option("1")
        assert sentence.inner_text() == "A[3, 5], copy 1: a5 of lane 11, register 2, bits 16 to 31"
        assert "opaque in PTX" in page.locator(".toolbar .note").inner_text()
        copied = page.evaluate(
            """() => {
              const record = warpmma.instructionNamed(warpmma.state.i);
              const { operand, ...cell } = warpmma.chosenCell(record);
              return [warpmma.pythonOfPlace(record, operand, cell), warpmma.commandOfPlace(record, operand, cell)];
            }"""
        )
        exec(copied[0])
        assert copied[1].endswith("m16n16k16.f16 A 3 5 --matrix 1 --target sm_70")


def test_a_filter_that_matches_nothing_says_so(browser: Any) -> None:
    with opened(browser) as page:
        page.locator("#filter").fill("xyz")
        assert page.locator(".count").inner_text() == "no instruction matches 'xyz'"
        assert page.locator("[role=option]").count() == 0 and not page.locator(".instructions").is_visible()
        before = page.url
        page.locator("#filter").press("Enter")
        assert page.url == before
        page.locator("#filter").fill("m64n8")
        page.locator("#select-Target").select_option("sm_80")
        page.locator("#select-Kind").select_option("sparse")
        assert page.locator(".count").inner_text() == "no instruction matches 'm64n8' on sm_80 among mma.sp, sparse A"
        page.locator("#filter").fill("")
        assert page.locator(".instructions").is_visible()


@pytest.mark.parametrize("size", SIZES)
def test_enter_takes_the_first_match(browser: Any, size: str) -> None:
    with opened(browser, size=size) as page:
        if size != "desktop":
            page.locator(".picker-shell summary").click()
        page.locator("#filter").fill("ldmatrix x4 trans")
        page.locator("#filter").press("Enter")
        assert page.locator("h1").inner_text() == "ldmatrix.sync.aligned.m8n8.x4.trans.b16"
        assert (page.locator(".picker-shell").get_attribute("open") is None) == (size != "desktop")
        assert "ldmatrix x4 trans" in page.locator("#live").inner_text()
