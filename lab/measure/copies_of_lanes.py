"""Measure how often a copy runs that several lanes of a warp execute at once: `python -m lab.measure.copies_of_lanes`.

A warp adds a tile of ones to a tensor and to an array, and loads one, from 1, 2 and 32 of its lanes. Sums say how often
each reduction ran; how many bytes the mbarrier needs, how often the load did. CUTLASS's epilogue lets all lanes of a
warp store one box. Needs nvcc, the driver and a GPU of sm_90a; prints what `tests/data/h200_copies_of_lanes.json` has.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import warpmma as wm
from lab.gpu.driver import Driver, argument_bytes
from lab.gpu.nvcc import cubin

__all__ = ["LANES", "RECORDED", "simulated"]

RECORDED = Path(__file__).parents[2] / "tests" / "data" / "h200_copies_of_lanes.json"
LANES = (1, 2, 32)
_WORDS = 64
_SOURCE = r"""
struct alignas(64) TensorMap { unsigned long long words[16]; };
__device__ unsigned in_shared(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
extern "C" __global__ void copies(const __grid_constant__ TensorMap box, unsigned* y, unsigned* counted, int lanes) {
  __shared__ alignas(128) unsigned tile[64];
  __shared__ alignas(8) unsigned long long full;
  tile[threadIdx.x] = tile[32 + threadIdx.x] = 1;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncwarp();
  if (threadIdx.x < lanes) {
    asm volatile("cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%0, {%1}], [%2];"
                 :: "l"(&box), "r"(0), "r"(in_shared(tile)) : "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 256;"
                 :: "l"(y), "r"(in_shared(tile)) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
  }
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(in_shared(&full)) : "memory");
  __syncwarp();
  for (int i = 0; i < lanes; i++) {
    if (threadIdx.x == 0)
      asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 256;" :: "r"(in_shared(&full)) : "memory");
    __syncwarp();
  }
  if (threadIdx.x < lanes)
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2}],"
                 " [%3];" :: "r"(in_shared(tile)), "l"(&box), "r"(0), "r"(in_shared(&full)) : "memory");
  __syncwarp();
  if (threadIdx.x == 0) {
    unsigned done = 0;
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(in_shared(&full)) : "memory");
    for (int i = 0; i < 1000 && !done; i++)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                   : "=r"(done) : "r"(in_shared(&full)) : "memory");
    counted[0] = done;
  }
}
"""


def _found(x: Any, y: Any, counted: Any) -> list[int]:
    """Return how often both reductions ran, and whether bytes were counted as often as lanes loaded."""
    return [int(x[0]), int(y[0]), int(counted[0])]


def simulated(lanes: int, **options: Any) -> list[int]:
    """Return what the simulator does, with options of `launch`."""
    device = wm.Device("sm_90a")
    x, y, counted = (device.array(np.zeros(n, np.uint32)) for n in (_WORDS, _WORDS, 1))
    kernel = wm.cuda.load(_SOURCE, arch="sm_90a", name="copies.cu")["copies"]
    kernel.launch(device, 1, 32, [wm.TensorMap(x, (_WORDS,)), y, counted, lanes], **options)
    return _found(x.numpy(), y.numpy(), counted.numpy())


def main(arguments: list[str] | None = None) -> int:
    """Measure; 1 if it is not what was recorded."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args(arguments)
    driver, found = Driver(), dict[str, list[int]]()
    (function,) = driver.load(cubin(_SOURCE), ["copies"]).values()
    for lanes in LANES:
        data = {name: np.zeros(n, np.uint32) for name, n in (("x", _WORDS), ("y", _WORDS), ("counted", 1))}
        place = {name: driver.place(x) for name, x in data.items()}
        box = wm.TensorMap(place["x"], (_WORDS,), type="u32", shape=(_WORDS,))
        rest = [argument_bytes(place, name) for name in ("y", "counted")]
        driver.launch(function, [1], [32], [box.encoded, *rest, np.int32(lanes).tobytes()])
        driver.synchronise(20)
        found[str(lanes)] = _found(*(driver.fetch(place[name], x) for name, x in data.items()))
    print(json.dumps({**Driver.about(), "ran": found}))
    return int(found != json.loads(RECORDED.read_text())["ran"])


if __name__ == "__main__":
    sys.exit(main())
