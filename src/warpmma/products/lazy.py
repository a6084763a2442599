"""`matmul` on Dask arrays: a graph with a task for every tile of D and block of k, those of a tile in order.

A tile's chain is handed from task to task as a `State`: it meets the same instructions in the same order as in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import dask
import dask.array as da
import numpy as np
import numpy.typing as npt

from .._arguments import is_integer
from .._arrays import as_array
from ..arithmetic import resolve
from ..errors import OperandError, ScaleError, WarpmmaError
from ..isa import AnyInstruction
from .chain import Chain, State
from .choice import decide, outline
from .operands import check_c, check_scales, codes_of_c, operands
from .results import finish, output_format

__all__ = ["matmul"]

Array = npt.NDArray[Any]


def matmul(
    a: Any, b: Any, c: Any, *, instruction: str | AnyInstruction | None, target: str,
    split_k: int | Sequence[int], promote_every: int | None, epilogue: str | None,
    scale_a: Any, scale_b: Any, engine: str,
) -> da.Array:  # fmt: skip
    """Multiply matrices lazily; see `warpmma.matmul`. The chunks of D are those of A's rows and B's columns."""
    a, b = _array(a, "A"), _array(b, "B")
    c = None if c is None else _array(c, "C")
    scale_a, scale_b = (
        None if x is None else _array(x, f"scales of {operand}", ScaleError)
        for operand, x in (("A", scale_a), ("B", scale_b))
    )
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise OperandError(f"dask: A is {a.shape} and B is {b.shape}; expected (m, k) and (k, n)")
    m, (k, n) = a.shape[0], b.shape
    if not all(map(is_integer, (m, k, n))):
        raise OperandError(f"dask: A is {a.shape} and B is {b.shape}; expected known lengths (see compute_chunk_sizes)")
    for name, x in (("A", a), ("B", b)):
        if x.dtype.hasobject:  # Dask does not know how to cut it
            raise OperandError(f"dask: {name} is {x.dtype}: Python objects, which hold no bits")
    a, b = da.asarray(a), da.asarray(b)
    record, chain = decide(
        outline(a, "A"), outline(b, "B"), None if c is None else outline(c, "C"), instruction, target, engine,
        stored=False, split_k=split_k, promote_every=promote_every, epilogue=epilogue,
    )  # fmt: skip
    check_scales(record, a.shape, b.shape, *(None if x is None else x.shape for x in (scale_a, scale_b)))
    for x in (scale_a, scale_b):
        if x is not None and x.ndim != 2:
            raise ScaleError(f"{record}: scales are {x.shape}; expected two dimensions, as dask matrices have")
    if c is not None:
        check_c(record, c.shape, (m, n))
    along = _whole_instructions(a.chunks[1], record.k)
    a, b = a.rechunk({1: along}), b.rechunk({0: along})
    if c is None:
        of_c = da.zeros((m, n), dtype=record.format("C").dtype, chunks=(a.chunks[0], b.chunks[1]))
    else:
        of_c = da.broadcast_to(da.asarray(c), (m, n)).rechunk((a.chunks[0], b.chunks[1]))
    given_a, given_b, given_c = (x.to_delayed() for x in (a, b, of_c))
    result = output_format(record, epilogue)
    begin, advance, end = (dask.delayed(step, pure=True) for step in (_begin, _advance, _end))
    starts = list(accumulate(along, initial=0))
    tiles: list[list[da.Array]] = []
    for i, height in enumerate(a.chunks[0]):
        row = slice(sum(a.chunks[0][:i]), sum(a.chunks[0][: i + 1]))
        tiles.append([])
        for j, width in enumerate(b.chunks[1]):
            column = slice(sum(b.chunks[1][:j]), sum(b.chunks[1][: j + 1]))
            state = begin(chain, given_c[i, j])
            for number, start in enumerate(starts[:-1]):
                scales = _scales(chain, scale_a, scale_b, row, column, start, starts[number + 1])
                state = advance(chain, target, engine, state, given_a[i, number], given_b[number, j], scales, start)
            tile = end(chain, epilogue, state)
            tiles[-1].append(da.from_delayed(tile, (height, width), meta=np.empty((0, 0), result.dtype)))
    return da.block(tiles)


def _array(x: Any, name: str, error: type[WarpmmaError] = OperandError) -> Any:
    """Return a Dask array as it is, and anything else as a NumPy array."""
    return x if isinstance(x, da.Array) else as_array(x, name, error)


def _whole_instructions(chunks: Sequence[int], step: int) -> tuple[int, ...]:
    """Move the ends of chunks of k up to whole instructions."""
    k = sum(chunks)
    ends = sorted({min(k, -(-end // step) * step) for end in accumulate(chunks)})
    return tuple(end - start for start, end in zip([0, *ends], ends, strict=False))


def _scales(
    chain: Chain, scale_a: Any, scale_b: Any, row: slice, column: slice, start: int, stop: int
) -> tuple[Any, Any]:  # fmt: skip
    """Block scales that one task needs, NumPy or Dask arrays."""
    blocks = slice(start // chain.block, -(-stop // chain.block)) if chain.block else slice(0)
    return None if scale_a is None else scale_a[row, blocks], None if scale_b is None else scale_b[blocks, column]


def _begin(chain: Chain, c: Array) -> State:
    return chain.start(codes_of_c(chain.instruction, c, c.shape)[None])


def _advance(
    chain: Chain, target: str, engine: str, state: State, a: Array, b: Array,
    scales: tuple[Array | None, Array | None], start: int,
) -> State:  # fmt: skip
    here = replace(chain, engine=resolve(engine))  # a worker may be installed otherwise than its client
    _, given = operands(chain.instruction, target, a, b, None, *scales)
    return here.advance(state, given, start)


def _end(chain: Chain, epilogue: str | None, state: State) -> Array:
    codes = finish(chain.instruction, chain.finish(state)[0], epilogue)
    return output_format(chain.instruction, epilogue).array(codes)
