"""`wgmma` in kernels of PTX: the bits of `warpmma.execute`, and what is wrong with mistaken kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from warpgroup_kernels import F16, FORMS, LANES, ROOM, WORDS, codes, descriptor, mnemonic, run, text

import warpmma as wm
from warpmma.machine import HazardError


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
    for hazards in ("warn", "off"):  # blocks that read alike; what they write is the same
        several = run(text(name, registers=registers, more=more, times=2), given, words, 3, hazards=hazards)
        np.testing.assert_array_equal(several, c)


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
