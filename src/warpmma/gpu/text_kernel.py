"""Kernels that are a text with constants in front, and launches of them."""

from __future__ import annotations

from dataclasses import dataclass

from .._records import Shown


@dataclass(frozen=True, kw_only=True)
class TextKernel(Shown):
    """A kernel: CUDA C++, the name of its entry, and the target of NVRTC where it is not the GPU's own."""

    text: str
    name: str
    arch: str = ""


@dataclass(frozen=True, kw_only=True)
class TextLaunch(Shown):
    """A launch of a kernel that takes one structure."""

    kernel: TextKernel
    grid: int
    threads: int
    given: bytes

    def argument(self) -> bytes:
        """Return the structure that the kernel takes."""
        return self.given
