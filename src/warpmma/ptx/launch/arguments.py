"""Arguments of a launch: from Python's values to the bytes of the entry's parameters.

The rules:

1. An argument takes the type that the entry declares. Integers of u, s and b types fit their bits, signed or not: -1
   and 4294967295 are the same in 32. A bool is 0 or 1.
2. f types take floats, rounded to nearest, and integers that they hold. b32 and b64 take floats, too, as f32 and f64;
   other b types a NumPy scalar of their width, for its bits.
3. A parameter of 64 bits takes arrays: of the device their address; others lie in global memory for the launch, and are
   read and written in place. `Output(array)` holds nothing before. None is a null pointer.
4. A parameter that is an array of a type, as a struct is, takes as many bytes: `bytes`, or a structured NumPy scalar.
5. Where C++ declares what a pointer leads to (`cpp_types`), an array of elements that contradict it is an error
   (`machine.contradicts`). An empty array contradicts nothing.
6. Names of parameters are those of the source, where it is known, or of the text, unless nvcc numbered them. A mapping
   has arguments by these names; where there are none, by "param_0" and so on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._arguments import is_integer, suggestion
from ..._text import counted
from ...errors import OperandError, shown
from ...kernel import Output
from ...machine import DeviceArray, GlobalMemory, contradicts, expected, fits
from ...operations import float_code
from ..lower import EntryParameters
from ..names import source_name
from ..text import Declaration, Function, Position, Variable, bytes_of
from .cpp_types import declaration, declared_types, element_of

_FLOATS = {"f16": "f16", "f32": "f32", "f64": "f64", "bf16": "bf16"}
_OF_BITS = {"b32": "f32", "b64": "f64"}


class ArgumentError(OperandError):
    """Arguments that do not fit what stands at `position`."""

    def __init__(self, message: str, position: Position) -> None:
        super().__init__(message)
        self.position = position


def signature(function: Function, names: Sequence[str] = ()) -> str:
    """Write an entry's name and parameters: as C++ declares them where its name says it, else as its text does.

    Parameters
    ----------
    function : Function
    names : sequence of str
        Of the parameters in the source; none where they are not known.

    Examples
    --------
    >>> from warpmma.ptx import read
    >>> text = ".version 8.0 .target sm_80 .entry k(.param .u64 p, .param .align 4 .b8 q[8]) { ret; }"
    >>> signature(read(text).functions["k"])
    'k(.u64 p, .b8 q[8])'
    >>> text = ".version 8.0 .target sm_80 .entry _Z1kPKfi(.param .u64 _Z1kPKfi_param_0, .param .u32 n) { ret; }"
    >>> signature(read(text).functions["_Z1kPKfi"], ["x", "n"])
    'k(const float* x, int n)'
    """
    types = declared_types(function)
    name = source_name(function.name) if types else function.name
    return f"{name}({', '.join(_parameter(function, i, names) for i in range(len(function.parameters)))})"


def _parameter(function: Function, i: int, names: Sequence[str]) -> str:
    types, declared = declared_types(function), function.parameters[i]
    if types:
        return declaration(types[i], names[i] if names else "")
    dimensions = (declared.dimensions or ()) if isinstance(declared, Variable) else ()
    space = declared.pointer[0] if isinstance(declared, Variable) and declared.pointer else ""
    name = names[i] if names else declared.name.removeprefix(f"{function.name}_")
    return f".{declared.type}{f' .ptr .{space}' * bool(space)} {name}{''.join(f'[{n}]' for n in dimensions)}"


def parameter_names(function: Function) -> tuple[str, ...]:
    """Return what the text calls an entry's parameters; none where nvcc numbered them."""
    names = tuple(x.name for x in function.parameters)
    return () if any(re.search(r"_param_\d+$", x, re.ASCII) for x in names) else names


def in_order(function: Function, args: Any, names: Sequence[str]) -> Any:
    """Put arguments that are given by name in the order of the parameters (rule 6); others are as they are.

    Raises
    ------
    ArgumentError
        A name that no parameter has, or a parameter without an argument.
    """
    if not isinstance(args, Mapping):
        return args
    known = list(names) or [x.name.removeprefix(f"{function.name}_") for x in function.parameters]
    who = signature(function, names)
    if strangers := [x for x in args if x not in known]:
        listed = f"it has {', '.join(known)}" if known else "it has none"
        text = f"{who} has no parameter {shown(strangers[0])}{suggestion(strangers[0], known) or ';'} {listed}"
        raise ArgumentError(text, function.position)
    if missing := [x for x in known if x not in args]:
        raise ArgumentError(f"{who} needs an argument for {', '.join(missing)}", function.position)
    return [args[x] for x in known]


def parameter_bytes(function: Function, args: Sequence[Any], memory: GlobalMemory, names: Sequence[str] = ()) -> bytes:
    """Return the bytes of an entry's parameters.

    Raises
    ------
    ArgumentError
        Arguments of another number, type or size than the entry declares.
    """
    if len(args) != len(function.parameters):
        takes = f"{source_name(function.name)} takes {counted(len(function.parameters), 'argument')}"
        raise ArgumentError(f"{takes}, {signature(function, names)}; got {len(args)}", function.position)
    layout, types = EntryParameters(function), declared_types(function)
    data = bytearray(layout.size)
    for i, (x, declared) in enumerate(zip(args, function.parameters, strict=True)):
        offset, size = layout.places[declared.name]
        who = _Argument(function, i, names)
        try:
            if types:
                _check_elements(x, element_of(types[i]), who)
            data[offset : offset + size] = _encoded(x, declared, size, memory, names[i] if names else f"args[{i}]", who)
        except OperandError as error:
            raise ArgumentError(str(error), declared.position) from None
    return bytes(data)


class _Argument:
    """An argument, as errors call it: written out only then."""

    def __init__(self, function: Function, number: int, names: Sequence[str]) -> None:
        self._function, self._number, self._names = function, number, names

    def __str__(self) -> str:
        declared = _parameter(self._function, self._number, self._names)
        return f"args[{self._number}] of {signature(self._function, self._names)}, {declared},"


def _check_elements(x: Any, declared: str, who: _Argument) -> None:
    """Rule 5."""
    array = x.array if isinstance(x, Output) else x
    if not isinstance(array, DeviceArray | np.ndarray) or 0 in array.shape:
        return
    if contradicts(declared, array.dtype.name):
        raise OperandError(f"{who} is an array of {array.dtype}; expected {expected(declared)}")


def _encoded(x: Any, declared: Declaration, size: int, memory: GlobalMemory, name: str, who: _Argument) -> bytes:
    if isinstance(declared, Variable) and (declared.dimensions is not None or declared.vector > 1):
        return _struct(x, size, who)
    type_ = declared.type
    if isinstance(x, Output | DeviceArray) or (isinstance(x, np.ndarray) and x.ndim) or x is None:
        if bytes_of(type_) != 8 or type_ == "f64":
            raise OperandError(f"{who} is {_kind(x)}; expected a number")
        return _address(x, memory, name).to_bytes(8, "little")
    if isinstance(x, np.ndarray):
        x = x[()]
    return _number(x, type_, who).to_bytes(size, "little")


def _kind(x: object) -> str:
    return "None" if x is None else f"an array ({type(x).__name__})"


def _address(x: Any, memory: GlobalMemory, name: str) -> int:
    """Rule 3."""
    if x is None:
        return 0
    if isinstance(x, DeviceArray):
        memory.call(x.address, name, x.shape, x.dtype)
        return x.address
    return memory.add(x.array, name, written=False) if isinstance(x, Output) else memory.add(x, name)


def _struct(x: Any, size: int, who: _Argument) -> bytes:
    """Rule 4."""
    if isinstance(x, np.ndarray | np.generic):
        x = x.tobytes()
    if not isinstance(x, bytes | bytearray | memoryview):
        raise OperandError(
            f"{who} is {type(x).__name__}; expected {size} bytes, or a structured NumPy scalar of as many"
        )
    data = bytes(x)
    if len(data) != size:
        raise OperandError(f"{who} is {len(data)} bytes; expected {size}")
    return data


def _number(x: Any, type_: str, who: _Argument) -> int:
    """Rules 1 and 2."""
    bits = 8 * bytes_of(type_)
    if isinstance(x, bool | np.bool_) and type_ not in _FLOATS:
        return int(x)
    if type_ in _FLOATS:
        return _float(x, type_, who)
    if is_integer(x):
        if not fits(int(x), bits):
            raise OperandError(f"{who} is {shown(x)}; expected an integer of {bits} bits, {_range(bits)}")
        return int(x) & ((1 << bits) - 1)
    if type_ in _OF_BITS and isinstance(x, float | np.floating) and not (bits == 64 and _narrow(x)):
        return _float(x, _OF_BITS[type_], who)
    if type_[0] == "b" and isinstance(x, np.generic) and x.dtype.itemsize * 8 == bits and x.dtype.kind in "fV":
        return int.from_bytes(x.tobytes(), "little")
    array = "; or an array: of NumPy, or of the device (device.array)" if bits == 64 else ""
    raise OperandError(
        f"{who} is {shown(x)} ({type(x).__name__}); expected an integer of {bits} bits, {_range(bits)}{array}"
    )


def _narrow(x: Any) -> bool:
    return isinstance(x, np.floating) and x.dtype.itemsize < 8


def _range(bits: int) -> str:
    return f"{-(1 << (bits - 1))} to {(1 << bits) - 1}"


def _float(x: Any, type_: str, who: _Argument) -> int:
    if isinstance(x, np.generic) and x.dtype.kind == "V":  # bfloat16 and its like
        x = float(x)
    if is_integer(x) and not isinstance(x, bool):
        if abs(int(x)) > 1 << 64 or float(int(x)) != int(x):
            raise OperandError(f"{who} is {shown(x)}, which no .{type_} is; expected a float")
        x = float(x)
    if not isinstance(x, float | np.floating):
        raise OperandError(f"{who} is {shown(x)} ({type(x).__name__}); expected a float")
    if type_ in ("f32", "f64"):
        with np.errstate(all="ignore"):  # rounding is the caller's wish
            return int(np.array(x, f"f{int(type_[1:]) // 8}").view(f"u{int(type_[1:]) // 8}"))
    return float_code(type_, float(x), str(who))
