"""The legal mnemonic that is nearest to a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

_NEAR = 0.6


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
