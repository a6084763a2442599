"""The instructions that ptxas evaluates where all operands are constants, before it looks at approximate functions.

1. `EVALUATED` lists them, and those where it depends on the values; approximate functions that ptxas computes
   (`approximate_form`) are others. What else there is ptxas 13.0 does not evaluate in time: an approximate function of
   the result stays one of the GPU. Each of 6,287 mnemonics of sm_90 was put, with constants, before an `rcp.approx`;
   ptxas evaluates the same for sm_75, sm_80 and sm_100 (`python -m lab.compare.folding`).
2. A result is known of some constants alone: of `and` with 0, `or` with ones, `mul` by 0, `xor` of a register with
   itself, `selp` of a constant predicate, or of two equal numbers. ptxas also knows single bits: a number that follows
   of these alone is not found here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import numpy as np

from ...arithmetic import SEQUENCES
from ...operations import DTYPES, Operation, row
from ...registers import LANES
from ..text import Mnemonic


@dataclass(frozen=True)
class Evaluated:
    """Instructions that ptxas evaluates: opcodes, types, and further words that they may have ("*" for any).

    `results` are types of the result, of `cvt` and `set`. With `doubtful` it depends on the values.
    """

    opcodes: str
    types: str = "*"
    words: str = ""
    results: str = ""
    doubtful: bool = False

    def has(self, mnemonic: Mnemonic) -> bool:
        """Return whether it lists a mnemonic."""
        *others, type_ = mnemonic.qualifiers or ("",)
        if mnemonic.opcode not in self.opcodes.split() or (self.types != "*" and type_ not in self.types.split()):
            return False
        if self.results:
            *others, result = others or ("",)
            if result not in self.results.split():
                return False
        return self.words == "*" or set(others).issubset(self.words.split())


_SHORT = "s16 u16 s32 u32"
_INTEGERS = f"{_SHORT} s64 u64"
_COMPARED = f"b16 b32 b64 {_INTEGERS} f32 f64"
_FLOATS = "f16 bf16 f32 f64"

EVALUATED = (
    Evaluated("and or xor not", "pred b16 b32 b64"),
    Evaluated("shl shr shf bfe bfi popc brev clz bfind fns cnot testp mul24 mad24 selp slct", words="*"),
    Evaluated("add sub", _INTEGERS, "sat"),
    Evaluated("mul mad", _INTEGERS, "lo"),
    Evaluated("mul mad", _SHORT, "wide"),
    Evaluated("mul", _SHORT, "hi"),
    Evaluated("mad", "s16 u16", "hi"),
    Evaluated("add sub mul", "f32", "ftz sat"),
    Evaluated("add sub mul", "f32", "rn ftz"),
    Evaluated("add sub mul", "f64"),
    Evaluated("min max", f"{_INTEGERS} f64"),
    Evaluated("min max neg abs", "f32", "ftz"),
    Evaluated("neg abs", "f64 f16 f16x2 s16 s32 s64"),
    Evaluated("neg", "bf16"),
    Evaluated("setp", _COMPARED, "*"),
    Evaluated("set", _COMPARED, "*", results="f32 s32 u32"),
    Evaluated("set", _COMPARED, "*", results="f16", doubtful=True),
    Evaluated("cvt", f"s8 u8 {_INTEGERS}", "sat", results=f"s8 u8 {_INTEGERS}"),
    Evaluated("cvt", f"s8 u8 {_SHORT}", "rn ftz sat", results="f32"),
    Evaluated("cvt", "f16 bf16", "ftz sat", results="f32"),
    Evaluated("cvt", "f16 bf16 f32", "ftz sat", results="f64"),
    Evaluated("cvt", "f64", "rn ftz sat", results="f16 bf16 f32"),
    Evaluated("cvt", "f32", "rn ftz sat", results="f16 bf16"),
    Evaluated("cvt", "f32", "rn", results="f16x2"),
    Evaluated("cvt", "f32", "rna satfinite", results="tf32"),
    Evaluated("cvt", "f32", "rni rzi rmi rpi ftz sat", results="f32"),
    Evaluated("cvt", "f64", "rni rzi rmi rpi sat", results="f64"),
    Evaluated("cvt", _FLOATS, "rni rzi ftz sat", results="u16 s32 u32 s64 u64"),
    Evaluated("cvta", "u64", "to global"),
    Evaluated("vadd2 vadd4 vsub2 vsub4 vavrg2 vmin2 vmax2", "u32", "u32"),
    Evaluated("vmin2 vmax2", "s32", "s32"),
    Evaluated("szext", "s32 u32", "clamp", doubtful=True),
    Evaluated("cvt", _FLOATS, "rmi rpi ftz sat", results="u16 s32 u32 s64 u64", doubtful=True),
)
"""Rule 1."""


@lru_cache(maxsize=4096)
def evaluates(mnemonic: Mnemonic) -> bool | None:
    """Return whether ptxas evaluates an instruction on constants; None where that depends on the values."""
    found = [x.doubtful for x in EVALUATED if x.has(mnemonic)]
    return False if not found else None if all(found) else True


@lru_cache(maxsize=4096)
def approximate_form(mnemonic: Mnemonic) -> str:
    """Return the name of an approximate function of f32 in `SEQUENCES`; "" for other instructions."""
    if mnemonic.type != "f32" or mnemonic.part or not {"approx", "full"} & {*mnemonic.modifiers}:
        return ""
    modifiers = sorted(mnemonic.modifiers, key="ftz".__eq__)  # `SEQUENCES` has .ftz last
    form = ".".join((mnemonic.opcode, *modifiers, mnemonic.type))
    return form if form in SEQUENCES else ""


@lru_cache(maxsize=4096)
def operation_of(mnemonic: str) -> Operation | None:
    """Return the row of an instruction that has one result, of the operands alone; None for others."""
    found = row(mnemonic)
    plain = isinstance(found, Operation) and not (found.lanes or found.reads_carry or found.writes_carry)
    return found if plain and isinstance(found, Operation) and len(found.outputs) == 1 else None


@lru_cache(maxsize=4096)
def evaluate(mnemonic: str, codes: tuple[int, ...]) -> int:
    """Return the result of constants; a signed one with its sign in 64 bits, for registers wider than it."""
    found = cast(Operation, operation_of(mnemonic))
    given = [
        code if kind == "imm" else np.full(LANES, masked(code, kind), DTYPES[kind])
        for code, kind in zip(codes, found.inputs, strict=True)
    ]
    result = found.compute(*given)[0]
    if found.wider and found.output_types[0].startswith("s"):
        result = result.view(f"i{result.dtype.itemsize}").astype(np.int64).view(np.uint64)
    return int(result.flat[0])


def masked(code: int, kind: str) -> int:
    """Return the bits of a constant that a register of a class holds."""
    return code & ((1 << int(kind[1:])) - 1 if kind.startswith("b") else 1)


def decided(mnemonic: Mnemonic, codes: Sequence[int | None], kinds: Sequence[str], same: bool) -> int | None:
    """Rule 2: return the result where some constants alone decide it; `same` says that both operands are equal."""
    opcode, bits = mnemonic.opcode, 1 if kinds[0] == "pred" else int(kinds[0][1:])
    if opcode in ("and", "mul") and 0 in codes and mnemonic.type[0] in "bsup":
        return 0
    if opcode == "or" and (1 << bits) - 1 in codes:
        return (1 << bits) - 1
    if opcode == "xor" and same:
        return 0
    if opcode == "selp":
        if codes[2] is not None:
            return codes[0 if codes[2] else 1]
        return codes[0] if codes[0] == codes[1] else None
    return None
