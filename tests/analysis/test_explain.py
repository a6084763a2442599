"""An explanation ends in the bits that `mma` and `matmul` give, and its losses are the error, exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from messages import exactly

import warpmma as wm
from warpmma import sparsity
from warpmma.analysis import Explanation
from warpmma.errors import OperandError
from warpmma.formats import FORMATS, FloatFormat
from warpmma.isa import Instruction, instructions
from warpmma.layouts import Operand

pytestmark = pytest.mark.quick

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"

HALF = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
QUAD = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
WGMMA = "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
Rng = np.random.Generator


def matrix(record: Any, operand: str, shape: tuple[int, ...], rng: Rng) -> Any:
    """Draw a matrix: of numbers about 1, or of any integers."""
    fmt = record.format(operand)
    if isinstance(fmt, FloatFormat):
        return fmt.array(fmt.encode(rng.standard_normal(shape) * np.exp2(rng.integers(-8, 2, shape))))
    return fmt.array(rng.integers(0, fmt.mask + 1, shape, dtype=np.uint64).astype(fmt.code_dtype))


def warp(record: Instruction, rng: Rng) -> tuple[list[Any], dict[str, Any]]:
    """Draw matrices of one instruction, metadata and scales."""
    operands = [matrix(record, name, record.layout(name).shape, rng) for name in ("A", "B", "C")]
    words: dict[str, Any] = {}
    if record.block_scale:
        for name, shape in (("scale_a", (record.m, record.scales_per_row)), ("scale_b", (record.scales_per_row, 8))):
            words[name] = rng.integers(0x30, 0x48, shape).astype(np.uint8)
    if record.sparse:
        dense = sparsity.prune(matrix(record, "A", (record.m, record.k), rng), record)
        operands[0], indices = sparsity.compress(dense, record)
        words["metadata"] = sparsity.pack_metadata(indices, record)
    return operands, words


def check(told: Explanation, d: Any) -> None:
    """Check what is true of every explanation."""
    fmt = FORMATS[told.format]
    assert told.result == int(fmt.codes(d))
    assert told.steps[-1].result == told.result
    if told.error is not None:
        assert told.lost is None or told.lost == -told.error
        assert told.bound is None or abs(told.error) <= told.bound


@pytest.mark.parametrize("record", instructions(), ids=str)
def test_every_instruction(record: Instruction) -> None:
    rng = np.random.default_rng(len(str(record)))
    operands, words = warp(record, rng)
    target = record.targets[int(rng.integers(len(record.targets)))]
    d = wm.mma(record, *operands, target=target, **words)
    place = tuple(int(rng.integers(n)) for n in d.shape)
    told = wm.explain(record, *operands, *place[-2:], target=target, matrix=place[0] if d.ndim == 3 else 0, **words)
    check(told, d[place])
    assert (told.row, told.column, told.target, told.instruction) == (*place[-2:], target, record)


def test_dense_form_of_a_sparse_a_and_its_metadata_are_the_same() -> None:
    rng = np.random.default_rng(2)
    (stored, b, c), words = warp(wm.parse(SPARSE), rng)
    indices = sparsity.unpack_metadata(words["metadata"], SPARSE)
    dense = sparsity.expand(stored, indices, SPARSE)
    one, other = (wm.explain(SPARSE, a, b, c, 3, 5, target="sm_90", **w) for a, w in ((stored, words), (dense, {})))
    assert one == other
    assert one.positions == tuple(sparsity.positions(words["metadata"], SPARSE)[3])
    whole = wm.explain(SPARSE, stored, b, c, 3, 5, target="sm_90", indices=indices)
    assert (whole.positions, whole.result, whole.links) == (one.positions, one.result, one.links)


@pytest.mark.parametrize(
    ("instruction", "target", "more"),
    [
        (HALF, "sm_90", {}),
        (None, "sm_80", {}),
        (HALF, "sm_80", {"split_k": 3}),
        (HALF, "sm_80", {"split_k": [64, 48, 60], "promote_every": 32, "epilogue": "bf16"}),
        (HALF, "sm_80", {"promote_every": 48, "epilogue": "e4m3"}),
        (WGMMA, "sm_90a", {"promote_every": 64}),
        (QUAD, "sm_70", {"split_k": 2}),
    ],
)
def test_whole_products(instruction: str | None, target: str, more: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((5, 172), (172, 4)))
    c = rng.standard_normal((5, 4)).astype(np.float32)
    d = wm.matmul(a, b, c, instruction=instruction, target=target, **more)
    for row, column in ((0, 0), (4, 3), (2, 1)):
        told = wm.explain(instruction, a, b, c, row, column, target=target, **more)
        check(told, d[row, column])
        assert told.exact == sum(
            (Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[row], b[:, column], strict=True)),
            Fraction(float(c[row, column])),
        )


def test_links_of_a_split_product() -> None:
    a, b = np.ones((1, 70), np.float16), np.ones((70, 1), np.float16)
    told = wm.explain(HALF, a, b, target="sm_90", split_k=[32, 38], promote_every=16, epilogue="f16")
    assert [(x.name.split(".")[0], x.k) for x in told.links] == [
        ("mma", range(16)), ("mma", range(16, 32)), ("promotion: sum + chain", range(0)),
        ("sum of a slice added to the others", range(0)),
        ("mma", range(32, 48)), ("mma", range(48, 64)), ("promotion: sum + chain", range(0)),
        ("mma", range(64, 80)), ("promotion: sum + chain", range(0)),
        ("sum of a slice added to the others", range(0)), ("epilogue: to f16", range(0)),
    ]  # fmt: skip
    assert (len(told.a), told.a[69:71]) == (80, (0x3C00, 0)) and told.value == 70


_SHAPES: tuple[tuple[tuple[int, int], Operand], ...] = ((3, 112), "A"), ((112, 5), "B")


def test_sparse_and_scaled_products() -> None:
    rng = np.random.default_rng(4)
    dense = sparsity.prune(rng.standard_normal((3, 76)).astype(np.float16), SPARSE)
    b = rng.standard_normal((76, 5)).astype(np.float16)
    d = wm.matmul(dense, b, instruction=SPARSE, target="sm_90")
    check(wm.explain(SPARSE, dense, b, None, 2, 4, target="sm_90"), d[2, 4])
    quantized: list[Any] = [wm.scaling.quantize(rng.standard_normal(shape).astype(np.float32), SCALED, operand)
                 for shape, operand in _SHAPES]  # fmt: skip
    d = wm.matmul(*quantized, instruction=SCALED, target="sm_120a", epilogue="bf16")
    left, right = quantized
    told = wm.explain(SCALED, left, right, None, 1, 3, target="sm_120a", epilogue="bf16")
    check(told, d[1, 3])
    assert [x.name for x in told.links[-2:]] == ["tensor scale", "epilogue: to bf16"]
    assert told.lost is not None and told.error != 0


def test_nothing_to_multiply() -> None:
    told = wm.explain(HALF, np.ones((2, 0), np.float16), np.ones((0, 2), np.float16), target="sm_90")
    assert not told.links and told.parting is None
    assert told.result == told.value == told.error == 0


def test_infinity() -> None:
    a = np.full((16, 16), np.inf, np.float16)
    told = wm.explain(HALF, a, np.ones((16, 8), np.float16), target="sm_90")
    assert (told.exact, told.value, told.error, told.lost, told.ulps, told.bound) == (None,) * 6


def test_overflow() -> None:
    a, b = np.full((16, 8), 2.0**100, np.float32), np.full((8, 8), 2.0**100, np.float32)
    told = wm.explain(TF32, a, b, target="sm_90")
    assert told.exact == 8 * Fraction(2) ** 200
    assert (told.value, told.error, told.lost, told.ulps, told.bound) == (None,) * 5


def test_ulps() -> None:
    a, b = np.zeros((16, 16), np.float16), np.ones((16, 8), np.float16)
    a[0, 0] = 1
    c = np.full((16, 8), 2.0**-24, np.float32)
    told = wm.explain(HALF, a, b, c, target="sm_90")
    assert (told.error, told.ulps) == (Fraction(-1, 2**24), Fraction(1, 2))
    zero = wm.explain(HALF, np.zeros_like(a), b, target="sm_90")
    assert zero.error == zero.ulps == 0


def test_bits_that_tf32_ignores_are_told() -> None:
    a, b = np.full((16, 8), 1 + 2.0**-12, np.float32), np.ones((8, 8), np.float32)
    told = wm.explain(TF32, a, b, target="sm_90")
    assert told.value == 8 and told.error == 0 and told.ignored == 8 * Fraction(1, 2**12)
    assert wm.explain(HALF, a.astype(np.float16)[:, :4], b.astype(np.float16)[:4], target="sm_90").ignored == 0


def test_operands_come_first_or_the_instruction_does() -> None:
    a, b = np.full((16, 16), 0.1, np.float16), np.full((16, 8), 3, np.float16)
    c = np.ones((16, 8), np.float32)
    told = wm.explain(F16, a, b, c, 3, 5, target="sm_90")
    assert told == wm.explain(a, b, c, 3, 5, instruction=F16, target="sm_90")
    assert told == wm.explain(instruction=F16, a=a, b=b, c=c, row=3, column=5, target="sm_90")
    assert told == wm.explain(F16, a=a, b=b, c=c, row=3, column=5, target="sm_90")
    assert (
        told == wm.explain(a, b, c, row=3, column=5, target="sm_90") == wm.explain(None, a, b, c, 3, 5, target="sm_90")
    )
    with pytest.raises(OperandError, match="explain got two instructions"):
        wm.explain(F16, a, b, instruction=F16, target="sm_90")


def test_three_targets_and_more() -> None:
    a = np.zeros((1, 16), np.float16)
    a[0, [0, 7, 8]] = 1, 2.0**-24, 2.0**-24
    b = np.ones((16, 1), np.float16)
    told = wm.explain(a, b, targets=["sm_90", "sm_80", "sm_75", "sm_100"])
    assert [x.target for x in (told, *told.others)] == ["sm_90", "sm_80", "sm_75", "sm_100"]
    for other, parting in zip(told.others, told.partings, strict=True):
        pair = wm.explain(a, b, target="sm_90", against=other.target)
        assert (pair.others, pair.partings) == ((other,), (parting,)) and (pair.against, pair.parting) == (
            other,
            parting,
        )
    assert told.partings[-1] is None and told.parting == told.partings[0]
    assert told == wm.explain(a, b, target="sm_90", against=("sm_80", "sm_75", "sm_100"))
    text = told.text()
    assert all(f"sm_90 against {x}" in text for x in ("sm_80", "sm_75", "sm_100"))
    for picture in (told.svg(), told._repr_html_()):
        assert all(f"data-target='{x}'" in picture for x in ("sm_90", "sm_80", "sm_75", "sm_100"))
        assert all(
            reason in picture.replace("\n", " ") for reason in ("sm_80:", "sm_75:", "sm_100: every step is the same")
        )
    alone = wm.explain(a, b, targets=["sm_90"])
    assert (alone.others, alone.against, alone.parting) == ((), None, None)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "explain takes target='sm_90', with against= or without, or targets=['sm_80', 'sm_90']"),
        ({"target": "sm_90", "targets": ["sm_80"]}, "explain takes target=~"),
        ({"targets": ["sm_80"], "against": "sm_90"}, "explain takes target=~"),
        ({"targets": []}, "targets is []; expected names of targets such as ['sm_80', 'sm_90']"),
        ({"targets": 3}, "targets is 3; expected names of targets ~"),
        ({"target": "sm_90", "against": [3]}, "against is [3]; expected names of targets ~"),
        ({"targets": ["sm_90", "sm_80", "sm_90"]}, "targets is ['sm_90', 'sm_80', 'sm_90']; 'sm_90' is named twice"),
        ({"targets": ["sm_90", "sm_99"]}, "unknown target 'sm_99'; ~"),
    ],
)  # fmt: skip
def test_targets_that_cannot_be(more: dict[str, Any], message: str) -> None:
    with pytest.raises(wm.WarpmmaError, match=exactly(message)):
        wm.explain(np.ones((1, 16), np.float16), np.ones((16, 1), np.float16), **more)
