"""Runs of kernels that Triton compiles for sm_90a: `wgmma`, tensor maps, clusters, specialised warps."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from lab.programs.launches import Array, Struct

from .calls import Call, Described, Program, TritonCase, blank, floats, integers

__all__ = ["HOPPER"]

_Shape = tuple[int, int, int]
_SUMS = {"f16": "tl.float16", "f32": "tl.float32", "f64": "tl.float64", "s32": "tl.int32"}
_SCRATCH = 1 << 14  # bytes for the descriptors of all programs


def _operands(types: str, m: int, n: int, k: int, *, columns: bool) -> dict[str, Array]:
    """Return A, B and blank D: types are those of A, B and D, or of both operands and D; B is [n, k] with `columns`."""
    *given, out = types.split()
    of_a, of_b = given[0], given[-1]
    shape = (n, k) if columns else (k, n)
    a, b = (
        integers(seed, type_, 0, *size) if type_ == "s8" else floats(seed, type_, *size)
        for seed, type_, size in ((19, of_a, (m, k)), (20, of_b, shape))
    )
    return {"a": a, "b": b, "c": blank(out, m, n)}


def _grid(m: int, n: int, block: _Shape) -> tuple[int]:
    return (-(-m // block[0]) * -(-n // block[1]),)


def _meta(block: _Shape, **options: Any) -> dict[str, Any]:
    return dict(zip(("BM", "BN", "BK"), block, strict=True)) | {"GROUP": 2} | options


def _pointers(
    types: str, m: int, n: int, k: int, block: _Shape, precision: str = "tf32", sum_: str = "f32", **options: int
) -> Program:
    arrays = _operands(types, m, n, k, columns=False)
    meta = _meta(block, PRECISION=precision, SUM=_SUMS[sum_], **options)
    call = Call("matrix_kernels.product", _grid(m, n, block), (*arrays, m, n, k), meta)
    return Program(arrays, (call,), ("c",))


def _described(columns: bool, block: _Shape) -> tuple[Described, Described, Described]:
    bm, bn, bk = block
    return Described("a", (bm, bk)), Described("b", (bn, bk) if columns else (bk, bn)), Described("c", (bm, bn))


def _host(types: str, m: int, n: int, k: int, block: _Shape, *, rows: bool = False, **options: int) -> Program:
    arrays = _operands(types, m, n, k, columns=not rows)
    meta = _meta(block, ROWS=rows, **options)
    arguments = (*_described(not rows, block), m, n, k)
    return Program(arrays, (Call("descriptor_kernels.product", _grid(m, n, block), arguments, meta),), ("c",))


def _persistent(
    types: str, m: int, n: int, k: int, block: _Shape, *, host: bool, programs: int = 2, flat: bool = False,
    warps: bool = False, **options: int,
) -> Program:  # fmt: skip
    arrays = _operands(types, m, n, k, columns=True)
    meta = _meta(block, FLAT=flat, WARPS=warps, **options)
    kernel = "persistent" if host else "made_by_kernel"
    arguments = (*(_described(True, block) if host else arrays), m, n, k)
    scratch = {} if host else {"scratch": np.zeros(_SCRATCH, np.uint8)}
    return Program(arrays | scratch, (Call(f"descriptor_kernels.{kernel}", (programs,), arguments, meta),), ("c",))


def _pointers_persistent(m: int, n: int, k: int) -> Program:
    arrays = _operands("bf16 bf16", m, n, k, columns=False)
    meta = {"PROGRAMS": 2, "BM": 64, "BN": 64, "BK": 64}
    return Program(arrays, (Call("other_kernels.persistent", (2,), (*arrays, m, n, k), meta),), ("c",))


def _grouped(*sizes: _Shape) -> Program:
    arrays: dict[str, Any] = {}
    for i, (m, n, k) in enumerate(sizes):
        arrays |= {f"a{i}": floats(26 + i, "f16", m, k), f"b{i}": floats(36 + i, "f16", n, k),
                   f"c{i}": blank("f16", m, n)}  # fmt: skip
    outputs = tuple(name for name in arrays if name[0] == "c")
    arrays |= {"pointers": Struct(tuple(arrays)), "sizes": np.array(sizes, np.int32),
               "scratch": np.zeros(_SCRATCH, np.uint8)}  # fmt: skip
    call = Call("descriptor_kernels.grouped", (3,), ("pointers", "sizes", len(sizes)), {"BLOCK": 64, "DEEP": 64})
    return Program(arrays, (call,), outputs)


def _split(parts: int) -> Program:
    m, n, k = 64, 128, 64 * parts
    # Parts come in any order; sums of small integers are exact.
    a, b = (np.rint(2 * floats(seed, "f16", x, k)).astype(np.float16) for seed, x in ((46, m), (47, n)))
    arrays = {"a": a, "b": b, "c": np.zeros((m, n), np.float32)}
    arguments = (*_described(True, (64, 64, 64)), k)
    meta = {"PART": 64, "BM": 64, "BN": 64, "BK": 64}
    return Program(arrays, (Call("descriptor_kernels.split", (1, 2, parts), arguments, meta),), ("c",))


def _heads(type_: str, heads: int, length: int, depth: int) -> dict[str, Array]:
    shape = heads, length, depth
    return {"q": floats(48, type_, *shape), "k": floats(49, type_, *shape), "v": floats(50, type_, *shape),
            "out": blank("f16" if type_[0] == "e" else type_, *shape), "logs": blank("f32", heads, length)}  # fmt: skip


def _attention(
    type_: str, causal: bool, heads: int, length: int, depth: int, block: tuple[int, int], **options: int
) -> Program:
    arrays = _heads(type_, heads, length, depth)
    bm, bn = block
    meta = {"CAUSAL": causal, "BM": bm, "BN": bn, "D": depth, **options}
    grid = -(-length // bm), heads
    call = Call("matrix_kernels.attention", grid, (*arrays, length, depth**-0.5), meta)
    return Program(arrays, (call,), ("out", "logs"))


def _described_attention(
    type_: str, causal: bool, heads: int, length: int, depth: int, block: tuple[int, int], *, warps: bool = False,
    **options: int,
) -> Program:  # fmt: skip
    arrays = _heads(type_, heads, length, depth)
    bm, bn = block
    meta = {"CAUSAL": causal, "BM": bm, "BN": bn, "D": depth, "WARPS": warps, **options}
    shape = heads * length, depth
    q, k, v, out = (
        Described(name, (rows, depth), shape) for name, rows in (("q", bm), ("k", bn), ("v", bn), ("out", bm))
    )
    arguments = (q, k, v, out, "logs", length, depth**-0.5)
    call = Call("descriptor_kernels.attention", (length // bm, heads), arguments, meta)
    return Program(arrays, (call,), ("out", "logs"))


def _gradients(
    type_: str, causal: bool, heads: int, length: int, depth: int, block: tuple[int, int], **options: int
) -> Program:
    """Attention, then its gradients: three kernels of what the forward one has left."""
    forward = _attention(type_, causal, heads, length, depth, block, **options)
    shape, scale, (bm, bn) = (heads, length, depth), depth**-0.5, block
    slopes = {f"of_{name}": blank(type_, *shape) for name in "qkv"}
    arrays = {**forward.arrays, "of_out": floats(51, type_, *shape), "sums": blank("f32", heads, length), **slopes}
    meta = forward.calls[0].meta
    given = "q", "k", "v", "of_out", "logs", "sums"
    rows = heads * length
    return Program(arrays, (
        *forward.calls,
        Call("gradient_kernels.row_products", (-(-rows // 32),), ("out", "of_out", "sums", rows),
             {"BM": 32, "D": depth}),
        Call("gradient_kernels.of_keys_and_values", (-(-length // bn), heads),
             (*given, "of_k", "of_v", length, scale), meta),
        Call("gradient_kernels.of_queries", (-(-length // bm), heads), (*given, "of_q", length, scale), meta),
    ), (*forward.outputs, "sums", *slopes))  # fmt: skip


_SMALL, _LONG = (64, 64, 64), (64, 64, 128)


def _case(name: str, make: Any, *arguments: Any, **options: Any) -> TritonCase:
    return TritonCase(name, partial(make, *arguments, **options), ptx="sm_90", options={"ptx_version": 90})


HOPPER = (
    _case("product f16", _pointers, "f16 f16", 128, 192, 200, _SMALL),
    _case("product f16, odd", _pointers, "f16 f16", 70, 90, 100, _SMALL),
    _case("product f16, 1 stage", _pointers, "f16 f32", 64, 128, 256, _SMALL, num_stages=1),
    _case("product f16, 4 stages", _pointers, "f16 f16", 136, 200, 320, (128, 128, 64), num_stages=4, num_warps=8),
    _case("product f16, 1024", _pointers, "f16 f16", 1024, 1024, 1024, (128, 128, 64), num_stages=4, num_warps=8),
    _case("product f16, 256 columns", _pointers, "f16 f16", 128, 256, 128, (128, 256, 64), num_warps=8),
    _case("product f16, f16 sums", _pointers, "f16 f16", 64, 64, 256, _SMALL, sum_="f16"),
    _case("product bf16", _pointers, "bf16 bf16", 130, 130, 200, (128, 64, 64), num_warps=8),
    _case("product bf16, 2 warps", _pointers, "bf16 f32", 64, 64, 128, _SMALL, num_warps=2),
    _case("product e4m3", _pointers, "e4m3 f16", 128, 128, 512, _LONG),
    _case("product e4m3, odd", _pointers, "e4m3 f32", 70, 130, 336, _LONG),
    _case("product e5m2", _pointers, "e5m2 f16", 128, 128, 512, (128, 64, 128), num_warps=8),
    _case("product e5m2 and e4m3", _pointers, "e5m2 e4m3 f32", 64, 64, 256, _LONG),
    _case("product tf32", _pointers, "f32 f32", 128, 64, 160, (64, 64, 32)),
    _case("product tf32, odd", _pointers, "f32 f32", 70, 50, 90, (64, 64, 32), num_stages=2),
    _case("product tf32x3", _pointers, "f32 f32", 64, 64, 96, (64, 64, 32), "tf32x3"),
    _case("product f64", _pointers, "f64 f64", 40, 50, 60, (32, 32, 32), "ieee", "f64"),
    _case("product s8", _pointers, "s8 s32", 130, 90, 256, _LONG, sum_="s32"),
    _case("product f16, cluster of 2", _pointers, "f16 f16", 128, 256, 256, (128, 128, 64), num_ctas=2),
    _case("persistent bf16", _pointers_persistent, 136, 200, 192),
    _case("host f16", _host, "f16 f16", 128, 192, 256, _SMALL),
    _case("host f16, odd", _host, "f16 f16", 72, 136, 104, _SMALL),
    _case("host f16, B by rows", _host, "f16 f16", 136, 200, 264, (128, 128, 64), rows=True, num_warps=8),
    _case("host bf16, 4 stages", _host, "bf16 bf16", 136, 264, 392, (128, 128, 64), num_stages=4, num_warps=8),
    _case("host e4m3", _host, "e4m3 f16", 144, 144, 400, (128, 64, 128)),
    _case("host e5m2", _host, "e5m2 bf16", 64, 128, 512, _LONG, num_stages=2),
    _case("host tf32", _host, "f32 f32", 68, 132, 100, (64, 64, 32)),
    _case("host f16, cluster of 2", _host, "f16 f16", 128, 256, 256, (128, 128, 64), num_ctas=2),
    _case("host persistent f16", _persistent, "f16 f16", 200, 264, 200, _SMALL, host=True),
    _case("host persistent bf16, flat", _persistent, "bf16 bf16", 264, 200, 136, (128, 64, 64), host=True, flat=True,
          num_warps=8),
    _case("host specialised f16", _persistent, "f16 f16", 136, 200, 320, _SMALL, host=True, warps=True),
    _case("host specialised e4m3", _persistent, "e4m3 f16", 144, 144, 528, _LONG, host=True, warps=True, num_stages=2),
    _case("device f16", _persistent, "f16 f16", 200, 136, 200, _SMALL, host=False),
    _case("device bf16, flat", _persistent, "bf16 bf16", 136, 264, 192, (128, 64, 64), host=False, flat=True,
          num_warps=8),
    _case("device e5m2", _persistent, "e5m2 f16", 144, 144, 272, _LONG, host=False),
    _case("device tf32", _persistent, "f32 f32", 68, 132, 100, (64, 64, 32), host=False),
    _case("device specialised f16", _persistent, "f16 f16", 136, 264, 192, (128, 64, 64), host=False, warps=True),
    _case("device grouped f16", _grouped, (72, 136, 104), (128, 64, 192), (64, 200, 64)),
    _case("host split f16", _split, 4),
    *(
        _case(f"attention {type_}{', causal' * causal}", _attention, type_, causal, 2, 150, 64, (64, 64))
        for type_ in ("f16", "bf16") for causal in (False, True)
    ),
    _case("attention e5m2", _attention, "e5m2", False, 1, 128, 64, (64, 64)),
    _case("attention f16, 128 deep", _attention, "f16", True, 1, 200, 128, (128, 64), num_warps=8),
    _case("host attention f16", _described_attention, "f16", False, 2, 192, 64, (64, 64)),
    _case("host attention bf16, causal", _described_attention, "bf16", True, 2, 256, 64, (128, 64), num_warps=8),
    _case("host attention f16, specialised", _described_attention, "f16", False, 1, 256, 64, (64, 64), warps=True),
    *(
        _case(f"gradients {type_}{', causal' * causal}", _gradients, type_, causal, 2, 150, 64, (64, 64))
        for type_ in ("f16", "bf16") for causal in (False, True)
    ),
    _case("gradients f16, 8 warps", _gradients, "f16", True, 1, 200, 128, (128, 64), num_warps=8),
)  # fmt: skip
"""Names are of the kind: by pointers, by descriptors of the host, by those that the kernel makes; the type."""
