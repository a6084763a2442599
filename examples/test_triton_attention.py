"""A Triton kernel tested on a laptop: `pytest test_triton_attention.py`, with `pip install 'warpmma[triton]' pytest`.

What is asked is what a GPU would answer: results near those of float64; the same bits whoever goes first, and for every
head, whatever its neighbours hold; and that nothing is read which nobody wrote, or beyond an array: that is an error by
itself, and the last test shows one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton.language", reason="pip install 'warpmma[triton]'")

from triton_attention import attention, attention_kernel

import warpmma as wm
from warpmma.machine import HazardError

HEADS, DEPTH = 2, 32


def inputs(length: int) -> list[Any]:
    rng = np.random.default_rng(length)
    return [rng.standard_normal((HEADS, length, DEPTH)).astype(np.float16) for _ in "qkv"]


def attend(q: Any, k: Any, v: Any, *, causal: bool, **options: Any) -> Any:
    with wm.triton.device("sm_90", **options) as gpu:
        out = gpu.device.empty(q.shape, np.float16)  # which nobody has written: a row left out is found
        q_there, k_there, v_there = (gpu.device.array(x) for x in (q, k, v))
        attention(q_there, k_there, v_there, out, causal=causal)
    return out.numpy()


def expected(q: Any, k: Any, v: Any, *, causal: bool) -> Any:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(1, 2) * DEPTH**-0.5
    if causal:
        scores = np.where(np.tri(q.shape[1], dtype=bool), scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [1, 50])
def test_attention_is_near_float64(length: int, causal: bool) -> None:
    given = inputs(length)
    np.testing.assert_allclose(attend(*given, causal=causal), expected(*given, causal=causal), atol=2e-3)


def test_a_head_has_the_same_bits_beside_any_other_and_in_any_order() -> None:
    q, k, v = inputs(50)
    once = attend(q, k, v, causal=True)
    again = attend(q, k, np.concatenate([v[:1], 1 - v[1:]]), causal=True, seed=7)
    np.testing.assert_array_equal(once[0].view(np.uint16), again[0].view(np.uint16))


def test_a_wrong_length_is_found_where_it_is_read() -> None:
    q, k, v = inputs(50)
    with wm.triton.device("sm_90") as gpu:
        placed = [gpu.device.array(x) for x in (q, k, v, np.zeros_like(q))]
        with pytest.raises(HazardError, match=r"^triton_attention\.py:\d+: .* bounds: .* address"):
            attention_kernel[2, HEADS](*placed, 51, DEPTH**-0.5, CAUSAL=False, BM=32, BN=32, D=DEPTH)
