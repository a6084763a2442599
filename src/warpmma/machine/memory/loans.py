"""Bytes that an asynchronous operation has read, left where they are until its completion, or until they change.

The rules:

1. A copy reads its source when it is issued, and writes when it completes (`async_operations`). Reading large pieces at
   once would move every byte twice. So the source lends them, and keeps them for the borrower before it writes there.
2. What is lent moves from memory to memory in one go when the operation completes.
3. A loan ends when the operation is over. Until then, writes to other bytes of the source cost a comparison of spans.
"""

from __future__ import annotations

from ..._arrays import Array
from ..base import bounds, get, move, put

LEAST = 512
"""Bytes of a lane from which on a source lends them: smaller ones are read at once."""


class Loan:
    """Bytes `[n, size]` of a piece of memory, as they were when they were lent.

    Parameters
    ----------
    memory : ndarray of uint8
    offset : ndarray of int64
        Where each lane reads, `[n]`.
    size : int
        Bytes of a lane.
    phase : int
        Of the memory.
    block : int
        Bytes of each block, if it is the memory of several, in which blocks mostly do the same; 0 if not.
    """

    def __init__(self, memory: Array, offset: Array, size: int, phase: int, block: int) -> None:
        self.memory, self._offset, self._size, self._phase = memory, offset, size, phase
        self._own: Array | None = None  # what it keeps itself, `[n, size]`
        self._ended = False
        self._span = bounds(offset, size, block)

    def __len__(self) -> int:
        return len(self._offset)

    @property
    def shape(self) -> tuple[int, int]:
        """Lanes, and bytes of each."""
        return len(self._offset), self._size

    @property
    def nbytes(self) -> int:
        """All bytes."""
        return len(self._offset) * self._size

    @property
    def open(self) -> bool:
        """Whether the memory must not change before the bytes are kept."""
        return self._own is None and not self._ended

    def bytes(self) -> Array:
        """Return the bytes, which are kept from now on."""
        if self._own is None:
            assert not self._ended, "a loan that has ended"
            self._own = get(self.memory, self._offset, self._size, self._phase)
        return self._own

    def meets(self, other: tuple[int, int]) -> bool:
        """Whether bytes with a span may be among these."""
        return self._span[0] < other[1] and other[0] < self._span[1]

    def write(self, memory: Array, offset: Array, which: Array | None, phase: int) -> None:
        """Write the bytes of all lanes, or of some, to offsets `[m]` in other memory."""
        if self._own is None and memory is not self.memory:
            move(self.memory, self._offset if which is None else self._offset[which], memory, offset, self._size)
            return
        data = self.bytes()
        put(memory, offset, data if which is None else data[which], phase)

    def end(self) -> None:
        """End the loan: the bytes are not needed any more."""
        self._ended, self._own = True, None


Content = Array | Loan
"""What an operation brings, bytes `[n, size]`."""


def content(data: Content) -> Array:
    """Return the bytes of either."""
    return data.bytes() if isinstance(data, Loan) else data
