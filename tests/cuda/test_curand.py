"""cuRAND's generators for the device give the numbers of their specifications."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import warpmma as wm
from warpmma.cuda import nvrtc

pytestmark = [
    pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc()),
    pytest.mark.skipif(
        not any((x / "curand_kernel.h").is_file() for x in nvrtc.include_folders(nvrtc.nvrtc_version()[0])),
        reason="no curand_kernel.h",
    ),
]

SOURCE = """#include <curand_kernel.h>
__global__ void k(unsigned *words, float *numbers, int n, unsigned long long seed, unsigned long long offset)
{
    curandStatePhilox4_32_10_t one, two;
    curand_init(seed, threadIdx.x, offset, &one);
    two = one;
    for (int i = 0; i < n; i++) {
        words[threadIdx.x * n + i] = curand(&one);
        numbers[threadIdx.x * n + i] = curand_uniform(&two);
    }
}
"""


def philox(counter: int, key: int) -> Iterator[int]:
    """Philox-4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011)."""
    a, b, c, d = (counter >> 32 * i & 0xFFFFFFFF for i in range(4))
    low, high = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        x, y = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (y >> 32) ^ b ^ low, y & 0xFFFFFFFF, (x >> 32) ^ d ^ high, x & 0xFFFFFFFF
        low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
    yield from (a, b, c, d)


def test_the_reference_gives_the_known_answers() -> None:
    """The first of the authors' own file of known answers (Random123, kat_vectors), and that of all ones."""
    assert [f"{x:08x}" for x in philox(0, 0)] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    assert [f"{x:08x}" for x in philox(2**128 - 1, 2**64 - 1)] == ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]


@pytest.mark.parametrize(("seed", "offset"), [(0, 0), (1234, 6), (0x123456789ABCDEF0, 2**34 + 3)])
def test_philox_gives_the_words_of_its_paper(seed: int, offset: int) -> None:
    threads, n = 33, 7
    words, numbers = np.zeros((threads, n), np.uint32), np.zeros((threads, n), np.float32)
    wm.cuda.load(SOURCE)["k"].launch(wm.Device("sm_80"), 1, threads, [words, numbers, n, seed, offset])
    for thread in range(threads):
        at = range(offset, offset + n)  # of four words of each counter; the thread's number is its upper half
        blocks = {i // 4: list(philox(thread << 64 | i // 4, seed)) for i in at}
        assert words[thread].tolist() == [blocks[i // 4][i % 4] for i in at]
    # (0, 1]: x * 2^-32 + 2^-33 in one rounding, of x as a float; all of it is exact in float64 until then
    assert (numbers == (words.astype(np.float32).astype(np.float64) * 2.0**-32 + 2.0**-33).astype(np.float32)).all()
