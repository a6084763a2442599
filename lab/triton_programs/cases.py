"""The table of runs: every kernel at small sizes, odd ones among them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from lab.programs.launches import Struct

from .calls import Call, Program, TritonCase, blank, floats, integers
from .other_cases import OTHERS

__all__ = ["CASES"]


def _softmax(type_: str, rows: int, columns: int, warps: int) -> Program:
    arrays = {"x": floats(1, type_, rows, columns), "y": blank(type_, rows, columns)}
    meta = {"BLOCK": 1 << (columns - 1).bit_length(), "num_warps": warps}
    return Program(arrays, (Call("row_kernels.softmax", (rows,), ("x", "y", columns, columns), meta),), ("y",))


def _layer_norm(type_: str, rows: int, columns: int) -> Program:
    arrays = {"x": floats(2, type_, rows, columns), "weight": floats(3, type_, columns),
              "bias": floats(4, type_, columns), "y": blank(type_, rows, columns), "means": blank("f32", rows),
              "scales": blank("f32", rows)}  # fmt: skip
    call = Call("row_kernels.layer_norm", (rows,), (*arrays, columns, 1e-5), {"BLOCK": 128})
    return Program(arrays, (call,), ("y", "means", "scales"))


def _cross_entropy(rows: int, columns: int) -> Program:
    arrays = {"logits": floats(5, "bf16", rows, columns), "labels": integers(6, "s64", columns, rows),
              "losses": blank("f32", rows), "slopes": blank("bf16", rows, columns)}  # fmt: skip
    call = Call("row_kernels.cross_entropy", (rows,), (*arrays, columns), {"BLOCK": 256})
    return Program(arrays, (call,), ("losses", "slopes"))


def _dropout(n: int) -> Program:
    arrays = {"x": floats(7, "f32", n), "y": blank("f32", n), "normals": blank("f32", n)}
    call = Call("row_kernels.dropout", (-(-n // 256),), (*arrays, n, 0.3, 12345), {"BLOCK": 256})
    return Program(arrays, (call,), ("y", "normals"))


def _rotary(places: int, heads: int, half: int) -> Program:
    arrays = {"x": floats(8, "f16", places, heads, 2 * half), "angles": floats(9, "f32", half),
              "y": blank("f16", places, heads, 2 * half)}  # fmt: skip
    call = Call("row_kernels.rotary", (places, heads), (*arrays, heads), {"HALF": half, "num_warps": 1})
    return Program(arrays, (call,), ("y",))


def _scans(rows: int, block: int) -> Program:
    decays = np.abs(floats(10, "f32", rows, block, lowest=-2, highest=0))
    arrays = {"x": floats(11, "f32", rows, block), "decays": decays, "sums": blank("f32", rows, block),
              "states": blank("f32", rows, block)}  # fmt: skip
    return Program(arrays, (Call("row_kernels.scans", (rows,), tuple(arrays), {"BLOCK": block}),), ("sums", "states"))


def _orders(type_: str, programs: int, block: int) -> Program:
    shape = programs * 4, block
    x = floats(12, type_, *shape) if type_[0] == "f" else integers(12, type_, 0, *shape)
    arrays = {"x": x, "ascending": blank(type_, *shape), "places": blank("s32", programs * 4)}
    call = Call("row_kernels.orders", (programs,), tuple(arrays), {"ROWS": 4, "BLOCK": block})
    return Program(arrays, (call,), ("ascending", "places"))


def _histogram(n: int, bins: int) -> Program:
    arrays = {
        "x": integers(13, "s32", bins, n),
        "counts": np.zeros(bins, np.int32),
        "touched": np.zeros(bins, np.int32),
    }
    call = Call("row_kernels.histogram", (-(-n // 512),), (*arrays, n), {"BINS": bins, "BLOCK": 512})
    return Program(arrays, (call,), ("counts", "touched"))


def _pieces(n: int) -> Program:
    arrays = {"x": floats(14, "f32", n, highest=4), "y": blank("f32", n)}
    call = Call("row_kernels.pieces", (-(-n // 256),), (*arrays, n), {"BLOCK": 256})
    return Program(arrays, (call,), ("y",))


def _doubles(rows: int, columns: int) -> Program:
    arrays = {"x": floats(15, "f64", rows, columns), "y": blank("f64", rows, columns), "sums": blank("f64", rows)}
    call = Call("row_kernels.doubles", (rows,), (*arrays, columns), {"BLOCK": 128})
    return Program(arrays, (call,), ("y", "sums"))


def _integers(n: int) -> Program:
    divisors = integers(17, "s32", 0, n) >> integers(18, "s32", 31, n) | 1
    arrays = {"x": integers(16, "s32", 0, n), "z": divisors, "quotients": blank("s32", n),
              "remainders": blank("s32", n), "high": blank("u32", n)}  # fmt: skip
    call = Call("row_kernels.integers", (-(-n // 128),), (*arrays, n), {"BLOCK": 128})
    return Program(arrays, (call,), ("quotients", "remainders", "high"))


def _product(
    types: str, m: int, n: int, k: int, block: tuple[int, int, int], precision: str = "tf32", sum_: str = "f32",
    **options: int,
) -> Program:  # fmt: skip
    type_, out = types.split()
    a, b = (
        (integers(19, type_, 0, m, k), integers(20, type_, 0, k, n)) if type_ == "s8"
        else (floats(19, type_, m, k), floats(20, type_, k, n))
    )  # fmt: skip
    arrays = {"a": a, "b": b, "c": blank(out, m, n)}
    bm, bn, bk = block
    meta = {"PRECISION": precision, "SUM": f"tl.{_TRITON[sum_]}", "BM": bm, "BN": bn, "BK": bk, "GROUP": 2, **options}
    grid = (-(-m // bm) * -(-n // bn),)
    return Program(arrays, (Call("matrix_kernels.product", grid, (*arrays, m, n, k), meta),), ("c",))


_TRITON = {"f16": "float16", "f32": "float32", "f64": "float64", "s32": "int32"}
"""Triton's names for accumulator types."""


def _scaled_bytes(m: int, n: int, k: int) -> Program:
    arrays = {"a": integers(21, "s8", 0, m, k), "b": integers(22, "s8", 0, n, k),
              "rows": floats(23, "f32", m, highest=-2), "columns": floats(24, "f32", n, highest=-2),
              "bias": floats(25, "f32", n), "c": blank("bf16", m, n)}  # fmt: skip
    meta = {"BM": 32, "BN": 32, "BK": 64}
    call = Call("matrix_kernels.scaled_bytes", (-(-m // 32), -(-n // 32)), (*arrays, m, n, k), meta)
    return Program(arrays, (call,), ("c",))


def _grouped(*sizes: tuple[int, int, int]) -> Program:
    arrays: dict[str, Any] = {}
    for i, (m, n, k) in enumerate(sizes):
        arrays |= {f"a{i}": floats(26 + i, "f16", m, k), f"b{i}": floats(36 + i, "f16", k, n),
                   f"c{i}": blank("f16", m, n)}  # fmt: skip
    outputs = tuple(name for name in arrays if name[0] == "c")
    arrays |= {"pointers": Struct(tuple(arrays)), "sizes": np.array(sizes, np.int32)}
    call = Call("matrix_kernels.grouped", (3,), ("pointers", "sizes", len(sizes)), {"PROGRAMS": 3, "BLOCK": 32})
    return Program(arrays, (call,), outputs)


def _split(kernel: str, parts: int) -> Program:
    m = n = 64
    k = parts * 64
    # Atomics come in any order; sums of small integers are exact.
    whole = kernel == "split_with_atomics"
    a, b = floats(46, "f16", m, k), floats(47, "f16", k, n)
    if whole:
        a, b = np.rint(2 * a), np.rint(2 * b)
    arrays = {"a": a, "b": b, "c": np.zeros((m, n), np.float32)}
    if not whole:
        arrays["turns"] = np.zeros(m * n // 1024, np.int32)
    meta = {"PART": 64, "BM": 32, "BN": 32, "BK": 32}
    call = Call(f"matrix_kernels.{kernel}", (m // 32, n // 32, parts), (*arrays, n, k), meta)
    return Program(arrays, (call,), ("c",))


def _attention(type_: str, causal: bool, heads: int, length: int, depth: int, block: tuple[int, int]) -> Program:
    shape = heads, length, depth
    arrays = {"q": floats(48, type_, *shape), "k": floats(49, type_, *shape), "v": floats(50, type_, *shape),
              "out": blank(type_, *shape), "logs": blank("f32", heads, length)}  # fmt: skip
    bm, bn = block
    meta = {"CAUSAL": causal, "BM": bm, "BN": bn, "D": depth}
    call = Call("matrix_kernels.attention", (-(-length // bm), heads), (*arrays, length, depth**-0.5), meta)
    return Program(arrays, (call,), ("out", "logs"))


_P = partial
_SMALL = 32, 32, 32
CASES = (
    TritonCase("softmax f32", _P(_softmax, "f32", 7, 781, 4)),
    TritonCase("softmax f16", _P(_softmax, "f16", 5, 100, 2)),
    TritonCase("softmax bf16", _P(_softmax, "bf16", 3, 1000, 8)),
    TritonCase("layer norm f32", _P(_layer_norm, "f32", 4, 300)),
    TritonCase("layer norm f16", _P(_layer_norm, "f16", 3, 257)),
    TritonCase("cross-entropy", _P(_cross_entropy, 4, 1000)),
    TritonCase("dropout", _P(_dropout, 1000)),
    TritonCase("rotary", _P(_rotary, 9, 2, 32)),
    TritonCase("scans", _P(_scans, 3, 256)),
    TritonCase("orders f32", _P(_orders, "f32", 2, 64)),
    TritonCase("orders s32", _P(_orders, "s32", 1, 128)),
    TritonCase("histogram", _P(_histogram, 1500, 64)),
    TritonCase("pieces", _P(_pieces, 1000)),
    TritonCase("doubles", _P(_doubles, 3, 100)),
    TritonCase("integers", _P(_integers, 500)),
    TritonCase("product f16", _P(_product, "f16 f16", 70, 90, 100, (32, 64, 32))),
    TritonCase("product f16, f16 sums", _P(_product, "f16 f16", 50, 40, 64, _SMALL, sum_="f16")),
    TritonCase("product f16, 3 stages", _P(_product, "f16 f32", 64, 64, 256, (64, 64, 32), num_stages=3)),
    TritonCase("product bf16", _P(_product, "bf16 bf16", 33, 65, 127, _SMALL)),
    TritonCase("product e4m3", _P(_product, "e4m3 f16", 33, 50, 130, _SMALL), ptx="sm_89"),
    TritonCase("product e5m2", _P(_product, "e5m2 f32", 40, 40, 64, _SMALL), ptx="sm_89"),
    TritonCase("product tf32", _P(_product, "f32 f32", 40, 50, 60, _SMALL)),
    TritonCase("product tf32x3", _P(_product, "f32 f32", 40, 50, 60, _SMALL, "tf32x3")),
    TritonCase("product f32", _P(_product, "f32 f32", 20, 30, 50, (16, 16, 16), "ieee")),
    TritonCase("product f64", _P(_product, "f64 f64", 20, 30, 50, (16, 16, 16), "ieee", "f64")),
    TritonCase("product s8", _P(_product, "s8 s32", 45, 50, 100, _SMALL, sum_="s32")),
    TritonCase("scaled bytes", _P(_scaled_bytes, 50, 60, 100)),
    TritonCase("grouped", _P(_grouped, (64, 32, 48), (20, 70, 33), (40, 40, 40))),
    TritonCase("split, atomics", _P(_split, "split_with_atomics", 3)),
    TritonCase("split, in turn", _P(_split, "split_in_turn", 3)),
    *(
        TritonCase(f"attention {type_}{', causal' * causal}", _P(_attention, type_, causal, 2, 75, 32, (32, 32)))
        for type_ in ("f16", "bf16") for causal in (False, True)
    ),
    TritonCase("attention f16, 64 deep", _P(_attention, "f16", True, 1, 128, 64, (64, 32))),
    *OTHERS,
)  # fmt: skip
