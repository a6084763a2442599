"""What is typed on the page is read as the command line reads it; what is copied from it says the same elsewhere."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from collections.abc import Callable
from typing import Any

from explorer_page import opened, turned
from oracles import needs

import warpmma as wm
from warpmma.cli import main
from warpmma.cli.arguments.matrix_files import codes_of
from warpmma.formats import FORMATS

pytestmark = needs("browser")

TEXTS = (
    "0", "-0", "1", "-1.5", "0.1", "1/3", "-2/7", "2^-24", "-2^-9", "3*2^5", "0.7*2^-3", "1e-3", "4.2e2", "448",
    "1e400", "1e-400", "65519", "65520", "57344", "6", "7.5", "5", "28", "240", "100", "-128", "127", "255", "-8",
    "15", "0x1", "0x0", "0xf", "0x3c00", "0x7f", "0xff", "inf", "-inf", "nan", "3x1", "2x0x1", "1 2x0 1",
    "1.17549435e-38", "1.4e-45", "2^-149", "2^-150", "2^-151", "3*2^-150", "2^127", "2^128", "1.0000000596046448",
    "1.00000005960464481", "5e-324", "2^-1075", "1.7976931348623157e308", "x", "1x", "0xg", "1 + 1", "2^", "1/0",
    "1e99999", "--1", "1..2", "0x123456789abcdef01",
)  # fmt: skip

READ = """(asked) => JSON.stringify(JSON.parse(asked).map(([name, text]) => {
  try {
    const fmt = warpmma.formats[name];
    const { codes } = warpmma.readList(text, fmt, 4);
    return codes.map(String);
  } catch (error) {
    return error.message;
  }
}))"""


def python_reads(name: str, text: str) -> list[str] | None:
    """Codes of four values as the command line reads them; None if it refuses."""
    try:
        codes = codes_of(text, FORMATS[name], "--a")
    except wm.WarpmmaError:
        return None
    return [str(x) for x in (codes * 4 if len(codes) == 1 else [*codes, 0, 0, 0])[:4]]


def test_values_are_read_as_the_command_line_reads_them(browser: Any) -> None:
    asked = [(name, text) for name in FORMATS for text in TEXTS]
    with opened(browser) as page:
        found = json.loads(page.evaluate(READ, json.dumps(asked)))
    differing = []
    for (name, text), codes in zip(asked, found, strict=True):
        expected = python_reads(name, text)
        if (codes if isinstance(codes, list) else None) != expected:
            differing.append((name, text, codes, expected))
    assert not differing, "\n".join(map(str, differing))


STATES = (
    "i=mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "i=mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32&a=1%20-2^-11&c=0x7f800000",
    "i=mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
    "i=mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32",
    "i=mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32",
    "i=mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
    "i=mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64",
    "i=mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e2m1.f32.ue8m0&sa=2&sb=0.5",
    "i=mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3&sa=1,2,3,4",
    "i=wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3",
)

QUOTES = """() => {
  const record = warpmma.instructionNamed(warpmma.state.i);
  const typed = warpmma.typedValues(record);
  const targets = [...document.querySelectorAll(".panel")].map((panel) => panel.dataset.target);
  const codes = [...document.querySelectorAll(".panel")].map((panel) => panel.dataset.code);
  const operands = warpmma.readOperands(record, typed);
  return [warpmma.pythonOf(record, operands, targets), warpmma.commandOf(record, typed, targets), codes, record.sparse];
}"""


def test_what_is_copied_gives_the_same_bits(browser: Any) -> None:
    with opened(browser) as page:
        for state in STATES:
            turned(page, f"view=sums&{state}")
            python, command, codes, sparse = page.evaluate(QUOTES)
            told = printed(exec, compile(python, "copied", "exec"), {})
            assert all(code in told for code in codes), state
            if not sparse:
                told = printed(main, shlex.split(command)[1:])
                assert all(code in told for code in codes), command


def test_every_example_shows_something(browser: Any) -> None:
    """From each to the next, whatever they have in common; and all but the last tell two targets apart."""
    with opened(browser, "view=sums") as page:
        names = page.evaluate("warpmma.PRESETS.map((preset) => preset.name)")
        for name in names:
            page.get_by_role("button", name=name, exact=True).click()
            assert page.locator(".preset[aria-pressed=true]").all_inner_texts() == [name]
            python, command, codes, _ = page.evaluate(QUOTES)
            assert len(set(codes)) == (1 if name == "NaN" else 2), name
            for told in (printed(exec, compile(python, "copied", "exec"), {}), printed(main, shlex.split(command)[1:])):
                assert all(code in told for code in codes), name
        page.locator("#values-c").fill("2")
        assert page.locator(".preset[aria-pressed=true]").count() == 0


def printed(call: Callable[..., object], *arguments: object) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert not call(*arguments)
    return said.getvalue()


PLACES = (
    "op=B&row=9&col=3", "i=wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16&op=D&row=35&col=21",
    "i=mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32&op=D&row=3&col=6&matrix=2",
    "i=mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32&op=metadata&row=9&col=6&selector=1",
    "i=mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0&op=scale_b&row=5&col=1"
    "&byte_b=2&thread_b=3",
)  # fmt: skip

PLACE = """() => {
  const record = warpmma.instructionNamed(warpmma.state.i);
  const { operand, ...cell } = warpmma.chosenCell(record);
  return [warpmma.pythonOfPlace(record, operand, cell), warpmma.commandOfPlace(record, operand, cell), cell.lane];
}"""


def test_what_is_copied_of_a_place_is_true(browser: Any) -> None:
    with opened(browser) as page:
        for state in PLACES:
            turned(page, state)
            python, command, lane = page.evaluate(PLACE)
            exec(compile(python, "copied", "exec"), {})
            told = printed(main, shlex.split(command)[1:])
            assert f" {lane}" in re.split(r"[,(]", told)[0], command
