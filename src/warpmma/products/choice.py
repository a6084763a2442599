"""The choice of the instruction for a whole product, and of the chain along k."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol, TypedDict, cast

import numpy as np
import numpy.typing as npt

from .._arguments import check_choice, is_integer
from .._arrays import Array, as_array
from .._progress import Watched
from .._records import Shown
from ..arithmetic import Evidence, FmaChain, FusedDotAdd, IntegerSum, Popcount, Recipe, library_note
from ..errors import MnemonicError, OperandError, ScaleError, WarpmmaError, shown
from ..formats import FORMATS
from ..gpu import dtype_of, is_on_gpu
from ..isa import Instruction, MatrixInstruction, check_known, check_target, find, instructions, parse_any
from ..sparsity import sparse_a
from .chain import Chain, ProductEngine, ProductOptions, chain_of
from .float32 import (
    FLOAT32,
    FMA,
    ChainInstruction,
    Float32,
    FloatFma,
    checked_float32,
    evidence_on,
    float32_without_a_word,
    recipe_on,
)
from .operands import Given, Multiplicand, batch_of, broadcasts, check_c, check_indices_shape, check_scales
from .results import output_format


@dataclass(frozen=True, kw_only=True)
class Choice(Shown):
    """How `matmul` computes a product; `str` describes it in a few lines.

    Attributes
    ----------
    instruction : Instruction, WarpgroupInstruction or FloatFma
    by_default : bool
        Whether the instruction was chosen, not named.
    float32 : {"ieee", "tf32", "tf32-truncated"} or None
        How float32 is multiplied; None of other types.
    target : str
    recipe : Recipe
        How the instruction computes on the target.
    evidence : Evidence
        How that is known.
    engine : {"native", "numpy", "cuda", "hardware"}
    shape : tuple of int
        Of D.
    dtype : dtype
        Of D.
    k : int
    slices : tuple of (int, int)
        Where each slice of k begins and ends.
    promote_every : int or None
        After how much of k within a slice the accumulator is added to an f32 sum.
    epilogue : str or None
        Format to which D is rounded.
    """

    instruction: ChainInstruction
    by_default: bool
    float32: Float32 | None
    target: str
    recipe: Recipe = field(repr=False)
    evidence: Evidence
    engine: ProductEngine
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    k: int
    slices: tuple[tuple[int, int], ...]
    promote_every: int | None
    epilogue: str | None

    @property
    def steps(self) -> int:
        """Instructions that each element of D takes, one after the other."""
        return sum(-(-(stop - start) // self.instruction.k) for start, stop in self.slices)

    @property
    def others(self) -> tuple[MatrixInstruction, ...]:
        """Further instructions for the same types on the target, whose sums may differ in the last bits.

        One for each way to add that is not the chosen instruction's, of `wgmma` that with the largest n. A kernel that
        uses one of them is computed if `matmul` is given its name.
        """
        mine = self.instruction
        if isinstance(mine, FloatFma):
            return ()
        found: dict[tuple[Recipe, int], MatrixInstruction] = {}
        for i in find(
            a=mine.a_type, b=mine.b_type, c=mine.c_type, d=mine.d_type, sparse=mine.sparse, kind=mine.kind,
            block_scale=mine.block_scale, satfinite=mine.satfinite, target=self.target,
        ):  # fmt: skip
            if i.stype == mine.stype and i.scales_per_row == mine.scales_per_row:
                way = _sums(i, self.target)
                found[way] = max(found.get(way, i), i, key=lambda x: x.n)
        return tuple(i for way, i in found.items() if way != _sums(mine, self.target))

    @property
    def note(self) -> str:
        """What libraries use on the target in its place, if its sums may have other bits; else empty."""
        return library_note(self.instruction, self.target)

    def __str__(self) -> str:
        parts = "1 slice" if len(self.slices) == 1 else f"{len(self.slices)} slices"
        along = f"k = {self.k} in {parts}, {self.steps} instructions for each element"
        if self.promote_every:
            along += f", promoted to f32 every {self.promote_every}"
        lines = [
            f"{self.instruction} on {self.target}, {'by default' if self.by_default else 'as asked'}",
            *([f"float32 as {self.float32!r}: {FLOAT32[self.float32].meaning}"] if self.float32 else []),
            f"D {self.shape} of {self.dtype}{f', rounded to {self.epilogue}' if self.epilogue else ''}; {along}",
            f"engine {self.engine}; {self.evidence}",
        ]
        if self.others:
            lines.append(f"other sums for these types: {', '.join(map(str, self.others))}")
        if self.note:
            lines.append(self.note)
        return "\n".join(lines)


def _sums(instruction: MatrixInstruction, target: str) -> tuple[Recipe, int]:
    """Tell the sums of instructions for the same types apart: by recipe, and by how k is cut if that can be seen."""
    how, k = recipe_on(instruction, target), instruction.k // (2 if instruction.sparse else 1)
    unit = how.unit
    if isinstance(unit, FmaChain | Popcount) or (isinstance(unit, IntegerSum) and not unit.saturate):
        return how, 0  # a chain cut anywhere is the same
    if isinstance(unit, FusedDotAdd) and (how.order, how.accumulate) == ("ascending", "within"):
        return how, min(k, unit.products)  # powers of two, so that every step is as long
    return how, k


class Lazy(Protocol):
    """A Dask array, as type checkers know it that have no Dask."""

    def __dask_graph__(self) -> Any: ...


class Options(TypedDict, total=False):
    """Options of `matmul` beside operands and target."""

    instruction: str | MatrixInstruction | None
    float32: Float32 | None
    out: Array | None
    split_k: int | Sequence[int]
    promote_every: int | None
    epilogue: str | None
    indices: npt.ArrayLike | None
    scale_a: npt.ArrayLike | Lazy | None
    scale_b: npt.ArrayLike | Lazy | None
    engine: ProductEngine
    threads: int | None
    progress: Watched


def choose(
    a: Multiplicand | Lazy, b: Multiplicand | Lazy, c: npt.ArrayLike | Lazy | None = None, *,
    instruction: str | MatrixInstruction | None = None, float32: Float32 | None = None, target: str,
    split_k: int | Sequence[int] = 1, promote_every: int | None = None, epilogue: str | None = None,
    indices: npt.ArrayLike | None = None, scale_a: npt.ArrayLike | Lazy | None = None,
    scale_b: npt.ArrayLike | Lazy | None = None, engine: ProductEngine = "auto",
) -> Choice:  # fmt: skip
    """Return how `matmul` would compute a product, without computing it.

    Parameters
    ----------
    a, b, c, instruction, float32, target, split_k, promote_every, epilogue, indices, scale_a, scale_b, engine
        As for `matmul`. Of operands only shapes and dtypes are looked at, so `np.broadcast_to(np.float16(0), (m, k))`
        stands for a matrix that does not exist yet.

    Returns
    -------
    Choice

    Raises
    ------
    WarpmmaError
        As `matmul` does, except errors in the elements.

    Examples
    --------
    >>> import ml_dtypes
    >>> A, B = (np.ones(shape, ml_dtypes.float8_e4m3fn) for shape in ((100, 4096), (4096, 50)))
    >>> print(choose(A, B, target="sm_90a", engine="numpy"))
    mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 on sm_90a, by default
    D (100, 50) of float32; k = 4096 in 1 slice, 128 instructions for each element
    engine numpy; measured: this project; on H200, driver 580.159, CUDA 13.0; 1,006,632,960 outputs, 0 differences;
    as software: conversion to f16, two HMMA, and an addition of C
    other sums for these types: mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32,
    wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3
    on sm_90a libraries use wgmma, whose sums differ: they keep 13 fraction bits, mma 25 (measured on an H200)
    >>> i = choose(A, B, target="sm_90a").others[-1]
    >>> choose(A, B, instruction=i, target="sm_90a", promote_every=128).recipe.unit.fraction_bits
    13
    """
    given = Given.of(a, b, c, indices, scale_a, scale_b)
    options = ProductOptions(
        target=target, instruction=instruction, float32=float32, split_k=split_k, promote_every=promote_every,
        epilogue=epilogue, engine=engine_for(engine, given.a),
    )  # fmt: skip
    chain, batch = planned(given, options)
    return choice_of(chain, options, (*batch, given.a.shape[-2], given.b.shape[-1]))


def engine_for(engine: ProductEngine, a: object) -> ProductEngine:
    """Return the engine that "auto" is for this A: "cuda" where it lies on a GPU."""
    return "cuda" if engine == "auto" and is_on_gpu(a) else engine


def planned(given: Given, options: ProductOptions) -> tuple[Chain, tuple[int, ...]]:
    """Check shapes, dtypes and options of a product, and return its chain and the shape of its batch."""
    x, y = outline(given.a, "A"), outline(given.b, "B")
    z = None if given.c is None else outline(given.c, "C")
    places = None if given.indices is None else outline(given.indices, "indices")
    of_a, of_b = (
        None if s is None else outline(s, f"scales of {operand}", ScaleError).shape
        for operand, s in (("A", given.scale_a), ("B", given.scale_b))
    )
    chain = decide(x, y, z, options, stored=places is not None)
    record = chain.instruction
    if places is not None:
        check_indices_shape(cast(Instruction, record), places, x, y.shape[-2])
    check_scales(record, x.shape, y.shape, of_a, of_b)
    met = None if places is None else (*places.shape[:-2], x.shape[-1])
    batch = batch_of(record, x.shape, y.shape, met, of_a, of_b)
    factors = (None if x is None else outline(x, f"{record}: tensor scale", ScaleError) for x in given.alphas)
    tensor_scales(record, z, batch, *factors)
    if z is not None:
        check_c(record, z.shape, (*batch, x.shape[-2], y.shape[-1]))
    return chain, batch


def choice_of(chain: Chain, options: ProductOptions, shape: tuple[int, ...]) -> Choice:
    """Return the choice that a checked product with a D of this shape has come to."""
    record, target, epilogue = chain.instruction, options.target, options.epilogue
    return Choice(
        instruction=record, by_default=options.instruction is None, float32=chain.float32, target=target,
        recipe=chain.recipe, evidence=evidence_on(record, target), engine=chain.engine, shape=shape,
        dtype=output_format(record, epilogue).dtype, k=chain.k,
        slices=tuple((start, min(stop, chain.k)) for start, stop in pairwise(chain.slices)),
        promote_every=chain.promote or None, epilogue=epilogue,
    )  # fmt: skip


def default_instruction(a: str, b: str, c: str | None, target: str, *, sparse: bool = False) -> Instruction:
    """Return the `mma` with the largest k that a target has for PTX types of A, B and C; an error without one.

    Examples
    --------
    >>> str(default_instruction("bf16", "bf16", None, "sm_80"))
    'mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32'
    """
    check_known(target)
    for name, given in (("A", a), ("B", b), ("C", c)):
        if given is not None or name != "C":
            check_choice(f"type of {name}", given, tuple(FORMATS))
    if not isinstance(sparse, bool):
        raise OperandError(f"sparse is {shown(sparse)}; expected a bool")
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


def decide(a: Array, b: Array, c: Array | None, options: ProductOptions, *, stored: bool) -> Chain:
    """Choose the instruction for operands, or stored elements of a sparse A, and what to do along k.

    Only dtypes and shapes of the arrays matter.
    """
    record, way = _instruction(a, b, c, options, sparse=stored)
    _check_shapes(record, a.shape, b.shape, stored=stored)
    return chain_of(record, options, b.shape[-2], way)


def _instruction(
    a: Array, b: Array, c: Array | None, options: ProductOptions, *, sparse: bool
) -> tuple[ChainInstruction, Float32 | None]:
    """Return the requested instruction, or the default for these dtypes; and how float32 is multiplied."""
    target, float32 = options.target, options.float32
    if options.instruction is not None:
        record = parse_any(options.instruction)
        check_target(record, target)
        way = checked_float32(float32, record)
        return record, (way or "tf32-truncated") if record.a_type == "tf32" else None
    way = checked_float32(float32, None)
    a_type, b_type = (_type(name, x, _MULTIPLICANDS) for name, x in (("A", a), ("B", b)))
    c_type = None if c is None else _type("C", c, _ACCUMULATORS)
    if (a_type, b_type) != ("tf32", "tf32"):
        return default_instruction(a_type, b_type, c_type, target, sparse=sparse), None
    if way is not None and not FLOAT32[way].tensor_cores:
        check_known(target)
        return FMA, way
    chosen = default_instruction(a_type, b_type, c_type, target, sparse=sparse)
    return chosen, float32_without_a_word() if way is None else way


# Not u8: uint8 may hold raw codes of any narrow type.
_MULTIPLICANDS = ("f16", "bf16", "tf32", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "f64", "s8", "s4", "u4")
_ACCUMULATORS = ("f32", "f16", "s32", "f64")


def _type(name: str, array: Array, types: tuple[str, ...]) -> str:
    """Return the PTX type of an array's dtype."""
    for found in types:
        if FORMATS[found].dtype == array.dtype:
            return found
    known = ", ".join(f"{FORMATS[t].dtype} ({t})" for t in types)
    raise OperandError(f"{name} is {array.dtype}: which type is meant? Name the instruction, or give one of {known}")


def tensor_scales(record: ChainInstruction, c: object, batch: tuple[int, ...], *given: Any) -> list[Array]:
    """Check tensor scales, those that there are."""
    found = [as_array(x, f"{record}: tensor scale", ScaleError) for x in given if x is not None]
    for x in found:
        if x.dtype != np.float32 or not broadcasts(x.shape, batch):
            raise ScaleError(
                f"{record}: tensor scale is {x.dtype} {x.shape}; expected float32 that broadcasts to the batch {batch}"
            )
    if found and c is not None:
        raise OperandError(f"{record}: tensor scales multiply all of D; add C to the result, or leave it out")
    return found


def _check_shapes(record: ChainInstruction, a: tuple[int, ...], b: tuple[int, ...], *, stored: bool = False) -> None:
    """Raise `OperandError` unless A, or the stored elements of a sparse A, go together with B."""
    if stored and not record.sparse:
        raise OperandError(f"{record} is dense: it takes no indices")
    if len(a) < 2 or len(b) < 2 or a[-1] * (2 if stored else 1) != b[-2]:
        columns = "k/2" if stored else "k"
        raise OperandError(f"{record}: A is {a} and B is {b}; expected [..., m, {columns}] and [..., k, n]")
    width = sparse_a(record).pattern.width if record.sparse else 1
    if b[-2] % width:
        raise OperandError(f"{record}: k is {b[-2]}; expected a multiple of {width}, the group of the sparsity pattern")


def outline(x: Any, name: str, error: type[WarpmmaError] = OperandError) -> Array:
    """Return an array of the same shape and dtype, whose elements mean nothing."""
    if is_on_gpu(x):
        return np.broadcast_to(np.empty((), dtype_of(x, name)), tuple(x.shape))
    if not is_dask(x):
        return as_array(x, name, error)
    if not all(map(is_integer, x.shape)):
        raise error(f"dask: {name} is {x.shape}; expected known lengths (see compute_chunk_sizes)")
    return np.broadcast_to(as_array(np.empty((), x.dtype), name, error), x.shape)


def is_dask(x: Any) -> bool:
    """Return whether this is a Dask array; False as long as Dask is not imported."""
    module = sys.modules.get("dask.array")
    return module is not None and isinstance(x, module.Array)
