"""`wgmma` in kernels of PTX: the bits of `warpmma.execute`, and what is wrong with mistaken kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.isa import parse_warpgroup
from warpmma.layouts import MatrixDescriptor
from warpmma.machine import HazardError

LANES = 128
ROOM = 32768  # bytes of a tile

TEXT = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 tiles, .param .u64 given, .param .u64 out, .param .u64 of_a, .param .u64 of_b)
{{
.reg .pred %p, %scale, %late; .reg .b64 %x, %y, %z, %da, %db, %at; .reg .b32 %t, %i, %v, %to, %m, %w, %a<4>;
.reg .b{width} %d<{count}>;
.shared .align 1024 .b8 tile[{bytes}];
ld.param.u64 %x, [tiles]; ld.param.u64 %y, [given]; ld.param.u64 %z, [out];
ld.param.u64 %da, [of_a]; ld.param.u64 %db, [of_b];
mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; mov.u32 %i, %t;
FILL:
mul.wide.u32 %at, %i, 4; add.u64 %at, %at, %x; ld.global.u32 %v, [%at];
mov.u32 %to, tile; mad.lo.u32 %to, %i, 4, %to; st.shared.u32 [%to], %v;
add.u32 %i, %i, 128; setp.lt.u32 %p, %i, {words}; @%p bra FILL;
{fence}
{barrier}
mul.wide.u32 %at, %t, 4; add.u64 %y, %y, %at;
{loads}
setp.eq.u32 %scale, %t, %t;
{before}
wgmma.fence.sync.aligned;
{products}
{commit}
{after}
{wait}
{then}
mul.wide.u32 %at, %t, 4; add.u64 %z, %z, %at;
{stores}
END: ret;
}}
"""
SOUND = {
    "fence": "fence.proxy.async.shared::cta;", "barrier": "bar.sync 0;", "before": "", "commit":
    "wgmma.commit_group.sync.aligned;", "after": "", "wait": "wgmma.wait_group.sync.aligned 0;", "then": "",
}  # fmt: skip


def text(name: str, *, registers: bool, more: str = "", times: int = 1, **parts: str) -> str:
    """Write a kernel: registers of C, of A if they are given, and metadata come from memory; D goes there."""
    i = parse_warpgroup(name)
    count, width = i.layout("D").registers, i.layout("D").packing.width
    fragments = [f"%d{n}" for n in range(count)] + [f"%a{n}" for n in range(4) if registers] + ["%m"] * i.sparse
    loads = [f"ld.global.b32 {x}, [%y+{4 * LANES * n}];" for n, x in enumerate(fragments)]
    d = "{" + ", ".join(fragments[:count]) + "}"
    a = "{%a0, %a1, %a2, %a3}" if registers else "%da"
    product = f"{i} {d}, {a}, %db, {'%m, 0, ' * i.sparse}%scale{more};"
    stores = [f"st.global.b32 [%z+{4 * LANES * n}], {x};" for n, x in enumerate(fragments[:count])]
    return TEXT.format(
        width=width, count=count, bytes=2 * ROOM, words=2 * ROOM // 4, loads="\n".join(loads),
        products="\n".join([product] * times), stores="\n".join(stores), **{**SOUND, **parts},
    )  # fmt: skip


def codes(name: str, rng: np.random.Generator, *, registers: bool) -> dict[str, Any]:
    """Return random operands whose sums stay small: bytes of tiles, registers, and descriptors."""
    i = parse_warpgroup(name)
    small = {"f16": 0xBBFF, "bf16": 0xBFFF, "tf32": 0xBFFFFFFF, "e4m3": 0xBF, "e5m2": 0xBF}
    fmt = i.a_type
    tiles = rng.integers(0, 1 << 32, 2 * ROOM // 4, np.uint64).astype(np.uint32).view(np.uint8)
    if fmt in small:
        words = tiles.view({8: np.uint8, 16: np.uint16, 32: np.uint32}[i.format("A").bits if fmt != "tf32" else 32])
        words &= words.dtype.type(small[fmt])
    c = rng.standard_normal((i.layout("D").registers, LANES)).astype(np.float32).view(np.uint32)
    if i.d_type == "f16":
        c = rng.standard_normal((*c.shape, 2)).astype(np.float16).view(np.uint32)[..., 0]
    if i.d_type == "s32":
        c = rng.integers(0, 1000, c.shape).astype(np.uint32)
    a = tiles[: 4 * 4 * LANES].view(np.uint32).reshape(4, LANES).copy()
    legal = np.array([0x4, 0x8, 0x9, 0xC, 0xD, 0xE], np.uint32)
    metadata = sum(legal[rng.integers(0, 6, LANES)] << np.uint32(4 * n) for n in range(8))
    return {"tiles": tiles, "c": c, "a": a if registers else None, "metadata": metadata if i.sparse else None}


FORMS = [  # what follows scale-d; whether A is in registers; the swizzle; 1 if A is transposed, plus 2 if B is
    ("m64n64k16.f32.f16.f16", ", 1, 1, 0, 0", False, 128, 0), ("m64n64k16.f32.f16.f16", ", 1, -1, 0", True, 64, 0),
    ("m64n24k16.f16.f16.f16", ", -1, 1, 1, 1", False, 128, 3),
    ("m64n256k16.f32.bf16.bf16", ", 1, 1, 0, 1", False, 32, 2), ("m64n8k8.f32.tf32.tf32", ", 1, 1", False, 0, 0),
    ("m64n96k32.f32.e4m3.e5m2", ", 1, 1", True, 128, 0),
    ("m64n128k32.f32.e4m3.e4m3", ", 1, 1", False, 64, 0), ("m64n64k32.s32.s8.u8", "", False, 32, 0),
    ("m64n32k256.s32.b1.b1.and.popc", "", False, 128, 0), ("sp.m64n64k32.f32.f16.f16", ", 1, 1, 0, 0", False, 128, 0),
    ("sp.m64n16k64.f32.e5m2.e5m2", ", 1, 1", True, 64, 0),
]  # fmt: skip


def mnemonic(form: str) -> str:
    sparse = "sp." * form.startswith("sp.")
    return f"wgmma.mma_async.{sparse}sync.aligned.{form.removeprefix('sp.')}"


def descriptor(start: int, swizzle: int) -> int:
    """Return a descriptor with whose steps no tile of a form leaves its room."""
    return MatrixDescriptor(start=start, leading=2048, stride=max(16, swizzle) * 8, swizzle=swizzle).word


def run(kernel: str, given: dict[str, Any], words: tuple[int, int], blocks: int = 1, **options: Any) -> Any:
    registers = [x.reshape(-1, LANES) for x in (given["c"], given["a"], given["metadata"]) if x is not None]
    out = np.zeros_like(given["c"])
    device = wm.Device("sm_90a")
    args = [given["tiles"].view(np.uint32), np.concatenate(registers), out, *words]
    wm.ptx.load(kernel)["k"].launch(device, blocks, LANES, args, **options)
    return out


@pytest.mark.parametrize(("form", "more", "registers", "swizzle", "turned"), FORMS)
def test_bits_are_those_of_execute(form: str, more: str, registers: bool, swizzle: int, turned: int) -> None:
    name = mnemonic(form)
    given = codes(name, np.random.default_rng(1), registers=registers)
    words = descriptor(0, swizzle), descriptor(ROOM, swizzle)
    found = run(text(name, registers=registers, more=more, times=2), given, words)
    signs = [int(x) for x in more.split(",")[1:3]] or [1, 1]
    of_a = wm.SharedOperand(given["tiles"], words[0], transposed=bool(turned & 1))
    of_b = wm.SharedOperand(given["tiles"], words[1], transposed=bool(turned & 2))
    c = given["c"]
    for _ in range(2):
        c = wm.execute(
            name, given["a"] if registers else of_a, of_b, c, target="sm_90a", metadata=given["metadata"],
            imm_a=signs[0], imm_b=signs[1],
        )  # fmt: skip
    np.testing.assert_array_equal(found, c)


F16 = mnemonic("m64n64k16.f32.f16.f16")
WORDS = descriptor(0, 128), descriptor(ROOM, 128)


def outcome(**parts: Any) -> Any:
    given = codes(F16, np.random.default_rng(2), registers=False)
    options = {x: parts.pop(x) for x in ("hazards", "seed") if x in parts}
    return run(text(F16, registers=False, more=", 1, 1, 0, 0", **parts), given, WORDS, **options)


WRONG = {
    "no proxy fence": ({"fence": ""}, "proxy", "no fence.proxy.async lies"),
    "fence of the wrong space": ({"fence": "fence.proxy.async.global;"}, "proxy", "no fence.proxy.async lies"),
    "no barrier": ({"barrier": ""}, "race", "wrote it"),
    "no wait": ({"wait": ""}, "pending", "without waiting for its product"),
    "a group too many may be pending": ({"wait": "wgmma.wait_group.sync.aligned 1;"}, "pending", "without waiting"),
    "no commit": ({"commit": ""}, "pending", "without waiting for its product"),
    "D is used before the wait": (
        {"after": "mov.b32 %v, %d0; cvt.rzi.s32.f32 %v, %v; setp.eq.s32 %late, %v, 7; @%late bra END;"},
        "pending", "a register of D is used",
    ),
    "a tile is overwritten": ({"after": "st.shared.u32 [tile], %t;"}, "pending", "may still read it"),
    "a warp leaves": (
        {"before": "setp.eq.u32 %late, %w, 3; @%late bra END;"}, "divergent", "the four warps of a warpgroup",
    ),
    "descriptors differ": (
        {"before": "setp.eq.u32 %late, %w, 2; @%late add.u64 %db, %db, 2;"}, "divergent", "the descriptors of B",
    ),
    "scale-d differs": (
        {"before": "setp.ne.u32 %scale, %w, 2;"}, "divergent", "scale-d is not the same",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_reported(name: str) -> None:
    parts, kind, says = WRONG[name]
    with pytest.raises(HazardError, match=says) as error:
        outcome(**parts)
    assert error.value.hazard.kind == kind


@pytest.mark.parametrize("options", [{}, {"seed": 1}, {"hazards": "strict"}, {"hazards": "off"}])
def test_correct_kernels_are_silent(options: dict[str, Any]) -> None:
    expected = outcome()
    for parts in (
        {"before": "setp.eq.u32 %late, %w, 1; @%late nanosleep.u32 100;"},
        {"fence": "", "barrier": "bar.sync 0; fence.proxy.async;"},
        {"wait": "wgmma.wait_group.sync.aligned 0; wgmma.wait_group.sync.aligned 0;"},
        {"after": "mov.b32 %v, %d1;", "then": "setp.eq.u32 %late, %t, 0; @%late st.shared.u32 [tile+65528], %v;"},
    ):
        np.testing.assert_array_equal(outcome(**parts, **options), expected)


def test_one_warp_waits_and_another_releases() -> None:
    """A tile is free once a warp has waited, whichever warp goes on: measured on an H200."""
    wait = """setp.ne.u32 %late, %w, 0; @%late bra OTHERS;
    wgmma.wait_group.sync.aligned 0;
    bar.sync 1, 128;
    st.shared.u32 [tile], %t;
    bra WAITED;
    OTHERS: bar.sync 1, 128;
    wgmma.wait_group.sync.aligned 0;
    WAITED:"""
    parts = {
        "wait": wait.replace("st.shared.u32 [tile], %t;", "setp.eq.u32 %late, %t, 0; @%late st.shared.u32 [tile], %t;")
    }
    np.testing.assert_array_equal(outcome(**parts), outcome())


def test_undefined_metadata_is_reported_and_read_as_on_an_h200() -> None:
    name = mnemonic("sp.m64n64k32.f32.f16.f16")
    given = codes(name, np.random.default_rng(3), registers=False)
    given["metadata"][:] = 0
    kernel = text(name, registers=False, more=", 1, 1, 0, 0")
    with pytest.raises(HazardError, match="metadata"):
        run(kernel, given, WORDS)
    with pytest.warns(UserWarning, match="metadata"):
        found = run(kernel, given, WORDS, hazards="warn")
    of_a, of_b = (wm.SharedOperand(given["tiles"], word) for word in WORDS)
    expected = wm.execute(
        name, of_a, of_b, given["c"], target="sm_90a", metadata=given["metadata"], undefined="hardware"
    )  # fmt: skip
    np.testing.assert_array_equal(found, expected)


def fifth_warp(kernel: str, wait: str) -> str:
    """Let a warp beside the warpgroup overwrite the tile, which comes to that when the four others have waited."""
    branch = "setp.eq.u32 %late, %w, 4; @%late bra FIFTH;\nmov.u32 %i, %t;"
    kernel = kernel.replace("mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; mov.u32 %i, %t;", f"{BEGIN} {branch}")
    return kernel.replace(
        "END: ret;", f"{FREES}\nbra END;\nFIFTH: bar.sync 2, 160; {wait}\nst.shared.u32 [tile], %t;\nEND: ret;"
    )


BEGIN = (
    "mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; setp.eq.u32 %p, %t, 0; @%p mbarrier.init.shared.b64 [free], 1; bar.sync 1;"
)
FREES = "setp.eq.u32 %p, %t, 64; @%p mbarrier.arrive.shared::cta.b64 _, [free];"


@pytest.mark.parametrize("waits", [True, False])
def test_a_tile_is_free_for_a_thread_that_knows_of_a_wait(waits: bool) -> None:
    """One thread of warp 2 frees the tile for all four warps; without its arrival the reads are unordered."""
    given = codes(F16, np.random.default_rng(2), registers=False)
    kernel = text(F16, registers=False, more=", 1, 1, 0, 0", barrier="bar.sync 2, 160;")
    kernel = kernel.replace("ld.param.u64 %x, [tiles]", ".shared .align 8 .b64 free;\nld.param.u64 %x, [tiles]")
    poll = "POLL: mbarrier.try_wait.parity.shared::cta.b64 %p, [free], 0; @!%p bra POLL; setp.ne.u32 %p, %t, 128;"
    late = "nanosleep.u32 100; nanosleep.u32 100; setp.ne.u32 %p, %t, 128;"
    kernel = fifth_warp(kernel, f"{poll if waits else late} @%p bra END;")
    out = np.zeros_like(given["c"])
    args = [given["tiles"].view(np.uint32), given["c"], out, *WORDS]
    launch = wm.ptx.load(kernel)["k"].launch
    if waits:
        report = launch(wm.Device("sm_90a"), 1, LANES + 32, args)
        np.testing.assert_array_equal(out, outcome())
        assert not report.hazards and not report.harmless
    else:
        with pytest.raises(HazardError) as error:
            launch(wm.Device("sm_90a"), 1, LANES + 32, args)
        assert error.value.hazard.kind == "race" and "no wgmma.wait_group lies between" in str(error.value)


@pytest.mark.parametrize("times", [1, 2, 5])
def test_what_was_waited_for_is_no_poison(times: int) -> None:
    given = codes(F16, np.random.default_rng(2), registers=False)
    part = f"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{', '.join(f'%d{i}' for i in range(32))}}}"
    loop = f"mov.u32 %i, 0; LOOP:\n{part}, %da, %db, %scale, 1, 1, 0, 0;\nadd.u32 %i, %i, 1;"
    loop += f" setp.lt.u32 %p, %i, {times}; @%p bra LOOP;"
    kernel = text(F16, registers=False, times=0).replace(
        "wgmma.fence.sync.aligned;", f"wgmma.fence.sync.aligned;\n{loop}"
    )
    args = [given["tiles"].view(np.uint32), given["c"], np.zeros_like(given["c"]), *WORDS]
    report = wm.ptx.load(kernel)["k"].launch(wm.Device("sm_90a"), 1, LANES, args)
    assert not report.hazards and not report.harmless


def two_groups(wait: int, used: str, between: str = "") -> str:
    """Return a kernel with two groups of one line, whose registers are used when some may be pending."""
    regs = [", ".join(f"%{name}{i}" for i in range(32)) for name in "de"]
    products = " ".join(f"{F16} {{{x}}}, %da, %db, 0, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;" for x in regs)
    waits, adds = f"wgmma.wait_group.sync.aligned {wait}; {between}", f"add.f32 %d0, {used}, {used};"
    kernel = text(F16, registers=False, times=0, commit=products, after=waits, then=adds)
    return kernel.replace(".reg .b32 %d<32>;", ".reg .b32 %d<32>, %e<32>, %f<2>;")


def launched(kernel: str) -> Any:
    given = codes(F16, np.random.default_rng(2), registers=False)
    args = [given["tiles"].view(np.uint32), given["c"], np.zeros_like(given["c"]), *WORDS]
    return wm.ptx.load(kernel)["k"].launch(wm.Device("sm_90a"), 1, LANES, args)


def test_products_of_one_line_are_told_apart() -> None:
    """As where a function of CUDA C++ has the instruction, and a kernel calls it twice."""
    kernel = two_groups(1, "%f0", "add.f32 %f0, %d0, %d1;")
    assert len({line for line, x in enumerate(kernel.splitlines()) if "mma_async" in x}) == 1
    report = launched(kernel)
    assert not report.hazards and not report.harmless


@pytest.mark.parametrize(
    "between", ["add.f32 %f0, %e0, %e1;", "mov.b32 %f1, %e0; add.f32 %f0, %f1, %f1;", "and.b32 %f0, %e0, -2;"]
)
def test_what_is_computed_too_early_stays_wrong(between: str) -> None:
    """A wait that comes later makes values of the registers of D, and of nothing that was computed from them."""
    with pytest.raises(HazardError, match="a register of D is used") as error:
        launched(two_groups(1, "%f0", between))
    assert error.value.hazard.kind == "pending"
    assert not launched(two_groups(1, "%d0", between)).hazards


def test_a_copy_of_a_pending_register_is_a_value_after_the_wait() -> None:
    report = launched(two_groups(1, "%f0", "mov.b32 %f0, %e0;"))
    assert not report.hazards and not report.harmless


@pytest.mark.parametrize("options", [{}, {"hazards": "strict"}, {"seed": 1}])
def test_warpgroups_that_multiply_at_different_lines(options: dict[str, Any]) -> None:
    """Both write the same registers; each may accumulate into its own, and they are values when it has waited."""
    given = codes(F16, np.random.default_rng(2), registers=False)
    kernel = text(F16, registers=False, more=", 1, 1, 0, 0", then="@%late bra END;")
    product = next(line for line in kernel.splitlines() if line.startswith("wgmma.mma_async"))
    apart = (
        f"setp.ge.u32 %late, %t, 128; @%late bra OTHERS;\n{product}\nbra BOTH;\nOTHERS:\n{product}\nBOTH: bar.sync 0;"
    )
    kernel = kernel.replace(product, f"{apart}\n{product}")
    out = np.zeros_like(given["c"])
    args = [given["tiles"].view(np.uint32), np.concatenate([given["c"]] * 2), out, *WORDS]
    report = wm.ptx.load(kernel)["k"].launch(wm.Device("sm_90a"), 1, 2 * LANES, args, **options)
    assert not report.hazards and not report.harmless
    np.testing.assert_array_equal(out, run(text(F16, registers=False, more=", 1, 1, 0, 0", times=2), given, WORDS))
