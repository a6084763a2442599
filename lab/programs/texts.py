"""The texts of the programs: PTX that nvcc makes of `cuda/NAME.cu`, and of the twins of the examples.

All that is kept of programs is in `tests/data/programs`, compressed; `read_text` and `keep` know it by its name alone.
"""

from __future__ import annotations

import lzma
import re
import subprocess
from pathlib import Path

__all__ = ["FLAGS", "SOURCES", "TARGETS", "compiled", "keep", "kept_path", "read_text"]

_ROOT = Path(__file__).parents[2]
_KEPT = _ROOT / "tests" / "data" / "programs"
SOURCES = {path.stem: path for path in sorted(Path(__file__).with_name("cuda").glob("*.cu"))} | {
    f"twin_{name}": _ROOT / "examples" / "cuda" / f"{name}.cu"
    for name in ("attention", "gemm_f16", "gemm_int8", "gemm_sparse", "rowwise")
}
TARGETS = {"twin_rowwise": "sm_90"}  # the first that has all of it, where that is not sm_80
FLAGS = ("-ptx", "-std=c++17", "-O3", "-lineinfo", "--Werror=all-warnings")


def compiled(source: Path, *flags: str, target: str = "sm_80") -> str:
    """Compile with nvcc; files are named as they are seen from their own folder, whatever machine it is."""
    command = ["nvcc", *FLAGS, f"-arch={target}", *flags, "-o", "-", source.name]
    text = subprocess.run(command, cwd=source.parent, check=True, capture_output=True, text=True).stdout
    text = text.replace(f'"{source.parent}/', '"')
    return re.sub(r'"[^"\n]*/include/', '"include/', text)


def kept_path(name: str) -> Path:
    """Return where a text is kept, such as `radix.ptx`."""
    return _KEPT / f"{name}.xz"


def read_text(name: str) -> str:
    """Return a text as it is kept."""
    return lzma.decompress(kept_path(name).read_bytes()).decode()


def keep(name: str, text: str) -> None:
    """Write a text to where it is kept."""
    kept_path(name).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
