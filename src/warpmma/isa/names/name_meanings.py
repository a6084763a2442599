"""Names of instructions: those of PTX, what simulates them, and what other names mean.

These tables serve messages about mnemonics; the names in them are not accepted as input.

Source: PTX ISA 9.1, 9.7 (every opcode of its sections); ptxas 13.0 accepts each.
"""

from __future__ import annotations

import re

from ..grammar import ABSENT, OPCODES, SIMULATED, Door
from .foreign import no_instruction, ptx_of

_NO_KERNELS = "not simulated yet in kernels: compile them for sm_80, where they have mma.sync instead"
_WHERE: dict[Door, str] = {
    "mma": "read by warpmma.parse",
    "wgmma": "computed by warpmma.matmul(A, B, instruction='wgmma...', target='sm_90a'), and in kernels",
    "operation": "for kernels: warpmma.kernel",
    "move": "for kernels: warpmma.kernel",
    "access": "for kernels: warpmma.kernel",
}

_PRODUCTS = ("tcgen05",)
"""Opcodes for which compilers emit mma.sync instead on older targets."""

_EIGHT = re.compile(r"(?:ld|st)\..*\bv8\.[bsu](8|16)")
"""Eight elements of 8 or 16 bits: ptxas 13.0 takes them, and what it makes moves one (an H200 and its machine code)."""

_LONGEST = 160


def explained(name: str, here: Door) -> str:
    """Describe a known name that a function other than the called one reads; "" otherwise.

    Parameters
    ----------
    name : str
    here : str
        What the called function reads.

    Examples
    --------
    >>> explained("txq.width.b32", "operation")
    'txq is PTX, not simulated yet'
    >>> explained("__syncthreads", "mma")
    'this is CUDA C++; in PTX it is bar.sync, for kernels: warpmma.kernel'
    >>> explained("HMMA.16816.F32", "mma")
    'this is machine code; in PTX it is mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32'
    """
    name = name[:_LONGEST]
    if found := ptx_of(name):
        language, ptx = found
        mnemonic = ptx.split(",")[0].split(" ")[0]
        where = "" if _opcode(mnemonic) == "mma" else _where(mnemonic, here)
        return f"this is {language}; in PTX it is {ptx}{where}"
    if other := no_instruction(name):
        return f"this is {other}"
    if small := _EIGHT.fullmatch(name):
        count = int(small[1]) // 4
        return f"ptxas 13.0 takes it, but moves one element, or crashes; expected v{count}.b32, which has as many bytes"
    if _opcode(name) in OPCODES:
        where = _where(name, here)
        return where and f"{_absent(name) or _opcode(name)} is PTX{where}"
    return "PTX is written in small letters" if _opcode(name.lower()) in OPCODES else ""


def _opcode(name: str) -> str:
    return name.partition(".")[0]


def _absent(name: str) -> str:
    """Return the longest prefix that PTX has and this package does not simulate; "" if there is none."""
    words = name.split(".")
    starts = (".".join(words[:n]) for n in range(len(words), 0, -1))
    return next((start for start in starts if start in ABSENT), "")


def _where(mnemonic: str, here: Door) -> str:
    """Where PTX is simulated, as the end of a sentence; "" if here."""
    if _absent(mnemonic):
        return f", {_NO_KERNELS if _opcode(mnemonic) in _PRODUCTS else 'not simulated yet'}"
    door = SIMULATED[_opcode(mnemonic)]
    return "" if door == here else f", {_WHERE[door]}"
