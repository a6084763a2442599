"""Video instructions against Python's integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from oracles import needs
from ptxas_cases import refused, statement

from lab.generators import operation_inputs
from warpmma.errors import MnemonicError
from warpmma.operations import Operation, operation, with_selectors
from warpmma.operations.arithmetic import video, video_pairs

COMPARE = {"eq": "__eq__", "ne": "__ne__", "lt": "__lt__", "le": "__le__", "gt": "__gt__", "ge": "__ge__"}
SCALAR = [("", "", "", ""), ("", "b1", "h1", ""), ("b2", "", "h0", ""), ("h1", "b3", "", "")]
MULTIPLIED = [*SCALAR[:2], ("", "-h0", "b1", ""), ("", "", "-", ""), ("", "-", "-b2", ""), ("", "h1", "", "-")]
PAIRS = {"2": [("",) * 4, ("h1", "h03", "h31", ""), ("h0", "", "h22", "")],
         "4": [("",) * 4, ("b20", "b7531", "b0426", ""), ("b3", "b1111", "", "")]}  # fmt: skip


def rows(module: Any) -> list[Operation]:
    return [operation(mnemonic) for form in module.FORMS for mnemonic in form.mnemonics]


def signed(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def picked(x: int, selector: str, type_: str) -> int:
    bits = {"b": 8, "h": 16, "": 32}[selector[:1]]
    code = x >> int(selector[1:] or 0) * bits & ((1 << bits) - 1)
    return signed(code, bits) if type_[0] == "s" else code


def exact(words: Sequence[str], a: int, b: int) -> int:
    op = words[0].rstrip("24")
    if op in ("vshl", "vshr"):
        count = min(b, 32) if "clamp" in words else b % 32
        return a << count if op == "vshl" else a >> count
    total = a + b
    return {
        "vadd": total, "vsub": a - b, "vabsdiff": abs(a - b), "vmin": min(a, b), "vmax": max(a, b),
        "vavrg": (total + 1) >> 1 if total >= 0 else total >> 1,
        "vset": int(getattr(a, COMPARE[words[3]])(b)) if op == "vset" else 0,
    }[op]  # fmt: skip


def clamped(x: int, bits: int, sign: bool) -> int:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if sign else (0, (1 << bits) - 1)
    return min(max(x, low), high)


def scalar(words: Sequence[str], selectors: Sequence[str], a: int, b: int, c: int = 0) -> int:
    types = words[1:3] if words[0] == "vset" else words[2:4]
    x = exact(words, picked(a, selectors[1], types[0]), picked(b, selectors[2], types[1]))
    target, sign = selectors[0], words[1][0] == "s"
    if "sat" in words:
        bits = {"b": 8, "h": 16, "": 32}[target[:1]]
        if words[0] in ("vshl", "vshr"):
            x = clamped(signed(x, 34), 32, sign)
        elif target:
            x = x if 0 <= x < 1 << (bits - sign) else (1 << (bits - sign)) - 1
        else:
            x = clamped(x, 32, True) if sign else max(x, 0)
    if words[-1] in ("min", "max"):
        if words[0] in ("vadd", "vsub") or (words[0][:3] == "vsh" and "sat" in words):
            x = signed(x, 32)
        x = signed(x, 64)
        choose = min if words[-1] == "min" else max
        return choose(x, signed(c, 32)) if sign else choose(x % (1 << 64), c)
    if words[-1] == "add":
        return x + c
    if not target:
        return x
    bits = {"b": 8, "h": 16}[target[0]]
    mask = ((1 << bits) - 1) << int(target[1]) * bits
    return (c & ~mask) | ((x if target == "h1" else x << int(target[1]) * bits) & mask)


def multiplied(words: Sequence[str], selectors: Sequence[str], a: int, b: int, c: int) -> int:
    x, y = (signed(picked(v, s.lstrip("-"), t), 32) for v, s, t in zip((a, b), selectors[1:3], words[2:4], strict=True))
    turned = (selectors[1][:1] == "-") != (selectors[2][:1] == "-")
    addend = -signed(c, 32) if selectors[3] == "-" else signed(c, 32)
    total = (-x * y if turned else x * y) + addend + ("po" in words)
    sign = "s32" in words[2:4] or turned or selectors[3] == "-"
    shift = 7 if "shr7" in words else 15 if "shr15" in words else 0
    result = total >> shift if sign else signed(total % (1 << 64) >> shift, 64)
    return clamped(result, 32, sign) if "sat" in words else result


def paired(words: Sequence[str], selectors: Sequence[str], a: int, b: int, c: int) -> int:
    number = int(words[0][-1])
    bits, letter = 32 // number, "h" if number == 2 else "b"
    low, high = ("10", "32") if number == 2 else ("3210", "7654")
    mask, first, second = (s[1:] or plain for s, plain in zip(selectors[:3], (low, low, high), strict=True))
    types = words[1:3] if words[0][:4] == "vset" else words[2:4]
    total, word = c, 0
    for i in range(number):
        x, y = (
            picked((a, b)[int(s[-1 - i]) // number], f"{letter}{int(s[-1 - i]) % number}", t)
            for s, t in zip((first, second), types, strict=True)
        )
        r = exact(words, x, y)
        r = clamped(r, bits, words[1][0] == "s") if "sat" in words else r
        total += r if str(i) in mask else 0
        word |= ((r if str(i) in mask else c >> i * bits) & ((1 << bits) - 1)) << i * bits
    return total if "add" in words else word


def check(row: Operation, selectors: Sequence[str], reference: Any) -> None:
    given = list(operation_inputs(row.mnemonic, 96, 1))
    given += [given[0][::-1] ^ np.uint32(0x40)] * (len(row.inputs) - len(given))
    (d,) = row(*given)
    words = row.mnemonic.split(".")
    lanes = zip(*(x.ravel().tolist() for x in given), strict=True)
    expected = [reference(words, selectors, *lane) & 0xFFFFFFFF for lane in lanes]
    assert d.ravel().tolist() == expected, (row.mnemonic, selectors)


@pytest.mark.parametrize("opcode", ["vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset"])
def test_one_value(opcode: str) -> None:
    for row in rows(video):
        words = row.mnemonic.split(".")
        if words[0] == opcode:
            check(row, SCALAR[0], scalar)
            for selectors in SCALAR[1 : 2 if words[-1] in ("add", "min", "max") else 4]:
                check(with_selectors(row.mnemonic, selectors), selectors, scalar)


def test_multiplication() -> None:
    for row in rows(video):
        if row.mnemonic.startswith("vmad"):
            for selectors in MULTIPLIED[: 2 if ".po" in row.mnemonic else 6]:
                check(with_selectors(row.mnemonic, selectors), selectors, multiplied)


@pytest.mark.parametrize("number", ["2", "4"])
def test_several_values(number: str) -> None:
    for row in rows(video_pairs):
        if row.mnemonic.split(".")[0].endswith(number):
            for selectors in PAIRS[number]:
                check(with_selectors(row.mnemonic, selectors), selectors, paired)


def test_what_is_written() -> None:
    assert operation("vadd.u32.u32.u32").syntax == "d0, a0, a1" and operation("vset4.u32.u32.eq").syntax.count("a") == 3
    row = with_selectors("vsub.s32.s32.s32.sat", ["b3", "", "h1"], "sm_90")
    assert row.syntax == "d0.b3, a0, a1.h1, a2" and row is with_selectors("vsub.s32.s32.s32.sat", ("b3", "", "h1", ""))
    assert with_selectors("vadd4.s32.u32.s32.add", ("b20", "b7531", "")).syntax == "d0.b20, a0.b7531, a1, a2"


@pytest.mark.parametrize(
    ("mnemonic", "selectors"),
    [
        ("add.u32", ("", "b0", "")), ("vadd.u32.u32.u32", ("", "b4", "")), ("vadd.u32.u32.u32", ("b0", "h10", "")),
        ("vadd.u32.u32.u32.add", ("b0", "", "")), ("vadd.u32.u32.u32", ("", "-", "")), ("vadd.u32.u32.u32", "b0"),
        ("vadd.u32.u32.u32", ("", "", "", "b0")), ("vmad.u32.u32.u32", ("b0", "", "")), ("vadd.u32.u32.u32", ("",)),
        ("vmad.u32.u32.u32.po", ("", "-", "", "")), ("vadd2.u32.u32.u32", ("h01", "", "")),
        ("vadd2.u32.u32.u32", ("", "h4", "")), ("vadd4.u32.u32.u32", ("", "b8000", "")), ("vset2.u32.u32.eq", None),
        ("vadd4.u32.u32.u32", ("", "h10", "")), ("vadd2.u32.u32.u32", ("", "", "", "h1")),
        ("vadd.u32.u32.u32", [1, 2, 3]),
    ],
)  # fmt: skip
def test_selectors_that_ptx_does_not_have(mnemonic: str, selectors: Any) -> None:
    with pytest.raises(MnemonicError, match=r"has no selectors .*: those of the destination, a, b and c"):
        with_selectors(mnemonic, selectors)


@needs("ptxas")
def test_selectors_assemble() -> None:
    chosen = [r for r in rows(video) if r.mnemonic.split(".")[0] != "vmad" and r.mnemonic.count("32") == 3]
    cases = [with_selectors(r.mnemonic, s) for r in chosen for s in SCALAR[:2]]
    cases += [with_selectors("vmad.s32.u32.u32.sat", s) for s in MULTIPLIED]
    cases += [with_selectors(f"vavrg{n}.u32.s32.s32.sat", s) for n in "24" for s in PAIRS[n]]
    assert refused([statement(row) for row in cases], "sm_75") == {}
