"""The legal mnemonic that is nearest to a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from heapq import nlargest

from ...errors import letters

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
    like = letters(_opcode(name))
    opcodes = {each for each in {_opcode(x) for x in legal} if like(each) >= _NEAR}
    words = Counter(name.split("."))

    def by_words(mnemonic: str) -> tuple[float, int]:
        """Similarity of the words in any order; for ties, how many of them the name has."""
        others = mnemonic.split(".")
        known = [word for word in others if word in words]
        same = len(known)
        if len({*known}) < same:
            same = (words & Counter(known)).total()
        return 2 * same / (words.total() + len(others)), len(known)

    ranked = ((by_words(mnemonic), mnemonic) for mnemonic in legal if _opcode(mnemonic) in opcodes)
    return _most_like(name, nlargest(_LIKELY, ranked, lambda pair: pair[0]))


def _most_like(name: str, likely: list[tuple[tuple[float, int], str]]) -> str | None:
    """Return the mnemonic with the greatest mean of its similarities in words and letters; the first, if several have.

    Letters are compared as long as the letters that both have, in any order, permit a mean above the best one.
    """
    by_letters = letters(name)
    bounds = [(by_words + by_letters(mnemonic, bound=True)) / 2 for (by_words, _), mnemonic in likely]
    best, found = _NEAR, len(likely)
    for place in sorted(range(len(likely)), key=lambda x: -bounds[x]):
        if bounds[place] < best:
            break
        (by_words, _), mnemonic = likely[place]
        mean = (by_words + by_letters(mnemonic)) / 2
        if mean > best or (mean == best and place < found):
            best, found = mean, place
    return likely[found][1] if found < len(likely) else None


def _opcode(name: str) -> str:
    return name.partition(".")[0]
