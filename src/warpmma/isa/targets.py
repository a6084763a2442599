"""Targets: the generation of each, and its limits of blocks, grids and shared memory.

Sources: the CUDA Programming Guide 13, 5.1 "Compute Capabilities", tables 30 and 31, which begin at 7.5; for 7.0 and
7.2, the same table in the CUDA C++ Programming Guide 11, "Technical Specifications per Compute Capability"; for 8.8,
which is in neither, the architecture traits of CCCL 3 (`cuda/__device/arch_traits.h`), equal to those of 8.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .._records import Shown

_KIB = 1024


@dataclass(frozen=True, kw_only=True)
class Target(Shown):
    """One target, such as sm_90a.

    Attributes
    ----------
    name : str
        "f" at its end marks family-specific and "a" architecture-specific features.
    generation : str
        Targets of one generation share their arithmetic.
    shared_per_block : int
        Maximum bytes of shared memory per block, if dynamic and requested with cudaFuncSetAttribute.
    shared_per_sm : int
        Maximum bytes of shared memory per multiprocessor; from sm_80 on, each block takes 1 KiB more than it requests.
    threads_per_sm : int
        Maximum number of threads per multiprocessor.
    source : str
        Source of the limits.
    static_shared : int
        Maximum bytes of shared memory per block without that request.
    threads_per_block : int
    block, grid : (int, int, int)
        Maximum number of threads of a block, and of blocks of a grid, along x, y and z.
    registers_per_thread, registers_per_block : int
        Of 32 bits. A multiprocessor has as many as a block may have.
    cluster : int
        Maximum number of blocks of a cluster, if more than the portable 8 are requested with cudaFuncSetAttribute; 1
        where there are no clusters.

    Examples
    --------
    >>> TARGETS["sm_120a"].shared_per_block // 1024, TARGETS["sm_120a"].capability
    (99, (12, 0))
    """

    name: str
    generation: str
    shared_per_block: int
    shared_per_sm: int
    threads_per_sm: int
    source: str
    static_shared: int = 48 * _KIB
    threads_per_block: int = 1024
    block: tuple[int, int, int] = (1024, 1024, 64)
    grid: tuple[int, int, int] = ((1 << 31) - 1, 65535, 65535)
    registers_per_thread: int = 255
    registers_per_block: int = 65536
    cluster: int = 1

    def __str__(self) -> str:
        return self.name

    @property
    def number(self) -> int:
        """Its number: 103 of sm_103a."""
        return int(self.name.removeprefix("sm_").rstrip("af"))

    @property
    def features(self) -> str:
        """The features that later targets need not have: "" for none, "f" of its family, "a" also its own."""
        return self.name[-1] if self.name[-1] in "af" else ""

    @property
    def capability(self) -> tuple[int, int]:
        """Its compute capability: (10, 3) of sm_103a. Targets with the same major number are a family."""
        major, minor = divmod(self.number, 10)
        return major, minor


_GUIDE = "CUDA Programming Guide 13, 5.1, tables 30 and 31"
_OLDER = "CUDA C++ Programming Guide 11, Technical Specifications per Compute Capability"
_TRAITS = "CCCL 3, cuda/__device/arch_traits.h: the limits of 8.6"
_WIDE_CLUSTERS = (90, 100, 103)  # the portable 8 elsewhere
_PLAIN, _OWN, _FAMILY = ("",), ("", "a"), ("", "f", "a")

# Number and suffixes; generation; KiB of shared memory per block and per multiprocessor; threads per SM; source.
_ROWS: tuple[tuple[int, tuple[str, ...], str, int, int, int, str], ...] = (
    (70, _PLAIN, "Volta", 96, 96, 2048, _OLDER),
    (72, _PLAIN, "Volta", 96, 96, 2048, _OLDER),
    (75, _PLAIN, "Turing", 64, 64, 1024, _GUIDE),
    (80, _PLAIN, "Ampere", 163, 164, 2048, _GUIDE),
    (86, _PLAIN, "Ampere", 99, 100, 1536, _GUIDE),
    (87, _PLAIN, "Ampere", 163, 164, 1536, _GUIDE),
    (88, _PLAIN, "Ampere", 99, 100, 1536, _TRAITS),
    (89, _PLAIN, "Ada", 99, 100, 1536, _GUIDE),
    (90, _OWN, "Hopper", 227, 228, 2048, _GUIDE),
    (100, _FAMILY, "Blackwell", 227, 228, 2048, _GUIDE),
    (103, _FAMILY, "Blackwell", 227, 228, 2048, _GUIDE),
    (110, _FAMILY, "Blackwell", 227, 228, 1536, _GUIDE),
    (120, _FAMILY, "RTX Blackwell", 99, 100, 1536, _GUIDE),
    (121, _FAMILY, "RTX Blackwell", 99, 100, 1536, _GUIDE),
)

TARGETS: Mapping[str, Target] = MappingProxyType({
    f"sm_{number}{suffix}": Target(
        name=f"sm_{number}{suffix}", generation=generation, shared_per_block=block * _KIB, shared_per_sm=sm * _KIB,
        threads_per_sm=threads, source=source, cluster=1 if number < 90 else 16 if number in _WIDE_CLUSTERS else 8,
    )
    for number, suffixes, generation, block, sm, threads, source in _ROWS for suffix in suffixes
})  # fmt: skip
"""Every target that has an `mma`, by its name, oldest first."""

TARGET_NAMES = tuple(TARGETS)
"""Every target that has an `mma`, oldest first; "f" marks family-specific and "a" architecture-specific features."""
