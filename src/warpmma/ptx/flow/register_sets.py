"""Sets of registers, one for each block of a body, in a bit for each register: thousands of thousands are usual."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import overload

import numpy as np

from .registers_used import Register


class RegisterSets(Sequence[set[Register]]):
    """Sets of some registers; each is made anew when it is looked up.

    Parameters
    ----------
    registers : iterable of Register
        All that a set can have.

    Examples
    --------
    >>> sets = RegisterSets([("%a", 0), ("%b", 0)])
    >>> sets.append({("%b", 0)})
    >>> sets[0], len(sets)
    ({('%b', 0)}, 1)
    """

    def __init__(self, registers: Iterable[Register]) -> None:
        self._registers = list(dict.fromkeys(registers))
        self._number = {register: i for i, register in enumerate(self._registers)}
        self._packed: list[bytes] = []

    def like(self, number: int) -> RegisterSets:
        """Return so many empty sets of the same registers."""
        made = RegisterSets(())
        made._registers, made._number = self._registers, self._number
        made._packed = [made._pack(())] * number
        return made

    def __len__(self) -> int:
        return len(self._packed)

    @overload
    def __getitem__(self, at: int) -> set[Register]: ...
    @overload
    def __getitem__(self, at: slice) -> list[set[Register]]: ...
    def __getitem__(self, at: int | slice) -> set[Register] | list[set[Register]]:
        if isinstance(at, slice):
            return [self._unpack(x) for x in self._packed[at]]
        return self._unpack(self._packed[at])

    def append(self, registers: Iterable[Register]) -> None:
        """Add a set."""
        self._packed.append(self._pack(registers))

    def extend_reversed(self, others: RegisterSets) -> None:
        """Add sets of the same registers, the last first."""
        self._packed += reversed(others._packed)

    def put(self, at: int, registers: Iterable[Register]) -> bool:
        """Replace a set; say whether that changes it."""
        new = self._pack(registers)
        changed = new != self._packed[at]
        self._packed[at] = new
        return changed

    def union(self, those: Iterable[int]) -> set[Register]:
        """Join sets."""
        return self._unpack(self._joined(those))

    def joined(self, groups: Sequence[Iterable[int]]) -> RegisterSets:
        """Return the sets that are joined of groups of these."""
        made = self.like(0)
        made._packed = [self._joined(those) for those in groups]
        return made

    def _joined(self, those: Iterable[int]) -> bytes:
        first, *others = [self._packed[i] for i in those] or [self._pack(())]
        for other in others:
            if other is not first and other != first:
                first = (np.frombuffer(first, np.uint8) | np.frombuffer(other, np.uint8)).tobytes()
        return first

    def _pack(self, registers: Iterable[Register]) -> bytes:
        bits = np.zeros(len(self._registers), bool)
        bits[np.fromiter((self._number[x] for x in registers), np.intp)] = True
        return np.packbits(bits).tobytes()

    def _unpack(self, packed: bytes) -> set[Register]:
        bits = np.unpackbits(np.frombuffer(packed, np.uint8), count=len(self._registers))
        return {self._registers[i] for i in np.flatnonzero(bits).tolist()}
