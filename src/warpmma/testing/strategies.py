"""Strategies for hypothesis: matrices, fragments and all operands of an instruction.

This module is the only one that imports hypothesis, which must be installed (`pip install hypothesis`).

Values are weighted towards what breaks kernels: zeros of both signs, subnormals, the ends of the format, NaN with
payloads, neighbours of 1 and powers of two that make ties. `kind` narrows them:

"any"
    Every bit pattern.
"finite"
    No NaN and no infinity.
"near"
    Zeros, and 2**-4 to 2**4 in magnitude, as far as the format has it; of integers -8 to 8.
"exact"
    Integers from -4 to 4, of which sums of products are exact in every accumulator.
"ties"
    Powers of two, and the neighbours of 1: sums of their products lie half way between two results.
"special"
    Zeros, ones, the least and the largest numbers, infinities and NaN; of integers the ends.

A large matrix is made of a few codes and of random ones, in a block outside of which it is +0, and of some elements
that are chosen one by one: NaN and infinities are mostly among these, or every sum would be NaN. So a failing example
shrinks to few elements, the rest +0; those of a small matrix shrink to small numbers too.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from .. import sparsity
from .._arguments import check_choice, is_integer, members
from .._arrays import MOST_DIMENSIONS
from ..arithmetic import reversed_unknown
from ..errors import OperandError, shown
from ..execution import load
from ..formats import FORMATS, FloatFormat, Format, IntegerFormat
from ..isa import Instruction, check_target, parse
from ..layouts import OPERANDS, Operand
from ..registers import LANES
from ..scaling import byte_ids, pack_scales, thread_ids
from .written import Written

__all__ = ["KINDS", "Kind", "fragments", "matrices", "operands"]

Array = npt.NDArray[Any]
Draw = st.DrawFn
Kind = Literal["any", "finite", "near", "exact", "ties", "special"]

KINDS: tuple[Kind, ...] = ("any", "finite", "near", "exact", "ties", "special")
"""Kinds of values."""

_FEW = 24  # elements that are drawn one by one
_PALETTE = 6  # codes of a larger matrix
_ALONE = 4  # its elements that are drawn one by one


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
        An unknown format or kind, or a shape that is none.

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(matrices("f16", (16, 8), kind="finite"))
    ... def test(A):
    ...     assert A.shape == (16, 8) and np.isfinite(A).all()
    >>> test()
    """
    values = _values(_format(format), kind)
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
        Metadata is such as this target takes: some do not say what they make of descending indices. By default it is
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
        scales = _values(FORMATS[record.stype or ""], kind, simplest=1.0)
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
    """Draw legal metadata and a selector; what the selector leaves out is anything."""
    codes = sparsity.legal_codes(record)
    if any(reversed_unknown(record, t) for t in ([target] if target else record.targets)):
        codes &= sparsity.SORTED_CODES
    # Ascending indices before descending ones, low before high.
    order = tuple(sorted(codes, key=lambda code: ((code & 3) > code >> 2, code >> 2, code)))
    values = _Values(listed=order, count=len(order), numbered=np.array(order, np.uint8).__getitem__, name="metadata")
    selector = draw(st.sampled_from(sparsity.selectors(record)))
    groups = record.k // sparsity.pattern(record).width
    nibbles = draw(_arrays(values, (*lead, record.m, groups)))
    rest = np.full((*lead, LANES), draw(st.sampled_from((order[0] * 0x1111_1111, 0, 0xFFFF_FFFF))), np.uint32)
    indices = np.stack([nibbles & 3, nibbles >> 2], axis=-1)
    words = sparsity.pack_metadata(indices, record, selector=selector, into=rest)
    return {"metadata": draw(st.just(Written("uint32", words)).map(array_with)), "selector": selector}


# Values of a format and a kind

_MILDER: dict[Kind, tuple[Kind, ...]] = {"any": ("near", "ties", "finite"), "finite": ("near", "ties")}


@dataclass(frozen=True, kw_only=True)
class _Values:
    """Codes to choose from.

    `listed` are those that get more weight, the simplest first. There are `count` in all, and `numbered` maps 0 to
    count - 1 to them, small ones first. `milder` are choices that most of a large array is made of, so that a NaN or
    the largest number is not in every sum.
    """

    name: str
    listed: tuple[int, ...]
    count: int
    numbered: Callable[[Array], Array]
    format: str = ""
    milder: tuple[_Values, ...] = ()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # as hypothesis writes it in its messages
        printer.text(self.name)

    @cached_property
    def codes(self) -> st.SearchStrategy[int]:
        """Generate single codes."""
        one = st.integers(0, self.count - 1).map(lambda n: int(self.numbered(np.array(n, np.uint64))))
        return st.one_of(st.sampled_from(self.listed), one)

    def random(self, words: Array) -> Array:
        """Make a code of each of 64 random bits; all are as likely as 2**64 allows."""
        return self.numbered(words % np.uint64(self.count) if self.count < 1 << 64 else words)


def _values(fmt: Format, kind: Kind, simplest: float = 0.0) -> _Values:
    check_choice("kind", kind, KINDS)
    return _cached_values(fmt, kind, simplest)


@cache
def _cached_values(fmt: Format, kind: Kind, simplest: float) -> _Values:
    few = _few_floats(fmt, kind) if isinstance(fmt, FloatFormat) else _few_integers(fmt, kind)
    start = int(fmt.encode(simplest if not isinstance(fmt, FloatFormat) or fmt.subnormals else 1.0))
    listed = tuple(dict.fromkeys([start, *few]))
    milder = tuple(_values(fmt, k, simplest) for k in _MILDER.get(kind, ()))
    made = partial(_Values, name=f"{kind} {fmt.name}", listed=listed, format=fmt.name, milder=milder)
    if kind in ("exact", "ties", "special"):
        return made(count=len(listed), numbered=np.array(listed, fmt.code_dtype).__getitem__)
    if isinstance(fmt, IntegerFormat):
        least, greatest = (fmt.least, fmt.greatest) if kind != "near" else (max(fmt.least, -8), min(fmt.greatest, 8))
        both = min(-least, greatest)  # 0, 1, -1, 2, -2 and so on as far as both signs go, then the rest

        def integer(n: Array) -> Array:
            n = n.astype(np.int64)
            pair = np.where(n & 1, (n + 1) >> 1, -(n >> 1))
            beyond = n - 2 * both
            return fmt.encode(np.where(n <= 2 * both, pair, beyond + both if greatest > both else -beyond - both))

        return made(count=greatest - least + 1, numbered=integer)
    # A code is a magnitude, and a sign in the bit below it: +0, -0, the least, and so on.
    low, high = 0, (fmt.sign_bit or 1 << fmt.bits) - 1
    if kind == "finite":
        high = fmt.max_code | (1 << fmt.padding) - 1
    elif kind == "near":
        low, high = (int(fmt.encode(value, "rz", overflow="saturate")) for value in (2.0**-4, 2.0**4))
    signs = 2 if fmt.signed else 1

    def code(n: Array) -> Array:
        magnitude = n // np.uint64(signs) + np.uint64(low)
        negative = n % np.uint64(signs) * np.uint64(fmt.sign_bit)
        return np.asarray(magnitude | negative).astype(fmt.code_dtype)

    return made(count=(high - low + 1) * signs, numbered=code)


def _value(fmt: FloatFormat, code: int) -> float:
    return float(fmt.decode(np.array(code, fmt.code_dtype)))


def _few_floats(fmt: FloatFormat, kind: Kind) -> tuple[int, ...]:
    """Codes that get more weight, the simplest first."""
    step, one = 1 << fmt.padding, int(fmt.encode(1.0))

    def both(*magnitudes: int) -> list[int]:
        return [m | sign for m in magnitudes for sign in dict.fromkeys((0, fmt.sign_bit))]

    def exactly(values: Sequence[float]) -> list[int]:
        wanted = [v for v in values if v >= 0 or fmt.signed]
        codes = [int(c) for c in np.atleast_1d(fmt.encode(wanted, overflow="saturate"))]
        return [c for c, v in zip(codes, wanted, strict=True) if _value(fmt, c) == v]

    small = exactly([0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 4.0, -4.0])
    if kind == "exact":
        return tuple(small)
    zeros = both(0) if fmt.subnormals else []
    near = both(one, one + step, one - step) + exactly([0.5, -0.5, 1.5, -1.5])
    powers = [2.0**e for e in range(0, -27, -1)]
    ties = exactly([x for p in powers for x in (p, -p)])
    if kind == "ties":
        return (*zeros, *near[: 6 if fmt.signed else 3], *ties)
    if kind == "near":
        several = (*small, *zeros, *near, *ties)
        return tuple(c for c in several if c in zeros or 2.0**-4 <= abs(_value(fmt, c)) <= 2.0**4)
    normal = 1 << fmt.fraction_bits + fmt.padding  # the least normal number
    edges = [step, normal - step, normal] if fmt.subnormals else [0]
    ends = both(*edges, fmt.max_code - step, fmt.max_code)
    if kind != "finite":
        ends += both(*(x for x in (fmt.inf_code, fmt.nan_code) if x is not None))
        ends += both(fmt.inf_code + step, fmt.inf_code + normal // 2) if fmt.inf_code is not None else []
    if kind == "special":
        return (*zeros, *both(one), *ends)
    return (*small, *zeros, *near, *ends, *ties)


def _few_integers(fmt: IntegerFormat, kind: Kind) -> tuple[int, ...]:
    few = [0, 1, -1, 2, -2, 3, -3, 4, -4]
    ends = [fmt.greatest, fmt.least, fmt.greatest - 1, fmt.least + 1]
    chosen = {"exact": few, "ties": few, "near": few, "special": [0, 1, -1, *ends]}.get(kind, few + ends)
    return tuple(int(fmt.encode(v)) for v in chosen if fmt.least <= v <= fmt.greatest)


# Arrays


def array_with(written: Written) -> Array:
    """Return an array that hypothesis writes as a call of `testing.array_with`, for it writes this function's name."""
    return written.array


def _matrices(values: _Values, shape: tuple[int, ...]) -> st.SearchStrategy[Array]:
    return _arrays(values, shape).map(lambda codes: Written(values.format, codes)).map(array_with)


@st.composite
def _arrays(draw: Draw, values: _Values, shape: tuple[int, ...]) -> Array:
    """Generate codes: few of them one by one; many from a palette, in a block outside of which all is simple."""
    size, simplest = math.prod(shape), values.listed[0]
    if size <= _FEW:
        return _array([draw(values.codes) for _ in range(size)], values).reshape(shape)
    most = draw(st.sampled_from((*values.milder, values)))
    # An entry is random codes or one, in this order: so hypothesis tries the one while it is not yet shrunk.
    palette = draw(st.lists(st.tuples(st.booleans(), most.codes), min_size=1, max_size=_PALETTE))
    seed = draw(st.integers(0, 2**32 - 1))
    words = np.random.Generator(np.random.Philox(seed)).integers(0, 2**64 - 1, (2, *shape), np.uint64, endpoint=True)
    # Seed 0 puts the palette's first everywhere.
    which = (words[0] % np.uint64(len(palette))).astype(np.intp) if seed else np.zeros(shape, np.intp)
    chosen, free = _array([code for _, code in palette], values), np.array([random for random, _ in palette])
    out = np.where(free[which], most.random(words[1]), chosen[which])
    for axis, length in enumerate(shape):
        # The block mostly is everything. It shrinks from its end, and then from its beginning.
        last, kept = min(draw(st.integers(0, 8 * length)), length - 1), draw(st.integers(1, 8 * length))
        out[(slice(None),) * axis + (slice(last + 1, None),)] = simplest
        out[(slice(None),) * axis + (slice(0, max(0, last + 1 - kept)),)] = simplest
    for place, code in draw(st.lists(st.tuples(st.integers(0, size - 1), values.codes), max_size=_ALONE)):
        out.flat[place] = code
    return out


def _array(codes: Sequence[int], values: _Values) -> Array:
    return np.array(codes, np.uint64).astype(values.numbered(np.zeros(1, np.uint64)).dtype)


def _format(given: str | Format | npt.DTypeLike) -> Format:
    if isinstance(given, FloatFormat | IntegerFormat):
        return given
    if isinstance(given, str) and given in FORMATS:
        return FORMATS[given]
    with suppress(Exception):  # what is no dtype can raise anything, by attributes of its own
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
