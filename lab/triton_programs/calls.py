"""Calls of Triton kernels, without Triton: arrays by name, and calls one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from lab.programs.launches import Array, Struct, words

__all__ = ["Call", "Described", "Program", "TritonCase", "blank", "floats", "given_type", "integers"]


@dataclass(frozen=True)
class Described:
    """An argument: a descriptor that the host makes of an array in blocks; `shape`, if it is not the array's."""

    array: str
    block: tuple[int, ...]
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Call:
    """A call of a kernel.

    Attributes
    ----------
    kernel : str
        Its module and name.
    grid : tuple of int
    arguments : tuple
        Names of arrays, descriptors, and numbers.
    meta : mapping
        Values of `tl.constexpr`, `num_warps`, `num_stages`.
    """

    kernel: str
    grid: tuple[int, ...]
    arguments: tuple[str | int | float | Described, ...]
    meta: Mapping[str, Any]


@dataclass(frozen=True)
class Program:
    """Arrays on a device, calls one after the other, and the names of the arrays that are compared afterwards.

    Kernels that make descriptors put them into the array "scratch".
    """

    arrays: Mapping[str, Array | Struct]
    calls: tuple[Call, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class TritonCase:
    """A run of kernels.

    Attributes
    ----------
    name : str
    make : callable
        Makes the program; the same one every time.
    ptx : str
        The target that Triton compiles for; that of the arithmetic is the GPU's.
    options : mapping
        Of the compiler, for every call.
    """

    name: str
    make: Callable[[], Program] = field(repr=False)
    ptx: str = "sm_80"
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return self.name


_TYPES: dict[str, Any] = {
    "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "f16": np.float16,
    "f32": np.float32, "f64": np.float64, "s8": np.int8, "s16": np.int16, "s32": np.int32, "s64": np.int64,
    "u32": np.uint32,
}  # fmt: skip


def given_type(name: str) -> Any:
    """Return the type of elements for a PTX name."""
    return _TYPES[name]


def floats(seed: int, type_: str, *shape: int, lowest: int = -6, highest: int = 2) -> Array:
    """Numbers of either sign with magnitudes from 2^lowest to 2^highest, all of whose fraction bits are random."""
    word = words(seed, *shape)
    fractions = 1 + (word >> np.uint64(12)).astype(np.float64) * 2.0**-52
    exponents = lowest + (word & np.uint64(0x1FF)).astype(np.int32) % (highest - lowest)
    signs = np.where(word & np.uint64(0x200), -1.0, 1.0)
    made: Array = (np.ldexp(fractions, exponents) * signs).astype(given_type(type_))
    return made


def integers(seed: int, type_: str, below: int, *shape: int) -> Array:
    """Whole numbers from 0, or all that the type has where `below` is 0."""
    word = words(seed, *shape)
    made: Array = (word % np.uint64(below) if below else word).astype(given_type(type_))
    return made


def blank(type_: str, *shape: int) -> Array:
    """Return unwritten memory: all bits set."""
    dtype = np.dtype(given_type(type_))
    made: Array = np.full(int(np.prod(shape)) * dtype.itemsize, 0xFF, np.uint8).view(dtype).reshape(shape)
    return made
