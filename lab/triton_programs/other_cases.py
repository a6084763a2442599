"""Runs of `other_kernels`, at small sizes."""

from __future__ import annotations

from functools import partial

import numpy as np

from .calls import Call, Program, TritonCase, blank, floats, integers

__all__ = ["OTHERS"]


def _transposed(m: int, n: int) -> Program:
    arrays = {"x": floats(51, "bf16", m, n), "y": blank("bf16", n, m)}
    call = Call("other_kernels.transposed", (-(-m // 32), -(-n // 64)), (*arrays, m, n), {"BM": 32, "BN": 64})
    return Program(arrays, (call,), ("y",))


def _packed_weights(m: int, n: int, k: int) -> Program:
    arrays = {"x": floats(52, "f16", m, k), "w": integers(53, "s8", 0, n, k // 2),
              "scales": floats(54, "f16", n, k // 32), "y": blank("f16", m, n)}  # fmt: skip
    call = Call("other_kernels.packed_weights", (-(-m // 16), -(-n // 32)), (*arrays, m, n, k),
                {"BM": 16, "BN": 32, "BK": 32})  # fmt: skip
    return Program(arrays, (call,), ("y",))


def _variances(rows: int, columns: int) -> Program:
    arrays = {"x": floats(55, "f32", rows, columns), "means": blank("f32", rows), "spreads": blank("f32", rows)}
    call = Call("other_kernels.variances", (rows,), (*arrays, columns), {"BLOCK": 512})
    return Program(arrays, (call,), ("means", "spreads"))


def _conversions(n: int) -> Program:
    types = {"half": "f16", "cut": "f16", "brain": "bf16", "e5m2": "e5m2", "e4m3": "e4m3", "integer": "s16",
             "back": "f32"}  # fmt: skip
    arrays = {"x": floats(56, "f32", n, lowest=-20, highest=8)} | {name: blank(t, n) for name, t in types.items()}
    call = Call("other_kernels.conversions", (-(-n // 256),), (*arrays, n), {"BLOCK": 256})
    return Program(arrays, (call,), tuple(types))


def _gathers(rows: int, columns: int) -> Program:
    arrays = {"x": floats(57, "f32", rows, columns), "places": integers(58, "s32", rows, rows, columns),
              "y": blank("f32", rows, columns), "flipped": blank("f32", rows, columns)}  # fmt: skip
    call = Call("other_kernels.gathers", (1,), tuple(arrays), {"ROWS": rows, "COLUMNS": columns})
    return Program(arrays, (call,), ("y", "flipped"))


def _atomics(n: int, bins: int) -> Program:
    arrays = {"x": floats(59, "f32", n), "highest": np.full(bins, -np.inf, np.float32),
              "lowest": np.full(bins, np.inf, np.float32), "counts": np.zeros(bins, np.int64),
              "halves": np.zeros(bins, np.float16)}  # fmt: skip
    call = Call("other_kernels.atomics", (-(-n // 128),), (*arrays, n), {"BINS": bins, "BLOCK": 128})
    return Program(arrays, (call,), ("highest", "lowest", "counts", "halves"))


def _batched(type_: str, batch: int, n: int) -> Program:
    arrays = {"a": floats(60, type_, batch, n, n), "b": floats(61, type_, batch, n, n), "c": blank("f32", batch, n, n)}
    call = Call("other_kernels.batched", (1,), tuple(arrays), {"N": n, "BATCH": batch})
    return Program(arrays, (call,), ("c",))


def _assembler(n: int) -> Program:
    arrays = {"x": integers(62, "s32", 0, n), "y": blank("s32", n)}
    return Program(arrays, (Call("other_kernels.assembler", (-(-n // 128),), (*arrays, n), {"BLOCK": 128}),), ("y",))


def _persistent(m: int, n: int, k: int) -> Program:
    arrays = {"a": floats(63, "bf16", m, k), "b": floats(64, "bf16", k, n), "c": blank("bf16", m, n)}
    meta = {"PROGRAMS": 2, "BM": 32, "BN": 32, "BK": 32}
    return Program(arrays, (Call("other_kernels.persistent", (2,), (*arrays, m, n, k), meta),), ("c",))


def _collatz(n: int) -> Program:
    arrays = {"x": integers(65, "s32", 10000, n) + np.int32(1), "steps": blank("s32", n), "most": blank("s64", n)}
    call = Call("other_kernels.collatz", (-(-n // 64),), (*arrays, n), {"BLOCK": 64, "num_warps": 2})
    return Program(arrays, (call,), ("steps", "most"))


def _gradients(rows: int, columns: int, groups: int) -> Program:
    arrays = {"x": floats(66, "f16", rows, columns), "weight": floats(67, "f16", columns),
              "slopes": floats(68, "f16", rows, columns), "means": floats(69, "f32", rows),
              "scales": np.abs(floats(70, "f32", rows)), "out": blank("f16", rows, columns),
              "parts": np.zeros((groups, columns), np.float32)}  # fmt: skip
    call = Call("other_kernels.gradients", (rows,), (*arrays, columns), {"BLOCK": 256, "GROUPS": groups})
    return Program(arrays, (call,), ("out", "parts"))


_P = partial
OTHERS = (
    TritonCase("transposed", _P(_transposed, 70, 100)),
    TritonCase("packed weights", _P(_packed_weights, 20, 50, 128)),
    TritonCase("variances", _P(_variances, 3, 300)),
    TritonCase("conversions", _P(_conversions, 500), ptx="sm_89"),
    TritonCase("gathers", _P(_gathers, 32, 16)),
    TritonCase("atomics", _P(_atomics, 300, 7)),
    TritonCase("batched f16", _P(_batched, "f16", 2, 32)),
    TritonCase("batched f32", _P(_batched, "f32", 4, 16)),
    TritonCase("assembler", _P(_assembler, 200)),
    TritonCase("persistent", _P(_persistent, 70, 80, 100)),
    TritonCase("collatz", _P(_collatz, 100)),
    TritonCase("gradients", _P(_gradients, 6, 200, 2)),
)
