"""What the Hopper examples share: the instructions of `cuda/hopper.cuh` for kernels in Python, and launches.

Kernels in Python run in lockstep: the thread that copies and the warpgroups that multiply take turns, and where a twin
polls an mbarrier, a kernel here finds its phase complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from twins import Array, codes

import warpmma as wm
from warpmma.kernel import Launch
from warpmma.layouts import MatrixDescriptor
from warpmma.machine import Swizzle

TARGET = "sm_90a"
WARPGROUP, CONSUMERS = 128, 2  # threads; warpgroups that multiply
THREADS = (1 + CONSUMERS) * WARPGROUP  # of a block: the first warpgroup copies
CONSUMING_WARPS = CONSUMERS * WARPGROUP // 32
ROW = 128  # bytes of a row of every tile, and of the swizzle
SWIZZLE = Swizzle(3, 4, 3)  # the 16-byte pieces of a row are permuted by its row modulo 8
_LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
_STORE = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"


@dataclass(frozen=True, kw_only=True)
class Call:
    """A launch, here or on a GPU.

    Attributes
    ----------
    kernel : callable
        In Python. Called with the threads, the addresses of tensor maps and, by name, `numbers`.
    source, twin : str
        The file of CUDA C++, and its kernel. It takes the maps and then the numbers.
    grid : tuple of int
    shared : int
        Bytes of shared memory.
    arrays : tuple of ndarray
        In global memory; the last is the output.
    boxes : tuple of (int, int)
        Rows and columns of the box of each array's tensor map.
    numbers : dict of int or float
    cluster : int
    """

    kernel: Callable[..., None]
    source: str
    twin: str
    grid: tuple[int, ...]
    shared: int
    arrays: tuple[Array, ...]
    boxes: tuple[tuple[int, int], ...]
    numbers: dict[str, int | float]
    cluster: int = 1
    threads = THREADS

    def maps(self, arrays: Any) -> list[wm.TensorMap]:
        """Return the tensor maps of arrays, those of a device for a launch there."""
        return [wm.TensorMap(x, box, swizzle=ROW) for x, box in zip(arrays, self.boxes, strict=True)]

    def placed(self) -> tuple[wm.Device, Any, list[wm.TensorMap]]:
        """Return a device with the arrays, its output, and the tensor maps."""
        device = wm.Device(TARGET)
        *inputs, output = self.arrays
        arrays = [*(device.array(x) for x in inputs), device.empty(output.shape, output.dtype)]
        return device, arrays[-1], self.maps(arrays)


def simulate(call: Call, **options: Any) -> tuple[Array, Launch]:
    """Run a kernel in Python; return its output, and the launch. `options` are those of `launch`."""

    def kernel(t: Any, *maps: Any) -> None:
        call.kernel(t, *maps, **call.numbers)

    device, output, maps = call.placed()
    launch = wm.kernel.launch(
        kernel, call.grid, THREADS, maps, target=device, shared=call.shared,
        cluster=call.cluster if call.cluster > 1 else None, **options,
    )  # fmt: skip
    return output.numpy(), launch


def simulate_twin(call: Call, text: str = "", **options: Any) -> tuple[Array, Any]:
    """Run the twin, or another text of it, on the simulator: its output, and the launch."""
    path = Path(__file__).parent / "cuda" / f"{call.source}.cu"
    include = ("-I", str(path.parent))
    module = wm.cuda.load(text or path, arch=TARGET, options=include, name=path.name)
    device, output, maps = call.placed()
    numbers = [np.float32(x) if isinstance(x, float) else x for x in call.numbers.values()]
    launch = module[call.twin].launch(device, call.grid, THREADS, [*maps, *numbers], shared=call.shared, **options)
    return output.numpy(), launch


def compare(call: Call, expected: Array | None = None, *, twin: bool = True) -> Array:
    """Run a kernel in Python, and compare it with its twin, and with a whole product, bit by bit; return the output."""
    found, _ = simulate(call)
    if twin:
        np.testing.assert_array_equal(codes(found), codes(simulate_twin(call)[0]))
    if expected is not None:
        np.testing.assert_array_equal(codes(found), codes(expected))
    return found


# Instructions, by the names of `hopper.cuh`


def barrier_init(t: Any, barrier: Any, arrivals: int) -> None:
    """Initialise an mbarrier."""
    t("mbarrier.init.shared::cta.b64", barrier, arrivals)


def arrive(t: Any, barrier: Any) -> None:
    """Arrive at an mbarrier of the own block."""
    t("mbarrier.arrive.shared::cta.b64", barrier)


def arrive_at(t: Any, barrier: Any, rank: Any) -> None:
    """Arrive at the mbarrier in the same place of another block of the cluster."""
    there = t("mapa.shared::cluster.u32", barrier, rank)
    t("mbarrier.arrive.release.cluster.shared::cluster.b64", there)


def arrive_expecting(t: Any, barrier: Any, size: int) -> None:
    """Arrive, and announce bytes that copies bring."""
    t("mbarrier.arrive.expect_tx.shared::cta.b64", barrier, size)


def wait(t: Any, barrier: Any, parity: int) -> None:
    """Find the phase of a parity complete, in all threads that look: they cannot poll."""
    done = t("mbarrier.try_wait.parity.shared::cta.b64", barrier, parity)
    assert done.bits[t.active].all()


def load_box(t: Any, to: Any, box: Any, column: Any, row: Any, full: Any) -> None:
    """Copy a box of a tensor to shared memory."""
    t(_LOAD, to, box, [column, row], full)


def load_box_to_blocks(t: Any, to: Any, box: Any, column: Any, row: Any, full: Any, mask: int) -> None:
    """Copy it to the same place in the blocks of a mask."""
    t(f"{_LOAD}.multicast::cluster", to, box, [column, row], full, t.constant(mask, "b16"))


def store_box(t: Any, box: Any, column: Any, row: Any, place: Any) -> None:
    """Copy a box from shared memory to a tensor."""
    t(_STORE, box, [column, row], place)


def store_wait(t: Any) -> None:
    """Wait for all stores of the thread."""
    t("cp.async.bulk.commit_group")
    t("cp.async.bulk.wait_group", 0)


def descriptor(t: Any, tile: Any, panel: int = 16) -> Any:
    """Return the matrix descriptor of a tile that begins at an address, a register."""
    word = MatrixDescriptor(start=0, leading=panel, stride=8 * ROW, swizzle=ROW).word
    return t.constant(word, "b64") + ((tile & 0x3FFFF) >> 4)


def cluster_sync(t: Any) -> None:
    """Wait for all threads of the cluster."""
    t("barrier.cluster.arrive.aligned")
    t("barrier.cluster.wait.aligned")


def limit_registers(t: Any) -> None:
    """Give registers of the warpgroup that copies to those that multiply."""
    with t.where(t.warpid < 4):
        t("setmaxnreg.dec.sync.aligned.u32", 40)
    with t.where(t.warpid >= 4):
        t("setmaxnreg.inc.sync.aligned.u32", 232)


def consumers_sync(t: Any) -> None:
    """Let the threads of each consuming warpgroup wait for each other, at a barrier of its own."""
    for consumer in range(CONSUMERS):
        with t.where(t.warpid // 4 == 1 + consumer):
            t("bar.sync", 1 + consumer, WARPGROUP)


def pack(t: Any, low: Any, high: Any) -> Any:
    """Round two floats to f16: the first in the lower half."""
    return t("cvt.rn.f16x2.f32", high, low)


def store_matrices(t: Any, panels: list[Any], sums: Any) -> None:
    """Write sums of a warpgroup to its 64 rows of panels in shared memory, rounded to f16, 64 columns each."""
    thread = t.tid[0] % WARPGROUP
    at = (thread // 32 * 16 + t.laneid % 16) * ROW + t.laneid // 16 * 16
    for j in range(len(sums) // 8):
        x = [pack(t, sums[i], sums[i + 1]) for i in range(8 * j, 8 * j + 8, 2)]
        t("stmatrix.sync.aligned.m8n8.x4.shared.b16", panels[j // 4] + SWIZZLE(at + j % 4 * 32), x)
