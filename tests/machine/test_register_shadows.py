"""Shadows of registers: which lanes hold poison, however often and by which groups that is asked."""

from __future__ import annotations

import numpy as np
from arrays import Array

from warpmma.machine.base import RegisterShadow, Site
from warpmma.machine.base.warp_register import merged_shadow

SITE = Site("kernel.ptx", 1, "add.u32")


def lanes(*some: int) -> Array:
    found = np.zeros((1, 1, 32), bool)
    found[..., list(some)] = True
    return found


def test_every_group_gets_its_own_answer() -> None:
    shadow, first, other = RegisterShadow(lanes(0, 1)), lanes(0), lanes(0, 2)
    for _ in range(2):
        assert shadow.clean(first)
        assert not shadow.clean(other)
        assert shadow.clean(shadow.written)
    np.testing.assert_array_equal(shadow.poison(other), lanes(2))


def test_lanes_that_a_group_writes_hold_no_poison() -> None:
    group = lanes(*range(8))
    shadow = merged_shadow(RegisterShadow(lanes(20)), None, group, SITE)
    assert shadow is not None and shadow.clean(group)
    np.testing.assert_array_equal(shadow.written, lanes(*range(8), 20))
    again = merged_shadow(shadow, None, group, SITE)
    assert again is not None
    np.testing.assert_array_equal(again.written, shadow.written)
    wider = merged_shadow(again, None, lanes(*range(9)), SITE)
    assert wider is not None and not wider.clean(lanes(9))
    np.testing.assert_array_equal(wider.written, lanes(*range(9), 20))


def test_a_register_that_all_lanes_have_written_has_no_shadow() -> None:
    low, high = lanes(*range(16)), lanes(*range(16, 32))
    half = merged_shadow(RegisterShadow(lanes()), None, low, SITE)
    assert half is not None and merged_shadow(half, None, low, SITE) is not None
    assert merged_shadow(half, None, high, SITE) is None
    assert merged_shadow(None, None, low, SITE) is None


def test_poison_that_a_group_writes_stays_poison() -> None:
    group = lanes(*range(8))
    read = RegisterShadow(lanes(*range(4)), SITE)
    shadow = merged_shadow(RegisterShadow(lanes(*range(8))), read, group)
    assert shadow is not None and not shadow.clean(group)
    np.testing.assert_array_equal(shadow.poison(group), lanes(4, 5, 6, 7))
    np.testing.assert_array_equal(shadow.written, lanes(*range(4)))
