"""Hazards: errors of a kernel that a GPU would not catch, found at the access that makes them.

The rules:

1. Each kind has a policy: it raises an error, warns once per line, or is only counted, by line, as "same value" and
   "order" are unless a policy names them: threads often store the same value to one place, which is harmless, and
   atomics in any order are what atomics are for.
2. A report names the thread that met the hazard first, where, how many lanes did so at once, and the line of the other
   party: the other access of a race, the pending copy, the instruction that made a poisoned register, or the barrier
   where others wait.
3. "off" omits what costs time: `TRACKED`. Addresses are still checked, barriers still waited at, and so on.
4. If a hazard is only a warning, the kernel continues: a lane whose address is misaligned or out of bounds takes no
   part in the access, and loads 0; threads that wait at a barrier for others that never arrive stop waiting; every
   other access happens as if it were correct.

Each hazard is defined where it is found: races, unwritten memory and copies in `allocation` and `happens_before`,
barriers in `barriers`, poison in `warp_register`.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np

from ..._arrays import Array
from ..._records import Shown
from ...errors import OperandError, WarpmmaError, shown
from ..base import Origin, Site
from ..order import History, LateWrites, block_of, thread_of
from .asynchronous_rules import RULES
from .unpredicted import Comparisons

Policy = Literal["error", "strict", "warn", "count", "off"]

KINDS: Mapping[str, str] = MappingProxyType({
    "race": "two threads access a byte of memory, one of them writes it, and nothing orders them",
    "same value": "threads store the same value to a byte of memory, and nothing orders them",
    "lane order": "lanes of a warp store different values to one address at once, and PTX leaves open which stays",
    "order": "what an atomic returns, or a sum of floats, depends on which thread came first, which CUDA leaves open",
    "unwritten": "unwritten memory is read, or an Output is never written",
    "poison": "a register is read in a lane that did not write it, or that loaded unwritten memory",
    "bounds": "an address is outside of every allocation",
    "stack": "a thread's local memory overflows, or an address is outside of its frames",
    "misaligned": "an address is not a multiple of what the access needs",
    "pending": "memory or a register is accessed that a copy or a product may still write or read, or no thread waits",
    "proxy": "the async proxy accesses what a thread wrote, and no proxy fence (or wgmma.fence) lies between",
    "barrier": "threads wait at a barrier for others that never arrive",
    "deadlock": "threads wait in a loop for a value that no running thread will write",
    "divergent": "lanes of a warp execute an instruction together, and some of them are masked off",
    "metadata": "an mma.sp reads indices that PTX leaves undefined",
})  # fmt: skip
"""The kinds of hazards, and what each means."""

_COUNTS: Mapping[str, Policy] = {"same value": "count", "order": "count"}
_MOST_ORIGINS = (1 << 16) - 1  # that memory can tell apart
_BY_POLICY = tuple(kind for kind in KINDS if kind not in _COUNTS)
TRACKED = ("race", "same value", "lane order", "order", "unwritten", "poison", "pending", "proxy", "metadata")
"""The hazards that need a shadow of every byte and register, and can be omitted for speed; and "metadata", which
usually results from unwritten memory."""


_EXECUTIONS = 4  # of a product that are kept


class Reads(Protocol):
    """An instruction that reads shared memory, as it was executed."""

    def describe(self, block: int, address: int) -> tuple[int, str] | None:
        """Describe what is read at an address in a block of the batch, and how far behind it."""


class HazardError(WarpmmaError):
    """A hazard; `hazard` says which."""

    def __init__(self, hazard: Hazard) -> None:
        super().__init__(hazard)  # whose text is that of the error
        self.hazard = hazard


class HazardWarning(UserWarning):
    """A hazard whose policy is a warning."""


@dataclass(frozen=True, kw_only=True)
class Hazard(Shown):
    """A hazard, where it was met first.

    Attributes
    ----------
    kind : str
        A key of `KINDS`.
    site : Site
    block, warp, lane : int or None
        The thread that met it: block of the grid (linear), warp of the block; of a read that decided something later,
        the thread that read. None for a hazard of the launch.
    address : int or None
        In bytes; in shared memory from the block's own 0, with its rank in a cluster from bit 24 on.
    count : int
        How many lanes met it there at once, or decide something at once.
    detail : str
        What was found, and what was expected.
    other : Site or None
        The line of the other party, see rule 2.
    decided : Site or None
        The line where what was read decided something; None where the access alone is the hazard (rule 5).
    element : str
        The element at the address: "x[3, 0]" in an array of the launch, "tile[31] of 4 bytes" in a variable in shared
        memory, in elements of the size of the access; "" if unknown.
    block_index : tuple of int, or None
        The block's index in a grid of more than one dimension.
    index_name : str
        Its name in the kernel's language: "blockIdx" in CUDA C++, "program_id" in Triton.
    rule : str
        The name of the rule of asynchronous order that is broken, "A6"; "" for others.
    """

    kind: str
    site: Site
    block: int | None = None
    warp: int | None = None
    lane: int | None = None
    address: int | None = None
    count: int = 1
    detail: str = ""
    other: Site | None = None
    decided: Site | None = None
    element: str = ""
    block_index: tuple[int, int, int] | None = None
    index_name: str = "blockIdx"
    rule: str = ""

    def __str__(self) -> str:
        at = "" if self.address is None else f" at address {self.address:#x}"
        at += f", {self.element}" if self.element else ""
        index = f" = {self.index_name} {self.block_index}" if self.block_index else ""
        more = f" (and {self.count - 1} more lane{'s' * (self.count > 2)})" if self.count > 1 else ""
        thread = f"block {self.block}{index}, warp {self.warp}, lane {self.lane}"
        where = "" if self.block is None else f"{thread}{at}{more}: "
        rule = f" (rule {self.rule})" if self.rule else ""
        return f"{self.site}: {self.kind}: {where}{self.detail or KINDS[self.kind]}{rule}"


class Reporter:
    """Turns masks of lanes into hazards, and hazards into errors or warnings.

    Parameters
    ----------
    policy : "error", "strict", "warn", "count", "off" or dict
        For all hazards except "same value" and "order", which are counted; or by kind, where others are errors, and
        "count" only counts. "strict": all are errors, and so is every read of what rule 5 calls poison. "off": hazards
        of `TRACKED` are not looked for, and all others are errors.
    program : bool
        Whether a program runs, in which poison can be followed (rule 5).

    Attributes
    ----------
    tracking : bool
        Whether hazards of `TRACKED` are looked for.
    strict : bool
        Whether all rules of `asynchronous_rules` are reported.
    follows : bool
        Whether poison is followed to what it decides (rule 5).
    counts : dict of str to int
        By kind, how many lanes met hazards that are only counted.
    order : dict of Site to int
        By line, how many lanes met an "order" that is only counted.
    joined : dict of (Site, Site) to int
        How often lanes of one warp executed a `.sync` instruction together from two lines.
    first_block : int
        Number of the first running block.
    grid : tuple of int
        Blocks of the launch, by dimension; () if it has only one dimension.
    index_name : str
        As in `Hazard`.
    comparisons : Comparisons
        Of results with other results that a GPU may give.
    poisoned : dict of Origin to int
        How many lanes read poison, by its origin.
    history : History
        The lines of all events.
    told : set of (str, Site)
        The kinds and lines that were warned of, in an earlier run of the launch too.
    late : LateWrites or None
        Where late writes are noted, which are not reported then; None where a launch cannot be undone.
    known : LateWrites or None
        Those of the run before.
    """

    def __init__(self, policy: Policy | Mapping[str, Policy] = "error", *, program: bool = False) -> None:
        self.tracking = not (isinstance(policy, str) and policy == "off")
        strict = isinstance(policy, str) and policy == "strict"
        self.follows, self.strict = program and self.tracking and not strict, strict
        asked: Any = policy if self.tracking and not strict else "error"
        whole = isinstance(asked, str) and asked == "error"
        chosen = asked if isinstance(asked, Mapping) else {} if whole else dict.fromkeys(_BY_POLICY, asked)
        for kind, what in chosen.items():
            if kind not in KINDS or not isinstance(what, str) or what not in ("error", "warn", "count"):
                *most, last = map(repr, get_args(Policy))
                raise OperandError(
                    f"hazards: {shown(kind)}: {shown(what)}; expected 'error', 'warn' or 'count' for one of "
                    f"{', '.join(KINDS)}; or {', '.join(most)} or {last} for all"
                )
        self._policy = {**_COUNTS, **chosen}
        self._found: dict[tuple[str, Site], Hazard] = {}
        self.told: set[tuple[str, Site]] = set()
        self.counts: dict[str, int] = defaultdict(int)
        self.order: dict[Site, int] = defaultdict(int)
        self.joined: dict[tuple[Site, Site], int] = defaultdict(int)
        self.first_block = 0
        self.poisoned: dict[Origin, int] = {}
        self.history = History()
        self.late: LateWrites | None = None
        self.known: LateWrites | None = None
        self._origins: list[Origin] = []
        self._known: dict[tuple[str, Site, Site | None], Origin] = {}
        self._reads: dict[Origin, tuple[int, Array, Array | None, Callable[[int], str] | None]] = {}
        self._decided: set[Origin] = set()
        self._tiles: dict[Site, deque[Reads]] = {}
        self._sites: list[tuple[Site, Array]] = []
        self.grid: tuple[int, ...] = ()
        self.index_name = "blockIdx"
        self._linear: Callable[[int], int] | None = None
        self.comparisons = Comparisons()

    @property
    def found(self) -> list[Hazard]:
        """Hazards that were warnings: the first of each kind and line."""
        return list(self._found.values())

    def extends(
        self, blocks: tuple[int, int, int], index_name: str, linear: Callable[[int], int] | None = None
    ) -> None:  # fmt: skip
        """Set the grid, and the name that the kernel's language gives to the index of a block.

        `linear` returns the linear number of a block that the machine gives another number: `block.Grid`.
        """
        self.grid, self.index_name = blocks if blocks[1:] != (1, 1) else (), index_name
        self._linear = linear

    def block_named(self, number: int) -> str:
        """Name a block of the grid by its number, and by its index if the grid has more than one dimension."""
        number = self.linear(number)
        index = self._index(number)
        return f"block {number} = {self.index_name} {index}" if index else f"block {number}"

    def linear(self, number: int) -> int:
        """Return the linear number of a block in the grid, by its number in the machine."""
        return number if self._linear is None else self._linear(number)

    def running(self, place: int) -> int:
        """Return the linear number of a running block, by its place among them."""
        return self.linear(self.first_block + place)

    def _index(self, number: int | None) -> tuple[int, int, int] | None:
        if not self.grid or number is None:
            return None
        x, y, _ = self.grid
        return number % x, number // x % y, number // (x * y)

    def report(
        self, kind: str, site: Site, bad: Array, address: Array | None = None, detail: str | Callable[[int], str] = "",
        other: Site | None = None, element: Callable[[int], str] | None = None, decided: Site | None = None,
        rule: str = "",
    ) -> None:  # fmt: skip
        """Report lanes `[block, warp, lane]` that met a hazard, if there are any.

        Parameters
        ----------
        kind : str
        site : Site
        bad : ndarray of bool
        address : ndarray of int, optional
            The address of every lane.
        detail : str or callable
            What was found, and what was expected; may be a function of the first such lane's address.
        other : Site, optional
            The line of the other party.
        element : callable, optional
            Names the element at an address.
        decided : Site, optional
            The line where what was read decided something.
        rule : str
            The rule of `asynchronous_rules` that it breaks; only "strict" reports those of the literal manual.
        """
        if not bad.any() or (not self.tracking and kind in TRACKED):
            return
        if rule and RULES[rule].level == "strict" and not self.strict:
            return
        if self._sites and site is self._sites[0][0]:
            parts, self._sites = self._sites, []
            for own, lanes in parts:
                self.report(kind, own, bad & lanes, address, detail, other, element, decided, rule)
            self._sites = parts
            return
        if self._policy.get(kind) == "count":
            self.counts[kind] += int(bad.sum())
            if kind == "order":
                self.order[site] += int(bad.sum())
            return
        block, warp, lane = (int(x) for x in np.argwhere(bad)[0])
        at = None if address is None else int(np.broadcast_to(address, bad.shape)[block, warp, lane])
        self._tell(Hazard(
            kind=kind, site=site, block=self.first_block + block, warp=warp, lane=lane, address=at,
            count=int(bad.sum()),
            detail=self._described(detail if isinstance(detail, str) else detail(at or 0), site, other, block, at),
            other=other, decided=decided, element="" if element is None or at is None else element(at),
            rule=rule,
        ))  # fmt: skip

    def origin(
        self, kind: str, site: Site, lanes: Array, detail: str, other: Site | None = None,
        address: Array | None = None, element: Callable[[int], str] | None = None, rule: str = "",
    ) -> Origin:  # fmt: skip
        """Return the origin of poison that lanes `[block, warp, lane]` of a line read, and count them.

        The other parameters are those of `report`; `detail` is kept from the first such read.
        """
        key = kind, site, other
        if (found := self._known.get(key)) is None:
            if address is not None and self._tiles:
                block, warp, lane = np.argwhere(lanes)[0].tolist()
                at = int(np.broadcast_to(address, lanes.shape)[block, warp, lane])
                detail = self._described(detail, site, other, block, at)
            found = Origin(min(len(self._origins) + 1, _MOST_ORIGINS), kind, site, detail, other, rule)
            self._origins.append(found)
            self._known[key] = found
        self.poisoned[found] = self.poisoned.get(found, 0) + int(np.count_nonzero(lanes))
        self._reads.setdefault(found, (self.first_block, lanes, address, element))
        return found

    def settled(self, origin: Origin, count: int) -> None:
        """Note that poison of an origin has become values in so many lanes, which was pending."""
        self.poisoned[origin] -= count
        if self.poisoned[origin] <= 0:
            del self.poisoned[origin]

    def end(self) -> None:
        """Release what would be in a reference cycle."""
        self._reads.clear()
        self._tiles.clear()

    def reads(self, site: Site, what: Reads) -> None:
        """Note what a line reads of shared memory, for reports of what happens there."""
        self._tiles.setdefault(site, deque(maxlen=_EXECUTIONS)).append(what)

    def _described(self, detail: str, site: Site, other: Site | None, block: int, address: int | None) -> str:
        """Add to a detail what the lines read at an address in a block of the batch, if that is known."""
        if address is None or not self._tiles:
            return detail
        found = [x.describe(block, address) for at in (site, other) if at for x in reversed(self._tiles.get(at, ()))]
        there = [x for x in found if x is not None]
        return f"{detail}; {min(there, key=lambda x: x[0])[1]}" if there else detail

    def numbered(self, origin: int) -> Origin:
        """Return an origin by its number."""
        return self._origins[origin - 1]

    def decides(self, origin: Origin, site: Site, bad: Array) -> None:
        """Report lanes `[block, warp, lane]` where poison decides something at a line.

        The report names the lanes that read it first, and the first that decides if that is another one.
        """
        self._decided.add(origin)
        if origin.kind == "poison":
            self.report(origin.kind, site, bad, detail=origin.detail, other=origin.site, decided=site)
            return
        block, warp, lane = np.argwhere(bad)[0].tolist()
        matters = f"and its value matters at {site.what}"
        self._tell_read(origin, (self.first_block + block, warp, lane), site, int(np.count_nonzero(bad)), matters)

    def _tell_read(self, origin: Origin, by: tuple[int, int, int], decided: Site, count: int, says: str) -> None:
        """Report the first read of an origin: block, warp and lane of the first of `count` that decide are given."""
        before, lanes, address, element = self._reads[origin]
        place = tuple(np.argwhere(lanes)[0].tolist())
        block, warp, lane = before + place[0], *place[1:]
        at = None if address is None else int(np.broadcast_to(address, lanes.shape)[place])
        if by != (block, warp, lane):
            says += f" by lane {by[2]} of warp {by[1]} of {self.block_named(by[0])}"
        self._tell_or_count(Hazard(
            kind=origin.kind, site=origin.site, block=block, warp=warp, lane=lane, address=at, count=count,
            detail=f"{origin.detail}, {says}", other=origin.other or decided, decided=decided,
            element="" if element is None or at is None else element(at), rule=origin.rule,
        ))  # fmt: skip

    def left(self, origin: Origin, words: Array, addresses: Array, element: Callable[[int, int], str]) -> None:
        """Report poison that is left in global memory, at addresses of bytes which access words `[n]` have written."""
        self._decided.add(origin)
        first = int(words[0])
        block, (warp, lane), site = block_of(first), thread_of(first), self.history.site(first) or origin.site
        where = element(int(addresses[0]), 1) or hex(int(addresses[0]))
        count = len(np.unique(words))
        if origin.kind != "poison":
            left = f"and its value is left in {where} at {site.what}"
            self._tell_read(origin, (block, warp, lane), site, count, left)
            return
        self._tell_or_count(Hazard(
            kind=origin.kind, site=site, block=block, warp=warp, lane=lane, count=count, detail=origin.detail,
            other=origin.site, decided=site,
        ))  # fmt: skip

    @property
    def harmless(self) -> dict[tuple[str, Site, Site | None], int]:
        """How many lanes read poison that decided nothing, by kind, line and the line of the other party."""
        return {(x.kind, x.site, x.other): n for x, n in self.poisoned.items() if x not in self._decided}

    @contextmanager
    def sites(self, parts: list[tuple[Site, Array]]) -> Iterator[None]:
        """Report hazards of the first of some sites at each lane's own site."""
        self._sites = parts
        try:
            yield
        finally:
            self._sites = []

    def report_launch(self, kind: str, site: Site, detail: str) -> None:
        """Report a hazard of the launch, which no thread met."""
        if self._policy.get(kind) == "count":
            self.counts[kind] += 1
        elif self.tracking or kind not in TRACKED:
            self._tell(Hazard(kind=kind, site=site, detail=detail))

    def _tell_or_count(self, hazard: Hazard) -> None:
        if self._policy.get(hazard.kind) == "count":
            self.counts[hazard.kind] += hazard.count
        else:
            self._tell(hazard)

    def aligned(self, site: Site, address: Array, alignment: int, lanes: Array) -> Array:
        """Return which addresses are aligned; report those of `lanes` that are not."""
        type_ = address.dtype.type
        power = alignment & (alignment - 1) == 0
        aligned: Array = (address & type_(alignment - 1) if power else address % type_(alignment)) == 0
        self.report("misaligned", site, lanes & ~aligned, address, f"expected a multiple of {alignment} bytes")
        return aligned

    def _tell(self, hazard: Hazard) -> None:
        """Report a hazard, whose block has the machine's number."""
        block = None if hazard.block is None else self.linear(hazard.block)
        hazard = replace(hazard, block=block, block_index=self._index(block), index_name=self.index_name)
        kind, site = hazard.kind, hazard.site
        if self._policy.get(kind, "error") == "error":
            raise HazardError(hazard)
        if (kind, site) not in self._found:
            self._found[kind, site] = hazard
            if (kind, site) in self.told:
                return
            self.told.add((kind, site))
            # As if the kernel's line had warned.
            warnings.warn_explicit(str(hazard), HazardWarning, site.file, site.line)


# Names of elements


class NamedArray(NamedTuple):
    """An array of a launch."""

    name: str  # its name in the kernel, or in the list of arguments
    start: int  # its generic address
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def stop(self) -> int:
        """The address after its last byte."""
        return self.start + math.prod(self.shape) * self.dtype.itemsize


def element_at(name: str, offset: int, size: int = 0, shape: tuple[int, ...] = ()) -> str:
    """Name the element at an offset in bytes from the start of an array.

    Parameters
    ----------
    name : str
    offset : int
    size : int, optional
        Bytes of an element; 0 if unknown.
    shape : tuple of int, optional
        Shape of the array, if it has more than one dimension.

    Examples
    --------
    >>> element_at("x", 40, 4), element_at("x", 42, 4, (3, 4)), element_at("table", 40), element_at("table", 0)
    ('x[10]', 'x[2, 2] + 2 bytes', 'table + 40 bytes', 'table[0]')
    """
    if not size:
        return f"{name} + {offset} bytes" if offset else f"{name}[0]"
    number, rest = divmod(offset, size)
    place = [int(i) for i in np.unravel_index(number, shape)] if len(shape) > 1 else [number]
    return f"{name}[{', '.join(map(str, place))}]" + (f" + {rest} bytes" if rest else "")
