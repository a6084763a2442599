"""The floating-point environment of a thread: what a library that somebody loaded may have changed."""

from __future__ import annotations

import ctypes.util
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

FLUSH, DOWNWARD, UPWARD, TOWARD_ZERO = 0x8040, 0x2000, 0x4000, 0x6000
"""Bits of MXCSR: subnormal numbers are zeros; directions of rounding."""

_MXCSR = 7  # word of fenv_t: SSE control and status
_CONTROL = 0xFFC0

x86 = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc", reason="knows only glibc's fenv_t on x86-64"
)


class Environment:
    """The calling thread's floating-point environment."""

    def __init__(self) -> None:
        self._libm = ctypes.CDLL(ctypes.util.find_library("m"))
        self._words = (ctypes.c_uint32 * 8)()

    def control(self) -> int:
        assert self._libm.fegetenv(self._words) == 0
        return self._words[_MXCSR] & _CONTROL

    @contextmanager
    def with_control(self, more: int) -> Iterator[None]:
        before = self.control()
        self._set(before | more)
        try:
            yield
        finally:
            self._set(before)

    def _set(self, control: int) -> None:
        assert self._libm.fegetenv(self._words) == 0
        self._words[_MXCSR] = self._words[_MXCSR] & ~_CONTROL | control
        assert self._libm.fesetenv(self._words) == 0
