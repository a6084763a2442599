"""The PTX of the programs: from `cuda/NAME.cu` by nvcc, and of the twins of the examples.

It is stored in `tests/data/programs`, compressed; `read_text` and `keep` take only a name.
"""

from __future__ import annotations

import lzma
import re
import subprocess
from pathlib import Path

__all__ = ["FLAGS", "SOURCES", "TARGETS", "compiled", "keep", "kept_path", "read_text"]

_ROOT = Path(__file__).parents[2]
_KEPT = _ROOT / "tests" / "data" / "programs"
_TWINS = ("attention", "gemm_f16", "gemm_int8", "gemm_sparse", "rowwise", "copy_pipeline", "cluster_pipeline",
          "column_sums")  # fmt: skip
SOURCES = {path.stem: path for path in sorted(Path(__file__).with_name("cuda").glob("*.cu"))} | {
    f"twin_{name}": _ROOT / "examples" / "cuda" / f"{name}.cu" for name in _TWINS
}
TARGETS = {  # oldest target of a program, if not sm_80
    "twin_rowwise": "sm_90", "twin_column_sums": "sm_90",
    **dict.fromkeys(("asynchronous_habits", "asynchronous_families", "twin_copy_pipeline", "twin_cluster_pipeline"),
                    "sm_90a"),
}  # fmt: skip
FLAGS = ("-ptx", "-std=c++17", "-O3", "-lineinfo", "--Werror=all-warnings")


def compiled(source: Path, *flags: str, target: str = "sm_80") -> str:
    """Compile with nvcc; file names are relative to their own folder, so that the machine does not matter."""
    command = ["nvcc", *FLAGS, f"-arch={target}", *flags, "-o", "-", source.name]
    text = subprocess.run(command, cwd=source.parent, check=True, capture_output=True, text=True).stdout
    text = text.replace(f'"{source.parent}/', '"')
    return re.sub(r'"[^"\n]*/include/', '"include/', text)


def kept_path(name: str) -> Path:
    """Return the path of a stored text, such as `radix.ptx`."""
    return _KEPT / f"{name}.xz"


def read_text(name: str) -> str:
    """Read a stored text."""
    return lzma.decompress(kept_path(name).read_bytes()).decode()


def keep(name: str, text: str) -> None:
    """Store a text."""
    kept_path(name).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
