"""Whole matrix products, as kernels make them: chains of one instruction along k.

Every element of D is what a plain tiled kernel computes: its accumulator begins with C and takes one instruction after
the other, k ascending; rows, columns and k beyond the matrices are +0. How a kernel cuts its tiles changes no bit. What
does is said by arguments: which instruction, how k is split, when sums are promoted to f32, what D is rounded to.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from itertools import product as pairs
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from . import _engines, targets
from ._arrays import as_array, is_integer
from ._chain import Chain, boundaries
from ._engines import Engine
from ._operands import broadcasts, codes_of_c, operands
from ._tasks import Progress, for_each
from .errors import MnemonicError, OperandError, ScaleError
from .formats import FORMATS, FloatFormat, Format
from .instructions import Instruction, check_known, check_target, instructions
from .layouts import Operand
from .scaling import Quantized
from .sparsity import pattern
from .warpgroup import AnyInstruction, parse_any

__all__ = ["default_instruction", "matmul"]

Array = npt.NDArray[Any]

# Rows and columns of one task: enough that packing operands costs little, few enough to share and to stop soon.
_TILE = {"native": 512, "numpy": 128}
# Of k at a time, so that an interrupt need not wait for all of a long one.
_SLAB = 1 << 14


def matmul(
    a: npt.ArrayLike | Quantized, b: npt.ArrayLike | Quantized, c: npt.ArrayLike | None = None, *,
    instruction: str | AnyInstruction | None = None, target: str, out: Array | None = None,
    split_k: int | Sequence[int] = 1, promote_every: int | None = None, epilogue: str | None = None,
    indices: npt.ArrayLike | None = None, scale_a: npt.ArrayLike | None = None, scale_b: npt.ArrayLike | None = None,
    engine: Engine = "auto", threads: int | None = None, progress: Progress | None = None,
) -> Any:  # fmt: skip
    """Multiply matrices as a tiled kernel does.

    Parameters
    ----------
    a, b : array_like, Quantized or dask.array.Array
        `[..., m, k]` and `[..., k, n]`, of the operands' NumPy or ml_dtypes types, or raw unsigned codes (then name the
        instruction); the leading dimensions broadcast. For a sparse instruction A is dense and obeys the pattern, as
        `sparsity.prune` makes it, or holds the stored elements `[..., m, k/2]` with `indices`. Dask arrays have two
        dimensions; then D is one too.
    c : array_like, optional
        `[..., m, n]`, of C's type; it broadcasts. +0 by default.
    instruction : str, Instruction or WarpgroupInstruction, optional
        A mnemonic of `mma` or `wgmma`. By default the dense (or, with `indices`, sparse) `mma` with the largest k that
        the target has for the types of `a`, `b` and `c`; D is f32, s32 or f64 if there is no `c`. float32 then means
        tf32, whose instructions ignore the low 13 bits; uint8 is no type by default, for it may hold raw codes.
    target : str
    out : ndarray, optional
        Where to write D.
    split_k : int or sequence of int
        k is cut into so many slices, each of the same number of instructions (the last may have fewer), or into slices
        of these lengths. Each is a chain from +0, and their results are added to C one after the other, in f32, to
        nearest even. Of a single slice the chain begins with C.
    promote_every : int, optional
        Within a slice the chain is cut every so much of k, from its beginning; partial sums are added likewise, outside
        the matrix unit, as fp8 kernels do every 128.
    epilogue : str, optional
        A format such as "bf16", to which D is rounded once, to nearest even; by PTX `cvt`, what is too large becomes
        infinity or for narrow formats the largest value.
    indices : array_like of int, optional
        Of stored elements of a sparse A, `[..., m, groups of k, 2]`; see `sparsity.compress`.
    scale_a, scale_b : array_like, optional
        Block scales, `[..., m, S]` and `[..., S, n]`, one for every block of k; see `mma`. A `Quantized` operand brings
        its own. Tensor scales multiply D: their product rounded to f32, the product with D rounded to f32, both to
        nearest even. Then there is no `c`.
    engine, threads
        As for `execute`.
    progress : callable, optional
        Called as `progress(done, total)` after each of the tiles that make up D.

    Returns
    -------
    ndarray or dask.array.Array
        D, `[..., m, n]`, of D's type or that of `epilogue`; `out`, if it was given.

    Raises
    ------
    WarpmmaError
        No such instruction or target, operands that do not go together or with it, and as `mma` does.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A, B = (rng.standard_normal(shape).astype(np.float16) for shape in ((100, 300), (300, 50)))
    >>> matmul(A, B, target="sm_90").shape
    (100, 50)
    >>> i = "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"
    >>> bool((matmul(A, B, target="sm_90") == matmul(A, B, instruction=i, target="sm_90a")).all())
    True
    >>> matmul(A, B, target="sm_90", split_k=2, epilogue="bf16").dtype
    dtype(bfloat16)
    """
    a, scale_a, alpha_a = _quantized("A", a, scale_a)
    b, scale_b, alpha_b = _quantized("B", b, scale_b)
    if any(_is_dask(x) for x in (a, b, c)):
        from . import _dask  # the extra of that name

        if not all(x is None for x in (out, indices, alpha_a, alpha_b, threads, progress)):
            raise OperandError(
                "dask arrays go without out, tensor scales, indices (give A dense), threads and progress"
            )
        return _dask.matmul(
            a, b, c, instruction=instruction, target=target, split_k=split_k,
            promote_every=promote_every, epilogue=epilogue, scale_a=scale_a, scale_b=scale_b, engine=engine,
        )  # fmt: skip
    a, b = (as_array(cast(npt.ArrayLike, x), name) for x, name in ((a, "A"), (b, "B")))
    c = None if c is None else as_array(c, "C")
    record = choose(a, b, c, instruction, target, sparse=indices is not None)
    check_shapes(record, a.shape, b.shape, stored=indices is not None)
    chain = plan(
        record, target, engine, k=b.shape[-2], split_k=split_k, promote_every=promote_every, epilogue=epilogue
    )  # fmt: skip
    batch, given = operands(record, target, a, b, indices, scale_a, scale_b)
    m, n = a.shape[-2], b.shape[-1]
    shape, flat = (*batch, m, n), (math.prod(batch), m, n)
    alpha = _alpha(record, c, batch, alpha_a, alpha_b)
    of_c = np.broadcast_to(codes_of_c(record, c, shape), shape).reshape(flat)
    result = output_format(record, epilogue)
    wanted = None if out is None else _checked_out(out, shape, result).reshape(flat)
    d = wanted
    if d is None or any(x is not None and np.may_share_memory(d, x) for x in (of_c, *given)):
        d = np.empty(flat, result.code_dtype)  # a tile that is done must be no operand of another

    def run(task: tuple[slice, slice, slice]) -> None:
        some, rows, columns = task
        mine = given.of(some)
        state = chain.start(of_c[some, rows, columns])
        for start in range(0, chain.k, slab):
            part = mine.part(rows, columns, start, min(start + slab, chain.k), chain)
            state = chain.advance(state, part, start)
        scale = None if alpha is None else alpha[some, None, None]
        d[some, rows, columns] = finish(record, chain.finish(state), epilogue, scale)

    size, slab = _TILE[chain.engine], _SLAB // record.k * record.k
    each = max(1, size * size // max(1, m * n))  # of small matrices, many to a task
    tasks = list(pairs(_cuts(len(d), each), _cuts(m, size), _cuts(n, size)))
    for_each(run, tasks, threads, progress)
    if wanted is None:
        return result.array(d.reshape(shape))
    if d is not wanted:
        wanted[...] = d
    return out


def default_instruction(
    a: str, b: str, c: str | None, target: str, *, sparse: bool = False
) -> Instruction:  # fmt: skip
    """Return the `mma` with the largest k that a target has for PTX types of A, B and C.

    Examples
    --------
    >>> str(default_instruction("bf16", "bf16", None, "sm_80"))
    'mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32'
    """
    check_known(target)
    usual = (c,) if c else ("f32", "s32", "f64")
    found = [
        i for i in instructions(target)
        if (i.a_type, i.b_type, i.sparse) == (a, b, sparse) and i.c_type == i.d_type and i.c_type in usual
        and (i.a_layout, i.b_layout) == ("row", "col") and not (i.block_scale or i.satfinite or i.rounding or i.bit_op)
    ]  # fmt: skip
    if not found:
        types = sorted({f"{i.a_type} x {i.b_type}" for i in instructions(target) if i.sparse == sparse})
        raise MnemonicError(
            f"{target} has no {'sparse ' * sparse}mma for {a} x {b}{f' with C of {c}' if c else ''} that is chosen by "
            f"default: name the instruction. It has {', '.join(types)}"
        )
    return max(found, key=lambda i: i.k)


def choose(
    a: Array, b: Array, c: Array | None, instruction: str | AnyInstruction | None, target: str, *, sparse: bool
) -> AnyInstruction:
    """Return the instruction that was asked for, or the default for arrays of these dtypes."""
    if instruction is not None:
        record = parse_any(instruction)
        check_target(record, target)
        return record
    a_type, b_type = (_type(name, x, _MULTIPLICANDS) for name, x in (("A", a), ("B", b)))
    return default_instruction(
        a_type, b_type, None if c is None else _type("C", c, _ACCUMULATORS), target, sparse=sparse
    )


# Not u8: what is uint8 may be raw codes of any narrow type.
_MULTIPLICANDS = ("f16", "bf16", "tf32", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "f64", "s8", "s4", "u4")
_ACCUMULATORS = ("f32", "f16", "s32", "f64")


def _type(name: str, array: Array, types: tuple[str, ...]) -> str:
    """PTX type of an array's dtype."""
    for found in types:
        if FORMATS[found].dtype == array.dtype:
            return found
    known = ", ".join(f"{FORMATS[t].dtype} ({t})" for t in types)
    raise OperandError(f"{name} is {array.dtype}: which type is meant? Name the instruction, or give one of {known}")


def plan(
    record: AnyInstruction, target: str, engine: str, *, k: int, split_k: int | Sequence[int],
    promote_every: int | None, epilogue: str | None,
) -> Chain:  # fmt: skip
    """Check what is to be done along k, and put it down."""
    resolved = _engines.resolve(engine)
    several = isinstance(split_k, Sequence) and not isinstance(split_k, str)
    lengths: list[Any] = list(cast(Sequence[int], split_k)) if several else [split_k]
    if not lengths or not all(is_integer(x) and x > 0 for x in lengths):
        raise OperandError(f"split_k is {split_k!r}; expected a positive number of slices, or their lengths")
    lengths = [int(x) for x in lengths]  # NumPy's narrow integers would overflow
    if several and (sum(lengths) != k or any(x % record.k for x in lengths[:-1])):
        raise OperandError(
            f"{record}: slices of k are {tuple(lengths)}; expected {k} together, multiples of {record.k} but the last"
        )
    if promote_every is not None and (
        not is_integer(promote_every) or promote_every < 1 or promote_every % record.k
    ):  # fmt: skip
        raise OperandError(f"{record}: promote_every is {promote_every!r}; expected a multiple of {record.k}")
    slices = boundaries(k, record.k, lengths if several else lengths[0])
    chain = Chain(
        instruction=record, recipe=targets.recipe(record, target), engine=resolved, k=k, slices=slices,
        promote=int(promote_every or 0),
    )  # fmt: skip
    if (lengths != [1] or promote_every) and record.d_type != "f32":
        raise OperandError(
            f"{record}: partial sums are added in f32; expected a D of f32 for split_k and promote_every"
        )
    if record.c_type != record.d_type and (not 0 < k <= record.k or chain.partial):
        raise OperandError(
            f"{record}: D is {record.d_type} and cannot be the next instruction's C; expected one instruction, k from "
            f"1 to {record.k} and no partial sums"
        )
    output_format(record, epilogue)
    return chain


def output_format(record: AnyInstruction, epilogue: str | None) -> Format:
    """Format of the result."""
    if epilogue is None:
        return record.format("D")
    floats = [name for name, fmt in FORMATS.items() if isinstance(fmt, FloatFormat) and fmt.signed and name != "f64"]
    if not isinstance(epilogue, str) or epilogue not in floats:
        raise OperandError(f"epilogue is {epilogue!r}; expected one of {', '.join(floats)}")
    if record.d_type not in ("f32", "f16"):
        raise OperandError(f"{record}: D is {record.d_type}, which no epilogue rounds; expected f32 or f16")
    return FORMATS[epilogue]


def finish(record: AnyInstruction, codes: Array, epilogue: str | None, alpha: Array | None = None) -> Array:
    """Scale and round codes of D."""
    if epilogue is None and alpha is None:
        return codes
    fmt = cast(FloatFormat, record.format("D"))
    if alpha is not None:  # 48 bits, exact in float64, and then rounded once
        with np.errstate(invalid="ignore"):  # infinity times zero
            codes = fmt.encode(fmt.decode(codes) * alpha, "rn")
    return codes if epilogue is None else cast(FloatFormat, FORMATS[epilogue]).encode(fmt.decode(codes), "rn")


def _quantized(operand: Operand, x: Any, scales: Any) -> tuple[Any, Any, Any]:
    """Take a `Quantized` apart: elements, scales, tensor scale."""
    if not isinstance(x, Quantized):
        return x, scales, None
    if scales is not None:
        raise ScaleError(f"{operand} is Quantized and brings its scales; expected no others")
    return x.elements, x.scales, x.tensor_scale


def check_shapes(record: AnyInstruction, a: tuple[int, ...], b: tuple[int, ...], *, stored: bool = False) -> None:
    """Raise `OperandError` unless A, or the stored elements of a sparse A, go together with B."""
    if stored and not record.sparse:
        raise OperandError(f"{record} is dense: it takes no indices")
    if len(a) < 2 or len(b) < 2 or a[-1] * (2 if stored else 1) != b[-2]:
        columns = "k/2" if stored else "k"
        raise OperandError(f"{record}: A is {a} and B is {b}; expected [..., m, {columns}] and [..., k, n]")
    width = pattern(record).width if isinstance(record, Instruction) and record.sparse else 1
    if b[-2] % width:
        raise OperandError(f"{record}: k is {b[-2]}; expected a multiple of {width}, the group of the sparsity pattern")


def _checked_out(out: Array, shape: tuple[int, ...], fmt: Format) -> Array:
    """View `out` as codes."""
    good = isinstance(out, np.ndarray) and out.shape == shape and out.dtype in (fmt.dtype, fmt.code_dtype)
    if not good or not out.flags.writeable or not out.flags.c_contiguous:
        came = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        flaw = ""
        if good:
            flaw = " that is not contiguous" if out.flags.writeable else " that is read-only"
        raise OperandError(f"out is {came}{flaw}; expected a writable C-contiguous {fmt.dtype} array {shape}")
    return np.asarray(out).view(fmt.code_dtype)


def _cuts(length: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


def _alpha(record: AnyInstruction, c: Any, batch: tuple[int, ...], *tensor_scales: Any) -> Array | None:
    """Product of tensor scales for every matrix of the batch, rounded to f32, as float64."""
    given = [as_array(x, f"{record}: tensor scale", ScaleError) for x in tensor_scales if x is not None]
    if not given:
        return None
    for x in given:
        if x.dtype != np.float32 or not broadcasts(x.shape, batch):
            raise ScaleError(
                f"{record}: tensor scale is {x.dtype} {x.shape}; expected float32 that broadcasts to the batch {batch}"
            )
    if c is not None:
        raise OperandError(f"{record}: tensor scales multiply all of D; add C to the result, or leave it out")
    fmt = cast(FloatFormat, FORMATS["f32"])
    product = np.ones(())
    for x in given:  # two of 24 bits: exact in float64
        with np.errstate(invalid="ignore"):  # infinity times zero
            product = product * fmt.decode(fmt.codes(x))
    return np.broadcast_to(fmt.decode(fmt.encode(product, "rn")), batch).reshape(-1)


def _is_dask(x: Any) -> bool:
    """Whether this is a Dask array; nobody has one who has not imported Dask."""
    module = sys.modules.get("dask.array")
    return module is not None and isinstance(x, module.Array)
