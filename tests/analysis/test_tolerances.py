"""Advice on tolerances: wrong outputs are what their kernels give, and a tolerance is judged as NumPy does."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arrays import Array, same
from product_cases import F16, MX, NVF4, S8, SP, drawn, some_scales, typed

import warpmma as wm
from warpmma import sparsity as sp
from warpmma.analysis import Advice, ErrorReport, Judged, tolerances
from warpmma.analysis.advising import FAULTS, right_output
from warpmma.products import Product, prepare

RNG = np.random.default_rng(11)
A, B = (RNG.standard_normal(shape).astype(np.float16) for shape in ((40, 96), (96, 24)))
C = RNG.standard_normal((40, 24)).astype(np.float32)


def measured(**more: Any) -> ErrorReport:
    return wm.error(A, B, C, target="sm_90", **more)


def faulty(product: Product) -> dict[str, Array]:
    right = right_output(product)
    found = ((fault.name, fault.make(product, right)) for fault in FAULTS)
    return {name: values for name, values in found if values is not None}


def by_name(advice: Advice) -> dict[str, Judged]:
    return {x.name: x for x in advice.judged}


def test_wrong_outputs_are_what_such_kernels_give() -> None:
    """Each fault in a product of f16, made again from matrices."""

    def computed(a: Array, b: Array, c: Array = C, **more: Any) -> Array:
        d: Array = wm.matmul(a, b, c, target="sm_90", **more)
        return d.astype(np.float64)[None]

    right = computed(A, B)
    wrong = faulty(prepare(A, B, C, target="sm_90"))
    layout = wm.parse(F16).layout("A")
    swapped = A.copy()
    for row in range(0, 40, 16):
        for column in range(0, 96, 16):
            for register in range(4):
                for x, y in zip(layout.holds(0, register), layout.holds(1, register), strict=True):
                    if row + x.row < 40:
                        at, to = (row + x.row, column + x.column), (row + y.row, column + y.column)
                        swapped[at], swapped[to] = A[to], A[at]
    stale = A.copy()
    stale[:, 80:] = A[:, 64:80]
    narrow = [x.astype(ml_dtypes.bfloat16).astype(np.float16) for x in (A, B)]
    half = wm.matmul(A, B, C.astype(np.float16), instruction=F16.replace("f32", "f16"), target="sm_90")
    last_row = right.copy()
    last_row[:, -1] = 0
    stored = right.copy()
    stored[0, 0, 0:2], stored[0, 0, 2:4] = right[0, 0, 2:4], right[0, 0, 0:2]
    stored[0, 8, 0:2], stored[0, 8, 2:4] = right[0, 8, 2:4], right[0, 8, 0:2]
    expected = {
        "all zero": np.zeros_like(right), "last row zero": last_row, "lanes of D": stored,
        "lanes of A": computed(swapped, B), "order of B": computed(A, np.ascontiguousarray(B.reshape(24, 96).T)),
        "last k-step missing": computed(A[:, :80], B[:80]), "last k-step stale": computed(stale, B),
        "C missing": computed(A, B, np.zeros_like(C)), "f16 accumulator": half.astype(np.float64)[None],
        "bf16 operands": computed(*narrow),
    }  # fmt: skip
    assert list(wrong) == list(expected)
    for name, values in expected.items():
        same(wrong[name], values, err_msg=name)


def test_what_only_some_products_can_have() -> None:
    i: Any = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"
    a, b = (RNG.standard_normal(shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((64, 256), (256, 8)))
    wrong = faulty(prepare(a, b, instruction=i, target="sm_90a", promote_every=128))
    same(wrong["no promotion"][0], wm.matmul(a, b, instruction=i, target="sm_90a").astype(np.float64))
    assert {"C missing", "scales shifted", "metadata shifted", "bf16 operands"}.isdisjoint(wrong)
    assert "no promotion" not in faulty(prepare(a, b, instruction=i, target="sm_90a"))

    i = wm.parse(NVF4)
    codes = drawn(i, 20, 12, 128, RNG, rare=0)
    scales = some_scales(i, 20, 12, 128, RNG)
    wrong = faulty(prepare(*typed(i, *codes), instruction=i, target="sm_120a", **scales))
    more: Any = {"instruction": i, "target": "sm_120a"}
    ones = wm.matmul(
        *typed(i, *codes), **more, scale_a=np.full_like(scales["scale_a"], 0x38), scale_b=scales["scale_b"]
    )
    same(wrong["scales missing"][0], ones.astype(np.float64))
    rolled = wm.matmul(*typed(i, *codes), **more, scale_a=np.roll(scales["scale_a"], 1, 1), scale_b=scales["scale_b"])
    same(wrong["scales shifted"][0], rolled.astype(np.float64))

    i = wm.parse(SP)
    dense = sp.prune(RNG.standard_normal((32, 64)).astype(np.float16), i)
    stored, indices = sp.compress(dense, i)
    b = RNG.standard_normal((64, 8)).astype(np.float16)
    wrong = faulty(prepare(dense, b, instruction=i, target="sm_90"))
    moved = wm.matmul(stored, b, instruction=i, target="sm_90", indices=np.roll(indices, 1, 0))
    same(wrong["metadata shifted"][0], moved.astype(np.float64))


def test_a_tolerance_is_judged_as_numpy_judges_it() -> None:
    report = measured()
    [expected] = report.expected.values()
    wrong = faulty(prepare(A, B, C, target="sm_90"))
    for rtol, atol in ((0, 0), (1e-3, 1e-2), (1e-5, 30.0), (2.0, 0.0), (0.0, 100.0)):
        advice = report.advise(rtol, atol)
        assert [x.name for x in advice.judged] == ["right: sm_90", *wrong]
        for judged in advice.judged[1:]:
            output = wrong[judged.name][0]
            close = np.isclose(output, expected, rtol, atol)
            assert judged.outside == (~close).sum()
            assert judged.passes == np.allclose(output, expected, rtol, atol)
            if judged.below:
                assert not np.allclose(output, expected, rtol, judged.below * (1 - 1e-9))
                assert np.allclose(output, expected, rtol, judged.below * (1 + 1e-9))
        right = advice.judged[0]
        assert right.passes == np.allclose(report.products[0].result, expected, rtol, atol)
    assert report.advise(1e-3, 1e-4).good
    assert not report.advise(0, 0).good
    assert [x.name for x in report.advise(0, 0).rejected] == ["right: sm_90"]
    assert [x.name for x in report.advise(0, 1e9).missed] == list(wrong)
    assert report.advise().good is None


@pytest.mark.parametrize("mnemonic", [F16, MX, S8])
def test_what_is_recommended_lets_right_outputs_pass_and_finds_faults(mnemonic: str) -> None:
    i = wm.parse(mnemonic)
    m, n, k = 33, 17, 3 * i.k
    operands = typed(i, *drawn(i, m, n, k, RNG, rare=0))
    scales = some_scales(i, m, n, k, RNG) if i.block_scale else {}
    report = wm.error(*operands, instruction=i, target=i.targets[0], **scales)
    advice = report.advise()
    best = advice.recommended
    assert not best.missed
    assert best.reach > 1
    again = report.advise(best.rtol, best.atol)
    assert again.good
    assert all((x.reach or 0) > 1 for x in again.judged if not x.right and not x.hidden)
    if mnemonic == S8:
        assert (best.rtol, best.atol) == (0, 0)


def test_what_is_recommended_lets_pass_what_is_within_the_bound() -> None:
    report = measured()
    assert report.advise().recommended.basis == "bound"
    assert wm.error(A, B, C, target="sm_90", bound=False).advise().recommended.basis == "measured"
    best = report.advise().recommended
    [expected], [product] = report.expected.values(), report.products
    assert (product.bounds <= best.atol + best.rtol * np.abs(expected)).all()
    assert "whatever stays within the proved bound" in report.advise().text()


def test_right_outputs_of_all_targets_pass_what_is_recommended() -> None:
    report = wm.error(A, B, C, targets=["sm_75", "sm_90"])
    best = report.advise(name="sm_90").recommended
    judged = by_name(report.advise(best.rtol, best.atol, name="sm_90"))
    assert judged["right: sm_75"].passes
    assert judged["right: sm_90"].passes


def test_small_outputs_pass_an_atol_and_it_is_said() -> None:
    tiny = A * np.float16(2**-10)
    report = wm.error(tiny, B * np.float16(2**-4), target="sm_90")
    advice = report.advise(rtol=1e-3, atol=0.01)
    zero = by_name(advice)["all zero"]
    assert zero.passes
    assert zero.below is not None
    assert zero.below < 0.01
    text = advice.text()
    assert "lets these wrong outputs pass: all zero, last row zero" in text
    assert f"An output of zeros passes since the largest that is expected is {advice.largest:.3g}" in text
    assert advice.recommended.atol < zero.below
    assert "Recommended: rtol=" in text


def test_sums_that_vanish_hide_zeros_from_every_tolerance() -> None:
    report = wm.error(np.concatenate([A, -A], axis=1), np.concatenate([B, B]), target="sm_90")
    assert "all zero" in report.advise().recommended.missed
    text = report.advise(1e-3, 1e-3).text()
    assert "Not even an output of zeros is told from a right one" in text
    assert "An output of zeros passes whatever atol is, since zeros are what is expected" in text


def test_inputs_that_show_nothing_are_told() -> None:
    ones = np.ones((16, 16), np.float16)
    advice = wm.error(ones, ones, target="sm_90").advise(1e-3, 1e-5)
    assert by_name(advice)["order of B"].hidden
    assert (
        "These inputs do not show at all, whatever the tolerance: lanes of D, lanes of A, order of B" in advice.text()
    )
    assert advice.good


def test_what_is_no_number_is_left_out() -> None:
    a = A.copy()
    a[3, 5] = np.inf
    advice = wm.error(a, B, target="sm_90").advise(1e-3, 1e-2)
    assert {x.elements for x in advice.judged} == {39 * 24}
    json.loads(advice.json(), parse_constant=pytest.fail)


def test_nothing_at_all_is_no_good_tolerance() -> None:
    for a, b in ((A[:0], B), (A * np.float16(np.nan), B), (A[None, :0][:0], B)):
        advice = wm.error(a, b, target="sm_90").advise(1e-3, 1e-3)
        assert advice.good is False
        assert "Nothing was compared: there is no element whose exact result is finite." in advice.text()


@pytest.mark.parametrize("size", [1e-320, 1e-300, 0.1, 0.1 + 1e-12, 123456.0, 2.0**100])
def test_tolerances_are_rounded_up_to_two_digits(size: float) -> None:
    rounded = tolerances._up(size)
    assert size <= rounded <= size * 1.1
    assert float(f"{rounded:.1e}") == rounded


@pytest.mark.parametrize("asked", [(), (1e-2, 1e-3), (0, 1e9), (0, 0)])
def test_text_is_narrow(asked: tuple[float, ...]) -> None:
    advice = wm.error(A, B, C, target="sm_90", ways={"a name that is rather long, for a column": {}}).advise(*asked)
    assert max(map(len, advice.text().splitlines())) < 120
    assert str(advice) == advice.text()


def test_json_holds_what_the_record_does() -> None:
    advice = measured().advise(1e-3, 1e-2)
    told = json.loads(advice.json())
    assert [x["name"] for x in told["judged"]] == [x.name for x in advice.judged]
    assert [x["passes"] for x in told["judged"]] == [x.passes for x in advice.judged]
    assert told["recommended"]["atol"] == advice.recommended.atol
    lost = replace(advice, recommended=replace(advice.recommended, atol=float("inf")))
    assert json.loads(lost.json(), parse_constant=pytest.fail)["recommended"]["atol"] == "inf"
    assert "No tolerance can be recommended" in lost.text()


@pytest.mark.parametrize(("rtol", "atol", "says"), [
    (-1, 0, "rtol is -1; expected a number of at least 0"),
    (1e-3, "x", "atol is 'x'; expected a number"),
    (float("nan"), 0, "rtol is nan"),
    (True, 0, "rtol is True"),
    (1e-3, None, "rtol is given without atol; expected both, such as"),
])  # fmt: skip
def test_wrong_tolerances(rtol: Any, atol: Any, says: str) -> None:
    with pytest.raises(wm.OperandError, match=says):
        measured().advise(rtol, atol)


def test_the_worst_element_is_explained() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((2, 1, 16, 64)).astype(np.float16), rng.standard_normal((3, 64, 8)).astype(np.float16)
    report = wm.error(a, b, np.float32(rng.standard_normal(8)), target="sm_90", ways={"x": {}, "y": {"split_k": 2}})
    for name in ("x", "y"):
        largest, told = report[name].largest, report.worst(name)
        assert largest is not None
        assert (told.row, told.column) == largest.index[2:]
        assert (told.result, told.exact, told.error) == (largest.result, largest.exact, largest.error)
    assert report.worst("x", against="sm_80").against is not None
    with pytest.raises(wm.UnknownNameError, match="no product 'z'"):
        report.worst("z")
    empty = wm.error(np.zeros((0, 16), np.float16), np.zeros((16, 8), np.float16), target="sm_90")
    with pytest.raises(wm.OperandError, match="no element whose result and exact result are finite"):
        empty.worst()
