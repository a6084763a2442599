"""The scheduler: which group of lanes runs next, in fair turns.

The rules:

1. Every lane that has not exited is in one group that is ready or late, or waits for lanes of its warp (`convergence`)
   or at a barrier of its block. Groups that reach the same program counter at the same call depth become one, over all
   blocks of a batch.
2. Of the ready groups, those deepest in calls run first, and of these the one at the lowest program counter; it runs
   until it reaches the program counter of another group. So groups that are behind catch up, and lanes that diverged
   reconverge where their paths join.
3. No group waits indefinitely for one that is behind: CUDA guarantees progress to every thread from sm_70 on. A group
   that branches backwards after a poll without progress becomes late. A group polled without progress if, since its
   last backward branch, it executed an instruction that observes other threads, that instruction returned nothing new,
   and no lane left the group. A group that has run `_PATIENCE` steps while others were ready becomes late as well.
   What a group has done so far stays with its lanes while they wait, so a loop with a barrier is a poll too.
4. Late groups return in the next round. A round ends when no group is ready, or after a number of steps of the ready
   ones: `_QUANTUM` after a poll without progress, `_RESPITE` after `_PATIENCE` ran out. So a group that leaves a lock
   joins those that left it earlier, because these get no further in a round.
5. With a seed other than 0, some warps of each group, drawn at random, are late from the start, and again after every
   64 to 1,024 steps; how many, and how long the others run alone, is random too. And a group that polled without
   progress goes on at once every second time, so that one that does not wait for what it polled runs ahead of the
   others. Both end while many polls in a row, of all groups, find nothing: then a deadlock can be told. A kernel must
   give the same results for every seed, unless CUDA leaves them open.

Steps are counted, never time: results are a function of the program, its inputs, the resident blocks and the seed.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from ..base import Lanes
from .groups import Group

STOP = 1 << 60
"""Beyond every program counter: the group that ran is queued elsewhere."""

_QUANTUM, _RESPITE, _PATIENCE = 128, 256, 1 << 14  # steps
_GOES_ON = 0.5  # with a seed, how often a poll without progress does not make a group late (rule 5)
_IDLE = 256  # polls in a row without progress, after which nothing is random
_QUANTA, _DRAWS = (1, 64, 4096), (64, 256, 1024)  # steps of a round; steps until warps are drawn again


class Scheduler:
    """The groups of a batch of blocks.

    Parameters
    ----------
    lanes : Lanes
    span : int
        More than the number of steps.
    seed : int
    keep : bool
        Whether registers of exited threads are kept: then no group is full after a thread has exited.

    Attributes
    ----------
    ready, late : dict of int to Group
        By program counter minus `span` times the call depth.
    waiting : dict of int to Group
        Lanes that wait at barriers, by the key at which they continue.
    vain : int
        Consecutive rounds that ended because every running group polled without progress.
    """

    def __init__(self, lanes: Lanes, span: int, seed: int, keep: bool) -> None:
        self._lanes, self.span, self._keep = lanes, span, keep
        self._random = np.random.default_rng(seed) if seed else None
        self.ready: dict[int, Group] = {}
        self.late: dict[int, Group] = {}
        self.waiting: dict[int, Group] = {}
        self.vain = 0
        self._left = 0  # steps left in this round
        self._gone = self._draws = 0  # steps run, and the number at which warps are drawn again
        self._idle = 0  # polls without progress since a group made some
        self._patience_lost = False
        self._alive: Array | None = None
        self._count = 0

    @property
    def alive(self) -> int:
        """The number of lanes that have not exited; if registers are kept, of all lanes."""
        if self._alive is not self._lanes.alive:
            self._alive = self._lanes.exists if self._keep else self._lanes.alive
            self._count = int(np.count_nonzero(self._alive))
            self._alive = self._lanes.alive
        return self._count

    def split_key(self, key: int) -> tuple[int, int]:
        """Return the program counter and the call depth of a key."""
        depth = -(key // self.span)
        return key + depth * self.span, depth

    # Rules 1 and 2

    def put(self, pc: int, group: Group) -> None:
        """Make a group ready at a program counter."""
        _add(self.ready, pc - group.depth * self.span, group)

    def put_some(self, pc: int, group: Group, bits: Array) -> None:
        """Make some lanes of a group ready at a program counter, if there are any."""
        if some := group.some(bits):
            self.put(pc, some)

    def next(self) -> tuple[int, Group] | None:
        """Return the next group to run and its program counter; None if no group can run."""
        if not self.ready:
            if not self.late:
                return None
            self.vain = 0 if self._patience_lost else self.vain + 1
            self._round()
        key = min(self.ready)
        group = self.ready.pop(key)
        if not group.full and group.count == self.alive:
            group.full, group.bits, group.used = True, self._lanes.alive, 0
            group._masks.clear()
        pc, _ = self.split_key(key)
        return pc, group

    def bound(self, group: Group) -> int:
        """Return the program counter at which the running group reaches another one, or must yield to it."""
        return min(self.ready) + group.depth * self.span if self.ready else STOP

    # Rules 3 and 4

    def steps(self, group: Group) -> int:
        """Return how many steps the running group may run before `rest` is called; 0 for no limit."""
        if self.late:
            return max(1, min(self._left, _PATIENCE - group.used if self.ready else STOP))
        return max(1, _PATIENCE - group.used) if self.ready else 0

    def gone(self, group: Group, steps: int) -> None:
        """Count steps of the running group."""
        group.used += steps
        self._left -= steps
        self._gone += steps

    def rest(self, pc: int, group: Group) -> None:
        """Requeue a group that has used up its steps."""
        if self.ready and group.used >= _PATIENCE:
            self._patience_lost = True
            self._postpone(pc, group, _RESPITE)
        else:
            self.put(pc, group)
        if self.late and self._left <= 0:
            self.vain = 0
            self._round()

    def back(self, pc: int, group: Group) -> int:
        """Return where a group that observed others and branches back continues; `STOP` if it becomes late."""
        vain = not group.changed and group.count >= group.looked
        group.observed, group.changed, group.looked = False, False, group.count
        self._idle = self._idle + 1 if vain else 0
        if not vain:
            return pc
        if self._random is None or self._idle > _IDLE:
            self._postpone(pc, group, _QUANTUM)
        elif self._random.random() < _GOES_ON:
            return pc
        else:
            self._postpone(pc, group, int(self._random.choice(_QUANTA)))
        return STOP

    def _postpone(self, pc: int, group: Group, quantum: int) -> None:
        if not self.late or quantum > self._left:
            self._left = quantum
        group.used = 0
        _add(self.late, pc - group.depth * self.span, group)

    def _round(self) -> None:
        self._patience_lost = False
        for key, group in self.late.items():
            _add(self.ready, key, group)
        self.late = {}
        if self._gone >= self._draws and self._idle <= _IDLE:
            self.draw()

    # Rule 5

    def draw(self) -> None:
        """Make some warps late, at random, if there is a seed."""
        if self._random is None:
            return
        self._left = int(self._random.choice(_QUANTA))
        self._draws = self._gone + int(self._random.choice(_DRAWS))
        groups, self.ready = self.ready, {}
        for key in sorted(groups):
            group = groups[key]
            first = self._random.random(self._lanes.shape[:2]) < 0.5
            pc, _ = self.split_key(key)
            for bits, put in ((group.bits & first[..., None], self.put), (group.bits & ~first[..., None], None)):
                if count := int(np.count_nonzero(bits)):
                    some = group.part(bits, count)
                    if put:
                        put(pc, some)
                    else:
                        self.late[key] = some
        if not self.ready:
            self.ready, self.late = self.late, {}

    # Barriers

    def go_on(self, pc: int, group: Group) -> None:
        """Let a group continue at a program counter; lanes that wait at a barrier, once it releases them."""
        waits = group.some(group.bits & self._lanes.waiting) if self._lanes.any_waiting else None
        if waits is None:
            self.put(pc, group)
        else:
            _add(self.waiting, pc - group.depth * self.span, waits)
            self.put_some(pc, group, group.bits & ~waits.bits)

    def release(self) -> None:
        """Let lanes continue that no longer wait."""
        for key, group in list(self.waiting.items()):
            free = group.some(group.bits & ~self._lanes.waiting)
            if free:
                del self.waiting[key]
                if rest := group.some(group.bits & self._lanes.waiting):
                    self.waiting[key] = rest
                self.put(self.split_key(key)[0], free)


def _add(groups: dict[int, Group], key: int, group: Group) -> None:
    other = groups.get(key)
    groups[key] = group if other is None else other.joined(group)
