"""Kernels of NVIDIA Warp on a machine without a GPU: Warp compiles, warpmma runs. Needs `pip install warp-lang`.

`compile_aot_module` writes PTX for any target. A kernel takes the shape of the launch, then its arguments, and strides
over that shape by the blocks of the grid.
"""

from __future__ import annotations

import math
import tempfile
from typing import Any

import numpy as np
import warp as wp

import warpmma as wm
from warpmma.machine import DeviceArray

BLOCK = 256  # threads, Warp's default
TILE = 128

wp.config.log_level = wp.LOG_ERROR  # below, it says that it finds no driver


@wp.kernel
def scaled(x: wp.array(dtype=float), factor: float, y: wp.array(dtype=float)):
    """Give y = exp(x) * factor, an element for each thread."""
    i = wp.tid()
    y[i] = wp.exp(x[i]) * factor


@wp.kernel
def row_sums(matrix: wp.array2d(dtype=float), sums: wp.array(dtype=float)):
    """Add up rows: a block for each, in tiles."""
    row, _thread = wp.tid()
    total = wp.tile_zeros(shape=1, dtype=float)
    for k in range(matrix.shape[1] // wp.static(TILE)):
        total += wp.tile_sum(wp.tile_load(matrix[row], shape=wp.static(TILE), offset=k * wp.static(TILE)))
    wp.tile_store(sums, total, offset=row)


def modules(target: int) -> wm.ptx.PtxModule:
    """Compile the kernels of this file, and load what Warp made; "lineinfo" names lines in hazards."""
    module = wp.get_module(__name__)
    module.options |= {"lineinfo": True, "strip_hash": True, "block_dim": BLOCK}
    with tempfile.TemporaryDirectory() as folder:
        paths = wp.compile_aot_module(module, arch=target, module_dir=folder, use_ptx=True)
        return wm.ptx.load(next(p for p in paths if p.suffix == ".ptx"))


_ARRAY = np.dtype(
    [("data", "u8"), ("grad", "u8"), ("shape", "i4", 4), ("strides", "i4", 4), ("ndim", "i4"), ("flags", "i4")]
)


def array(x: DeviceArray) -> bytes:
    """Lay an array out as kernels of Warp take it, by its address on the device; strides are bytes."""
    held = np.zeros((), _ARRAY)
    held["data"], held["ndim"] = x.address, len(x.shape)
    held["shape"][: len(x.shape)] = x.shape
    held["strides"][: len(x.shape)] = np.cumprod([x.dtype.itemsize, *x.shape[:0:-1]])[::-1]
    return held.tobytes()


def bounds(shape: tuple[int, ...]) -> bytes:
    """Lay out the shape of a launch: each size, their product, and a factor that is 1 unless it is too large."""
    held = np.zeros((), np.dtype([("shape", "u4", len(shape)), ("size", "u8"), ("factor", "u8")], align=True))
    held["shape"], held["size"], held["factor"] = shape, math.prod(shape), 1
    return held.tobytes()


def launch(entry: wm.ptx.PtxEntry, device: wm.Device, shape: tuple[int, ...], args: list[Any]) -> Any:
    """Launch as `wp.launch` does, with a thread for each element of the shape."""
    blocks = -(-math.prod(shape) // BLOCK)
    laid_out = [array(x) if isinstance(x, DeviceArray) else x for x in args]
    return entry.launch(device, blocks, BLOCK, [bounds(shape), *laid_out])


def main() -> None:
    """Run both."""
    device = wm.Device("sm_90")
    module = modules(90)
    x, y = device.array(np.linspace(0, 1, 1000, dtype=np.float32)), device.array(np.zeros(1000, np.float32))
    launch(module["scaled_cuda_kernel_forward"], device, (1000,), [x, 3.0, y])
    print(f"exp: the greatest error is {np.abs(y.numpy() - 3 * np.exp(x.numpy().astype(float))).max():.1e}")

    numbers = np.arange(8 * 512, dtype=np.float32).reshape(8, 512)
    matrix, sums = device.array(numbers), device.array(np.zeros(8, np.float32))
    launch(module["row_sums_cuda_kernel_forward"], device, (8, BLOCK), [matrix, sums])
    print(f"sums are right: {(sums.numpy() == numbers.sum(1)).all()}")


if __name__ == "__main__":
    main()
