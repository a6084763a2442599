"""Operands in shared memory: the page finds every element, byte by byte, where Python finds it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from explorer_page import frames, opened
from oracles import needs

import warpmma as wm
from warpmma.isa import warpgroup_instructions
from warpmma.layouts import MatrixDescriptor
from warpmma.lookup import shared_reading

pytestmark = needs("browser")

EVERY = warpgroup_instructions()
BY_TYPE = {(i.type("A"), i.type("B"), i.sparse, i.n): i for i in EVERY}  # one of each shape that is read
WGMMA = "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16"

# As a text: Playwright takes values apart one by one.
READ = """([name, operand, descriptor, major]) => {
  const { instructionNamed, readDescriptor, readingOf } = globalThis.warpmma;
  const reading = readingOf(instructionNamed(name), operand, readDescriptor(descriptor), major);
  const found = { addresses: [], facts: [], words: [], accesses: [] };
  for (let row = 0; row < reading.rows; row += 1)
    for (let column = 0; column < reading.columns; column += 1) {
      const cell = reading.locate(row, column);
      found.addresses.push(cell.address);
      found.facts.push([cell.linear, cell.bank, cell.low, cell.high]);
      found.accesses.push(cell.access);
    }
  for (const [word, cells] of reading.words) found.words.push([word, cells.map(({ row, column }) => [row, column])]);
  return JSON.stringify({ shape: [reading.rows, reading.columns], ...found });
}"""


def drawn(seed: int, count: int) -> Iterator[tuple[Any, str, int, str]]:
    """Draw readings of every width, swizzle and major-ness."""
    rng = np.random.default_rng(seed)
    some = list(BY_TYPE.values())
    for number in range(count):
        i = some[int(rng.integers(len(some)))] if number % 2 else EVERY[int(rng.integers(len(EVERY)))]
        operand = "AB"[int(rng.integers(2))]
        bits = i.format(operand).bits  # type: ignore[arg-type]
        descriptor = MatrixDescriptor(
            start=16 * int(rng.integers(1 << 14)), leading=16 * int(rng.choice([0, 1, 8, 64, 1 << 13])),
            stride=16 * int(rng.choice([0, 16, 64, 100])), swizzle=int(rng.choice([0, 32, 64, 128])),
            base_offset=int(rng.integers(8)),
        )  # fmt: skip
        yield i, operand, descriptor.word, "MN" if bits == 16 and rng.random() < 0.5 else "K"


def test_elements_lie_where_python_finds_them(browser: Any) -> None:
    with opened(browser) as page:
        for i, operand, word, major in drawn(1, 14):
            found = json.loads(page.evaluate(READ, [str(i), operand, hex(word), major]))
            reading = shared_reading(i, operand, word, major=major)  # type: ignore[arg-type]
            assert tuple(found["shape"]) == reading.shape
            assert np.array_equal(np.reshape(found["addresses"], reading.shape), reading.addresses), (i, operand)
            rng = np.random.default_rng(word & 0xFFFF)
            for at in rng.integers(0, reading.addresses.size, 20).tolist():
                cell = reading.locate(*divmod(at, reading.shape[1]))
                assert found["facts"][at] == [cell.linear, cell.bank, cell.low, cell.high]


def test_bytes_and_accesses_are_those_of_python(browser: Any) -> None:
    with opened(browser) as page:
        for i, operand, word, major in drawn(2, 6):
            if i.n > 64:
                continue
            found = json.loads(page.evaluate(READ, [str(i), operand, hex(word), major]))
            reading = shared_reading(i, operand, word, major=major)  # type: ignore[arg-type]
            for at, cells in found["words"]:
                expected = {(c.row, c.column) for byte in range(4 * at, 4 * at + 4) for c in reading.elements(byte)}
                assert {tuple(x) for x in cells} == expected
            columns = reading.shape[1]
            for number, access in enumerate(reading.accesses):
                assert {found["accesses"][c.row * columns + c.column] for c in access} == {number}


@pytest.mark.parametrize(("text", "said"), [
    ("", "nothing is not a number; expected 64 bits, such as 0x4000004000000040"), ("0xg", "0xg is not a number"),
    ("1 2", "1 2 is not a number"), ("0x1" + "0" * 16, "has more than 64 bits"),
])  # fmt: skip
def test_what_is_no_descriptor_is_said(browser: Any, text: str, said: str) -> None:
    with opened(browser, f"i={WGMMA}&view=shared&op=B") as page:
        page.fill("#descriptor", text)
        assert said in page.inner_text("#descriptor-error")
        assert page.get_attribute("#descriptor", "aria-invalid") == "true"
        assert "0x6d6" in page.inner_text("#sentence")  # what was read before stays
        page.fill("#descriptor", "0x4000004000000042")
        assert page.inner_text("#descriptor-error") == "" and "0x6f6" in page.inner_text("#sentence")
        assert "desc=0x4000004000000042" in page.url


def test_a_link_leads_back_and_both_grids_follow(browser: Any) -> None:
    with opened(browser, f"i={WGMMA}&view=shared&op=B&row=3&col=5&major=MN&desc=0x0000000800400040") as page:
        frames(page)
        cell = wm.where(WGMMA, "B", 3, 5, descriptor=0x0000000800400040, major="MN")
        text = f"B[3, 5] at byte {cell.address:#x}, bits {cell.low}-{cell.high} of bank {cell.bank}"
        assert page.inner_text("#sentence").startswith(text)
        page.locator("#cell-memory").focus()
        page.keyboard.press("ArrowRight")
        moved = page.inner_text("#sentence")
        found = page.evaluate("[globalThis.warpmma.state.row, globalThis.warpmma.state.col].map(Number)")
        cell = wm.where(WGMMA, "B", *found, descriptor=0x0000000800400040, major="MN")
        assert f"B[{found[0]}, {found[1]}] at byte {cell.address:#x}" in moved
        page.click("#Operand-A")
        assert page.inner_text("#sentence").startswith("A[")
        page.click("#Major-K")
        assert "major=" not in page.url


def test_what_is_copied_runs(browser: Any) -> None:
    quoted = """([name, operand, descriptor, major]) => {
      const w = globalThis.warpmma;
      const record = w.instructionNamed(name);
      const read = w.readDescriptor(descriptor);
      const reading = w.readingOf(record, operand, read, major);
      const cell = reading.locate(3, 5);
      return [w.pythonOfShared(record, reading, read, cell), w.commandOfShared(record, reading, read, cell),
              w.sharedSentence(operand, cell)];
    }"""
    from warpmma.cli import main

    with opened(browser) as page:
        for i, operand, word, major in drawn(3, 6):
            python, command, sentence = page.evaluate(quoted, [str(i), operand, hex(word), major])
            exec(python, {})
            assert command.startswith("warpmma where ") and sentence.startswith(f"{operand}[3, 5] at byte")
            assert main(command.split()[1:]) == 0


def test_others_have_no_descriptor(browser: Any) -> None:
    with opened(browser, "view=shared") as page:
        assert "Only wgmma reads operands from shared memory" in page.inner_text("#main")
