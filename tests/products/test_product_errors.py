"""Operands that cannot be multiplied raise only the package's own errors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from messages import exactly
from product_cases import B1, EPILOGUES, F4, F16, F64, FP8, HALF, MX, NVF4, QUAD, S8, SP, SP_TF32, zeros

import warpmma as wm
from warpmma.errors import (
    MetadataError,
    MnemonicError,
    OperandError,
    ScaleError,
    TargetError,
    UnsupportedError,
    WarpmmaError,
)
from warpmma.scaling import Quantized


def full(shape: tuple[int, ...], value: Any, dtype: Any = "f2") -> Array:
    return np.full(shape, value, dtype)


def read_only(x: Array) -> Array:
    x.flags.writeable = False
    return x


FLOATS = "'f32', 'tf32', 'f16', 'bf16', 'e5m2', 'e4m3', 'e3m2', 'e2m3' or"
FP4 = {"a": zeros(3, 40, dtype="u1"), "b": zeros(40, 5, dtype="u1")}
OF_A, OF_B = zeros(3, 2, dtype="u1"), zeros(2, 5, dtype="u1")
SCALED_ARGUMENTS = {**FP4, "instruction": MX, "target": "sm_120a", "scale_a": OF_A, "scale_b": OF_B}
S8_ARGUMENTS = {"instruction": S8, "a": zeros(3, 40, dtype="i1"), "b": zeros(40, 5, dtype="i1")}
F64_ARGUMENTS = {"instruction": F64, "a": zeros(3, 40, dtype="f8"), "b": zeros(40, 5, dtype="f8")}
BROKEN = sum(np.eye(20, 40, x, np.float16) for x in range(3))
SPARSE_ARGUMENTS = {"instruction": SP}
STORED = {**SPARSE_ARGUMENTS, "a": zeros(3, 20), "indices": np.tile([0, 1], (3, 10, 1))}
TENSOR = {"a": Quantized(elements=FP4["a"], scales=zeros(3, 3, dtype="u1"), tensor_scale=np.float32(2)), "b": FP4["b"],
          "instruction": NVF4, "target": "sm_120a", "scale_b": zeros(3, 5, dtype="u1")}  # fmt: skip


def with_tensor_scale(x: Any) -> dict[str, Any]:
    return {**TENSOR, "a": Quantized(elements=FP4["a"], scales=zeros(3, 3, dtype="u1"), tensor_scale=x)}


@pytest.mark.parametrize(
    ("error", "changes", "message"),
    [
        (TargetError, {"target": "sm_91"}, "unknown target 'sm_91'; did you mean 'sm_90'? Known are sm_7~"),
        (TargetError, {"target": None, "instruction": F16}, "a target is a string such as 'sm_90'; got None"),
        (TargetError, {"instruction": FP8}, f"{FP8} is not legal on sm_90; legal on sm_90a"),
        (MnemonicError, {"instruction": "mma.sync"}, "mma.sync~"),
        (MnemonicError, {"instruction": 5}, "a mnemonic is a string, such as 'mma.sync...'; got int"),
        # Types
        (OperandError, {"a": zeros(3, 40, dtype="u2")},
         "A is uint16: which type is meant? Name the instruction, or give "
         "one of float16 (f16), bfloat16 (bf16), float32 (tf32), float8_e4m3fn (e4m3), ~"),
        (OperandError, {"b": zeros(40, 5, dtype="?")}, "B is bool: which type is meant? Name the instruction, or ~"),
        (OperandError, {"c": zeros(3, 5, dtype="u4")},
         "C is uint32: which type is meant? Name the instruction, or give "
         "one of float32 (f32), float16 (f16), int32 (s32), float64 (f64)"),
        (OperandError, {"a": [[1], [2, 3]]}, "A: not an array: ~"),
        (OperandError, {"c": [[1], [2, 3]]}, "C: not an array: ~"),
        (OperandError, {"a": None}, "A is object: which type is meant? ~"),
        (MnemonicError, {"b": zeros(40, 5, **F4)},
         "sm_90 has no mma for f16 x tf32 that is chosen by default: name the "
         "instruction. It has b1 x b1, bf16 x bf16, ~, f16 x f16, ~"),
        (MnemonicError, {"c": zeros(3, 5, dtype="i4")},
         "sm_90 has no mma for f16 x f16 with C of s32 that is chosen ~"),
        (MnemonicError, {"a": zeros(3, 20, dtype="f8"), "b": zeros(40, 5, dtype="f8"), "indices": [0]},
         "sm_90 has no sparse mma for f64 x f64 that is chosen by default: name the instruction. It has ~"),
        (OperandError, {"instruction": F16, "a": zeros(3, 40, dtype="f8")}, f"{F16}: A: f16: got dtype float64; ~"),
        (OperandError, {"instruction": F16, "c": zeros(3, 5, dtype="f2")}, f"{F16}: C: f32: got dtype float16; ~"),
        (OperandError, {"instruction": B1, "a": full((3, 40), 2, "u1")}, f"{B1}: A: b1: 2 at [0, 0] does not fit; ~"),
        # Shapes
        (OperandError, {"b": zeros(41, 5)},
         f"{F16}: A is (3, 40) and B is (41, 5); expected [..., m, k] and [..., k, n]"),
        (OperandError, {"a": zeros(40)}, f"{F16}: A is (40,) and B is (40, 5); expected [..., m, k] and [..., k, n]"),
        (OperandError, {"b": np.float16(0)}, f"{F16}: A is (3, 40) and B is (); expected [..., m, k] and [..., k, n]"),
        (OperandError, {"a": zeros(2, 3, 40), "b": zeros(3, 40, 5)},
         f"{F16}: batches do not broadcast: A (2, 3, 40), B (3, 40, 5)"),
        (OperandError, {"c": zeros(3, 4, **F4)}, f"{F16}: C is (3, 4); expected (3, 5), or what broadcasts to it"),
        (OperandError, {"c": zeros(2, 3, 5, **F4)},
         f"{F16}: C is (2, 3, 5); expected (3, 5), or what broadcasts to it"),
        # Along k
        *((OperandError, {"split_k": x}, f"split_k is {x!r}; expected a positive number of slices, or their lengths")
          for x in (0, -1, 2.0, True, None, "2", [], [0, 40], [20.0, 20], np.array([40]), [[40]])),
        (OperandError, {"split_k": [16, 16]},
         f"{F16}: slices of k are (16, 16); expected 40 together, multiples of 16 ~"),
        (OperandError, {"split_k": (8, 32)},
         f"{F16}: slices of k are (8, 32); expected 40 together, multiples of 16 but ~"),
        *((OperandError, {"promote_every": x}, f"{F16}: promote_every is {x!r}; expected a multiple of 16")
          for x in (0, -16, 8, 24, 16.0, "16", True, [16])),
        (OperandError, {"instruction": HALF, "split_k": 2},
         f"{HALF}: partial sums are added in f32; expected a D of f32 for split_k and promote_every"),
        (OperandError, {"instruction": HALF, "promote_every": 16},
         f"{HALF}: partial sums are added in f32; expected ~"),
        (OperandError, {"instruction": QUAD, "target": "sm_70"},
         f"{QUAD}: D is f32 and cannot be the next instruction's C; "
         "expected one instruction, k from 1 to 4 and no partial sums"),
        (OperandError, {"instruction": QUAD, "target": "sm_70", "a": zeros(3, 0), "b": zeros(0, 5)},
         f"{QUAD}: D is f32 ~"),
        (OperandError, {"instruction": QUAD, "target": "sm_70", "a": zeros(3, 4), "b": zeros(4, 5), "promote_every": 4},
         f"{QUAD}: D is f32 ~"),
        # Epilogue
        *((OperandError, {"epilogue": x}, f"epilogue is {x!r}; expected {FLOATS} ~")
          for x in ("f64", "s8", "ue8m0", "float16", "", 16, ["f16"])),
        (OperandError, {**S8_ARGUMENTS, "epilogue": "f16"},
         f"{S8}: D is s32, which an epilogue cannot round; expected f32 or f16"),
        (OperandError, {**F64_ARGUMENTS, "epilogue": "f16"},
         f"{F64}: D is f64, which an epilogue cannot round; expected f32 or f16"),
        # Sparse
        (OperandError, {"instruction": F16, "indices": [0]}, f"{F16} is dense: it takes no indices"),
        (OperandError, {"indices": [0]},
         f"{SP}: A is (3, 40) and B is (40, 5); expected [..., m, k/2] and [..., k, n]"),
        (OperandError, {**SPARSE_ARGUMENTS, "a": zeros(3, 42), "b": zeros(42, 5)},
         f"{SP}: k is 42; expected a multiple of 4, the group of the sparsity pattern"),
        (OperandError, {**STORED, "a": zeros(3, 21), "b": zeros(42, 5)}, f"{SP}: k is 42; expected a multiple of 4, ~"),
        (MetadataError, {**SPARSE_ARGUMENTS, "a": BROKEN},
         f"{SP}: A breaks the 2:4 pattern at row 0, group 0 (columns 0 to 3): [1.0, 1.0, 1.0, 0.0]; "
         "expected at most 2 nonzero elements (see prune)"),
        (OperandError, {**STORED, "indices": zeros(3, 9, 2, dtype=int)},
         f"{SP}: indices are int64 (3, 9, 2); expected int [..., 3, 10, 2]"),
        (OperandError, {**STORED, "indices": zeros(3, 10, 2)}, f"{SP}: indices are float16 (3, 10, 2); expected int ~"),
        (OperandError, {**STORED, "indices": [[1], [2, 3]]}, f"{SP}: indices: not an array: ~"),
        (OperandError, {**STORED, "indices": zeros(2, 3, 10, 2, dtype=int) + np.array([0, 1]), "b": zeros(3, 40, 5)},
         f"{SP}: batches do not broadcast: A (3, 20), B (3, 40, 5), indices (2, 3, 20)"),
        (MetadataError, {**STORED, "indices": full((3, 10, 2), 4, int)},
         f"{SP}: indices go from 4 to 4; expected 0 to 3"),
        (MetadataError, {**STORED, "indices": full((3, 10, 2), 2, int)},
         f"{SP}: indices (2, 2), nibble 0xa, of row 0, group 0 (columns 0 to 3); legal are 0x1, ~ (PTX: i0 != i1)"),
        (UnsupportedError, {"a": zeros(3, 20, dtype="u2"), "b": zeros(40, 5, dtype="u2"), "target": "sm_100",
                            "instruction": SP.replace("f16", "bf16"), "indices": full((3, 10, 2), [1, 0], int)},
         f"{SP.replace('f16', 'bf16')}: indices (1, 0), nibble 0x1, of row 0, ~ for bf16 ptxas does not sort them ~"),
        # Scales
        (ScaleError, {"scale_a": OF_A}, f"{F16} has no block scales; got some (name an instruction with .block_scale)"),
        (ScaleError, {**SCALED_ARGUMENTS, "scale_a": None}, f"{MX} needs block scales of A and of B"),
        (ScaleError, {**SCALED_ARGUMENTS, "scale_b": None}, f"{MX} needs block scales of A and of B"),
        (ScaleError, {**SCALED_ARGUMENTS, "scale_a": OF_A[:, 1:]},
         f"{MX}: scales of A are (3, 1); expected [..., 3, 2], blocks of 32"),
        (ScaleError, {**SCALED_ARGUMENTS, "scale_b": OF_A},
         f"{MX}: scales of B are (3, 2); expected [..., 2, 5], blocks of 32"),
        (ScaleError, {**SCALED_ARGUMENTS, "scale_b": zeros(2, 5)},
         f"{MX}: scales of B are float16; expected float8_e8m0fnu, ~"),
        (ScaleError, {**SCALED_ARGUMENTS, "scale_a": [[1], [2, 3]]}, f"{MX}: scales of A: not an array: ~"),
        (OperandError, {**SCALED_ARGUMENTS, "scale_a": np.stack([OF_A] * 2), "scale_b": np.stack([OF_B] * 3)},
         f"{MX}: batches do not broadcast: A (3, 40), B (40, 5), scales of A (2, 3, 2), scales of B (3, 2, 5)"),
        (ScaleError, {**TENSOR, "scale_a": OF_A}, "A is Quantized and brings its scales; expected no others"),
        (ScaleError, {"a": TENSOR["a"], "b": FP4["b"], "instruction": F16}, f"{F16} has no block scales; got some ~"),
        (OperandError, {**TENSOR, "c": zeros(3, 5, **F4)},
         f"{NVF4}: tensor scales multiply all of D; add C to the result, or ~"),
        (ScaleError, with_tensor_scale("x"),
         f"{NVF4}: tensor scale is <U1 (); expected float32 that broadcasts to the batch ()"),
        (ScaleError, with_tensor_scale(0.1), f"{NVF4}: tensor scale is float64 (); expected float32 that broadcasts ~"),
        (ScaleError, with_tensor_scale(np.ones(3, "f4")),
         f"{NVF4}: tensor scale is float32 (3,); expected ~ the batch ()"),
        (ScaleError, with_tensor_scale([[1], [2, 3]]), f"{NVF4}: tensor scale: not an array: ~"),
        # Out
        (OperandError, {"out": zeros(3, 5)},
         "out is float16 (3, 5); expected a writable C-contiguous float32 array (3, 5)"),
        (OperandError, {"out": zeros(3, 5, dtype=">f4")},
         "out is >f4 (3, 5); expected a writable C-contiguous float32 ~"),
        (OperandError, {"out": zeros(5, 3, **F4)},
         "out is float32 (5, 3); expected a writable C-contiguous float32 array (3, 5)"),
        (OperandError, {"out": zeros(1, 3, 5, **F4)},
         "out is float32 (1, 3, 5); expected a writable C-contiguous float32 ~"),
        (OperandError, {"out": zeros(5, 3, **F4).T},
         "out is float32 (3, 5) that is not contiguous; expected a writable ~"),
        *((OperandError, {"out": x}, "out is a masked array, and products ignore masks; pass its .data")
          for x in (np.ma.zeros((3, 5), "f4"), np.ma.array(zeros(3, 5), mask=True))),
        (OperandError, {"out": np.broadcast_to(np.float32(0), (3, 5))}, "out is float32 (3, 5) that is read-only; ~"),
        (OperandError, {"out": np.float32(0)}, "out is float32; expected a writable C-contiguous float32 array (3, 5)"),
        (OperandError, {"out": read_only(zeros(3, 5, **F4))},
         "out is float32 (3, 5) that is read-only; expected a writable ~"),
        (OperandError, {"out": [[0.0] * 5] * 3}, "out is list; expected a writable C-contiguous float32 array (3, 5)"),
        (OperandError, {"out": zeros(3, 5, **F4), "epilogue": "bf16"},
         "out is float32 (3, 5); expected a ~ bfloat16 array (3, 5)"),
        # How
        (OperandError, {"engine": "gpu"}, "engine is 'gpu'; expected 'auto', 'numpy', 'native', 'cuda' or 'hardware'"),
        (OperandError, {"engine": None}, "engine is None; expected 'auto', 'numpy', 'native', 'cuda' or 'hardware'"),
        *((OperandError, {"threads": x}, f"threads is {x!r}; expected a positive integer or None")
          for x in (0, -1, 1.0, "2", True)),
        *((OperandError, {"progress": x}, f"progress is {x!r}; expected a function of two integers, True or None")
          for x in (0, 1, "p")),
    ],
)  # fmt: skip
def test_what_cannot_be_multiplied(error: type[WarpmmaError], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(error, match=exactly(message)):
        wm.matmul(**{"a": zeros(3, 40), "b": zeros(40, 5), "target": "sm_90", **changes})


DTYPES = st.sampled_from(
    [
        "f2",
        "f4",
        "f8",
        "i1",
        "u1",
        "u2",
        "u4",
        "i4",
        "?",
        "O",
        "c8",
        "U3",
        "M8[s]",
        "V4",
        ">f4",
        "float8_e4m3fn",
        "int4",
    ]
)
LENGTHS = st.sampled_from([0, 1, 2, 3, 4, 5, 20, 40])
SHAPES = st.lists(LENGTHS, max_size=4).map(tuple) | st.sampled_from(
    [(3, 40), (40, 5), (3, 20), (3, 5), (3, 10, 2), (3, 2), (2, 5)]
)


def some_array(shape: tuple[int, ...], dtype: str) -> Array:
    return np.zeros(shape, getattr(ml_dtypes, dtype, dtype))


ANYTHING: st.SearchStrategy[Any] = st.one_of(
    st.builds(some_array, SHAPES, DTYPES),
    st.sampled_from([None, "A", 1.0, 2**70, b"", [], {}, float, np.float32(0), TENSOR["a"]]),
)  # fmt: skip
RIGHT: list[dict[str, Any]] = [
    {"a": zeros(3, 40), "b": zeros(40, 5), "target": "sm_90"},
    {"a": zeros(2, 3, 40), "b": zeros(40, 5), "c": zeros(5, **F4), "target": "sm_90", "split_k": 2,
     "out": zeros(2, 3, 5, **F4)},
    {**STORED, "b": zeros(40, 5), "target": "sm_90"}, SCALED_ARGUMENTS, TENSOR,
    {"a": zeros(3, 40, dtype="f8"), "b": zeros(40, 5, dtype="f8"), "target": "sm_80"},
    {"a": zeros(3, 40, dtype="u1"), "b": zeros(40, 5, dtype="u1"), "instruction": FP8, "target": "sm_90a",
     "promote_every": 128},
]  # fmt: skip
SMALL = st.sampled_from(
    [0, 1, 2, 16, 32, 64, -1, 1.5, "1", None, True, 2**80, [16, 24], [32, 8], (40,), [], [2**70], range(3)]
)
WRONG: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("a", "b", "c", "indices", "scale_a", "scale_b", "out"), ANYTHING),
    **dict.fromkeys(("split_k", "promote_every"), SMALL),
    "instruction": st.sampled_from([F16, F64, S8, B1, QUAD, SP, SP_TF32, MX, NVF4, FP8, "mma", "wgmma", "", None, 3]),
    "target": st.sampled_from(["sm_70", "sm_90", "sm_90a", "sm_120a", "sm_121", "", None, 90]),
    "epilogue": st.sampled_from([*EPILOGUES, "f64", "s8", "", 3]),
    "engine": st.sampled_from(["auto", "numpy", "native", "", None]),
    "threads": st.sampled_from([1, 2, 0, -1, 0.5, "1", 10**30]),
    "progress": st.sampled_from([3, "", lambda done, total: None]),
}


@pytest.mark.filterwarnings("ignore:float32 operands without:DeprecationWarning")
@given(right=st.sampled_from(RIGHT), wrong=st.fixed_dictionaries({}, optional=WRONG))
@settings(deadline=None, max_examples=500, suppress_health_check=[HealthCheck.too_slow])
@example(right=RIGHT[0], wrong={"a": zeros(3, 0), "b": zeros(0, 5)})
@example(right=RIGHT[0], wrong={"a": zeros(0, 40)})
@example(right=RIGHT[0], wrong={"progress": 5})
@example(right=RIGHT[0], wrong={"a": np.zeros((2, 8), np.float32), "b": np.zeros((8, 2), np.float32)})
@example(right=RIGHT[1], wrong={"a": zeros(2, 0, 40), "out": None, "threads": 2})
def test_nothing_but_our_own_errors_comes_out(right: dict[str, Any], wrong: dict[str, Any]) -> None:
    try:
        d = wm.matmul(**{**right, **wrong})
    except WarpmmaError as error:
        assert wrong and str(error)
    else:
        assert d.ndim >= 2


def test_masked_arrays_are_refused() -> None:
    a = np.ma.array(np.ones((4, 16), np.float16), mask=True)
    with pytest.raises(OperandError, match="A is a masked array, and instructions do not take masks; fill it first"):
        wm.matmul(a, np.ones((16, 4), np.float16), target="sm_90")
