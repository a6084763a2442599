"""Names of instructions: those that PTX has, which of them are simulated where, and what other names mean.

Messages about mnemonics read these tables; nothing is accepted that they name.

Source: PTX ISA 9.1, 9.7 (every opcode of its sections); ptxas 13.0 knows each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Literal

from .foreign import no_instruction, ptx_of

Door = Literal["mma", "wgmma", "operation", "move", "access"]

_NO_KERNELS = "not simulated yet in kernels: compile them for sm_80, where they have mma.sync instead"
_WHERE: dict[Door, str] = {
    "mma": "read by warpmma.parse",
    "wgmma": f"computed by warpmma.matmul(A, B, instruction='wgmma...', target='sm_90a'), {_NO_KERNELS}",
    "operation": "for kernels: warpmma.kernel",
    "move": "for kernels: warpmma.kernel",
    "access": "for kernels: warpmma.kernel",
}

_PRODUCTS = ("wgmma", "tcgen05")
"""Opcodes of which compilers write mma.sync in place for older targets."""

_OPERATIONS = """
    abs activemask add addc and bfe bfi bfind bmsk brev clz cnot copysign cos cvt cvta div dp2a dp4a elect ex2
    fma fns getctarank isspacep lg2 lop3 mad mad24 madc match max min mov movmatrix mul mul24 neg not or
    popc prmt rcp redux rem rsqrt sad selp set setp shf shfl shl shr sin slct sqrt sub subc szext tanh testp
    vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vote vset
    vset2 vset4 vshl vshr vsub vsub2 vsub4 xor
"""
_ACCESSES = """
    alloca applypriority atom bar barrier brkpt cp createpolicy discard exit fence griddepcontrol ld ldu mapa mbarrier
    membar nanosleep pmevent prefetch prefetchu red setmaxnreg st stackrestore stacksave trap wmma
"""

SIMULATED: Mapping[str, Door] = MappingProxyType({
    "mma": "mma",
    "wgmma": "wgmma",
    **dict.fromkeys(_OPERATIONS.split(), "operation"),
    "ldmatrix": "move",
    "stmatrix": "move",
    **dict.fromkeys(_ACCESSES.split(), "access"),
})  # fmt: skip
"""Opcodes with instructions that are simulated, and which function reads them."""

_ABSENT = """
    bra brx call clusterlaunchcontrol istypep multimem ret suld suq sured
    sust tcgen05 tensormap tex tld4 txq

    cp.async.bulk.prefetch.tensor cp.async.bulk.tensor cp.reduce.async.bulk.tensor
    wgmma.commit_group
    wgmma.fence wgmma.wait_group
"""
ABSENT = frozenset(_ABSENT.split())
"""Opcodes, and beginnings of mnemonics, that PTX has and nobody simulates yet."""

OPCODES = frozenset(SIMULATED) | {name for name in ABSENT if "." not in name}
"""Every opcode of PTX."""

_LONGEST = 160
_NEAR = 0.6


def explained(name: str, here: Door) -> str:
    """Say what a name is, if it is known and another function than the one asked reads it; "" otherwise.

    Parameters
    ----------
    name : str
    here : str
        What the function that was asked reads.

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
    if _opcode(name) in OPCODES:
        where = _where(name, here)
        return where and f"{_absent(name) or _opcode(name)} is PTX{where}"
    return "PTX is written in small letters" if _opcode(name.lower()) in OPCODES else ""


def near(name: str, legal: Collection[str]) -> str | None:
    """Return the mnemonic that is most like a name, if one is and its opcode is like the name's too.

    Examples
    --------
    >>> near("cvt.f16.f32.rn", ["cvt.rn.f16.f32", "cvt.f64.f32", "add.f16"])
    'cvt.rn.f16.f32'
    >>> near("foo.f16", ["cvt.rn.f16.f32", "cvt.f64.f32", "add.f16"])
    """
    from difflib import SequenceMatcher, get_close_matches  # only errors need it

    opcodes = get_close_matches(_opcode(name), {_opcode(mnemonic) for mnemonic in legal}, 5, _NEAR)
    words = Counter(name.split("."))

    def likeness(mnemonic: str) -> float:
        """Mean of the likeness of the words in any order, and of the letters."""
        others = Counter(mnemonic.split("."))
        same = 2 * (words & others).total() / (words.total() + others.total())
        return (same + SequenceMatcher(None, name, mnemonic).ratio()) / 2

    likely = [mnemonic for mnemonic in legal if _opcode(mnemonic) in opcodes]
    found = max(likely, key=likeness, default=None)
    return found if found is not None and likeness(found) >= _NEAR else None


def _opcode(name: str) -> str:
    return name.partition(".")[0]


def _absent(name: str) -> str:
    """Return the longest beginning of a mnemonic that PTX has and nobody simulates; "" if there is none."""
    words = name.split(".")
    starts = (".".join(words[:n]) for n in range(len(words), 0, -1))
    return next((start for start in starts if start in ABSENT), "")


def _where(mnemonic: str, here: Door) -> str:
    """Where PTX is simulated, as the end of a sentence; "" if here."""
    if _absent(mnemonic):
        return f", {_NO_KERNELS if _opcode(mnemonic) in _PRODUCTS else 'not simulated yet'}"
    door = SIMULATED[_opcode(mnemonic)]
    return "" if door == here else f", {_WHERE[door]}"
