"""Opcodes and words of mnemonics: what simulates them, which words keep their order, what some words require.

Source: PTX ISA 9.1, 9.7; ptxas 13.0 accepts each, and rejects it on targets and versions older than in `REQUIRED`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal

from ...errors import MnemonicError
from ..gpus import since as targets_since

Version = tuple[int, int]
Door = Literal["mma", "wgmma", "operation", "move", "access"]

_LONGEST = 160
_SIZES = ("8", "16", "32", "64")
TYPE_WORDS = frozenset(
    (
        *(letter + size for letter in "bsu" for size in _SIZES), "u4", "s4", "u2", "s2", "pred",
        "b128", "f16", "bf16", "tf32", "f32", "f64", "f16x2", "bf16x2", "f32x2", "s16x2", "u16x2",
        "e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2",
        "e2m1x2", "ue8m0x2", "b1", "b8x16", "b6x16_p32", "b4x16_p64",
    )
)  # fmt: skip
"""Types of operands and elements."""

_SPACES = frozenset(
    ("global", "shared", "shared::cta", "shared::cluster", "local", "const", "param", "param::entry", "param::func")
)
_OTHERS = """
    rn rz rm rp rna rni rzi rmi rpi ftz sat satfinite relu oob NaN xorsign abs approx full
    lo hi wide cc shiftamt pack l r clamp wrap f4e b4e rc8 ecl ecr rc16
    eq ne lt le gt ge ls hs equ neu ltu leu gtu geu num nan
    cas exch inc dec noftz relaxed acquire release acq_rel sc cluster gpu sys
    gl proxy alias tensormap::generic mbarrier_init mask launch_dependents wait red
    mbarrier init inval arrive_drop noComplete expect_tx complete_tx test_wait try_wait parity pending_count noinc
    po shr7 shr15 finite infinite number notanumber normal subnormal
    bulk bulk_group read prefetch reduce mbarrier::complete_tx::bytes multicast::cluster async::generic
    sync_restrict::shared::cta sync_restrict::shared::cluster
    tensor 1d 2d 3d 4d 5d tile im2col im2col_no_offs replace cp_fenceproxy b1024 rank
    global_address box_dim global_dim global_stride element_stride elemtype interleave_layout swizzle_mode fill_mode
    sync aligned async warp cta arrive fence commit_group wait_group wait_all
    up down bfly idx all any uni ballot add min max and or xor
    m8n8 m8n16 m16n8 m16n16 x1 x2 x4 trans v2 v4 v8 nc weak volatile mmio
    load store mma a b c d m16n16k16 m8n32k16 m32n8k16 m16n16k8 m8n8k4 m8n8k32 m8n8k128 popc
    to cvt fractional range L1 L2 tensormap L2::evict_unchanged
    ca cg cs lu cv wb wt L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate
    L2::evict_normal L2::evict_first L2::evict_last L2::cache_hint L2::64B L2::128B L2::256B
"""
_LAYOUTS = frozenset(("row", "col"))
WORDS = TYPE_WORDS | _SPACES | _LAYOUTS | frozenset(_OTHERS.split())
"""Every qualifier that a form may have."""

_EVICTIONS = frozenset(f"L2::evict_{x}" for x in ("normal", "first", "last", "unchanged"))

KEPT = (TYPE_WORDS, _SPACES, _LAYOUTS, _EVICTIONS)
"""Classes of words that keep their relative order."""

_PREFETCH, _EVICTION = ("sm_75", (7, 4)), ("sm_70", (7, 4))
REQUIRED: Mapping[str, tuple[str, tuple[int, int]]] = MappingProxyType({
    "weak": ("sm_70", (6, 0)),
    "cluster": ("sm_90", (7, 8)),
    "shared::cta": ("sm_70", (7, 8)),
    "shared::cluster": ("sm_90", (7, 8)),
    "param::entry": ("sm_70", (8, 3)),
    "param::func": ("sm_70", (8, 3)),
    "b128": ("sm_70", (8, 3)),
    "L1::evict_normal": _EVICTION,
    "L1::evict_unchanged": _EVICTION,
    "L1::evict_first": _EVICTION,
    "L1::evict_last": _EVICTION,
    "L1::no_allocate": _EVICTION,
    "L2::64B": _PREFETCH,
    "L2::128B": _PREFETCH,
    "L2::256B": ("sm_80", (7, 4)),
    "L2::cache_hint": ("sm_80", (7, 4)),
})  # fmt: skip
"""Oldest target and first version of PTX that have a word, if these may be later than those of the form."""

_OPERATIONS = """
    abs activemask add addc and bfe bfi bfind bmsk brev clz cnot copysign cos cvt cvta div dp2a dp4a elect ex2
    fma fns getctarank isspacep lg2 lop3 mad mad24 madc mapa match max min mov movmatrix mul mul24 neg not or
    popc prmt rcp redux rem rsqrt sad selp set setp shf shfl shl shr sin slct sqrt sub subc szext tanh testp
    vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vote vset
    vset2 vset4 vshl vshr vsub vsub2 vsub4 xor
"""
_ACCESSES = """
    alloca applypriority atom bar barrier brkpt cp createpolicy discard exit fence griddepcontrol ld ldu mbarrier
    membar nanosleep pmevent prefetch prefetchu red setmaxnreg st stackrestore stacksave tensormap trap wmma
"""

SIMULATED: Mapping[str, Door] = MappingProxyType({
    "mma": "mma",
    "wgmma": "wgmma",
    **dict.fromkeys(_OPERATIONS.split(), "operation"),
    "ldmatrix": "move",
    "stmatrix": "move",
    **dict.fromkeys(_ACCESSES.split(), "access"),
})  # fmt: skip
"""Opcodes with simulated instructions, and the front end that reads them."""

_ABSENT = """
    bra brx call clusterlaunchcontrol istypep multimem ret suld suq sured
    sust tcgen05 tex tld4 txq
"""
ABSENT = frozenset(_ABSENT.split())
"""Opcodes, and prefixes of mnemonics, that PTX has and this package does not simulate yet."""

OPCODES = frozenset(SIMULATED) | {name for name in ABSENT if "." not in name}
"""Every opcode of PTX."""


def bare(mnemonic: object) -> str:
    """Strip blanks and the semicolon of a mnemonic; raise `MnemonicError` for what cannot be one."""
    if not isinstance(mnemonic, str):
        raise MnemonicError(f"a mnemonic is a string, such as 'mma.sync...'; got {type(mnemonic).__name__}")
    if len(mnemonic) > _LONGEST:
        raise MnemonicError(f"{mnemonic[:60]}...: {len(mnemonic)} characters; no mnemonic has more than {_LONGEST}")
    if any("\ud800" <= c <= "\udfff" for c in mnemonic):  # such text cannot be printed
        raise MnemonicError(f"{mnemonic!a}: a mnemonic has no lone surrogates")
    text = mnemonic.strip().removesuffix(";").rstrip()
    if any(c in text for c in " \t\n{;"):
        raise MnemonicError(f"{mnemonic}: expected a mnemonic alone, without operands")
    return text


def wanted(words: Iterable[str], since: str, ptx: tuple[int, int]) -> tuple[str, tuple[int, int]]:
    """Return the oldest target and the first version of PTX that have all words of a mnemonic.

    Parameters
    ----------
    words : iterable of str
    since : str
        Oldest target of the form.
    ptx : (int, int)
        First version of PTX of the form.

    Examples
    --------
    >>> wanted(["ldmatrix", "x4", "shared::cta", "b16"], "sm_75", (6, 5))
    ('sm_75', (7, 8))
    """
    for word in words:
        if word in REQUIRED:
            since, ptx = later(since, REQUIRED[word][0]), max(ptx, REQUIRED[word][1])
    return since, ptx


def later(a: str, b: str) -> str:
    """Return the later of two "since": the one that fewer targets have.

    Examples
    --------
    >>> later("sm_100f", "sm_80")
    'sm_100f'
    """
    return a if len(targets_since(a)) <= len(targets_since(b)) else b
