"""Tensor maps that the driver encodes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

from lab.gpu.driver import Driver

__all__ = ["driver_map"]

_MAP = 128


@cache
def _driver() -> Driver:
    return Driver()


def driver_map(
    kind: int, address: int, dims: Sequence[int], strides: Sequence[int], box: Sequence[int], steps: Sequence[int],
    modes: Sequence[int],
) -> bytes:  # fmt: skip
    """Return the bytes that `cuTensorMapEncodeTiled` writes for these arguments, the innermost dimension first."""
    _driver().attach()
    driver = ctypes.CDLL("libcuda.so.1")
    room = ctypes.create_string_buffer(2 * _MAP)
    place = ctypes.addressof(room) + _MAP - 1 & -_MAP

    def numbers(type_: Any, values: Sequence[int]) -> Any:
        return (type_ * max(len(values), 1))(*values)

    status = driver.cuTensorMapEncodeTiled(
        ctypes.c_void_p(place), ctypes.c_int(kind), ctypes.c_uint32(len(dims)), ctypes.c_void_p(address),
        numbers(ctypes.c_uint64, dims), numbers(ctypes.c_uint64, strides), numbers(ctypes.c_uint32, box),
        numbers(ctypes.c_uint32, steps), *map(ctypes.c_int, modes),
    )  # fmt: skip
    if status:
        raise ValueError(f"cuTensorMapEncodeTiled: {status}")
    return ctypes.string_at(place, _MAP)
