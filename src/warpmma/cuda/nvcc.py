"""nvcc, where it is installed: it takes whole programs, and needs a compiler of the host."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import CompilationError
from .sources import Compiled, CudaSource, refused

_VARIABLE = "warpmma_instances"


@cache
def find_nvcc() -> str:
    """Return its path: on the PATH, in $CUDA_HOME, of NVIDIA's packages, in /usr/local/cuda; "" if there is none."""
    spec = importlib.util.find_spec("nvidia")
    rooms = [Path(x) for x in (spec.submodule_search_locations or [] if spec else [])]
    homes = [Path(x) for x in (os.environ.get("CUDA_HOME", ""), os.environ.get("CUDA_PATH", "")) if x]
    homes += [home for room in rooms for home in sorted(room.glob("cu[0-9]*"), reverse=True)]
    found = (shutil.which("nvcc", path=path) for path in (None, *(home / "bin" for home in homes)))
    return next((x for x in found if x), shutil.which("nvcc", path="/usr/local/cuda/bin") or "")


@cache
def _who(nvcc: str) -> str:
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, errors="replace").stdout
    release = re.search(r"release (\d+\.\d+)", said)
    return f"nvcc {release[1]}" if release else "nvcc"


def compile_with_nvcc(source: CudaSource) -> Compiled:
    """Compile a file or a text.

    Raises
    ------
    CompilationError
        With nvcc's log.
    """
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
    """Write a variable with the addresses of instances: nvcc compiles them, and the text says what it calls them."""
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
