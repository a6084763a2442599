"""Record what `atom` and `red` compute for floats on a GPU, and compare it with the rows.

python -m lab.record.atomics OUT.npz

Each thread changes its own element, in global and in shared memory: all pairs of special codes (zeros, subnormal
numbers and the least normal ones, the largest, infinities, NaN with payloads of both signs), and random pairs with
similar exponents. Vectors of sm_90 are included. Differences from the rows are printed by form, with the first
operands; the GPU's results are in the archive.

It needs CuPy and a GPU of sm_90 or later; a few seconds.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from warpmma.operations import Atomic, row

Array = np.ndarray[Any, Any]

_KERNEL = r"""
extern "C" __global__ void atomic(WORD *x, const WORD *y, WORD *found, int n) {
  SHARED
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * COUNT;
  if (i >= n) return;
  BEGIN
  asm volatile("ASM" : OUTPUTS : "l"(at), INPUTS : "memory");
  END
}
"""
_WORD = {16: ("unsigned short", "h"), 32: ("unsigned int", "r"), 64: ("unsigned long long", "l")}
_THREADS = 128

FORMS = [
    *(f"{name}.{space}.add.{type_}" for name in ("atom", "red") for space in ("global", "shared")
      for type_ in ("f32", "f64", "noftz.f16", "noftz.f16x2", "noftz.bf16", "noftz.bf16x2")),
    *(f"{name}.global.add.{x}" for name in ("atom", "red")
      for x in ("v2.f32", "v4.f32", "noftz.v8.f16", "noftz.v8.bf16", "noftz.v4.f16x2", "noftz.v4.bf16x2")),
    *(f"{name}.global.{op}.noftz.{x}" for name in ("atom", "red") for op in ("min", "max")
      for x in ("v2.f16", "v2.bf16", "v2.f16x2", "v2.bf16x2")),
]  # fmt: skip


def special(type_: str) -> Array:
    """Return hard codes of one element."""
    bits, fraction = {"f16": (16, 10), "bf16": (16, 7), "f32": (32, 23), "f64": (64, 52)}[type_]
    inf = ((1 << (bits - 1 - fraction)) - 1) << fraction
    one = (inf >> 1) & ~((1 << fraction) - 1)
    quiet = 1 << (fraction - 1)
    positive = [
        0, 1, 2, 3, quiet, (1 << fraction) - 1, 1 << fraction, (1 << fraction) + 1, (2 << fraction) - 1, 2 << fraction,
        one, one + 1, one - 1, one | quiet, inf - 1, inf - 2, inf - (1 << fraction), inf - (2 << fraction) + 1, inf,
        inf + 1, inf | quiet, inf | quiet | 5, (1 << (bits - 1)) - 1,
    ]  # fmt: skip
    return np.array([*positive, *(x | 1 << (bits - 1) for x in positive)], f"u{bits // 8}")


def pairs(type_: str, number: int) -> tuple[Array, Array]:
    """Return pairs of codes of elements, a multiple of 1024 of them."""
    codes = special(type_)
    x, y = np.array(list(itertools.product(codes, codes)), codes.dtype).T
    rng = np.random.default_rng(12)
    most, fraction = np.iinfo(codes.dtype).max, {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[type_]
    a, b = (rng.integers(0, most, number, codes.dtype, endpoint=True) for _ in range(2))
    low = codes.dtype.type((1 << fraction) - 1 | ((1 << 3) - 1) << fraction | 1 << (codes.dtype.itemsize * 8 - 1))
    near = (a & ~low) | (b & low)  # exponents that differ in their last bits
    tiny = b & low  # subnormal and nearly so
    x, y = np.concatenate([x, a, a, tiny]), np.concatenate([y, b, near, a & low])
    return tuple(np.concatenate([z, z[: -len(z) % 1024]]) for z in (x, y))  # type: ignore[return-value]


def source(form: Atomic) -> str:
    """Write the kernel of a form."""
    word, letter = _WORD[form.bits]
    vector = form.count > 1
    outputs = [f"%{i}" for i in range(form.count)] if form.returns else []
    inputs = [f"%{len(outputs) + 1 + i}" for i in range(form.count)]
    put = [f"{{{', '.join(x)}}}" if vector else "".join(x) for x in (outputs, inputs)]
    text = f"{form} {put[0] + ', ' if form.returns else ''}[%{len(outputs)}], {put[1]};"
    begin = "WORD *place = x + i; size_t at = __cvta_generic_to_global(place);"
    end = "for (int j = 0; j < COUNT; ++j) found[i + j] = d[j];" if form.returns else ""
    shared = ""
    if form.space == "shared":
        shared = f"__shared__ WORD held[{_THREADS}];"
        begin = "held[threadIdx.x] = x[i]; size_t at = __cvta_generic_to_shared(held + threadIdx.x);"
        end += " x[i] = held[threadIdx.x];"
    given = ", ".join(f'"{letter}"(y[i + {j}])' for j in range(form.count))
    taken = ", ".join(f'"={letter}"(d[{j}])' for j in range(form.count)) if form.returns else ""
    return (
        _KERNEL.replace("SHARED", shared).replace("BEGIN", f"WORD d[COUNT]; {begin}").replace("END", end)
        .replace("ASM", text).replace("OUTPUTS", taken).replace("INPUTS", given)
        .replace("COUNT", str(form.count)).replace("WORD", word)
    )  # fmt: skip


def main() -> None:
    """Record and compare."""
    import cupy

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--random", type=int, default=1 << 16, help="pairs at random of each kind")
    arguments = parser.parse_args()
    kept: dict[str, Array] = {}
    different = 0
    for name in FORMS:
        form = row(name)
        assert isinstance(form, Atomic)
        element = form.type.removesuffix("x2")
        dtype = f"u{form.bits // 8}"
        x, y = (z.view(dtype) for z in pairs(element, arguments.random))
        kernel = cupy.RawModule(code=source(form)).get_function("atomic")
        place, given, found = cupy.asarray(x), cupy.asarray(y), cupy.zeros(len(x), dtype)
        blocks = -(-len(x) // (_THREADS * form.count))
        kernel((blocks,), (_THREADS,), (place, given, found, np.int32(len(x))))
        left = cupy.asnumpy(place)
        expected = form.combine(form.space, x, y)
        bad = expected != left
        if form.returns:
            bad |= cupy.asnumpy(found) != x
        print(f"{name}: {len(x)} elements, {bad.sum()} differ", end="")
        for i in np.flatnonzero(bad)[:4]:
            print(f"; {x[i]:#x} + {y[i]:#x} = {left[i]:#x}, not {expected[i]:#x}", end="")
        print(flush=True)
        different += int(bad.sum())
        first = len(special(element)) ** 2 * np.dtype(special(element).dtype).itemsize // np.dtype(dtype).itemsize
        kept[name] = np.stack([x[:first], y[:first], left[:first]])
    np.savez_compressed(arguments.out, **kept)  # type: ignore[arg-type]
    print(f"{len(FORMS)} forms, {different} differences")


if __name__ == "__main__":
    main()
