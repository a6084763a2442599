"""Run Triton's kernels for sm_90a, products by `wgmma`, on the simulator: `python -m lab.compare.triton_warpgroups`.

The kernels are in `lab/triton_programs/warpgroup_kernels.py`. Prints for each case whether its output is what an H200
left (`tests/data/h200_triton_warpgroups.json`); needs Triton and PyTorch. `--launches FILE` stores the launches for
`python -m lab.compare.launches`, which repeats them on a GPU; an older driver takes the text with another `.version`,
which `--version 9.0` writes. `--record replay.json` takes what that has written, and keeps the outputs which are the
GPU's.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

import warpmma as wm
from lab.triton_programs import warpgroup_kernels as kernels
from lab.triton_programs.launching import Launched, watched
from lab.triton_programs.snapshots import digest, memory, write

__all__ = ["CASES", "RECORDED", "output"]

RECORDED = Path(__file__).parents[2] / "tests" / "data" / "h200_triton_warpgroups.json"
_TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2,
          "f32": torch.float32, "s8": torch.int8}  # fmt: skip
_SUMS = {"f32": (tl.float32, torch.float32), "f16": (tl.float16, torch.float16), "s32": (tl.int32, torch.int32)}


class Made(NamedTuple):
    """A launch: what calls the kernel, and the tensor that it fills."""

    call: Callable[[], Any]
    output: torch.Tensor


def _random(type_: str, *shape: int, seed: int) -> torch.Tensor:
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return (x * 20).round().clamp(-127, 127).to(torch.int8) if type_ == "s8" else x.to(_TYPES[type_])


def _product(
    type_: str, shape: tuple[int, int, int], tile: tuple[int, int, int], *, warps: int = 4, sums: str = "f32",
    columns: bool = True, stages: int = 2, of_a: str = "",
) -> Made:  # fmt: skip
    (m, n, k), (rows, across, along) = shape, tile
    x = _random(of_a or type_, m, k, seed=1)
    y = _random(type_, n, k, seed=2) if columns else _random(type_, k, n, seed=2)
    d = torch.zeros(m, n, dtype=_SUMS[sums][1])
    return Made(lambda: kernels.product[m // rows, n // across](
        x, y, d, k, 1, *((1, k) if columns else (n, 1)), BM=rows, BN=across, BK=along, TYPE=_SUMS[sums][0],
        PRECISION="tf32", STAGES=stages, CONVERT=bool(of_a), num_warps=warps,
    ), d)  # fmt: skip


def _scaled(type_: str) -> Made:
    x, y = _random(type_, 128, 512, seed=1), _random(type_, 128, 512, seed=2)
    scales, d = torch.rand(128, 4, generator=torch.Generator().manual_seed(3)), torch.zeros(128, 128)
    return Made(lambda: kernels.scaled[2, 2](x, y, scales, d, 512, BM=64, BN=64, BK=128), d)


def _attention(type_: str, *, causal: bool, size: int = 64, rows: int = 64, warps: int = 4) -> Made:
    length, heads = 256, 2
    q, k, v = (_random(type_, heads, length, size, seed=seed) for seed in (1, 2, 3))
    out = torch.zeros(heads, length, size)
    return Made(lambda: kernels.attention[length // rows, heads](
        q, k, v, out, length, 0.18, BM=rows, BN=64, SIZE=size, CAUSAL=causal, num_warps=warps
    ), out)  # fmt: skip


def _described(*, specialized: bool) -> Made:
    n = 256
    x, y, d = _random("f16", n, n, seed=1), _random("f16", n, n, seed=2), torch.zeros(n, n, dtype=torch.float16)

    def workspace(size: int, alignment: int, stream: Any) -> torch.Tensor:
        made = torch.empty(size + alignment, dtype=torch.int8)
        return made[-made.data_ptr() % alignment :]

    def call() -> None:
        triton.set_allocator(workspace)
        kernels.described[2,](x, y, d, n, n, n, BM=128, BN=64, BK=64, WARPS=specialized, num_warps=4)

    return Made(call, d)


CASES: dict[str, Callable[[], Made]] = {
    "f16": lambda: _product("f16", (128, 128, 256), (64, 64, 64)),
    "f16, 128 x 256": lambda: _product("f16", (128, 256, 256), (128, 256, 64), warps=8, stages=3),
    "f16, B by rows": lambda: _product("f16", (128, 128, 256), (64, 128, 32), columns=False),
    "f16, sums of f16": lambda: _product("f16", (128, 128, 256), (64, 64, 64), sums="f16"),
    "bf16": lambda: _product("bf16", (128, 128, 256), (128, 128, 64), warps=8),
    "tf32": lambda: _product("f32", (128, 64, 128), (64, 64, 32)),
    "e4m3": lambda: _product("e4m3", (128, 128, 512), (64, 64, 128)),
    "e5m2": lambda: _product("e5m2", (128, 128, 512), (128, 64, 64), warps=8),
    "s8": lambda: _product("s8", (128, 128, 512), (64, 64, 64), sums="s32"),
    "s8 and f16": lambda: _product("f16", (128, 128, 256), (64, 64, 64), of_a="s8"),
    "scaled e4m3": lambda: _scaled("e4m3"),
    "attention f16": lambda: _attention("f16", causal=False),
    "attention bf16, causal": lambda: _attention("bf16", causal=True, rows=128, warps=8),
    "attention f16, 128 wide": lambda: _attention("f16", causal=True, size=128),
    "descriptors": lambda: _described(specialized=False),
    "descriptors, specialised warps": lambda: _described(specialized=True),
}


def output(name: str, **options: Any) -> tuple[str, list[Launched]]:
    """Run a case on the simulator, with options of the device; return the digest of its output, and its launches."""
    made = CASES[name]()
    with wm.triton.device("sm_90a", ptx_target="sm_90", **options), watched(memory) as launches:
        made.call()
    return digest(made.output.contiguous().view(torch.uint8).numpy().reshape(-1))[:20], launches


def main(arguments: list[str] | None = None) -> int:
    """Run all cases; 1 if an output is not the H200's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=Path, metavar="FILE", help="keep launches with their memory")
    parser.add_argument("--version", default="", help="of the text that is kept (default: Triton's)")
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep the digests that a GPU's replay has, too")
    options = parser.parse_args(arguments)
    if options.record:
        return _record(json.loads(options.record.read_text()))
    there: dict[str, str] = json.loads(RECORDED.read_text())["outputs"]
    kept: list[tuple[str, Launched]] = []
    found: dict[str, str] = {}
    for name in CASES:
        start = time.perf_counter()
        found[name], launches = output(name)
        kept += [(name, x) for x in launches]
        said = "as on the H200" if found[name] == there.get(name) else "DIFFERS"
        print(f"{name}: {time.perf_counter() - start:.2f} s {said}", flush=True)
    if options.launches:
        write(options.launches, kept, options.version)
    return int(found != there)


def _record(replay: dict[str, Any]) -> int:
    """Write the digests of outputs that a GPU's replay of the launches has left, too; 1 if it has not left them all."""
    found = {name: output(name)[0] for name in CASES}
    left = {one["name"]: {piece.split()[1] for piece in one["left"]} for one in replay["launches"]}
    same = {name: x for name, x in found.items() if x in left.get(name, ())}
    about = {"gpu": replay["gpu"], "driver": replay["driver"], "outputs": same}
    RECORDED.write_text(json.dumps(about, indent=1) + "\n")
    print(f"{len(same)} of {len(found)} outputs are those of {replay['gpu']}")
    return int(same != found)


if __name__ == "__main__":
    sys.exit(main())
