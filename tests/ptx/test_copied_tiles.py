"""Tiles of `wgmma` that `cp.async` brings: a wait and a barrier suffice, as Triton before 3.8 has it (A23)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from warpgroup_kernels import F16, WORDS, codes, run, text

from warpmma.machine import HazardError

pytestmark = pytest.mark.quick

STORES = """ld.global.u32 %v, [%at];
mov.u32 %to, tile; mad.lo.u32 %to, %i, 4, %to; st.shared.u32 [%to], %v;"""
COPIES = "mov.u32 %to, tile; mad.lo.u32 %to, %i, 4, %to; cp.async.ca.shared.global [%to], [%at], 4;"


def copied(wait: str = "cp.async.wait_all;", fence: str = "", **options: Any) -> Any:
    kernel = text(F16, registers=False, more=", 1, 1, 0, 0", fence=f"{wait} {fence}")
    assert STORES in kernel
    kernel = kernel.replace(STORES, COPIES)
    return run(kernel, codes(F16, np.random.default_rng(2), registers=False), WORDS, **options)


@pytest.mark.parametrize("options", [{}, {"seed": 3}, {"hazards": "warn"}, {"hazards": "off"}])
def test_a_wait_and_a_barrier_suffice(options: dict[str, Any]) -> None:
    given = codes(F16, np.random.default_rng(2), registers=False)
    expected = run(text(F16, registers=False, more=", 1, 1, 0, 0"), given, WORDS)
    np.testing.assert_array_equal(copied(**options), expected)
    np.testing.assert_array_equal(
        copied("cp.async.commit_group; cp.async.wait_group 0;", "fence.proxy.async.shared::cta;", hazards="strict"),
        expected,
    )


def test_strict_asks_for_the_fence() -> None:
    with pytest.raises(
        HazardError, match=r"cp.async.ca.shared.global\), and no fence.proxy.async .* \(rule A23\)"
    ) as found:
        copied(hazards="strict")
    assert found.value.hazard.kind == "proxy"


def test_a_wait_is_needed() -> None:
    with pytest.raises(HazardError) as found:
        copied(wait="")
    assert found.value.hazard.kind == "pending"


def test_other_writes_need_the_fence() -> None:
    """Also beside copies: one word of the tile is stored."""
    with pytest.raises(HazardError, match=r"st.shared.u32\), and no fence.proxy.async .* \(rule A5\)"):
        copied("cp.async.wait_all; mov.u32 %to, tile; setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [%to], 5;")
