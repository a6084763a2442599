"""The choice of the compiler for a source: NVRTC, NVRTC without the code of the host, or nvcc.

1. NVRTC takes the source as it is, and then, unless a header is missing, without the code of the host (`host_code`).
2. nvcc, if found, takes what NVRTC refuses and what may need the host: the source has host code, a header is missing,
   or the errors are in CUDA's own headers, as in CUB and Thrust.
3. Without nvcc, errors in CUDA's headers become one line that names the header that the user includes, if NVRTC refuses
   that header alone, too; else they come from how the user's code uses it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import CompilationError, printable
from .host_code import compile_without_host, has_host_code
from .nvrtc import compile_with_nvrtc, include_folders, nvidia_packages, nvrtc_version, why_no_nvrtc
from .sources import INSTALL, Compiled, CudaSource, SourceFile, error_places, files_of, missing_header, refused

_VARIABLE = "warpmma_instances"


@cache
def find_nvcc() -> str:
    """Return its path: on the PATH, in $CUDA_HOME, of NVIDIA's packages, in /usr/local/cuda; "" if not found."""
    homes = [Path(x) for x in (os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", "")) if x]
    homes += [home for room in nvidia_packages() for home in sorted(room.glob("cu[0-9]*"), reverse=True)]
    found = (shutil.which("nvcc", path=path) for path in (None, *(home / "bin" for home in homes)))
    return next((x for x in found if x), shutil.which("nvcc", path="/usr/local/cuda/bin") or "")


@cache
def _who(nvcc: str) -> str:
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, errors="replace").stdout
    release = re.search(r"release (\d+\.\d+)", said)
    return f"nvcc {release[1]}" if release else "nvcc"


def compile_with_nvcc(source: CudaSource) -> Compiled:
    """Compile a file or a text; errors have nvcc's log."""
    nvcc = find_nvcc()
    with TemporaryDirectory(prefix="warpmma-") as folder:
        given, made = Path(folder) / "source.cu", Path(folder) / "source.ptx"
        path = str(source.folder / (source.file.name if source.file else "<cuda>"))
        line = path.replace("\\", "/").replace('"', '\\"')
        given.write_text(f'#line 1 "{line}"\n{source.text}\n{_instances(source.names)}', encoding="utf-8")
        command = [nvcc, "-ptx", "-x", "cu", f"-arch={source.arch}", "-lineinfo", *source.options]
        command += ["-I", str(source.folder), "-o", str(made), str(given)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
        except OSError as error:
            raise CompilationError(f"{nvcc} does not start: {error.strerror}", source.name) from None
        log = (done.stdout + done.stderr).replace(path, source.name).replace(str(given), source.name)
        if done.returncode or not made.is_file():
            raise refused(source, _who(nvcc), log)
        ptx = made.read_text(encoding="utf-8", errors="replace").replace(f'"{path}"', f'"{source.name}"')
    ptx, called = _named(ptx, source.names)
    return Compiled(ptx=ptx, names=called, log=log, compiler=_who(nvcc))


def _instances(names: tuple[str, ...]) -> str:
    """Write a variable with the addresses of instances: nvcc compiles them, and its PTX shows their mangled names."""
    if not names:
        return ""
    taken = ", ".join(f"(const void *)&{name}" for name in names)
    variable = f"__device__ const void *const {_VARIABLE}[]"
    return f'#line 1 "<names>"\nextern "C" {{ extern {variable}; {variable} = {{{taken}}}; }}\n'


def _named(ptx: str, names: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """Take that variable out of the text, and return the text's names of the instances."""
    found = re.search(rf"^.*\b{_VARIABLE}\[\d+\] = \{{([^}}]*)\}};$", ptx, re.MULTILINE) if names else None
    if found is None:
        return ptx, {}
    called = [x.strip() for x in found[1].split(",")]
    return ptx.replace(found[0], ""), dict(zip(names, called, strict=True))


COMPILERS = ("auto", "nvrtc", "nvcc")
GET_NVCC = "pip install 'warpmma[nvcc]' has nvcc, which needs a C++ compiler"


def compiled(source: CudaSource, compiler: str) -> Compiled:
    """Compile a source by one of `COMPILERS`; raise `CompilationError` if it does not compile or there is none."""
    nvrtc, nvcc = not why_no_nvrtc() and compiler != "nvcc", find_nvcc() and compiler != "nvrtc"
    if not nvrtc and not nvcc:
        raise CompilationError(_nothing(compiler), source.name)
    if not nvrtc:
        return compile_with_nvcc(source)
    files = files_of(source)
    try:
        return _by_nvrtc(source, files)
    except CompilationError as error:
        of_cuda = _errors_of_cuda(error.log)
        if nvcc and (of_cuda or missing_header(error.log) or has_host_code(files)):
            return compile_with_nvcc(source)
        if of_cuda and (refused := _refused_headers(source, files)):
            raise _needs_nvcc(source, files, refused) from None
        raise


def _by_nvrtc(source: CudaSource, files: Sequence[SourceFile]) -> Compiled:
    """Rule 1."""
    try:
        return compile_with_nvrtc(source, files)
    except CompilationError as error:
        if missing_header(error.log):
            raise
    return compile_without_host(source, files)


def _errors_of_cuda(log: str) -> list[tuple[Path, str]]:
    """List the headers of CUDA in which a log has errors: the folder, and the name that `#include` gives it."""
    folders = sorted(include_folders(nvrtc_version()[0]), key=lambda x: -len(x.parts))  # CCCL's is inside the other
    files = [Path(file) for file, _ in error_places(log)]
    homes = [(next((x for x in folders if file.is_relative_to(x)), None), file) for file in files]
    return [(folder, file.relative_to(folder).as_posix()) for folder, file in homes if folder is not None]


def _refused_headers(source: CudaSource, files: Sequence[SourceFile]) -> CompilationError | None:
    """Rule 3: compile the headers of CUDA that the user includes, alone."""
    folders = include_folders(nvrtc_version()[0])
    names = [x for file in files for _, x, _ in file.includes if any((folder / x).is_file() for folder in folders)]
    alone = replace(source, text="".join(f"#include <{x}>\n" for x in dict.fromkeys(names)), names=())
    try:
        compile_without_host(alone, [SourceFile(name=alone.name, text=alone.text, folder=alone.folder)])
    except CompilationError as error:
        return error if _errors_of_cuda(error.log) else None
    return None


def _needs_nvcc(source: CudaSource, files: Sequence[SourceFile], error: CompilationError) -> CompilationError:
    """Rule 3: the header to name is of the same library as the first one with an error, or in the same folder."""
    of_cuda = _errors_of_cuda(error.log)
    folder, name = of_cuda[0]
    asked = [(x, file.name, line) for file in files for _, x, line in file.includes if (folder / x).is_file()]
    near = [x for x in asked if x[0].partition("/")[0] == name.partition("/")[0]]
    name, file, line = [*near, *asked, (name, source.name, 0)][0]
    get = 'compiler="nvcc" takes it' if find_nvcc() else GET_NVCC
    place = f"{printable(file)}:{line}" if line else printable(file)
    text = f"{place}: <{name}> needs nvcc, since NVRTC takes code for the device alone ({len(of_cuda)} errors): {get}"
    return CompilationError(text, source.name, line if file == source.name else 0, error.log)


def _nothing(compiler: str) -> str:
    """Return advice on what to install."""
    if compiler == "nvcc":
        return "nvcc is on no PATH, and not in $CUDA_HOME: install CUDA's toolkit, or compile by NVRTC"
    if sys.platform == "darwin":
        return "CUDA C++ needs NVRTC, which is for Linux and Windows; compile there, and run the PTX here: ptx.load"
    return f"CUDA C++ needs NVRTC, and {why_no_nvrtc()}: {INSTALL}" + (
        "" if compiler == "nvrtc" else " (or have nvcc on the PATH)"
    )
