"""`setp` with Boolean operators and two destinations, `set`, `slct`, `testp`, `copysign` against Python's numbers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import Array

from lab.generators import operation_inputs
from warpmma.errors import MnemonicError
from warpmma.formats import FORMATS
from warpmma.kernel import launch
from warpmma.operations import Operation, operation, with_complement
from warpmma.operations.arithmetic import comparison_results, selections

ROWS = [operation(mnemonic) for form in comparison_results.FORMS for mnemonic in form.mnemonics]
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    **{name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip
BOOLEAN: dict[str, Callable[[bool, bool], bool]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
TINIEST = {"f16": 2.0**-14, "f32": 2.0**-126}


def values(type_: str, codes: Array, ftz: bool) -> list[Any]:
    if type_ in FORMATS and type_[0] not in "su":
        found = FORMATS[type_].decode(codes).tolist()
        return [0.0 if ftz and abs(x) < TINIEST[type_] else x for x in found]
    return list((codes.view(f"int{type_[1:]}") if type_[0] == "s" else codes).tolist())


def compared(name: str, x: Any, y: Any) -> bool:
    nan = x != x or y != y
    if name in ("num", "nan"):
        return bool(nan == (name == "nan"))
    if name[:-1] in COMPARE and name.endswith("u"):
        return nan or COMPARE[name[:-1]](x, y)
    return not nan and COMPARE[name](x, y)


def compared_elements(row: Operation, given: tuple[Array, ...]) -> list[list[bool]]:
    """Of each element its comparisons, before they are combined."""
    _, name, *words = row.mnemonic.split(".")
    type_ = words[-1].removesuffix("x2")
    halves = [[(x >> s).astype(np.uint16) for x in given[:2]] for s in (0, 16)] if "x2" in words[-1] else [given[:2]]
    columns = [[values(type_, np.ascontiguousarray(x).ravel(), "ftz" in words) for x in pair] for pair in halves]
    return [[compared(name, x, y) for x, y in zip(*pair, strict=True)] for pair in columns]


def combined(row: Operation, results: list[bool], given: tuple[Array, ...]) -> list[bool]:
    function = next((BOOLEAN[word] for word in row.mnemonic.split(".") if word in BOOLEAN), None)
    if function is None:
        assert len(given) == 2
        return results
    return [function(t, c) for t, c in zip(results, given[2].ravel().tolist(), strict=True)]


def true(out: str) -> int:
    return {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000, "u16": 0xFFFF, "s16": 0xFFFF}.get(out, 0xFFFFFFFF)


@pytest.mark.parametrize("opcode", ["setp", "set"])
def test_every_row(opcode: str) -> None:
    seen: dict[str, set[bool]] = {}
    for row in ROWS:
        words = row.mnemonic.split(".")
        if words[0] != opcode:
            continue
        given = operation_inputs(row.mnemonic, 128, 3)
        results = compared_elements(row, given)
        expected = [combined(row, t, given) for t in results]
        got = [x.ravel().tolist() for x in row(*given)]
        if opcode == "setp":
            assert got == expected, row.mnemonic
        elif "x2" in words[-1]:
            one = true(words[-2].removesuffix("x2")) & 0xFFFF
            pairs = zip(*expected, strict=True)
            assert got == [[one * low | one * high << 16 for low, high in pairs]], row.mnemonic
        else:
            assert got == [[true(words[-2]) * t for t in expected[0]]], row.mnemonic
        seen.setdefault(words[1], set()).update(results[0])
    assert len(seen) == 18 and all(x == {False, True} for x in seen.values())


def test_two_destinations() -> None:
    names = ["setp.lt.s16", "setp.eq.b64", "setp.num.f64", "setp.ltu.ftz.f32", "setp.ge.and.s32", "setp.hi.xor.u64"]
    for name in [*names, "setp.leu.or.f32"]:
        row = with_complement(name)
        given = operation_inputs(name, 256, 4)
        (t,) = compared_elements(row, given)
        p, q = (x.ravel().tolist() for x in row(*given))
        assert p == combined(row, t, given) == operation(name)(*given)[0].ravel().tolist()
        assert q == combined(row, [not x for x in t], given)
        assert row.mnemonic == name and row.syntax.startswith("d0|d1, a0, a1") and with_complement(row.mnemonic) is row
        assert row.native is None  # that of one destination would give one predicate
    pair = operation("setp.lt.f16x2")
    assert with_complement(pair.mnemonic) is pair and pair.syntax == "d0|d1, a0, a1"


@pytest.mark.parametrize("row", ["setp.lt.f16", "setp.num.and.bf16", "set.lt.u32.f32", "add.f32"])
def test_what_has_one_destination(row: str) -> None:
    with pytest.raises(MnemonicError, match="has no second destination; setp has two"):
        with_complement(row)


# Selections


def floats(type_: str, codes: Array) -> list[float]:
    return [float(x) for x in FORMATS[type_].decode(codes).ravel()]


@pytest.mark.parametrize("name", [m for form in selections.FORMS for m in form.mnemonics if m.startswith("slct")])
def test_slct(name: str) -> None:
    row = operation(name)
    a, b, c = operation_inputs(name, 1024, 5)
    if name.endswith("f32"):
        first = [x >= 0 or ("ftz" in name and abs(x) < 2.0**-126) for x in floats("f32", c)]
    else:
        first = [x >= 0 for x in c.view(np.int32).ravel().tolist()]
    chosen = np.array(first).reshape(a.shape)
    assert chosen.any() and not chosen.all()
    assert np.array_equal(row(a, b, c)[0], np.where(chosen, a, b))
    assert row.needed is not None
    needed = row.needed(a, b, c)
    assert np.array_equal(needed[0], chosen) and np.array_equal(needed[1], ~chosen) and needed[2].all()


@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_testp(type_: str) -> None:
    given = operation_inputs(f"testp.finite.{type_}", 2048, 6)
    least = {"f32": 2.0**-126, "f64": 2.0**-1022}[type_]
    expected: dict[str, Callable[[float], bool]] = {
        "finite": math.isfinite, "infinite": math.isinf, "number": lambda x: x == x, "notanumber": math.isnan,
        "normal": lambda x: math.isfinite(x) and (abs(x) >= least or x == 0), "subnormal": lambda x: 0 < abs(x) < least,
    }  # fmt: skip
    for name, test in expected.items():
        (p,) = operation(f"testp.{name}.{type_}")(*given)
        assert p.ravel().tolist() == [test(x) for x in floats(type_, given[0])] and p.any() and not p.all()


@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_copysign(type_: str) -> None:
    a, b = operation_inputs(f"copysign.{type_}", 1024, 7)
    (d,) = operation(f"copysign.{type_}")(a, b)
    top = 1 << int(type_[1:]) - 1
    pairs = zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)
    assert d.ravel().tolist() == [(x & top) | (y & (top - 1)) for x, y in pairs]


def test_in_a_kernel() -> None:
    """Predicates go on into other instructions; what is not chosen need not have been written."""
    out = np.zeros(32, np.uint32)

    def kernel(t: Any, out: Any) -> None:
        p, q = t("setp.lt.f16x2", t("cvt.rn.f16x2.f32", 1.0, 3.0), t("cvt.rn.f16x2.f32", 2.0, 2.0))
        r = t("setp.lt.and.s32", t.laneid, 7, ~p)
        with t.where(r):
            small = t("set.gt.u32.s32", t.laneid, 3)
        chosen = t("slct.u32.s32", small, 5, t("selp.s32", 0, -1, r))
        t("st.global.u32", out + t.laneid * 4, chosen)
        assert q is not None

    launch(kernel, 1, 32, [out], target="sm_90a")
    assert out.tolist() == [0] * 4 + [0xFFFFFFFF] * 3 + [5] * 25
