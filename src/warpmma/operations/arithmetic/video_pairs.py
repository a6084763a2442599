"""Video instructions of two halves or four bytes: `vadd2`, `vsub4`, `vavrg2`, `vabsdiff4`, `vmin2`, `vmax4`, `vset2`...

The rules (PTX ISA 9.1: SIMD Video Instructions; ptxas expands them into other instructions, as in module `video`):

1. Elements are the halves (`2`) or bytes (`4`) of a word. A selector picks each of a's or b's elements from the four
   halves or eight bytes of b:a, numbered from 0, the element in the low bits last: `.h10` and `.b3210` are a
   unchanged, the default of a, and `.h32` and `.b7654` are b.
2. Results are exact: sum, difference, average (rounded up if it is not negative, otherwise down), distance, minimum,
   maximum, or 1 or 0 for a comparison. `.sat` clamps them to a half or byte of the destination's signedness.
3. The destination's mask names elements, the low ones last: `.h1`, `.b20`; by default all. The others come from c.
4. `.add` adds the elements that the mask names to c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np

from ..._arrays import Array
from ..elements import operands
from ..forms import Form
from ..measurements import OPERATIONS, VARIANTS, measured
from ..records import Operation
from ..value_forms import Words
from .video import EMULATED

Selectors = tuple[str, ...]

_PLAIN = {2: ("h10", "h10", "h32"), 4: ("b3210", "b3210", "b7654")}


def _average(a: Array, b: Array) -> Array:
    total = a + b
    return (total + (total >= 0)) >> 1


_COMPUTE: dict[str, Callable[[Array, Array], Array]] = {
    "vadd": np.add, "vsub": np.subtract, "vavrg": _average, "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.minimum, "vmax": np.maximum,
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def _elements(a: Array, b: Array, selector: str, signed: bool) -> list[Array]:
    """Rule 1: int64 of each element, the lowest first."""
    bits = 16 if selector[0] == "h" else 8
    pair = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
    codes = [(pair >> np.uint64(int(i) * bits)).astype(f"uint{bits}") for i in reversed(selector[1:])]
    return [(code.view(f"int{bits}") if signed else code).astype(np.int64) for code in codes]


def _compute(words: Words, selectors: Selectors, a: Array, b: Array, c: Array) -> tuple[Array]:
    number = int(words[0][-1])
    bits = 32 // number
    mask, first, second = (x or plain for x, plain in zip(selectors, _PLAIN[number], strict=False))
    types = words[1:3] if words[0].startswith("vset") else words[2:4]
    function = _COMPUTE[words[3] if words[0].startswith("vset") else words[0][:-1]]
    x, y = (_elements(a, b, s, t[0] == "s") for s, t in zip((first, second), types, strict=True))
    results = [function(p, q).astype(np.int64) for p, q in zip(x, y, strict=True)]
    if "sat" in words:
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if words[1][0] == "s" else (0, (1 << bits) - 1)
        results = [np.clip(r, low, high) for r in results]
    named = [str(i) in mask[1:] for i in range(number)]
    if "add" in words:
        return (sum((r for r, n in zip(results, named, strict=True) if n), c.astype(np.int64)).astype(np.uint32),)
    word, ones = np.zeros_like(c), np.uint32((1 << bits) - 1)
    for i, (result, name) in enumerate(zip(results, named, strict=True)):
        at = np.uint32(i * bits)
        word = word | ((result.astype(np.uint32) & ones) << at if name else c & (ones << at))
    return (word,)


def _fields(words: Words) -> dict[str, Any]:
    """Return the fields of a row that the words of a mnemonic determine without selectors."""
    return {
        **operands("b32 b32 b32 -> b32", words),
        "compute": partial(_compute, words, ("",) * 3),
        "variant": partial(_selected, words),
        "numbers": False,
    }


def _masks(letter: str, number: int) -> set[str]:
    """Rule 3: numbers of elements, descending."""
    every = [str(i) for i in reversed(range(number))]
    return {"", *(letter + "".join(x) for n in range(1, number + 1) for x in combinations(every, n))}


@cache
def _selected(words: Words, row: Operation, selectors: Selectors) -> Operation | None:
    """Return the row with selectors: a mask for the destination, elements for a and b; None if PTX has none."""
    if not selectors:
        return None
    number = int(words[0][-1])
    letter, digits = ("h", "0123") if number == 2 else ("b", "01234567")
    mask, *sources, third = selectors
    picked = all(not s or (s[0] == letter and len(s) == number + 1 and set(s[1:]) <= set(digits)) for s in sources)
    if not picked or third or mask not in _masks(letter, number):
        return None
    return replace(row, compute=partial(_compute, words, selectors[:3]), native=None, selectors=selectors)


_T = ".<u32 s32>"
_form = partial(
    Form, kind=Operation, fields=_fields, ptx=(3, 0), left_open=EMULATED,
    evidence=measured("SIMD Video Instructions", f"{OPERATIONS}, {VARIANTS}"),
)  # fmt: skip
_OPCODES = " ".join(f"{name}{n}" for name in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax") for n in (2, 4))

FORMS = (
    _form(spelling=f"<{_OPCODES}>{_T}{_T}{_T}{{.<sat add>}}"),
    _form(spelling=f"<vset2 vset4>{_T}{_T}.<eq ne lt le gt ge>{{.add}}"),
)
"""Every form of this module."""
