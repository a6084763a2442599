"""Correct kernels with the habits of CUTLASS, Triton and DeepGEMM: `python -m lab.compare.asynchronous_habits --help`.

They are in `lab/programs/cuda/asynchronous_habits.cu`. Each makes 3 * x + 1, on a GPU and in the simulator. None may be
reported. Needs nvcc, the driver and a GPU of sm_90a.
"""

from __future__ import annotations

import argparse
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import warpmma as wm
from lab.gpu.driver import Driver, argument_bytes
from lab.gpu.nvcc import cubin

__all__ = ["KERNELS", "SOURCE", "WORDS", "Kernel", "expected", "inputs", "simulated"]

Array = npt.NDArray[Any]

SOURCE = Path(__file__).parents[1] / "programs" / "cuda" / "asynchronous_habits.cu"
WORDS = 1024  # of a tile


class Kernel(NamedTuple):
    """How a kernel is launched."""

    threads: int = 128
    blocks: int = 2
    draws: bool = False  # whether blocks draw tiles from a counter


KERNELS = {
    "epilogue": Kernel(),
    "reader_fences": Kernel(),
    "plain_barriers": Kernel(),
    "one_releases": Kernel(threads=256),
    "remote_release": Kernel(threads=160, blocks=4),
    "pingpong": Kernel(threads=384, draws=True),
    "reduction": Kernel(),
}


def inputs(tiles: int, seed: int) -> Array:
    """Return so many tiles of words."""
    return np.random.default_rng(seed).integers(0, 1 << 32, (tiles, WORDS), np.uint32)


def expected(x: Array) -> Array:
    """Return what every kernel makes of them."""
    return np.asarray(np.uint32(3) * x + np.uint32(1))


@cache
def _module() -> Any:
    return wm.cuda.load(SOURCE.read_text(), arch="sm_90a", name=SOURCE.name)


def simulated(name: str, x: Array, **options: Any) -> Array:
    """Return what a kernel makes of tiles in the simulator, with options of `launch`."""
    kernel, device = KERNELS[name], wm.Device("sm_90a")
    y = device.array(np.zeros_like(x))
    more = [np.zeros(1, np.int32)] * kernel.draws
    _module()[name].launch(device, kernel.blocks, kernel.threads, [device.array(x), y, len(x), *more], **options)
    return y.numpy()


def on_gpu(driver: Driver, image: bytes, name: str, x: Array) -> Array:
    """Return what a kernel makes of tiles on the GPU."""
    kernel, y, next_ = KERNELS[name], np.zeros_like(x), np.zeros(1, np.int32)
    (function,) = driver.load(image, [name]).values()
    place = {"x": driver.place(x), "y": driver.place(y), "next": driver.place(next_)}
    x_y_next = [argument_bytes(place, at) for at in place]
    args = [*x_y_next[:2], np.int32(len(x)).tobytes(), *x_y_next[2:][: kernel.draws]]
    driver.launch(function, [kernel.blocks], [kernel.threads], args)
    driver.synchronise(20)
    return driver.fetch(place["y"], y)


def main(arguments: list[str] | None = None) -> int:
    """Run every kernel on the GPU; 1 if any bit differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="inputs of each (default: %(default)s)")
    options = parser.parse_args(arguments)
    image, driver, failed = cubin(SOURCE.read_text()), Driver(), 0
    print(*Driver.about().items())
    for name in KERNELS:
        for seed in range(options.seeds):
            x = inputs(1 + seed % 12, seed)
            failed += on_gpu(driver, image, name, x).tobytes() != expected(x).tobytes()
        print(f"{name}: {options.seeds} inputs; {failed} with other bits so far")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
