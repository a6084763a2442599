"""The texts of the programs: PTX that nvcc makes of `cuda/NAME.cu`, and of the twins of the examples, kept in `ptx`."""

from __future__ import annotations

import lzma
import re
import subprocess
from pathlib import Path

__all__ = ["FLAGS", "PTX", "SOURCES", "TARGETS", "compiled", "keep", "kept_text", "read_text"]

_HERE = Path(__file__).parent
PTX = _HERE / "ptx"
_TWINS = _HERE.parents[1] / "examples" / "cuda"
SOURCES = {path.stem: path for path in sorted((_HERE / "cuda").glob("*.cu"))} | {
    f"twin_{name}": _TWINS / f"{name}.cu" for name in ("attention", "gemm_f16", "gemm_int8", "gemm_sparse", "rowwise")
}
TARGETS = {"twin_rowwise": "sm_90"}  # the first that has all of it, where that is not sm_80
FLAGS = ("-ptx", "-std=c++17", "-O3", "-lineinfo", "--Werror=all-warnings")
_PLAIN = 1 << 17  # characters: longer texts are kept compressed


def compiled(source: Path, *flags: str, target: str = "sm_80") -> str:
    """Compile with nvcc; files are named as they are seen from their own folder, whatever machine it is."""
    command = ["nvcc", *FLAGS, f"-arch={target}", *flags, "-o", "-", source.name]
    text = subprocess.run(command, cwd=source.parent, check=True, capture_output=True, text=True).stdout
    text = text.replace(f'"{source.parent}/', '"')
    return re.sub(r'"[^"\n]*/include/', '"include/', text)


def kept_text(name: str) -> Path:
    """Return where a text is kept."""
    plain = PTX / f"{name}.ptx"
    return plain if plain.exists() else PTX / f"{name}.ptx.xz"


def read_text(name: str) -> str:
    """Return a text as it is kept."""
    path = kept_text(name)
    return path.read_text() if path.suffix == ".ptx" else lzma.decompress(path.read_bytes()).decode()


def keep(name: str, text: str) -> None:
    """Write a text to where it is kept."""
    PTX.mkdir(exist_ok=True)
    kept_text(name).unlink(missing_ok=True)
    if len(text) <= _PLAIN:
        (PTX / f"{name}.ptx").write_text(text)
    else:
        (PTX / f"{name}.ptx.xz").write_bytes(lzma.compress(text.encode(), preset=9))
