"""Run the CUDA C++ twins of examples that copy tensors on a GPU: `python -m lab.compare.tensor_twins --help`.

Their sums have to be those of the examples, bit by bit. Needs nvcc, the driver and a GPU of sm_90a.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import warpmma as wm
from lab.gpu.driver import Driver, argument_bytes
from lab.gpu.nvcc import cubin

__all__ = ["TWINS", "Twin"]

Array = npt.NDArray[Any]

EXAMPLES = Path(__file__).parents[2] / "examples"


@cache
def example(name: str) -> Any:
    """Return the module of an example."""
    spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@dataclass(frozen=True)
class Twin:
    """An example: its module, and whether the launch has weights for each of several blocks."""

    name: str
    blocks: int
    weighted: bool

    def inputs(self, seed: int) -> list[Array]:
        """Return the tensor, and weights if there are some."""
        random, module = np.random.default_rng(seed), example(self.name)
        x = random.standard_normal((module.TILES * module.ROWS - 5, 64), np.float32)
        return [x, random.integers(-8, 9, (self.blocks, module.TILES)).astype(np.float32)][: 1 + self.weighted]

    def box(self, tensor: Any) -> wm.TensorMap:
        """Return the map of the tensor."""
        module = example(self.name)
        return wm.TensorMap(tensor, (module.ROWS // getattr(module, "CLUSTER", 1), module.COLUMNS))


TWINS = (Twin("copy_pipeline", 1, weighted=False), Twin("cluster_pipeline", 8, weighted=True))


def on_gpu(driver: Driver, twin: Twin, given: Sequence[Array]) -> Array:
    """Return what the twin sums on the GPU."""
    module = example(twin.name)
    made = cubin((EXAMPLES / "cuda" / f"{twin.name}.cu").read_text())
    (function,) = driver.load(made, [twin.name]).values()
    sums = np.full((twin.blocks, module.ROWS, module.COLUMNS), np.nan, np.float32)
    place = {f"x{i}": driver.place(x) for i, x in enumerate(given)} | {"y": driver.place(sums)}
    box = replace(twin.box(wm.Device("sm_90a").array(given[0])), address=place["x0"])
    rest = [argument_bytes(place, name) for name in [*place][1:]]
    driver.launch(function, [twin.blocks], [module.THREADS], [bytes(box), *rest])
    driver.synchronise(20)
    return driver.fetch(place["y"], sums)


def main(arguments: list[str] | None = None) -> int:
    """Compare every twin with its example; 1 if any bit differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="inputs of each (default: %(default)s)")
    options = parser.parse_args(arguments)
    driver, failed = Driver(), 0
    print(*Driver.about().items())
    for twin in TWINS:
        for seed in range(options.seeds):
            given = twin.inputs(seed)
            failed += on_gpu(driver, twin, given).tobytes() != example(twin.name).expected(*given).tobytes()
        print(f"{twin.name}: {options.seeds} inputs; {failed} with other bits so far")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
