"""`matmul` on Dask arrays: a graph with a task for every tile of D and block of k, those of a tile in order.

A tile's chain is handed from task to task as a `ChainState`: it takes the same instructions in the same order as in
memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import dask
import dask.array as da
import numpy as np

from .._arguments import is_integer
from .._arrays import Array, as_array
from ..arithmetic import resolve
from ..errors import OperandError, ScaleError, WarpmmaError
from .chain import Chain, ChainState, ProductOptions
from .choice import decide, outline
from .operands import Given, check_c, check_scales, codes_of_c, codes_of_operands
from .results import finish, output_format


def matmul_lazily(given: Given, options: ProductOptions) -> da.Array:
    """Multiply matrices lazily; see `warpmma.matmul`. The chunks of D are those of A's rows and B's columns."""
    a, b = _multiplicands(given.a, given.b)
    c = None if given.c is None else _array(given.c, "C")
    scale_a, scale_b = (
        None if x is None else _array(x, f"scales of {operand}", ScaleError)
        for operand, x in (("A", given.scale_a), ("B", given.scale_b))
    )
    of_c = None if c is None else outline(c, "C")
    chain = decide(outline(a, "A"), outline(b, "B"), of_c, options, stored=False)
    record = chain.instruction
    check_scales(record, a.shape, b.shape, *(None if x is None else x.shape for x in (scale_a, scale_b)))
    for x in (scale_a, scale_b):
        if x is not None and x.ndim != 2:
            raise ScaleError(f"{record}: scales are {x.shape}; expected two dimensions, as dask matrices have")
    shape = (a.shape[0], b.shape[1])
    if c is not None:
        check_c(record, c.shape, shape)
    along = _whole_instructions(a.chunks[1], record.k)
    a, b = a.rechunk({1: along}), b.rechunk({0: along})
    if c is None:
        start = da.zeros(shape, dtype=record.format("C").dtype, chunks=(a.chunks[0], b.chunks[1]))
    else:
        start = da.broadcast_to(da.asarray(c), shape).rechunk((a.chunks[0], b.chunks[1]))
    return _Graph(
        chain=chain, options=options, scale_a=scale_a, scale_b=scale_b, starts=list(accumulate(along, initial=0))
    ).of(a, b, start)


def _multiplicands(a: Any, b: Any) -> tuple[da.Array, da.Array]:
    """Check that A and B are matrices of known lengths that go together, of numbers."""
    a, b = _array(a, "A"), _array(b, "B")
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise OperandError(f"dask: A is {a.shape} and B is {b.shape}; expected (m, k) and (k, n)")
    if not all(map(is_integer, (*a.shape, *b.shape))):
        raise OperandError(f"dask: A is {a.shape} and B is {b.shape}; expected known lengths (see compute_chunk_sizes)")
    for name, x in (("A", a), ("B", b)):
        if x.dtype.hasobject:  # Dask does not know how to cut it
            raise OperandError(f"dask: {name} is {x.dtype}: Python objects, which hold no bits")
    return da.asarray(a), da.asarray(b)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Graph:
    """Tasks of a product whose chunks of k are whole instructions."""

    chain: Chain
    options: ProductOptions
    scale_a: Any  # ndarray, dask.array.Array or None
    scale_b: Any
    starts: list[int]  # where the chunks of k begin, and where the last one ends

    def of(self, a: da.Array, b: da.Array, c: da.Array) -> da.Array:
        """Return D; every tile is a chain of tasks."""
        dtype = output_format(self.chain.instruction, self.options.epilogue).dtype
        if not all(c.shape):  # Dask cannot concatenate tiles that are all empty
            return da.zeros(c.shape, dtype=dtype, chunks=c.chunks)
        given_a, given_b, given_c = (x.to_delayed() for x in (a, b, c))
        begin, end = (dask.delayed(step, pure=True) for step in (_begin, _end))
        meta = np.empty((0, 0), dtype)
        tiles: list[list[da.Array]] = []
        for i, (rows, height) in enumerate(_spans(a.chunks[0])):
            tiles.append([])
            for j, (columns, width) in enumerate(_spans(b.chunks[1])):
                state = self._along_k(begin(self.chain, given_c[i, j]), given_a[i], given_b[:, j], rows, columns)
                tile = end(self.chain, self.options.epilogue, state)
                tiles[-1].append(da.from_delayed(tile, (height, width), meta=meta))
        return da.block(tiles)

    def _along_k(self, state: Any, row_of_a: Any, column_of_b: Any, rows: slice, columns: slice) -> Any:
        """Advance the state of one tile through all chunks of k, a task each."""
        advance = dask.delayed(_advance, pure=True)
        for number, (start, stop) in enumerate(pairwise(self.starts)):
            blocks = self.chain.blocks(start, stop)
            of_a = None if self.scale_a is None else self.scale_a[rows, blocks]
            of_b = None if self.scale_b is None else self.scale_b[blocks, columns]
            a, b = row_of_a[number], column_of_b[number]
            state = advance(self.chain, self.options.target, self.options.engine, state, a, b, (of_a, of_b), start)
        return state


def _spans(lengths: Sequence[int]) -> list[tuple[slice, int]]:
    """Return the range of each chunk, and its length."""
    ends = accumulate(lengths)
    return [(slice(end - length, end), length) for end, length in zip(ends, lengths, strict=True)]


def _array(x: Any, name: str, error: type[WarpmmaError] = OperandError) -> Any:
    """Return a Dask array as it is, and anything else as a NumPy array."""
    return x if isinstance(x, da.Array) else as_array(x, name, error)


def _whole_instructions(chunks: Sequence[int], step: int) -> tuple[int, ...]:
    """Move the ends of chunks of k up to whole instructions."""
    k = sum(chunks)
    ends = sorted({min(k, -(-end // step) * step) for end in accumulate(chunks)})
    return tuple(end - start for start, end in zip([0, *ends], ends, strict=False))


def _begin(chain: Chain, c: Array) -> ChainState:
    return chain.start(codes_of_c(chain.instruction, c, c.shape)[None])


def _advance(
    chain: Chain, target: str, engine: str, state: ChainState, a: Array, b: Array,
    scales: tuple[Array | None, Array | None], start: int,
) -> ChainState:  # fmt: skip
    here = replace(chain, engine=resolve(engine))  # a worker may be installed otherwise than its client
    _, given = codes_of_operands(chain, target, a, b, None, *scales)
    return here.advance(state, given, start)


def _end(chain: Chain, epilogue: str | None, state: ChainState) -> Array:
    codes = finish(chain.instruction, chain.finish(state)[0], epilogue)
    return output_format(chain.instruction, epilogue).array(codes)
