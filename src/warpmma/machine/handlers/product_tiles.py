"""What a product of a warpgroup reads at an address of shared memory: for reports.

The rules:

1. Of each product the last executions are kept, until the launch ends. A description is that of the tile, of A or of B,
   and of the execution, which reads the first byte at the address or behind it; the newest of several.
2. Of an access of many bytes only the first address is known: what is described is the first byte of the tile at or
   behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._arrays import Array
from ...isa import WarpgroupInstruction
from ...layouts import MatrixDescriptor, Operand
from ...operations import RANK_BIT
from ..base import Site
from ..sync import Touched

_IN_BLOCK = (1 << RANK_BIT) - 1


@dataclass(eq=False, frozen=True, kw_only=True)
class ProductTiles:
    """One execution of a product.

    Attributes
    ----------
    block : ndarray of int
        Of each warpgroup, in the batch, `[n]`.
    tiles : sequence of (str, ndarray of uint64, bool)
        "A" or "B", the descriptor of each warpgroup, and whether the tile is MN-major.
    sources : sequence of (Allocation, Touch)
        What it reads.
    named : callable
        Names what lies at an offset in shared memory, of some bytes: `SharedMemory.named`.
    """

    site: Site
    record: WarpgroupInstruction
    block: Array
    tiles: Sequence[tuple[Operand, Array, bool]]
    sources: Sequence[Touched]
    named: Callable[[int, int], tuple[int, str]]

    def describe(self, block: int, address: int) -> tuple[int, str] | None:
        """Describe what is read at an address in a block of the batch, and how far behind it; None if nothing is."""
        found: tuple[int, str] | None = None
        for number in np.flatnonzero(self.block == block).tolist():
            for operand, words, transposed in self.tiles:
                new = self._in_tile(operand, int(words[number]), transposed, block, address)
                if new is not None and (found is None or new[0] < found[0]):
                    found = new
        return found

    def _in_tile(
        self, operand: Operand, word: int, transposed: bool, block: int, address: int
    ) -> tuple[int, str] | None:
        """Rule 2."""
        record, inside = self.record, address & _IN_BLOCK
        bits = record.format(operand).bits
        rows, columns = record.m if operand == "A" else record.n, record.k
        if record.sparse and operand == "A":
            columns //= 2
        major: Any = "MN" if transposed else "K"
        descriptor = MatrixDescriptor.from_word(word)
        places = descriptor.addresses(rows, columns, bits=bits, major=major).astype(np.int64)
        size = max(bits // 8, 1)
        behind = np.where(places + size > inside, np.maximum(places - inside, 0), _IN_BLOCK)
        at = int(behind.argmin())
        row, column = divmod(at, columns)
        if (far := int(behind.flat[at])) == _IN_BLOCK:
            return None
        first, name = int(places.flat[at]), "m" if operand == "A" else "n"
        _, lies = self.named(first, size)
        lies += "" if lies.startswith("address") else f" at {first:#x}"
        stored = " stored" if record.sparse and operand == "A" else ""
        swizzle = f"swizzle of {descriptor.swizzle} bytes" if descriptor.swizzle else "no swizzle"
        base = f", base offset {descriptor.base_offset}" if descriptor.base_offset else ""
        says = (
            f"{lies} is ({name}, k) = ({row}, {column}) of the tile of {operand} that the product (wgmma "
            f"at {self.site.place}) reads: {rows} x {columns}{stored} {record.format(operand).name}, {major}-major, "
            f"{swizzle}, descriptor at {descriptor.start:#x} with stride {descriptor.stride}, leading "
            f"{descriptor.leading}{base}{self._writer(block, address & ~_IN_BLOCK | first)}"
        )
        return far, says

    def _writer(self, block: int, address: int) -> str:
        """Say who wrote an address last."""
        for allocation, touch in self.sources:
            mine = (touch.address[touch.lanes].astype(np.int64) & _IN_BLOCK) // 16 == (address & _IN_BLOCK) // 16
            mine &= np.asarray(touch.who.block) == block
            if not mine.any() or (words := allocation.shadow.writers(touch)) is None:
                continue
            word = words[int(np.argmax(mine))].max()
            site = touch.clocks.site(word) if word else None
            return f"; last written at {site.what}" if site is not None else ""
        return ""
