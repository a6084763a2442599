"""Global memory, as one launch finds it: what its device holds, and arrays that are placed for the launch alone.

Parameters of an entry are the launch's alone, and lie in the window of .param; the device does not know them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ..._arrays import Array
from ...errors import OperandError
from ...operations import WINDOWS
from ..base import Site, flat, locate
from ..order import ThreadScope, VectorClocks
from ..report import NamedArray, Reporter, element_at
from .accesses import Touch
from .address_space import PHASE, AddressSpace, Region, nearest
from .allocation import Allocation
from .undoing import Undoing

Bounds = tuple[Array, Array]

_TEXT, _LONGEST_TEXT = 1 << 12, 1 << 20
"""Bytes of a text that are looked at together, and at most."""

HEAP = 1 << 23
"""Bytes that all `malloc` of kernels on a device may hold, as CUDA has it unless it is told otherwise."""


_NULL = 1 << 16  # a lower address was an offset from address 0


class GlobalMemory:
    """Global memory of a launch.

    What earlier launches wrote counts as written; their accesses happen before all accesses of this one.

    Parameters
    ----------
    reporter : Reporter
    space : AddressSpace, optional
        What the device holds; nothing, if none is given.

    Attributes
    ----------
    undoing : Undoing or None
        What the launch changes, if it may be undone.
    """

    def __init__(self, reporter: Reporter, space: AddressSpace | None = None) -> None:
        self._reporter = reporter
        self._space = AddressSpace() if space is None else space
        self._mark = self._space.mark()
        self._allocations: dict[Region, Allocation] = {}
        self._added: list[Region] = []
        self._parameters: bytes | None = None
        self._named: list[NamedArray] = []
        self.undoing = None if reporter.late is None else Undoing(reporter, self._space)

    def call(self, address: int, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Return what reports call the elements of the array at an address."""
        self._named.append(NamedArray(name, address, shape, dtype))

    def add(self, array: Array, name: str, *, written: bool = True) -> int:
        """Place an array, which is read and written in place, and return its address; errors call it by `name`.

        An array that was placed before, or a part of one, is the same memory.

        Raises
        ------
        OperandError
            No array, one that shares memory with another in part, masked, a matrix, not C-contiguous, or not of numbers
            in the machine's byte order.
        """
        data, held = check_array(array, name)
        if (region := self._space.holder(held, name)) is not None:
            start = region.start + held.start - region.held.start
        else:
            cause = f"it was never written: {name} is an Output"
            region = Region(name=name, start=0, data=data, written=written, held=held, cause=cause)
            self._added.append(self._space.place(region))
            start = region.start
        self.call(start, name, array.shape, array.dtype)
        return start

    @property
    def constants_end(self) -> np.uint64:
        """The generic address after all constant memory."""
        return np.uint64(self._space.mark("const"))

    def parameters(self, data: bytes) -> int:
        """Place the parameters of an entry, and return their address in the space .param."""
        self._parameters = data
        self.__dict__.pop("_own", None)
        return 0

    @cached_property
    def _own(self) -> Region | None:
        """The parameters, when they are accessed as memory: most programs read them as `Argument`."""
        if self._parameters is None:
            return None
        held = np.frombuffer(self._parameters, np.uint8)  # read-only
        return Region(name="the parameters", start=WINDOWS["param"].base, data=held)

    def text(self, address: int) -> bytes | None:
        """Bytes from a generic address up to a zero, 1 MB, or the end of its region; None outside of regions."""
        region = self._find(address)
        if region is None:
            return None
        found, data = b"", region.data[address - region.start :]
        for start in range(0, min(len(data), _LONGEST_TEXT), _TEXT):  # what follows may be large
            part, zero, _ = data[start : start + _TEXT].tobytes().partition(b"\0")
            found += part
            if zero:
                break
        return found

    def _find(self, address: int) -> Region | None:
        """Return the region that holds a generic address, or None."""
        if (own := self._own) is not None and own.start <= address < own.stop:
            return own
        return self._space.find(address)

    def allocate(self, nbytes: int) -> int:
        """Place unwritten memory that a kernel allocates; return its address, or 0 if the heap is full.

        It exists until it is freed, at most as long as the device.
        """
        if nbytes > HEAP - sum(region.data.size for region in self._space.regions if region.heap):
            return 0
        region = Region(
            name=f"{nbytes} bytes of malloc", start=0, data=np.zeros(nbytes, np.uint8), written=False,
            cause="it was not written since malloc gave it", heap=True,
        )  # fmt: skip
        self._space.place(region)
        if self.undoing is not None:
            self.undoing.allocated(region)
        return region.start

    def release(self, address: int) -> bool:
        """Free memory that `allocate` placed; return whether there was any at the address."""
        region = self._space.find(address)
        if region is None or region.start != address or not region.heap:
            return False
        self._space.remove(region)
        self._allocations.pop(region, None)
        if self.undoing is not None:
            self.undoing.released(region)
        return True

    def kept(self) -> Undoing | None:
        """Return what undoes the launch after it has ended; None if nothing does."""
        kept, self.undoing = self.undoing, None
        return kept

    def end(self) -> None:
        """Give back memory placed for the launch, and keep which bytes of the rest are written."""
        if self.undoing is not None:
            self.undoing.end()
        for region in self._added:
            self._space.remove(region)
        self._space.give_back(self._mark)
        self._parameters = None
        self.__dict__.pop("_own", None)
        for region, allocation in self._allocations.items():
            region.written = allocation.shadow.written
            allocation.shadow.end()
        self._added.clear()
        self._allocations.clear()

    def contents(self) -> Iterator[Array]:
        """Return the bytes of every array that was touched."""
        return (allocation.data for allocation in self._allocations.values())

    def accessed(self) -> Iterator[tuple[NamedArray, Mapping[int, Site]]]:
        """Yield each array of the launch with the sites that accessed its memory, by identity (see `retyping`).

        Left out is memory that arrays of several types share.
        """
        for region, allocation in self._allocations.items():
            named = [x for x in self._named if x.start < region.stop and region.start < x.stop]
            if len({x.dtype for x in named}) == 1:
                yield named[0], allocation.sites

    def report_left(self) -> None:
        """Report poison that the launch leaves (rule 8 of `access_shadow`)."""
        for region, allocation in self._allocations.items():
            allocation.shadow.report_left(region.start)

    def unwritten(self) -> list[str]:
        """Names of the arrays of the launch that are unwritten, and that hold nothing else."""
        found = []
        for region in self._added:
            allocation = self._allocations.get(region)
            known = region.written if allocation is None else allocation.shadow.written
            if known is not True and region.data.size and (known is False or not known.flags.any()):
                found.append(region.name)
        return found

    def name_of(self, allocation: Allocation) -> str:
        """Return what reports call the memory of an allocation."""
        return self._called(next(region for region, x in self._allocations.items() if x is allocation))

    def touched(
        self, clocks: VectorClocks, site: Site, address: Array, size: int, lanes: Array, alignment: int
    ) -> Iterator[tuple[Allocation, Touch]]:
        """Allocations that are touched, and by which of the lanes."""
        time = clocks.tick(site)
        if (only := self._only(flat(address), flat(lanes), size, alignment)) is not None:
            region, offset = only
            yield self._allocation(region, site), self._touch(clocks, site, time, address, lanes, offset, size)
            return
        ok = lanes & self._reporter.aligned(site, address, alignment, lanes)
        regions, bounds = self._all_pieces()
        starts, ends = (np.concatenate([np.zeros(1, np.uint64), x]) for x in bounds)
        address = address.astype(np.uint64, copy=False)
        number = np.searchsorted(starts, address, "right") - 1  # 0: not an allocation
        inside = address - starts[number]
        room = (ends - starts)[number]
        outside = ok & ((number == 0) | (room < size) | (inside > room - np.uint64(size)))
        self._reporter.report("bounds", site, outside, address, self._nearest(size))
        number = np.where(ok & ~outside, number, 0) - 1
        for each in np.unique(number[number >= 0]).tolist():
            some = number == each
            offset = inside[some].astype(np.int64)
            yield (self._allocation(regions[each], site), self._touch(clocks, site, time, address, some, offset, size))

    def whole(
        self, clocks: VectorClocks, site: Site, address: Array, lanes: Array, at: Array, size: int, runs: int
    ) -> tuple[Allocation, Touch] | None:  # fmt: skip
        """Return an access of several runs of each lane, `at` so many addresses `[n * runs]`.

        It does not count as an event yet. None if they are not all in one piece of memory.
        """
        if (only := self._only(at, np.ones(len(at), bool), size, 1)) is None:
            return None
        region, offset = only
        number, time = len(at) // runs, clocks.now
        who = clocks.who(time, lanes, number).some(np.repeat(np.arange(number), runs))
        touch = Touch(
            site=site, time=time, clocks=clocks, address=address, lanes=lanes, size=size, offset=offset, who=who,
            runs=runs,
        )  # fmt: skip
        return self._allocation(region, site), touch

    def _only(self, address: Array, lanes: Array, size: int, alignment: int) -> tuple[Region, Array] | None:
        """Return the one region that all lanes access, and where each does; None if there is none (`locate`)."""
        with self._space.lock:
            one = locate(address, lanes, self._space.bounds, size, alignment)
            if one is not None:
                return self._space.regions[one[0]], one[1]
        if (own := self._own) is not None:
            bounds = np.array([own.start], np.uint64), np.array([own.stop], np.uint64)
            one = locate(address, lanes, bounds, size, alignment)
        return None if one is None or own is None else (own, one[1])

    def _all_pieces(self) -> tuple[list[Region], Bounds]:
        """Return what the device holds, and the launch's parameters, by address; and where they begin and end."""
        with self._space.lock:
            regions, (starts, ends) = self._space.regions.copy(), self._space.bounds
            starts, ends = starts.copy(), ends.copy()
        if (own := self._own) is None:
            return regions, (starts, ends)
        at = int(np.searchsorted(starts, np.uint64(own.start)))
        return [*regions[:at], own, *regions[at:]], (np.insert(starts, at, own.start), np.insert(ends, at, own.stop))

    def _touch(
        self, clocks: VectorClocks, site: Site, time: int, address: Array, lanes: Array, offset: Array, size: int
    ) -> Touch:
        who = clocks.who(time, lanes, len(offset))
        return Touch(
            site=site, time=time, clocks=clocks, address=address, lanes=lanes, size=size, offset=offset, who=who
        )

    def _allocation(self, region: Region, site: Site) -> Allocation:
        """Return what this launch knows of a region, which a site accesses."""
        allocation = self._allocations.get(region)
        if allocation is None:
            allocation = self._allocations[region] = Allocation(
                self._reporter, region.data, written=region.written, scope=ThreadScope.GPU, cause=region.cause,
                phase=region.start % PHASE, element=self._element, key=("global", region.start),
            )  # fmt: skip
            if self.undoing is not None:
                allocation.pages = self.undoing.pages(region)
        allocation.sites[id(site)] = site
        return allocation

    def _called(self, region: Region) -> str:
        """Return the name of a region, and that of the argument which is all of it, if one is."""
        names = [x.name for x in self._named if x.start == region.start and x.stop == region.stop]
        return " = ".join(dict.fromkeys([*names, region.name]))

    def _element(self, address: int, size: int) -> str:
        """Name the element at a generic address, "x[3]"; "" outside of regions."""
        if (found := next((x for x in self._named if x.start <= address < x.stop), None)) is not None:
            return element_at(found.name, address - found.start, found.dtype.itemsize, found.shape)
        region = self._find(address)
        return "" if region is None else element_at(region.name, address - region.start)

    def _nearest(self, size: int) -> Callable[[int], str]:
        """Say where an address outside of all allocations is."""

        def says(address: int) -> str:
            regions, _ = self._all_pieces()
            if not regions:
                return "no array is in global memory"

            if address < _NULL <= min(region.start for region in regions):
                return (
                    f"{size} bytes next to address 0, where nothing lies: a null pointer, or an array without elements"
                )
            pieces = ((self._called(region), region.start, region.stop) for region in regions)
            near = nearest(pieces, address, size)
            return f"{size} bytes outside of all arrays; the nearest, {near}"

        return says


def check_array(array: object, name: str) -> tuple[Array, range]:
    """Return the bytes of an array, and where the process has them; refuse what memory cannot hold as a kernel sees it.

    Raises
    ------
    OperandError
        As `GlobalMemory.add`.
    """
    if isinstance(array, np.ma.MaskedArray):
        raise OperandError(f"{name} is a masked array, and memory has no masks: fill it first")
    if isinstance(array, np.matrix):
        raise OperandError(f"{name} is a np.matrix, whose slices stay matrices: use np.asarray")
    if not isinstance(array, np.ndarray):
        raise OperandError(f"{name} is {type(array).__name__}; in global memory lie C-contiguous ndarrays of numbers")
    check_elements(array.dtype, name)
    if not array.flags.c_contiguous:
        raise OperandError(
            f"{name} is {array.dtype} {array.shape}, not contiguous; in global memory lie C-contiguous ndarrays of "
            "numbers. Use np.ascontiguousarray, and copy back what the kernel has written"
        )
    array = array.view(np.ndarray)  # of a subclass such as memmap, the array alone
    begin = int(array.__array_interface__["data"][0])
    data = array.reshape(-1).view(np.uint8) if array.size else np.zeros(0, np.uint8)
    return data, range(begin, begin + array.nbytes)


def check_elements(dtype: np.dtype[Any], name: str) -> None:
    """Raise `OperandError` for elements that no GPU knows as numbers."""
    if bad := _no_number(dtype):
        raise OperandError(f"{name} is an array of {dtype}; in global memory lie numbers: {bad}")


def _no_number(dtype: np.dtype[Any]) -> str:
    """Say what to do about elements that no GPU knows as numbers; nothing about those that one does."""
    if dtype.names is not None:
        return next((bad for name in dtype.names if (bad := _no_number(dtype[name].base))), "")
    if dtype.kind in "OSUT":
        return "texts and Python objects are none"
    if dtype.kind in "mM":
        return "give a time as an integer, array.view(np.int64)"
    if not dtype.isnative:
        return "a GPU is little-endian; convert with array.astype(array.dtype.newbyteorder('=')), and back"
    if dtype.type is np.void or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        return "of at most 64 bits, or complex ones of two such"
    return ""
