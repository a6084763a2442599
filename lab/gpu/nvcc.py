"""CUDA C++ to machine code, by the nvcc on the path."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

__all__ = ["cubin"]


def cubin(source: str, architecture: str = "sm_90a") -> bytes:
    """Compile a text of CUDA C++ for an architecture; `subprocess.CalledProcessError` if nvcc refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        text, made = Path(folder) / "source.cu", Path(folder) / "made.cubin"
        text.write_text(source)
        subprocess.run(["nvcc", "-cubin", f"-arch={architecture}", str(text), "-o", str(made)], check=True)
        return made.read_bytes()
