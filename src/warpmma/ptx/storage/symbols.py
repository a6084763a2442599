"""Addresses of the variables and functions of a module.

The rules:

1. `.global` and `.const` variables are allocated and initialized on a device at the first launch of their module, and
   live as long as the device.
2. `.shared` variables that an entry can reach are packed as by ptxas, in the order of the text, but `GAP` bytes apart,
   which keeps their banks: an index one too far hits unowned bytes. What is aligned to more than that lies further
   apart, which keeps its alignment: swizzles of tensor copies follow addresses. Dynamic shared memory (`.extern`) is
   last; its variables all begin there.
3. `.local` variables and parameters lie in the frame of their function; those of a module (PTX 2.3 and before) at the
   beginning of the entry's, where all functions find them.
4. A function's address is a number that its place in the text gives it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import OperandError
from ...machine import Device, DeviceArray
from ...operations import WINDOWS
from ..names import variable_named
from ..text import AddressOf, Declaration, Function, Module, Variable, bytes_of
from .call_graph import Reach
from .slots import Declared

_ALIGNMENT = 16


def laid_out(variables: Sequence[Declaration], start: int = 0) -> tuple[list[tuple[int, int]], int]:
    """Lay parameters out one behind the other; return the offset and bytes of each, and where they end."""
    found, end = [], start
    for x in variables:
        size = size_of(x)
        alignment = max(x.alignment, 1) if isinstance(x, Variable) else size
        end = -(-end // alignment) * alignment
        found.append((end, size))
        end += size
    return found, end


def size_of(x: Declaration) -> int:
    """Bytes of a parameter; a register has at least 2."""
    return x.size if isinstance(x, Variable) else max(bytes_of(x.type) * x.vector, 2)


class FrameLayout:
    """The frame of a function: variables by name and scope, and places of parameters and results.

    `start` is the size of what precedes them in an entry's frame.
    """

    def __init__(self, function: Function, start: int = 0) -> None:
        entry = function.kind == "entry"
        self.offsets: dict[tuple[str, int], int] = {}
        self.sizes: dict[tuple[str, int], int] = {}
        given = () if entry else (*function.results, *function.parameters)
        places, self._end = laid_out(given, start)
        for x, (offset, size) in zip(given, places, strict=True):
            if isinstance(x, Variable):
                self.offsets[x.name, 0], self.sizes[x.name, 0] = offset, size
        self.results = tuple(places[: len(function.results)])
        self.parameters = tuple(places[len(function.results) :])
        apart = {x.name for x in (*function.results, *function.parameters)}
        for scope, declarations in enumerate(function.scopes):
            for x in declarations:
                if isinstance(x, Variable) and x.space in ("local", "param") and not (scope == 0 and x.name in apart):
                    ((offset, size),), self._end = laid_out([x], self._end)
                    self.offsets[x.name, scope], self.sizes[x.name, scope] = offset, size
        self._most = self._end

    @property
    def size(self) -> int:
        """Bytes."""
        return -(-self._most // _ALIGNMENT) * _ALIGNMENT

    def scratch(self, variables: Sequence[Declaration]) -> list[tuple[int, int]]:
        """Return places behind all variables, for parameters and results of one call."""
        places, end = laid_out(variables, -(-self._end // _ALIGNMENT) * _ALIGNMENT)
        self._most = max(self._most, end)
        return places


Key = tuple[str, int, str]
"""Function, scope and name; of a variable of the module ("", -1, name)."""

GAP = 128
MOST_GLOBAL = 1 << 38
"""Bytes of a variable: more than any GPU has."""

MOST_INITIAL = 1 << 28
"""Bytes of a variable with an initial value, which is made at once."""

_FIRST, _APART = 16, 256


def function_addresses(module: Module) -> dict[str, int]:
    """Addresses of functions (rule 4); entries have one, too."""
    return {name: _FIRST * (i + 1) for i, name in enumerate(module.kinds)}


def keyed(module: Module, functions: Iterable[str], spaces: Sequence[str]) -> list[tuple[Key, Variable]]:
    """Variables in some spaces, of the module and of functions."""
    found = [(("", -1, x.name), x) for x in module.variables.values() if x.space in spaces]
    for name in functions:
        for scope, x in Declared(module.functions[name]).variables():
            if x.space in spaces:
                found.append(((name, scope, x.name), x))
    return found


class ModuleMemory:
    """Variables of a module on a device (rule 1); without a device nothing runs, and all addresses are 0."""

    def __init__(self, module: Module, device: Device | None) -> None:
        self._module, self._device = module, device
        self._functions = function_addresses(module)
        self.addresses: dict[Key, tuple[str, int]] = {}
        self.arrays: dict[Key, DeviceArray] = {}
        self._constant = 0  # bytes

    def place(self, functions: Iterable[str]) -> None:
        """Allocate what is not yet allocated, of the module and of functions that are to run."""
        new = [(key, x) for key, x in keyed(self._module, functions, ("global", "const")) if key not in self.addresses]
        arrays = []
        for key, x in new:
            if self._device is None:
                self.addresses[key] = (x.space, 0)
            if self._device is None or x.linkage == "extern":
                continue
            constant = x.space == "const"
            alignment = max(x.alignment, 1 if constant else _APART)
            most = MOST_INITIAL if x.initial else MOST_GLOBAL
            if x.size > most:
                raise self._module.error(f"{x.name} has {x.size} bytes; {most} at most are simulated", x.position)
            try:
                array = self._device.variable(
                    x.name, x.size, alignment=alignment, constant=constant, before=self._constant
                )
            except MemoryError:
                text = f"the {x.size} bytes of {x.name} do not fit into the memory of this process"
                raise self._module.error(text, x.position) from None
            except OperandError as error:
                raise OperandError(f"{self._module.place(x.position)}: {error}") from None
            if constant:
                self._constant = -(-self._constant // alignment) * alignment + x.size
            arrays.append((key, x, array))
            self.arrays[key] = array
            base = WINDOWS["const"].base if constant else 0
            self.addresses[key] = (x.space, array.address - base)
        for key, x, array in arrays:
            if x.initial and self._device is not None:
                data = self._initial(x, key).ljust(array.nbytes, b"\0")
                array.set(np.frombuffer(data, np.uint8))

    def places(self, reached: Reach) -> dict[Key, tuple[str, int] | None]:
        """Allocate the variables that an entry reaches; return the address of each, on which its program depends."""
        self.place(reached.functions)
        found = keyed(self._module, reached.functions, ("global", "const"))
        return {key: self.address(key) for key, x in found if key[0] or x.name in reached.variables}

    def address(self, key: Key) -> tuple[str, int] | None:
        """Return the space of a variable and its address there; None if it is not in memory."""
        return self.addresses.get(key)

    def _initial(self, x: Variable, key: Key) -> bytes:
        """Bytes of an initial value."""
        size = bytes_of(x.type)
        out = bytearray()
        for item in x.initial:
            if isinstance(item, AddressOf):
                value = self._address(item, x, key)
                value, size_ = (value, size) if item.byte is None else (value >> (8 * item.byte) & 0xFF, 1)
                out += (value & ((1 << (8 * size_)) - 1)).to_bytes(size_, "little")
            else:
                out += (item & ((1 << (8 * size)) - 1)).to_bytes(size, "little")
        return bytes(out)

    def _address(self, item: AddressOf, x: Variable, owner: Key) -> int:
        """Address in an initial value."""
        if item.name in self._functions:
            return self._functions[item.name]
        key = next((k for k in ((*owner[:2], item.name), ("", -1, item.name)) if k in self.addresses), None)
        if key is None:
            text = f"the initial value of {x.name} is the address of {item.name}, which has none"
            raise self._module.error(text, x.position)
        return (self.arrays[key].address if item.generic else self.addresses[key][1]) + item.offset


@dataclass(frozen=True)
class SharedVariables:
    """Shared memory of an entry (rule 2)."""

    addresses: Mapping[Key, int]
    variables: tuple[tuple[str, range], ...]  # static ones, in the order of their addresses
    static: int  # bytes that they have as ptxas packs them
    dynamic: int  # where dynamic shared memory begins
    has_dynamic: bool

    def placed(self, dynamic: int) -> list[tuple[str, range]]:
        """List variables, with `dynamic` bytes of dynamic shared memory after them."""
        behind = range(self.dynamic, self.dynamic + dynamic)
        names = {variable_named(name) for (_, _, name), at in self.addresses.items() if at == self.dynamic}
        name = names.pop() if len(names) == 1 else "dynamic shared memory"
        return [*self.variables, *([(name, behind)] if dynamic else [])]

    def size(self, dynamic: int) -> int:
        """Bytes in all, with so many dynamic ones."""
        return self.dynamic + dynamic if dynamic else max((place.stop for _, place in self.variables), default=0)

    @classmethod
    def of(cls, module: Module, found: Reach) -> SharedVariables:
        """Lay out what an entry can reach."""
        addresses: dict[Key, int] = {}
        variables: list[tuple[str, range]] = []
        packed, gaps, alignment, extern = 0, 0, 16, []
        for key, x in keyed(module, found.functions, ("shared",)):
            if key[0] == "" and x.name not in found.variables:
                continue
            if x.linkage == "extern" or x.size == 0:
                extern.append(key)
                alignment = max(alignment, x.alignment)
                continue
            packed = -(-packed // max(x.alignment, 1)) * max(x.alignment, 1)
            gaps += -(packed + gaps) % max(x.alignment, 1)
            start = packed + gaps
            addresses[key] = start
            variables.append((variable_named(x.name), range(start, start + x.size)))
            packed, gaps = packed + x.size, gaps + GAP
        dynamic = -(-packed // alignment) * alignment + gaps
        dynamic += -dynamic % alignment
        return cls({**addresses, **dict.fromkeys(extern, dynamic)}, tuple(variables), packed, dynamic, bool(extern))


def local_variables(module: Module, found: Reach) -> tuple[dict[Key, int], int]:
    """Lay out the module's `.local` variables that an entry can reach; return where each begins, and where they end."""
    variables = [x for key, x in keyed(module, (), ("local",)) if x.name in found.variables]
    places, end = laid_out(variables)
    return {("", -1, x.name): at for x, (at, _) in zip(variables, places, strict=True)}, end


class EntryPlaces:
    """Addresses of everything that an entry can reach.

    Its parameters are at the beginning of the space .param, the module's `.local` variables at that of its frame.
    """

    def __init__(
        self, memory: ModuleMemory, shared: SharedVariables, functions: Mapping[str, int],
        parameters: Mapping[Key, int], local: Mapping[Key, int],
    ) -> None:  # fmt: skip
        self._memory, self._shared, self._functions = memory, shared, functions
        self._parameters, self._local = parameters, local

    def address(self, key: Key) -> tuple[str, int] | None:
        """Space and address, in it, of a variable; of a function, ("func", address); None for others."""
        if key in self._shared.addresses:
            return "shared", self._shared.addresses[key]
        if key[0] == "" and key[2] in self._functions:
            return "func", self._functions[key[2]]
        if key in self._parameters:
            return "param", self._parameters[key]
        if key in self._local:
            return "local", self._local[key]
        return self._memory.address(key)
