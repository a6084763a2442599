"""SASS, the machine code, of matrix units as NVIDIA's disassembler names it, and the mnemonics that it is made of.

The words of a name say the shape, then the types that the opcode does not (docs/specification/lowering.md 2).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from ..grammar import Grammar
from ..tables import MMA, WGMMA

_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)|(16|8)(8)(\d+)")
_FP8 = ("e4m3", "e5m2")
_TYPES = ("f16", "f32", "bf16", "tf32", *_FP8, "e3m2", "e2m3", "e2m1", "s8", "u8", "s4", "u4")


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
    if shape is None or types is None:
        return None
    m, n, k = (int(x) for x in shape.groups() if x)
    bit_op = next((word.lower() for word in words if word in ("AND", "XOR")), None)
    fields = {"m": m, "n": n, "k": k, "satfinite": "SAT" in words, "bit_op": bit_op, **types}
    if opcode[1] == "G":
        return None if "SP" in words else _legal(WGMMA, fields)
    fields |= {"sparsity": "sp::ordered_metadata" if "SP" in words else None, "a_layout": "row", "b_layout": "col"}
    return _legal(MMA, fields | _kind(opcode, words, fields))


def _types(opcode: str, words: list[str]) -> dict[str, str] | None:
    """Types of the operands: what the opcode leaves open is in the words, results before multiplicands."""
    match opcode.replace("GMMA", "MMA"), words:
        case "HMMA", [d, *rest] if d in ("f16", "f32"):
            c = rest.pop(0) if rest and rest[0] in ("f16", "f32") else d
            a, b = (rest * 2)[:2] or ("f16", "f16")
            types = d, a, b, c
        case "IMMA", [a, b]:
            types = "s32", a, b, "s32"
        case (("QMMA" | "OMMA"), [d, a, b]):
            types = d, a, b, d
        case "DMMA", []:
            types = "f64", "f64", "f64", "f64"
        case "BMMA", []:
            types = "s32", "b1", "b1", "s32"
        case _:
            return None
    return dict(zip(("d_type", "a_type", "b_type", "c_type"), types, strict=True))


def _kind(opcode: str, words: list[str], fields: Mapping[str, Any]) -> dict[str, str | None]:
    """`kind`, and of block scaling how many scales a row has and their type."""
    if "SF" in words:
        stype = "ue4m3" if "UE4M3" in words else "ue8m0"
        if opcode == "QMMA":
            return {"kind": "mxf8f6f4", "stype": stype}
        if "4X" in words:
            return {"kind": "mxf4nvf4", "scale_vec": "4X", "stype": stype}
        return {"kind": "mxf4", "stype": stype}
    fp8 = fields["a_type"] in _FP8 and fields["b_type"] in _FP8
    plain = opcode != "QMMA" or (fp8 and not (fields["sparsity"] and fields["d_type"] == "f16"))
    return {"kind": None if plain else "f8f6f4"}


def _legal(grammar: Grammar[Any], fields: Mapping[str, Any]) -> str | None:
    """Print a mnemonic, if it is one."""
    mnemonic = grammar.printed(fields)
    return mnemonic if mnemonic in _mnemonics(grammar) else None


@cache
def _mnemonics(grammar: Grammar[Any]) -> frozenset[str]:
    return frozenset(grammar.legal)
