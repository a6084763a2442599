"""Bitwise comparison in tests, with a report of where arrays differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .._arguments import check_choice, is_integer, members
from .._arrays import MOST_DIMENSIONS, Array, as_array, non_negative
from ..errors import OperandError, WarpmmaError, shown
from ..formats import FORMATS, FloatFormat, Format
from ..isa import Instruction, parse
from ..layouts import OPERANDS, Operand
from .criteria import Close, SameBits
from .difference import View, describe_difference
from .reading import reader

_PAIRS = 2_000  # of mistakes that a failing comparison tries
_INPUTS = (
    "a", "b", "c", "target", "metadata", "selector", "scale_a", "scale_b", "byte_id_a", "thread_id_a", "byte_id_b",
    "thread_id_b", "pairs", "elements", "engine",
)  # fmt: skip


def assert_same_bits(
    actual: npt.ArrayLike, expected: npt.ArrayLike, *, instruction: str | Instruction | None = None,
    operand: Operand = "D", names: tuple[str, str] = ("actual", "expected"), limit: int = 10,
    tile: int | Sequence[int] | None = None, nan: Literal["bits", "any"] = "bits",
    inputs: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Raise `AssertionError`, with a report, unless two arrays are the same bit for bit.

    Parameters
    ----------
    actual, expected : array_like
        NumPy or ml_dtypes arrays, or tensors, of one shape and dtype. With an instruction: matrices of the operand
        (whole ones too, which are taken as tiles of it, from row 0 and column 0 on), raw codes of its elements, or its
        registers `[..., register, 32]`. An f32 D may be what a kernel stored of it, as float16 or bfloat16.
    instruction : str or Instruction, optional
        From which the report derives the lane and register of elements.
    operand : {"A", "B", "C", "D"}
        Which of its operands this is.
    names : tuple of 2 str
        What to call the two in the report.
    limit : int
        How many differing elements to list.
    tile : int or sequence of int, optional
        Elements that one block of the grid writes, along the last axes, such as `(64, 64)`: the report lists the tiles
        with differing elements, by `program_id` along each axis and by number, row by row.
    nan : {"bits", "any"}
        Whether NaN of different sign and payload differ, or all of them are alike. Zeros of different sign differ.
    inputs : dict, optional
        What the instruction should have been given, by the names that `guess` has: `{"a": A, "b": B}`. Then the report
        ends with a guess of what was swapped. Without `"target"` it is the first that gives `expected`.

    Raises
    ------
    AssertionError
        The report: how many elements differ; the first of them with index, values, bits, distance (see `ulps`; of
        integers their difference) and place; where they are: rows and columns, a tile or a triangle if they fill it,
        tiles of the grid, lanes and registers; with an instruction, a mistake that explains all of it, if there is one
        (see `guess`).
    OperandError
        Arrays that have no bits to compare (of objects, say), or that do not go with the operand.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> D = np.ones((16, 8), np.float32)
    >>> wrong = D.copy()
    >>> wrong[[8, 9], 2] = np.nextafter(D[0, 0], 2)
    >>> assert_same_bits(wrong, D, instruction=i)
    Traceback (most recent call last):
        ...
    AssertionError: 2 of 128 elements of D differ (f32, mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32)
       index     actual  expected  actual bits  expected bits  ulps  lane  register
      [8, 2]  1.0000001         1   0x3f800001     0x3f800000    +1     1         2
      [9, 2]  1.0000001         1   0x3f800001     0x3f800000    +1     5         2
    where: rows 8-9; only column 2; lanes 1, 5 (groupID 0-1, threadID_in_group 1); only register 2
    largest difference: 1 ulp, at [8, 2]
    """
    __tracebackhide__ = True
    check_choice("nan", nan, ("bits", "any"))
    view = _view(instruction, operand, names, limit, tile)
    if inputs is not None:
        inputs = _checked_inputs(inputs, view.record, operand)
    report = describe_difference(actual, expected, SameBits(nan == "any"), view)
    if report:
        raise AssertionError(report + _explained(actual, expected, view.record, operand, inputs))


def assert_close(
    actual: npt.ArrayLike, expected: npt.ArrayLike, *, rtol: float, atol: float = 0.0, equal_nan: bool = False,
    instruction: str | Instruction | None = None, operand: Operand = "D",
    names: tuple[str, str] = ("actual", "expected"), limit: int = 10, tile: int | Sequence[int] | None = None,
) -> None:  # fmt: skip
    """Raise `AssertionError`, with a report, unless |actual - expected| <= atol + rtol |expected| for all elements.

    Parameters
    ----------
    actual, expected : array_like
        NumPy or ml_dtypes arrays, or tensors, of one shape: of one dtype, or of two floating-point ones, such as
        bfloat16 and a reference in float64. Differences and tolerances are computed in float64.
    rtol, atol : float
        The tolerance, as of `numpy.testing.assert_allclose` and `torch.testing.assert_close`; there is no default for
        `rtol`. `warpmma.error(A, B, target=...).advise(rtol, atol)` says which wrong products a tolerance lets pass.
    equal_nan : bool
        Whether NaN is close to NaN, whatever its bits; else NaN is close to nothing. Infinity is close only to itself.
        Zeros of different sign are equal.
    instruction, operand, names, limit, tile
        As of `assert_same_bits`.

    Raises
    ------
    AssertionError
        The report: how many elements are not close; the first of them with index, values, difference, what is allowed,
        and distance (see `ulps`; `expected` is rounded to the type of `actual` for it); where they are; the worst one;
        the largest differences; how many are NaN or infinite.
    OperandError
        A tolerance that is not a number of at least 0, arrays that are not numbers, or that do not go with the operand.

    Examples
    --------
    >>> expected = np.ones((256, 256))
    >>> actual = expected.astype(np.float16)
    >>> actual[64:128, :32] += np.float16(0.5)
    >>> assert_close(actual, expected, rtol=1e-3, limit=1, tile=(64, 64))
    Traceback (most recent call last):
        ...
    AssertionError: 2,048 of 65,536 elements are not close (f16 and f64; rtol 0.001, atol 0)
        index  actual  expected  difference  allowed  ulps
      [64, 0]     1.5         1        +0.5    0.001  +512
      and 2,047 more
    where: rows 64-127; columns 0-31 (all 2,048 elements)
    program_id of tiles of 64 x 64: 1 of 16
      (1, 0), number 4: 2,048 of 4,096 elements
    worst: [64, 0], off by 0.5 where 0.001 is allowed, 500 times as much, 512 ulps of f16
    largest difference: 0.5, at [64, 0]; largest relative difference: 0.5, at [64, 0]
    """
    __tracebackhide__ = True
    if not isinstance(equal_nan, bool | np.bool_):
        raise OperandError(f"equal_nan is {shown(equal_nan)}; expected True or False")
    rule = Close(non_negative("rtol", rtol), non_negative("atol", atol), bool(equal_nan))
    report = describe_difference(actual, expected, rule, _view(instruction, operand, names, limit, tile))
    if report:
        raise AssertionError(report)


def ulps(format: str | Format, x: npt.ArrayLike, y: npt.ArrayLike) -> Any:
    """Count the steps from `y` up to `x` along the values of a format, exactly.

    Parameters
    ----------
    format : str or Format
        Such as "f16".
    x, y : array_like
        Of the format's NumPy or ml_dtypes type, or codes, any integers; they broadcast.

    Returns
    -------
    int or None, or ndarray of them
        Negative where x is below y; None where one of them is NaN. The two zeros are one value, and infinity is one
        step beyond the largest number. Of an integer format it is `x - y`.

    Raises
    ------
    OperandError
        An unknown format, arrays that are not of it, or shapes that do not broadcast.

    Examples
    --------
    >>> ulps("f32", np.float32(1), np.nextafter(np.float32(1), np.float32(2)))
    -1
    >>> ulps("e4m3", [0x01, 0x00, 0x7E, 0x7F], [0x81, 0x80, 0xFE, 0x00])
    array([2, 0, 252, None], dtype=object)
    >>> ulps("f64", np.inf, -np.inf) == 2 * 0x7FF0_0000_0000_0000
    True
    """
    fmt = FORMATS[format] if isinstance(format, str) else format
    if not isinstance(fmt, Format):
        raise OperandError(f"no format {shown(format)}; expected one of {', '.join(FORMATS)}")
    read = reader(fmt)
    (of_x, nan_x), (of_y, nan_y) = (read.order(read.codes(_raw(fmt, z))) for z in (x, y))
    try:
        shape = np.broadcast_shapes(of_x.shape, of_y.shape)
    except ValueError:
        raise OperandError(f"{fmt.name}: shapes {of_x.shape} and {of_y.shape} do not broadcast") from None
    steps = np.empty(shape, object)
    steps[...] = of_x.astype(object) - of_y.astype(object)  # Python's integers: f64's do not fit 64 bits
    steps[np.broadcast_to(nan_x | nan_y, shape)] = None
    return steps if shape else steps.item()


def _view(instruction: Any, operand: Any, names: Any, limit: Any, tile: Any) -> View:
    """Check the arguments that the two assertions share."""
    listed = members(names, 2)
    if listed is None or len(listed) != 2 or not all(isinstance(x, str) for x in listed):
        raise OperandError(f"names are {shown(names)}; expected two strings")
    if not is_integer(limit) or limit < 0:
        raise OperandError(f"limit is {shown(limit)}; expected how many elements to list")
    sides = [] if tile is None else [tile] if is_integer(tile) else members(tile, MOST_DIMENSIONS)
    if sides is None or (tile is not None and not sides) or not all(is_integer(x) and x > 0 for x in sides):
        raise OperandError(f"tile is {shown(tile)}; expected sides of a tile, such as (64, 64)")
    check_choice("operand", operand, OPERANDS)
    record = None if instruction is None else parse(instruction)
    return View(record=record, operand=operand, names=tuple(listed), limit=int(limit), tile=tuple(map(int, sides)))


def _explained(
    actual: npt.ArrayLike, expected: npt.ArrayLike, record: Instruction | None, operand: Operand,
    inputs: Mapping[str, Any] | None,
) -> str:  # fmt: skip
    """Name the mistake that explains the difference; nothing if not requested or without a match."""
    from .guessing import guess, guess_fragment, target_of  # only differences need them

    x, y = as_array(actual, "actual"), as_array(expected, "expected")
    if record is None or x.shape != y.shape or x.dtype != y.dtype:
        return ""
    if inputs is None:
        try:
            found = guess_fragment(record, operand, x, y)
        except OperandError:  # parts of tiles at the end
            return ""
        return f"\n{found}" if found.mistakes else ""
    given = {"pairs": _PAIRS, **inputs}
    target, note = given.pop("target", None), ""
    try:
        if target is None:
            target = target_of(record, y, given)
        if target is None:
            target = "sm_90" if "sm_90" in record.targets else record.targets[-1]
            note = f"note: no target gives the expected result for these inputs; guessed with {target}\n"
        return f"\n{note}{guess(record, **given, got=x, target=target)}"
    except WarpmmaError as error:
        return f"\nguess: none, as the inputs are wrong: {error}"


def _checked_inputs(inputs: object, record: Instruction | None, operand: Operand) -> dict[str, Any]:
    """Refuse inputs that `guess` does not take, whether it is needed or not."""
    named: dict[str, Any] | None = None
    if record is not None and operand == "D" and isinstance(inputs, Mapping):
        with suppress(Exception):  # its own methods may fail
            named = dict(inputs)
    if named is None:
        raise OperandError(f"inputs is {shown(inputs)}; expected a dict, with an instruction and operand D")
    wrong = [name for name in named if not isinstance(name, str) or name not in _INPUTS]
    missing = [name for name in ("a", "b") if name not in named]
    if wrong or missing:
        which = f"no {missing[0]!r}" if missing else shown(wrong[0])
        raise OperandError(f"inputs has {which}; expected 'a' and 'b', and of {', '.join(_INPUTS[2:])} what is needed")
    return named


def _raw(fmt: Format, x: npt.ArrayLike) -> Array:
    """Make codes of any integers, if they fit; leave alone what is not an integer."""
    array = as_array(x, fmt.name)
    if not isinstance(fmt, FloatFormat) or array.dtype.kind not in "iu":
        return array
    if array.size and not 0 <= int(array.min()) <= int(array.max()) <= fmt.mask:
        raise OperandError(f"{fmt.name}: codes go from {array.min()} to {array.max()}; expected 0 to {fmt.mask:#x}")
    return array.astype(fmt.code_dtype)
