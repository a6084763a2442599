"""What a kernel costs: instructions, bytes moved, and bank conflicts, by line.

Shared memory has 32 banks of 4 bytes. A warp's access goes in phases of at most 128 bytes: all lanes for up to 4 bytes
a lane, half a warp for 8, a quarter for 16. A phase takes one wavefront for every word that its busiest bank must give;
lanes that want the same word share it. Beyond one wavefront a phase, there are conflicts.

An `ld` of 8 or 16 bytes a lane has half as many phases, of twice the lanes, if in the whole warp neighbours want the
same: each lane and the one whose number differs in the lowest bit, or each and the one that differs in the second;
lanes that take no part want anything. Stores and `ldmatrix` do not do so. `tools/compare_banks.py` compared all that
with an H200's counters; `cp.async` of 16 bytes, which they do not count, is taken to be a store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from .._arguments import is_integer
from .._arrays import as_array
from ..errors import OperandError, shown
from .hazards import Site

__all__ = ["BANKS", "CANDIDATES", "Costs", "Pattern", "SharedSite", "Swizzle", "no_site", "wavefronts"]

Array = npt.NDArray[Any]
T = TypeVar("T", bound=Any)

BANKS = 32
_WORD = 4
_PHASE = BANKS * _WORD
# Different accesses that are kept for a line, to try swizzles on: a quarter of a kilobyte each.
_PATTERNS = 4096
_MOST_BITS = 32  # of an address of shared memory
# No shared memory is so large.
_MOST = 1 << 32


@dataclass(frozen=True)
class Swizzle:
    """An XOR of address bits: `bits` of them, from `shift` places higher, onto those from `base` on.

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
        """Return the addresses where the swizzle puts things: of an array, or of a register of a kernel.

        Raises
        ------
        OperandError
            What is no integers, or integers too narrow for the address bits.
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


def no_site(site: object, sites: Collection[Site], found: int = 0) -> OperandError:
    """Make the error for what names no line that accesses shared memory, or several."""
    known = "\n  ".join(map(str, sites)) or "none"
    return OperandError(
        f"{shown(site, str)}: {found} accesses to shared memory; give a Site of `costs.sites`:\n  {known}"
    )


@dataclass
class Pattern:
    """Addresses of one warp's access, and how often they were met.

    Attributes
    ----------
    address : ndarray of int64
        `[32]`, -1 where a lane takes no part.
    size : int
        Bytes a lane.
    phases, wavefronts : int
        Of one access.
    times : int
    load : bool
        Whether it is an `ld`, see `lanes`.
    """

    address: Array
    size: int
    phases: int
    wavefronts: int
    times: int = 0
    load: bool = False

    @property
    def lanes(self) -> int:
        """Lanes a phase. No swizzle changes it."""
        return _lanes(self.size) << bool(self.load and _neighbours(self.address, self.size))


@dataclass
class SharedSite:
    """Accesses to shared memory from one line.

    Attributes
    ----------
    site : Site
    accesses, phases, wavefronts : int
        Of warps; `wavefronts - phases` are lost to conflicts.
    patterns : dict
        The different accesses, as `Pattern`, by size and addresses. Only the first 4096 are kept.
    complete : bool
        Whether `patterns` are all.
    """

    site: Site
    accesses: int = 0
    phases: int = 0
    wavefronts: int = 0
    patterns: dict[tuple[int, bytes], Pattern] = field(default_factory=dict)
    complete: bool = True

    @property
    def conflicts(self) -> int:
        """Wavefronts beyond one a phase."""
        return self.wavefronts - self.phases

    @property
    def load(self) -> bool:
        """Whether it is an `ld`."""
        return self.site.mnemonic.startswith("ld.")

    def add(self, rows: Array, size: int) -> None:
        """Count accesses of warps: addresses `[n, 32]`, int64."""
        times = Counter(row.tobytes() for row in rows)
        fresh = [row for row in times if (size, row) not in self.patterns]
        if fresh:
            address = np.frombuffer(b"".join(fresh), np.int64).reshape(-1, rows.shape[-1])
            counts = wavefronts(address, size, self.load)
            found = [Pattern(a, size, int(p), int(w), load=self.load) for a, p, w in zip(address, *counts, strict=True)]
            room = _PATTERNS - len(self.patterns)
            self.complete &= len(fresh) <= room
            self.patterns |= {(size, row): pattern for row, pattern in zip(fresh[:room], found, strict=False)}
            for row, pattern in zip(fresh[room:], found[room:], strict=True):
                self._count(pattern, times.pop(row))
        for row, n in times.items():
            self._count(self.patterns[size, row], n)

    def _count(self, pattern: Pattern, times: int) -> None:
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
        """Which pieces of 128 bytes it touches: those of the patterns that were kept."""
        every = np.concatenate([pattern.address for pattern in self.patterns.values()])
        return set(np.unique(every[every >= 0] // _PHASE).tolist())

    @property
    def size(self) -> int:
        """Most bytes a lane."""
        return max(size for size, _ in self.patterns)


def _lanes(size: int) -> int:
    return min(32, _PHASE // max(size, _WORD))


def _neighbours(address: Array, size: int) -> Array:
    """Tell whether an `ld` joins phases."""
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


def _count(address: Array, size: int, lanes: int) -> tuple[Array, Array]:
    """Count phases of so many lanes, and their wavefronts."""
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


class Costs:
    """Counts, as a kernel runs.

    Attributes
    ----------
    instructions : Counter of Site
        How often warps execute each.
    bytes : Counter of (Site, str)
        Bytes from and to "global" and "shared" memory.
    sites : dict of Site to SharedSite
        Accesses to shared memory.
    barriers : int
        How often blocks meet.
    """

    def __init__(self) -> None:
        self.instructions: Counter[Site] = Counter()
        self.bytes: Counter[tuple[Site, str]] = Counter()
        self.sites: dict[Site, SharedSite] = {}
        self.barriers = 0

    def count(self, site: Site, active: Array) -> None:
        """Count an instruction, once for every warp that has an active lane."""
        self.instructions[site] += int(active.any(axis=-1).sum())

    def moved(self, site: Site, space: str, count: int) -> None:
        """Count bytes from or to a space of memory."""
        self.bytes[site, space] += count

    def barrier(self, blocks: int) -> None:
        """Count a barrier of some blocks."""
        self.barriers += blocks

    def shared(self, site: Site, address: Array, size: int, active: Array) -> None:
        """Count accesses to shared memory, addresses `[block, warp, lane]`."""
        self.moved(site, "shared", int(active.sum()) * size)
        active = active & (address < _MOST)  # others are out of bounds
        rows = np.where(active, address.astype(np.int64), -1).reshape(-1, address.shape[-1])
        rows = rows[active.any(axis=-1).reshape(-1)]
        if len(rows):
            if site not in self.sites:
                self.sites[site] = SharedSite(site)
            self.sites[site].add(rows, size)

    def together(self, site: Site) -> list[Site]:
        """Lines that access the memory which this one does, in pieces of 128 bytes, or which such lines do; itself too.

        What a swizzle moves, all of them have to look for elsewhere.

        Raises
        ------
        OperandError
            No line that accesses shared memory.
        """
        if not isinstance(site, Site) or site not in self.sites:
            raise no_site(site, self.sites)
        pieces = {each: entry.pieces() for each, entry in self.sites.items()}
        group, reached = {site}, set(pieces[site])
        while more := [each for each in pieces if each not in group and not reached.isdisjoint(pieces[each])]:
            group.update(more)
            reached.update(*(pieces[each] for each in more))
        return [each for each in self.sites if each in group]

    def advice(self) -> dict[Site, Swizzle | None]:
        """For every line with conflicts, a swizzle of shared memory that removes them, and makes none elsewhere.

        Returns
        -------
        dict of Site to Swizzle or None
            It is for the addresses of all lines that access the same memory (`together`): one that frees a line counts
            only if each of the others has as few conflicts with it as without. Of several it is the one that leaves the
            fewest conflicts to the others. It permutes bytes inside of pieces of 128, to multiples of which shared
            memory has to be rounded up. None: none of `CANDIDATES` does it; or, of lines that access memory in very
            many ways, it is not known.
        """
        return {site: self._swizzle(entry) for site, entry in self.sites.items() if entry.conflicts}

    def _swizzle(self, entry: SharedSite) -> Swizzle | None:
        group = [self.sites[site] for site in self.together(entry.site)]
        if not all(each.complete for each in group):
            return None
        whole = max(each.size for each in group)  # what a lane accesses must not be torn
        best, least = None, sum(each.conflicts for each in group)
        for swizzle in CANDIDATES:
            if whole > 1 << swizzle.base or entry.lost(swizzle):
                continue
            lost = [each.lost(swizzle) for each in group]
            if sum(lost) < least and all(n <= each.conflicts for n, each in zip(lost, group, strict=True)):
                best, least = swizzle, sum(lost)
        return best


CANDIDATES = tuple(
    Swizzle(bits, base, shift)
    for base in (4, 5, 6, 3, 2) for bits in range(1, 8 - base) for shift in range(bits, 11)
)  # fmt: skip
"""What `Costs.advice` tries: of those that are equally good it takes the first, of 16-byte pieces and with few bits."""
