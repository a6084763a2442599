"""Every check runs once: public functions parse mnemonics and coerce arrays, and nothing below does so again."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma import sparsity
from warpmma._arrays import as_array
from warpmma.arithmetic import dot_chain
from warpmma.arithmetic.arrays import check_operands
from warpmma.execution import mma_call, running
from warpmma.isa import parse_any
from warpmma.isa.names.mnemonics import parse_mma
from warpmma.products import choice, operands, tiling

DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SPARSE_TF32 = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32"
SCALED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
RNG = np.random.default_rng(0)


class Counted:
    """Calls of a function from anywhere in the package, but from rooms that are named."""

    def __init__(self, patch: pytest.MonkeyPatch, function: Callable[..., Any], *but: str) -> None:
        self.names: list[str] = []
        for module in [m for name, m in sys.modules.items() if name.startswith("warpmma") and not name.startswith(but)]:
            for name, x in list(vars(module).items()):
                if x is function:
                    patch.setattr(module, name, self._of(function))

    def _of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(x: Any, *rest: Any, **more: Any) -> Any:
            self.names.append(str(rest[0]) if rest else str(x))
            return function(x, *rest, **more)

        return counted


def registers(i: str, *operands: str) -> list[Any]:
    layouts = (wm.parse(i).layout(x) for x in operands)  # type: ignore[arg-type]
    return [np.zeros((layout.registers, 32), layout.packing.dtype) for layout in layouts]


def executed(i: str, target: str = "sm_90", **more: Any) -> Callable[[], Any]:
    given = registers(i, "A", "B", "C")
    return lambda: wm.execute(i, *given, target=target, **more)


def metadata(i: str) -> Any:
    record = wm.parse(i)
    groups = record.k // sparsity.pattern(i).width
    return sparsity.pack_metadata(np.tile([0, 1], (record.m, groups, 1)), i)


def matrices(i: str, *shapes: tuple[int, int]) -> list[Any]:
    return [RNG.standard_normal(shape).astype(wm.parse(i).format("A").dtype) for shape in shapes]


def sparse_matmul(i: str) -> Callable[[], Any]:
    a, b = matrices(i, (48, 64), (64, 24))
    a = sparsity.prune(a, i)
    return lambda: wm.matmul(a, b, instruction=i, target="sm_90")


def stored_matmul(i: str) -> Callable[[], Any]:
    a, b = matrices(i, (48, 64), (64, 24))
    stored, indices = sparsity.compress(sparsity.prune(a, i), i)
    return lambda: wm.matmul(stored, b, instruction=i, indices=indices, target="sm_90")


def sparse_mma(i: str) -> Callable[[], Any]:
    record = wm.parse(i)
    a, b = matrices(i, (record.m, record.k), (record.k, record.n))
    a = sparsity.prune(a, i)
    return lambda: wm.mma(i, a, b, target="sm_90")


SCALES = np.full(32, 0x7F7F7F7F, np.uint32)
CALLS = {
    "execute": (executed(DENSE), {"registers of A": 1, "registers of B": 1, "registers of C": 1}),
    "execute, sparse": (
        executed(SPARSE, metadata=metadata(SPARSE)),
        {"registers of A": 1, "registers of B": 1, "registers of C": 1, "metadata": 1},
    ),
    "execute, tf32": (
        executed(SPARSE_TF32, metadata=metadata(SPARSE_TF32)),
        {"registers of A": 1, "registers of B": 1, "registers of C": 1, "metadata": 1},
    ),
    "execute, scaled": (
        executed(SCALED, "sm_120a", scale_a=SCALES, scale_b=SCALES),
        {"registers of A": 1, "registers of B": 1, "registers of C": 1, "scale_a": 1, "scale_b": 1},
    ),
    "mma, sparse": (sparse_mma(SPARSE), {"A": 1, "B": 1, "metadata": 1}),
    "matmul, sparse": (sparse_matmul(SPARSE), {"A": 1, "B": 1}),
    "matmul, tf32": (sparse_matmul(SPARSE_TF32), {"A": 1, "B": 1}),
    "matmul, stored": (stored_matmul(SPARSE), {"A": 1, "B": 1, "indices": 1}),
}
each_call = pytest.mark.parametrize(("call", "arrays"), CALLS.values(), ids=list(CALLS))


@each_call
def test_a_mnemonic_is_read_once(
    call: Callable[[], Any], arrays: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    call()  # tables that are made once read what they like
    read = Counted(monkeypatch, parse_mma)
    call()
    assert len(read.names) == 1


@each_call
def test_an_array_is_taken_in_once(
    call: Callable[[], Any], arrays: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Number formats and packings aside, which are called with arrays by everybody."""
    taken = Counted(monkeypatch, as_array, "warpmma.formats", "warpmma.registers")
    call()
    assert Counter(name.rpartition(": ")[2] for name in taken.names) == arrays


MATMULS = {name: call for name, (call, _) in CALLS.items() if name.startswith("matmul")}


def counts(patch: pytest.MonkeyPatch, call: Callable[[], Any], *functions: Callable[..., Any]) -> dict[str, int]:
    call()
    counted = {f.__name__: Counted(patch, f) for f in functions}
    call()
    return {name: len(found.names) for name, found in counted.items()}


@pytest.mark.parametrize("call", MATMULS.values(), ids=list(MATMULS))
def test_a_matrix_is_prepared_once_and_checked_once(call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    done = counts(monkeypatch, call, tiling.prepared, operands.codes_of_operands, choice.decide, check_operands)
    assert done == {"prepared": 1, "codes_of_operands": 1, "decide": 1, "check_operands": 0}


def test_slabs_of_a_long_k_are_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = matrices(DENSE, (1, 3 * tiling._SLAB), (3 * tiling._SLAB, 1))
    done = counts(monkeypatch, lambda: wm.matmul(a, b, target="sm_90"), dot_chain, check_operands)
    assert done == {"dot_chain": 3, "check_operands": 0}


def test_a_quantized_operand_is_taken_apart_once(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = RNG.standard_normal((16, 64)).astype(np.float32), RNG.standard_normal((64, 8)).astype(np.float32)
    x, y = wm.scaling.quantize(a, SCALED, "A"), wm.scaling.quantize(b, SCALED, "B")
    done = counts(monkeypatch, lambda: wm.matmul(x, y, instruction=SCALED, target="sm_120a"), operands._quantized)
    assert done == {"_quantized": 2}


def test_a_measured_product_is_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = matrices(DENSE, (16, 32), (32, 8))
    done = counts(monkeypatch, lambda: wm.error(a, b, target="sm_90"), tiling.prepared, choice.decide)
    assert done == {"prepared": 1, "decide": 1}


@pytest.mark.parametrize("i", [DENSE, SPARSE])
def test_explain_checks_as_mma_does_and_computes_nothing(i: str, monkeypatch: pytest.MonkeyPatch) -> None:
    record = wm.parse(i)
    a, b = matrices(i, (record.m, record.k), (record.k, record.n))
    a = sparsity.prune(a, i) if record.sparse else a

    def run(*_: Any) -> None:
        raise AssertionError("explain computed an instruction")

    monkeypatch.setattr(running.Execution, "run", run)
    with pytest.raises(AssertionError):
        wm.mma(i, a, b, target="sm_90")
    assert counts(monkeypatch, lambda: wm.explain(i, a, b, target="sm_90"), mma_call) == {"mma_call": 1}


def test_calls_from_anywhere_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Counted(monkeypatch, parse_any)
    wm.evidence(DENSE, target="sm_90")
    wm.evidence(DENSE, target="sm_90")
    assert len(read.names) >= 2
