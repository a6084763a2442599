"""Measure what a launch costs by each front end: `python -m lab.measure.front_ends`.

Prints, for each front end that is installed, CPU seconds of the first launch beyond the front end's compilation, with
the imports of warpmma; CPU milliseconds of a later launch, the median of ten rounds; and by how many MB the process
grows from the first to the last round. Kernels are empty, except for those of `torch.compile` and TileLang, which make
no empty ones. Each front end runs in a process of its own. `docs/howto/ci_without_gpu.md` has the figures.
"""

from __future__ import annotations

import argparse
import fnmatch
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from lab.programs.examples import example

__all__ = ["FRONT_ENDS", "Cost", "FrontEnd", "measured"]

ROUNDS = 10
TARGET = "sm_90"
_SOURCE = 'extern "C" __global__ void empty() {}\n'
_PAGE = os.sysconf("SC_PAGE_SIZE") / 1e6 if hasattr(os, "sysconf") else 0.0


@dataclass(frozen=True, kw_only=True)
class FrontEnd:
    """What compiles a kernel, launches it and forgets its launches, in this order.

    `within` are the seconds of a launch that compilation contains, which are not the compiler's.
    """

    compile: Callable[[], object]
    launch: Callable[[], object]
    forget: Callable[[], object] = lambda: None
    within: Callable[[], float] = lambda: 0.0


@dataclass(frozen=True, kw_only=True)
class Cost:
    """CPU seconds to compile and of the first launch, CPU milliseconds of a later one, and MB that were kept."""

    compile: float
    first: float
    later: float
    kept: float


def _resident() -> float:
    """Return the process's memory in MB (Linux)."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def measured(front_end: FrontEnd, launches: int, imports: float = 0.0) -> Cost:
    """Measure launches, in rounds after each of which they are forgotten; `imports` is added to the first."""
    start = time.process_time()
    front_end.compile()
    compiled = time.process_time()
    front_end.launch()
    within = front_end.within()
    first = time.process_time() - compiled + imports + within
    each, memory = list[float](), list[float]()
    for _ in range(ROUNDS):
        begin = time.process_time()
        for _ in range(launches // ROUNDS):
            front_end.launch()
        each.append((time.process_time() - begin) / (launches // ROUNDS) * 1e3)
        front_end.forget()
        memory.append(_resident())
    return Cost(
        compile=compiled - start - within, first=first, later=statistics.median(each), kept=memory[-1] - memory[0]
    )  # fmt: skip


class _Kept(dict[str, Any]):
    """What compilation leaves for the launches."""

    def run(self, *args: Any) -> Any:
        return self["run"](*args)


def _triton() -> FrontEnd:
    import triton

    import warpmma as wm

    @triton.jit  # type: ignore[untyped-decorator, unused-ignore]
    def empty() -> None:
        pass

    gpu = wm.triton.device(TARGET)
    gpu.__enter__()
    return FrontEnd(compile=lambda: empty.warmup(grid=(1,)), launch=lambda: empty[(1,)](), forget=gpu.launches.clear)


def _torch() -> FrontEnd:
    import torch

    import warpmma as wm

    x, kept = torch.zeros(1), _Kept()

    def compiled() -> None:
        kept["run"] = wm.torch.compile(lambda x: x + 1, target=TARGET)
        kept.run(x)  # compiles, and launches once
        kept["seconds"] = kept["run"].report.kernels[0].seconds

    return FrontEnd(compile=compiled, launch=lambda: kept.run(x), within=lambda: kept["seconds"])


def _cute() -> FrontEnd:
    from cutlass import cute

    import warpmma as wm

    @cute.kernel  # type: ignore[untyped-decorator, attr-defined, unused-ignore]
    def empty() -> None:
        pass

    @cute.jit  # type: ignore[untyped-decorator, attr-defined, unused-ignore]
    def host() -> None:
        empty().launch(grid=(1, 1, 1), block=(32, 1, 1))

    gpu, kept = wm.cute.device(TARGET), _Kept()
    gpu.__enter__()
    return FrontEnd(
        compile=lambda: kept.update(run=cute.compile(host)),  # type: ignore[attr-defined, unused-ignore]
        launch=lambda: kept.run(), forget=gpu.launches.clear,
    )  # fmt: skip


def _cuda() -> FrontEnd:
    import warpmma as wm

    device, kept = wm.Device(TARGET), _Kept()
    return FrontEnd(
        compile=lambda: kept.update(run=wm.cuda.load(_SOURCE, arch=TARGET)["empty"].launch),
        launch=lambda: kept.run(device, 1, 32, []),
    )


def _fixture() -> FrontEnd:
    from warpmma.testing import Gpu

    gpu, kept = Gpu(TARGET), _Kept()
    return FrontEnd(
        compile=lambda: kept.update(run=gpu.load(_SOURCE)["empty"]), launch=lambda: gpu.launch(kept["run"], 1, 32, [])
    )


def _python() -> FrontEnd:
    from warpmma.testing import Gpu

    def empty(t: object) -> None: ...

    gpu = Gpu(TARGET)
    return FrontEnd(compile=lambda: None, launch=lambda: gpu.launch(empty, 1, 32, []))


def _warp() -> FrontEnd:
    import warp

    import warpmma as wm

    @warp.kernel(module="unique")  # type: ignore[untyped-decorator, unused-ignore]
    def empty() -> None:
        pass

    kernel = example("warp_kernel")
    device, kept = wm.Device(TARGET), _Kept()

    def compiled() -> None:
        module = empty.module
        module.options |= {"strip_hash": True, "block_dim": kernel.BLOCK}
        with tempfile.TemporaryDirectory() as folder:
            paths = warp.compile_aot_module(module, arch=90, module_dir=folder, use_ptx=True)
            texts = wm.ptx.load(next(p for p in paths if p.suffix == ".ptx"))
        kept["run"] = next(texts[x] for x in texts if "forward" in x)

    return FrontEnd(compile=compiled, launch=lambda: kernel.launch(kept["run"], device, (1,), []))


def _tilelang() -> FrontEnd:
    import tilelang
    from tilelang import language as tl

    import warpmma as wm

    @tl.prim_func  # type: ignore[untyped-decorator, unused-ignore]
    def added(x: tl.Tensor((32,), "float32")):  # type: ignore[no-untyped-def, valid-type, unused-ignore]
        with tl.Kernel(1, threads=32):
            for i in tl.Parallel(32):
                x[i] += 1.0

    device, kept = wm.Device(TARGET), _Kept()
    x = device.array(np.zeros(32, np.float32))

    def compiled() -> None:
        target = tilelang.tvm.target.Target({"kind": "cuda", "arch": TARGET})
        with target:
            made = tilelang.lower(added, target=target)
        folder = Path(tilelang.__file__).parent
        paths = (folder / "src", folder / "3rdparty" / "cutlass" / "include")
        (entry,) = wm.cuda.load(made.kernel_source, arch=TARGET, options=[f"-I{path}" for path in paths]).values()
        kept["run"] = entry.launch

    return FrontEnd(compile=compiled, launch=lambda: kept.run(device, 1, 32, [x]))


FRONT_ENDS: Mapping[str, Callable[[], FrontEnd]] = MappingProxyType({
    "Triton": _triton, "torch.compile": _torch, "CuTe DSL": _cute, "CUDA C++": _cuda, "fixture, CUDA C++": _fixture,
    "fixture, Python": _python, "Warp": _warp, "TileLang": _tilelang,
})  # fmt: skip
"""The front ends: what imports each, and makes a device."""


def _import_front_end(name: str) -> None:
    """Import the front end itself, whose time is its own."""
    modules = {"Triton": "triton", "torch.compile": "torch._inductor.compile_fx", "CuTe DSL": "cutlass.cute",
               "Warp": "warp", "TileLang": "tilelang"}  # fmt: skip
    __import__(modules.get(name, "numpy"))


def _one(name: str, launches: int) -> Cost:
    _import_front_end(name)
    start = time.process_time()
    made = FRONT_ENDS[name]()
    return measured(made, launches, time.process_time() - start)


def main(arguments: list[str] | None = None) -> int:
    """Measure; 1 if a front end is installed and fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", metavar="PATTERN", help="of these front ends")
    parser.add_argument("--launches", type=int, default=10_000)
    parser.add_argument("--one", choices=FRONT_ENDS, help="this one, in this process; prints JSON")
    options = parser.parse_args(arguments)
    if options.one:
        try:
            print(json.dumps(asdict(_one(options.one, options.launches))))
        except ModuleNotFoundError as error:
            print(json.dumps(f"not installed: {error.name}"))
        return 0
    failed = 0
    print("front end            compile s  first s  later ms  MB kept")
    for name in fnmatch.filter(FRONT_ENDS, options.only):
        command = [sys.executable, "-m", "lab.measure.front_ends", "--one", name, "--launches", str(options.launches)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        try:
            row = json.loads(done.stdout.splitlines()[-1])
        except (ValueError, IndexError):
            row, failed = (done.stderr.splitlines() or ["no output"])[-1], failed + 1
        if isinstance(row, dict):
            row = "{compile:9.2f}{first:9.2f}{later:10.3f}{kept:9.1f}".format(**row)
        print(f"{name:20} {row}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
