"""Modules of PTX text, and their entries, which can be launched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..._arguments import check_choice, suggestion
from ..._progress import Watched
from ..._records import Shown
from ..._text import counted
from ..._tracebacks import end_at_caller
from ...arithmetic import Engine
from ...errors import OperandError, PtxError, WarpmmaError, printable, shown
from ...machine import (
    Device,
    DeviceArray,
    GlobalMemory,
    HazardWarning,
    Launch,
    LaunchOptions,
    Limit,
    Policy,
    Watch,
    run_launch,
)
from ..lower import Linked, link
from ..names import entries_meant, source_name
from ..storage import Key, ModuleMemory
from ..text import Function, Module, read
from .arguments import Parameter, Signature, parameter_names
from .checking import ModuleNeeds, module_needs
from .entry_launch import EntryWork, PreparedEntry, check_device, own_target

CONTRACTS = ("ptxas", "off")

MOST_LISTED = 20
"""Entries that an error names."""


def load(path_or_text: str | bytes | os.PathLike[str], name: str = "") -> PtxModule:
    """Load a module: a file, or the text itself.

    Parameters
    ----------
    path_or_text : str, bytes or path
        Bytes, and strings with several lines or with `.version`, are text.
    name : str, optional
        The name of a text in error messages; a file has its path.

    Returns
    -------
    PtxModule
        Bodies of functions are parsed when they are needed.

    Raises
    ------
    PtxError
        A file that cannot be read, or text that is not valid PTX, with line and column.

    Examples
    --------
    >>> module = load(".version 8.0 .target sm_80 .address_size 64 .entry nothing() { ret; }")
    >>> module, list(module)
    (<PtxModule <ptx>: sm_80, 1 entry>, ['nothing'])
    """
    __tracebackhide__ = True
    try:
        return _loaded(path_or_text, name)
    except WarpmmaError as error:
        end_at_caller(error)
        raise


def _loaded(path_or_text: str | bytes | os.PathLike[str], name: str) -> PtxModule:
    if not isinstance(name, str):
        raise OperandError(f"the name of a module is {shown(name)}; expected a string")
    if isinstance(path_or_text, bytes | bytearray):
        return PtxModule(read(bytes(path_or_text), name or "<ptx>"))
    if isinstance(path_or_text, str) and ("\n" in path_or_text or ".version" in path_or_text or not path_or_text):
        return PtxModule(read(path_or_text, name or "<ptx>"))
    if not isinstance(path_or_text, str | os.PathLike):
        raise OperandError(f"a module is {shown(path_or_text)}; expected a path, or the text of one")
    path = os.fspath(path_or_text)
    try:
        data = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        raise PtxError(f"{printable(str(path))}: {getattr(error, 'strerror', None) or error}", path) from None
    return PtxModule(read(data, name or path))


class PtxModule(Shown, Mapping[str, "PtxEntry"]):
    """A module: a mapping from the names of its entries.

    nvcc mangles names of C++: `__global__ void saxpy(int)` is `_Z5saxpyi`, unless it is `extern "C"`. An entry is found
    by either name, where only one has it; an instance of a template with its arguments, too (`module["f<int, 4>"]`);
    overloads by what the text calls them.

    Attributes
    ----------
    source : Module
        As it was read.

    Raises
    ------
    KeyError
        No such entry, or more than one: an `OperandError`, too, which lists them.

    Examples
    --------
    >>> head = ".version 8.0 .target sm_80 .address_size 64 "
    >>> load(head + ".entry _Z5saxpyifPfS_(.param .u32 _Z5saxpyifPfS__param_0) { ret; }")["saxpy"]
    <PtxEntry _Z5saxpyifPfS_(.u32 param_0)>
    """

    def __init__(self, source: Module) -> None:
        self.source, self._identity = source, _Identity()
        self._signatures: dict[str, Signature] = {}
        self._last: dict[tuple[str, str, str], tuple[PreparedEntry, Mapping[Key, Any]]] = {}  # with its variables

    @property
    def target(self) -> str:
        """The target that its text names."""
        return self.source.target

    def __getitem__(self, name: str) -> PtxEntry:
        """Return an entry: by its name in the text, or by its name in C++ where only one entry has that."""
        if isinstance(name, str) and self.source.kinds.get(name) == "entry":
            return PtxEntry(self, name)
        found = entries_meant(name, self) if isinstance(name, str) else []
        if len(found) == 1:
            return PtxEntry(self, found[0])
        if found:
            raise UnknownEntryError(
                f"{shown(name)} means {len(found)} entries of {self.source.name}; say which: {_listed(found)}"
            )
        known = {source_name(x) for x in self}
        raise UnknownEntryError(
            f"{self.source.name} has no entry {shown(name)}{suggestion(name, known)}; it has {_listed(list(self))}"
        )

    def __iter__(self) -> Iterator[str]:
        return (name for name, kind in self.source.kinds.items() if kind == "entry")

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<PtxModule {self.source.name}: {self.target}, {counted(len(self), 'entry', 'entries')}>"

    def variable(self, name: str, device: Device) -> DeviceArray:
        """Return a `.global` or `.const` variable on a device, as bytes: uint8 `[n]`.

        Raises
        ------
        OperandError
            The module declares no such variable.
        """
        known = self.variables(device)
        if not isinstance(name, str) or (found := known.get(name)) is None:
            declared = [x.name for x in self.source.variables.values() if x.space in ("global", "const")]
            listed = ", ".join(declared) or "none"
            raise OperandError(
                f"{self.source.name} has no variable {shown(name)}{suggestion(name, declared)}; it has {listed}"
            )
        return found

    def variables(self, device: Device) -> Mapping[str, DeviceArray]:
        """Return all `.global` and `.const` variables on a device, by name, as bytes: uint8 `[n]`.

        `device.read(variables["x"].address + 4, 8)` reads 8 bytes of x from offset 4 on; `device.write` writes them.
        """
        memory, _ = self._made(device)
        memory.place(())
        return MappingProxyType({x: array for (function, _, x), array in memory.arrays.items() if not function})

    def parameters(self, name: str) -> tuple[str, ...]:
        """Return the names of an entry's parameters; none where nvcc has numbered them."""
        return parameter_names(self[name].function)

    def signature(self, name: str) -> Signature:
        """Return the signature of an entry, by its name in the text, which is made once."""
        if name not in self._signatures:
            self._signatures[name] = Signature(self.source, name, self.parameters(name))
        return self._signatures[name]

    def check(self, target: str | None = None) -> ModuleNeeds:
        """Say what each entry needs, and which lines are not simulated, before anything runs.

        Parameters
        ----------
        target : str, optional
            Of the device; by default the module's own, or sm_70 where that is older.

        Raises
        ------
        TargetError
            No such target, or one that does not take the module.
        """
        return module_needs(self.source, list(self), own_target(self.source) if target is None else target)

    def prepared(self, name: str, device: Device, contract: str) -> PreparedEntry:
        """Return an entry as a device runs it, which is made once: once for all where its variables lie alike."""
        memory, made = self._made(device)
        found = made.get((name, contract))
        if found is None:
            key = name, contract, device.target
            found, places = self._last.get(key, (None, {}))
            if found is None or memory.places(found.linked.reach) != places:
                linked = link(self.source, name, memory, device.target, contract=contract == "ptxas")
                found = PreparedEntry(self.source, linked, device.target)
                self._last[key] = found, memory.places(linked.reach)
            made[name, contract] = found
        return found

    def linked(self, name: str, device: Device, contract: str) -> Linked:
        """Return the program of an entry on a device, which is made once."""
        return self.prepared(name, device, contract).linked

    def _made(self, device: Device) -> tuple[ModuleMemory, dict[tuple[str, str], PreparedEntry]]:
        """Its variables and entries on a device. The device has them: they name it, and would keep it alive here."""
        found = device.made.get(self._identity) if isinstance(device, Device) else None
        if found is None:
            check_device(self.source, device)
            found = device.made[self._identity] = ModuleMemory(self.source, device), {}
        made: tuple[ModuleMemory, dict[tuple[str, str], PreparedEntry]] = found
        return made


class _Identity:
    """What devices know a module by: a mapping has no hash."""


class PtxEntry(Shown):
    """An entry of a module.

    Attributes
    ----------
    module : PtxModule
    name : str
    index_name : str
        What hazards call the place of a block in the grid: "blockIdx"; of kernels of Triton "program_id".
    """

    def __init__(self, module: PtxModule, name: str, *, index_name: str = "blockIdx") -> None:
        self.module, self.name, self.index_name = module, name, index_name

    @property
    def function(self) -> Function:
        """As it was read."""
        return self.module.source.functions[self.name]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its parameters: name, type, offset and size, and what is known of pointers."""
        return self.module.signature(self.name).parameters

    def __repr__(self) -> str:
        return f"<PtxEntry {Signature(self.module.source, self.name)}>"

    def launch(
        self, device: Device, grid: int | Sequence[int], block: int | Sequence[int],
        args: Sequence[Any] | Mapping[str, Any] = (), *, params: bytes | None = None,
        shared: int = 0, cluster: int | Sequence[int] | None = None, cooperative: bool = False,
        hazards: Policy | Mapping[str, Policy] = "error", contract: str = "ptxas",
        engine: Engine = "auto", threads: int | None = None, resident: int | None = None,
        limit: int | Limit | None = None, seed: int = 0, progress: Watched = None,
        watch: Watch | None = None, timeline: bool | Sequence[int] = False,
    ) -> Launch:  # fmt: skip
        """Run the entry on a device.

        Parameters
        ----------
        device : Device
            Of the module's target or a later one. The module's variables lie there from the first launch on.
        grid, block : int or sequence of up to 3 int
        args : sequence or mapping
            One for each parameter, of the type that it declares: integers, floats, bytes or structured scalars for
            structs, arrays of the device, plain arrays and `Output`, None for a null pointer. A mapping has them by the
            names of the parameters, in the source of CUDA C++ or in the text; "param_0" and so on where nvcc numbered
            them. Where a mangled name declares another type of elements than an array's, that is an error.
        params : bytes, optional
            All parameters as they lie in memory, instead of `args`: each at its offset of `parameters`.
        shared : int
            Bytes of dynamic shared memory (`extern __shared__`), beyond what the entry declares.
        cluster : int or sequence of up to 3 int, optional
            Blocks of a cluster along x, y and z, as the attribute of a launch; 16 in all at most. By default what the
            entry declares.
        cooperative : bool
            Whether all blocks are resident together, and may wait for each other.
        hazards, engine, threads, progress, watch, timeline
            As of `kernel.launch`; `threads` reaches each `mma`, not blocks, and changes no bit.
        contract : {"ptxas", "off"}
            Whether `mul` and `add` without a rounding are fused as ptxas fuses them, or never.
        resident : int, optional
            How many blocks run together, and may wait for each other; a fixed number by default.
        limit : int or Limit, optional
            Instructions of warps after which the launch ends with an error; `machine.Limit` has seconds, too.
        seed : int
            Who goes first where CUDA leaves that open.

        Returns
        -------
        Launch

        Raises
        ------
        HazardError
            The first hazard, with the line of the source, warp, lane and address.
        PtxError
            What the text says is not simulated.
        WarpmmaError
            Arguments that do not fit, a device of an earlier target, limits.
        """
        __tracebackhide__ = True
        try:
            check_choice("contract", contract, CONTRACTS)
            prepared = self.module.prepared(self.name, device, contract)
            options = LaunchOptions.given(
                hazards=hazards, engine=engine, threads=threads, resident=resident, limit=limit, seed=seed,
                progress=progress, watch=watch, timeline=timeline,
            )  # fmt: skip
            encode = self._encoder(device, args, params)
            prepared.check()
            extent = prepared.grid(grid, block, shared, cluster, cooperative)
            return run_launch(
                EntryWork(prepared, extent, encode, int(shared), self.index_name), device, extent, options
            )
        except (WarpmmaError, HazardWarning) as error:
            end_at_caller(error)
            raise

    def _encoder(self, device: Device, args: Any, params: Any) -> Callable[[GlobalMemory], bytes]:
        """Return what makes the bytes of the parameters."""
        signature = self.module.signature(self.name)
        if params is not None:
            if not (isinstance(args, tuple | list | dict) and not args):
                raise OperandError("both args and params are given; expected one of them")
            data = signature.check_bytes(params)
            return lambda memory: data
        given = signature.in_order(args)
        for i, x in enumerate(given):
            if isinstance(x, DeviceArray) and x.device is not device:
                raise OperandError(f"args[{i}] is {x!r}, an array of another device than {device!r}")
        return partial(signature.encode, given)


def _both(name: str) -> str:
    """Name an entry as its text and as its source do."""
    return name if source_name(name) == name else f"{name} ({source_name(name)})"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return (", ".join(map(_both, names[:MOST_LISTED])) or "none") + more


class UnknownEntryError(OperandError, KeyError):
    """An entry that a module does not have."""

    __str__ = OperandError.__str__
