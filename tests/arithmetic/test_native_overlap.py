"""What the engine writes shares no memory with what it reads: it is refused before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from warpmma.arithmetic import product, recipe
from warpmma.arithmetic.dispatch import native
from warpmma.errors import OperandError
from warpmma.isa import parse

pytestmark = pytest.mark.skipif(not native.levels(), reason="warpmma was installed without its native engine")
_native: Any = native._native

Array = npt.NDArray[Any]
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SCALED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
TARGETS = {DENSE: "sm_90", SPARSE: "sm_90", SCALED: "sm_120a"}
SUMS = {"sums": np.zeros((2, 3, 16, 8), np.uint32)}


def operands(mnemonic: str) -> dict[str, Array]:
    i = parse(mnemonic)
    k, code = i.k // (2 if i.sparse else 1), i.format("A").code_dtype
    x: dict[str, Array] = {
        "A": np.zeros((3, 16, k), code), "B": np.zeros((3, i.k, 8), code),
        "C": np.zeros((3, 16, 8), np.uint32), "D": np.ones((3, 16, 8), np.uint32),
    }  # fmt: skip
    if i.sparse:
        x["chosen"] = np.zeros((3, 16, k), np.uint8)
    if i.block_scale:
        x |= {"scale_a": np.zeros((3, 16, 1), np.uint8), "scale_b": np.zeros((3, 1, 8), np.uint8)}
    return x


def run(mnemonic: str, x: dict[str, Array]) -> None:
    i = parse(mnemonic)
    k = i.k // (2 if i.sparse else 1)
    plan = native._plan(recipe(i, TARGETS[mnemonic]), k, i.sparse, i.scales_per_row)
    _native.execute(
        plan, native.levels()[0].number, x["A"], x["B"], x["C"], x["D"], False, 16, 8, k,
        *(x.get(name) for name in ("chosen", "scale_a", "scale_b")), (), x.get("sums"),
    )  # fmt: skip


def placed(x: Array, memory: Array, at: int) -> Array:
    """Put an array into a piece of memory, from a byte on."""
    out = np.frombuffer(memory.data, x.dtype, x.size, at).reshape(x.shape)
    out[...] = x
    return out


CASES = [(mnemonic, name) for mnemonic in TARGETS for name in operands(mnemonic) if name != "D"]


@pytest.mark.parametrize(("mnemonic", "name"), CASES)
@pytest.mark.parametrize("end", ["first", "last"])
def test_d_that_shares_a_byte_with_an_operand(mnemonic: str, name: str, end: str) -> None:
    x, memory = operands(mnemonic), np.zeros(1 << 14, np.uint8)
    least = x["D"].itemsize  # what both divide
    x["D"] = placed(x["D"], memory, 4096)
    at = 4096 + x["D"].nbytes if end == "last" else 4096 - -(-x[name].nbytes // least) * least
    x[name] = placed(x[name], memory, at)
    run(mnemonic, x)  # side by side
    x[name] = placed(x[name], memory, at + (-least if end == "last" else least))
    x["D"][...] = 1
    with pytest.raises(ValueError, match=f"^D is written and shares memory with {name}$"):
        run(mnemonic, x)
    if name != "C":
        assert (x["D"] == 1).sum() > x["D"].size - 8  # nothing was written; what lies there is the operand's


@pytest.mark.parametrize("name", ["A", "B", "C", "D"])
def test_sums_that_share_memory(name: str) -> None:
    x, memory = operands(DENSE), np.zeros(1 << 14, np.uint8)
    x["sums"] = placed(SUMS["sums"], memory, 0)
    x[name] = placed(x[name], memory, SUMS["sums"].nbytes)
    run(DENSE, x)
    x[name] = placed(x[name], memory, SUMS["sums"].nbytes - 4)
    written, other = ("D", "sums") if name == "D" else ("sums", name)
    with pytest.raises(ValueError, match=f"^{written} is written and shares memory with {other}$"):
        run(DENSE, x)


def test_operands_may_share_memory() -> None:
    x = operands(DENSE)
    x["B"] = x["A"].swapaxes(1, 2)[:, :, :8]
    x["C"] = np.broadcast_to(x["C"][:, :1], x["C"].shape)
    run(DENSE, x)


def test_what_lies_between_rows_counts() -> None:
    """D among the rows of an operand shares no byte with it; it is refused all the same, and said so."""
    x, memory = operands(DENSE), np.zeros((3, 512), np.uint32)
    x["C"] = memory[:, :128].reshape(3, 16, 8)
    x["D"] = memory.reshape(-1)[128:512].reshape(3, 16, 8)
    assert np.may_share_memory(x["C"], x["D"]) and not np.shares_memory(x["C"], x["D"])
    with pytest.raises(ValueError, match="D is written and shares memory with C"):
        run(DENSE, x)


def test_nothing_shares_memory_with_an_empty_array() -> None:
    x = operands(DENSE)
    whole = np.zeros((3, 16, 8), np.uint32)
    x = {name: array[:0] for name, array in x.items()} | {"C": whole[:0], "D": whole[:0]}
    run(DENSE, x)


def test_strides_that_run_backwards() -> None:
    x, memory = operands(DENSE), np.zeros((4, 16, 8), np.uint32)
    x["C"], x["D"] = memory[3:0:-1], np.ones((3, 16, 8), np.uint32)
    run(DENSE, x)
    x["D"] = memory[:3]
    with pytest.raises(ValueError, match="D is written and shares memory with C"):
        run(DENSE, x)


def test_sums_of_a_product_that_are_its_c() -> None:
    """The one array that a caller hands over to be written."""
    sums = np.zeros((2, 1, 16, 8), np.uint32)
    a, b = np.zeros((1, 16, 16), np.uint16), np.zeros((1, 16, 8), np.uint16)
    for engine in ("numpy", "native"):
        with pytest.raises(OperandError, match="product: sums are written and share memory with C"):
            product(recipe(DENSE, "sm_90"), a, b, sums[0], k=16, engine=engine, ends=[(1, True)], sums=sums)
