"""The instruction with which libraries compute large products, where it is not `mma`, and whether its bits differ.

cuBLAS, CUTLASS and Triton write `wgmma` on sm_90 and `tcgen05` on sm_100 to sm_110. Integers have one exact sum, so
no row names them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._records import Shown
from ...isa import Instruction
from .lowerings import variants


@dataclass(frozen=True, kw_only=True)
class LibrarySums(Shown):
    """A comparison of the sums of the instruction that libraries use with those of `mma`.

    Attributes
    ----------
    instruction : str
        That libraries use: "wgmma" or "tcgen05".
    targets : tuple of str
    types : tuple of str
        PTX types of A and B.
    same : bool, optional
        Whether its sums have the bits of `mma`; None where that is not known.
    why : str
        For `same`: which `mma`; otherwise what differs.
    known : str
        How that is known.
    """

    instruction: str
    targets: tuple[str, ...]
    types: tuple[str, ...]
    same: bool | None
    why: str = ""
    known: str = ""

    def __str__(self) -> str:
        if self.same is None:
            return f"{self.instruction}; whether its sums differ is not known: {self.known}"
        return f"{self.instruction}, whose sums {'are those of' if self.same else 'differ:'} {self.why} ({self.known})"


_H200, _B200 = "measured on an H200", "published for a B200: Xie et al., arXiv 2511.10909"
_FP8 = ("e4m3", "e5m2")

LIBRARY_SUMS: tuple[LibrarySums, ...] = (
    LibrarySums(
        instruction="wgmma", targets=variants(90), types=("f16", "bf16"), same=True, why="mma.m16n8k16", known=_H200
    ),
    LibrarySums(instruction="wgmma", targets=variants(90), types=("tf32",), same=True, why="mma.m16n8k8", known=_H200),
    LibrarySums(
        instruction="wgmma", targets=variants(90), types=_FP8, same=False,
        why="they keep 13 fraction bits, mma 25", known=_H200,
    ),
    LibrarySums(
        instruction="tcgen05", targets=variants(100), types=("f16", "bf16"), same=True, why="mma.m16n8k16", known=_B200
    ),
    LibrarySums(
        instruction="tcgen05", targets=variants(100), types=("tf32",), same=True, why="mma.m16n8k8", known=_B200
    ),
    LibrarySums(
        instruction="tcgen05", targets=variants(100), types=_FP8, same=False,
        why="they add 32 products and C at once, mma in parts", known=_B200,
    ),
    LibrarySums(
        instruction="tcgen05", targets=variants(103, 110), types=("f16", "bf16", "tf32", *_FP8), same=None,
        known="nothing is published for this target",
    ),
)  # fmt: skip
"""By target and types of operands; one row at most for each."""


def library_sums(a_type: str, b_type: str, target: str) -> LibrarySums | None:
    """Return how libraries sum products of these PTX types on a target; None where they use `mma`, or sums are exact.

    Examples
    --------
    >>> print(library_sums("e4m3", "e5m2", "sm_90"))
    wgmma, whose sums differ: they keep 13 fraction bits, mma 25 (measured on an H200)
    >>> library_sums("e4m3", "e4m3", "sm_89") is None
    True
    """
    return next((row for row in LIBRARY_SUMS if target in row.targets and {a_type, b_type} <= set(row.types)), None)


def library_note(instruction: object, target: str) -> str:
    """Name what libraries use instead of a dense `mma`; empty if they use the `mma`, or measured bits are equal.

    Examples
    --------
    >>> from warpmma import parse
    >>> instruction = parse("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32")
    >>> print(library_note(instruction, "sm_90"))
    on sm_90 libraries use wgmma, whose sums differ: they keep 13 fraction bits, mma 25 (measured on an H200)
    """
    if not isinstance(instruction, Instruction) or instruction.sparse or instruction.block_scale:
        return ""
    row = library_sums(instruction.a_type, instruction.b_type, target)
    if row is None or (row.same and row.known == _H200):
        return ""
    return f"on {target} libraries use {row}"
