"""Whole matrix products, as kernels make them: chains of one instruction along k.

Every element of D is what a plain tiled kernel computes: its accumulator begins with C and takes one instruction after
the other, k ascending; rows, columns and k beyond the matrices are +0. How a kernel cuts its tiles changes no bit. The
arguments name what does: which instruction, how k is split, when sums are promoted to f32, what D is rounded to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product as pairs
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

import numpy as np
import numpy.typing as npt

from .._arrays import Array, as_array
from .._progress import Watched, for_each
from .._records import Shown
from ..arithmetic import warn_of_numpy
from ..errors import OperandError
from ..formats import Format
from ..gpu import is_on_gpu
from ..isa import MatrixInstruction
from .chain import GPU_ENGINES, Chain, Operands, ProductEngine, ProductOptions
from .choice import Lazy, Options, decide, engine_for, is_dask, planned, tensor_scales
from .float32 import Float32
from .gpu_products import product_of_host, product_on_gpu
from .operands import Given, Multiplicand, codes_of_c, codes_of_operands
from .results import alpha_of, checked_out, finish, output_format

if TYPE_CHECKING:
    from dask.array import Array as DaskArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Product(Shown):
    """A product whose operands are checked and turned into codes; their batch is flat."""

    chain: Chain
    target: str
    shape: tuple[int, ...]  # of D
    given: Operands  # codes of A, B, indices and block scales; one matrix may be for all of the batch
    c: Array  # codes of C, `[batch, m, n]`
    tensor_scales: tuple[Array, ...]  # of float32
    alpha: Array | None  # their product, rounded to f32, by which D is multiplied: one for each matrix of the batch
    epilogue: str | None
    format: Format  # of the result

    @property
    def flat(self) -> tuple[int, int, int]:
        """Shape of D with one dimension for the batch."""
        return math.prod(self.shape[:-2]), self.shape[-2], self.shape[-1]


def prepare(
    a: Multiplicand, b: Multiplicand, c: npt.ArrayLike | None = None, *, indices: npt.ArrayLike | None = None,
    scale_a: npt.ArrayLike | None = None, scale_b: npt.ArrayLike | None = None, **options: Any,
) -> Product:  # fmt: skip
    """Check the arguments of `matmul` and turn operands into codes; parameters and errors are those of `matmul`."""
    return prepared(Given.of(a, b, c, indices, scale_a, scale_b), ProductOptions(**options))


def prepared(given: Given, options: ProductOptions) -> Product:
    """Check operands and options of a product, once, and turn the operands into codes."""
    a, b = as_array(given.a, "A"), as_array(given.b, "B")
    c = None if given.c is None else as_array(given.c, "C")
    chain = decide(a, b, c, options, stored=given.indices is not None)
    record, target = chain.instruction, options.target
    batch, codes = codes_of_operands(chain, target, a, b, given.indices, given.scale_a, given.scale_b)
    shape = (*batch, a.shape[-2], b.shape[-1])
    factors = tensor_scales(record, c, batch, *given.alphas)
    of_c = np.broadcast_to(codes_of_c(record, c, shape), shape).reshape(math.prod(batch), *shape[-2:])
    return Product(
        chain=chain, target=target, shape=shape, given=codes, c=of_c, tensor_scales=tuple(factors),
        alpha=alpha_of(factors, batch), epilogue=options.epilogue, format=output_format(record, options.epilogue),
    )  # fmt: skip


# Rows and columns of one task: enough that packing operands costs little, few enough to share and to stop soon.
_TILE = {"native": 512, "numpy": 128}
# Of k at a time, so that an interrupt need not wait for all of a long one.
_SLAB = 1 << 14


@overload
def matmul(
    a: Lazy, b: Multiplicand | Lazy, c: npt.ArrayLike | Lazy | None = None, *, target: str, **more: Unpack[Options]
) -> DaskArray: ...
@overload
def matmul(
    a: Multiplicand, b: Lazy, c: npt.ArrayLike | Lazy | None = None, *, target: str, **more: Unpack[Options]
) -> DaskArray: ...
@overload
def matmul(a: Multiplicand, b: Multiplicand, c: Lazy, *, target: str, **more: Unpack[Options]) -> DaskArray: ...
@overload
def matmul(
    a: Multiplicand, b: Multiplicand, c: npt.ArrayLike | None = None, *, target: str, **more: Unpack[Options]
) -> Array: ...
def matmul(
    a: Multiplicand | Lazy, b: Multiplicand | Lazy, c: npt.ArrayLike | Lazy | None = None, *,
    instruction: str | MatrixInstruction | None = None, float32: Float32 | None = None, target: str,
    out: Array | None = None, split_k: int | Sequence[int] = 1, promote_every: int | None = None,
    epilogue: str | None = None, indices: npt.ArrayLike | None = None, scale_a: npt.ArrayLike | Lazy | None = None,
    scale_b: npt.ArrayLike | Lazy | None = None, engine: ProductEngine = "auto", threads: int | None = None,
    progress: Watched = None,
) -> Array | DaskArray:  # fmt: skip
    """Multiply matrices as a tiled kernel does.

    Parameters
    ----------
    a, b : array_like, Quantized, dask.array.Array or arrays on an NVIDIA GPU
        `[..., m, k]` and `[..., k, n]`, of the operands' NumPy or ml_dtypes types, or raw unsigned codes (then name the
        instruction); the leading dimensions broadcast. For a sparse instruction A is dense and obeys the pattern, as
        `sparsity.prune` makes it, or holds the stored elements `[..., m, k/2]` with `indices`. Dask arrays have two
        dimensions; then D is one too.
    c : array_like, optional
        `[..., m, n]`, of C's type; it broadcasts. +0 by default.
    instruction : str, Instruction or WarpgroupInstruction, optional
        A mnemonic of `mma` or `wgmma`. By default the dense (or, with `indices`, sparse) `mma` with the largest k that
        the target has for the types of `a`, `b` and `c`; D is f32, s32 or f64 if there is no `c`. float32 needs the
        word of the next argument; uint8 has no default, for it may hold raw codes.
        `wgmma`, which kernels for sm_90a use, is never the default: of fp8 its sums keep 13 bits, those of `mma` there
        all of f32's. `choose` shows the choice and its alternatives, `find` lists mnemonics.
    float32 : {"ieee", "tf32", "tf32-truncated"}, optional
        How float32 is multiplied. "ieee": without tensor cores, each element of D one chain of `fma.rn.f32` from C, k
        ascending; libraries may add in another order. "tf32": A and B are rounded to tf32, to nearest even, as PyTorch
        does where TF32 is allowed. "tf32-truncated": the instruction reads A and B as they are and ignores the low 13
        bits. It changes nothing for other types. Without it float32 is "tf32-truncated", with a DeprecationWarning that
        is an error in the next release; an `instruction` for tf32 is a choice, and by itself truncates too.
    target : str
    out : ndarray, optional
        Where to write D: writable, C-contiguous, without a mask. It may overlap with operands.
    split_k : int or sequence of int
        k is cut into this many slices, each of the same number of instructions (the last may have fewer), or into
        slices of these lengths. Each is a chain from +0, and their results are added to C one after the other, in f32,
        to nearest even. Of a single slice the chain begins with C.
    promote_every : int, optional
        Within a slice the chain is cut every so much of k, from its beginning; partial sums are added likewise, outside
        the matrix unit, as fp8 kernels do every 128.
    epilogue : str, optional
        A format such as "bf16", to which D is rounded once, to nearest even; as by PTX `cvt`, overflow
        becomes infinity or for narrow formats the largest value.
    indices : array_like of int, optional
        Of stored elements of a sparse A, `[..., m, groups of k, 2]`; see `sparsity.compress`.
    scale_a, scale_b : array_like, optional
        Block scales, `[..., m, S]` and `[..., S, n]`, one for every block of k; see `mma`. A `Quantized` operand brings
        its own. Tensor scales multiply D: their product rounded to f32, the product with D rounded to f32, both to
        nearest even. Then there is no `c`.
    engine : {"auto", "native", "numpy", "cuda", "hardware"}
        As for `execute`, and "cuda": on an NVIDIA GPU, with the target's bits all the same. "auto" is "cuda" where A
        lies on a GPU (a tensor of PyTorch, an array of CuPy, what exports DLPack). Then B, C and block scales lie there
        too, D is an array of A's library, on its stream, and nothing waits; there is no `out`, no `progress` and no
        tensor scale, and A is dense. Arrays of the host are copied to the first GPU.
        "hardware": as "cuda", but by the instruction itself, where the GPU is the target: the reference of all others.
        Another GPU, and block scales, are an `UnsupportedError`.
    threads
        As for `execute`, of the engines on the CPU.
    progress : bool or callable, optional
        Called as `progress(done, total)` after each of the tiles that make up D; True shows a bar on a terminal and in
        a notebook.

    Returns
    -------
    ndarray, dask.array.Array or array of A's library
        D, `[..., m, n]`, of D's type or that of `epilogue`; `out`, if it was given.

    Raises
    ------
    WarpmmaError
        No such instruction or target, operands that do not go together or with it, and as `mma` does.

    Warns
    -----
    EngineWarning
        The first product of 2^28 multiply-adds, with `engine="auto"`, where the native engine was not built.

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
    >>> x, y = np.float32([[0.7]]), np.float32([[1]])
    >>> [matmul(x, y, target="sm_90", float32=way).item() for way in ("ieee", "tf32", "tf32-truncated")]
    [0.699999988079071, 0.7001953125, 0.69970703125]
    """
    given = Given.of(a, b, c, indices, scale_a, scale_b)
    options = ProductOptions(
        target=target, instruction=instruction, float32=float32, split_k=split_k, promote_every=promote_every,
        epilogue=epilogue, engine=engine_for(engine, given.a), threads=threads, progress=progress,
    )  # fmt: skip
    if options.engine in GPU_ENGINES and is_on_gpu(given.a):
        if out is not None:
            raise OperandError(f"engine={options.engine!r} makes D beside A, by A's library; expected no out")
        if progress:
            raise OperandError(f"engine={options.engine!r} does not wait for a GPU's arrays; expected no progress")
        return cast(Array, product_on_gpu(given, options, *planned(given, options)))
    if any(is_dask(x) for x in (given.a, given.b, c)):
        from .graph import matmul_lazily  # Dask is an extra

        not_lazy = (out, indices, *given.alphas, threads, progress)
        if options.engine in GPU_ENGINES or not all(x is None for x in not_lazy):
            raise OperandError(
                "dask arrays do not support out, tensor scales, indices (give A dense), threads, progress and "
                "engine='cuda' or 'hardware'"
            )
        return matmul_lazily(given, options)
    return computed(prepared(given, options), options, out)


def computed(product: Product, options: ProductOptions, out: Array | None = None) -> Array:
    """Compute a product: D as `matmul` returns it."""
    if options.engine == "auto":
        warn_of_numpy(math.prod(product.flat) * product.chain.k)
    shape, flat, result = product.shape, product.flat, product.format
    wanted = None if out is None else checked_out(out, shape, result).reshape(flat)
    d = wanted
    if any(x is not None and d is not None and np.may_share_memory(d, x) for x in (product.c, *product.given)):
        d = None  # a tile that is done must be no operand of another
    d = multiply(product, d, options.threads, options.progress)
    if wanted is None:
        return result.array(d.reshape(shape))
    if d is not wanted:
        wanted[...] = d
    return cast(Array, out)


def multiply(product: Product, d: Array | None = None, threads: int | None = None, progress: Watched = None) -> Array:
    """Compute a product that is prepared: codes of D, `[batch, m, n]`, written to `d` if it is given."""
    if d is None:
        d = np.empty(product.flat, product.format.code_dtype)
    if product.chain.engine in GPU_ENGINES:
        whole = partial(
            product_of_host, product.chain, product.given, product.c, product.format, product.alpha, product.target
        )
        for_each(whole, [d], threads, progress, "tiles")  # all of it is one
        return d
    size, (batch, m, n) = _TILE[product.chain.engine], d.shape
    each = max(1, size * size // max(1, m * n))  # of small matrices, many to a task
    tiles = list(pairs(_cuts(batch, each), _cuts(m, size), _cuts(n, size)))
    for_each(partial(_compute, product, d), tiles, threads, progress, "tiles")
    return d


def _compute(product: Product, d: Array, tile: tuple[slice, slice, slice]) -> None:
    """Compute one tile of D: some matrices of the batch, rows of A and columns of B."""
    some, rows, columns = tile
    chain, mine, alpha = product.chain, product.given.of(some), product.alpha
    slab = _SLAB // chain.instruction.k * chain.instruction.k
    state = chain.start(product.c[tile])
    for start in range(0, chain.k, slab):
        part = mine.part(rows, columns, start, min(start + slab, chain.k), chain)
        state = chain.advance(state, part, start)
    scale = None if alpha is None else alpha[some, None, None]
    d[tile] = finish(chain.instruction, chain.finish(state), product.epilogue, scale)


def _cuts(length: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]
