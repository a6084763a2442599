"""Strategies for hypothesis: matrices, fragments and all operands of an instruction.

Nothing else in the package needs hypothesis, which must be installed (`pip install hypothesis`).

Values are weighted towards what breaks kernels: zeros of both signs, subnormals, the ends of the format, NaN with
payloads, neighbours of 1 and powers of two that make ties. `kind` narrows them:

"any"
    Every bit pattern.
"finite"
    No NaN and no infinity.
"near"
    Zeros, and 2**-4 to 2**4 in magnitude, as far as the format has it; of integers -8 to 8.
"exact"
    Integers from -4 to 4, whose sums of products are exact in every accumulator.
"ties"
    Powers of two, and the neighbours of 1: sums of their products are half way between two results.
"special"
    Zeros, ones, the least and the largest numbers, infinities and NaN; of integers the ends.

A large matrix contains a few codes and random ones in a block, +0 outside the block, and some elements that are chosen
one by one. NaN and infinities are mostly among the latter, because otherwise every sum would be NaN. So a failing
example shrinks to few elements, with +0 elsewhere; the elements of a small matrix shrink to small numbers too.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from .. import sparsity
from .._arguments import check_choice, is_integer, members
from .._arrays import MOST_DIMENSIONS, Array
from ..errors import OperandError, shown
from ..execution import load
from ..formats import FORMATS, FloatFormat, Format, IntegerFormat
from ..isa import Instruction, check_target, parse
from ..layouts import OPERANDS, Operand
from ..registers import LANES
from ..scaling import byte_ids, pack_scales, thread_ids
from .array_repr import Written
from .draws import KINDS, Kind, Weighted, drawn_codes, weighted

__all__ = ["KINDS", "Kind", "fragments", "matrices", "operands"]

Draw = st.DrawFn


def matrices(
    format: str | Format | npt.DTypeLike, shape: int | Sequence[int] | st.SearchStrategy[tuple[int, ...]], *,
    kind: Kind = "any",
) -> st.SearchStrategy[Array]:  # fmt: skip
    """Generate arrays of a format.

    Parameters
    ----------
    format : str, Format or dtype
        PTX's name of a type, such as "e4m3", or a NumPy or ml_dtypes type (then float32 is f32 and uint8 is u8).
    shape : int, sequence of int or strategy
    kind : {"any", "finite", "near", "exact", "ties", "special"}
        Which values; see the module.

    Returns
    -------
    SearchStrategy of ndarray
        Of the format's NumPy or ml_dtypes type; ue4m3 has uint8. They shrink to +0 (ue8m0 to 1).

    Raises
    ------
    OperandError
        An unknown format or kind, or an invalid shape.

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(matrices("f16", (16, 8), kind="finite"))
    ... def test(A):
    ...     assert A.shape == (16, 8) and np.isfinite(A).all()
    >>> test()
    """
    values = weighted(_format(format), kind)
    if isinstance(shape, st.SearchStrategy):
        return shape.flatmap(lambda drawn: _matrices(values, _shape(drawn)))
    return _matrices(values, _shape(shape))


def fragments(
    instruction: str | Instruction, operand: Operand, batch: int | Sequence[int] = (), *, kind: Kind = "any"
) -> st.SearchStrategy[Array]:
    """Generate the registers of an operand, `[*batch, register, 32]`; padding between elements is 0.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> fragments(i, "A", batch=4).example().shape  # doctest: +SKIP
    (4, 4, 32)
    """
    record = parse(instruction)
    shape = (*_shape(batch), *record.layout(operand).shape)
    return _loaded(record, operand, matrices(record.format(operand), shape, kind=kind))


def operands(
    instruction: str | Instruction, *, form: Literal["matrices", "registers"] = "matrices",
    batch: int | Sequence[int] = (), kind: Kind = "any", target: str | None = None,
) -> st.SearchStrategy[dict[str, Any]]:  # fmt: skip
    """Generate all operands of an instruction, as keyword arguments of `mma` or `execute`.

    Parameters
    ----------
    instruction : str or Instruction
    form : {"matrices", "registers"}
        "matrices" for `mma`: "a", "b", "c"; of a sparse A the stored elements, with "metadata" words that are legal and
        a "selector"; of block-scaled instructions "scale_a" and "scale_b", matrices. "registers" for `execute`: the
        same as registers, with "byte_id_a" and so on.
    batch : int or sequence of int
        Leading dimensions of each.
    kind : {"any", "finite", "near", "exact", "ties", "special"}
        Of the values of A, B and C, and of scales, which shrink to 1.
    target : str, optional
        Metadata is such as this target takes: on some the effect of descending indices is not known. By default it is
        such as all targets take.

    Returns
    -------
    SearchStrategy of dict

    Raises
    ------
    WarpmmaError
        No such instruction, or not on this target; an unknown form or kind.

    Examples
    --------
    >>> from hypothesis import given
    >>> from warpmma import mma
    >>> i = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    >>> @given(operands(i, kind="exact"))
    ... def test(given):
    ...     ones = {**given, "c": given["c"] * 0}
    ...     assert (mma(i, **ones, target="sm_80") == mma(i, **ones, target="sm_90")).all()
    >>> test()
    """
    record, lead = parse(instruction), _shape(batch)
    check_choice("form", form, ("matrices", "registers"))
    if target is not None:
        check_target(record, target)
    parts: dict[str, st.SearchStrategy[Array]] = {}
    for operand in OPERANDS[:3]:
        shape = (*lead, *record.layout(operand).shape)
        parts[operand.lower()] = matrices(record.format(operand), shape, kind=kind)
    if record.block_scale:
        scales = weighted(FORMATS[record.stype or ""], kind, simplest=1.0)
        parts["scale_a"] = _matrices(scales, (*lead, record.m, record.scales_per_row))
        parts["scale_b"] = _matrices(scales, (*lead, record.scales_per_row, record.n))

    @st.composite
    def operands_of(draw: Draw) -> dict[str, Any]:
        given = _in_registers(draw, record, parts) if form == "registers" else {x: draw(parts[x]) for x in parts}
        return {**given, **_metadata(draw, record, lead, target)} if record.sparse else given

    return operands_of()


def _loaded(record: Instruction, operand: Operand, matrix: st.SearchStrategy[Array]) -> st.SearchStrategy[Array]:
    # Like this, hypothesis writes a call that can be copied.
    return st.builds(load, st.just(str(record)), st.just(operand), matrix)


def _in_registers(draw: Draw, record: Instruction, parts: dict[str, st.SearchStrategy[Array]]) -> dict[str, Any]:
    """Draw matrices and scales, packed into registers, with byte-ids and thread-ids."""
    given: dict[str, Any] = {x.lower(): draw(_loaded(record, x, parts[x.lower()])) for x in OPERANDS[:3]}
    chosen: dict[str, int] = {}
    for operand in OPERANDS[:2] if record.block_scale else ():
        x = operand.lower()
        ids = {
            "byte_id": draw(st.sampled_from(byte_ids(record))),
            "thread_id": draw(st.sampled_from(thread_ids(operand))),
        }
        each = {name: st.just(value) for name, value in ids.items()}
        given[f"scale_{x}"] = draw(
            st.builds(pack_scales, parts[f"scale_{x}"], st.just(str(record)), st.just(operand), **each)
        )
        chosen |= {f"{name}_{x}": value for name, value in ids.items()}
    return given | chosen


def _metadata(draw: Draw, record: Instruction, lead: tuple[int, ...], target: str | None) -> dict[str, Any]:
    """Draw legal metadata and a selector; other lanes hold anything."""
    values = _metadata_codes(record, target)
    order = values.listed
    selector = draw(st.sampled_from(sparsity.selectors(record)))
    groups = record.k // sparsity.pattern(record).width
    nibbles = draw(drawn_codes(values, (*lead, record.m, groups)))
    rest = np.full((*lead, LANES), draw(st.sampled_from((order[0] * 0x1111_1111, 0, 0xFFFF_FFFF))), np.uint32)
    indices = np.stack([nibbles & 3, nibbles >> 2], axis=-1)
    words = sparsity.pack_metadata(indices, record, selector=selector, into=rest)
    return {"metadata": draw(st.just(Written("uint32", words)).map(array_with)), "selector": selector}


@cache
def _metadata_codes(record: Instruction, target: str | None) -> Weighted:
    codes = frozenset.intersection(*(sparsity.legal_codes(record, t) for t in ([target] if target else record.targets)))
    # Ascending indices before descending ones, low before high.
    order = tuple(sorted(codes, key=lambda code: ((code & 3) > code >> 2, code >> 2, code)))
    return Weighted(listed=order, count=len(order), numbered=np.array(order, np.uint8).__getitem__, name="metadata")


def array_with(written: Written) -> Array:
    """Return an array that hypothesis writes as a call of `testing.array_with`, for it writes this function's name."""
    return written.array


def _matrices(values: Weighted, shape: tuple[int, ...]) -> st.SearchStrategy[Array]:
    return drawn_codes(values, shape).map(lambda codes: Written(values.format, codes)).map(array_with)


def _format(given: str | Format | npt.DTypeLike) -> Format:
    if isinstance(given, FloatFormat | IntegerFormat):
        return given
    if isinstance(given, str) and given in FORMATS:
        return FORMATS[given]
    with suppress(Exception):  # an invalid dtype can raise anything, through its attributes
        dtype = np.dtype(given)
        return next(f for f in FORMATS.values() if f.dtype == dtype and f.name not in ("tf32", "ue4m3", "b1"))
    raise OperandError(
        f"no format {shown(given)}; expected one of {', '.join(FORMATS)}, or their NumPy or ml_dtypes types"
    )


def _shape(given: Any) -> tuple[int, ...]:
    listed = members(given, MOST_DIMENSIONS)
    shape = (given,) if listed is None else tuple(listed)
    good = len(shape) <= MOST_DIMENSIONS and all(is_integer(n) and n >= 0 for n in shape)
    if not good or math.prod(map(int, shape)) > sys.maxsize // 8:
        raise OperandError(f"shape is {shown(given)}; expected non-negative integers")
    return tuple(int(n) for n in shape)
