"""Registers that lie together are a fragment as they are; any others are put together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpmma.machine.handlers.matrix_unit import _together

RNG = np.random.default_rng(0)
SHAPE = (3, 2)
MADE = RNG.integers(0, 1 << 32, (*SHAPE, 4, 32), np.uint32)
ONE_WARP = RNG.integers(0, 1 << 32, (4, 1, 1, 32), np.uint32)
APART = [RNG.integers(0, 1 << 32, (*SHAPE, 32), np.uint32) for _ in range(3)]
OF = [MADE[..., i, :] for i in range(4)]
SAME = np.broadcast_to(np.uint32(7), (*SHAPE, 32))
CASES: dict[str, tuple[list[Any], bool]] = {
    "all of them": (OF, True),
    "the first two": (OF[:2], True),
    "the last two": (OF[2:], True),
    "turned round": (OF[::-1], False),
    "every other": (OF[::2], False),
    "one twice": ([OF[1], OF[1]], False),
    "made apart": (APART, False),
    "some made apart": ([OF[0], APART[0], OF[2]], False),
    "one number": ([SAME, SAME], True),
    "two numbers": ([SAME, np.broadcast_to(np.uint32(8), (*SHAPE, 32))], False),
    "of one warp": (list(ONE_WARP), True),
    "a copy between": ([OF[0], OF[1].copy()], False),
    "parts of blocks": ([MADE[:, ::-1, 0], MADE[:, ::-1, 1]], True),
    "one register": (OF[:1], False),
}


@pytest.mark.parametrize("name", CASES)
def test_registers_of_a_fragment(name: str) -> None:
    registers, together = CASES[name]
    made = _together(registers)
    assert np.array_equal(made, np.stack(registers, axis=-2))
    assert np.shares_memory(made, registers[0]) == together
    assert not together or not made.flags.writeable
