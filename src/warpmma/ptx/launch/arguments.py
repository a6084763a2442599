"""Arguments of a launch: from Python's values to the bytes of the entry's parameters.

The rules:

1. An argument takes the type that the entry declares. Integers of u, s and b types fit their bits, signed or not: -1
   and 4294967295 are the same in 32. A bool is 0 or 1.
2. f types take floats, rounded to nearest, and integers that they hold. b32 and b64 take floats, too, as f32 and f64;
   other b types a NumPy scalar of their width, for its bits.
3. A parameter of 64 bits takes arrays: of the device their address; others lie in global memory for the launch, and are
   read and written in place. `Output(array)` holds nothing before. None is a null pointer.
4. A parameter that is an array of a type, as a struct is, takes as many bytes: `bytes`, a structured NumPy scalar, or
   of 128 bytes a `TensorMap`.
5. Where C++ declares what a pointer leads to (`cpp_types`), an array of elements that contradict it is an error
   (`machine.contradicts`). An empty array contradicts nothing.
6. Names of parameters are those of the source, where it is known, or of the text, unless nvcc numbered them. A mapping
   has arguments by these names; where there are none, by "param_0" and so on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._arguments import is_integer, suggestion
from ..._records import Shown
from ..._text import counted
from ...errors import OperandError, shown
from ...kernel import Output
from ...layouts import TensorMap
from ...machine import DeviceArray, GlobalMemory, contradicts, expected, fits
from ...operations import float_code
from ..lower import EntryParameters
from ..names import source_name
from ..text import Declaration, Function, Module, Position, Variable, bytes_of
from .cpp_types import declaration, declared_types, element_of

_FLOATS = {"f16": "f16", "f32": "f32", "f64": "f64", "bf16": "bf16"}
_OF_BITS = {"b32": "f32", "b64": "f64"}


class ArgumentError(OperandError):
    """Arguments that do not fit the parameters of an entry."""


@dataclass(frozen=True, kw_only=True)
class Parameter(Shown):
    """A parameter of an entry.

    Attributes
    ----------
    name : str
        In the source where it is known, else in the text without the entry's name before it.
    type : str
        PTX type of an element: "u64", "f32"; of a struct "b8".
    offset, size : int
        Bytes: where it lies in the parameters of the entry, and how many it has.
    declared : str
        Its type in C++, "const float*"; "" where the entry's name does not say it.
    element : str
        Type of the numbers that a pointer leads to, "float32"; "" where it is not known.
    space : str
        State space that a pointer leads to, of `.ptr .global`; "" where the text does not say it.
    """

    name: str
    type: str
    offset: int
    size: int
    declared: str = ""
    element: str = ""
    space: str = ""


class Signature:
    """An entry's name and parameters.

    It is written as C++ declares the entry where its name says it, else as its text does.

    Examples
    --------
    >>> from warpmma.ptx import read
    >>> text = ".version 8.0 .target sm_80 .entry k(.param .u64 p, .param .align 4 .b8 q[8]) { ret; }"
    >>> str(Signature(read(text), "k"))
    'k(.u64 p, .b8 q[8])'
    >>> text = ".version 8.0 .target sm_80 .entry _Z1kPKfi(.param .u64 _Z1kPKfi_param_0, .param .u32 n) { ret; }"
    >>> str(Signature(read(text), "_Z1kPKfi", ["x", "n"]))
    'k(const float* x, int n)'
    """

    def __init__(self, module: Module, name: str, names: Sequence[str] = ()) -> None:
        self.function, self._module, self._names = module.functions[name], module, tuple(names)
        layout, self._types = EntryParameters(self.function), declared_types(self.function)
        self.size = layout.size
        self.parameters = tuple(
            self._parameter(i, x, *layout.places[x.name]) for i, x in enumerate(self.function.parameters)
        )
        self._each = [
            (one, declared, one.name if names else f"args[{i}]")
            for i, (one, declared) in enumerate(zip(self.parameters, self.function.parameters, strict=True))
        ]

    def _parameter(self, i: int, x: Declaration, offset: int, size: int) -> Parameter:
        declared = self._types[i] if self._types else ""
        space = x.pointer[0] if isinstance(x, Variable) and x.pointer else ""
        name = self._names[i] if self._names else x.name.removeprefix(f"{self.function.name}_")
        return Parameter(
            name=name, type=x.type, offset=offset, size=size, declared=declared,
            element=element_of(declared) if declared else "", space=space,
        )  # fmt: skip

    def __str__(self) -> str:
        name = source_name(self.function.name) if self._types else self.function.name
        return f"{name}({', '.join(map(self.written, range(len(self.parameters))))})"

    def written(self, i: int) -> str:
        """Write a parameter as its declaration does."""
        one, declared = self.parameters[i], self.function.parameters[i]
        if one.declared:
            return declaration(one.declared, one.name if self._names else "")
        dimensions = (declared.dimensions or ()) if isinstance(declared, Variable) else ()
        space = f" .ptr .{one.space}" if one.space else ""
        return f".{one.type}{space} {one.name}{''.join(f'[{n}]' for n in dimensions)}"

    def _fail(self, message: str, position: Position) -> ArgumentError:
        return ArgumentError(f"{self._module.place(position)}: {message}")

    def in_order(self, args: Any) -> Sequence[Any]:
        """Put arguments, given in order or by name, in the order of the parameters (rule 6); raise `OperandError`."""
        if isinstance(args, list | tuple):
            return args
        if isinstance(args, Mapping):
            known = [x.name for x in self.parameters]
            if strangers := [x for x in args if x not in known]:
                listed = f"it has {', '.join(known)}" if known else "it has none"
                near = suggestion(strangers[0], known) or ";"
                raise self._fail(
                    f"{self} has no parameter {shown(strangers[0])}{near} {listed}", self.function.position
                )
            if missing := [x for x in known if x not in args]:
                raise self._fail(f"{self} needs an argument for {', '.join(missing)}", self.function.position)
            return [args[x] for x in known]
        what = "a list or tuple of the entry's arguments, or a mapping by their names"
        raise OperandError(f"args is {type(args).__name__}; expected {what}")

    def encode(self, args: Sequence[Any], memory: GlobalMemory) -> bytes:
        """Return the bytes of an entry's parameters, with plain arrays placed in memory; raise `OperandError`."""
        function = self.function
        if len(args) != len(self.parameters):
            takes = f"{source_name(function.name)} takes {counted(len(self.parameters), 'argument')}"
            raise self._fail(f"{takes}, {self}; got {len(args)}", function.position)
        data = bytearray(self.size)
        for i, (x, (one, declared, called)) in enumerate(zip(args, self._each, strict=True)):
            who = _Argument(self, i)
            try:
                if one.element:
                    _check_elements(x, one.element, who)
                data[one.offset : one.offset + one.size] = _encoded(x, declared, one.size, memory, called, who)
            except OperandError as error:
                raise self._fail(str(error), declared.position) from None
        return bytes(data)

    def check_bytes(self, params: Any) -> bytes:
        """Return the bytes of all parameters, given as bytes; raise `OperandError` for anything else."""
        if not isinstance(params, bytes | bytearray | memoryview):
            raise OperandError(f"params is {type(params).__name__}; expected bytes, {self.size} for {self}")
        if len(data := bytes(params)) != self.size:
            raise self._fail(f"params is {len(data)} bytes; expected {self.size} for {self}", self.function.position)
        return data


def parameter_names(function: Function) -> tuple[str, ...]:
    """Return what the text calls an entry's parameters; none where nvcc numbered them."""
    names = tuple(x.name for x in function.parameters)
    return () if any(re.search(r"_param_\d+$", x, re.ASCII) for x in names) else names


_ARRAYS, _PLACED = (DeviceArray, np.ndarray), (Output, DeviceArray)


class _Argument:
    """An argument, as errors call it: written out only then."""

    def __init__(self, signature: Signature, number: int) -> None:
        self._signature, self._number = signature, number

    def __str__(self) -> str:
        return f"args[{self._number}] of {self._signature}, {self._signature.written(self._number)},"


def _check_elements(x: Any, declared: str, who: _Argument) -> None:
    """Rule 5."""
    array = x.array if isinstance(x, Output) else x
    if not isinstance(array, _ARRAYS) or 0 in array.shape:
        return
    if contradicts(declared, array.dtype.name):
        raise OperandError(f"{who} is an array of {array.dtype}; expected {expected(declared)}")


def _encoded(x: Any, declared: Declaration, size: int, memory: GlobalMemory, name: str, who: _Argument) -> bytes:
    if isinstance(declared, Variable) and (declared.dimensions is not None or declared.vector > 1):
        return _struct(x, size, who)
    type_ = declared.type
    if isinstance(x, _PLACED) or (isinstance(x, np.ndarray) and x.ndim) or x is None:
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
    elif isinstance(x, TensorMap):
        x = x.encoded
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
