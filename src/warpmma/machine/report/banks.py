"""Banks of shared memory: phases, wavefronts and conflicts; swizzles, XORs of address bits, that avoid them.

Shared memory has 32 banks of 4 bytes. An access of a warp is divided into phases of at most 128 bytes: all lanes for up
to 4 bytes a lane, half a warp for 8, a quarter for 16. A phase takes one wavefront for every word that its busiest bank
has to deliver; lanes that access the same word share it. Wavefronts beyond one per phase are conflicts.

An `ld` of 8 or 16 bytes a lane has half as many phases, of twice the lanes, if throughout the warp neighbours access
the same address: each lane and the one whose number differs in the lowest bit, or each and the one that differs in the
second; inactive lanes match any address. Stores and `ldmatrix` never do so. `python -m lab.compare.banks` compared all
of this with an H200's counters; `cp.async` of 16 bytes, which they do not count, is treated as a store.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar, cast

import numpy as np

from ..._arguments import is_integer
from ..._arrays import Array, as_array
from ..._records import Shown
from ...errors import OperandError, shown
from ..base import Site, alike

T = TypeVar("T", bound=Any)

_MOST_BITS = 32  # of an address of shared memory

BANKS = 32
_WORD = 4
_PHASE = BANKS * _WORD
# Different accesses that are kept for a line, to try swizzles on: 256 bytes each.
_PATTERNS = 4096
_FEW, _AGAIN = 32, 64  # most accesses that are counted together and cached; cached entries of a line


@dataclass(frozen=True)
class Swizzle(Shown):
    """An XOR of address bits: `bits` of them, from `shift` positions higher, onto those from `base` on.

    CUTLASS writes it `Swizzle<bits, base, shift>`.

    Examples
    --------
    >>> Swizzle(3, 4, 3)(np.array([0x080, 0x100, 0x190])).tolist()
    [144, 288, 416]
    >>> print(Swizzle(3, 4, 3))
    Swizzle<3, 4, 3>: address ^ (address >> 3 & 0x70)
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        for name in ("bits", "base", "shift"):
            if not is_integer(value := getattr(self, name)) or not 0 <= value <= _MOST_BITS:
                raise OperandError(f"{name} of a swizzle is {shown(value)}; expected 0 to {_MOST_BITS}")

    def __call__(self, address: T) -> T:
        """Return swizzled addresses, of an array or of a register of a kernel.

        Raises
        ------
        OperandError
            Not integers, or integers too narrow for the address bits.
        """
        if isinstance(address, np.ndarray):
            address = cast(T, as_array(address, "the addresses"))
        try:
            swizzled: T = address ^ (address >> int(self.shift) & self.mask)
        except (TypeError, OverflowError):
            kind = f"an array of {address.dtype}" if isinstance(address, np.ndarray) else type(address).__name__
            bits = self.bits + self.base + self.shift
            raise OperandError(
                f"an address is {kind}; expected integers that hold {bits} bits, or a register of a kernel"
            ) from None
        return swizzled

    @property
    def mask(self) -> int:
        """The address bits that it changes."""
        return ((1 << int(self.bits)) - 1) << int(self.base)

    def __str__(self) -> str:
        name = f"Swizzle<{self.bits}, {self.base}, {self.shift}>"
        return f"{name}: address ^ (address >> {self.shift} & {self.mask:#x})"


CANDIDATES = tuple(
    Swizzle(bits, base, shift) for base in (4, 5, 6, 3, 2) for bits in range(1, 8 - base) for shift in range(bits, 11)
)
"""What `Costs.advice` tries: of those that are equally good it takes the first, of 16-byte pieces and with few bits."""


@dataclass
class BankPattern(Shown):
    """The addresses of a warp's access, and how often they occurred.

    Attributes
    ----------
    phases, wavefronts : int
        Of one access.
    times : int
    """

    address: Array  # `[32]`, -1 where a lane takes no part
    size: int  # bytes a lane
    phases: int
    wavefronts: int
    times: int = 0
    load: bool = False  # whether it is an `ld`, see `lanes`

    @property
    def lanes(self) -> int:
        """Lanes a phase. No swizzle changes it."""
        return _lanes(self.size) << bool(self.load and _neighbours(self.address, self.size))


@dataclass
class SharedSite(Shown):
    """The accesses to shared memory from one line.

    Attributes
    ----------
    site : Site
    accesses, phases, wavefronts : int
        Totals over warps; `wavefronts - phases` are lost to conflicts.
    patterns : dict
        The different accesses, as `BankPattern`, by size and addresses. Only the first 4096 are kept.
    complete : bool
        Whether `patterns` holds all of them.
    load : bool
        Whether it is an `ld`.
    """

    site: Site
    accesses: int = 0
    phases: int = 0
    wavefronts: int = 0
    patterns: dict[tuple[int, bytes], BankPattern] = field(default_factory=dict)
    complete: bool = True
    load: bool = field(default=False, repr=False)
    _again: dict[tuple[int, int, bytes], list[tuple[BankPattern, int]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def conflicts(self) -> int:
        """Wavefronts beyond one a phase."""
        return self.wavefronts - self.phases

    def add(self, rows: Array, size: int, each: int = 1) -> None:
        """Count accesses of warps: addresses `[n, 32]`, of 32 bits or int64, -1 where a lane takes no part.

        Each row stands for `each` equal accesses.
        """
        key = (size, rows.itemsize, rows.tobytes() if len(rows) <= _FEW else b"")
        if (known := self._again.get(key)) is not None:  # a loop repeats its accesses
            for pattern, n in known:
                self._count(pattern, n * each)
            return
        counted = self._counted(rows, size)
        for pattern, n in counted:
            self._count(pattern, n * each)
        if key[2] and len(self._again) < _AGAIN:
            self._again[key] = counted

    def _counted(self, rows: Array, size: int) -> list[tuple[BankPattern, int]]:
        """Return the patterns of accesses, and how often each occurs."""
        count = np.bincount(alike(rows))
        some = np.flatnonzero(count)
        times = Counter(
            {row.tobytes(): n for row, n in zip(rows[some].astype(np.int64), count[some].tolist(), strict=True)}
        )
        beyond: list[tuple[BankPattern, int]] = []
        fresh = [row for row in times if (size, row) not in self.patterns]
        if fresh:
            together = b"".join(fresh)
            address = np.frombuffer(together, np.int64).reshape(-1, rows.shape[-1])
            few = len(fresh) <= _FEW  # lines of an unrolled loop access the same
            counts = _known_wavefronts(together, size, self.load) if few else wavefronts(address, size, self.load)
            found = [
                BankPattern(a, size, int(p), int(w), load=self.load) for a, p, w in zip(address, *counts, strict=True)
            ]
            room = _PATTERNS - len(self.patterns)
            self.complete &= len(fresh) <= room
            self.patterns |= {(size, row): pattern for row, pattern in zip(fresh[:room], found, strict=False)}
            for row, pattern in zip(fresh[room:], found[room:], strict=True):
                beyond.append((pattern, times.pop(row)))
        return beyond + [(self.patterns[size, row], n) for row, n in times.items()]

    def _count(self, pattern: BankPattern, times: int) -> None:
        pattern.times += times
        self.accesses += times
        self.phases += pattern.phases * times
        self.wavefronts += pattern.wavefronts * times

    def lost(self, swizzle: Swizzle) -> int:
        """Wavefronts lost to conflicts, if its addresses were swizzled."""
        total = 0
        for size in {pattern.size for pattern in self.patterns.values()}:
            some = [pattern for pattern in self.patterns.values() if pattern.size == size]
            address = np.stack([pattern.address for pattern in some])
            phases, waves = wavefronts(np.where(address >= 0, swizzle(address), -1), size, self.load)
            total += int(((waves - phases) * [pattern.times for pattern in some]).sum())
        return total

    def pieces(self) -> set[int]:
        """Return the pieces of 128 bytes that the kept patterns access."""
        every = np.concatenate([pattern.address for pattern in self.patterns.values()])
        return set(np.unique(every[every >= 0] // _PHASE).tolist())

    @property
    def size(self) -> int:
        """Most bytes a lane."""
        return max(size for size, _ in self.patterns)


def _lanes(size: int) -> int:
    return min(32, _PHASE // max(size, _WORD))


def _neighbours(address: Array, size: int) -> Array:
    """Return whether an `ld` joins phases."""
    joined = np.zeros(address.shape[:-1], bool)
    for bit in (1, 2) if size > _WORD else ():
        other = address[..., np.arange(32) ^ bit]
        joined |= ((address == other) | (address < 0) | (other < 0)).all(axis=-1)
    return joined


def wavefronts(address: Array, size: int, load: bool = False) -> tuple[Array, Array]:
    """Count phases and wavefronts of warps' accesses.

    Parameters
    ----------
    address : ndarray of int
        `[..., 32]`, -1 where a lane takes no part.
    size : int
        Bytes a lane, 1 to 16.
    load : bool
        Whether they are `ld`, which at times joins phases.

    Returns
    -------
    phases, wavefronts : ndarray of int
        `[...]`.

    Examples
    --------
    >>> lanes = np.arange(32)
    >>> [int(wavefronts(lanes * stride, 4)[1]) for stride in (4, 8, 128, 0, 132)]
    [1, 2, 32, 1, 1]
    >>> [int(wavefronts(lanes // 2 * 16, 16, load)[1]) for load in (False, True)]
    [4, 2]
    """
    counts = _count(address, size, _lanes(size))
    if load and (joined := _neighbours(address, size)).any():
        halved = _count(address, size, 2 * _lanes(size))
        return np.where(joined, halved[0], counts[0]), np.where(joined, halved[1], counts[1])
    return counts


@lru_cache(1024)
def _known_wavefronts(rows: bytes, size: int, load: bool) -> tuple[Array, Array]:
    return wavefronts(np.frombuffer(rows, np.int64).reshape(-1, 32), size, load)


def _count(address: Array, size: int, lanes: int) -> tuple[Array, Array]:
    """Count phases of a number of lanes, and their wavefronts."""
    words = max(1, size // _WORD)
    phase = address.reshape(*address.shape[:-1], -1, lanes)
    word = (phase[..., None] // _WORD + np.arange(words)).reshape(*phase.shape[:-1], -1)
    takes_part = np.repeat(phase >= 0, words, axis=-1)
    # Words that differ, by bank: sorted by bank and word, the first of each run counts.
    key = np.where(takes_part, word % BANKS * (1 << 40) + word // BANKS, -1)
    key.sort(axis=-1)
    first = np.ones(key.shape, bool)
    first[..., 1:] = key[..., 1:] != key[..., :-1]
    bank = np.where(key >= 0, key >> 40, BANKS)
    flat = (np.arange(bank[..., 0].size)[:, None] * (BANKS + 1) + bank.reshape(-1, bank.shape[-1])).ravel()
    counts = np.bincount(flat[first.ravel()], minlength=bank[..., 0].size * (BANKS + 1))
    most = counts.reshape(*bank.shape[:-1], BANKS + 1)[..., :BANKS].max(axis=-1)
    return (most > 0).sum(axis=-1), most.sum(axis=-1)
