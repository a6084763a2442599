"""Execution: registers in, registers out; matrices in, matrices out.

Data run one way: registers are unpacked to codes by their layouts, the target's recipe computes codes of D, and D's
layout packs them. The native engine does all of it for a batch of warps. For NumPy, work is cut into chunks of warps
small enough that a chunk's temporaries stay in cache; the batch dimension comes last inside a chunk, so that every
operation runs along it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _engines, targets
from ._arrays import as_array, is_integer
from ._engines import Engine
from ._evidence import Evidence
from ._evidence import evidence as find_evidence
from ._plan import Plan
from ._tasks import for_each
from .arithmetic import compute, native
from .arithmetic.pairs import rows
from .arithmetic.units import Popcount, Recipe
from .errors import MetadataError, OperandError, UnsupportedError
from .instructions import Instruction, check_target, parse
from .layouts import Operand
from .registers import LANES
from .scaling import pack_scales, scale_place, unpack_scales
from .sparsity import SORTED_CODES, check_metadata, compress, halves, metadata_place, pack_metadata, positions
from .warpgroup import AnyInstruction, parse_any

__all__ = ["evidence", "execute", "load", "mma", "store"]

Array = npt.NDArray[Any]
Undefined = Literal["error", "hardware"]

# Elements of D in one chunk: enough to hide the cost of a NumPy call, few enough to stay in cache.
_CHUNK = 1 << 15
# The native engine keeps to its cache by itself: few enough to share among threads, and to stop soon if interrupted.
_NATIVE_CHUNK = 1 << 18


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
    layout = record.layout(operand)
    array = as_array(matrix, f"{record}: {operand}")
    rank = len(layout.shape)
    if array.ndim < rank or array.shape[array.ndim - rank :] != layout.shape:
        dims = ", ".join(map(str, layout.shape))
        raise OperandError(f"{record}: {operand} is {array.shape}; expected [..., {dims}]")
    try:
        codes = record.format(operand).codes(array)
    except OperandError as error:
        raise OperandError(f"{record}: {operand}: {error}") from None
    batch = codes.shape[: codes.ndim - rank]
    flat = codes.reshape(-1, math.prod(layout.shape))
    out = np.empty((len(flat), layout.registers, LANES), layout.packing.dtype)
    for chunk in _chunks(len(flat), layout.flat.size, _CHUNK):
        out[chunk] = layout.packing.join(flat[chunk][:, layout.flat])
    return out.reshape(*batch, layout.registers, LANES)


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
    word, position = layout.slots
    fmt = record.format(operand)
    flat = words.reshape(-1, layout.registers * LANES)
    out = np.empty((len(flat), *layout.shape), fmt.code_dtype)
    for chunk in _chunks(len(flat), layout.flat.size, _CHUNK):
        out[chunk] = layout.packing.unpack(flat[chunk])[:, word, position]
    return fmt.array(out.reshape(*words.shape[:-2], *layout.shape))


def execute(
    instruction: str | Instruction, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, *, target: str,
    metadata: npt.ArrayLike | None = None, selector: int = 0, undefined: Undefined = "error",
    scale_a: npt.ArrayLike | None = None, scale_b: npt.ArrayLike | None = None,
    byte_id_a: int = 0, thread_id_a: int = 0, byte_id_b: int = 0, thread_id_b: int = 0,
    engine: Engine = "auto", threads: int | None = None,
) -> Array:  # fmt: skip
    """Execute an instruction on registers, for a batch of warps.

    Parameters
    ----------
    instruction : str or Instruction
    a, b, c : array_like of uint32 (uint64 for f64)
        Registers `[..., register, 32]`; the leading dimensions broadcast.
    target : str
        Such as "sm_90".
    metadata : array_like of uint32
        Of a sparse instruction: `[..., 32]`.
    selector : int
        Sparsity selector: which lanes hold the metadata.
    undefined : {"error", "hardware"}
        What to do about metadata that PTX leaves undefined: raise, or compute what an H200 does (on sm_90 alone).
    scale_a, scale_b : array_like of uint32
        Of a block-scaled instruction: `[..., 32]`.
    byte_id_a, thread_id_a, byte_id_b, thread_id_b : int
        Which bytes of which lanes hold the scales.
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
        A wrong register count, lane count or dtype, batches that do not broadcast, an operand too many or too few.
    MetadataError, ScaleError
        Undefined metadata or selector; undefined byte-id or thread-id.

    Examples
    --------
    >>> i = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
    >>> ones = np.full((1, 32), 0x01010101, np.uint32)
    >>> execute(i, ones, ones, np.zeros((2, 32), np.uint32), target="sm_75")[:, 0]
    array([16, 16], dtype=uint32)
    """
    record = parse(instruction)
    check_target(record, target)
    recipe = targets.recipe(record, target)
    resolved = _engines.resolve(engine)
    operands = {name: _fragment(record, name, x) for name, x in (("A", a), ("B", b), ("C", c))}
    operands |= _words(record, metadata, scale_a, scale_b)
    ids: dict[Literal["A", "B"], dict[str, int]] = {
        "A": {"byte_id": byte_id_a, "thread_id": thread_id_a},
        "B": {"byte_id": byte_id_b, "thread_id": thread_id_b},
    }
    _check_choices(record, selector, undefined, ids)
    batch = _batch(record, operands)
    mixed = False
    if record.sparse:
        mixed = check_sparse(record, operands["metadata"], selector, undefined, target)
    plan = Plan.of(record, isinstance(recipe.unit, Popcount))
    read = {name: _reader(x, 2 if name in "ABC" else 1, batch) for name, x in operands.items()}

    layout = record.layout("D")
    out = np.empty((*batch, layout.registers, LANES), layout.packing.dtype)
    flat_out = out.reshape(-1, layout.registers, LANES)

    def run_native(chunk: slice) -> None:
        given = {name: read[name](chunk) for name in operands}
        extra: dict[str, Array] = {}
        if record.block_scale:
            extra["scale_a"] = unpack_scales(given["scale_a"], record, "A", **ids["A"])
            extra["scale_b"] = unpack_scales(given["scale_b"], record, "B", **ids["B"])
        if record.sparse:
            extra["chosen"] = positions(given["metadata"], record, selector=selector).astype(np.uint8)
        registers = _native_registers(record, recipe)
        registers.run(given["A"], given["B"], given["C"], flat_out[chunk], **extra)

    def run(chunk: slice) -> None:
        given = {name: read[name](chunk) for name in operands}
        codes = {name: plan.gather[name](given[name]) for name in "ABC"}
        extra: dict[str, Array] = {}
        if record.block_scale:
            of_a = unpack_scales(given["scale_a"], record, "A", **ids["A"])
            of_b = unpack_scales(given["scale_b"], record, "B", **ids["B"])
            extra = {"scale_a": _rows(of_a), "scale_b": np.moveaxis(of_b, 0, -1)[:, None]}
        if record.sparse:
            # Rows of B are chosen for every warp and row of A, all columns together: so n comes last.
            codes, extra = ({name: _columns_last(x) for name, x in named.items()} for named in (codes, extra))
            if mixed:
                codes["B"] = _mixed_halves(codes["B"], halves(given["metadata"], record, selector=selector))
                if resolved == "native":
                    flat_out[chunk] = plan.scatter(_columns_last(_native_rows(recipe, **codes)))
                    return
            else:
                extra["chosen"] = _choice(positions(given["metadata"], record, selector=selector))
        d = compute(recipe, codes["A"], codes["B"], codes["C"], **extra)
        flat_out[chunk] = plan.scatter(_columns_last(d) if record.sparse else d)

    whole = resolved == "native" and not mixed  # the native engine reads and writes registers itself
    chunks = _chunks(len(flat_out), layout.flat.size, _NATIVE_CHUNK if whole else _CHUNK)
    for_each(run_native if whole else run, chunks, threads)
    return out


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
    if c is None:
        c = np.zeros(record.layout("C").shape, record.format("C").code_dtype)
    a = as_array(a, f"{record}: A")
    if record.sparse and metadata is None and a.shape[-2:] == (record.m, record.k):
        a, indices = compress(a, record)
        metadata = pack_metadata(indices, record, selector=selector)
    d = execute(
        record, load(record, "A", a), load(record, "B", b), load(record, "C", c), target=target,
        metadata=metadata, selector=selector, undefined=undefined,
        scale_a=None if scale_a is None else pack_scales(scale_a, record, "A"),
        scale_b=None if scale_b is None else pack_scales(scale_b, record, "B"), engine=engine, threads=threads,
    )  # fmt: skip
    return store(record, "D", d)


def evidence(instruction: str | AnyInstruction, *, target: str) -> Evidence:
    """Say how we know what an instruction computes on a target.

    Parameters
    ----------
    instruction : str, Instruction or WarpgroupInstruction
        Of `wgmma` too.
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
    measured: this project; on H200, driver 580.159, CUDA 13.0; 3,670,016 outputs, 0 differences; as HMMA
    >>> evidence(i, target="sm_121").kind
    'derived'
    """
    record = parse_any(instruction)
    check_target(record, target)
    return find_evidence(record, target)


def _fragment(instruction: Instruction, operand: Operand | str, registers: npt.ArrayLike) -> Array:
    """Check a fragment's dtype and shape."""
    layout = instruction.layout(operand)  # type: ignore[arg-type]
    array = as_array(registers, f"{instruction}: registers of {operand}")
    expected = layout.packing.dtype
    if array.dtype != expected:
        same = array.dtype.kind in "if" and array.dtype.itemsize == expected.itemsize
        raise OperandError(
            f"{instruction}: registers of {operand} are {array.dtype}; expected {expected}"
            + (f" (use .view(np.{expected}))" if same else "")
        )
    if array.ndim < 2 or array.shape[-2:] != (layout.registers, LANES):
        raise OperandError(
            f"{instruction}: registers of {operand} are {array.shape}; expected [..., {layout.registers}, {LANES}]"
        )
    return array


def _words(
    instruction: Instruction, metadata: npt.ArrayLike | None, scale_a: npt.ArrayLike | None,
    scale_b: npt.ArrayLike | None,
) -> dict[str, Array]:  # fmt: skip
    """Check that the operands of one word a lane are those that the instruction takes."""
    needed = {"metadata": instruction.sparse, "scale_a": instruction.block_scale, "scale_b": instruction.block_scale}
    words: dict[str, Array] = {}
    for (name, needs), given in zip(needed.items(), (metadata, scale_a, scale_b), strict=True):
        if needs != (given is not None):
            raise OperandError(f"{instruction} {'needs' if needs else 'takes no'} {name}")
        if given is not None:
            array = as_array(given, f"{instruction}: {name}")
            if array.dtype != np.uint32 or array.shape[-1:] != (LANES,):
                raise OperandError(
                    f"{instruction}: {name} is {array.dtype} {array.shape}; expected uint32 [..., {LANES}]"
                )
            words[name] = array
    return words


def _check_choices(
    instruction: Instruction, selector: int, undefined: str, ids: dict[Literal["A", "B"], dict[str, int]]
) -> None:  # fmt: skip
    """Refuse a selector, byte-id or thread-id that the instruction has no use for, or does not have."""
    if not isinstance(undefined, str) or undefined not in ("error", "hardware"):
        raise OperandError(f"undefined is {undefined!r}; expected 'error' or 'hardware'")
    if undefined == "hardware" and not instruction.sparse:
        raise OperandError(f"{instruction} is dense: it has no metadata, undefined or not; leave undefined='error'")
    if instruction.sparse:
        metadata_place(instruction, 0, 0, selector=selector)  # which checks the selector, as the next the ids
    elif not is_integer(selector) or selector:
        raise OperandError(f"{instruction} is dense: it takes no selector; got {selector!r}")
    for operand, named in ids.items():
        if instruction.block_scale:
            scale_place(instruction, operand, 0, 0, **named)
        elif not all(is_integer(x) and x == 0 for x in named.values()):
            raise OperandError(f"{instruction} is not block-scaled: it takes no byte-id and thread-id; got {named}")


def _batch(instruction: Instruction, operands: dict[str, Array]) -> tuple[int, ...]:
    """Broadcast shape of the leading dimensions."""
    try:
        return np.broadcast_shapes(*(x.shape[:-2] if name in "ABC" else x.shape[:-1] for name, x in operands.items()))
    except (ValueError, RuntimeError):  # the latter for more dimensions than NumPy broadcasts
        shapes = ", ".join(f"{name} {x.shape}" for name, x in operands.items())
        raise OperandError(f"{instruction}: batches do not broadcast: {shapes}") from None


def check_sparse(
    instruction: Instruction, metadata: Array, selector: int, undefined: str, target: str
) -> bool:  # fmt: skip
    """Refuse metadata that is undefined, or whose effect is not known; or say whether tf32 halves may be mixed."""
    if undefined == "hardware":
        if target not in targets.UNDEFINED_MEASURED:
            raise UnsupportedError(
                f"{instruction}: what {target} makes of undefined metadata is not known; undefined='hardware' is for "
                f"{', '.join(targets.UNDEFINED_MEASURED)}, measured on an H200"
            )
        return instruction.a_type == "tf32"
    check_metadata(metadata, instruction, selector=selector)
    if targets.reversed_unknown(instruction, target):
        try:
            check_metadata(metadata, instruction, selector=selector, legal=SORTED_CODES)
        except MetadataError as error:
            raise UnsupportedError(
                f"{error}. PTX allows descending indices, but for {instruction.a_type} ptxas does not sort them on "
                f"{target}, and what the hardware makes of them is not known"
            ) from None
    return False


def _rows(of_a: Array) -> Array:
    """Something for every row of A, `[warp, m, x]`, arranged as A is: `[x, m, 1, warp]`."""
    return of_a.transpose(2, 1, 0)[:, :, None]


def _columns_last(array: Array) -> Array:
    """Swap the last two dimensions, columns and warps."""
    return np.ascontiguousarray(array.swapaxes(-1, -2))


def _choice(rows_of_b: Array) -> Array:
    """Rows of B for every stored element, `[warp, m, x]`, arranged as `compute` takes them: `[x, m, warp, 1]`.

    There are at most 256 rows, and bytes are transposed several times as fast as indices.
    """
    return np.ascontiguousarray(rows_of_b.astype(np.uint8).transpose(2, 1, 0)).astype(np.intp)[..., None]


def _mixed_halves(b: Array, indices: Array) -> Array:
    """Rows of a tf32 B for every row of A, each half of an element chosen by an index of its own.

    So an H200 reads any nibble: the group's two elements are four halves, 0 and 1 the low and high half of the
    first; i0 names the half that becomes the low one, i1 the high one.
    """
    first = 4 * np.arange(indices.shape[2])  # of the halves of each group
    parts = np.stack([b & np.uint32(0xFFFF), b >> np.uint32(16)], axis=1).reshape(-1, *b.shape[1:])
    low, high = (rows(parts, _choice(first + indices[..., i])) for i in (0, 1))
    mixed: Array = low | high << np.uint32(16)
    return mixed


@cache
def _native_registers(instruction: Instruction, recipe: Recipe) -> native.Registers:
    layouts = {name: instruction.layout(name) for name in ("A", "B", "C", "D")}
    if isinstance(recipe.unit, Popcount):
        layouts |= {name: layouts[name].words() for name in ("A", "B")}
    return native.Registers(recipe, layouts, sparse=instruction.sparse, scales=instruction.scales_per_row)


def _native_rows(recipe: Recipe, A: Array, B: Array, C: Array) -> Array:
    """Compute D where every row of A has a B of its own: A `[k, m, warp, 1]`, B `[k, m, warp, n]`, C `[m, warp, n]`."""
    k, n = len(A), B.shape[-1]
    rows_of_a, rows_of_b = A.reshape(k, -1).T[:, None], B.reshape(k, -1, n).swapaxes(0, 1)
    return native.product(recipe, rows_of_a, rows_of_b, C.reshape(-1, 1, n), k=k).reshape(C.shape)


def _reader(operand: Array, own: int, batch: tuple[int, ...]) -> Callable[[slice], Array]:
    """Return a function from a range of warps, counted through the batch, to their part of an operand.

    `own` is the number of dimensions that one warp's part has. No more than that part is copied.
    """
    full = np.broadcast_to(operand, (*batch, *operand.shape[operand.ndim - own :]))
    if len(batch) <= 1:
        one = full if batch else full[None]
        return lambda chunk: one[chunk]

    def read(chunk: slice) -> Array:
        return full[np.unravel_index(np.arange(chunk.start, chunk.stop), batch)]

    return read


def _chunks(warps: int, outputs: int, most: int) -> list[slice]:
    size = max(1, most // outputs)
    return [slice(start, min(start + size, warps)) for start in range(0, warps, size)]
