"""A tensor copy, written element by element from the rules: slow, and obvious."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from warpmma.layouts import Im2colBox, TensorMap

Elements = Iterator[tuple[tuple[int, ...], int]]


def tiled(map_: TensorMap, start: Sequence[int]) -> Elements:
    """Yield the coordinates of each element of a box, and its byte in shared memory without swizzle."""
    counts = [-(-b // e) for b, e in zip(map_.box, map_.element_strides, strict=True)]
    if map_.interleave:
        counts[1] = 1
        for row, outer in enumerate(product(*(range(n) for n in counts))):
            coordinates = [s + e * x for s, e, x in zip(start, map_.element_strides, outer, strict=True)]
            yield from sliced(map_, coordinates, row)
        return
    counts[-1] = map_.box[-1]
    pitch = max(map_.box[-1] * map_.itemsize, map_.swizzle)
    for row, outer in enumerate(product(*(range(n) for n in counts[:-1]))):
        for i in range(counts[-1]):
            coordinates = [s + e * x for s, e, x in zip(start, map_.element_strides, outer, strict=False)]
            yield (*coordinates, start[-1] + i), row * pitch + i * map_.itemsize


def sliced(map_: TensorMap, coordinates: Sequence[int], row: int) -> Elements:
    """Yield the elements of a slice, with their number as one more coordinate."""
    for i in range(map_.interleave // map_.itemsize):
        yield (*coordinates, i), row * map_.interleave + i * map_.itemsize


def im2col(map_: TensorMap, start: Sequence[int], offsets: Sequence[int]) -> Elements:
    """Walk from pixel to pixel."""
    box: Im2colBox = map_.box
    n, *pixel, c = (start[0], *start[2:], start[1]) if map_.interleave else start
    spatial, first = range(len(pixel)), 2 if map_.interleave else 1
    last = [map_.shape[first + i] - 1 + box.upper[i] for i in spatial]
    pitch = max(box.channels * map_.itemsize, map_.swizzle)
    for row in range(box.pixels):
        moved = [x + o for x, o in zip(pixel, offsets, strict=True)]
        if map_.interleave:
            yield from sliced(map_, (n, c, *moved), row)
        for i in range(0 if map_.interleave else box.channels):
            yield (n, *moved, c + i), row * pitch + i * map_.itemsize
        for axis in reversed(spatial):
            pixel[axis] += map_.element_strides[first + axis]
            if pixel[axis] <= last[axis]:
                break
            pixel[axis] = box.lower[axis]
        else:
            n += map_.element_strides[0]


def elements(map_: TensorMap, start: Sequence[int], offsets: Sequence[int]) -> Elements:
    """Yield the elements of a copy of either mode."""
    return im2col(map_, start, offsets) if map_.im2col else tiled(map_, start)


def byte_strides(map_: TensorMap) -> tuple[int, ...]:
    """Return the bytes between neighbours along each coordinate, of a slice's elements too."""
    return (*map_.strides, *([map_.interleave] if map_.interleave else []), map_.itemsize)


def swizzled(address: int, width: int) -> int:
    """Move a byte within its line of 128 bytes."""
    return address ^ ((address // 128 % (width // 16)) * 16 if width else 0)


def read(
    map_: TensorMap, memory: bytes, start: Sequence[int], at: int, offsets: Sequence[int], shared: bytearray
) -> int:
    """Load a box into shared memory, whose byte 0 has address 0; return the bytes at the mbarrier."""
    size, count, strides = map_.itemsize, 0, byte_strides(map_)
    for coordinates, offset in elements(map_, start, offsets):
        count += size
        if all(0 <= x < n for x, n in zip(coordinates, map_.shape, strict=False)):
            place = sum(x * s for x, s in zip(coordinates, strides, strict=True))
            brought = memory[place : place + size]
            if map_.type.startswith("tf32"):
                brought = tf32(int.from_bytes(brought, "little")).to_bytes(4, "little")
        else:
            brought = (b"\xf7\x7f" * 4)[:size] if map_.fill == "nan" else bytes(size)
        for i, byte in enumerate(brought):
            shared[swizzled(at + offset + i, map_.swizzle)] = byte
    return count


def write(map_: TensorMap, memory: bytearray, start: Sequence[int], at: int, shared: bytes) -> None:
    """Store a box."""
    size, strides = map_.itemsize, byte_strides(map_)
    for coordinates, offset in elements(map_, start, (0,) * (map_.rank - 2)):
        first = coordinates[-1] - coordinates[-1] % (16 // size)  # of its chunk of 16 bytes
        if all(0 <= x < n for x, n in zip((*coordinates[:-1], first), map_.shape, strict=False)):
            place = sum(x * s for x, s in zip(coordinates, strides, strict=True))
            for i in range(size):
                memory[place + i] = shared[swizzled(at + offset + i, map_.swizzle)]


def tf32(code: int) -> int:
    """Round a code of f32 to 10 bits of fraction, ties to even."""
    if code & 0x7FFFFFFF > 0x7F800000:
        return 0x7FFFE000
    kept, rest = code >> 13, code & 0x1FFF
    kept += rest > 0x1000 or (rest == 0x1000 and kept & 1)
    return kept << 13


def dump(map_: TensorMap, case: dict[str, Any], memory: bytes, size: int) -> tuple[npt.NDArray[np.uint8], int]:
    """Load a case of `lab.generators.tensor_map_cases` into shared memory of 0xA5."""
    shared = bytearray(b"\xa5" * size)
    count = read(map_, memory, case["start"][::-1], case["at"], case["offsets"][::-1], shared)
    return np.frombuffer(bytes(shared), np.uint8), count
