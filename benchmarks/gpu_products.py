"""Products on a GPU, in 10^12 products a second of device time: `python -m benchmarks.gpu_products [--size 4096]`.

Needs PyTorch and an NVIDIA GPU. The limit is that of the pipe that binds: its lanes a clock and multiprocessor, the
products that one of its instructions makes, and the clock while the kernels ran.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import warpmma as wm
from warpmma._text import table


class Pipe(NamedTuple):
    """What binds: products that a multiprocessor of sm_90 can make in a clock."""

    name: str
    products: float


CONVERSIONS = Pipe("conversions to integers", 16)
FMA, FMA64 = Pipe("fma, f32", 128), Pipe("fma, f64", 64)
DOT4, GROUPS = Pipe("dot products of 4 bytes", 256), Pipe("shifts and logic, 2.7 a product", 24)

WGMMA = "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3"
MXFP8 = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
MXFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
NVFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
CASES: tuple[tuple[str, str, dict[str, Any], Pipe], ...] = (
    ("f16", "sm_90", {}, CONVERSIONS), ("f16", "sm_80", {}, CONVERSIONS), ("f16", "sm_70", {}, CONVERSIONS),
    ("bf16", "sm_90", {}, CONVERSIONS), ("bf16", "sm_80", {}, CONVERSIONS),
    ("e4m3", "sm_90a", {"instruction": WGMMA}, CONVERSIONS),
    ("e4m3", "sm_90a", {"instruction": WGMMA, "promote_every": 128}, CONVERSIONS),
    ("e4m3", "sm_89", {}, CONVERSIONS), ("e4m3", "sm_90", {}, CONVERSIONS), ("e4m3", "sm_120", {}, CONVERSIONS),
    ("f32", "sm_90", {"float32": "tf32"}, CONVERSIONS), ("f32", "sm_80", {"float32": "tf32"}, CONVERSIONS),
    ("e4m3", "sm_120a", {"instruction": MXFP8, "block": 32}, CONVERSIONS),
    ("e2m1", "sm_120a", {"instruction": MXFP4, "block": 32}, GROUPS),
    ("e2m1", "sm_120a", {"instruction": NVFP4, "block": 16}, GROUPS),
    ("s8", "sm_90", {}, DOT4), ("f32", "sm_90", {"float32": "ieee"}, FMA), ("f64", "sm_90", {}, FMA64),
)  # fmt: skip


def operands(torch: Any, kind: str, n: int) -> tuple[Any, Any]:
    """Make random matrices of a type, of e2m1 as codes."""
    made = torch.Generator("cuda").manual_seed(0)
    if kind in ("s8", "e2m1"):
        low, high, dtype = (-128, 128, torch.int8) if kind == "s8" else (0, 16, torch.uint8)
        a, b = (torch.randint(low, high, (n, n), device="cuda", dtype=dtype, generator=made) for _ in range(2))
        return a, b
    dtype = {
        "f16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "f32": torch.float32,
        "f64": torch.float64,
    }[kind]  # fmt: skip
    a, b = (torch.randn(n, n, device="cuda", generator=made).to(dtype) for _ in range(2))
    return a, b


def milliseconds(torch: Any, run: Callable[[], object]) -> float:
    """Return the least device time of five calls, after one."""
    run()
    found = []
    for _ in range(5):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        stop.record()
        torch.cuda.synchronize()
        found.append(start.elapsed_time(stop))
    return float(min(found))


def _word(name: str, value: object) -> str:
    """Say an option in a word: of a mnemonic its unit, or its kind."""
    parts = str(value).split(".")
    return next(
        (x.removeprefix("kind::") for x in parts if "kind::" in x), parts[0] if name != "block" else f"/{value}"
    )


def main() -> None:
    """Measure every case."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=4096, help="m, n and k")
    n = parser.parse_args().size
    units = torch.cuda.get_device_properties(0).multi_processor_count
    rows = [("types", "arithmetic", "ms", "T products/s", "of the limit", "pipe that binds")]
    for kind, target, given, pipe in CASES:
        a, b = operands(torch, kind, n)
        options = dict(given)
        if block := options.pop("block", 0):
            scales = torch.randint(100, 120, (2, n, n // block), device="cuda", dtype=torch.uint8)
            options |= {"scale_a": scales[0], "scale_b": scales[1].T}
        took = milliseconds(torch, partial(wm.matmul, a, b, target=target, **options))
        clock = torch.cuda.clock_rate() * 1e6
        rate, limit = n**3 / took * 1e3, pipe.products * units * clock
        how = " ".join((target, *(_word(name, x) for name, x in given.items())))
        rows.append((kind, how, f"{took:.2f}", f"{rate / 1e12:.2f}", f"{rate / limit:.0%}", pipe.name))
    print(torch.cuda.get_device_name(0), f"{n} x {n} x {n}")
    print("\n".join(table(rows, left=[0, 1, 5])))


if __name__ == "__main__":
    main()
