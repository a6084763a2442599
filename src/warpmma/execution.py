"""Execution: registers in, registers out; matrices in, matrices out.

Data run one way: registers are unpacked to codes by their layouts, the target's recipe computes codes of D, and D's layout packs
them. Work is cut into chunks of warps small enough that a chunk's temporaries stay in cache; the batch dimension comes
last inside a chunk, so that every operation runs along it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import targets
from .arithmetic import compute
from .arithmetic.units import Popcount
from .errors import OperandError, UnsupportedError
from .instructions import Instruction, parse
from .layouts import Layout, Operand
from .registers import LANES
from .targets import Evidence

__all__ = ["evidence", "execute", "load", "mma", "store"]

Array = npt.NDArray[Any]
Engine = Literal["auto", "numpy", "native"]

# Elements of D in one chunk: enough to hide the cost of a NumPy call, few enough to stay in cache.
_CHUNK = 1 << 15


def load(instruction: str | Instruction, operand: Operand, matrix: npt.ArrayLike) -> Array:
    """Distribute a matrix over the registers of a warp.

    Parameters
    ----------
    instruction : str or Instruction
    operand : {"A", "B", "C", "D"}
    matrix : array_like
        `[..., rows, columns]` of the operand's NumPy or ml_dtypes type, or raw unsigned codes. A is m x k (a sparse A its stored
        elements, m x k/2), B k x n, C and D m x n. `m8n8k4` with f16 operands works on four matrices, a dimension
        before the rows.

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
    layout = record.layout(operand)
    array = np.asarray(matrix)
    rank = len(layout.shape)
    if array.ndim < rank or array.shape[array.ndim - rank :] != layout.shape:
        dims = ", ".join(map(str, layout.shape))
        raise OperandError(f"{record}: {operand} is {array.shape}; expected [..., {dims}]")
    try:
        codes = record.format(operand).codes(array)
    except OperandError as error:
        raise OperandError(f"{record}: {operand}: {error}") from None
    flat = codes.reshape(*codes.shape[: codes.ndim - rank], -1)
    return layout.packing.pack(flat[..., layout.flat])


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
    layout = record.layout(operand)
    words = _fragment(record, operand, registers)
    codes = layout.packing.unpack(words.reshape(*words.shape[:-2], -1))
    word, position = layout.slots
    fmt = record.format(operand)
    return fmt.array(codes[..., word, position].astype(fmt.code_dtype))


def execute(
    instruction: str | Instruction,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    *,
    target: str,
    engine: Engine = "auto",
    threads: int | None = None,
) -> Array:
    """Execute an instruction on registers, for a batch of warps.

    Parameters
    ----------
    instruction : str or Instruction
    a, b, c : array_like of uint32 (uint64 for f64)
        Registers `[..., register, 32]`; the leading dimensions broadcast.
    target : str
        Such as "sm_90".
    engine : {"auto", "numpy", "native"}
        "auto" takes the fastest that is there; all give the same bits.
    threads : int, optional
        How many threads share the batch; one by default.

    Returns
    -------
    ndarray of uint32 (uint64 for f64)
        Registers of D, `[..., register, 32]`.

    Raises
    ------
    MnemonicError, TargetError
        No such instruction, or not on this target.
    OperandError
        A wrong register count, lane count or dtype, or batches that do not broadcast.

    Examples
    --------
    >>> i = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
    >>> ones = np.full((1, 32), 0x01010101, np.uint32)
    >>> execute(i, ones, ones, np.zeros((2, 32), np.uint32), target="sm_75")[:, 0]
    array([16, 16], dtype=uint32)
    """
    record = parse(instruction)
    recipe = targets.recipe(record, target)
    _check_engine(engine)
    operands = {name: _fragment(record, name, x) for name, x in (("A", a), ("B", b), ("C", c))}
    try:
        batch = np.broadcast_shapes(*(x.shape[:-2] for x in operands.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {x.shape}" for name, x in operands.items())
        raise OperandError(f"{record}: batches do not broadcast: {shapes}") from None
    plan = _Plan.of(record, isinstance(recipe.unit, Popcount))
    layout = record.layout("D")
    out = np.empty((*batch, layout.registers, LANES), layout.packing.dtype)
    flat_out = out.reshape(-1, layout.registers, LANES)
    read = {name: _reader(x, batch) for name, x in operands.items()}

    def run(chunk: slice) -> None:
        codes = compute(recipe, *(plan.gather[name](read[name](chunk)) for name in "ABC"))
        flat_out[chunk] = plan.scatter(codes)

    _for_each(run, _chunks(len(flat_out), layout.flat.size), threads)
    return out


def mma(
    instruction: str | Instruction,
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike | None = None,
    *,
    target: str,
    engine: Engine = "auto",
    threads: int | None = None,
) -> Array:
    """Multiply matrices as one instruction does: `load`, `execute` and `store` in one.

    Parameters
    ----------
    instruction : str or Instruction
    a, b, c : array_like
        Matrices as `load` takes them; the leading dimensions broadcast. Without `c`, C is +0.
    target, engine, threads
        As for `execute`.

    Returns
    -------
    ndarray
        D, `[..., m, n]`, of D's type.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> A, B = np.full((16, 16), 0.1, np.float16), np.full((16, 8), 3, np.float16)
    >>> mma(i, A, B, target="sm_90")[0, 0]
    np.float32(4.798828)
    """
    record = parse(instruction)
    if c is None:
        c = np.zeros(record.layout("C").shape, record.format("C").code_dtype)
    d = execute(
        record, load(record, "A", a), load(record, "B", b), load(record, "C", c),
        target=target, engine=engine, threads=threads,
    )  # fmt: skip
    return store(record, "D", d)


def evidence(instruction: str | Instruction, *, target: str) -> Evidence:
    """Say how we know what an instruction computes on a target.

    Parameters
    ----------
    instruction : str or Instruction
    target : str

    Returns
    -------
    Evidence
        Its `kind` is "measured", "published" or "derived".

    Raises
    ------
    MnemonicError, TargetError
        No such instruction, or not on this target.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> print(evidence(i, target="sm_90"))
    measured: this project; on H200, driver 580.159, CUDA 13.0; 3,670,016 outputs, 0 differences
    >>> evidence(i, target="sm_121").kind
    'derived'
    """
    return targets.evidence(parse(instruction), target)


class _Plan:
    """How an instruction's registers become arrays of codes for the units, and the other way round.

    A comes out as `[k, (matrix,) m, 1, warp]`, B as `[k, (matrix,) 1, n, warp]`, C and D as `[(matrix,) m, n, warp]`.
    """

    def __init__(self, instruction: Instruction, words: bool) -> None:
        shapes = {name: instruction.layout(name) for name in ("A", "B", "C", "D")}
        if words:  # single bits are combined a register at a time
            shapes |= {name: shapes[name].words() for name in ("A", "B")}
        dtype = {name: instruction.format(name).code_dtype for name in ("A", "B", "C")}
        self.gather = {
            "A": _gather(shapes["A"], dtype["A"], lambda x: np.moveaxis(x, -1, 0)[..., None]),
            "B": _gather(shapes["B"], dtype["B"], lambda x: np.moveaxis(x, -2, 0)[..., None, :]),
            "C": _gather(shapes["C"], dtype["C"], lambda x: x),
        }
        self._d = shapes["D"]

    @staticmethod
    @lru_cache(maxsize=None)
    def of(instruction: Instruction, words: bool) -> _Plan:
        return _Plan(instruction, words)

    def scatter(self, codes: Array) -> Array:
        """Pack codes of D into registers `[warp, register, lane]`."""
        packing = self._d.packing
        flat = codes.reshape(-1, codes.shape[-1]).astype(packing.dtype, copy=False)
        registers = flat.take(self._d.flat[..., 0], axis=0)  # position 0 begins at bit 0
        for position in range(1, packing.per_register):
            registers |= flat.take(self._d.flat[..., position], axis=0) << packing.shifts[position]
        return np.moveaxis(registers, -1, 0)


def _gather(layout: Layout, dtype: np.dtype[Any], arrange: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a function from registers `[warp, register, lane]` to codes, arranged, with the warps last."""
    packing = layout.packing
    word, position = (arrange(x) for x in layout.slots)
    shift = packing.shifts[position][..., None]
    whole = packing.per_register == 1
    mask = packing.dtype.type(packing.mask)

    def gather(registers: Array) -> Array:
        words = np.ascontiguousarray(registers.reshape(len(registers), -1).T).take(word, axis=0)
        return words if whole else ((words >> shift) & mask).astype(dtype)

    return gather


def _fragment(instruction: Instruction, operand: Operand | str, registers: npt.ArrayLike) -> Array:
    """Check a fragment's dtype and shape."""
    layout = instruction.layout(operand)  # type: ignore[arg-type]
    array = np.asarray(registers)
    expected = layout.packing.dtype
    if array.dtype != expected:
        raise OperandError(
            f"{instruction}: registers of {operand} are {array.dtype}; expected {expected}"
            + (f" (use .view(np.{expected}))" if array.dtype.itemsize == expected.itemsize else "")
        )
    if array.ndim < 2 or array.shape[-2:] != (layout.registers, LANES):
        raise OperandError(
            f"{instruction}: registers of {operand} are {array.shape}; expected [..., {layout.registers}, {LANES}]"
        )
    return array


def _check_engine(engine: str) -> None:
    if engine == "native":
        raise UnsupportedError("the native engine is not built; use engine='auto' or 'numpy'")
    if engine not in ("auto", "numpy"):
        raise OperandError(f"unknown engine {engine!r}; expected 'auto', 'numpy' or 'native'")


def _reader(operand: Array, batch: tuple[int, ...]) -> Callable[[slice], Array]:
    """Return a function from a range of warps, counted through the batch, to their registers; it copies no more than those."""
    full = np.broadcast_to(operand, (*batch, *operand.shape[-2:]))
    if len(batch) <= 1:
        one = full if batch else full[None]
        return lambda chunk: one[chunk]

    def read(chunk: slice) -> Array:
        return full[np.unravel_index(np.arange(chunk.start, chunk.stop), batch)]

    return read


def _chunks(warps: int, outputs: int) -> Iterator[slice]:
    size = max(1, _CHUNK // outputs)
    return (slice(start, min(start + size, warps)) for start in range(0, warps, size))


def _for_each(run: Callable[[slice], None], chunks: Iterator[slice], threads: int | None) -> None:
    """Run every chunk, on several threads if asked. Chunks are independent, so their order cannot be seen."""
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise OperandError(f"threads is {threads!r}; expected a positive integer or None")
    if threads is None or threads == 1:
        for chunk in chunks:
            run(chunk)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, chunks))
