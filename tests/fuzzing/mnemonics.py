"""Mnemonics that are nearly legal: changed by a character, or by a qualifier."""

from __future__ import annotations

from functools import cache

from warpmma.isa import instructions, warpgroup_instructions
from warpmma.kernel import matrix_moves
from warpmma.operations import operations

from .hostile import Rng, chance, pick

__all__ = ["mutated", "words"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789:._ ;{\nM\u00e9"
_WHOLE = (
    "", ".", "mma", "mma.sync", "mma.sync.aligned", "wgmma", "foo", "__syncthreads", "HMMA.16816.F32", "div.s32",
    "ld.shared.b32", "st.global.v4.f32", "bar.sync", "cp.async.ca.shared.global", "ldmatrix", "tcgen05.mma", "add.f32",
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0}, {%1};",
)  # fmt: skip


@cache
def words() -> tuple[str, ...]:
    """List the qualifiers of all legal mnemonics."""
    rows = (*instructions(), *warpgroup_instructions(), *operations(), *matrix_moves())
    return tuple(sorted({word for row in rows for word in str(row).split(".")}))


def mutated(rng: Rng, mnemonic: str) -> str:
    """Change a mnemonic a little: mostly a qualifier or two, at times characters, seldom all of it."""
    if chance(rng, 0.05):
        return pick(rng, _WHOLE)
    parts = mnemonic.split(".")
    for _ in range(1 + chance(rng, 0.2)):
        place = int(rng.integers(len(parts)))
        how = int(rng.integers(6))
        if how == 0:
            parts = [*parts[:place], *parts[place + 1 :]] or [""]
        elif how == 1:
            parts.insert(place, pick(rng, parts))
        elif how == 2:
            parts[place] = pick(rng, words())
        elif how == 3:
            parts.insert(place, pick(rng, words()))
        elif how == 4:
            other = int(rng.integers(len(parts)))
            parts[place], parts[other] = parts[other], parts[place]
        else:
            parts[place] = _misspelt(rng, parts[place])
    return ".".join(parts)


def _misspelt(rng: Rng, word: str) -> str:
    place = int(rng.integers(len(word) + 1))
    letter = pick(rng, _LETTERS)
    changed = (
        word[:place] + word[place + 1 :], word[:place] + letter + word[place:],
        word[:place] + letter + word[place + 1 :],
        word.upper(), word[::-1],
    )  # fmt: skip
    return pick(rng, changed)
