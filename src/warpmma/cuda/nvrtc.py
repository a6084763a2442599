"""NVRTC: NVIDIA's compiler as a library. It compiles device code, and has no host headers."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import CompilationError
from .host_headers import STANDARD_HEADERS, about_empty_headers, doubts, listed
from .sources import Compiled, CudaSource, SourceFile, missing_header, refused

_MOST_HEADERS = 100  # that are supplied, one after the other


@cache
def _library() -> tuple[Any, tuple[int, int], str]:
    """Load it: NVRTC's functions, its version, and why it is absent, if it is."""
    try:
        from cuda.bindings import nvrtc
    except ImportError:
        return None, (0, 0), "cuda-bindings is not installed"
    try:
        code, major, minor = nvrtc.nvrtcVersion()
    except Exception as error:  # whatever a missing library raises
        return None, (0, 0), f"cuda-bindings finds no NVRTC ({type(error).__name__})"
    return nvrtc, (int(major), int(minor)), "" if int(code) == 0 else f"NVRTC does not start ({code!r})"


def why_no_nvrtc() -> str:
    """Return why NVRTC is absent; nothing if it is here."""
    return _library()[2]


def nvrtc_version() -> tuple[int, int]:
    """Return the version of CUDA that it is of."""
    return _library()[1]


def compile_with_nvrtc(
    source: CudaSource, files: Sequence[SourceFile], headers: Mapping[str, str] | None = None
) -> Compiled:
    """Compile device code. Missing host headers are supplied, as far as they are listed.

    `files` are the source and the user's headers as they are, `headers` texts to take in place of some, by their names.
    """
    own = dict(headers or {})
    supplied = dict(own)
    for _ in range(_MOST_HEADERS):
        log, made = _once(source, supplied)
        missing = missing_header(log)
        if made is not None or missing is None or missing.name in supplied or missing.name not in STANDARD_HEADERS:
            break
        supplied |= {missing.name: STANDARD_HEADERS[missing.name], **_nowhere(source, files, supplied)}
    replaced = supplied.keys() - own.keys()
    if made is None:
        raise refused(source, _who(), log, "" if missing else about_empty_headers(files, replaced, log))
    return replace(made, left_out=listed(files, replaced), doubts=doubts(files, replaced, source.defined))


def _nowhere(source: CudaSource, files: Sequence[SourceFile], there: Container[str]) -> dict[str, str]:
    """Return texts for all listed headers that are not found: NVRTC reports one at a time."""
    folders = [*include_folders(nvrtc_version()[0]), *source.folders, *{x.folder for x in files}]
    return {
        name: text for name, text in STANDARD_HEADERS.items()
        if name not in there and not any((folder / name).is_file() for folder in folders)
    }  # fmt: skip


def _who() -> str:
    return f"NVRTC {'.'.join(map(str, nvrtc_version()))}"


def _once(source: CudaSource, headers: Mapping[str, str]) -> tuple[str, Compiled | None]:
    """Compile once; return the log, and what was made if it was."""
    nvrtc, _, why = _library()
    if nvrtc is None or why:
        raise CompilationError(why)
    texts, names = [x.encode() for x in headers.values()], [x.encode() for x in headers]
    path = str(source.folder / (source.file.name if source.file else "<cuda>"))
    _, program = nvrtc.nvrtcCreateProgram(source.text.encode(), path.encode(), len(names), texts, names)
    try:
        for name in source.names:
            nvrtc.nvrtcAddNameExpression(program, name.encode())
        options = [x.encode() for x in (*_options(source), *(["-diag-suppress=47"] if headers else []))]
        (code,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).replace(path, source.name)
        if int(code):
            if not log.strip():
                (_, said) = nvrtc.nvrtcGetErrorString(code)
                log = said.decode(errors="replace")
            return log, None
        lowered = {x: nvrtc.nvrtcGetLoweredName(program, x.encode())[1].decode() for x in source.names}
        ptx = _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
        return log, Compiled(ptx=ptx.replace(f'"{path}"', f'"{source.name}"'), names=lowered, log=log, compiler=_who())
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _text(size_of: Any, read: Any, program: Any) -> str:
    _, size = size_of(program)
    data = bytes(int(size) + 16)  # which the library writes: never the one object that Python has for a single byte
    read(program, data)
    return data.rstrip(b"\0").decode(errors="replace")


def _options(source: CudaSource) -> list[str]:
    own = [f"-arch={source.arch.replace('sm_', 'compute_')}", "-lineinfo"]
    own += ["--device-int128"] * (sys.platform == "linux")  # as nvcc, for which it is always there
    return [*own, *source.options, *(f"-I{folder}" for folder in include_folders(nvrtc_version()[0]))]


def nvidia_packages() -> list[Path]:
    """Return the folders of NVIDIA's packages."""
    spec = importlib.util.find_spec("nvidia")
    return [Path(x) for x in (spec.submodule_search_locations or [] if spec else [])]


@cache
def include_folders(major: int) -> tuple[Path, ...]:
    """Find the headers of the runtime: of NVIDIA's packages for a version of CUDA, or of an installation."""
    rooms = nvidia_packages()
    found = [room / f"cu{major}" / "include" for room in rooms]
    found += [room / part / "include" for room in rooms for part in ("cuda_runtime", "cuda_nvcc", "cuda_cccl")]
    if not any((folder / "cuda_fp16.h").is_file() for folder in found):
        homes = [os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
        found = [Path(home) / "include" for home in homes if home]
        found = [folder for folder in found if (folder / "cuda_fp16.h").is_file()][:1]
    return tuple(x for folder in found for x in (folder, folder / "cccl") if x.is_dir())
