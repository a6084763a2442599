"""What Triton writes for `tl.dot`, and what a device's own target would have got instead.

The rules, of Triton 3.2 to 3.9:

1. A product of tiles is written as the target's instruction for large products (`wgmma` of sm_90, `tcgen05` of sm_100
   to sm_110) if it has no batch, its rows are a multiple of 64, its columns of 8, and the warps of a block of 4.
2. Every other product is written as `mma`. There, operands of fp8 are converted to f16 first, but for sm_89, sm_120 and
   sm_121, which have an `mma` of fp8.
3. A launch has a note where the device's target would get another instruction than the text has, and its sums are not
   known to have the same bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import cast

from ..arithmetic import library_sums
from ..isa import TARGETS

_TYPES: Mapping[str, str] = MappingProxyType(
    {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2", "f16": "f16", "bf16": "bf16", "i8": "s8", "f64": "f64"}
)
"""Types of operands, as Triton's IR names them, and as PTX does."""

_FP8 = frozenset(("e4m3", "e5m2"))
_WITH_FP8 = frozenset((89, 120, 121))
_TILE = r"tensor<((?:\d+x)+)(\w+)>"
_DOT = re.compile(rf"\btt\.dot\b([^\n]*): {_TILE} \* {_TILE} -> {_TILE}")


def dots_of(text: str) -> list[list[object]]:
    """Return the products of tiles in Triton's IR, each once: types of A and B as PTX names them, and the shape of D.

    Examples
    --------
    >>> dots_of("%5 = tt.dot %x, %y, %z : tensor<64x32xf8E5M2> * tensor<32x16xf8E5M2> -> tensor<64x16xf32> loc(#loc1)")
    [['e5m2', 'e5m2', [64, 16]]]
    """
    found: list[list[object]] = []
    for options, _, *types, shape, _ in _DOT.findall(text):
        f32 = "tf32" if "inputPrecision = tf32" in options else "f32"  # else it is a chain of fma
        a, b = (f32 if types[i] == "f32" else _TYPES.get(types[i], types[i]) for i in (0, 2))
        dot: list[object] = [a, b, [int(n) for n in shape.strip("x").split("x")]]
        if dot not in found:
            found.append(dot)
    return found


def dot_notes(dots: Iterable[Sequence[object]], warps: int, ptx_target: str, target: str) -> tuple[str, ...]:
    """Say by rule 3 which products of a launch may have other bits where Triton compiles for the target itself."""
    compiled, own = TARGETS[ptx_target].number, TARGETS[target].number
    found = []
    for a, b, shape in dots:
        row = library_sums(str(a), str(b), target)
        if row is None:
            continue
        *batch, rows, columns = cast(list[int], shape)
        what = (
            f"tl.dot of {' and '.join(dict.fromkeys((str(a), str(b))))}, {rows} x {columns}, compiled for {ptx_target}"
        )
        if not (batch or rows % 64 or columns % 8 or warps % 4):
            if not row.same:
                found.append(f"{what}: for sm_{own} Triton writes {row}")
        elif {a, b} <= _FP8 and (compiled in _WITH_FP8) != (own in _WITH_FP8):
            found.append(
                f"{what}: for sm_{own} Triton converts the operands to f16 and writes an mma whose sums differ"
            )
    return tuple(found)
