"""`limit.c`, compiled on the spot: what one core can do on finite f16."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt

SOURCE = Path(__file__).with_name("limit.c")


def missing() -> str | None:
    """Say why it cannot be had here, if so."""
    if shutil.which("cc") is None:
        return "no C compiler named cc"
    try:
        info = Path("/proc/cpuinfo").read_text()
    except OSError:
        return "no /proc/cpuinfo that names AVX-512"
    flags = {flag for line in info.splitlines() if line.startswith("flags") for flag in line.split()}
    lacking = {"avx512f", "avx512bw", "f16c"} - flags
    return f"no {' and '.join(sorted(lacking))} on this processor" if lacking else None


def build(folder: Path) -> Path:
    """Compile it for this machine."""
    program = folder / "limit"
    subprocess.run(["cc", "-O3", "-march=native", SOURCE, "-o", program], check=True)
    return program


def speed(program: Path, size: int) -> float:
    """Products a second of a square matrix product, in one round."""
    done = subprocess.run([program, *[str(size)] * 3, "1"], check=True, capture_output=True, text=True)
    return float(done.stdout)


def product(program: Path, a: npt.NDArray[np.float16], b: npt.NDArray[np.float16]) -> npt.NDArray[np.float32]:
    """Multiply matrices with it."""
    operands, result = program.with_suffix(".in"), program.with_suffix(".out")
    operands.write_bytes(a.tobytes() + b.tobytes())
    (m, k), n = a.shape, b.shape[1]
    subprocess.run([program, *map(str, (m, n, k, 1)), operands, result], check=True, capture_output=True)
    return np.fromfile(result, np.float32).reshape(m, n)
