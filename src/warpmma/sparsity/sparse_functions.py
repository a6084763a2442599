"""The public functions: each reads its mnemonic and checks its arrays, then asks `SparseA`."""

from __future__ import annotations

from collections.abc import Iterable

from .._lazy_numpy import Array, UInt8, _arrays, np, npt
from ..errors import MetadataError
from ..isa import MatrixInstruction, check_target, parse_any
from ..layouts import Layout
from ..registers import LANES
from .patterns import WHOLE, Codes, Pattern, codes_asked, indices_of
from .sparse_operand import SparseA, sparse_a


def _asked(instruction: str | MatrixInstruction, selector: int = 0) -> SparseA:
    """Read a sparse instruction, which must have the selector."""
    found = sparse_a(parse_any(instruction))
    found.check_selector(selector)
    return found


def _words(a: SparseA, words: npt.ArrayLike) -> Array:
    array = _arrays.as_array(words, f"{a.record}: metadata", MetadataError)
    lanes = a.layout.lanes
    if array.dtype == np.uint32 and lanes > LANES and array.shape[-2:] == (lanes // LANES, LANES):
        return array.reshape(*array.shape[:-2], lanes)  # a warp at a time
    if array.shape[-1:] != (lanes,) or array.dtype != np.uint32:
        raise MetadataError(f"{a.record}: metadata is {array.dtype} {array.shape}; expected uint32 [..., {lanes}]")
    return array


def _indices(a: SparseA, indices: npt.ArrayLike) -> Array:
    return _arrays.as_array(indices, f"{a.record}: indices", MetadataError)


def _matrix(a: SparseA, matrix: npt.ArrayLike) -> Array:
    return _arrays.as_array(matrix, f"{a.record}: A")


def pattern(instruction: str | MatrixInstruction) -> Pattern:
    """Sparsity pattern of an instruction's A.

    Examples
    --------
    >>> pattern("mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32")
    Pattern(width=8)
    """
    return sparse_a(parse_any(instruction)).pattern


def legal_codes(instruction: str | MatrixInstruction, target: str | None = None) -> Codes:
    """Nibbles that PTX defines for an instruction; an H200 reads all sixteen by the one rule.

    Two for tf32; the six with i0 < i1 for `mma.sp::ordered_metadata` and for 8-bit floating point, where the
    manual lists no others for `mma.sp`; the twelve with i0 other than i1 for `mma.sp` of the other types. With a
    target, those of them whose effect on it is known: for bf16, of sm_100 and later, the six with i0 < i1.

    Raises
    ------
    MnemonicError, MetadataError, TargetError
        No such instruction, a dense one, or one that the target lacks.

    Examples
    --------
    >>> i = "mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32"
    >>> len(legal_codes(i)), len(legal_codes(i, "sm_90")), len(legal_codes(i, "sm_100"))
    (12, 12, 6)
    """
    record = parse_any(instruction)
    if target is not None:
        check_target(record, target)
    return sparse_a(record).legal_codes(target)


# Metadata registers


def selectors(instruction: str | MatrixInstruction) -> tuple[int, ...]:
    """Legal sparsity selectors of an instruction: each chooses lanes of every quad that hold metadata."""
    return tuple(range(sparse_a(parse_any(instruction)).layout.matrices))


def metadata_place(instruction: str | MatrixInstruction, row: int, group: int, *, selector: int = 0) -> tuple[int, int]:
    """Lane that holds the nibble of one group of a row, and the nibble's lowest bit.

    Examples
    --------
    >>> metadata_place("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", 9, 6, selector=1)
    (7, 24)
    """
    a = _asked(instruction, selector)
    for name, value, count in zip(("row", "group"), (row, group), a.layout.shape[-2:], strict=True):
        a.check_index(name, value, count)
    found = a.layout.cell(row, group, selector)
    return found.lane, found.low


def metadata_layout(instruction: str | MatrixInstruction) -> Layout:
    """Layout of the metadata register: elements are nibbles, columns the groups of a row, matrices the selectors.

    Examples
    --------
    >>> layout = metadata_layout("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    >>> layout.shape, layout.locate(9, 6, 1)
    ((2, 16, 8), (7, 0, 24))
    """
    return sparse_a(parse_any(instruction)).layout


def pack_metadata(
    indices: npt.ArrayLike,
    instruction: str | MatrixInstruction,
    *,
    selector: int = 0,
    into: npt.ArrayLike | None = None,
) -> npt.NDArray[np.uint32]:
    """Pack indices, whether legal or not, into metadata registers, uint32 `[..., 32]`, of `wgmma` `[..., 128]`.

    Lanes that the selector leaves out are 0, or as in the registers `into`; the batches broadcast. Indices of a whole
    matrix, of rows and k that tiles of the instruction fill, become those of its tiles by
    `indices.reshape(m // 16, 16, -1, groups, 2).swapaxes(1, 2)`, groups being those of one tile.

    Examples
    --------
    >>> i = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> words = pack_metadata(np.tile([1, 3], (16, 4, 1)), i, selector=2)
    >>> [hex(word) for word in words[:4]], unpack_metadata(words, i, selector=2)[0].tolist()
    (['0x0', '0x0', '0xdddddddd', '0x0'], [[1, 3], [1, 3], [1, 3], [1, 3]])
    """
    a = _asked(instruction, selector)
    nibbles = a.nibbles(_indices(a, indices), (a.record.m, a.groups))
    return a.pack(nibbles, selector, None if into is None else _words(a, into))


def unpack_metadata(words: npt.ArrayLike, instruction: str | MatrixInstruction, *, selector: int = 0) -> UInt8:
    """Unpack metadata registers into indices, uint8 `[..., m, groups, 2]`, whether legal or not."""
    a = _asked(instruction, selector)
    return indices_of(a.read(_words(a, words), selector))


def check_metadata(
    words: npt.ArrayLike, instruction: str | MatrixInstruction, *, selector: int = 0, legal: Iterable[int] | None = None
) -> None:
    """Raise `MetadataError` unless every nibble in the selected lanes is legal; no other lanes are looked at.

    Legal are `legal_codes(instruction)`, or the nibbles in `legal`, 0 to 15. The error names the first that is not by
    warp, lane and number, and states the legal ones and the rule.
    """
    a = sparse_a(parse_any(instruction))
    codes = a.legal_codes() if legal is None else codes_asked(legal)
    a.check_selector(selector)
    a.check_words(_words(a, words), selector, codes, legal is None)


def positions(words: npt.ArrayLike, instruction: str | MatrixInstruction, *, selector: int = 0) -> npt.NDArray[np.intp]:
    """Logical column of A of every stored element, intp `[..., m, k/2]`.

    All sixteen nibbles act, as measured: equal indices put two elements, or pairs, at one place. Only tf32
    nibbles other than 0x4 and 0xE, which mix halves of elements (see `halves`), are a `MetadataError`.

    Examples
    --------
    >>> i = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> positions(np.full(32, 0x9E4E_9E4E, np.uint32), i)[0]
    array([ 2,  3,  4,  5, 10, 11, 13, 14])
    """
    a = _asked(instruction, selector)
    array = _words(a, words)
    if a.pattern.units == 2:
        a.check_words(array, selector, WHOLE, True)
    return a.positions(array, selector)


def halves(words: npt.ArrayLike, instruction: str | MatrixInstruction, *, selector: int = 0) -> UInt8:
    """Halves of a tf32 group that become the low and the high half of its stored element.

    uint8 `[..., m, groups, 2]`: 0 and 1 are the low and high half of element 0, 2 and 3 of element 1.
    """
    a = sparse_a(parse_any(instruction))
    if a.pattern.units != 2:
        raise MetadataError(f"{a.record}: an index addresses whole elements; expected tf32")
    a.check_selector(selector)
    return a.halves(_words(a, words), selector)


# Whole matrices


def compress(matrix: npt.ArrayLike, instruction: str | MatrixInstruction) -> tuple[Array, UInt8]:
    """Take the stored elements out of a matrix that obeys the pattern.

    Returns
    -------
    stored : ndarray
        `[..., m, k/2]`, of the dtype of the matrix, bits preserved.
    indices : ndarray of uint8
        `[..., m, groups, 2]`, ascending. Where nonzeros are too few, the lowest free places are stored. Zeros
        are +0, -0, and tf32 codes with bits in their padding only.

    Raises
    ------
    MetadataError
        Names the first group that breaks the pattern.

    Examples
    --------
    >>> A = np.tile(np.float16([0, 5, 0, 6, 0, 0, 7, 0]), (100, 50))
    >>> stored, indices = compress(A, "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    >>> stored.shape, indices.shape
    ((100, 200), (100, 100, 2))
    >>> stored[0, :4], indices[0, :2].tolist()
    (array([5., 6., 0., 7.], dtype=float16), [[1, 3], [0, 2]])
    """
    a = sparse_a(parse_any(instruction))
    stored, nibbles = a.compress(_matrix(a, matrix))
    return stored, indices_of(nibbles)


def prune(matrix: npt.ArrayLike, instruction: str | MatrixInstruction) -> Array:
    """Zero the elements that `compress` would refuse; an accepted matrix comes back unchanged.

    Of each group the largest magnitudes stay, and of equals the one at the lower index: two of four, or one
    of two for tf32. 4-bit types keep two pairs of four, ranked by the sum of a pair's two magnitudes. NaN is
    larger than infinity. Removed elements become +0; zeros stay, -0 too. The dtype stays.

    Examples
    --------
    >>> i = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> prune(np.tile(np.float16([1, -3, 2, -2]), (3, 5)), i)[0, :4]
    array([ 0., -3.,  2.,  0.], dtype=float16)
    """
    a = sparse_a(parse_any(instruction))
    return a.prune(_matrix(a, matrix))


def expand(stored: npt.ArrayLike, indices: npt.ArrayLike, instruction: str | MatrixInstruction) -> Array:
    """Put stored elements where their indices say, +0 elsewhere: the inverse of `compress`.

    Indices come in either order. The result is `[..., m, k]`, of the dtype of `stored`; batches broadcast.
    Equal indices, and for tf32 all but (0, 1) and (2, 3), are a `MetadataError`.
    """
    a = sparse_a(parse_any(instruction))
    return a.expand(_matrix(a, stored), _indices(a, indices))


def check_indices(
    indices: npt.ArrayLike, instruction: str | MatrixInstruction, *, legal: Iterable[int] | None = None
) -> None:
    """Raise `MetadataError` unless the indices of every group are legal: `check_metadata` of whole matrices.

    Legal are `legal_codes(instruction)`, or the nibbles in `legal`, 0 to 15. The error names the first that are not.

    Examples
    --------
    >>> i = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    >>> check_indices(np.tile([1, 3], (100, 50, 1)), i)
    >>> check_indices(np.tile([3, 1], (100, 50, 1)), i)
    Traceback (most recent call last):
        ...
    warpmma.errors.MetadataError: mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32:
    indices (3, 1), nibble 0x7, of row 0, group 0 (columns 0 to 3);
    legal are 0x4, 0x8, 0x9, 0xc, 0xd, 0xe (PTX: i0 < i1)
    """
    a = sparse_a(parse_any(instruction))
    nibbles = a.nibbles(_indices(a, indices))
    a.check_nibbles(nibbles, a.legal_codes() if legal is None else codes_asked(legal), legal is None)


def rows_met(indices: npt.ArrayLike, instruction: str | MatrixInstruction) -> UInt8:
    """Row of B by which every stored element is multiplied in its instruction: uint8 `[..., m, k/2]`.

    It is the column at which `expand` puts the element, counted from the beginning of its instruction's k. Indices
    that name no element of tf32 are a `MetadataError`; others need not be legal.

    Examples
    --------
    >>> rows_met([[[0, 1], [2, 3], [0, 3], [1, 2], [0, 2]]], "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    array([[ 0,  1,  6,  7,  8, 11, 13, 14,  0,  2]], dtype=uint8)
    """
    a = sparse_a(parse_any(instruction))
    nibbles = a.nibbles(_indices(a, indices))
    if a.pattern.units == 2:
        a.check_nibbles(nibbles, WHOLE, True)
    return a.rows_met(nibbles)
