"""Operands that cannot be executed raise only the package's own errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from execution_cases import B1, F16, F64, FP8, MX, QUAD, S4, SP, abc
from hypothesis import example, given, settings
from hypothesis import strategies as st
from messages import exactly

from warpmma import execute, load, store
from warpmma.errors import OperandError, TargetError, WarpmmaError
from warpmma.layouts import Operand
from warpmma.registers import LANES

(A, B, C), WORDS = abc(F16), np.full(LANES, 0x44444444, np.uint32)
SCALED = {"instruction": MX, "target": "sm_120a"}
HINT = "expected uint32 (use .view(np.uint32))"
MISFIT = {"a": np.array([A, A]), "b": np.array([B, B, B])}


@pytest.mark.parametrize(
    ("error", "changes", "message"),
    [
        (TargetError, {"target": "sm_91"}, "unknown target 'sm_91'; did you mean 'sm_90'? Known are sm_7~"),
        (TargetError, {"target": None}, "a target is a string such as 'sm_90'; got None"),
        (TargetError, {"instruction": FP8}, f"{FP8} is not legal on sm_80; legal on sm_89, sm_90, sm_90a, ~"),
        (OperandError, {"a": A[:3]}, f"{F16}: registers of A are (3, 32); expected [..., 4, 32]"),
        (OperandError, {"c": C[:, 1:]}, f"{F16}: registers of C are (4, 31); expected [..., 4, 32]"),
        (OperandError, {"c": C.view("f4")}, f"{F16}: registers of C are float32; {HINT}"),
        (OperandError, {"b": B.tolist()}, f"{F16}: registers of B are int64; expected uint32"),
        (OperandError, {"b": [[1], [2, 3]]}, f"{F16}: registers of B: not an array: ~"),
        (OperandError, MISFIT, f"{F16}: batches do not broadcast: A (2, 4, 32), B (3, 2, 32), C (4, 32)"),
        (OperandError, {"metadata": WORDS}, f"{F16} takes no metadata"),
        (OperandError, {"scale_a": WORDS}, f"{F16} takes no scale_a"),
        (OperandError, {"selector": 1}, f"{F16} is dense: it takes no selector; got 1"),
        (OperandError, {"byte_id_b": 2}, f"{F16} is not block-scaled: it takes no byte-id and thread-id; ~"),
        (OperandError, {"instruction": SP, "a": A[:2]}, f"{SP} needs metadata"),
        (OperandError, {**SCALED, "scale_a": WORDS}, f"{MX} needs scale_b"),
        (OperandError, {"engine": "cuda"}, "engine is 'cuda'; expected 'auto', 'numpy' or 'native'"),
        (OperandError, {"threads": 0}, "threads is 0; expected a positive integer or None"),
        (OperandError, {"threads": 1.0}, "threads is 1.0; expected a positive integer or None"),
    ],
)  # fmt: skip
def test_what_cannot_be_executed(error: type[WarpmmaError], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(error, match=exactly(message)):
        execute(**{"instruction": F16, "a": A, "b": B, "c": C, "target": "sm_80", **changes})


DTYPES = st.sampled_from(["u4", "u8", "i4", "f4", "f2", "u1", "?", "O", "c8", "U3", "M8[s]", "V4", ">u4"])
SIZES = st.sampled_from([(), (32,), (31,), (1, 32), (2, 32), (4, 32), (4, 8, 4), (16, 16), (16, 8), (0, 32)])
LEADING = st.sampled_from([(), (1,), (2,), (3, 1)])
ANYTHING: st.SearchStrategy[Any] = st.one_of(
    st.builds(lambda lead, size, dtype: np.zeros((*lead, *size), dtype), LEADING, SIZES, DTYPES),
    st.builds(lambda lead, size: np.full((*lead, *size), 0x44444444, np.uint32), LEADING, SIZES),
    st.sampled_from([None, "A", 1.0, 2**70, b"", [], {}, float, A, B, C, np.float32(0)]),
)
RIGHT: list[dict[str, Any]] = [
    {"instruction": F16, "a": A, "b": B, "c": C, "target": "sm_90"},
    {"instruction": SP, "a": A[:2], "b": B, "c": C, "metadata": WORDS, "target": "sm_90"},
    {"instruction": MX, "a": A, "b": B, "c": C, "scale_a": WORDS, "scale_b": WORDS, "target": "sm_120a"},
]
WRONG: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("a", "b", "c", "metadata", "scale_a", "scale_b"), ANYTHING | st.just(A[:0])),
    **dict.fromkeys(("selector", "byte_id_a", "thread_id_a", "byte_id_b", "thread_id_b"), st.integers(-1, 4)),
    "instruction": st.sampled_from([F16, F64, S4, B1, QUAD, SP, MX, "mma", "", None, 3]),
    "target": st.sampled_from(["sm_70", "sm_90", "sm_120a", "sm_121", "", None, 90]),
    "undefined": st.sampled_from(["hardware", "", None]),
    "engine": st.sampled_from(["auto", "numpy", "native", "", None]),
    "threads": st.sampled_from([1, 2, 0, -1, 0.5, "1"]),
}


@given(right=st.sampled_from(RIGHT), wrong=st.fixed_dictionaries({}, optional=WRONG))
@settings(deadline=None, max_examples=500)
@example(right=RIGHT[1], wrong={"c": A[:0], "threads": 2})
def test_nothing_but_our_own_errors_comes_out(right: dict[str, Any], wrong: dict[str, Any]) -> None:
    try:
        d = execute(**{**right, **wrong})
    except WarpmmaError as error:
        assert wrong and str(error)
    else:
        assert d.shape[-1] == LANES


@given(st.sampled_from([F16, F64, S4, B1, QUAD, SP, MX]), st.sampled_from("ABCDE"), ANYTHING)
@settings(deadline=None, max_examples=400)
def test_load_and_store_raise_our_own_errors(mnemonic: str, operand: Operand, x: Any) -> None:
    for call in (load, store):
        try:
            assert call(mnemonic, operand, x).ndim >= 2
        except WarpmmaError as error:
            assert str(error)


@pytest.mark.parametrize("changes", [{"target": ["sm_90"]}, {"a": A.reshape(*[1] * 40, 4, 32)}])
def test_odd_arguments(changes: dict[str, Any]) -> None:
    with pytest.raises(WarpmmaError):
        execute(**{**RIGHT[0], **changes})
