"""The legal mnemonic that is nearest to a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from heapq import nlargest

from ...errors import letters, nearest

_NEAR = 0.6
_LIKELY = 64  # candidates that are compared letter by letter


def near(name: str, legal: Collection[str]) -> str | None:
    """Return the mnemonic most similar to a name, if there is one and its opcode is similar as well.

    Examples
    --------
    >>> near("cvt.f16.f32.rn", ["cvt.rn.f16.f32", "cvt.f64.f32", "add.f16"])
    'cvt.rn.f16.f32'
    >>> near("foo.f16", ["cvt.rn.f16.f32", "cvt.f64.f32", "add.f16"])
    """
    opcode, words = _opcode(name), Counter(name.split("."))
    like = letters(opcode)
    opcodes = {each for each in map(_opcode, legal) if like(each) >= _NEAR}

    def by_words(mnemonic: str) -> tuple[float, int]:
        """Similarity of the words in any order; for ties, how many of them the name has."""
        others = Counter(mnemonic.split("."))
        same = 2 * (words & others).total() / (words.total() + others.total())
        return same, sum(count for word, count in others.items() if word in words)

    by_letters = letters(name)
    likely = nlargest(_LIKELY, (mnemonic for mnemonic in legal if _opcode(mnemonic) in opcodes), by_words)
    return nearest(name, likely, _NEAR, lambda mnemonic: (by_words(mnemonic)[0] + by_letters(mnemonic)) / 2)


def _opcode(name: str) -> str:
    return name.partition(".")[0]
