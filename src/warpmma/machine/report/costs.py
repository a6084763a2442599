"""Costs of a kernel: instructions, bytes moved and bank conflicts, by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np

from ..._arrays import Array
from ...errors import OperandError, shown
from ...registers import LANES
from ..base import Site
from .banks import CANDIDATES, SharedSite, Swizzle

# No shared memory is so large.
_MOST = 1 << 32
_MOST_HELD = 1 << 22  # bytes of addresses that are kept until they are counted

_Rows = tuple[Any, int, bytes]
"""Accesses of warps: the type of their addresses, the bytes that a lane accesses, and the addresses."""


def no_site(site: object, sites: Collection[Site], found: int = 0) -> OperandError:
    """Return the error for a site that names no access to shared memory, or several."""
    known = "\n  ".join(map(str, sites)) or "none"
    return OperandError(
        f"{shown(site, str)}: {found} accesses to shared memory; give a Site of `costs.sites`:\n  {known}"
    )


class Costs:
    """The costs of a kernel, counted while it runs.

    Attributes
    ----------
    instructions : Counter of Site
        How often warps execute each.
    bytes : Counter of (Site, str)
        Bytes from and to "global" and "shared" memory.
    barriers : int
        How often blocks meet.
    """

    def __init__(self) -> None:
        self.instructions: Counter[Site] = Counter()
        self.bytes: Counter[tuple[Site, str]] = Counter()
        self.barriers = 0
        self._sites: dict[Site, SharedSite] = {}
        self._later: dict[Site, dict[_Rows, int]] = {}  # how often each access of lines occurred since the last count
        self._held = 0  # bytes of these

    @property
    def sites(self) -> dict[Site, SharedSite]:
        """Accesses to shared memory, whose wavefronts are counted when they are asked for: most never are."""
        later, self._later, self._held = self._later, {}, 0
        for site, accesses in later.items():
            for (dtype, size, rows), times in accesses.items():
                self._sites[site].add(np.frombuffer(rows, dtype).reshape(-1, LANES), size, times)
        return self._sites

    def count(self, site: Site, active: Array) -> None:
        """Count an instruction, once for every warp that has an active lane."""
        warps = active.size // active.shape[-1] if active.all() else int(active.any(axis=-1).sum())
        self.instructions[site] += warps

    def moved(self, site: Site, space: str, count: int) -> None:
        """Count bytes from or to a space of memory."""
        self.bytes[site, space] += count

    def barrier(self, blocks: int) -> None:
        """Count a barrier of some blocks."""
        self.barriers += blocks

    def accessed(self, site: Site, space: str, address: Array, size: int, active: Array, *, load: bool = False) -> None:
        """Count accesses of lanes, of an `ld` or others, at addresses `[block, warp, lane]` in a space of memory."""
        if space == "shared":
            self.shared(site, address, size, active, load=load)
        else:
            self.moved(site, space, int(np.count_nonzero(active)) * size)

    def shared(self, site: Site, address: Array, size: int, active: Array, *, load: bool = False) -> None:
        """Count accesses to shared memory, of an `ld` or others, addresses `[block, warp, lane]`."""
        self.moved(site, "shared", int(np.count_nonzero(active)) * size)
        if address.itemsize > 4:
            active = active & (address < _MOST)  # others are out of bounds
        times = 1
        if len(address) > 1 and _alike(active) and _alike(address):  # in most kernels blocks are alike
            address, active, times = address[:1], active[:1], len(address)
        if active.all():
            rows = np.ascontiguousarray(address).reshape(-1, address.shape[-1])
        else:
            rows = np.ascontiguousarray(address).reshape(-1, address.shape[-1])
            rows = np.where(active.reshape(rows.shape), rows.astype(np.int64), -1)
            rows = rows[active.any(axis=-1).reshape(-1)]
        if len(rows):
            self._count_later(site, rows, size, times, load)

    def _count_later(self, site: Site, rows: Array, size: int, times: int, load: bool) -> None:
        if site not in self._sites:
            self._sites[site] = SharedSite(site, load=load)
        accesses = self._later.setdefault(site, {})
        key = rows.dtype, size, rows.tobytes()
        if (before := accesses.get(key)) is None:
            self._held += rows.nbytes
        accesses[key] = times + (before or 0)
        if self._held > _MOST_HELD:
            _ = self.sites

    def together(self, site: Site) -> list[Site]:
        """Return the lines that access the same pieces of 128 bytes as a line, directly or through other lines.

        A swizzle has to be applied to all of them.

        Raises
        ------
        OperandError
            The site does not access shared memory.
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
        """Return, for every line with conflicts, a swizzle of shared memory that removes them and adds none elsewhere.

        Returns
        -------
        dict of Site to Swizzle or None
            It is for the addresses of all lines that access the same memory (`together`): one that frees a line counts
            only if each of the others has as few conflicts with it as without. If several do, it is the one with which
            the others have the fewest conflicts. It permutes bytes within pieces of 128; the size of shared memory must
            be rounded up to a multiple of 128. None: none of `CANDIDATES` does it; or, for lines that access memory in
            very many ways, it is not known.
        """
        return {site: self._swizzle(entry) for site, entry in self.sites.items() if entry.conflicts}

    def _swizzle(self, entry: SharedSite) -> Swizzle | None:
        group = [self.sites[site] for site in self.together(entry.site)]
        if not all(each.complete for each in group):
            return None
        whole = max(each.size for each in group)  # the bytes of a lane have to stay together
        best, least = None, sum(each.conflicts for each in group)
        for swizzle in CANDIDATES:
            if whole > 1 << swizzle.base or entry.lost(swizzle):
                continue
            lost = [each.lost(swizzle) for each in group]
            if sum(lost) < least and all(n <= each.conflicts for n, each in zip(lost, group, strict=True)):
                best, least = swizzle, sum(lost)
        return best


def _alike(of_blocks: Array) -> bool:
    """Whether all blocks have the same, `[block, ...]`."""
    return bool((of_blocks[1:] == of_blocks[0]).all())
