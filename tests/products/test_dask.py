"""`matmul` on Dask arrays: the bits of the same product in memory, lazily, in one process and in several."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array, same
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import exactly

import warpmma as wm
from warpmma.errors import MetadataError, MnemonicError, OperandError, ScaleError, TargetError, WarpmmaError
from warpmma.products import FLOAT32
from warpmma.scaling import Quantized, quantize

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
HALF = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
SP = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
MX = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
MXF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
NVF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
B1 = "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc"
FP8 = "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3"

rng = np.random.default_rng(1)
X, Y = rng.standard_normal((37, 100)).astype(np.float32), rng.standard_normal((100, 23)).astype(np.float32)
A, B = X.astype(np.float16), Y.astype(np.float16)
C = rng.standard_normal((37, 23)).astype(np.float32)
CHUNKS = [
    ((20, 30), (33, 9)),  # which divide nothing
    (((1, 36), (1, 2, 97)), ((99, 1), (22, 1))),
    (((37,), (16, 0, 50, 34)), ((100,), (23,))),
    ((100, 33), (33, 2)),
]
each_chunks = pytest.mark.parametrize("chunks", CHUNKS)


@pytest.fixture(autouse=True)
def _in_this_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


def check(a: Array, b: Array, c: Array | None = None, *, chunks: Any = CHUNKS[0], **more: Any) -> None:
    """The product of chunks is that of the matrices, in every way in which C may come."""
    d = wm.matmul(a, b, c, **more)
    x, y = da.from_array(a, chunks[0]), da.from_array(b, chunks[1])
    forms = [c] if c is None else [c, da.from_array(c, 9)]
    for z in forms:
        lazy = wm.matmul(x, y, z, **more)
        assert isinstance(lazy, da.Array) and lazy.shape == d.shape and lazy.dtype == d.dtype
        assert lazy.chunks == (x.chunks[0], y.chunks[1])
        found = lazy.compute()
        assert type(found) is np.ndarray and found.dtype == d.dtype
        same(found.view(np.uint8), d.view(np.uint8))


@each_chunks
@pytest.mark.parametrize(
    "more",
    [
        {}, {"split_k": 3}, {"split_k": 100}, {"split_k": [48, 16, 36]}, {"promote_every": 32}, {"epilogue": "bf16"},
        {"split_k": 2, "promote_every": 48, "epilogue": "e4m3"}, {"engine": "numpy", "promote_every": 16},
        {"target": "sm_80"}, {"instruction": "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", "target": "sm_90a"},
    ],
)  # fmt: skip
@pytest.mark.alike(3)
def test_chunks_are_not_seen(chunks: Any, more: dict[str, Any]) -> None:
    more = {"target": "sm_90", **more}
    check(A, B, chunks=chunks, **more)
    check(A, B, C, chunks=chunks, **more)


@pytest.mark.parametrize("shape", [(), (23,), (1,), (37, 1), (1, 23)])
def test_c_broadcasts(shape: tuple[int, ...]) -> None:
    c = np.asarray(rng.standard_normal(shape).astype(np.float32))
    for more in ({}, {"split_k": 2}):
        check(A, B, c, target="sm_90", **more)
    codes = c.view(np.uint32).tolist()
    lazy = wm.matmul(da.asarray(A), B, np.array(codes, np.uint32), instruction=F16, target="sm_90")
    same(lazy.compute(), wm.matmul(A, B, c, target="sm_90"))


def test_lists_are_operands() -> None:
    eye = da.eye(2, dtype=np.int8)
    d = wm.matmul(eye, [[1, 2], [3, 4]], [5, 6], instruction=S8, target="sm_80")
    same(d.compute(), np.array([[6, 8], [8, 10]], np.int32))


NARROW = (
    "float8_e4m3fn",
    "float8_e5m2",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
    "bfloat16",
    "int4",
    "uint4",
)


@pytest.mark.parametrize("dtype", [*NARROW, "float32", "float64", "int8"])
def test_operands_of_every_type(dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    target = "sm_120a" if "float6" in dtype or "float4" in dtype else "sm_90"
    a, b = (np.abs(2 * x).astype(kind) if "uint" in dtype else (2 * x).astype(kind) for x in (X, Y))
    for chunks in CHUNKS[:2]:
        for float32 in FLOAT32 if dtype == "float32" else (None,):
            check(a, b, chunks=chunks, target=target, float32=float32)


@pytest.mark.parametrize("epilogue", ["f32", "tf32", "f16", "bf16", "e5m2", "e4m3", "e3m2", "e2m3", "e2m1"])
def test_every_epilogue(epilogue: str) -> None:
    check(A, B, C, target="sm_90", epilogue=epilogue)
    check(A, B, C.astype(np.float16), target="sm_90", epilogue=epilogue)


def test_raw_codes() -> None:
    a, b = (x.astype(ml_dtypes.float8_e4m3fn).view(np.uint8) for x in (X, Y))
    for more in ({}, {"promote_every": 64}, {"split_k": 3}):
        check(a, b, C, instruction=FP8, target="sm_90a", **more)
    bits = rng.integers(0, 2, (2, 40, 300), np.uint8)
    check(bits[0], bits[1].T.copy(), instruction=B1, target="sm_80")
    check(A.view(np.uint16), B.view(np.uint16), C.view(np.uint32), instruction=F16, target="sm_80")
    swapped = (x.astype(x.dtype.newbyteorder("S")) for x in (A, B, C))
    a, b, c = (da.from_array(x, 9) for x in swapped)
    same(wm.matmul(a, b, c, target="sm_80").compute(), wm.matmul(A, B, C, target="sm_80"))


@each_chunks
def test_sparse_products(chunks: Any) -> None:
    """Blocks of k are moved to whole instructions, so that no group is cut."""
    a = A * (rng.permuted(np.tile(np.arange(4) % 2, (37, 25, 1)), axis=2).reshape(37, 100)).astype(np.float16)
    check(a, B, C, chunks=chunks, instruction=SP, target="sm_90")
    check(a, B, chunks=chunks, instruction=SP, target="sm_90", promote_every=64)


@pytest.mark.parametrize("mnemonic", [MX, MXF4, NVF4])
def test_block_scaled_products(mnemonic: str) -> None:
    size = {MX: 32, MXF4: 32, NVF4: 16}[mnemonic]
    a, b = quantize(X[:, :96], mnemonic), quantize(Y[:96], mnemonic, "B")
    call: Callable[..., Any] = partial(wm.matmul, instruction=mnemonic, target="sm_120a")
    scales = {"scale_a": a.scales, "scale_b": b.scales}
    lazy = {name: da.from_array(x, 5) for name, x in scales.items()}
    x, y = da.from_array(a.elements, (30, 50)), da.from_array(b.elements, (11, 9))
    more: dict[str, Any]
    for more in ({}, {"split_k": 2, "epilogue": "bf16"}, {"promote_every": 64}):
        d = call(a.elements, b.elements, C, **scales, **more)
        same(call(x, y, C, **scales, **more).compute(), d)
        same(call(x, y, C, **lazy, **more).compute(), d)
        whole = (Quantized(elements=x, scales=a.scales), Quantized(elements=y, scales=lazy["scale_b"]))
        same(call(*whole, C, **more).compute(), d)
    k = 96 - size + 3  # the last block is not whole
    part = call(a.elements[:, :k], b.elements[:k], **scales)
    same(call(x[:, :k], y[:k], **lazy).compute(), part)
    assert (part != call(a.elements, b.elements, **scales)).any()


@pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 6), (5, 0, 6), (5, 6, 0), (0, 0, 0), (1, 1, 1)])
def test_nothing_gives_nothing(m: int, n: int, k: int) -> None:
    for more in ({}, {"split_k": 2}, {"promote_every": 16}, {"epilogue": "bf16"}):
        check(A[:m, :k], B[:k, :n], C[:m, :n], chunks=(3, 4), target="sm_80", **more)


CUTS = st.lists(st.integers(0, 40), min_size=1, max_size=5)


@given(m=CUTS, n=CUTS, of_a=CUTS, of_b=CUTS, promote=st.sampled_from([None, 16, 48]), split=st.integers(1, 9))
@settings(deadline=None, max_examples=40)
def test_any_chunks(
    m: list[int], n: list[int], of_a: list[int], of_b: list[int], promote: int | None, split: int
) -> None:  # fmt: skip
    """Blocks of no length among them, and those of A's k cut otherwise than those of B's."""
    k = min(sum(of_a), sum(of_b))
    a, b = np.resize(A, (sum(m), k)), np.resize(B, (k, sum(n)))
    shorter = [[min(x, k - min(k, sum(cut[:i]))) for i, x in enumerate(cut)] for cut in (of_a, of_b)]
    along = [tuple(cut) if sum(cut) == k else (k,) for cut in shorter]
    x, y = da.from_array(a, (tuple(m), along[0])), da.from_array(b, (along[1], tuple(n)))
    call = partial(wm.matmul, target="sm_90", split_k=split, promote_every=promote)
    with dask.config.set(scheduler="synchronous"):
        same(call(x, y).compute(), call(a, b))


# Lazy.


def forbidden(*_: Any, **__: Any) -> Any:
    raise RuntimeError("something was computed")


def unread(x: Array, chunks: Any = 20) -> Any:
    return da.from_array(x, chunks).map_blocks(forbidden, dtype=x.dtype, meta=np.empty((0, 0), x.dtype))


def test_making_a_graph_computes_nothing() -> None:
    q = [quantize(X[:, :96], MX), quantize(Y[:96], MX, "B")]
    lazy = [
        wm.matmul(unread(A), unread(B), unread(C), target="sm_90", split_k=2),
        wm.matmul(unread(A), unread(B), instruction=SP, target="sm_90"),
        wm.matmul(*(unread(x.elements) for x in q), instruction=MX, target="sm_120a",
                  scale_a=unread(q[0].scales), scale_b=unread(q[1].scales)),
    ]  # fmt: skip
    for x in lazy:
        assert x.shape == (37, 23) and x.dtype == np.float32
        with pytest.raises(RuntimeError, match="something was computed"):
            x.compute()


def test_only_what_is_asked_for_is_computed() -> None:
    """One tile needs its rows of A and columns of B alone."""
    a = da.concatenate([da.from_array(A[:20], 20), unread(A[20:])])
    b = da.concatenate([da.from_array(B[:, :10], 10), unread(B[:, 10:])], axis=1)
    d = wm.matmul(a, b, target="sm_90")
    same(d[:20, :10].compute(), wm.matmul(A, B, target="sm_90")[:20, :10])
    with pytest.raises(RuntimeError, match="something was computed"):
        d[:21, :10].compute()


def test_results_go_on() -> None:
    """In further products, on threads; and the same product is the same node of a graph."""
    a, b = da.from_array(A, 30), da.from_array(B, 30)
    first = wm.matmul(a, b, target="sm_90", epilogue="f16")
    second = wm.matmul(first, first.T, target="sm_90")
    d = wm.matmul(A, B, target="sm_90", epilogue="f16")
    expected = wm.matmul(d, d.T, target="sm_90")
    same(second.compute(scheduler="threads", num_workers=3), expected)
    same((second[::-1] + 1).compute(), expected[::-1] + 1)
    assert wm.matmul(a, b, target="sm_90", epilogue="f16").name == first.name
    assert wm.matmul(a, b, target="sm_80", epilogue="f16").name != first.name


def test_one_operand_may_be_in_memory() -> None:
    d = wm.matmul(A, B, C, target="sm_90")
    for given_a, given_b, given_c in ((da.asarray(A), B, C), (A, da.asarray(B), C), (A, B, da.asarray(C))):
        lazy = wm.matmul(given_a, given_b, given_c, target="sm_90")
        assert isinstance(lazy, da.Array)
        same(lazy.compute(), d)


def test_dask_is_not_imported_by_products_in_memory() -> None:
    program = (
        "import sys, numpy as np, warpmma as wm\n"
        "wm.matmul(np.ones((2, 2), np.float16), np.ones((2, 2), np.float16), target='sm_90')\n"
        "print([x for x in sys.modules if x.partition('.')[0] in ('dask', 'distributed')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


# Processes.


def test_workers_of_a_cluster() -> None:
    distributed = pytest.importorskip("distributed")
    b = Y.astype(ml_dtypes.float8_e4m3fn)
    a = X.astype(ml_dtypes.float8_e4m3fn)
    q = [quantize(X[:, :96], MX), quantize(Y[:96], MX, "B")]
    with (
        distributed.LocalCluster(
            n_workers=2, processes=True, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        lazy = [
            wm.matmul(da.from_array(A, 30), da.from_array(B, 11), da.from_array(C, 7), target="sm_90", split_k=2),
            wm.matmul(da.from_array(a, 30), da.from_array(b, 11), instruction=FP8, target="sm_90a", promote_every=64),
            wm.matmul(da.from_array(q[0].elements, 50), q[1].elements, instruction=MX, target="sm_120a",
                      scale_a=q[0].scales, scale_b=da.from_array(q[1].scales, 5)),
            wm.matmul(da.from_array(A, 30), B, target="sm_90", epilogue="e2m1"),
        ]  # fmt: skip
        found = [x.result(timeout=60) for x in client.compute(lazy)]
        broken = client.compute(wm.matmul(da.from_array(A, 30), B, instruction=SP, target="sm_90"))
        with pytest.raises(MetadataError, match="A breaks the 2:4 pattern"):
            broken.result(timeout=60)
    expected = [
        wm.matmul(A, B, C, target="sm_90", split_k=2),
        wm.matmul(a, b, instruction=FP8, target="sm_90a", promote_every=64),
        wm.matmul(q[0], q[1], instruction=MX, target="sm_120a"),
        wm.matmul(A, B, target="sm_90", epilogue="e2m1"),
    ]
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype
        same(x.view(np.uint8), y.view(np.uint8))


# Errors, when the graph is made: ~ stands for the rest of a message.


LAZY_A, LAZY_B = da.from_array(A, 30), da.from_array(B, 30)
UNKNOWN = LAZY_A[LAZY_A[:, 0] > 0]
NOT_HERE = (
    "dask arrays do not support out, tensor scales, indices (give A dense), threads, progress and engine='cuda' or "
    "'hardware'"
)
OF_A, OF_B = np.zeros((37, 4), np.uint8), np.zeros((4, 23), np.uint8)
SCALED = {"a": LAZY_A.view(np.uint8)[:, :100], "b": da.zeros((100, 23), dtype=np.uint8), "instruction": MX,
          "target": "sm_120a", "scale_a": OF_A, "scale_b": OF_B}  # fmt: skip
TENSOR = Quantized(elements=LAZY_A, scales=OF_A, tensor_scale=np.float32(1))


@pytest.mark.parametrize(
    ("error", "changes", "message"),
    [
        *((OperandError, {x: y}, NOT_HERE) for x, y in (
            ("out", C), ("indices", OF_A), ("threads", 2), ("progress", print), ("a", TENSOR), ("engine", "cuda"))),
        (OperandError, {"b": LAZY_B[1:]}, "dask: A is (37, 100) and B is (99, 23); expected (m, k) and (k, n)"),
        (OperandError, {"a": LAZY_A[None]}, "dask: A is (1, 37, 100) and B is (100, 23); expected (m, k) and (k, n)"),
        (OperandError, {"b": B[:, 0]}, "dask: A is (37, 100) and B is (100,); expected (m, k) and (k, n)"),
        (OperandError, {"b": None}, "dask: A is (37, 100) and B is (); expected (m, k) and (k, n)"),
        (OperandError, {"b": [[1], [2, 3]]}, "B: not an array: ~"),
        (OperandError, {"c": [[1], [2, 3]]}, "C: not an array: ~"),
        (OperandError, {"a": UNKNOWN},
         "dask: A is (nan, 100) and B is ~; expected known lengths (see compute_chunk_sizes)"),
        (OperandError, {"c": C[1:]}, f"{F16}: C is (36, 23); expected (37, 23), or what broadcasts to it"),
        (OperandError, {"c": C[None]}, f"{F16}: C is (1, 37, 23); expected (37, 23), or what broadcasts to it"),
        (OperandError, {"c": da.asarray(C).astype("u4")}, "C is uint32: which type is meant? ~"),
        (OperandError, {"a": LAZY_A.astype("u2")}, "A is uint16: which type is meant? Name the instruction, ~"),
        (MnemonicError, {"b": LAZY_B.astype("f4")}, "sm_90 has no mma for f16 x tf32 that is chosen by default: ~"),
        (MnemonicError, {"instruction": "mma"}, "mma~"),
        (TargetError, {"target": "sm_91"}, "unknown target 'sm_91'; ~"),
        (OperandError, {"split_k": 0}, "split_k is 0; expected a positive number of slices, or their lengths"),
        (OperandError, {"split_k": [50, 50]}, f"{F16}: slices of k are (50, 50); expected 100 together, ~"),
        (OperandError, {"promote_every": 8}, f"{F16}: promote_every is 8; expected a multiple of 16"),
        (OperandError, {"instruction": HALF, "split_k": 2}, f"{HALF}: partial sums are added in f32; ~"),
        (OperandError, {"epilogue": "f64"}, "epilogue is 'f64'; expected 'f32', ~"),
        (OperandError, {"a": A.astype(object)}, "dask: A is object: Python objects, which hold no bits"),
        (OperandError, {"engine": "gpu"}, "engine is 'gpu'; expected 'auto', 'numpy', 'native', 'cuda' or 'hardware'"),
        (OperandError, {"instruction": SP, "a": LAZY_A[:, :98], "b": LAZY_B[:98]},
         f"{SP}: k is 98; expected a multiple of 4, the group of the sparsity pattern"),
        (ScaleError, {"scale_a": OF_A}, f"{F16} has no block scales; got some (name an instruction with .block_scale)"),
        (ScaleError, {**SCALED, "scale_a": None}, f"{MX} needs block scales of A and of B"),
        (ScaleError, {**SCALED, "scale_a": np.zeros((38, 8), "u1")},
         f"{MX}: scales of A are (38, 8); expected [..., 37, 4], ~"),
        (ScaleError, {**SCALED, "scale_b": da.zeros((4, 24))},
         f"{MX}: scales of B are (4, 24); expected [..., 4, 23], ~"),
        (ScaleError, {**SCALED, "scale_b": OF_B[None]},
         f"{MX}: scales are (1, 4, 23); expected two dimensions, as dask ~"),
        (ScaleError, {**SCALED, "scale_b": [[1], [2, 3]]}, "scales of B: not an array: ~"),
    ],
)  # fmt: skip
def test_what_cannot_be_multiplied(error: type[WarpmmaError], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(error, match=exactly(message)):
        wm.matmul(**{"a": LAZY_A, "b": LAZY_B, "target": "sm_90", **changes})


def test_values_are_refused_when_they_come() -> None:
    """What only the blocks tell is an error of the computation."""
    bits = da.full((20, 300), 2, dtype=np.uint8)
    with pytest.raises(OperandError, match=exactly(f"{B1}: A: b1: 2 at [0, 0] does not fit; expected 0 to 1")):
        wm.matmul(bits, bits.T, instruction=B1, target="sm_90").compute()
    with pytest.raises(MetadataError, match=r"A breaks the 2:4 pattern at row 0, group 0 "):
        wm.matmul(LAZY_A, LAZY_B, instruction=SP, target="sm_90").compute()
