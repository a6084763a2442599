"""Shared tiles that are swizzled on one side only, when they are stored or when they are loaded.

Shared memory is a list of chunks of 16 bytes here; a place says at which of them chunk `c` of line `r` lies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from arrays import Array

import warpmma as wm

from .written_out import BF16, E4M3, F16, S8, TF32, Given, plant

Place = Callable[[int, int], int]


def through_shared(matrix: Array, store: Place, load: Place, chunks: int = 0) -> Array:
    """A matrix, stored to shared memory by rows and loaded again, panel by panel of so many chunks; 0 was there."""
    raw = np.ascontiguousarray(matrix)
    cut = raw.view(np.uint8).reshape(len(raw), -1, 16)
    panel = chunks or cut.shape[1]
    out = np.zeros_like(cut)
    for first in range(0, cut.shape[1], panel):
        shared = np.zeros((2 * len(raw) * panel, 16), np.uint8)
        for r, c in np.ndindex(len(raw), panel):
            shared[store(r, c)] = cut[r, first + c]
        for r, c in np.ndindex(len(raw), panel):
            out[r, first + c] = shared[load(r, c)]
    loaded: Array = out.reshape(len(raw), -1).view(raw.dtype)
    return loaded


def plain(pitch: int) -> Place:
    return lambda r, c: r * pitch + c


def xored(pitch: int, mask: Callable[[int], int]) -> Place:
    """The chunk is exchanged by the row."""
    return lambda r, c: r * pitch + (c ^ mask(r))


def by_address(pitch: int, most: int) -> Place:
    """Bits 4 and up of the address are exchanged by bits 7 and up, as TMA and CuTe's Swizzle<.., 4, 3> do."""
    return lambda r, c: (r * pitch + c) ^ (r * pitch + c) >> 3 & (most - 1)


def product(instruction: str, given: Given, **changed: Any) -> Array:
    of = {**given, **changed}
    d: Array = wm.matmul(of["a"], of["b"], of["c"], instruction=instruction, target="sm_90")
    return d


def turned(matrix: Array) -> Array:
    return np.ascontiguousarray(matrix.T)


@plant(F16, "16 bytes of the whole A were exchanged by (row >> 1) % 4", shape=(16, 8, 96))
def tiles_of_32_k_stored_with_a_swizzle(given: Given) -> Array:
    a = through_shared(given["a"], xored(4, lambda r: r >> 1 & 3), plain(4), chunks=4)
    return product(F16, given, a=a)


@plant(BF16, "16 bytes of the whole B were exchanged by column % 4", shape=(32, 16, 96))
def columns_of_b_loaded_with_a_swizzle(given: Given) -> Array:
    b = through_shared(turned(given["b"]), plain(12), xored(12, lambda r: r & 3))
    return product(BF16, given, b=turned(b))


@plant(F16, "the whole A, by rows in memory, were exchanged by bits 9:7 of their addresses", shape=(32, 16, 96))
def a_128_byte_swizzle_of_rows_of_192_bytes(given: Given) -> Array:
    return product(F16, given, a=through_shared(given["a"], by_address(12, 8), plain(12)))


@plant(F16, "16 bytes of the whole A were exchanged by row % 8, reading what follows in memory", shape=(32, 16, 96))
def eight_chunks_exchanged_of_twelve(given: Given) -> Array:
    """The load reads beyond the end of a row for some chunks."""
    return product(F16, given, a=through_shared(given["a"], plain(12), xored(12, lambda r: r & 7)))


@plant(F16, "16 bytes of the whole A were exchanged by row % 8, reading 0 beyond 96 k", shape=(32, 16, 96))
def rows_padded_to_256_bytes(given: Given) -> Array:
    return product(F16, given, a=through_shared(given["a"], xored(16, lambda r: r & 7), plain(16)))


@plant(F16, "A, in panels of 48 k, were exchanged by row % 8, reading what follows in memory", shape=(32, 16, 96))
def panels_of_six_chunks(given: Given) -> Array:
    return product(F16, given, a=through_shared(given["a"], plain(6), xored(6, lambda r: r & 7), chunks=6))


@plant(BF16, "by columns in memory, in panels of 48 k, were exchanged by bits 8:7 of their", shape=(16, 32, 96))
def a_64_byte_swizzle_of_rows_of_96_bytes(given: Given) -> Array:
    b = through_shared(turned(given["b"]), by_address(6, 4), plain(6), chunks=6)
    return product(BF16, given, b=turned(b))


@plant(S8, "16 bytes of A were exchanged by (row >> 2) % 2", shape=(32, 8, 96))
def bytes_in_tiles_of_32(given: Given) -> Array:
    return product(S8, given, a=through_shared(given["a"], plain(2), by_address(2, 2), chunks=2))


@plant(TF32, "16 bytes of the whole A were exchanged by row % 8", shape=(32, 16, 96))
def tf32_rows_of_384_bytes(given: Given) -> Array:
    return product(TF32, given, a=through_shared(given["a"], xored(24, lambda r: r & 7), plain(24)))


@plant(F16, "16 bytes of the whole B were exchanged by k % 4", shape=(16, 96, 32))
def rows_of_b_for_ldmatrix_trans(given: Given) -> Array:
    return product(F16, given, b=through_shared(given["b"], xored(12, lambda r: r & 3), plain(12)))


@plant(F16, "16 bytes of the whole D were exchanged by row % 8", shape=(64, 64, 32))
def results_staged_in_shared_memory(given: Given) -> Array:
    return through_shared(product(F16, given), xored(16, lambda r: r & 7), plain(16))


@plant(E4M3, "by columns in memory, in panels of 32 k, were exchanged by bits 9:7 of their", shape=(16, 64, 128))
def a_wide_swizzle_of_narrow_panels(given: Given) -> Array:
    b = through_shared(turned(given["b"]), by_address(2, 8), plain(2), chunks=2)
    return product(E4M3, given, b=turned(b))


@plant(F16, "16 bytes of the whole A were exchanged by row % 8", shape=(128, 128, 256))
def a_large_a_stored_with_a_swizzle(given: Given) -> Array:
    return product(F16, given, a=through_shared(given["a"], xored(32, lambda r: r & 7), plain(32)))


@plant(F16, "16 bytes of the whole B were exchanged by k % 8", shape=(128, 128, 256))
def a_large_b_loaded_with_a_swizzle(given: Given) -> Array:
    return product(F16, given, b=through_shared(given["b"], plain(16), xored(16, lambda r: r & 7)))


@plant(BF16, "16 bytes of the whole B were exchanged by column % 8", shape=(128, 128, 256))
def panels_of_64_k_as_tma_writes_them(given: Given) -> Array:
    b = through_shared(turned(given["b"]), by_address(8, 8), plain(8), chunks=8)
    return product(BF16, given, b=turned(b))
