"""`matmul`'s prediction of what it will do: it holds, with the same errors, and computes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array, same

import warpmma as wm
from warpmma import sparsity
from warpmma.arithmetic.recipes import lowerings as targets
from warpmma.errors import OperandError, ScaleError, WarpmmaError
from warpmma.isa import Instruction, WarpgroupInstruction, instructions
from warpmma.scaling import Quantized, quantize

pytestmark = pytest.mark.quick

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SP = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
NVF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
FP8 = "wgmma.mma_async.sync.aligned.m64n256k32.f32.e4m3.e4m3"


def absent(*shape: int, dtype: Any = np.float16) -> Array:
    """A matrix that takes no memory, of terabytes if need be."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def test_the_default_and_the_other() -> None:
    """Of e4m3 on Hopper, where kernels use `wgmma`."""
    a, b = absent(128, 4096, dtype=ml_dtypes.float8_e4m3fn), absent(4096, 64, dtype=ml_dtypes.float8_e4m3fn)
    choice = wm.choose(a, b, target="sm_90a")
    assert isinstance(choice.instruction, Instruction) and choice.by_default
    assert str(choice.instruction) == "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
    assert FP8 in map(str, choice.others)
    other = wm.choose(a, b, instruction=FP8, target="sm_90a", promote_every=128, split_k=2, epilogue="bf16")
    assert isinstance(other.instruction, WarpgroupInstruction) and not other.by_default
    assert other.recipe == targets.recipe(other.instruction, "sm_90a") != choice.recipe
    assert other.slices == ((0, 2048), (2048, 4096)) and other.promote_every == 128 and other.steps == 128
    assert other.dtype == ml_dtypes.bfloat16 and other.shape == (128, 64) and other.epilogue == "bf16"
    assert choice.dtype == np.float32 and choice.slices == ((0, 4096),) and choice.promote_every is None
    assert choice.engine == next(iter(wm.engines())) and choice.k == 4096
    assert choice.evidence == wm.evidence(choice.instruction, target="sm_90a")


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a", "sm_100", "sm_120a"])
@pytest.mark.parametrize("name", ["f16", "bf16", "tf32", "e4m3"])
def test_others_are_those_whose_sums_differ(name: str, target: str) -> None:
    """On data of many sizes each of them does, and no instruction that is not named."""
    rng, dtype = np.random.default_rng(0), wm.FORMATS[name].dtype
    found = wm.find(a=name, b=name, c="f32", d="f32", sparse=False, block_scale=False, target=target)
    if not found:
        return
    shapes = ((48, 512), (512, 48))
    a, b = (np.ldexp(rng.standard_normal(s), rng.integers(-6, 7, s)).astype(dtype) for s in shapes)
    choice = wm.choose(a, b, target=target, float32="tf32-truncated")
    alike = {choice.instruction: wm.matmul(a, b, target=target, float32="tf32-truncated").tobytes()}
    for i in choice.others:
        alike[i] = wm.matmul(a, b, instruction=i, target=target).tobytes()
    assert len(set(alike.values())) == len(alike)
    for i in found:
        if i.n in (8, 64, 256):
            assert wm.matmul(a, b, instruction=i, target=target).tobytes() in alike.values()
    assert name != "e4m3" or target != "sm_90a" or {i.m for i in choice.others} == {16, 64}


def test_exact_sums_have_no_others() -> None:
    ints, doubles = absent(4, 64, dtype=np.int8), absent(4, 64, dtype=np.float64)
    assert wm.choose(ints, ints.T, target="sm_90a").others == ()  # exact, in any order
    assert {i.rounding for i in wm.choose(doubles, doubles.T, target="sm_90").others} == {"rz", "rm", "rp"}


def test_the_text() -> None:
    a = absent(100, 1000)
    how: dict[str, Any] = {"split_k": 3, "promote_every": 32, "epilogue": "e4m3"}
    lines = str(wm.choose(a, a.T, target="sm_80", engine="numpy", **how)).split("\n")
    assert lines == [
        f"{F16} on sm_80, by default",
        "D (100, 100) of float8_e4m3fn, rounded to e4m3; k = 1000 in 3 slices, 63 instructions for each element, "
        "promoted to f32 every 32",
        f"engine numpy; {wm.evidence(F16, target='sm_80')}",
        "other sums for these types: mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f32",
    ]
    assert str(wm.choose(a, a.T, instruction=F16, target="sm_80")).startswith(f"{F16} on sm_80, as asked\n")


def test_it_is_what_matmul_does() -> None:
    """Shape, dtype and bits, for every default there is and every way along k."""
    rng = np.random.default_rng(1)
    plain = [i for i in instructions("sm_90a") if not (i.sparse or i.satfinite or i.bit_op) and i.c_type == i.d_type]
    for i in {(x.a_type, x.d_type): x for x in plain}.values():
        a, b = np.ones((2, 1, 5, 70)).astype(i.format("A").dtype), np.ones((3, 70, 6)).astype(i.format("B").dtype)
        choice = wm.choose(a, b, instruction=i, target="sm_90a")
        d = wm.matmul(a, b, instruction=i, target="sm_90a")
        assert (choice.shape, choice.dtype, choice.instruction) == (d.shape, d.dtype, i)
    a, b = rng.standard_normal((5, 100)).astype(np.float16), rng.standard_normal((100, 7)).astype(np.float16)
    ways: list[dict[str, Any]] = [
        {"split_k": 3}, {"split_k": [48, 16, 36]}, {"promote_every": 32}, {"split_k": 2, "promote_every": 16},
    ]  # fmt: skip
    for how in ways:
        choice = wm.choose(a, b, target="sm_90", **how)
        d = wm.matmul(a, b, target="sm_90", **how)
        parts = [
            wm.matmul(a[:, x:y], b[x:y], target="sm_90", promote_every=choice.promote_every) for x, y in choice.slices
        ]
        total = np.zeros_like(d)
        for part in parts:
            total = total + part
        same(total, d)


def test_sparse_and_scaled_products() -> None:
    rng = np.random.default_rng(2)
    dense = sparsity.prune(rng.standard_normal((4, 64)).astype(np.float16), SP)
    stored, indices = sparsity.compress(dense, SP)
    b = absent(64, 3)
    found = [wm.choose(dense, b, instruction=SP, target="sm_90"),
             wm.choose(stored, b, target="sm_90", indices=indices)]  # fmt: skip
    assert [x.instruction.sparse for x in found] == [True, True]
    assert [x.shape for x in found] == [(4, 3), (4, 3)]
    x, y = quantize(np.ones((4, 64), np.float32), NVF4), quantize(np.ones((64, 3), np.float32), NVF4, "B")
    assert wm.choose(x, y, instruction=NVF4, target="sm_120a").shape == (4, 3)
    batch = absent(7, 4, 4, dtype=np.uint8)
    assert wm.choose(
        x.elements, y.elements, instruction=NVF4, target="sm_120a", scale_a=batch, scale_b=y.scales
    ).shape == (7, 4, 3)


A, B = absent(3, 40), absent(40, 5)
SCALES = {"scale_a": absent(3, 3, dtype=np.uint8), "scale_b": absent(3, 5, dtype=np.uint8)}
FP4: dict[str, Any] = {
    "a": absent(3, 40, dtype=np.uint8), "b": absent(40, 5, dtype=np.uint8), "instruction": NVF4, "target": "sm_120a",
}  # fmt: skip
TENSOR = Quantized(elements=FP4["a"], scales=SCALES["scale_a"], tensor_scale=np.float32(1))


@pytest.mark.parametrize(
    "changes",
    [
        {"target": "sm_91"}, {"instruction": "mma"}, {"instruction": FP8}, {"a": A[0]}, {"b": B[1:]},
        {"a": [[1], [2, 3]]},
        {"a": absent(2, 3, 40), "b": absent(3, 40, 5)}, {"c": absent(3, 4, dtype=np.float32)}, {"c": A}, {"c": "x"},
        {"split_k": 0}, {"split_k": [8, 32]}, {"promote_every": 8}, {"epilogue": "f64"}, {"engine": "gpu"},
        {"instruction": F16, "indices": [0]}, {"indices": [0]},
        {"instruction": SP, "a": absent(3, 42), "b": absent(42, 5)},
        {"instruction": SP, "a": absent(3, 20), "indices": np.zeros((3, 9, 2), int)},
        {"instruction": SP, "a": absent(3, 20), "indices": np.tile([0, 1], (2, 3, 10, 1)), "b": absent(3, 40, 5)},
        SCALES, {**FP4, **SCALES, "scale_a": None}, {**FP4, **SCALES, "scale_b": absent(5, 3, dtype=np.uint8)},
        {**FP4, **SCALES, "scale_a": absent(2, 3, 3, dtype=np.uint8), "scale_b": absent(3, 3, 5, dtype=np.uint8)},
        {**FP4, "a": TENSOR, "scale_b": SCALES["scale_b"], "c": absent(3, 5, dtype=np.float32)},
        {**FP4, "a": TENSOR, **SCALES}, {"a": np.ma.array(A)},
    ],
)  # fmt: skip
def test_errors_are_those_of_matmul(changes: dict[str, Any]) -> None:
    given: dict[str, Any] = {"a": A, "b": B, "target": "sm_90", **changes}
    found: list[tuple[type[WarpmmaError], str]] = []
    calls: tuple[Callable[..., Any], ...] = (wm.choose, wm.matmul)
    for call in calls:
        with pytest.raises(WarpmmaError) as error:
            call(**given)
        found.append((error.type, str(error.value)))
    assert found[0] == found[1]


def test_only_the_elements_tell() -> None:
    """What they break is not found: nothing is read."""
    given = {**FP4, **{x: y + 255 for x, y in SCALES.items()}}
    with pytest.raises(ScaleError):
        wm.matmul(**given)
    wm.choose(**given)
    huge = wm.choose(absent(1 << 20, 1 << 24), absent(1 << 24, 1 << 20), target="sm_90")
    assert huge.shape == (1 << 20, 1 << 20) and huge.steps == 1 << 20


def test_dask_arrays_are_not_computed() -> None:
    da = pytest.importorskip("dask.array")

    def forbidden(x: Array) -> Array:
        raise RuntimeError("something was computed")

    x = da.zeros((30, 40), dtype="f2", chunks=7).map_blocks(forbidden, dtype="f2", meta=np.empty((0, 0), "f2"))
    choice = wm.choose(x, x.T, target="sm_90", split_k=2)
    assert choice.shape == (30, 30) and choice.slices == ((0, 32), (32, 40))
    with pytest.raises(OperandError, match=r"A is \(nan, 40\); expected known lengths"):
        wm.choose(x[x[:, 0] > 0], x.T, target="sm_90")
