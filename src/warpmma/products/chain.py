"""The chain of instructions that computes one element of a matrix product, in pieces of any size along k.

A `Chain` knows where partial sums end; a `ChainState` is the progress of one tile. A tile is fed k in order, in pieces
of any size: all at once in memory, block by block from Dask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple, cast, get_args

import numpy as np

from .._arguments import check_choice, is_integer, members
from .._arrays import Array
from .._progress import Watched
from .._records import Shown
from ..arithmetic import Engine, Popcount, Recipe, Resolved, dot_chain, resolve
from ..errors import OperandError, shown
from ..formats import FORMATS
from ..isa import MatrixInstruction
from .float32 import ChainInstruction, Float32, recipe_on
from .results import output_format

_F32 = FORMATS["f32"]

GpuEngine = Literal["cuda", "hardware"]
ProductEngine = Literal[Engine, GpuEngine]
"""The engines of products: those of instructions, and two on a GPU: the target's bits by software, its instruction."""

GPU_ENGINES: tuple[ProductEngine, ...] = get_args(GpuEngine)


class Operands(NamedTuple):
    """Codes that one part of a product reads: `[batch, m, k]` of A, `[batch, k, n]` of B, and what belongs to them."""

    a: Array
    b: Array
    chosen: Array | None = None
    scale_a: Array | None = None
    scale_b: Array | None = None

    def of(self, some: slice) -> Operands:
        """Take some matrices of the batch; one that is for all of them is repeated, not copied."""
        return Operands(*(x if x is None else _some(x, some) for x in self))  # type: ignore[arg-type]

    def part(self, rows: slice, columns: slice, start: int, stop: int, chain: Chain) -> Operands:
        """Cut out some rows of A, columns of B and values of k (logical ones of a sparse A)."""
        stored = slice(start // chain.packed, stop // chain.packed)
        scales = chain.blocks(start, stop)
        return Operands(
            self.a[:, rows, stored],
            self.b[:, start:stop, columns],
            None if self.chosen is None else self.chosen[:, rows, stored],
            None if self.scale_a is None else self.scale_a[:, rows, scales],
            None if self.scale_b is None else self.scale_b[:, scales, columns],
        )


def _some(x: Array, some: slice) -> Array:
    return x[some] if len(x) > 1 else np.broadcast_to(x, (some.stop - some.start, *x.shape[1:]))


class ChainState(NamedTuple):
    """Codes: accumulators of the running chains, `[batch, m, n]`; the `sums` of chains that have ended, if any do."""

    accumulator: Array
    sums: Array | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ProductOptions(Shown):
    """Options of a product beside its operands: the parameters of `matmul` with these names."""

    target: str
    instruction: str | MatrixInstruction | None = None
    float32: Float32 | None = None
    split_k: int | Sequence[int] = 1
    promote_every: int | None = None
    epilogue: str | None = None
    engine: ProductEngine = "auto"
    threads: int | None = None
    progress: Watched = None


@dataclass(frozen=True, kw_only=True)
class Chain(Shown):
    """The chain of instructions along k."""

    instruction: ChainInstruction
    recipe: Recipe
    engine: ProductEngine  # never "auto"
    k: int  # length of the product, before it is padded to whole instructions
    slices: tuple[int, ...]  # where the slices of a split k begin, and where the last one ends: in whole instructions
    promote: int = 0  # after how much of k in a slice the accumulator is added to an f32 sum and restarts at +0
    float32: Float32 | None = None  # None of other types

    @property
    def packed(self) -> int:
        """Logical elements of k for one that A stores."""
        return 2 if self.instruction.sparse else 1

    @property
    def block(self) -> int:
        """Elements of k that share a block scale; 0 without."""
        scales = self.instruction.scales_per_row
        return self.instruction.k // scales if scales else 0

    def blocks(self, start: int, stop: int) -> slice:
        """Return the block scales that a part of k needs."""
        return slice(start // self.block, -(-stop // self.block)) if self.block else slice(0)

    @property
    def whole(self) -> int:
        """Length of k in whole instructions."""
        return self.slices[-1]

    @property
    def partial(self) -> bool:
        """Whether there are partial sums, which are added in f32."""
        return len(self.slices) > 2 or bool(self.promote)

    @cached_property
    def ends(self) -> list[tuple[int, bool]]:
        """The ends of chains, each with whether a slice ends there."""
        ends = []
        for start, stop in pairwise(self.slices):
            step = self.promote or max(1, stop - start)  # of an empty k there is one slice, of no length
            ends += [(min(at, stop), at >= stop) for at in range(start + step, stop + step, step)]
        return ends

    def start(self, c: Array) -> ChainState:
        """Begin with codes of C: in the accumulator or, with partial sums, as the total that they are added to."""
        if not self.partial:
            return ChainState(c)
        sums = np.empty((2, *c.shape), c.dtype)
        sums[0], sums[1] = _F32.sign_bit, c  # of nothing, -0
        return ChainState(np.zeros_like(c), sums)

    def advance(self, state: ChainState, given: Operands, start: int) -> ChainState:
        """Go on with a part of k that begins at `start`, and ends with an instruction or with k."""
        stop = start + given.b.shape[1]
        if stop == start:
            return state
        if stop == self.k and self.whole > self.k:
            given, stop = self.padded(given, self.whole - start), self.whole
        step, sums = self.instruction.k, None
        ends: list[tuple[int, bool]] = []
        if state.sums is not None:
            sums = state.sums.copy()  # a ChainState is immutable
            ends = [((end - start) // step, ends_slice) for end, ends_slice in self.ends if start < end <= stop]
        return ChainState(self._product(given, state.accumulator, ends, sums), sums)

    def finish(self, state: ChainState) -> Array:
        """Return codes of D."""
        return state.accumulator if state.sums is None else state.sums[1]

    def padded(self, given: Operands, k: int) -> Operands:
        """Pad the end of k with +0, as kernels do."""

        def longer(x: Array | None, axis: int, length: int, value: int = 0) -> Array | None:
            if x is None:
                return None
            widths = [(0, length - n if i == axis else 0) for i, n in enumerate(x.shape)]
            return np.pad(x, widths, constant_values=value)

        scales = k // self.block if self.block else 0
        return Operands(
            cast(Array, longer(given.a, 2, k // self.packed)),
            cast(Array, longer(given.b, 1, k)),
            # Zeros meet zeros: the instruction's last row of B is padding too, its first may hold an infinity.
            longer(given.chosen, 2, k // self.packed, self.instruction.k - 1),
            longer(given.scale_a, 2, scales),
            longer(given.scale_b, 1, scales),
        )

    def _product(self, given: Operands, c: Array, ends: list[tuple[int, bool]], sums: Array | None) -> Array:
        a, b, k = given.a, given.b, self.instruction.k // self.packed
        if isinstance(self.recipe.unit, Popcount):  # single bits, a word at a time
            a, b, k = _bits(a), _bits(b.swapaxes(1, 2)).swapaxes(1, 2), k // 32
        return dot_chain(
            self.recipe, a, b, c, k=k, engine=cast(Resolved, self.engine), chosen=given.chosen, scale_a=given.scale_a,
            scale_b=given.scale_b, scales=self.instruction.scales_per_row, ends=ends, sums=sums,
        )  # fmt: skip


def _bits(x: Array) -> Array:
    """Pack single bits `[..., k]` into words `[..., k/32]`."""
    words: Array = np.ascontiguousarray(np.packbits(x, axis=-1, bitorder="little")).view("<u4")
    return words


def chain_of(record: ChainInstruction, options: ProductOptions, k: int, float32: Float32 | None) -> Chain:
    """Check the options that concern k, and return the chain; `float32` is how float32 is multiplied."""
    split_k, promote_every = options.split_k, options.promote_every
    check_choice("engine", options.engine, get_args(ProductEngine))
    resolved = options.engine if options.engine in GPU_ENGINES else resolve(options.engine)
    given = members(split_k, k)
    several, lengths = given is not None, [cast(int, split_k)] if given is None else given
    if not lengths or not all(is_integer(x) and x > 0 for x in lengths):
        raise OperandError(f"split_k is {shown(split_k)}; expected a positive number of slices, or their lengths")
    lengths = [int(x) for x in lengths]  # NumPy's narrow integers would overflow
    if several and (sum(lengths) != k or any(x % record.k for x in lengths[:-1])):
        raise OperandError(
            f"{record}: slices of k are {tuple(lengths)}; expected {k} together, multiples of {record.k} but the last"
        )
    if promote_every is not None and (not is_integer(promote_every) or promote_every < 1 or promote_every % record.k):
        raise OperandError(f"{record}: promote_every is {shown(promote_every)}; expected a multiple of {record.k}")
    slices = boundaries(k, record.k, lengths if several else lengths[0])
    chain = Chain(
        instruction=record, recipe=recipe_on(record, options.target), engine=resolved, k=k, slices=slices,
        promote=int(promote_every or 0), float32=float32,
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
    output_format(record, options.epilogue)
    return chain


def boundaries(k: int, step: int, split: int | Sequence[int]) -> tuple[int, ...]:
    """Return the ends of slices of k: `split` equal ones (the last may be shorter), or ones of given lengths."""
    whole = -(-k // step) * step
    if not isinstance(split, Sequence):
        each = max(step, -(-whole // step // split) * step) if whole else step
        return (*range(0, whole, each), whole) if whole else (0, 0)
    ends = np.cumsum([0, *split]).tolist()
    return (*ends[:-1], whole)
