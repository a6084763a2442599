"""Matrices in, matrices out: registers are loaded from matrices, one instruction runs, and D is stored."""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from .._arguments import check_choice, is_integer
from .._arrays import Array, as_array
from ..arithmetic import Engine
from ..errors import OperandError, ScaleError, shown
from ..gpu import is_on_gpu
from ..isa import Instruction, MatrixInstruction, WarpgroupInstruction, check_target, parse_any
from ..layouts import OPERANDS, SWIZZLES, Major, Operand
from ..registers import LANES
from ..scaling import block_scales
from ..sparsity import sparse_a
from .batches import in_chunks
from .on_gpu import mma_on_gpu
from .refusals import Ids, Undefined, check_fragment, check_words, refuse_others
from .running import Execution
from .shared_operands import SharedOperand, bits_apart, in_words, placed
from .warpgroups import WarpgroupExecution, WarpgroupOptions, metadata_words, read_operand, registers_of

_FIRST_IDS: Ids = {"A": {"byte_id": 0, "thread_id": 0}, "B": {"byte_id": 0, "thread_id": 0}}


def load(
    instruction: str | Instruction | WarpgroupInstruction, operand: Operand, matrix: npt.ArrayLike, *,
    swizzle: int | None = None, major: Major | None = None,
) -> Any:  # fmt: skip
    """Distribute a matrix over the registers of a warp or warpgroup, or put it into shared memory for a `wgmma`.

    Parameters
    ----------
    instruction : str, Instruction or WarpgroupInstruction
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
    record = parse_any(instruction)
    check_choice("operand", operand, OPERANDS)
    array = as_array(matrix, f"{record}: {operand}")
    if isinstance(record, WarpgroupInstruction):
        shared = operand == "B" or (operand == "A" and not (swizzle is None and major is None))
        if shared:
            return _placed(record, operand, array, 128 if swizzle is None else swizzle, "K" if major is None else major)
    refuse_others(record, **{f"swizzle of {operand}": (swizzle, None), f"major of {operand}": (major, None)})
    return _load(record, operand, array)


def _placed(record: WarpgroupInstruction, operand: Operand, array: Array, swizzle: int, major: Major) -> SharedOperand:
    """Put A or B of a `wgmma` into shared memory."""
    if not is_integer(swizzle) or swizzle not in SWIZZLES:
        raise OperandError(f"{record}: swizzle is {shown(swizzle)}; expected one of {', '.join(map(str, SWIZZLES))}")
    check_choice("major", major, ("K", "MN"))
    codes = _codes(record, operand, array)
    return placed(record, operand, codes if operand == "A" else codes.swapaxes(-1, -2), int(swizzle), major == "MN")


def _codes(record: MatrixInstruction, operand: Operand, array: Array) -> Array:
    """Check the shape of a matrix; return its codes."""
    if operand == "B" and isinstance(record, WarpgroupInstruction):
        shape: tuple[int, ...] = (record.k, record.n)  # no registers, no layout
    else:
        shape = record.layout(operand).shape
    if array.ndim < len(shape) or array.shape[array.ndim - len(shape) :] != shape:
        raise OperandError(f"{record}: {operand} is {array.shape}; expected [..., {', '.join(map(str, shape))}]")
    try:
        return record.format(operand).codes(array)
    except OperandError as error:
        raise OperandError(f"{record}: {operand}: {error}") from None


def _load(record: MatrixInstruction, operand: Operand, array: Array) -> Array:
    layout, codes = record.layout(operand), _codes(record, operand, array)
    rank = len(layout.shape)
    registers = in_chunks(
        lambda part: layout.packing.join(part.take(layout.flat, axis=1)), codes.reshape(-1, layout.flat.size),
        (layout.registers, layout.lanes), layout.packing.dtype,
    )  # fmt: skip
    return registers.reshape(*codes.shape[: codes.ndim - rank], layout.registers, layout.lanes)


def store(
    instruction: str | Instruction | WarpgroupInstruction, operand: Operand, registers: npt.ArrayLike | SharedOperand
) -> Array:
    """Collect a matrix from the registers of a warp or warpgroup, or from shared memory: the inverse of `load`.

    Parameters
    ----------
    instruction : str, Instruction or WarpgroupInstruction
    operand : {"A", "B", "C", "D"}
    registers : array_like of uint32 (uint64 for f64), or SharedOperand
        `[..., register, 32]`; of `wgmma` `[..., register, 128]` or `[..., 4, register, 32]`, and of its A and B what a
        descriptor reads.

    Returns
    -------
    ndarray
        `[..., rows, columns]` of the operand's type.

    Raises
    ------
    OperandError
        A wrong register count, lane count or dtype; a descriptor that reads outside of the memory that is given.
    """
    record = parse_any(instruction)
    if not isinstance(record, WarpgroupInstruction):
        return _store(record, operand, check_fragment(record, operand, registers))  # type: ignore[arg-type]
    check_choice("operand", operand, OPERANDS)
    if operand == "B" or isinstance(registers, SharedOperand):
        if operand not in "AB":
            raise OperandError(f"{record}: {operand} is in registers; expected those, got a SharedOperand")
        codes = read_operand(record, operand, registers)
        if record.format(operand).bits == 1:  # words along k
            codes = bits_apart(codes) if operand == "A" else bits_apart(codes.swapaxes(-1, -2)).swapaxes(-1, -2)
        return record.format(operand).array(codes)
    return _store(record, operand, registers_of(record, operand, registers))


def _store(record: MatrixInstruction, operand: Operand, words: Array) -> Array:
    layout, fmt = record.layout(operand), record.format(operand)
    codes = in_chunks(
        lambda part: layout.packing.split(part).reshape(len(part), -1).take(layout.order, axis=1),
        words.reshape(-1, layout.registers * layout.lanes), layout.shape, fmt.code_dtype,
    )  # fmt: skip
    return fmt.array(codes.reshape(*words.shape[:-2], *layout.shape))


def mma(
    instruction: str | Instruction | WarpgroupInstruction, a: npt.ArrayLike, b: npt.ArrayLike,
    c: npt.ArrayLike | None = None, *, target: str,
    metadata: npt.ArrayLike | None = None, selector: int = 0, undefined: Undefined = "error",
    scale_a: npt.ArrayLike | None = None, scale_b: npt.ArrayLike | None = None,
    scale_d: bool = True, imm_a: int = 1, imm_b: int = 1,
    engine: Engine | Literal["cuda"] = "auto", threads: int | None = None,
) -> Array:  # fmt: skip
    """Multiply matrices as one instruction does: `load`, `execute` and `store` in one.

    Parameters
    ----------
    instruction : str, Instruction or WarpgroupInstruction
    a, b, c : array_like, or arrays on an NVIDIA GPU
        Matrices as `load` takes them; the leading dimensions broadcast. Without `c`, C is +0. A sparse A may be dense,
        `[..., m, k]`, if it obeys the pattern; then there is no metadata to give.
        On a GPU (tensors of PyTorch, arrays of CuPy, what exports DLPack) all lie there, and a sparse A is dense; the
        products are made on A's stream. Only the check of the pattern of a sparse A waits for it.
    target : str
    metadata, selector, undefined
        As for `execute`; metadata goes with the stored elements of a sparse A, `[..., m, k/2]`.
    scale_a, scale_b : array_like
        Of a block-scaled instruction: the scales as matrices, `[..., m, S]` and `[..., S, n]`, codes or ml_dtypes
        arrays.
    scale_d, imm_a, imm_b
        Of a `wgmma`, as for `execute`; where the matrices lie changes no bit of its result.
    engine, threads
        As for `execute`; of arrays on a GPU "auto" or "cuda".

    Returns
    -------
    ndarray, or array of A's library
        D, `[..., m, n]`, of D's type; on a GPU of its codes' where the library lacks it.

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
    record = parse_any(instruction)
    if isinstance(record, WarpgroupInstruction):
        refuse_others(record, scale_a=(scale_a, None), scale_b=(scale_b, None))
    else:
        refuse_others(record, scale_d=(scale_d, True), imm_a=(imm_a, 1), imm_b=(imm_b, 1))
    options = WarpgroupOptions(scale_d=scale_d, imm_a=imm_a, imm_b=imm_b, selector=selector, undefined=undefined)
    if is_on_gpu(a):
        scales: Any = {"scale_a": scale_a, "scale_b": scale_b}
        on_gpu = mma_on_gpu(record, a, b, c, target, options, metadata=metadata, **scales, engine=engine)
        return cast(Array, on_gpu)
    if isinstance(engine, str) and engine == "cuda":
        raise OperandError(f"{record}: engine='cuda' of mma takes arrays on a GPU; matmul copies the host's there")
    if isinstance(record, WarpgroupInstruction):
        return record.format("D").array(_warpgroup(record, a, b, c, target, options, metadata, engine).run(threads))
    assert isinstance(record, Instruction)
    call = mma_call(record, a, b, c, target, metadata, selector, undefined, scale_a, scale_b, engine)
    return _store(record, "D", call.run(threads))


def _warpgroup(
    record: WarpgroupInstruction, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike | None, target: str,
    options: WarpgroupOptions, metadata: npt.ArrayLike | None, engine: Engine,
) -> WarpgroupExecution:  # fmt: skip
    """Check what `mma` takes of a `wgmma`, without computing."""
    check_target(record, target)
    options.check(record)
    of_a, metadata = _stored_elements(record, as_array(a, f"{record}: A"), metadata, options.selector)
    codes = {"A": _codes(record, "A", of_a), "B": _codes(record, "B", as_array(b, f"{record}: B"))}
    if record.a_type == "b1":  # words of 32 along k
        codes["A"] = in_words(codes["A"])
        codes["B"] = in_words(codes["B"].swapaxes(-1, -2)).swapaxes(-1, -2)
    of_c = None if c is None else _codes(record, "C", as_array(c, f"{record}: C"))
    return WarpgroupExecution(
        instruction=record, target=target, options=options, a=codes["A"], b=codes["B"],
        c=of_c if options.scale_d or of_c is None else np.zeros_like(of_c), metadata=metadata_words(record, metadata),
        engine=engine,
    )  # fmt: skip


def _stored_elements(
    record: MatrixInstruction, a: Array, metadata: npt.ArrayLike | None, selector: int
) -> tuple[Array, npt.ArrayLike | None]:
    """Compress a dense A of a sparse instruction, if no metadata are given."""
    if not record.sparse or metadata is not None or a.shape[-2:] != (record.m, record.k):
        return a, metadata
    sparse = sparse_a(record)
    a, nibbles = sparse.compress(a)
    sparse.check_selector(selector)
    return a, sparse.pack(nibbles, selector)


def mma_call(
    record: Instruction, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike | None, target: str,
    metadata: npt.ArrayLike | None = None, selector: int = 0, undefined: Undefined = "error",
    scale_a: npt.ArrayLike | None = None, scale_b: npt.ArrayLike | None = None, engine: Engine = "auto",
) -> Execution:  # fmt: skip
    """Check what `mma` takes, without computing."""
    check_target(record, target)
    a, metadata = _stored_elements(record, as_array(a, f"{record}: A"), metadata, selector)
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
