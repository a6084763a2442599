"""Hand-written loads and stores of a warp by PTX's formulas, as kernel authors write them, to make mistakes in.

Nothing here knows of the table of mistakes that `warpmma.testing.guess` tries: every plant is a function that computes
D as its kernel would, from matrices, with index arithmetic of its own or a kernel of its own. Comments say what the
right line is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from arrays import Array

import warpmma as wm

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
HALF = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
BF16 = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
BF16_K8 = "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"
TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
U8_S8 = "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32"
S4 = "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32"
E4M3 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
E4M3_E5M2 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"
XOR = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc"
AND = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc"
F64 = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
F64_K8 = "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64"
QUAD = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
QUAD_COL = "mma.sync.aligned.m8n8k4.col.col.f32.f16.f16.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SPARSE_S8 = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32"
SPARSE_TF32 = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32"
NARROW = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e4m3.f32"
MXF8 = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
MXF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"
NVF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
NVF4_UE8M0 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0"

Given = dict[str, Any]
Where = Callable[[int, int, int], tuple[int, int]]


@dataclass(frozen=True)
class Plant:
    """A mistake: `kernel` computes D of matrices, and the guess must have these words.

    `shape` is that of D and k, where a kernel multiplies more than one tile.
    """

    name: str
    instruction: str
    said: str
    kernel: Callable[[Given], Array]
    target: str = "sm_90"
    shape: tuple[int, int, int] = (0, 0, 0)


PLANTS: list[Plant] = []


def plant(instruction: str, said: str, **more: Any) -> Callable[[Callable[[Given], Array]], Callable[[Given], Array]]:
    def planted(kernel: Callable[[Given], Array]) -> Callable[[Given], Array]:
        PLANTS.append(Plant(kernel.__name__, instruction, said, kernel, **more))
        return kernel

    return planted


def gather(matrix: Array, where: Where, elements: int, bits: int) -> Array:
    """What each lane reads: element i of groupID and threadID_in_group from a row and a column, packed upwards."""
    width = max(32, bits)
    words = np.zeros((elements * bits // width, 32), f"u{width // 8}")
    for lane in range(32):
        for i in range(elements):
            row, column = where(lane >> 2, lane & 3, i)
            code = words.dtype.type(matrix[row, column])
            words[i * bits // width, lane] |= code << words.dtype.type(i * bits % width)
    return words


def scatter(words: Array, where: Where, shape: tuple[int, int], dtype: Any) -> Array:
    """Where each lane writes its results; what nobody writes is 0."""
    out = np.zeros(shape, dtype)
    per = words.dtype.itemsize // out.dtype.itemsize
    elements = np.ascontiguousarray(words[..., None]).view(out.dtype).reshape(len(words), 32, per)
    for lane in range(32):
        for i in range(len(words) * per):
            out[where(lane >> 2, lane & 3, i)] = elements[i // per, lane, i % per]
    return out


def u(x: Array) -> Array:
    """Bits."""
    return x.view(f"u{x.dtype.itemsize}")


# The right formulas, of PTX ISA 9.1, 9.7.14.5


def a16(g: int, t: int, i: int) -> tuple[int, int]:
    return g + 8 * (i // 2 % 2), t * 2 + i % 2 + 8 * (i // 4)


def b16(g: int, t: int, i: int) -> tuple[int, int]:
    return t * 2 + i % 2 + 8 * (i // 2), g


def a8(g: int, t: int, i: int) -> tuple[int, int]:
    return g + 8 * (i // 4 % 2), t * 4 + i % 4 + 16 * (i // 8)


def b8(g: int, t: int, i: int) -> tuple[int, int]:
    return t * 4 + i % 4 + 16 * (i // 4), g


def a4(g: int, t: int, i: int) -> tuple[int, int]:
    return g + 8 * (i // 8 % 2), t * 8 + i % 8 + 32 * (i // 16)


def b4(g: int, t: int, i: int) -> tuple[int, int]:
    return t * 8 + i % 8 + 32 * (i // 8), g


def a1(g: int, t: int, i: int) -> tuple[int, int]:
    return g + 8 * (i // 32 % 2), t * 32 + i % 32 + 128 * (i // 64)


def b1(g: int, t: int, i: int) -> tuple[int, int]:
    return t * 32 + i % 32 + 128 * (i // 32), g


def a32(g: int, t: int, i: int) -> tuple[int, int]:
    return g + 8 * (i % 2), t + 4 * (i // 2)


def b32(g: int, t: int, i: int) -> tuple[int, int]:
    return t + 4 * i, g


def c(g: int, t: int, i: int) -> tuple[int, int]:
    return g + 8 * (i // 2), t * 2 + i % 2


def run(
    instruction: str, given: Given, a: Where, b: Where, *, counts: tuple[int, int, int], bits: int, load: Where = c,
    store: Where = c, executed: str = "", target: str = "sm_90", **more: Any,
) -> Array:  # fmt: skip
    """A warp that multiplies one tile; `counts` of elements of A, B and C for each lane."""
    result = given["c"].dtype
    fragments = (
        gather(u(given["a"]), a, counts[0], bits), gather(u(given["b"]), b, counts[1], bits),
        gather(u(given["c"]), load, counts[2], 8 * result.itemsize),
    )  # fmt: skip
    d = wm.execute(executed or instruction, *fragments, target=target, **more)
    return scatter(d, store, given["c"].shape, result)


def f16(given: Given, a: Where = a16, b: Where = b16, instruction: str = F16, **more: Any) -> Array:
    return run(instruction, given, a, b, counts=(8, 4, 4), bits=16, **more)


def s8(given: Given, a: Where = a8, b: Where = b8, instruction: str = S8, **more: Any) -> Array:
    return run(instruction, given, a, b, counts=(16, 8, 4), bits=8, **more)
