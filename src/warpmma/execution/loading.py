"""Matrices in, matrices out: registers are loaded from matrices, one instruction runs, and D is stored."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._arguments import check_choice
from .._arrays import Array, as_array
from ..arithmetic import Engine
from ..errors import OperandError, ScaleError
from ..isa import Instruction, check_target, parse
from ..layouts import OPERANDS, Operand
from ..registers import LANES
from ..scaling import block_scales
from ..sparsity import sparse_a
from .batches import in_chunks
from .refusals import Ids, Undefined, check_fragment, check_words
from .running import Execution

_FIRST_IDS: Ids = {"A": {"byte_id": 0, "thread_id": 0}, "B": {"byte_id": 0, "thread_id": 0}}


def load(instruction: str | Instruction, operand: Operand, matrix: npt.ArrayLike) -> Array:
    """Distribute a matrix over the registers of a warp.

    Parameters
    ----------
    instruction : str or Instruction
    operand : {"A", "B", "C", "D"}
    matrix : array_like
        `[..., rows, columns]` of the operand's NumPy or ml_dtypes type, or raw unsigned codes. A is m x k (a sparse A
        its stored elements, m x k/2), B k x n, C and D m x n. `m8n8k4` with f16 operands works on four matrices, a
        dimension before the rows.

    Returns
    -------
    ndarray of uint32 (uint64 for f64)
        `[..., register, 32]`.

    Raises
    ------
    OperandError
        A wrong shape or dtype, or values that do not fit the type.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> A = np.zeros((16, 16), np.float16)
    >>> A[3, 5] = 1
    >>> registers = load(i, "A", A)
    >>> [(int(r), int(lane), hex(registers[r, lane])) for r, lane in np.argwhere(registers)]
    [(0, 14, '0x3c000000')]
    """
    record = parse(instruction)
    check_choice("operand", operand, OPERANDS)
    return _load(record, operand, as_array(matrix, f"{record}: {operand}"))


def _load(record: Instruction, operand: Operand, array: Array) -> Array:
    layout = record.layout(operand)
    rank = len(layout.shape)
    if array.ndim < rank or array.shape[array.ndim - rank :] != layout.shape:
        dims = ", ".join(map(str, layout.shape))
        raise OperandError(f"{record}: {operand} is {array.shape}; expected [..., {dims}]")
    try:
        codes = record.format(operand).codes(array)
    except OperandError as error:
        raise OperandError(f"{record}: {operand}: {error}") from None
    registers = in_chunks(
        lambda part: layout.packing.join(part.take(layout.flat, axis=1)), codes.reshape(-1, layout.flat.size),
        (layout.registers, LANES), layout.packing.dtype,
    )  # fmt: skip
    return registers.reshape(*codes.shape[: codes.ndim - rank], layout.registers, LANES)


def store(instruction: str | Instruction, operand: Operand, registers: npt.ArrayLike) -> Array:
    """Collect a matrix from the registers of a warp: the inverse of `load`.

    Parameters
    ----------
    instruction : str or Instruction
    operand : {"A", "B", "C", "D"}
    registers : array_like of uint32 (uint64 for f64)
        `[..., register, 32]`.

    Returns
    -------
    ndarray
        `[..., rows, columns]` of the operand's type.

    Raises
    ------
    OperandError
        A wrong register count, lane count or dtype.
    """
    record = parse(instruction)
    return _store(record, operand, check_fragment(record, operand, registers))


def _store(record: Instruction, operand: Operand, words: Array) -> Array:
    layout, fmt = record.layout(operand), record.format(operand)
    codes = in_chunks(
        lambda part: layout.packing.split(part).reshape(len(part), -1).take(layout.order, axis=1),
        words.reshape(-1, layout.registers * LANES), layout.shape, fmt.code_dtype,
    )  # fmt: skip
    return fmt.array(codes.reshape(*words.shape[:-2], *layout.shape))


def mma(
    instruction: str | Instruction, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike | None = None, *,
    target: str, metadata: npt.ArrayLike | None = None, selector: int = 0, undefined: Undefined = "error",
    scale_a: npt.ArrayLike | None = None, scale_b: npt.ArrayLike | None = None,
    engine: Engine = "auto", threads: int | None = None,
) -> Array:  # fmt: skip
    """Multiply matrices as one instruction does: `load`, `execute` and `store` in one.

    Parameters
    ----------
    instruction : str or Instruction
    a, b, c : array_like
        Matrices as `load` takes them; the leading dimensions broadcast. Without `c`, C is +0. A sparse A may be dense,
        `[..., m, k]`, if it obeys the pattern; then there is no metadata to give.
    target : str
    metadata, selector, undefined
        As for `execute`; metadata goes with the stored elements of a sparse A, `[..., m, k/2]`.
    scale_a, scale_b : array_like
        Of a block-scaled instruction: the scales as matrices, `[..., m, S]` and `[..., S, n]`, codes or ml_dtypes
        arrays.
    engine, threads
        As for `execute`.

    Returns
    -------
    ndarray
        D, `[..., m, n]`, of D's type.

    Raises
    ------
    WarpmmaError
        As `load`, `execute` and `sparsity.compress` do.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> A, B = np.full((16, 16), 0.1, np.float16), np.full((16, 8), 3, np.float16)
    >>> mma(i, A, B, target="sm_90")[0, 0]
    np.float32(4.798828)
    """
    record = parse(instruction)
    call = mma_call(record, a, b, c, target, metadata, selector, undefined, scale_a, scale_b, engine)
    return _store(record, "D", call.run(threads))


def mma_call(
    record: Instruction, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike | None, target: str,
    metadata: npt.ArrayLike | None = None, selector: int = 0, undefined: Undefined = "error",
    scale_a: npt.ArrayLike | None = None, scale_b: npt.ArrayLike | None = None, engine: Engine = "auto",
) -> Execution:  # fmt: skip
    """Check what `mma` takes, without computing."""
    check_target(record, target)
    a = as_array(a, f"{record}: A")
    if record.sparse and metadata is None and a.shape[-2:] == (record.m, record.k):
        sparse = sparse_a(record)
        a, nibbles = sparse.compress(a)
        sparse.check_selector(selector)
        metadata = sparse.pack(nibbles, selector)
    layout = record.layout("C")
    operands = {"A": _load(record, "A", a), "B": _load(record, "B", as_array(b, f"{record}: B"))}
    if c is None:
        operands["C"] = np.zeros((layout.registers, LANES), layout.packing.dtype)
    else:
        operands["C"] = _load(record, "C", as_array(c, f"{record}: C"))
    words = check_words(record, metadata, _packed(record, "A", scale_a), _packed(record, "B", scale_b))
    return Execution.of(record, operands | words, target, selector, undefined, _FIRST_IDS, engine)


def _packed(record: Instruction, operand: Operand, scales: npt.ArrayLike | None) -> Array | None:
    """Pack scales, if given, for the first byte-ids and thread-ids."""
    if scales is None:
        return None
    return block_scales(record).pack(operand, as_array(scales, f"{record}: scales of {operand}", ScaleError))
