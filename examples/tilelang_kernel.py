"""A product in TileLang on a machine without a GPU: TileLang writes CUDA C++, NVRTC compiles it, warpmma runs it.

Needs `pip install tilelang 'warpmma[cuda]'`. For sm_80 the product is `mma.sync` fed by `cp.async`; for sm_90a it is
`wgmma` fed by TMA, with a warpgroup that copies. TileLang's host code encodes the tensor maps; what it would tell the
driver is an attribute of its module.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tilelang
import tilelang.language as T

import warpmma as wm

BM, BN, BK, STAGES, THREADS = 128, 128, 32, 3, 128


def product(m: int, n: int, k: int) -> Any:
    """C = A @ B, of f16 with sums in f32."""

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, BN), T.ceildiv(m, BM), threads=THREADS) as (column, row):
            a, b = T.alloc_shared((BM, BK), "float16"), T.alloc_shared((BK, BN), "float16")
            c = T.alloc_fragment((BM, BN), "float32")
            T.clear(c)
            for step in T.Pipelined(T.ceildiv(k, BK), num_stages=STAGES):
                T.copy(A[row * BM, step * BK], a)
                T.copy(B[step * BK, column * BN], b)
                T.gemm(a, b, c)
            T.copy(c, C[row * BM, column * BN])

    return main


def encoded(args: Any, address: int) -> wm.TensorMap:
    """Encode a tensor map by the arguments of TileLang's `__tvm_tensormap_create_tiled`."""
    _, _, data_type, rank, _, *numbers = args
    numbers = [int(x) for x in numbers]
    rank = int(rank)
    dims, strides, box, steps = (numbers[i * rank : (i + 1) * rank] for i in range(4))
    interleave, swizzle, promotion, fill = numbers[4 * rank :]
    return wm.TensorMap.encode_tiled(
        tensor_data_type=int(data_type), tensor_rank=rank, global_address=address, global_dim=dims,
        global_strides=strides[1:], box_dim=box, element_strides=steps, interleave=interleave, swizzle=swizzle,
        l2_promotion=promotion, oob_fill=fill,
    )  # fmt: skip


def launch(program: Any, arch: str, device: wm.Device, arrays: dict[str, Any]) -> Any:
    """Compile a program for an architecture, and launch it with arrays of the device by their names."""
    target = tilelang.tvm.target.Target({"kind": "cuda", "arch": arch})
    with target:
        made = tilelang.lower(program, target=target)
    includes = Path(tilelang.__file__).parent
    module = wm.cuda.load(
        made.kernel_source, name="tilelang.cu", arch=arch,
        options=[f"-I{includes / 'src'}", f"-I{includes / '3rdparty' / 'cutlass' / 'include'}"],
    )  # fmt: skip
    ((_, kernel),) = made.device_mod.functions.items()
    ((_, host),) = made.host_mod.functions.items()
    maps = {
        str(map.name): encoded(args, arrays[str(args[4].name)].address)
        for map, args in host.attrs.get("tma_descriptor_args", {}).items()
    }
    size = {name: int(x) for name, x in kernel.attrs["thread_extent"].items()}
    args = {str(x.name): maps[x.name] if x.name in maps else arrays[x.name] for x in kernel.params}
    return module[str(kernel.attrs["global_symbol"])].launch(
        device, *([size.get(f"{of}.{axis}", 1) for axis in "xyz"] for of in ("blockIdx", "threadIdx")),
        args=args, shared=int(kernel.attrs["dyn_shared_memory_buf"]),
    )  # fmt: skip


def main() -> None:
    """Multiply with the instructions of an A100 and of an H100, and compare with their arithmetic."""
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal((256, 256)).astype(np.float16) for _ in range(2))
    for arch in ("sm_80", "sm_90a"):
        device = wm.Device(arch)
        arrays = {"A": device.array(a), "B": device.array(b), "C": device.array(np.zeros((256, 256), np.float32))}
        launch(product(256, 256, 256), arch, device, arrays)
        print(f"{arch}: the bits of wm.matmul: {(arrays['C'].numpy() == wm.matmul(a, b, target=arch)).all()}")


if __name__ == "__main__":
    main()
