"""Machine instructions of matrix units, as NVIDIA's disassembler names them, and the mnemonics they are made of.

The words of a name say the shape, then the types that the opcode does not (docs/specification/lowering.md 2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from .families import FAMILIES

__all__ = ["matrix"]

_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)|(16|8)(8)(\d+)")
_FP8 = ("e4m3", "e5m2")
_TYPES = ("f16", "f32", "bf16", "tf32", *_FP8, "e3m2", "e2m3", "e2m1", "s8", "u8", "s4", "u4")
_WARPGROUP_K = {"f16": 16, "bf16": 16, "tf32": 8, "b1": 256}  # of 8-bit types 32


@dataclass(frozen=True)
class _Types:
    d: str
    a: str
    b: str
    c: str


def matrix(opcode: str, words: list[str]) -> str | None:
    """Return the mnemonic of a matrix instruction, if its words say enough of it.

    Of a sparse one it is the mnemonic with `::ordered_metadata`; where several kinds of block scaling share one, the
    first of them; of `m8n8k4`, whose steps are instructions of their own, that of row.col.

    Examples
    --------
    >>> matrix("HMMA", ["16816", "F32"])
    'mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32'
    >>> matrix("QGMMA", ["64x128x32", "F32", "E4M3", "E4M3"])
    'wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3'
    """
    shape = next((found for found in map(_SHAPE.fullmatch, words) if found), None)
    types = _types(opcode, [word.lower() for word in words if word.lower() in _TYPES])
    sat = ".satfinite" * ("SAT" in words)
    bits = "".join(f".{op.lower()}.popc" for op in ("AND", "XOR") if op in words)
    if shape is None or types is None or (types.a == "b1") != bool(bits) or (sat and types.a[0] not in "su"):
        return None
    m, n, k = (int(x) for x in shape.groups() if x)
    if opcode[1] == "G":
        fits = m == 64 and n in range(8, 257, 8) and k == _WARPGROUP_K.get(types.a, 32) and "SP" not in words
        name = f"wgmma.mma_async.sync.aligned.m{m}n{n}k{k}{sat}.{types.d}.{types.a}.{types.b}{bits}"
        return name if fits else None
    sparsity = "sp::ordered_metadata" if "SP" in words else None
    kind, scaling, stype = _kind(opcode, words, types, sparsity)
    if (sparsity, f"m{m}n{n}k{k}", kind, (types.d, types.c), (types.a, types.b)) not in _legal():
        return None
    start = f"mma.{sparsity}" if sparsity else "mma"
    scaling = f".kind::{kind}{scaling}" if kind else ""
    operands = f"{types.d}.{types.a}.{types.b}.{types.c}"
    return f"{start}.sync.aligned.m{m}n{n}k{k}.row.col{scaling}{sat}.{operands}{stype}{bits}"


def _types(opcode: str, words: list[str]) -> _Types | None:
    """Types of the operands: what the opcode leaves open is in the words, results before multiplicands."""
    match opcode.replace("GMMA", "MMA"), words:
        case "HMMA", [d, *rest] if d in ("f16", "f32"):
            c = rest.pop(0) if rest and rest[0] in ("f16", "f32") else d
            a, b = (rest * 2)[:2] or ("f16", "f16")
            return _Types(d, a, b, c)
        case "IMMA", [a, b]:
            return _Types("s32", a, b, "s32")
        case (("QMMA" | "OMMA"), [d, a, b]):
            return _Types(d, a, b, d)
        case "DMMA", []:
            return _Types("f64", "f64", "f64", "f64")
        case "BMMA", []:
            return _Types("s32", "b1", "b1", "s32")
    return None


def _kind(opcode: str, words: list[str], types: _Types, sparsity: str | None) -> tuple[str | None, str, str]:
    """`kind`, the qualifiers of block scaling and the type of the scales."""
    if "SF" in words:
        stype = ".ue4m3" if "UE4M3" in words else ".ue8m0"
        if opcode == "QMMA":
            return "mxf8f6f4", ".block_scale", stype
        four = "4X" in words
        return ("mxf4nvf4" if four else "mxf4"), ".block_scale" + ".scale_vec::4X" * four, stype
    fp8 = types.a in _FP8 and types.b in _FP8
    plain = opcode != "QMMA" or (fp8 and not (sparsity and types.d == "f16"))
    return (None if plain else "f8f6f4"), "", ""


@cache
def _legal() -> frozenset[tuple[object, ...]]:
    return frozenset(
        (family.sparsity, shape, family.kind, accumulators, multiplicands)
        for family in FAMILIES
        for shape in family.shapes.split()
        for accumulators in family.accumulators
        for multiplicands in family.multiplicands
    )
