"""Modules of CUDA C++: compiled, read as PTX, and found by the names of their source."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from .._arguments import check_choice, members
from .._tracebacks import end_at_caller
from ..errors import OperandError, WarpmmaError, shown
from ..isa import TARGETS, check_known
from ..ptx import PtxEntry, PtxModule, entries_meant, read, source_name
from .compilers import COMPILERS, compiled
from .host_headers import LeftOutWarning
from .pieces import is_template, parameter_names
from .sources import Compiled, CudaSource, source_of

_MOST = 1000  # options, and names
_KEPT = 64  # sources
_ARCH = "sm_80"


class CudaModule(PtxModule):
    """A module of PTX that was made of CUDA C++. It is a mapping of kernels, as every `PtxModule`.

    Attributes
    ----------
    compiler : str
        Which one made it, with its version: "NVRTC 13.0" or "nvcc 13.0".
    ptx : str
        The text that it made.
    log : str
        Its log: warnings.
    names : mapping of str to str
        Names in the text, by what `names` of `load` asked for.
    left_out : tuple of str
        Code and headers of the host that NVRTC does not take and that were left out, with their lines.
    """

    def __init__(self, compiled: Compiled, source: CudaSource) -> None:
        super().__init__(read(compiled.ptx, f"{source.name}.ptx"))
        self._text, self._parameters = source.text, dict[str, tuple[str, ...]]()
        self.compiler, self.ptx, self.log = compiled.compiler, compiled.ptx, compiled.log.strip()
        self.names: Mapping[str, str] = MappingProxyType(dict(compiled.names))
        self.left_out = compiled.left_out

    def __getitem__(self, name: str) -> PtxEntry:
        """Return a kernel: by its name in the source, an instance of a template with its arguments."""
        try:
            return super().__getitem__(self.names.get(name, name) if isinstance(name, str) else name)
        except OperandError as error:
            plain = name.partition("<")[0].strip() if isinstance(name, str) else ""
            if plain and not entries_meant(plain, self) and is_template(self._text, plain.rpartition("::")[2]):
                wanted = name if "<" in name else f"{name}<...>"
                error.add_note(f"{plain} is a template: load(..., names=[{wanted!r}]) compiles an instance of it")
            raise

    def parameters(self, name: str) -> tuple[str, ...]:
        """Return the names of a kernel's parameters in the source; none where they are ambiguous, as for overloads."""
        entry = self[name]
        if entry.name not in self._parameters:  # to look through the source takes as long as a small launch
            plain = source_name(entry.name).partition("<")[0].rpartition("::")[2]
            found = {x for x in parameter_names(self._text, plain) if len(x) == len(entry.function.parameters)}
            self._parameters[entry.name] = found.pop() if len(found) == 1 else ()
        return self._parameters[entry.name]


def load(
    source: str | bytes | os.PathLike[str], *, arch: str = "sm_80", options: Sequence[str] = (),
    names: Sequence[str] = (), compiler: str = "auto", name: str = "",
) -> CudaModule:  # fmt: skip
    """Compile CUDA C++ to PTX, with the lines of the source, and load it.

    Parameters
    ----------
    source : str, bytes or path
        A file, or the text itself: what has more than one line, or a brace.
    arch : str
        The target for which to compile. Devices of it and of later ones run it.
    options : sequence of str
        For the compiler, such as "-DTILE=32", "-I", "include", "--use_fast_math"; "-lineinfo" is given.
    names : sequence of str
        Instances of templates to compile, as C++ writes them: "scale<float, 4>".
    compiler : {"auto", "nvrtc", "nvcc"}
        NVRTC is fast, needs no host compiler, and compiles device code; nvcc takes whole programs.
        "auto" is NVRTC, where it is installed; then what it refuses without the code of the host; then nvcc, for what
        may need the host.
    name : str, optional
        What errors and hazards call a text; a file is called by its path.

    Returns
    -------
    CudaModule

    Raises
    ------
    CompilationError
        A file that cannot be read or a source that does not compile, with the compiler's log; or no compiler is here.
    TargetError
        No such target.
    OperandError
        Options or names that are not strings.

    Warns
    -----
    LeftOutWarning
        A condition of the preprocessor asks for a macro of a header that NVRTC does not have.
    """
    __tracebackhide__ = True
    try:
        check_choice("compiler", compiler, COMPILERS)
        check_known(arch)
        if not isinstance(name, str):
            raise OperandError(f"the name of a module is {shown(name)}; expected a string")
        given = source_of(source, name, arch, _strings("options", options), _strings("names", names))
        made = _compiled(given, compiler)
        module = CudaModule(made, given)
    except WarpmmaError as error:
        end_at_caller(error)
        raise
    if made.doubts:
        warnings.warn("\n".join(made.doubts), LeftOutWarning, stacklevel=2)
    return module


def arch_for(target: str) -> str:
    """Return what to compile for, for a device of a target, where the user does not say it.

    It is sm_80, whose PTX later targets run, or the target itself where it is older, or has features of its own: only a
    text for sm_90a may have `wgmma`.

    Examples
    --------
    >>> arch_for("sm_75"), arch_for("sm_90"), arch_for("sm_90a")
    ('sm_75', 'sm_80', 'sm_90a')
    """
    check_known(target)
    record = TARGETS[target]
    return target if record.features or record.number < TARGETS[_ARCH].number else _ARCH


def _strings(what: str, given: object) -> tuple[str, ...]:
    found = members(given, _MOST)
    if found is None or len(found) > _MOST or not all(isinstance(x, str) and "\0" not in x for x in found):
        raise OperandError(f"{what} is {shown(given)}; expected a list of strings")
    return tuple(found)


_cache: dict[tuple[object, ...], Compiled] = {}


def _compiled(source: CudaSource, compiler: str) -> Compiled:
    """Compile, or return what was compiled before of a source that reads no files of its own."""
    key = source.text, source.name, source.folder, source.arch, source.options, source.names, compiler
    reads = '#include "' in source.text or any(x.startswith(("-I", "-i", "--i")) for x in source.options)
    if reads or key not in _cache:
        made = compiled(source, compiler)
        if len(_cache) >= _KEPT:
            _cache.pop(next(iter(_cache)), None)
        _cache[key] = made
    return _cache[key]
