"""A100 against H100: one PTX, two GPUs, and where their bits part.

The driver assembles PTX for sm_80 on newer GPUs, too, so the same kernel runs on both; but the tensor core of the
H100 keeps more bits of a sum of products than that of the A100. `products` launches the PTX that Triton makes of a
product in f16 with f32 sums on a device of each target; everything else in it, exponentials and divisions too, comes
out alike.

    pip install 'warpmma[triton]'
    python a100_against_h100.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import triton
import triton.language as tl

import warpmma as wm

Array = npt.NDArray[Any]
BLOCK = 32


@triton.jit
def product(a, b, c, n, k, BLOCK: tl.constexpr):
    """Multiply f16 `[m, k]` by `[k, n]` into f32 `[m, n]`, all multiples of BLOCK."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total = tl.dot(tl.load(a + i[:, None] * k + at[None, :]), tl.load(b + at[:, None] * n + j[None, :]), total)
    tl.store(c + i[:, None] * n + j[None, :], total)


def products(a: Array, b: Array, targets: tuple[str, ...] = ("sm_80", "sm_90")) -> list[Array]:
    """Return the product on each target, f32; its PTX is the same, or this raises."""
    texts, found = set(), []
    (m, k), n = a.shape, b.shape[1]
    for target in targets:
        with wm.triton.device(target, ptx_target="sm_80") as gpu:
            c = gpu.device.empty((m, n), np.float32)
            product[m // BLOCK, n // BLOCK](gpu.device.array(a), gpu.device.array(b), c, n, k, BLOCK=BLOCK)
        texts.add(gpu.launches[0].entry.module.source.text)
        found.append(c.numpy())
    if len(texts) > 1:
        raise RuntimeError("Triton wrote another PTX for another target")
    return found


def parted(x: Array, y: Array) -> tuple[int, tuple[int, ...] | None]:
    """Return how many elements have other bits, and the first of them."""
    places = np.argwhere(x.view(np.uint32) != y.view(np.uint32))
    return len(places), tuple(int(i) for i in places[0]) if len(places) else None


def main() -> None:
    """Multiply matrices whose numbers are more and more apart."""
    rng = np.random.default_rng(1)
    print("spread of exponents   elements that differ   the first      A100            H100            exact")
    for spread in (0, 2, 4, 8):
        a, b = (
            np.ldexp(rng.standard_normal((64, 64)), rng.integers(-spread, spread + 1, (64, 64))).astype(np.float16)
            for _ in "ab"
        )
        a100, h100 = products(a, b)
        count, first = parted(a100, h100)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        values = "" if first is None else f"{a100[first]:<15.9g} {h100[first]:<15.9g} {exact[first]:.9g}"
        print(f"{spread:<21} {count:5} of {a100.size:<13} {first!s:<14} {values}")


if __name__ == "__main__":
    main()
