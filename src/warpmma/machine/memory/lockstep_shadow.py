"""The shadow of the shared memory of a batch of blocks in lockstep: the first block stands for all.

Blocks of a kernel mostly do the same, at the same time, at the same places of their shared memory. Then what a shadow
knows of one block holds for all, with another block in access words; and what it finds in one, it finds in all. The
rules:

1. An access is alike if the threads of each block access the same bytes of their block's memory, by the same threads or
   what completes their operations, and what threads know of their own block is the same in all blocks
   (`VectorClocks.alike`). Blocks reach no other block's memory here: there are no clusters.
2. As long as all accesses are alike, a shadow of the first block's memory sees the first block's part of each.
3. At the first other access each block gets the state of the first, its own block in the words. From then on a shadow
   of all blocks sees all that they do.
4. The same happens when the first block's shadow has something to say: a report, poison, or bytes that an operation may
   still read. Data may differ between blocks, so it says it of any data. It says nothing after it has noted an access,
   and what it does before may be done again: so the shadow of all blocks sees that access as if it came first.
5. What is rare is not looked at: strong accesses, atomics, lanes that write to one place, and what others watch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..._arrays import Array
from ..base import Poison
from ..report import Reporter
from .access_shadow import AccessShadow
from .accesses import Taken, Touch
from .loans import Content
from .shadow_memory import Look, Overwritten, Shadow, Watch, WrittenGrains


class _UnequalError(Exception):
    """Rule 4."""


class _Silent:
    """The reporter of the first block's shadow."""

    late = known = None

    def __init__(self, reporter: Reporter) -> None:
        self.follows, self.strict = reporter.follows, reporter.strict

    def report(self, *_: Any, **__: Any) -> NoReturn:
        """Say nothing."""
        raise _UnequalError

    origin = decides = block_named = report


class LockstepShadow(Shadow):
    """The shadow of the shared memory of blocks without clusters, in which hazards are looked for.

    Parameters
    ----------
    reporter : Reporter
    blocks, size : int
        Blocks, and bytes of each.
    make : callable
        Makes the shadow of the first of so many blocks, which tells a reporter what it finds.
    """

    def __init__(
        self, reporter: Reporter, blocks: int, size: int, make: Callable[[Reporter, int], AccessShadow]
    ) -> None:  # fmt: skip
        self._reporter, self._blocks, self._size, self._make = reporter, blocks, size, make
        silent: Any = _Silent(reporter)
        self._first: AccessShadow | None = make(silent, 1)
        self._of_all: AccessShadow | None = None
        self._sources: list[tuple[Touch, Touch, Overwritten]] = []  # of all blocks, and the first block's part

    @property
    def in_lockstep(self) -> bool:  # type: ignore[override]
        """See `Shadow`."""
        return self._first is not None

    # Rule 1

    def _part(self, touch: Touch, *, claims: bool = False) -> Touch | None:
        """Return the first block's part of an access that is alike; None of another one (rule 5)."""
        if touch.order != "weak" or self._reporter.known is not None or not touch.clocks.alike:
            return None
        part = touch.first(self._blocks, self._size)
        if part is None or not claims or (np.diff(np.sort(part.offset)) >= part.size).all():
            return part
        return None

    # Rules 2 to 4

    def _see(self, touch: Touch, see: Callable[[AccessShadow, Touch], Any], *, claims: bool = False) -> Any:
        """Let the shadow of the first block, or that of all, see an access."""
        if self._first is not None and (part := self._part(touch, claims=claims)) is not None:
            try:
                return see(self._first, part)
            except _UnequalError:
                pass
        return see(self._all, touch)

    @property
    def _all(self) -> AccessShadow:
        """The shadow of all blocks, from now on."""
        if self._of_all is None:
            assert self._first is not None
            self._of_all = self._make(self._reporter, self._blocks)
            self._of_all.grains = self._first.grains.repeated(self._blocks)
            for touch, _, overwritten in self._sources:
                self._of_all.will_read(touch, overwritten)
            self._first, self._sources = None, []
        return self._of_all

    @property
    def written(self) -> WrittenGrains | bool:
        """See `Shadow`."""
        return self._all.written

    def loads(self, touch: Touch, element: int, *, travels: bool) -> Poison | None:
        """See `Shadow`."""
        poison: Poison | None = self._see(touch, lambda shadow, x: shadow.loads(x, element, travels=travels))
        if poison is None or self._first is None:
            return poison
        return Poison(np.tile(poison.bits, (self._blocks, 1)), poison.origin)  # of what no block has written

    def loads_quietly(self, touch: Touch) -> bool:
        """See `Shadow`."""
        return self._all.loads_quietly(touch)

    def writers(self, touch: Touch) -> Array | None:
        """See `Shadow`."""
        return self._all.writers(touch)

    def keeps(self, touch: Touch, poison: Poison | None, *, stores: bool = True) -> None:
        """See `Shadow`."""
        if self._first is None or poison is not None:
            self._all.keeps(touch, poison, stores=stores)

    def stores(self, touch: Touch, data: Array) -> Array | None:
        """See `Shadow`."""

        def see(shadow: AccessShadow, x: Touch) -> Array | None:
            return shadow.stores(x, None if shadow is self._first else data)

        found: Array | None = self._see(touch, see, claims=True)
        return found

    def stored(self, touch: Touch, data: Array, last: Array | None) -> None:
        """See `Shadow`."""
        if self._first is None:  # otherwise the store is weak, and no two lanes store to one place
            self._all.stored(touch, data, last)

    def updates(
        self, touch: Touch, element: int, *, decides: bool = True, contests: bool = True
    ) -> tuple[Poison | None, Array | None]:  # fmt: skip
        """See `Shadow`."""
        return self._all.updates(touch, element, decides=decides, contests=contests)

    def updated(self, touch: Touch, element: int, taken: Taken) -> None:
        """See `Shadow`."""
        self._all.updated(touch, element, taken)

    def reserves(self, touch: Touch, data: Content) -> None:
        """See `Shadow`."""
        self._see(touch, lambda shadow, x: shadow.reserves(x, data), claims=True)  # the data do not matter here

    def completes(self, touch: Touch) -> None:
        """See `Shadow`."""
        self._see(touch, lambda shadow, x: shadow.completes(x))

    def will_combine(self, touch: Touch) -> None:
        """See `Shadow`."""
        self._all.will_combine(touch)

    def credits(self, touch: Touch) -> None:
        """See `Shadow`."""
        self._all.credits(touch)

    def will_read(self, touch: Touch, overwritten: Overwritten) -> None:
        """See `Shadow`."""
        if self._first is not None and (part := self._part(touch)) is not None:
            self._sources.append((touch, part, overwritten))
            self._first.will_read(part, overwritten)
        else:
            self._all.will_read(touch, overwritten)

    def has_read(self, touch: Touch) -> None:
        """See `Shadow`."""
        self._see(touch, lambda shadow, x: shadow.has_read(x))

    def still_to_read(self, source: Touch, left: Touch) -> None:
        """See `Shadow`."""
        part = None if self._first is None else self._part(left)
        if self._first is None or part is None:
            self._all.still_to_read(source, left)
            return
        at = next(i for i, (touch, *_) in enumerate(self._sources) if touch is source)
        _, of_source, overwritten = self._sources[at]
        part = of_source if left is source else part
        self._first.still_to_read(of_source, part)
        if left.number:
            self._sources[at] = left, part, overwritten
        else:
            del self._sources[at]

    def watches(self, what: str, *, reads: Look | None = None, writes: Watch | None = None) -> None:
        """See `Shadow`."""
        self._all.watches(what, reads=reads, writes=writes)

    def report_left(self, start: int) -> None:
        """See `Shadow`."""
        if self._first is None:  # otherwise there is no poison
            self._all.report_left(start)

    def end(self) -> None:
        """See `Shadow`."""
        (self._first or self._all).end()

    def forgets(self, touch: Touch) -> None:
        """See `Shadow`."""
        self._all.forgets(touch)
