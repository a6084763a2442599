"""`wgmma` in kernels in Python: the bits of `warpmma.execute`, and what is wrong with mistaken kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.isa import parse_warpgroup
from warpmma.kernel import HazardError, Output
from warpmma.layouts import MatrixDescriptor, SharedTile

LANES, ROOM = 128, 32768  # threads of a warpgroup; bytes of a tile
FENCE, COMMIT, WAIT = (f"wgmma.{x}.sync.aligned" for x in ("fence", "commit_group", "wait_group"))
F16 = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
SIGNS = (1, 1, 0, 0)
A, B = (SharedTile(rows=64, columns=64, bits=16, swizzle=128, start=start) for start in (0, ROOM))


def fill(t: Any, tiles: Any, fence: str = "fence.proxy.async.shared::cta", barrier: str = "bar.sync") -> None:
    """Copy both tiles to shared memory, by the first warpgroup."""
    with t.where(t.tid[0] < LANES):
        for at in range(0, 2 * ROOM, 16 * LANES):
            place = t.tid[0] * 16 + at
            t("st.shared.v4.b32", place, *t("ld.global.v4.b32", tiles + place))
        if fence:
            t(fence)
    if barrier:
        t(barrier)


def keep(t: Any, y: Any, d: Any) -> None:
    """Store registers, as `execute` has them."""
    for i, x in enumerate(d):
        t("st.global.b32", y + (t.tid[0] % LANES + LANES * i) * 4, x)


def tiles(seed: int = 1, mask: int = 0xBBFFBBFF) -> Any:
    """Return random bytes of both tiles; a mask keeps sums small."""
    made = np.random.default_rng(seed).integers(0, 1 << 32, 2 * ROOM // 4, np.uint64).astype(np.uint32)
    return made & np.uint32(mask)


def run(body: Callable[..., None], data: Any, registers: int = 32, groups: int = 1, **options: Any) -> Any:
    """Run a kernel of some warpgroups, whose `body` gets the threads and where its registers go."""
    y = np.zeros((registers, LANES), np.uint32)

    def kernel(t: Any, x: Any, y: Any) -> None:
        fill(t, x, **parts)
        body(t, y)

    parts = {name: options.pop(name) for name in ("fence", "barrier") if name in options}
    wm.kernel.launch(kernel, 1, LANES * groups, [data, y], target="sm_90a", shared=2 * ROOM, **options)
    return y


def product(t: Any, d: Any, k: int = 0, *, first: bool = False) -> Any:
    """Add 16 columns."""
    return t(F16, d, A.descriptor(k), B.descriptor(k), int(not first), *SIGNS)


def group(t: Any, d: Any) -> Any:
    """Multiply 64 columns."""
    t(FENCE)
    for k in range(0, 64, 16):
        d = product(t, d, k, first=k == 0)
    t(COMMIT)
    return d


def plain(t: Any, y: Any) -> None:
    d = group(t, [0] * 32)
    t(WAIT, 0)
    keep(t, y, d)


FORMS = [  # immediates after scale-d; whether A is in registers; swizzle; what is transposed; a mask of small codes
    ("m64n64k16.f32.f16.f16", (1, 1, 0, 0), False, 128, (0, 0), 0xBBFFBBFF),
    ("m64n64k16.f32.f16.f16", (1, -1, 0), True, 64, (0, 0), 0xBBFFBBFF),
    ("m64n24k16.f16.f16.f16", (-1, 1, 1, 1), False, 128, (1, 1), 0xBBFFBBFF),
    ("m64n8k8.f32.tf32.tf32", (1, 1), False, 0, (0, 0), 0xBFFFFFFF),
    ("m64n128k32.f32.e4m3.e5m2", (1, 1), True, 128, (0, 0), 0xBFBFBFBF),
    ("m64n64k32.s32.s8.u8", (), False, 32, (0, 0), 0xFFFFFFFF),
    ("m64n32k256.s32.b1.b1.and.popc", (), False, 128, (0, 0), 0xFFFFFFFF),
    ("sp.m64n64k32.f32.f16.f16", (1, 1, 0, 0), False, 128, (0, 0), 0xBBFFBBFF),
]


@pytest.mark.parametrize(("form", "more", "registers", "swizzle", "turned", "mask"), FORMS)
def test_bits_are_those_of_execute(
    form: str, more: tuple[int, ...], registers: bool, swizzle: int, turned: tuple[int, int], mask: int
) -> None:
    sparse = form.startswith("sp.")
    name = f"wgmma.mma_async.{'sp.' * sparse}sync.aligned.{form.removeprefix('sp.')}"
    data = tiles(mask=mask)
    words = [MatrixDescriptor(start=x, leading=2048, stride=max(16, swizzle) * 8, swizzle=swizzle) for x in (0, ROOM)]
    metadata = np.full(LANES, 0x44444444 if sparse else 0, np.uint32)
    count = parse_warpgroup(name).layout("D").registers
    a = data[: 4 * LANES].reshape(4, LANES)

    def body(t: Any, y: Any) -> None:
        of_a: Any = [t.register(x.reshape(1, 4, 32)) for x in a] if registers else words[0]
        also = (t.constant(0x44444444), 0) if sparse else ()
        d: Any = [t.constant(0)] * count
        t(FENCE)
        for step in range(2):
            d = t(name, d, of_a, words[1], *also, step, *more)
        t(COMMIT)
        t(WAIT, 0)
        keep(t, y, d)

    memory = data.view(np.uint8)
    of_a = a if registers else wm.SharedOperand(memory, words[0].word, transposed=bool(turned[0]))
    of_b = wm.SharedOperand(memory, words[1].word, transposed=bool(turned[1]))
    expected = np.zeros((count, LANES), np.uint32)
    for _ in range(2):
        expected = wm.execute(
            name, of_a, of_b, expected, target="sm_90a", metadata=metadata if sparse else None,
            imm_a=(more or (1, 1))[0], imm_b=(more or (1, 1))[1],
        )  # fmt: skip
    np.testing.assert_array_equal(run(body, data, count), expected)


@pytest.mark.parametrize("options", [{}, {"hazards": "strict"}, {"hazards": "off"}])
def test_descriptors_of_all_kinds_are_the_same(options: Any) -> None:
    """Numbers, records, tiles, and registers that are computed."""
    data, expected = tiles(), run(plain, tiles())

    def body(t: Any, y: Any) -> None:
        d: Any = [0] * 32
        of_b = [B.descriptor().word, B, t.constant(B.descriptor().word, "b64"), B.descriptor()]
        t(FENCE)
        for i in range(4):
            a = t.constant(A.descriptor().word, "b64") + (t.constant(32 * i) >> 4)
            b: Any = of_b[i] if i == 0 else t.constant(B.descriptor(16 * i).word, "b64")
            d = t(F16, d, a, b, t.constant(i > 0, "pred"), *SIGNS)
        t(COMMIT)
        t(WAIT, 0)
        keep(t, y, d)

    np.testing.assert_array_equal(run(body, data, **options), expected)

    def first(t: Any, y: Any, which: Any) -> None:
        t(FENCE)
        d = t(F16, [0] * 32, A, which, 0, *SIGNS)
        t(COMMIT)
        t(WAIT, 0)
        keep(t, y, d)

    found = [run(lambda t, y, x=x: first(t, y, x), data) for x in (B, B.descriptor(), B.descriptor().word)]
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_warpgroup_of_several_multiplies_alone(which: int) -> None:
    def body(t: Any, y: Any) -> None:
        with t.where(t.warpid // 4 == which):
            plain(t, y)

    np.testing.assert_array_equal(run(body, tiles(), groups=3), run(plain, tiles()))


@pytest.mark.parametrize(("first", "warp"), [(1, 1), (4, 4)])
def test_a_part_of_a_warpgroup_is_refused(first: int, warp: int) -> None:
    def body(t: Any, y: Any) -> None:
        with t.where((t.warpid >= first) & (t.warpid < first + 3)):
            plain(t, y)

    with pytest.raises(HazardError, match=f"divergent: block 0, warp {warp}, lane 0 .*four warps of a warpgroup"):
        run(body, tiles(), groups=2)


def test_products_of_one_line_are_told_apart() -> None:
    """The first is complete when one group may be pending; the second is not."""

    def body(t: Any, y: Any, last: int = 0) -> None:
        d = [group(t, [0] * 32) for _ in range(2)]
        t(WAIT, 1)
        keep(t, y, d[last])
        t(WAIT, 0)
        keep(t, y, d[1])

    np.testing.assert_array_equal(run(body, tiles()), run(plain, tiles()))
    with pytest.raises(HazardError, match="a register of D is used"):
        run(lambda t, y: body(t, y, 1), tiles())


def test_copies_of_what_is_pending_become_values() -> None:
    """By `mov` and `update`, also of two warpgroups that wait one after the other."""

    def body(t: Any, y: Any, early: bool = False) -> None:
        d: Any = [t.constant(0)] * 32
        for which in range(2):
            with t.where(t.warpid // 4 == which):
                d = [t.update(old, t("mov.b32", new)) for old, new in zip(d, group(t, d), strict=True)]
        for which in range(2 - early):
            with t.where(t.warpid // 4 == which):
                t(WAIT, 0)
        with t.where(t.warpid < 4):
            keep(t, y, d)
        with t.where(t.warpid >= 4):
            keep(t, y, d)

    def barred(t: Any, y: Any, early: bool = False) -> None:
        body(t, y + t.warpid // 4 * (4 * 32 * LANES), early)

    found = run(barred, tiles(), 64, groups=2)
    np.testing.assert_array_equal(found, np.tile(run(plain, tiles()), (2, 1)))
    with pytest.raises(HazardError, match=r"pending: .* by lane 0 of warp 4 of block 0"):
        run(lambda t, y: barred(t, y, True), tiles(), 64, groups=2)


def test_defined_lanes_are_those_that_have_waited() -> None:
    def body(t: Any, y: Any) -> None:
        d = group(t, [0] * 32)
        assert not d[0].defined.any()
        t(WAIT, 0)
        assert d[0].defined is None
        keep(t, y, d)

    run(body, tiles())


def early(t: Any, y: Any) -> None:
    d = group(t, [0] * 32)
    t("add.f32", d[3], 1.0)


def unwaited(t: Any, y: Any) -> None:
    group(t, [0] * 32)


def uncommitted(t: Any, y: Any) -> None:
    d = product(t, [0] * 32, first=True)
    t(WAIT, 0)
    keep(t, y, d)


def overwriting(t: Any, y: Any) -> None:
    d = group(t, [0] * 32)
    t("st.shared.b32", t.tid[0] * 4, 1)
    t(WAIT, 0)
    keep(t, y, d)


def another_warpgroups(t: Any, y: Any) -> None:
    """Accumulate into registers that only the other warpgroup has."""
    with t.where(t.warpid < 4):
        d = group(t, [0] * 32)
    with t.where(t.warpid >= 4):
        product(t, d)


def different(t: Any, y: Any) -> None:
    t(F16, [0] * 32, A, t.constant(B.descriptor().word, "b64") + t.warpid * 2, 0, *SIGNS)


WRONG: dict[str, tuple[Callable[..., None], dict[str, Any], str, str]] = {
    "no proxy fence": (plain, {"fence": ""}, "proxy", "no fence.proxy.async lies"),
    "fence of the wrong space": (plain, {"fence": "fence.proxy.async.global"}, "proxy", "no fence.proxy.async lies"),
    "no barrier": (plain, {"barrier": ""}, "race", "wrote it"),
    "D is used before the wait": (early, {}, "pending", "a register of D is used"),
    "no wait": (unwaited, {}, "pending", "without waiting for its product"),
    "no commit": (uncommitted, {}, "pending", "a register of D is used"),
    "a tile is overwritten": (overwriting, {}, "pending", "may still read it"),
    "registers of another warpgroup": (another_warpgroups, {"groups": 2}, "poison", "never wrote"),
    "descriptors differ": (different, {}, "divergent", "the descriptors of B are not the same"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_reported(name: str) -> None:
    body, options, kind, says = WRONG[name]
    with pytest.raises(HazardError, match=says) as error:
        run(body, tiles(), **options)
    assert error.value.hazard.kind == kind


TURNED = SharedTile(rows=64, columns=64, bits=16, swizzle=128, major="MN")
REFUSED: list[tuple[tuple[Any, ...], str]] = [
    (([0] * 16, A, B, 0, *SIGNS), r"got 16 registers; expected 32"),
    (([0] * 32, [0] * 3, B, 0, 1, 1, 0), r"got 3 registers; expected 4"),
    (([0] * 32, A, B, 0, 1, 1), r"takes .*imm-trans-b; got 37 operands"),
    (([0] * 32, A, B, 2, *SIGNS), r"scale-d is 2; expected a predicate, 0 or 1"),
    (([0] * 32, A, B, 0, 2, 1, 0, 0), r"imm-scale-a.* is 2; expected -1 or 1"),
    (([1.5] * 16 + [0] * 16, A, B, 0.5, *SIGNS), r"0.5 is not a value of a pred operand"),
    (([0] * 32, TURNED, B, 0, *SIGNS), r"a-desc is a tile that is MN-major, and imm-trans-a is 0; expected 1"),
    (([0] * 32, A, B, 0, 1, 1, 0, 1), r"b-desc is a tile that is K-major, and imm-trans-b is 1; expected 0"),
    (
        ([0] * 32, A, SharedTile(rows=32, columns=64, bits=16), 0, *SIGNS),
        r"b-desc is a tile of 32 x 64 elements of 16 bits; expected 64 x 16 of 16 bits or more, or its .descriptor\(\)",
    ),
    (([0] * 31 + [A], A, B, 0, *SIGNS), r"is SharedTile; expected a register or a number"),
    (([0] * 32, A, "tile", 0, *SIGNS), r"b-desc is str; expected a register or a number"),
    (([0] * 32, A, B, 0, 1, 1, [0, 0], 0), r"imm-trans-a: got 2 registers; expected 1"),
    (([0] * 32, A, [], 0, *SIGNS), r"b-desc: got 0 registers; expected 1"),
    (([0] * 32, A, B, 0, 1, 1, np.zeros(2), 0), r"imm-trans-a.* is ndarray; expected an immediate int"),
]


@pytest.mark.parametrize(("operands", "says"), REFUSED)
def test_wrong_operands_are_refused(operands: tuple[Any, ...], says: str) -> None:
    with pytest.raises(wm.OperandError, match=says):
        run(lambda t, y: t(F16, *operands), tiles())


def test_tiles_of_types_that_are_read_along_k_alone() -> None:
    """A tile of bytes that runs along n has no transposition to ask for."""
    turned = SharedTile(rows=64, columns=64, bits=8, swizzle=64, major="MN")
    name = "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3"
    with pytest.raises(wm.OperandError, match="b-desc is a tile that is MN-major; expected a K-major one"):
        run(lambda t, y: t(name, [0] * 32, A.descriptor(), turned, 0, 1, 1), tiles())


def test_other_targets_have_none() -> None:
    for call in ((F16, [0] * 32, A, B, 0, *SIGNS), (FENCE,)):
        with pytest.raises(wm.TargetError, match="sm_90a"):
            wm.kernel.launch(lambda t, call=call: t(*call), 1, LANES, [], target="sm_90")


def test_a_launch_may_write_unwritten_output() -> None:
    y = np.zeros((32, LANES), np.uint32)

    def kernel(t: Any, x: Any, y: Any) -> None:
        fill(t, x)
        plain(t, y)

    wm.kernel.launch(kernel, 1, LANES, [tiles(), Output(y)], target="sm_90a", shared=2 * ROOM)
    np.testing.assert_array_equal(y, run(plain, tiles()))
