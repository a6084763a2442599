"""What ptxas fuses, as its machine code showed it: docs/specification/contraction.md."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from warpmma import Device
from warpmma.arithmetic import approximate
from warpmma.errors import OperandError
from warpmma.operations import divided_factors, operation
from warpmma.ptx import Function, load, read
from warpmma.ptx.contraction.fusing import Contraction, contracted
from warpmma.ptx.flow.fusion_regions import traced
from warpmma.ptx.text.syntax import Label, Statement

REGISTERS = """.reg .f32 %f<40>; .reg .f64 %d<20>; .reg .b16 %h<20>; .reg .b32 %r<20>; .reg .b64 %rd<20>;
    .reg .pred %p<5>;"""
STORED = "st.global.f32 [p], %f20;"
P = "mul.f32 %f10, %f0, %f1;"


def function(text: str) -> Function:
    head = ".version 8.0 .target sm_80 .address_size 64 .entry k(.param .u64 p)"
    return read(f"{head} {{ {REGISTERS} {text} }}").functions["k"]


def made(text: str, target: str = "sm_90") -> Contraction:
    return contracted(function(text), target)


def mnemonics(text: str, target: str = "sm_90") -> list[str]:
    body = made(text, target).function.body
    return [one.mnemonic for one in body if isinstance(one, Statement) and not one.mnemonic.startswith(("st.", "ld."))]


def written(text: str) -> list[str]:
    """Every fused multiply-add with its operands' names."""
    return [
        " ".join([one.mnemonic, *(str(getattr(x, "name", getattr(x, "value", x))) for x in one.operands)])
        for one in made(text).function.body
        if isinstance(one, Statement) and not one.mnemonic.startswith(("st.", "ld."))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add.f32 %f20, %f10, %f2;", ["fma.rn.f32 %f20 %f0 %f1 %f2"]),
        ("add.f32 %f20, %f2, %f10;", ["fma.rn.f32 %f20 %f0 %f1 %f2"]),
        ("sub.f32 %f20, %f10, %f2;", ["neg.f32 %fused b32 0 %f2", "fma.rn.f32 %f20 %f0 %f1 %fused b32 0"]),
        ("sub.f32 %f20, %f2, %f10;", ["neg.f32 %fused b32 0 %f0", "fma.rn.f32 %f20 %fused b32 0 %f1 %f2"]),
        ("add.sat.f32 %f20, %f10, %f2;", ["fma.rn.sat.f32 %f20 %f0 %f1 %f2"]),
        ("neg.f32 %f11, %f10; sub.f32 %f20, %f2, %f11;", ["fma.rn.f32 %f20 %f0 %f1 %f2"]),
        ("mov.b32 %r1, %f10; mov.b32 %f11, %r1; add.f32 %f20, %f11, %f2;", ["fma.rn.f32 %f20 %f0 %f1 %f2"]),
        ("mul.f32 %f11, %f10, 0f3F800000; add.f32 %f20, %f11, %f2;", ["fma.rn.f32 %f20 %f0 %f1 %f2"]),
        (
            "mov.f32 %f0, %f3; add.f32 %f20, %f10, %f0;",
            ["mov.b32 %fused b32 0 %f0", "mov.f32 %f0 %f3", "fma.rn.f32 %f20 %fused b32 0 %f1 %f0"],
        ),
        ("mul.f32 %f12, %f3, %f4; add.f32 %f20, %f10, %f12;", ["mul.f32 %f12 %f3 %f4", "fma.rn.f32 %f20 %f0 %f1 %f12"]),
    ],
)
def test_fused(text: str, expected: list[str]) -> None:
    assert written(f"{P} {text} {STORED}") == expected


APART = ["mul.f32", "add.f32"]


@pytest.mark.parametrize(
    "text",
    [
        "add.rn.f32 %f20, %f10, %f2;",
        "add.rz.f32 %f20, %f10, %f2;",
        "add.ftz.f32 %f20, %f10, %f2;",
        "add.f32 %f20, %f10, %f10;",
        "add.f32 %f20, %f10, %f2; st.global.f32 [p+4], %f10;",
        "add.f32 %f20, %f10, %f2; @%p1 st.global.f32 [p+4], %f10;",
        "abs.f32 %f11, %f10; add.f32 %f20, %f11, %f2;",
        "neg.ftz.f32 %f11, %f10; add.f32 %f20, %f11, %f2;",
        "@%p1 bra L; add.f32 %f20, %f10, %f2; L:",
        "div.s32 %r1, %r2, %r3; st.global.b32 [p+4], %r1; add.f32 %f20, %f10, %f2;",
        "fence.acq_rel.gpu; add.f32 %f20, %f10, %f2;",
        "@%p1 bar.sync 0; add.f32 %f20, %f10, %f2;",
        "call f; add.f32 %f20, %f10, %f2;",
    ],
)
def test_not_fused(text: str) -> None:
    assert not made(f"{P} {text} {STORED}").fused


@pytest.mark.parametrize(
    "text",
    [
        "bar.sync 0; add.f32 %f20, %f10, %f2;",
        "L: add.f32 %f20, %f10, %f2;",
        "bra.uni L; L: add.f32 %f20, %f10, %f2;",
        "max.f32 %f12, %f10, %f3; add.f32 %f20, %f10, %f2;",
        "mov.f32 %f20, %f3; @%p1 add.f32 %f20, %f10, %f2;",
        "div.u32 %r1, %r2, %r3; st.global.b32 [p+4], %r1; add.f32 %f20, %f10, %f2;",
        "atom.global.add.u32 %r1, [p], 1; add.f32 %f20, %f10, %f2;",
        "fence.proxy.async; add.f32 %f20, %f10, %f2;",
    ],
)
def test_what_stands_between_and_does_not_part(text: str) -> None:
    assert len(made(f"{P} {text} {STORED}").fused) == 1


def test_a_mask_that_is_not_known_parts_before_sm_90() -> None:
    text = f"{P} shfl.sync.bfly.b32 %r1, %r2, 1, 31, %r3; add.f32 %f20, %f10, %f2; {STORED}"
    assert [len(made(text, target).fused) for target in ("sm_80", "sm_90")] == [0, 1]
    known = f"mov.u32 %r3, -1; {text}"
    assert len(made(known, "sm_80").fused) == 1


def test_every_sum_of_a_product_is_fused() -> None:
    text = f"{P} add.f32 %f11, %f10, %f2; sub.f32 %f20, %f10, %f3; st.global.f32 [p+4], %f11; {STORED}"
    assert mnemonics(text) == ["fma.rn.f32", "neg.f32", "fma.rn.f32"]


def test_a_product_that_something_unwanted_reads_is_kept() -> None:
    assert mnemonics(f"{P} add.f32 %f20, %f10, %f2; max.f32 %f12, %f10, %f3; {STORED}") == [
        "mul.f32",
        "fma.rn.f32",
        "max.f32",
    ]


@pytest.mark.parametrize("type_", ["f64", "f16", "f16x2"])
def test_types(type_: str) -> None:
    r, kind = {"f64": ("%d", "b64"), "f16": ("%h", "b16"), "f16x2": ("%r", "b32")}[type_]
    text = f"mul.{type_} {r}4, {r}1, {r}2; add.{type_} {r}5, {r}4, {r}3; st.global.{kind} [p], {r}5;"
    assert mnemonics(text) == [f"fma.rn.{type_}"]


def test_constants_are_folded_instead() -> None:
    text = f"mov.f32 %f5, 0f40490FDB; mul.f32 %f10, %f5, 0f40490FDB; add.f32 %f20, %f10, %f2; {STORED}"
    assert not made(text).fused


def test_the_last_multiplication_of_a_division_is_a_product() -> None:
    found = made(f"div.full.f32 %f10, %f0, %f1; add.f32 %f20, %f10, %f2; {STORED}")
    assert [one.mnemonic for one in found.function.body if isinstance(one, Statement)] == [
        *("div.full.f32 factors", "fma.rn.f32", "st.global.f32")
    ]


LOOP = """L: {pragma} add.f32 %f2, %f10, %f2; mul.f32 %f10, %f0, %f1; add.s32 %r1, %r1, 1; setp.lt.s32 %p1, %r1, %r2;
    @%p1 bra L; mov.f32 %f20, %f2;"""


def test_what_goes_around_a_loop_that_may_be_unrolled_is_open() -> None:
    found = made(LOOP.format(pragma="") + STORED)
    assert not found.fused and [one.mnemonic for one in found.open] == ["add.f32"]
    kept = made(LOOP.format(pragma='.pragma "nounroll";') + STORED)
    assert not kept.fused and not kept.open


def test_within_a_loop_products_are_fused() -> None:
    text = LOOP.replace("add.f32 %f2, %f10, %f2; mul.f32 %f10, %f0, %f1;", f"{P} add.f32 %f2, %f10, %f2;")
    found = made(text.format(pragma="") + STORED)
    assert len(found.fused) == 1 and not found.open
    assert any(isinstance(one, Label) for one in found.function.body)


def test_a_quotient_is_the_product_of_its_factors() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 2**32, 4096, np.uint32) for _ in range(2))
    for form in ("div.full.f32", "div.full.ftz.f32", "div.approx.f32", "div.approx.ftz.f32"):
        factors = divided_factors(form).compute(x, y)
        (whole,) = operation(f"mul{'.ftz' * ('ftz' in form)}.f32").compute(*factors)
        np.testing.assert_array_equal(whole, approximate(form, x, y))


def test_only_approximate_divisions_have_factors() -> None:
    names: tuple[Any, ...] = ("div.rn.f32", "ex2.approx.f32", 5)
    for name in names:
        with pytest.raises(OperandError, match=r"is not an approximate division: expected one of div\.approx"):
            divided_factors(name)


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("mul.f32 %f10, %f0, %f1; sub.f32 %f20, %f10, %f2;", lambda a, b, c: a * b - c),
        ("mul.f32 %f0, %f0, %f1; neg.f32 %f11, %f0; add.f32 %f20, %f11, %f2;", lambda a, b, c: c - a * b),
    ],
)
def test_launches_contract_unless_they_are_told_not_to(text: str, exact: Callable[..., Any]) -> None:
    head = ".version 8.0 .target sm_80 .address_size 64 .entry k(.param .u64 p)"
    loads = "".join(f"ld.global.f32 %f{i}, [%rd1+{128 * i}];" for i in range(3))
    module = load(
        f"{head} {{ {REGISTERS} ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;"
        f"add.u64 %rd1, %rd1, %rd2; {loads} {text} st.global.f32 [%rd1], %f20; ret; }}"
    )
    x = np.random.default_rng(1).standard_normal((3, 32)).astype(np.float32)
    fused = exact(*x.astype(np.float64)).astype(np.float32)  # the exact result has at most 53 bits
    apart = x[2] * 0 + exact(*x)
    for contract, expected in (("ptxas", fused), ("off", apart)):
        device = Device("sm_90")
        memory = device.array(x)
        module["k"].launch(device, 1, 32, [memory], contract=contract)
        np.testing.assert_array_equal(memory.numpy()[0], expected)


def test_a_later_block_of_the_same_turn_is_never_joined() -> None:
    text = (
        f"""L: {P} setp.gt.f32 %p1, %f10, %f2; @%p1 bra END; sub.f32 %f0, %f10, %f3; bra L; END: mov.f32 %f20, %f10;"""
    )
    found = made(text + STORED)
    assert not found.fused and not found.open


def test_a_sum_that_only_other_blocks_use_is_open() -> None:
    sums = "add.f32 %f20, %f10, %f2; @%p1 bra L; sub.f32 %f21, %f10, %f3; st.global.f32 [p+4], %f21; L:"
    assert [one.mnemonic for one in made(f"{P} {sums} {STORED}").open] == ["add.f32"]
    assert not made(f"{P} {sums.replace('@', 'st.global.f32 [p+8], %f20; @')} {STORED}").open


def test_a_sum_that_only_other_blocks_use_through_a_neg_is_open() -> None:
    """As in a random kernel, where ptxas made it again, fused, for one of its uses."""
    sums = "sub.f32 %f12, %f2, %f10; neg.f32 %f20, %f12; @%p1 bra L; max.f32 %f13, %f10, %f12; L:"
    sums = sums.replace("L:", "st.global.f32 [p+4], %f13; L:")
    assert [one.mnemonic for one in made(f"{P} {sums} {STORED}").open] == ["sub.f32"]
    assert not made(f"{P} {sums.replace('@', 'st.global.f32 [p+8], %f20; @')} {STORED}").open


def test_blocks_in_which_nothing_counts_still_run() -> None:
    text = f"{P} @%p1 bra L; max.f32 %f12, %f10, %f3; mov.f32 %f0, %f3; L: add.f32 %f20, %f10, %f2; {STORED}"
    assert mnemonics(text) == ["mov.b32", "mul.f32", "bra", "max.f32", "mov.f32", "fma.rn.f32"]


def test_products_with_one_use_are_fused_first() -> None:
    """As in three random kernels, at every target: the other product is then added, and fused nowhere."""
    products = f"{P} mul.f32 %f11, %f3, %f4;"
    sums = "add.f32 %f12, %f10, %f2; sub.f32 %f20, %f10, %f11; st.global.f32 [p+4], %f12;"
    assert mnemonics(f"{products} {sums} {STORED}") == ["mul.f32", "add.f32", "neg.f32", "fma.rn.f32"]


def test_of_products_with_several_uses_the_earlier_sum_goes_first() -> None:
    text = f"""{P} mul.f32 %f11, %f3, %f4; sub.f32 %f12, %f11, %f2; sub.f32 %f13, %f10, %f11; add.f32 %f20, %f10, %f5;
        st.global.f32 [p+4], %f12; st.global.f32 [p+8], %f13;"""
    assert mnemonics(text + STORED) == ["mul.f32", "neg.f32", "fma.rn.f32", "neg.f32", "fma.rn.f32", "fma.rn.f32"]


def test_what_is_wanted_behind_blocks_takes_a_bit_for_each_register() -> None:
    """As many registers as blocks, all wanted behind all of them: sets would take some 60 bytes for each of both."""
    number = 400
    jumps = "".join(f"@%p1 bra L{i}; add.f32 %f0, %f0, %f{i}; L{i}: " for i in range(number))
    sums = "".join(f"add.f32 %f0, %f0, %f{i};" for i in range(number))
    text = f".reg .f32 %f<{number}>; .reg .pred %p<2>; .reg .b64 %rd<2>; {jumps} {sums} st.global.f32 [%rd1], %f0;"
    body = read(f".version 8.0 .target sm_80 .entry k() {{ {text} }}").functions["k"]
    tracemalloc.start()
    try:
        flow = traced(body, "sm_80")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(flow.wanted) > number and flow.wanted[0].bit_count() >= number
    assert held < 4 << 20
