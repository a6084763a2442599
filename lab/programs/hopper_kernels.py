"""The table of public kernels for sm_90a."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["HOPPER_RECORDED", "KERNELS", "REPORTED", "Kernel"]

HOPPER_RECORDED = Path(__file__).parents[2] / "tests" / "data" / "h200_hopper_kernels.npz"


@dataclass(frozen=True)
class Kernel:
    """A kernel: CASE of a source in `cuda/cutlass`, and the arguments of its host program, for each launch.

    Those of `collectives.cu` are m, n, k, batches or groups, multiprocessors (the most blocks) and parts of k; the
    other sources say which are theirs.
    """

    case: int
    sizes: tuple[tuple[int, ...], ...]
    source: str = "collectives.cu"
    flags: tuple[str, ...] = ("-std=c++17",)


_FLASH = ("-std=c++17", "--expt-extended-lambda", "--cudart=shared")
_DEEPGEMM = ("-std=c++20", "--expt-extended-lambda")
_KITTENS = ("-std=c++20", "--expt-extended-lambda", "--cudart=shared", "--use_fast_math", "-DKITTENS_HOPPER",
            "-Xcompiler=-fno-strict-aliasing")  # fmt: skip

KERNELS: dict[str, Kernel] = {
    "pingpong_f16": Kernel(0, ((256, 256, 256, 1, 132, 1), (72, 136, 200, 2, 3, 1))),
    "cooperative_bf16_cluster_2x1": Kernel(1, ((256, 128, 128, 1, 132, 1), (264, 136, 200, 1, 2, 1))),
    "specialized_f16_mn_cluster_1x2": Kernel(2, ((64, 128, 128, 1, 132, 1), (72, 136, 200, 1, 132, 1))),
    "tma_f16": Kernel(3, ((64, 128, 128, 1, 132, 1), (72, 136, 200, 1, 132, 1))),
    "cpasync_f16": Kernel(4, ((64, 64, 128, 1, 132, 1), (70, 66, 130, 1, 132, 1))),
    "cpasync_cooperative_bf16": Kernel(5, ((128, 128, 128, 1, 132, 1), (132, 68, 196, 1, 132, 1))),
    "cpasync_pingpong_tf32": Kernel(6, ((128, 64, 64, 1, 1, 1), (70, 66, 98, 1, 1, 1))),
    "cpasync_multistage_f16": Kernel(7, ((64, 64, 128, 1, 132, 1), (68, 68, 196, 1, 132, 1))),
    "streamk_f16": Kernel(8, ((256, 128, 512, 1, 3, 1), (128, 128, 512, 1, 4, 3), (264, 136, 456, 1, 5, 1))),
    "cooperative_tf32": Kernel(9, ((128, 64, 128, 1, 132, 1), (132, 68, 100, 1, 132, 1))),
    "specialized_tf32_mn": Kernel(10, ((64, 64, 64, 1, 132, 1), (68, 68, 100, 1, 132, 1))),
    "pingpong_s8": Kernel(11, ((64, 128, 256, 1, 132, 1), (144, 144, 208, 1, 2, 1))),
    "cooperative_e4m3": Kernel(12, ((128, 128, 512, 1, 132, 1), (144, 144, 208, 1, 2, 1))),
    "pingpong_e4m3_fast": Kernel(13, ((64, 128, 512, 1, 132, 1), (144, 144, 208, 1, 2, 1))),
    "pingpong_e5m2_e4m3": Kernel(14, ((64, 128, 256, 1, 132, 1), (144, 144, 208, 1, 2, 1))),
    "mixed_s8_f16": Kernel(15, ((128, 128, 128, 1, 132, 1), (144, 144, 400, 1, 2, 1))),
    "mixed_e4m3_bf16": Kernel(16, ((64, 128, 128, 1, 132, 1), (144, 144, 400, 1, 2, 1))),
    "mixed_s4_f16_scales": Kernel(17, ((128, 128, 256, 1, 132, 1), (160, 144, 384, 1, 2, 1))),
    "grouped_f16": Kernel(18, ((160, 144, 160, 4, 3, 1), (128, 128, 128, 2, 2, 1))),
    "grouped_pingpong_e4m3_cluster_2x1": Kernel(19, ((160, 144, 256, 4, 4, 1),)),
    "pointer_array_f16": Kernel(20, ((128, 128, 128, 2, 2, 1), (136, 136, 200, 3, 2, 1))),
    "sparse_f16": Kernel(21, ((128, 128, 256, 1, 132, 1), (256, 128, 384, 1, 1, 1))),
    "sparse_pingpong_e4m3": Kernel(22, ((64, 128, 256, 1, 132, 1), (128, 256, 384, 1, 2, 1))),
    "sparse_s8": Kernel(23, ((128, 128, 256, 1, 132, 1),)),
    "blockwise_e4m3": Kernel(24, ((128, 128, 256, 1, 132, 1), (256, 128, 512, 1, 1, 1))),
    "rowwise_pingpong_e4m3": Kernel(25, ((64, 128, 256, 1, 132, 1), (128, 256, 1024, 1, 2, 1))),
    "bias_gelu_f16": Kernel(26, ((64, 128, 128, 1, 132, 1), (136, 136, 200, 1, 2, 1))),
    "bias_relu_amax_e4m3_cluster_1x2": Kernel(27, ((128, 256, 256, 1, 132, 1),)),
    "top2_softmax_f16": Kernel(28, ((64, 32, 128, 1, 132, 1), (128, 24, 192, 1, 132, 1))),
    "cooperative_f16_cluster_2x2": Kernel(29, ((256, 256, 128, 1, 132, 1),)),
    "relu_gradient_f16": Kernel(30, ((64, 128, 128, 1, 132, 1), (136, 256, 200, 1, 2, 1))),
    "flash_f16": Kernel(0, ((1, 192, 192, 1, 1, 132), (2, 200, 264, 2, 1, 2)), "flash.cu", _FLASH),
    "flash_causal_bf16": Kernel(1, ((1, 128, 128, 1, 1, 132), (1, 200, 264, 2, 2, 2)), "flash.cu", _FLASH),
    "flash_e4m3": Kernel(2, ((1, 128, 224, 1, 1, 132), (1, 136, 256, 2, 1, 2)), "flash.cu", _FLASH),
    "flash_pages_f16": Kernel(3, ((1, 64, 128, 2, 1, 132), (2, 48, 176, 4, 2, 2)), "flash.cu", _FLASH),
    "flash_backward_bf16": Kernel(0, ((1, 128, 128, 1), (2, 200, 120, 2)), "flash_backward.cu", _FLASH),
    "deepgemm_e4m3": Kernel(0, ((64, 96, 256, 1), (136, 200, 384, 1)), "deepgemm.cu", _DEEPGEMM),
    "deepgemm_e4m3_cluster_2x1": Kernel(1, ((256, 128, 256, 1), (264, 256, 384, 1)), "deepgemm.cu", _DEEPGEMM),
    "deepgemm_e4m3_groups": Kernel(2, ((256, 256, 256, 2),), "deepgemm.cu", _DEEPGEMM),
    "deepgemm_e4m3_rows": Kernel(3, ((128, 120, 256, 1), (136, 240, 384, 1)), "deepgemm.cu", _DEEPGEMM),
    "deepgemm_bf16": Kernel(4, ((128, 128, 256, 1), (136, 256, 320, 1)), "deepgemm.cu", _DEEPGEMM),
    "kittens_level_5_bf16": Kernel(0, ((128, 128, 128, 1),), "kittens.cu", _KITTENS),
    "kittens_level_8_bf16": Kernel(1, ((256, 256, 256, 1),), "kittens.cu", _KITTENS),
    "kittens_ring_bf16": Kernel(2, ((128, 256, 256, 132), (256, 512, 320, 2)), "kittens.cu", _KITTENS),
    "kittens_ring_e4m3": Kernel(3, ((128, 256, 256, 132), (256, 512, 384, 2)), "kittens.cu", _KITTENS),
    "gemm_f64": Kernel(0, ((64, 64, 64), (66, 70, 54)), "double.cu", ("-std=c++17", "--cudart=shared")),
    "gather_f16": Kernel(0, ((128, 128, 128, 64), (256, 136, 192, 100)), "gather.cu"),
}

REPORTED: dict[str, str] = {
    "cpasync_f16 70x66x130x1x132x1": "proxy",
    "cpasync_cooperative_bf16 132x68x196x1x132x1": "proxy",
    "cpasync_pingpong_tf32 70x66x98x1x1x1": "proxy",
    "cpasync_multistage_f16 68x68x196x1x132x1": "proxy",
    "relu_gradient_f16 136x256x200x1x2x1": "race",
    "flash_pages_f16 1x64x128x2x1x132": "unwritten",
    "flash_pages_f16 2x48x176x4x2x2": "unwritten",
    "deepgemm_e4m3 136x200x384x1": "race",
    "deepgemm_e4m3_cluster_2x1 264x256x384x1": "race",
    "deepgemm_e4m3_rows 136x240x384x1": "race",
}
"""Launches with a hazard that is argued in docs/programs.md, and its kind."""
