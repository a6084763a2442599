"""Record what `tl.dot` computes if Triton compiles for the GPU itself: `python -m lab.record.dots --help`.

Stores the instructions in Triton's PTX and a digest of the result's bits for each type and tile, to compare with what
`warpmma.triton` computes from the PTX for an older target. Needs a GPU, PyTorch and Triton.
"""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, name-defined"

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import triton
import triton.language as tl

__all__ = ["cases", "digest", "product"]

TYPES: dict[str, Any] = {
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
}  # fmt: skip
TILES = (16, 16), (32, 64), (64, 16), (64, 64), (128, 128)
K = 128


@triton.jit
def product(a, b, d, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Multiply by steps of 32 along k."""
    rows, columns, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, 32)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, 32):
        x = tl.load(a + rows[:, None] * K + k + ks[None, :])
        y = tl.load(b + (k + ks[:, None]) * N + columns[None, :])
        acc = tl.dot(x, y, acc, input_precision="tf32")
    tl.store(d + rows[:, None] * N + columns[None, :], acc)


def cases() -> Iterator[tuple[str, str, Any, Any]]:
    """Give the name and type of each case, and A and B: normal numbers times powers of two, which tf32 holds."""
    for name, dtype in TYPES.items():
        for m, n in TILES:
            rng = np.random.default_rng(m * 1000 + n)
            made: list[Any] = []
            for shape in ((m, K), (K, n)):
                x = np.ldexp(rng.standard_normal(shape).astype(np.float32), rng.integers(-6, 3, shape)).astype(
                    np.float32
                )
                made.append((x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(dtype))
            yield f"{name} {m}x{n}", name, made[0], made[1]


def digest(d: Any) -> str:
    """Return a digest of an array's bytes."""
    return hashlib.blake2b(np.ascontiguousarray(d).tobytes(), digest_size=16).hexdigest()


def _on_gpu(name: str, a: Any, b: Any) -> dict[str, Any]:
    """Run a case on the GPU."""
    import torch

    kinds = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "bf16": torch.bfloat16}

    def tensor(x: Any) -> Any:
        if name not in kinds:
            return torch.from_numpy(x).cuda()
        return torch.from_numpy(x.view(f"i{x.itemsize}")).cuda().view(kinds[name])

    d = torch.zeros(a.shape[0], b.shape[1], dtype=torch.float32, device="cuda")
    kernel = product[(1,)](tensor(a), tensor(b), d, M=a.shape[0], N=b.shape[1], K=K, num_warps=4)
    found = re.findall(r"(?:wgmma\.mma_async|tcgen05\.mma|mma\.sync)[\w.:]*", kernel.asm["ptx"])
    return {"instructions": sorted(set(found)), "digest": digest(d.cpu().numpy())}


def main(arguments: list[str] | None = None) -> int:
    """Run every case; 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, metavar="FILE", help="instructions and digests by case, JSON")
    options = parser.parse_args(arguments)
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu, driver = subprocess.run(query, check=True, capture_output=True, text=True).stdout.splitlines()[0].split(", ")
    outputs = {case: _on_gpu(name, a, b) for case, name, a, b in cases()}
    for case, found in outputs.items():
        print(case, *found["instructions"], found["digest"])
    if options.out:
        kept = {"gpu": gpu, "driver": driver, "triton": triton.__version__, "outputs": outputs}
        options.out.write_text(json.dumps(kept, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
