"""Which nibbles of metadata are legal for a sparse instruction, by PTX's rules, and what is known of the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from .._arguments import is_integer
from .._lazy import later
from ..errors import MetadataError, UnsupportedError, shown
from ..formats import FloatFormat
from ..isa import TARGETS, Instruction, check_target, parse
from .patterns import PLACES, pattern_checked, pieces

if TYPE_CHECKING:
    import numpy as np

    from .._arrays import Array
else:  # places of metadata need no NumPy
    np = later("numpy")

Codes = frozenset[int]

SORTED_CODES: Codes = frozenset(i0 | i1 << 2 for i1 in range(PLACES) for i0 in range(i1))
"""Nibbles whose first index is below the second."""

DISTINCT: Codes = SORTED_CODES | {i1 | i0 << 2 for i1 in range(PLACES) for i0 in range(i1)}
WHOLE: Codes = frozenset({0b0100, 0b1110})
RULE: Mapping[Codes, str] = MappingProxyType(
    {SORTED_CODES: "i0 < i1", DISTINCT: "i0 != i1", WHOLE: "(i0, i1) = (0, 1) or (2, 3), whole elements"}
)

UNDEFINED_MEASURED: tuple[str, ...] = tuple(t.name for t in TARGETS.values() if t.generation == "Hopper")
"""Targets on which it was measured what the hardware makes of metadata that PTX leaves undefined."""

UNSORTED: tuple[tuple[str, tuple[str, ...]], ...] = (("bf16", ("Blackwell", "RTX Blackwell")),)
"""Types whose unordered metadata reaches the hardware unsorted, by generation.

From sm_100 on the hardware expects ordered metadata. For f16 and integers ptxas sorts them in software first; for
bf16 it does not, so what a reversed pair of indices does there is not known (machine code of ptxas 13.5).
"""


def legal_codes(instruction: str | Instruction, target: str | None = None) -> Codes:
    """Nibbles that PTX defines for an instruction; an H200 reads all sixteen by the one rule.

    Two for tf32; the six with i0 < i1 for `mma.sp::ordered_metadata` and for 8-bit floating point, where the
    manual lists no others for `mma.sp`; the twelve with i0 other than i1 for `mma.sp` of the other types. With a
    target, those of them whose effect on it is known: for bf16, of sm_100 and later, the six with i0 < i1.

    Raises
    ------
    MnemonicError, MetadataError, TargetError
        No such instruction, a dense one, or one that the target lacks.

    Examples
    --------
    >>> i = "mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32"
    >>> len(legal_codes(i)), len(legal_codes(i, "sm_90")), len(legal_codes(i, "sm_100"))
    (12, 12, 6)
    """
    record = parse(instruction)
    if target is not None:
        check_target(record, target)
    return codes_legal(record, target)


def codes_legal(record: Instruction, target: str | None = None) -> Codes:
    """`legal_codes` of a record, on a target that has it."""
    if pattern_checked(record).units == 2:
        return WHOLE
    fp8 = isinstance(record.format("A"), FloatFormat) and record.packing("A").slot == 8
    codes = DISTINCT if record.sparsity == "sp" and not fp8 else SORTED_CODES
    if target is None or not _unsorted(record, target):
        return codes
    return codes & SORTED_CODES


def _unsorted(record: Instruction, target: str) -> bool:
    return any(record.a_type == name and TARGETS[target].generation in where for name, where in UNSORTED)


def codes_asked(legal: Iterable[int]) -> Codes:
    """Take nibbles one by one: what is none ends it, however many follow."""
    codes = set()
    try:
        for code in legal:
            if not is_integer(code) or not 0 <= code < 1 << 4:
                raise MetadataError(f"legal is {shown(legal)}; {shown(code)} is no nibble, an integer of 0 to 15")
            codes.add(int(code))
    except MetadataError:
        raise
    except Exception:  # no iterable, or one that fails
        raise MetadataError(f"legal is {shown(legal)}; expected nibbles, integers of 0 to 15") from None
    return frozenset(codes)


def check_codes(record: Instruction, target: str, check: Callable[[Codes, bool], None]) -> None:
    """Raise `MetadataError` for nibbles that are undefined, `UnsupportedError` for ones of unknown effect on a target.

    `check` raises `MetadataError` unless all nibbles are among some codes; it is told whether they are PTX's.
    """
    defined, known = codes_legal(record), codes_legal(record, target)
    check(defined, True)
    if known == defined:
        return
    try:
        check(known, False)
    except MetadataError as error:
        raise UnsupportedError(
            f"{error}. PTX allows descending indices, but for {record.a_type} ptxas does not sort them on "
            f"{target}, and what the hardware makes of them is not known"
        ) from None


def outside(nibbles: Array, codes: Codes) -> Array:
    """Where a nibble is none of these codes, which make a mask of sixteen bits."""
    mask = np.uint32(sum(1 << code for code in range(16) if code in codes))
    return np.asarray(mask >> nibbles & 1 == 0)


def first_outside(nibbles: Array, codes: Codes) -> tuple[int, ...]:
    """Return the place of the first nibble that is none of these codes, if any."""
    flat = nibbles.reshape(-1)
    for piece in pieces(flat.size):
        bad = np.flatnonzero(outside(flat[piece], codes))
        if bad.size:
            return tuple(int(x) for x in np.unravel_index(piece.start + bad[0], nibbles.shape))
    return ()


def said(nibble: int) -> str:
    """Write a nibble's indices."""
    return f"({nibble & 3}, {nibble >> 2})"


def legal_are(codes: Codes, by_rule: bool) -> str:
    """Say which nibbles are legal, and why."""
    rule = f"PTX: {RULE[codes]}" if by_rule else "as asked"
    return f"legal are {', '.join(map(hex, sorted(codes)))} ({rule})"
