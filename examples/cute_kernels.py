"""Kernels in NVIDIA's CuTe DSL, on a simulated GPU: `python examples/cute_kernels.py`.

A sum, a product with Ampere's tensor core (cp.async, ldmatrix, mma), and one with Hopper's (tensor copies, mbarriers,
wgmma). They run on a GPU as they are: leave out `with wm.cute.device(...)`, and give them tensors on the GPU. They need
`pip install 'warpmma[cute]'`.
"""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, operator, attr-defined"

from __future__ import annotations

import cutlass
import cutlass.utils.hopper_helpers as hopper
import numpy as np
from cutlass import cute
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warp, warpgroup
from cutlass.cute.runtime import from_dlpack
from cutlass.memory import SmemAllocator
from cutlass.tensor_utils import LayoutEnum

import warpmma as wm

THREADS = 128


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
    """Add: an element for each thread."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * THREADS + thread
    if i < cute.size(z):
        z[i] = x[i] + y[i]


@cute.jit
def add(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
    """Add vectors: z = x + y."""
    add_kernel(x, y, z).launch(grid=(cute.ceil_div(cute.size(z), THREADS), 1, 1), block=(THREADS, 1, 1))


TILE = (64, 64, 32)  # along m, n and k


@cute.kernel
def ampere_kernel(
    a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, tile: cute.ComposedLayout, copy: cute.TiledCopy, mma: cute.TiledMma
):
    """Multiply: a tile of C for each block, from one stage of A and B."""
    thread, _, _ = cute.arch.thread_idx()
    row, column, _ = cute.arch.block_idx()
    gc = cute.local_tile(c, (TILE[0], TILE[1]), (row, column))
    ga = cute.local_tile(a, (TILE[0], TILE[2]), (row, None))
    gb = cute.local_tile(b, (TILE[1], TILE[2]), (column, None))
    shared = SmemAllocator()
    sa = shared.allocate_tensor(a.element_type, tile, 128)
    sb = shared.allocate_tensor(b.element_type, tile, 128)

    mine = copy.get_slice(thread)
    from_a, to_a = mine.partition_S(ga), mine.partition_D(sa)
    from_b, to_b = mine.partition_S(gb), mine.partition_D(sb)

    part = mma.get_slice(thread)
    ra, rb = mma.make_fragment_A(part.partition_A(sa)), mma.make_fragment_B(part.partition_B(sb))
    rc = mma.make_fragment_C(part.partition_C(gc))
    rc.fill(0.0)
    ldmatrix = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), a.element_type)
    load_a, load_b = cute.make_tiled_copy_A(ldmatrix, mma), cute.make_tiled_copy_B(ldmatrix, mma)

    for k in range(cute.size(ga, mode=[2])):
        cute.copy(copy, from_a[None, None, None, k], to_a)
        cute.copy(copy, from_b[None, None, None, k], to_b)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.barrier()
        cute.copy(load_a, load_a.get_slice(thread).partition_S(sa), load_a.get_slice(thread).retile(ra))
        cute.copy(load_b, load_b.get_slice(thread).partition_S(sb), load_b.get_slice(thread).retile(rb))
        cute.gemm(mma, rc, ra, rb, rc)
        cute.arch.barrier()
    cute.autovec_copy(rc, part.partition_C(gc))


@cute.jit
def ampere_product(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """C = A B: A (m, k) and B (n, k) of float16, C (m, n) of float32, of whole tiles."""
    atom = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, cute.make_layout((8, TILE[2]), stride=(TILE[2], 1)))
    tile = cute.tile_to_shape(atom, (TILE[0], TILE[2]), (0, 1))
    cp_async = cute.make_copy_atom(
        cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL), a.element_type, num_bits_per_copy=128
    )
    copy = cute.make_tiled_copy_tv(
        cp_async, cute.make_layout((32, 4), stride=(4, 1)), cute.make_layout((1, 8), stride=(8, 1))
    )
    mma = cute.make_tiled_mma(
        warp.MmaF16BF16Op(a.element_type, cutlass.Float32, (16, 8, 16)), cute.make_layout((2, 2, 1)),
        permutation_mnk=(32, 32, 16),
    )  # fmt: skip
    grid = (cute.size(c, mode=[0]) // TILE[0], cute.size(c, mode=[1]) // TILE[1], 1)
    ampere_kernel(a, b, c, tile, copy, mma).launch(grid=grid, block=(THREADS, 1, 1))


HOPPER_TILE = (64, 64, 64)


@cute.kernel
def hopper_kernel(
    copy_a: cute.CopyAtom, a: cute.Tensor, copy_b: cute.CopyAtom, b: cute.Tensor, c: cute.Tensor,
    layout_a: cute.ComposedLayout, layout_b: cute.ComposedLayout, mma: cute.TiledMma,
):  # fmt: skip
    """Multiply: a tile of C for each block, whose first thread loads tiles that a warpgroup multiplies."""
    thread, _, _ = cute.arch.thread_idx()
    row, column, _ = cute.arch.block_idx()
    ga = cute.local_tile(a, (HOPPER_TILE[0], HOPPER_TILE[2]), (row, None))
    gb = cute.local_tile(b, (HOPPER_TILE[1], HOPPER_TILE[2]), (column, None))
    gc = cute.local_tile(c, (HOPPER_TILE[0], HOPPER_TILE[1]), (row, column))
    shared = SmemAllocator()
    full = shared.allocate_array(cutlass.Int64, 1)
    sa = shared.allocate_tensor(cutlass.Float16, layout_a.outer, 1024, swizzle=layout_a.inner)
    sb = shared.allocate_tensor(cutlass.Float16, layout_b.outer, 1024, swizzle=layout_b.inner)
    if thread == 0:
        cute.arch.mbarrier_init(full, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.barrier()

    one = cute.make_layout(1)
    to_a, from_a = cpasync.tma_partition(copy_a, 0, one, cute.group_modes(sa, 0, 2), cute.group_modes(ga, 0, 2))
    to_b, from_b = cpasync.tma_partition(copy_b, 0, one, cute.group_modes(sb, 0, 2), cute.group_modes(gb, 0, 2))
    part = mma.get_slice(0)
    ra, rb = mma.make_fragment_A(part.partition_A(sa)), mma.make_fragment_B(part.partition_B(sb))
    mine = mma.get_slice(thread)
    rc = mma.make_fragment_C(mine.partition_C(gc))
    mma.set(warpgroup.Field.ACCUMULATE, False)
    size = cute.size_in_bytes(cutlass.Float16, cute.slice_(layout_a, (None, None, 0)))
    size += cute.size_in_bytes(cutlass.Float16, cute.slice_(layout_b, (None, None, 0)))

    for k in cutlass.range(cute.size(ga, mode=[2]), unroll=1):
        if cute.arch.make_warp_uniform(cute.arch.warp_idx()) == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full, size)
            cute.copy(copy_a, from_a[None, k], to_a[None, 0], tma_bar_ptr=full)
            cute.copy(copy_b, from_b[None, k], to_b[None, 0], tma_bar_ptr=full)
        cute.arch.mbarrier_wait(full, k % 2)
        warpgroup.fence()
        for i in cutlass.range_constexpr(cute.size(ra, mode=[2])):
            cute.gemm(mma, rc, ra[None, None, i, 0], rb[None, None, i, 0], rc)
            mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.arch.barrier()
    cute.autovec_copy(rc, mine.partition_C(gc))


@cute.jit
def hopper_product(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """C = A B: A (m, k) and B (n, k) of float16, C (m, n) of float32, of whole tiles."""
    rows = LayoutEnum.ROW_MAJOR
    layout_a = hopper.make_smem_layout_a(rows, HOPPER_TILE, cutlass.Float16, 1)
    layout_b = hopper.make_smem_layout_b(rows, HOPPER_TILE, cutlass.Float16, 1)
    mma = hopper.make_trivial_tiled_mma(
        cutlass.Float16, cutlass.Float16, OperandMajorMode.K, OperandMajorMode.K, cutlass.Float32, (1, 1, 1),
        tiler_mn=(64, HOPPER_TILE[1]),
    )  # fmt: skip
    load = cpasync.CopyBulkTensorTileG2SOp()
    stage_a, stage_b = cute.slice_(layout_a, (None, None, 0)), cute.slice_(layout_b, (None, None, 0))
    copy_a, ta = cpasync.make_tiled_tma_atom(load, a, stage_a, (HOPPER_TILE[0], HOPPER_TILE[2]))
    copy_b, tb = cpasync.make_tiled_tma_atom(load, b, stage_b, (HOPPER_TILE[1], HOPPER_TILE[2]))
    grid = (cute.size(c, mode=[0]) // HOPPER_TILE[0], cute.size(c, mode=[1]) // HOPPER_TILE[1], 1)
    hopper_kernel(copy_a, ta, copy_b, tb, c, layout_a, layout_b, mma).launch(grid=grid, block=(THREADS, 1, 1))


def aligned(array: np.ndarray):
    """Return an array as the DSL takes it, of which it may assume that rows begin at multiples of 16 bytes."""
    return from_dlpack(array, assumed_align=16)


def main() -> None:
    """Run all on small matrices, and compare with what `matmul` computes."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((128, 128)).astype(np.float16) for _ in "ab")
    for product, target in ((ampere_product, "sm_80"), (hopper_product, "sm_90")):
        c = np.zeros((128, 128), np.float32)
        with wm.cute.device(target) as gpu:
            product(aligned(a), aligned(b), aligned(c))
        error = np.abs(c - a.astype(np.float64) @ b.astype(np.float64).T).max()
        costs = gpu.launches[0].report.costs
        print(f"{product.__name__} on {gpu.target}: error {error:.1e}, {sum(costs.instructions.values())} instructions")


if __name__ == "__main__":
    main()
