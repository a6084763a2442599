"""Operands of `wgmma` in shared memory: bytes and a descriptor, from and to codes.

1. An element's bytes are where the descriptor puts them; the row of A is m, that of B is n, and k runs along the
   columns. A sparse A has its stored elements.
2. K-major unless transposed; only 16-bit elements are transposed.
3. `memory` has the bytes of shared memory from the address `at`. A byte that is not in it is an error: nothing wraps.
4. `placed` puts a matrix at address 0, densely: rows of 16 bytes times the width of the swizzle, eight of them
   together, further groups of eight rows behind, and then what does not fit into a row. So a kernel's tiles lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from .._arguments import is_integer
from .._arrays import Array, as_array, frozen
from .._records import Record
from ..errors import OperandError, shown
from ..isa import MatrixInstruction
from ..layouts import MatrixDescriptor, Operand

_WINDOW = 1 << 18


@dataclass(frozen=True, eq=False)
class SharedOperand(Record):
    """A or B of a `wgmma` in shared memory.

    Attributes
    ----------
    memory : ndarray of uint8
        Bytes of shared memory, `[..., size]`, from the address `at` on; the leading dimensions are the batch.
    descriptor : int, MatrixDescriptor, or ndarray of uint64
        The 64 bits, or an array of them, `[...]`, which broadcasts with the batch: one for each warpgroup.
    transposed : bool
        PTX's `imm-trans`: whether m (of B, n) runs along the bytes of a row, not k. For types of 16 bits alone.
    at : int
        Address of the first byte in shared memory.

    Raises
    ------
    OperandError
        Memory that is not uint8 `[..., size]`, a descriptor that has not 64 bits, an address outside of shared memory.

    Examples
    --------
    >>> from warpmma.layouts import MatrixDescriptor
    >>> shared = SharedOperand(np.zeros((3, 2048), np.uint8), MatrixDescriptor(start=0, leading=128, stride=256))
    >>> hex(shared.words), shared.batch
    ('0x1000080000', (3,))
    """

    memory: npt.ArrayLike
    descriptor: int | MatrixDescriptor | npt.ArrayLike
    transposed: bool = False
    at: int = 0

    def __post_init__(self) -> None:
        memory = as_array(self.memory, "memory of a shared operand")
        if memory.dtype != np.uint8 or memory.ndim < 1:
            raise OperandError(
                f"memory of a shared operand is {memory.dtype} {memory.shape}; expected uint8 [..., size]"
            )
        object.__setattr__(self, "memory", memory)
        if not isinstance(self.transposed, bool | np.bool_):
            raise OperandError(f"transposed is {shown(self.transposed)}; expected a bool")
        if not is_integer(self.at) or not 0 <= self.at < _WINDOW:
            raise OperandError(f"at is {shown(self.at)}; expected an address in shared memory, 0 to {_WINDOW - 1}")
        _ = self.words

    @property
    def words(self) -> Array:
        """The descriptors, uint64 `[...]`."""
        given = self.descriptor
        if isinstance(given, MatrixDescriptor):
            return np.asarray(given.word, np.uint64)
        if is_integer(given):
            if not 0 <= given < 1 << 64:
                raise OperandError(f"descriptor is {shown(given)}; expected 64 bits, an integer from 0 to 2**64 - 1")
            return np.asarray(int(given), np.uint64)
        array = as_array(given, "descriptor")
        if array.dtype != np.uint64:
            raise OperandError(
                f"descriptor is {array.dtype} {array.shape}; expected uint64, an integer or a MatrixDescriptor"
            )
        return array

    @property
    def batch(self) -> tuple[int, ...]:
        """Leading dimensions of memory and descriptors together."""
        try:
            return np.broadcast_shapes(np.shape(self.memory)[:-1], self.words.shape)
        except ValueError:
            raise OperandError(
                f"memory {np.shape(self.memory)} and descriptors {self.words.shape} do not broadcast"
            ) from None


def shape_of(record: MatrixInstruction, operand: Operand) -> tuple[int, int]:
    """Rows and columns (rule 1)."""
    k = record.k // 2 if record.sparse and operand == "A" else record.k
    return (record.m if operand == "A" else record.n, k)


def check_shared(record: MatrixInstruction, operand: Operand, given: SharedOperand) -> None:
    """Rule 2."""
    bits = record.format(operand).bits
    if given.transposed and bits != 16:
        raise OperandError(
            f"{record}: {operand} is transposed; PTX transposes types of 16 bits, not {record.type(operand)}"
        )


@lru_cache(maxsize=256)
def _addresses(word: int, rows: int, columns: int, bits: int, transposed: bool) -> Array:
    found = MatrixDescriptor.from_word(word).addresses(rows, columns, bits=bits, major="MN" if transposed else "K")
    return frozen(np.asarray(found, np.int64))


def _offsets(
    record: MatrixInstruction, operand: Operand, given: SharedOperand
) -> Iterator[tuple[int, Array]]:  # fmt: skip
    """Give each different descriptor with the offsets of its elements in memory, `[rows, columns]` (rule 3)."""
    bits, size, (rows, columns) = record.format(operand).bits, np.shape(given.memory)[-1], shape_of(record, operand)
    for word in np.unique(given.words).tolist():
        addresses = _addresses(word, rows, columns, bits, bool(given.transposed))
        offsets = addresses - given.at
        outside = (offsets < 0) | (offsets > size - max(1, bits // 8))
        if outside.any():
            row, k = np.argwhere(outside)[0].tolist()
            element = f"A[{row}, {k}]" if operand == "A" else f"B[{k}, {row}]"
            raise OperandError(
                f"{record}: the descriptor {word:#018x} reads {element} at address {addresses[row, k]:#x} of shared "
                f"memory, and {int(outside.sum())} elements of {outside.size} outside of what is given; expected "
                f"addresses {given.at:#x} to {given.at + size - 1:#x}"
            )
        yield word, offsets


def codes_of(record: MatrixInstruction, operand: Operand, given: SharedOperand) -> Array:
    """Read codes `[..., rows, columns]` from memory; of single bits words of 32, `[..., rows, columns / 32]`."""
    fmt, batch, (rows, columns) = record.format(operand), given.batch, shape_of(record, operand)
    memory, words = np.asarray(given.memory), np.broadcast_to(given.words, batch)
    size, single = max(1, fmt.bits // 8), fmt.bits == 1
    apart = columns // 32 if single else columns
    dtype = np.dtype(np.uint32) if single else fmt.code_dtype
    out = np.empty((*batch, rows, apart), dtype)
    for word, offsets in _offsets(record, operand, given):
        # Of single bits eight elements have one byte, and four bytes one word.
        places = offsets[:, ::8].reshape(rows, apart, 4) if single else offsets[..., None] + np.arange(size)
        here = words == word
        full = np.broadcast_to(memory, (*batch, memory.shape[-1]))
        flat = memory if memory.ndim == 1 else full[here]
        found = np.ascontiguousarray(flat.take(places, axis=-1)).view(dtype.newbyteorder("<"))[..., 0].astype(dtype)
        if memory.ndim == 1 and not batch:
            return np.asarray(found)
        out[here] = found
    return out


def placed(record: MatrixInstruction, operand: Operand, codes: Array, swizzle: int, transposed: bool) -> SharedOperand:
    """Put codes `[..., rows, columns]` into memory (rule 4)."""
    bits, (rows, columns) = record.format(operand).bits, shape_of(record, operand)
    width = max(1, swizzle // 16)
    if not transposed:
        group, chunks = 128 * width, columns * bits // 128
        whole = rows // 8 * group
        leading, stride, size = whole, group, whole * -(-chunks // width)
    else:
        along, chunks = columns // 8, rows // 8
        whole = 128 * width * along
        leading, stride, size = whole, 128 * width, whole * -(-chunks // width)
        if not swizzle:
            leading, stride, size = 128, 128 * along, 128 * along * chunks
    descriptor = MatrixDescriptor(start=0, leading=leading, stride=stride, swizzle=swizzle)
    given = SharedOperand(np.zeros((*codes.shape[:-2], size), np.uint8), descriptor, transposed)
    check_shared(record, operand, given)
    memory = np.asarray(given.memory)
    ((_, offsets),) = _offsets(record, operand, given)
    if bits == 1:
        memory[..., offsets[:, ::8]] = np.packbits(codes.astype(np.uint8), axis=-1, bitorder="little")
        return given
    octets = np.ascontiguousarray(codes.astype(codes.dtype.newbyteorder("<"))).view(np.uint8)
    memory[..., offsets[..., None] + np.arange(bits // 8)] = octets.reshape(*codes.shape, bits // 8)
    return given


def bits_apart(words: Array) -> Array:
    """Take words of single bits apart: codes, the lowest bit first."""
    octets = np.ascontiguousarray(words.astype("<u4")).view(np.uint8)
    return np.unpackbits(octets, axis=-1, bitorder="little")


def in_words(bits: Array) -> Array:
    """Pack codes of single bits into words of 32: the inverse of `bits_apart`."""
    octets = np.packbits(bits.astype(np.uint8), axis=-1, bitorder="little")
    return np.ascontiguousarray(octets).view("<u4").astype(np.uint32)
