"""The table of public kernels for sm_90a."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["HOPPER_RECORDED", "KERNELS", "Kernel"]

HOPPER_RECORDED = Path(__file__).parents[2] / "tests" / "data" / "h200_hopper_kernels.npz"


@dataclass(frozen=True)
class Kernel:
    """A kernel: CASE of a source in `cuda/cutlass`, and the arguments of its host program, for each launch.

    Those of `collectives.cu` are m, n, k, batches or groups, multiprocessors (the most blocks) and parts of k.
    """

    case: int
    sizes: tuple[tuple[int, ...], ...]
    source: str = "collectives.cu"
    flags: tuple[str, ...] = ()


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
    "mixed_s8_f16": Kernel(15, ((128, 128, 128, 1, 132, 1), (144, 144, 208, 1, 2, 1))),
    "mixed_e4m3_bf16": Kernel(16, ((64, 128, 128, 1, 132, 1), (144, 144, 208, 1, 2, 1))),
    "mixed_s4_f16_scales": Kernel(17, ((128, 128, 256, 1, 132, 1), (160, 144, 384, 1, 2, 1))),
    "grouped_f16": Kernel(18, ((160, 144, 160, 4, 3, 1), (128, 128, 128, 2, 2, 1))),
    "grouped_pingpong_e4m3_cluster_2x1": Kernel(19, ((160, 144, 256, 4, 4, 1),)),
    "pointer_array_f16": Kernel(20, ((128, 128, 128, 2, 2, 1), (136, 136, 200, 3, 2, 1))),
    "sparse_f16": Kernel(21, ((128, 128, 256, 1, 132, 1), (256, 128, 384, 1, 1, 1))),
    "sparse_pingpong_e4m3": Kernel(22, ((64, 128, 256, 1, 132, 1), (128, 256, 384, 1, 2, 1))),
    "sparse_s8": Kernel(23, ((128, 128, 256, 1, 132, 1),)),
    "blockwise_e4m3": Kernel(24, ((128, 128, 256, 1, 132, 1), (256, 128, 512, 1, 1, 1))),
    "rowwise_pingpong_e4m3": Kernel(25, ((64, 128, 256, 1, 132, 1), (128, 256, 512, 1, 2, 1))),
    "bias_gelu_f16": Kernel(26, ((64, 128, 128, 1, 132, 1), (136, 136, 200, 1, 2, 1))),
    "bias_relu_amax_e4m3_cluster_1x2": Kernel(27, ((128, 256, 256, 1, 132, 1),)),
    "top2_softmax_f16": Kernel(28, ((64, 64, 128, 1, 132, 1), (128, 64, 192, 1, 132, 1))),
    "cooperative_f16_cluster_2x2": Kernel(29, ((256, 256, 128, 1, 132, 1),)),
}
