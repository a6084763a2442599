"""Operations on arrays of numbers of any shape, without lanes and registers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._arrays import Array, as_array, broadcast
from .._text import counted
from ..errors import MnemonicError, OperandError
from ..formats import FloatFormat
from ..isa import TYPE_WORDS
from .elements import TYPES, float_code
from .records import DTYPES, Operation
from .table import operation

_PART = 1 << 17  # elements at a time, to limit the memory of intermediate arrays


def elementwise(mnemonic: str, *operands: npt.ArrayLike, target: str | None = None) -> Array:
    """Compute an operation on every element: `ex2.approx.ftz.f32` of an array of float32.

    Parameters
    ----------
    mnemonic : str
        Of an operation with one result, on registers that each hold one number, in which lanes are independent:
        arithmetic, conversions, comparisons, approximate functions.
    *operands : array_like
        Arrays of the operands' types (float32 for f32, ml_dtypes' bfloat16 for bf16), or codes as unsigned integers;
        bool for a predicate. They broadcast. A Python float is a value of the type, as in a kernel: f32 and f64 round
        it.
    target : str, optional
        Such as "sm_90a": checks that it has the instruction.

    Returns
    -------
    ndarray
        Of the type that the mnemonic names first, or bool for a predicate. A result of another type (of `mul.wide`, or
        two packed numbers) is a register, as an unsigned integer.

    Raises
    ------
    MnemonicError, TargetError
        See `operation`; or an operation on packed registers, on immediates or across the lanes of a warp.
    OperandError
        A wrong number of operands or dtype; a float that the type cannot represent; shapes that do not broadcast, or
        whose result does not fit into memory.

    Examples
    --------
    >>> import numpy as np
    >>> elementwise("ex2.approx.ftz.f32", np.float32([1.5, -1, 0.3]))
    array([2.828427 , 0.5      , 1.2311444], dtype=float32)
    >>> elementwise("div.full.f32", np.float32([1, 2]), np.float32([[3], [7]])).tolist()
    [[0.3333333432674408, 0.6666666865348816], [0.1428571492433548, 0.2857142984867096]]
    """
    row = operation(mnemonic, target)
    if row.lanes or len(row.outputs) != 1 or any(type_ not in TYPES and type_ != "pred" for type_ in row.types):
        raise MnemonicError(f"{row.mnemonic}: its operands are not arrays of numbers; call operation({row.mnemonic!r})")
    if packed := [type_ for type_ in row.types if type_ != "pred" and TYPES[type_].count > 1]:
        single = _of_one_number(row.mnemonic, packed[0])
        raise MnemonicError(
            f"{row.mnemonic}: {packed[0]} is two numbers; take the form of one{single}, or call "
            f"operation({row.mnemonic!r})"
        )
    if len(operands) != len(row.types):
        raise OperandError(
            f"{row.mnemonic} takes {counted(len(row.types), 'operand')} ({row.syntax}); got {len(operands)}"
        )
    words = broadcast(row.mnemonic, [_words(row, i, x) for i, x in enumerate(operands)])
    flat = [x.reshape(-1) for x in words]
    result = np.empty(flat[0].shape, DTYPES[row.outputs[0]])
    for start in range(0, len(result), _PART):
        part = slice(start, start + _PART)
        (result[part],) = row.compute(*(x[part] for x in flat))
    return _numbers(row, result).reshape(words[0].shape)


def _of_one_number(mnemonic: str, packed: str) -> str:
    """Name the operation on a packed type's elements, if there is one."""
    single = ".".join(word.removesuffix("x2") if word == packed else word for word in mnemonic.split("."))
    try:
        return f", {operation(single)}"
    except MnemonicError:
        return ""


def _words(row: Operation, position: int, operand: npt.ArrayLike) -> Array:
    """Return registers that hold the elements of an operand."""
    name, type_, kind = f"{row.mnemonic}: operand {position}", row.types[position], row.inputs[position]
    if type(operand) is float and type_ in TYPES and isinstance(TYPES[type_].fmt, FloatFormat):
        return np.asarray(float_code(type_, operand, name), DTYPES[kind])
    array = as_array(operand, name)
    if type_ == "pred":
        if array.dtype != bool:
            raise OperandError(f"{name} is {array.dtype}; expected bool")
        return array
    try:
        codes = TYPES[type_].fmt.codes(array)
    except OperandError as error:
        raise OperandError(f"{name}: {error}") from None
    return np.asarray(codes, DTYPES[kind])


def _numbers(row: Operation, registers: Array) -> Array:
    """Return a result's registers as numbers of the mnemonic's first type; unchanged if the result has another type."""
    first = TYPES.get(next((word for word in row.mnemonic.split(".") if word in TYPE_WORDS), ""))
    if row.outputs[0] == "pred" or first is None or first.register != row.outputs[0] or first.count > 1:
        return registers
    return first.fmt.array(first.split(registers)[0])
