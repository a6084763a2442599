"""What is wrong with a product inside of a kernel is named: of `wgmma`, `mma`, `wmma.mma` and launches of Triton."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from warpgroup_kernels import F16, LANES, text

import warpmma as wm
from warpmma.kernel import Watch, launch
from warpmma.layouts import MatrixDescriptor
from warpmma.testing import guess_launch

TURNS, K = 4, 16
ROOM = 32768
RIGHT = {"swizzle": 128, "stride": 1024, "leading": 16, "base_offset": 0}


def matrices() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((64, TURNS * K)).astype(np.float16) for _ in "ab")
    return a, b.T


def kernel(*, advance_a: int = 32, advance_b: int = 32, reset: bool = False) -> str:
    """A loop along k: each turn the descriptors go on, by 32 bytes where it is right."""
    d = ", ".join(f"%d{n}" for n in range(32))
    scale = "setp.ne.u32 %scale, %i, 2;" if reset else ""
    body = f"""mov.u32 %i, 0; LOOP: {scale}
    wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{d}}}, %da, %db, %scale, 1, 1, 0, 0;
    add.u64 %da, %da, {advance_a // 16}; add.u64 %db, %db, {advance_b // 16};
    add.u32 %i, %i, 1; setp.lt.u32 %p, %i, {TURNS}; @%p bra LOOP;"""
    fence = "wgmma.fence.sync.aligned;"
    return text(F16, registers=False, times=0).replace(fence, f"{fence}\n{body}")


def multiplied(
    source: str, of_a: dict[str, int] | None = None, of_b: dict[str, int] | None = None, *, shared: bool = True,
    start_b: int = ROOM, exchanged: bool = False,
) -> Any:  # fmt: skip
    a, b = matrices()
    tiles = np.zeros(2 * ROOM, np.uint8)
    for at, matrix in ((0, a), (ROOM, b.T)):
        flat = np.zeros(8192, np.uint8)
        rows, columns = np.indices((64, 64))
        places = MatrixDescriptor(**{"start": 0, **RIGHT}).addresses(64, 64, bits=16, major="K")
        flat.view(np.uint16)[places[rows, columns] // 2] = matrix.view(np.uint16)
        tiles[at : at + 8192] = flat
    starts = (ROOM, 0) if exchanged else (0, start_b)
    words = [
        MatrixDescriptor(**{"start": s, **RIGHT, **(x or {})}).word for s, x in zip(starts, (of_a, of_b), strict=True)
    ]
    args = [tiles.view(np.uint32), np.zeros((32, LANES), np.uint32), np.zeros((32, LANES), np.uint32), *words]
    watch = Watch(mnemonic="wgmma", shared=shared)
    return wm.ptx.load(source)["k"].launch(wm.Device("sm_90a"), 1, LANES, args, watch=watch)


def test_nothing_is_wrong() -> None:
    a, b = matrices()
    found = guess_launch(multiplied(kernel()), a, b)
    assert found.mistakes == {} and str(found) == "guess: none; 4 products have the operands that were meant"
    first = guess_launch(multiplied(kernel()), a[:, :K], b[:K], occurrence=0)
    assert first.mistakes == {} and first.compared == 1


WRONG: list[tuple[dict[str, Any], dict[str, Any], str, int, list[str]]] = [
    ({}, {"of_b": {"swizzle": 64}}, "B", 0, ["the swizzle of B were 64 bytes wide, meant 128 bytes wide"]),
    ({}, {"of_a": {"swizzle": 0}}, "A", 0, ["the swizzle of A were missing, meant 128 bytes wide"]),
    ({}, {"of_a": {"stride": 512}}, "A", 0, ["the stride dimension byte offset of A were 512, meant 1024"]),
    ({}, {"of_a": {"base_offset": 1}}, "A", 0, ["the base offset of A were 1, meant 0"]),
    ({}, {"start_b": ROOM + 1024}, "B", 0, ["the start of B were advanced by 1024 bytes too many: 0x8400, meant 0x8"]),
    ({"advance_b": 0}, {}, "B", 1, ["B were k 0-15, of an earlier turn, meant k 16-31"]),
    ({"advance_a": 64}, {}, "A", 1, ["A were k 32-47, of a later turn, meant k 16-31"]),
    ({"reset": True}, {}, "C", 2, ["the accumulator began again at zero"]),
    ({}, {"exchanged": True}, "A and B", 0, ["A and B were exchanged"]),
    ({}, {"start_b": 0}, "B", 0, ["B were the other operand"]),
    ({}, {"start_b": 16384}, "B", 0, ["B were all zero"]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "launched", "operand", "occurrence", "texts"), WRONG)
def test_mistakes_of_wgmma_are_named(
    source: dict[str, Any], launched: dict[str, Any], operand: str, occurrence: int, texts: list[str]
) -> None:
    a, b = matrices()
    found = guess_launch(multiplied(kernel(**source), **launched), a, b)
    assert found.place.endswith(f", block 0, warps 0-3, occurrence {occurrence}")
    assert list(found.mistakes) == [operand]
    assert all(any(x.startswith(each) for x in found.mistakes[operand]) for each in texts)
    assert f"as if {found.mistakes[operand][0]}" in str(found) or "one of these" in str(found)


def test_without_memory_descriptors_are_not_tried() -> None:
    a, b = matrices()
    found = guess_launch(multiplied(kernel(), {"swizzle": 64}, shared=False), a, b)
    assert found.mistakes == {"A": ()}
    assert "no mistake that was tried explains it\n  not tried: other descriptors: watch with" in str(found)


def test_what_no_mistake_explains_is_said() -> None:
    a, b = matrices()
    b = b.copy()
    b[20, 3] += 1
    found = guess_launch(multiplied(kernel()), a, b)
    assert found.mistakes == {"B": ()} and found.compared == 2 and "B is not what was meant" in str(found)


MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


@pytest.mark.parametrize(("order", "says"), [([0, 1, 2, 3], ""), ([0, 2, 1, 3], "registers 1 and 2 of A were swapped")])
def test_fragments_of_mma(order: list[int], says: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((3, 16, 16), (3, 16, 8)))

    def product(t: Any, x: Any, y: Any) -> None:
        sums: Any = [t.constant(0)] * 4
        for step in range(3):
            left = [t("ld.global.b32", x + ((step * 4 + i) * 32 + t.laneid) * 4) for i in order]
            right = [t("ld.global.b32", y + ((step * 2 + i) * 32 + t.laneid) * 4) for i in range(2)]
            sums = t(MMA, left, right, sums)

    arrays = [wm.load(MMA, "A", a), wm.load(MMA, "B", b)]
    report = launch(product, 1, 32, arrays, target="sm_90", watch=Watch())
    whole = a.swapaxes(0, 1).reshape(16, 48), b.reshape(48, 8)
    found = guess_launch(report, *whole)
    assert found.mistakes == ({"A": (says,)} if says else {}) and found.compared == (1 if says else 3)
    one = guess_launch(report, a[1], b[1], np.ones((16, 8), np.float32), occurrence=1)
    assert "C" not in one.mistakes and one.compared == 1
    begins = guess_launch(report, a[0], b[0], np.ones((16, 8), np.float32), occurrence=0)
    assert begins.mistakes["C"] == ("the accumulator did not begin with the C that was given",)


@pytest.mark.parametrize("column_major", [False, True])
def test_a_transposed_operand_of_wmma(column_major: bool) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((16, 16)).astype(np.float16) for _ in "ab")
    order = "col" if column_major else "row"
    regs = {x: ", ".join(f"%{x}{n}" for n in range(8)) for x in "afb"}
    source = f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d) {{
.reg .b64 %x, %y, %z; .reg .b32 %a<8>, %b<8>, %f<8>;
ld.param.u64 %x, [a]; ld.param.u64 %y, [b]; ld.param.u64 %z, [d];
{" ".join(f"mov.b32 %f{n}, 0;" for n in range(8))}
wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {{{regs["a"]}}}, [%x], 16;
wmma.load.b.sync.aligned.{order}.m16n16k16.global.f16 {{{regs["b"]}}}, [%y], 16;
wmma.mma.sync.aligned.row.{order}.m16n16k16.f32.f32 {{{regs["f"]}}}, {{{regs["a"]}}}, {{{regs["b"]}}}, {{{regs["f"]}}};
wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%z], {{{regs["f"]}}}, 16; ret; }}"""
    args = [a, b, np.zeros((16, 16), np.float32)]
    report = wm.ptx.load(source)["k"].launch(wm.Device("sm_80"), 1, 32, args, watch=Watch())
    assert guess_launch(report, a, b).mistakes == ({"B": ("B were transposed",)} if column_major else {})
    assert guess_launch(report, b.T, a.T).mistakes != {}


def test_wrong_arguments() -> None:
    a, b = matrices()
    report = multiplied(kernel())
    for x, y, says in (
        (a[:32], b, r"A is \(32, 64\) and B \(64, 64\); expected \(64, 16\) and \(16, 64\)"),
        (a, b[:32], "as often along k as the line is executed"), (a[0], b, "expected a matrix"),
        (a[:, :32], b[:32], "A and B have 2 parts along k, and this would be another one"),
        (a.astype(np.float32), b, "A"),
    ):  # fmt: skip
        with pytest.raises(wm.OperandError, match=says):
            guess_launch(report, x, y)
    with pytest.raises(wm.OperandError, match="occurrence 9 was not watched"):
        guess_launch(report, a, b, occurrence=9)
    with pytest.raises(wm.OperandError, match="launch is 3"):
        guess_launch(3, a, b)  # type: ignore[arg-type]
