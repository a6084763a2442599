"""Registers that are parts of one fragment are used as that fragment without a copy; others are joined."""

from __future__ import annotations

import numpy as np
import pytest
from assembler import batch_of

from warpmma._arrays import Array
from warpmma.machine import Site, WarpRegister
from warpmma.machine.base import Fragment, with_shadow

RNG = np.random.default_rng(0)
SHAPE = (3, 2)
MADE = RNG.integers(0, 1 << 32, (*SHAPE, 4, 32), np.uint32)
OTHER = RNG.integers(0, 1 << 32, (*SHAPE, 4, 32), np.uint32)
SITE = Site("kernel.py", 1, "mma")
OF, OF_OTHER = ([WarpRegister(x[..., i, :], part=(x, i)) for i in range(4)] for x in (MADE, OTHER))
APART = [WarpRegister(RNG.integers(0, 1 << 32, (*SHAPE, 32), np.uint32)) for _ in range(3)]
CASES: dict[str, tuple[list[WarpRegister], bool]] = {
    "all of them": (OF, True),
    "the first two": (OF[:2], True),
    "the last two": (OF[2:], True),
    "one register": (OF[:1], True),
    "turned round": (OF[::-1], False),
    "every other": (OF[::2], False),
    "one twice": ([OF[1], OF[1]], False),
    "of two fragments": ([OF[0], OF_OTHER[1]], False),
    "made apart": (APART, False),
    "some made apart": ([OF[0], APART[0], OF[2]], False),
    "a copy between": ([OF[0], WarpRegister(OF[1].bits.copy())], False),
}


@pytest.mark.parametrize("name", CASES)
def test_registers_of_a_fragment(name: str) -> None:
    registers, together = CASES[name]
    batch, *_ = batch_of(3, 64)
    made = batch.read_fragment(SITE, registers, batch.lanes.alive)
    assert np.array_equal(made, np.stack([x.bits for x in registers], axis=-2))
    assert np.shares_memory(made, registers[0].bits) == together


def test_what_an_instruction_makes_is_one_fragment() -> None:
    batch, *_ = batch_of(3, 64)
    registers = batch.fragment(MADE, batch.lanes.alive, SITE)
    assert np.shares_memory(batch.read_fragment(SITE, registers, batch.lanes.alive), MADE)


def test_registers_of_a_fragment_are_made_when_one_is_read() -> None:
    made: list[int] = []

    def make() -> Array:
        made.append(1)
        return MADE

    batch, *_ = batch_of(3, 64)
    lanes = batch.lanes.alive & (np.arange(32) < 9)
    fragment = Fragment((*SHAPE, 4, 32), np.uint32, make)
    registers = batch.fragment(fragment, lanes, SITE, lanes)
    assert len({id(x.shadow) for x in registers}) == 1  # they share one
    assert registers[0].shadow is not None and not registers[0].shadow.written.any()
    known = [with_shadow(x, None) for x in registers]
    batch.check(SITE, known, [lanes] * 4)
    assert [x.kind for x in known] == ["b32"] * 4 and not made
    assert all(np.array_equal(x.bits, MADE[..., i, :]) for i, x in enumerate(known))
    assert np.shares_memory(batch.together(known[1:3]), MADE) and len(made) == 1
    plain = with_shadow(OF[2], registers[0].shadow)
    assert plain.bits is OF[2].bits and plain.part is OF[2].part and plain.shadow is registers[0].shadow
