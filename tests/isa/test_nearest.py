"""The nearest mnemonic is the one that a comparison with all finds."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher
from random import Random

import pytest

from warpmma.isa.grammar import near
from warpmma.operations.table import FORMS


def plainly(name: str, legal: list[str]) -> str | None:
    """Compare a name with the 64 mnemonics most like it by words, letter by letter."""
    words = Counter(name.split("."))

    def letters(other: str, to: str) -> float:
        return SequenceMatcher(None, other, to).ratio()

    def by_words(mnemonic: str) -> tuple[float, int]:
        others = Counter(mnemonic.split("."))
        same = 2 * (words & others).total() / (words.total() + others.total())
        return same, sum(count for word, count in others.items() if word in words)

    opcode = name.partition(".")[0]
    alike = {x: letters(x, opcode) >= 0.6 for x in {x.partition(".")[0] for x in legal}}
    likely = sorted((x for x in legal if alike[x.partition(".")[0]]), key=by_words, reverse=True)[:64]
    means = {x: (by_words(x)[0] + letters(x, name)) / 2 for x in likely}
    best = max(means, key=means.__getitem__, default=None)
    return best if best is not None and means[best] >= 0.6 else None


def changed(random: Random, mnemonic: str, words: list[str]) -> str:
    """Add, drop, move or exchange words and letters."""
    name = mnemonic.split(".")
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(name))
        match random.randrange(5):
            case 0:
                random.shuffle(name)
            case 1:
                name.insert(at, random.choice(words))
            case 2:
                name[at] = random.choice(words)
            case 3:
                name.append(name[at])
            case 4:
                name[at] = name[at][:1] + random.choice("abx12") + name[at][2:]
    return ".".join(name)


@pytest.mark.parametrize("opcode", ["cvt", "ld", "cp", "atom", "mbarrier"])
def test_the_nearest_of_all(opcode: str) -> None:
    random = Random(opcode)
    legal = [x for form in FORMS for x in form.mnemonics if x.startswith(f"{opcode}.")]
    other = random.sample([x for form in FORMS for x in form.mnemonics], 100)
    words = sorted({word for x in legal for word in x.split(".")})
    answers = set()
    for i in range(30):
        name = changed(random, random.choice(legal), words)
        among = legal if i % 4 else [*random.sample(legal, min(len(legal), 30)), *other]
        answers.add(found := near(name, among))
        assert found == plainly(name, among), name
    assert len(answers) > 10
