"""A `wgmma` and a `wmma.mma` inside of a kernel are explained from what they had: the result is what the kernel got."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from warpgroup_kernels import F16, FORMS, ROOM, WORDS, codes, descriptor, launched, mnemonic, text

import warpmma as wm
from warpmma.isa import parse_warpgroup
from warpmma.kernel import Watch
from warpmma.machine import Launch


def results(name: str, out: Any) -> Any:
    """Return D of a kernel as a matrix of codes."""
    i = parse_warpgroup(name)
    return np.asarray(i.format("D").codes(wm.store(name, "D", out)))


@pytest.mark.parametrize(("form", "more", "registers", "swizzle", "turned"), FORMS)
def test_every_lane_is_explained_by_what_it_got(
    form: str, more: str, registers: bool, swizzle: int, turned: int
) -> None:
    name = mnemonic(form)
    i = parse_warpgroup(name)
    given = codes(name, np.random.default_rng(1), registers=registers)
    words = descriptor(0, swizzle), descriptor(ROOM, swizzle)
    out, report = launched(text(name, registers=registers, more=more, times=2), given, words, watch=Watch())
    d, layout = results(name, out), i.layout("D")
    assert len(report.watched) == 2 and all(x.occurrence == 0 for x in report.watched)  # of two lines
    last = report.watched[1]
    assert (last.warp, last.place) == (0, f"{last.site.place}, block 0, warps 0-3, occurrence 0")
    assert sorted(last.tiles) == ["A", "B"][registers:]
    for lane, register in ((0, 0), (45, layout.registers - 1), (127, 1)):
        for index, cell in enumerate(layout.holds(lane, register)):
            where: Any = {"line": last.site.line, "register": register, "index": index}
            told = wm.explain_launch(report, lane=lane, **where)
            assert told.result == d[cell.row, cell.column] and told.site == last.place
            assert (told.row, told.column) == (cell.row, cell.column)
            assert told == wm.explain_launch(report, lane=lane % 32, warp=lane // 32, **where)
            assert told == wm.explain_launch(report, line=last.site.line, row=cell.row, column=cell.column)


def loop(turns: int, *, first: bool) -> tuple[Any, Launch]:
    """A loop along k, whose first product may not read C; each turn goes on by 32 bytes."""
    given = codes(F16, np.random.default_rng(2), registers=False)
    d = ", ".join(f"%d{n}" for n in range(32))
    body = f"""mov.u32 %i, 0; LOOP: setp.ne.u32 %scale, %i, {0 if first else 99};
    wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{d}}}, %da, %db, %scale, 1, 1, 0, 0;
    add.u64 %da, %da, 2; add.u64 %db, %db, 2; add.u32 %i, %i, 1; setp.lt.u32 %p, %i, {turns}; @%p bra LOOP;"""
    fence = "wgmma.fence.sync.aligned;"
    kernel = text(F16, registers=False, times=0).replace(fence, f"{fence}\n{body}")
    return launched(kernel, given, WORDS, watch=Watch(mnemonic="wgmma"))


@pytest.mark.parametrize("first", [True, False])
def test_a_chain_follows_its_accumulator(first: bool) -> None:
    out, report = loop(4, first=first)
    assert [x.occurrence for x in report.watched] == [0, 1, 2, 3]
    assert [x.numbers["scale_d"] for x in report.watched] == [not first, 1, 1, 1]
    d = results(F16, out)
    for row, column in ((0, 0), (37, 63)):
        told = wm.explain_launch(report, occurrence=3, row=row, column=column, chain=True)
        assert told.result == d[row, column] and len(told.a) == 4 * 16
        assert (told.c == 0) == first
        single = wm.explain_launch(report, occurrence=0, row=row, column=column)
        assert told.a[:16] == single.a and told.b[:16] == single.b
    product = report.watched[2]
    assert product.tiles["A"].word == WORDS[0] + 4 and product.tiles["A"].codes.shape == (64, 16)
    assert not product.tiles["B"].transposed and product.tiles["B"].codes.shape == (64, 16)
    assert product.shared is None


def test_what_is_kept_is_what_is_watched() -> None:
    given = codes(F16, np.random.default_rng(2), registers=False)
    kernel = text(F16, registers=False, more=", 1, 1, 0, 0")
    for watch, count in (({"warp": 3}, 2), ({"warp": 4}, 0), ({"block": 1}, 1), ({"mnemonic": "m64n64k16"}, 2),
                         ({"occurrence": 1}, 0), ({"most": 1}, 1)):  # fmt: skip
        _, report = launched(kernel, given, WORDS, blocks=2, watch=Watch(**watch))
        assert len(report.watched) == count
    _, report = launched(kernel, given, WORDS, watch=Watch(shared=True))
    (product,) = report.watched
    assert product.shared is not None
    np.testing.assert_array_equal(product.shared, given["tiles"])
    with pytest.raises(ValueError, match="read-only"):
        product.tiles["A"].codes[0, 0] = 1
    with pytest.raises(wm.OperandError, match="watch: shared is 3; expected a bool"):
        Watch(shared=3)  # type: ignore[arg-type]


def test_nothing_watched_names_the_lines_of_wgmma() -> None:
    given = codes(F16, np.random.default_rng(2), registers=False)
    _, report = launched(text(F16, registers=False, more=", 1, 1, 0, 0"), given, WORDS, watch=Watch(line=1))
    with pytest.raises(wm.OperandError, match="nothing was watched; wgmma were executed at"):
        wm.explain_launch(report, lane=0)


# wmma

WMMA = """.version 8.0
.target {target}
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {{
.reg .b64 %a, %b, %c, %d; .reg .b32 %r<8>, %q<8>; .reg .{kind} %f<8>; .reg .b32 %i; .reg .pred %p;
ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; ld.param.u64 %c, [c]; ld.param.u64 %d, [d]; mov.u32 %i, 0;
wmma.load.c.sync.aligned.row.{shape}.global.{of_c} {{{acc}}}, [%c], 16;
LOOP:
wmma.load.a.sync.aligned.row.{shape}.global.{of_a} {{{fa}}}, [%a], 16;
wmma.load.b.sync.aligned.col.{shape}.global.{of_a} {{{fb}}}, [%b], 16;
wmma.mma.sync.aligned.row.col.{shape}{types} {{{acc}}}, {{{fa}}}, {{{fb}}}, {{{acc}}};
add.u64 %a, %a, {step}; add.u64 %b, %b, {step};
add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 3; @%p bra LOOP;
wmma.store.d.sync.aligned.row.{shape}.global.{of_c} [%d], {{{acc}}}, 16; ret; }}
"""


def names(letter: str, count: int) -> str:
    return ", ".join(f"%{letter}{n}" for n in range(count))


def wmma_text(
    target: str, shape: str, types: str, of_a: str, of_c: str, sums: int, fa: int, fb: int, step: int
) -> str:  # fmt: skip
    return WMMA.format(
        target=target, kind="b32", shape=shape, types=types, of_a=of_a, of_c=of_c, acc=names("f", sums),
        fa=names("r", fa), fb=names("q", fb), step=step,
    )  # fmt: skip


CASES = [
    ("sm_90", "m16n16k16", ".f32.f32", "f16", "f32", 8, 8, 8, np.float16),
    ("sm_70", "m16n16k16", ".f32.f32", "f16", "f32", 8, 8, 8, np.float16),
    ("sm_90", "m16n16k16", ".f16.f16", "f16", "f16", 4, 8, 8, np.float16),
    ("sm_75", "m16n16k16", ".f16.f16", "f16", "f16", 4, 8, 8, np.float16),
    ("sm_90", "m16n16k16", ".s32.s8.s8.s32", "s8", "s32", 8, 2, 2, np.int8),
]


@pytest.mark.parametrize(("target", "shape", "types", "of_a", "of_c", "sums", "fa", "fb", "dtype"), CASES)
def test_wmma_is_explained(
    target: str, shape: str, types: str, of_a: str, of_c: str, sums: int, fa: int, fb: int, dtype: Any
) -> None:
    rng = np.random.default_rng(4)
    a, b = ((rng.standard_normal((3, 16, 16)) * 4).astype(dtype) for _ in "ab")
    of = {"f32": np.float32, "f16": np.float16, "s32": np.int32}[of_c]
    c, d = np.ones((16, 16), of), np.zeros((16, 16), of)
    written = wmma_text(target, shape, types, of_a, of_c, sums, fa, fb, 256 * a.itemsize)
    report = wm.ptx.load(written)["k"].launch(wm.Device(target), 1, 32, [a, b, c, d], watch=Watch())
    assert [x.occurrence for x in report.watched] == [0, 1, 2]
    codes_of_d = d.view({2: np.uint16, 4: np.uint32}[d.itemsize])
    for lane, register in ((0, 0), (13, sums - 1), (31, 1)):
        cells = report.watched[0].layout("D").holds(lane, register)
        for index, cell in enumerate(cells):
            told = wm.explain_launch(report, occurrence=2, lane=lane, register=register, index=index)
            assert told.result == codes_of_d[cell.row, cell.column] and (told.row, told.column) == (
                cell.row,
                cell.column,
            )
            whole = wm.explain_launch(report, occurrence=2, row=cell.row, column=cell.column, chain=True)
            assert whole.result == told.result and len(whole.a) == 48
    single = wm.explain_launch(report, occurrence=0, row=3, column=4)
    assert [single.a[k] for k in range(16)] == a[0, 3].view({2: np.uint16, 1: np.uint8}[a.itemsize]).tolist()


def test_nothing_watched_names_the_lines_of_wmma() -> None:
    idle = wm.ptx.load(wmma_text("sm_90", "m16n16k16", ".f32.f32", "f16", "f32", 8, 8, 8, 512))["k"].launch(
        wm.Device("sm_90"), 1, 32, [np.zeros(1024, np.float16)] * 2 + [np.zeros(256, np.float32)] * 2
    )
    with pytest.raises(wm.OperandError, match="nothing was watched; wmma were executed at"):
        wm.explain_launch(idle, lane=0)
