"""The core of this room: the sparse A of one instruction, for records and arrays that are already checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache, cached_property, partial

from .._arguments import is_integer
from .._lazy_numpy import Array, UInt8, _arrays, np, npt
from ..errors import MetadataError, OperandError, UnsupportedError, shown
from ..formats import FloatFormat
from ..isa import TARGETS, MatrixInstruction, WarpgroupInstruction
from ..layouts import Layout
from ..registers import LANES, Packing
from .patterns import (
    DISTINCT,
    PLACES,
    RULE,
    SORTED_CODES,
    UNSORTED,
    WHOLE,
    Codes,
    Pattern,
    columns,
    first_outside,
    heaviest,
    indices_of,
    legal_are,
    named,
    nibble_of,
    outside,
    pieces,
    said,
)

_WARPS = 1024  # checked at a time


@cache
def sparse_a(record: MatrixInstruction) -> SparseA:
    """Return the sparse A of a record; `MetadataError` for a dense one."""
    if not record.sparse:
        raise MetadataError(
            f"{record} is dense, without pattern and metadata; expected an mma.sp or wgmma.mma_async.sp"
        )
    return SparseA(record)


class SparseA:
    """The sparse A of one instruction.

    Matrices and metadata words are arrays, selectors are legal, and indices are nibbles, `[..., m, groups]`.

    Attributes
    ----------
    record : Instruction or WarpgroupInstruction
    pattern : Pattern
    layout : Layout
        Of the metadata register, by the law.
    """

    def __init__(self, record: MatrixInstruction) -> None:
        self.record = record
        # An index addresses at least 8 bits, which may be two elements, and at most 16, which may be half of one.
        slot = record.packing("A").slot
        self.pattern = Pattern(width=PLACES * min(max(slot, 8), 16) // slot)
        high = "e2" if slot >= 16 else "l0"
        rest = tuple(bit for bit in ("e0", "e1", "e2", "l0", "l1") if bit != high)
        needed = self.groups.bit_length() - 1
        warps = ("l5", "l6") if isinstance(record, WarpgroupInstruction) else ()
        self.layout = Layout(
            row=("l2", "l3", "l4", high, *warps), column=rest[:needed], matrix=rest[needed:],
            packing=Packing(slot=4, bits=4), lanes=LANES << len(warps),
        )  # fmt: skip

    @property
    def groups(self) -> int:
        """Groups of a row of one instruction."""
        return self.record.k // self.pattern.width

    def legal_codes(self, target: str | None = None) -> Codes:
        """Nibbles that PTX defines, or those of them whose effect on a target is known."""
        record = self.record
        if self.pattern.units == 2:
            return WHOLE
        fp8 = isinstance(record.format("A"), FloatFormat) and record.packing("A").slot == 8
        codes = DISTINCT if record.sparsity == "sp" and not fp8 else SORTED_CODES
        unsorted = target is not None and any(
            record.a_type == name and TARGETS[target].generation in where for name, where in UNSORTED
        )
        return codes & SORTED_CODES if unsorted else codes

    # Metadata registers

    def check_index(self, name: str, value: int, count: int) -> None:
        """Raise `MetadataError` unless a number is below a count."""
        if not is_integer(value) or not 0 <= value < count:
            raise MetadataError(
                f"{self.record}: {name} is {shown(value)}; legal are {', '.join(map(str, range(count)))}"
            )

    def check_selector(self, selector: int) -> None:
        """Raise `MetadataError` unless the instruction has this selector."""
        self.check_index("selector", selector, self.layout.matrices)

    def pack(self, nibbles: Array, selector: int, into: Array | None = None) -> npt.NDArray[np.uint32]:
        """Pack nibbles into metadata registers, whose other lanes are 0 or as in `into`."""
        packing = self.layout.packing
        words = np.zeros(self.layout.lanes, np.uint32) if into is None else into
        batch = self.batch_of(indices=nibbles.shape[:-2], into=words.shape[:-1])
        fields = np.broadcast_to(packing.split(words), (*batch, self.layout.lanes, packing.per_register)).copy()
        fields[(..., *self._places(selector))] = nibbles
        return packing.join(fields)

    def read(self, words: Array, selector: int) -> Array:
        """Nibble of every group, `[..., m, groups]`."""
        lane, number = self._places(selector)
        return words.take(lane, axis=-1) >> self.layout.packing.shifts[number] & np.uint32(15)

    def _places(self, selector: int) -> tuple[Array, Array]:
        """Lane and number of the nibble of every group, two arrays `[m, groups]`."""
        lane, number = (x.reshape(self.layout.matrices, *self.layout.shape[-2:])[selector] for x in self.layout.slots)
        return lane, number

    def check_words(self, words: Array, selector: int, codes: Codes, by_rule: bool) -> None:
        """Raise `MetadataError` unless every nibble in the selected lanes is one of these; `by_rule` if PTX says so."""
        layout, batch = self.layout, words.shape[:-1]
        here = layout.places[0] == selector
        # As many warps at a time as fit in cache: the nibbles of all of them would be many times the words.
        for start in range(0, math.prod(batch), _WARPS):
            flat = np.arange(start, min(start + _WARPS, math.prod(batch)))
            chunk = words[flat] if len(batch) == 1 else words[np.unravel_index(flat, batch)] if batch else words[None]
            nibbles = layout.packing.split(chunk)
            bad = outside(nibbles, codes) & here
            if not bad.any():
                continue
            first, lane, number = np.argwhere(bad)[0].tolist()
            warp = [int(x) for x in np.unravel_index(start + first, batch)] if batch else []
            _, row, group = (int(place[lane, number]) for place in layout.places)
            nibble = nibbles[first, lane, number]
            raise MetadataError(
                f"{self.record}: metadata nibble {number} of lane {lane} is {nibble:#x}, indices {said(nibble)}, for "
                f"{named(self.pattern, (*warp, row, group))}; {legal_are(codes, by_rule)}"
            )

    def check_words_on(self, words: Array, selector: int, target: str) -> None:
        """Raise `MetadataError` for undefined metadata, `UnsupportedError` if its effect on a target is unknown."""
        self._check_on(target, partial(self.check_words, words, selector))

    def positions(self, words: Array, selector: int) -> npt.NDArray[np.intp]:
        """Logical column of A of every stored element, `[..., m, k/2]`."""
        nibbles = self.read(words, selector)
        rows = nibbles + np.arange(0, 16 * nibbles.shape[-1], 16)
        return self._rows.take(rows, axis=0).reshape(*nibbles.shape[:-1], self.record.k // 2)

    def halves(self, words: Array, selector: int) -> UInt8:
        """Return the indices of every group, which for tf32 name halves of elements."""
        return indices_of(self.read(words, selector))

    @cached_property
    def _rows(self) -> Array:
        """Columns of a group's stored elements, `[16 * group + nibble, stored element]`."""
        law = self.pattern
        starts = np.arange(0, self.record.k, law.width)[:, None, None]
        return _arrays.frozen((starts + columns(law)).reshape(-1, law.kept))

    # Whole matrices

    def nibbles(self, indices: Array, shape: tuple[int, int] | None = None) -> UInt8:
        """Return indices, `[..., m, groups, 2]`, as nibbles; `MetadataError` unless they are indices of this shape."""
        expected = indices.shape[-3:-1] if shape is None else shape
        if indices.ndim < 3 or indices.shape[-3:] != (*expected, 2) or indices.dtype.kind not in "iu":
            tail = "m, groups" if shape is None else ", ".join(map(str, shape))
            raise MetadataError(
                f"{self.record}: indices are {indices.dtype} {indices.shape}; expected int [..., {tail}, 2]"
            )
        if indices.size and not 0 <= indices.min() <= indices.max() <= 3:
            raise MetadataError(f"{self.record}: indices go from {indices.min()} to {indices.max()}; expected 0 to 3")
        i0, i1 = (indices[..., x].astype(np.uint8) for x in (0, 1))
        return np.asarray(i0 | i1 << 2)

    def check_nibbles(self, nibbles: Array, codes: Codes, by_rule: bool) -> None:
        """Raise `MetadataError` unless all nibbles are among some; `by_rule` if PTX says so."""
        if place := first_outside(nibbles, codes):
            self.check_nibble(int(nibbles[place]), place, codes, by_rule)

    def check_nibble(self, nibble: int, place: tuple[int, ...], codes: Codes, by_rule: bool) -> None:
        """Raise `MetadataError` unless the nibble of one group of a matrix is among some."""
        if nibble not in codes:
            raise MetadataError(
                f"{self.record}: indices {said(nibble)}, nibble {nibble:#x}, of "
                f"{named(self.pattern, place, 'matrix')}; {legal_are(codes, by_rule)}"
            )

    def check_nibbles_on(self, nibbles: Array, target: str) -> None:
        """Raise `MetadataError` for undefined nibbles, `UnsupportedError` for ones of unknown effect on a target."""
        self._check_on(target, partial(self.check_nibbles, nibbles))

    def check_indices_on(self, indices: Array, place: tuple[int, ...], target: str) -> None:
        """Check the two indices of one group of a matrix, as `nibbles` and `check_nibbles_on` do."""
        i0, i1 = map(int, indices)
        if not 0 <= min(i0, i1) <= max(i0, i1) < PLACES:
            at = named(self.pattern, place, "matrix")
            raise MetadataError(f"{self.record}: indices are ({i0}, {i1}) of {at}; expected 0 to {PLACES - 1}")
        self._check_on(target, partial(self.check_nibble, i0 | i1 << 2, place))

    def _check_on(self, target: str, check: Callable[[Codes, bool], None]) -> None:
        """`check` raises `MetadataError` unless all nibbles are among some codes; it is told whether they are PTX's."""
        defined, known = self.legal_codes(), self.legal_codes(target)
        check(defined, True)
        if known == defined:
            return
        try:
            check(known, False)
        except MetadataError as error:
            raise UnsupportedError(
                f"{error}. PTX allows descending indices; for {self.record.a_type} ptxas does not sort them on "
                f"{target}, and their effect on the hardware is not known"
            ) from None

    def compress(self, matrix: Array) -> tuple[Array, UInt8]:
        """Take the stored elements out of a matrix that obeys the pattern, and their nibbles."""
        law = self.pattern
        array, read = self._elements(matrix, law.width)
        batch = (*array.shape[:-1], array.shape[-1] // law.width)
        groups, table = array.reshape(-1, law.width), columns(law)
        stored, nibbles = np.empty((len(groups), law.kept), array.dtype), np.empty(len(groups), np.uint8)
        for piece in pieces(len(groups)):
            values = read(piece)
            occupied = np.any(values != 0, axis=-1)
            over = np.flatnonzero(occupied.sum(axis=-1) > law.units // 2)
            if over.size:
                place = np.unravel_index(piece.start + over[0], batch)
                raise self.broken(values[over[0]], place, self._unit(array, law.width))
            found = nibbles[piece] = nibble_of(law).take(np.packbits(occupied, axis=-1, bitorder="little")[:, 0])
            stored[piece] = np.take_along_axis(groups[piece], table.take(found, axis=0), axis=-1)
        return stored.reshape(*array.shape[:-1], array.shape[-1] // 2), nibbles.reshape(batch)

    def broken(self, values: Array, place: Iterable[int], what: str = "matrix") -> MetadataError:
        """Return the error of a group whose values break the pattern; `place` is that in the batch of `what`."""
        law = self.pattern
        return MetadataError(
            f"{self.record}: A breaks the {law.kept}:{law.width} pattern at {named(law, place, what)}: "
            f"{values.ravel().tolist()}; expected at most {law.units // 2} nonzero "
            f"{'pairs' if law.unit == 2 else 'elements'} (see prune)"
        )

    def prune(self, matrix: Array) -> Array:
        """Zero the elements that `compress` would refuse."""
        law = self.pattern
        array, read = self._elements(matrix, law.width)
        pruned = array.copy()
        groups, zero = pruned.reshape(-1, law.width), np.zeros((), array.dtype)
        for piece in pieces(len(groups)):
            values = read(piece)
            # Infinity makes way for NaN: float64's largest is above every finite value of A's types.
            magnitude = np.nan_to_num(np.abs(values.astype(np.float64)), nan=np.inf, posinf=np.finfo(np.float64).max)
            goes = ~heaviest(magnitude.sum(axis=-1))[..., None] & (values != 0)
            groups[piece][goes.reshape(-1, law.width)] = zero
        return pruned

    def expand(self, stored: Array, indices: Array) -> Array:
        """Put stored elements where their indices say: the inverse of `compress`."""
        law = self.pattern
        array, _ = self._elements(stored, law.kept, stored=True)
        shape = (array.shape[-2], array.shape[-1] // law.kept)
        nibbles = self.nibbles(indices, shape)
        codes = WHOLE if law.units == 2 else DISTINCT
        if place := first_outside(nibbles, codes):
            raise MetadataError(
                f"{self.record}: cannot expand {named(law, place, self._unit(array, law.kept))}: its indices are "
                f"{said(nibbles[place])}; expected {RULE[codes]}"
            )
        batch = self.batch_of(stored=array.shape[:-2], indices=nibbles.shape[:-2])
        given = np.broadcast_to(array, (*batch, *array.shape[-2:])).reshape(-1, law.kept)
        which = np.broadcast_to(nibbles, (*batch, *shape)).reshape(-1)
        matrix, table = np.zeros((len(which), law.width), array.dtype), columns(law)
        for piece in pieces(len(which)):
            np.put_along_axis(matrix[piece], table.take(which[piece], axis=0), given[piece], axis=-1)
        return matrix.reshape(*batch, shape[0], shape[1] * law.width)

    def rows_met(self, nibbles: Array) -> UInt8:
        """Row of B by which every stored element is multiplied in its instruction, `[..., m, k/2]`."""
        flat = nibbles.reshape(-1)
        rows = np.empty((flat.size, self.pattern.kept), np.uint8)
        for piece in pieces(flat.size):
            group = np.arange(piece.start, piece.stop) % max(1, nibbles.shape[-1]) % self.groups
            rows[piece] = self._rows.take(flat[piece] + 16 * group, axis=0)
        return rows.reshape(*nibbles.shape[:-1], nibbles.shape[-1] * self.pattern.kept)

    def _elements(self, array: Array, width: int, *, stored: bool = False) -> tuple[Array, Callable[[slice], Array]]:
        """Check A, or its stored elements, with `width` of them in a group.

        Return it, contiguous, and a function from groups, counted through all of it, to their values `[group, unit,
        element]`.
        """
        fmt, law = self.record.format("A"), self.pattern
        if array.ndim < 2 or array.shape[-1] % width:
            shape = f"[..., m, {'k/2' if stored else 'k'}], the latter a multiple of {width}"
            raise OperandError(f"{self.record}: A is {array.shape}; expected {shape}")
        array = np.ascontiguousarray(array)
        try:
            codes = fmt.codes(array).reshape(-1, width // law.unit, law.unit)
        except OperandError as error:
            raise OperandError(f"{self.record}: A: {error}") from None
        return array, lambda piece: fmt.decode(codes[piece])

    def _unit(self, array: Array, width: int) -> str:
        """Name one matrix of a batch: "warp" if one instruction takes all of it, else "matrix"."""
        return "warp" if array.shape[-2:] == (self.record.m, self.groups * width) else "matrix"

    def batch_of(self, **shapes: tuple[int, ...]) -> tuple[int, ...]:
        """Broadcast leading dimensions; `shapes` are named as in the error."""
        try:
            return np.broadcast_shapes(*shapes.values())
        except ValueError:
            raise OperandError(f"{self.record}: batches do not broadcast: {shapes}") from None
