"""Views of errors: text, JSON, comma-separated values."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.analysis import ErrorReport

LONG = {f"a way with a name of many words, number {i}": {"split_k": i + 1} for i in range(3)}


def report(**more: Any) -> ErrorReport:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((32, 256), (256, 16)))
    return wm.error(a, b, **{"targets": ["sm_80", "sm_90"], **more})


def test_text() -> None:
    text = report().text()
    lines = text.splitlines()
    assert lines[0] == "Errors of D, 32 x 16, f16 x f16, k = 256, against the exact result"
    assert [line.split()[0] for line in lines[3:5]] == ["sm_80", "sm_90"]
    assert "  sm_90: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 on sm_90; measured" in lines
    assert max(map(len, lines)) < 120
    assert str(report()) == text


def test_long_names_stand_in_lines_of_their_own() -> None:
    long = report(targets=None, target="sm_90", ways=LONG)
    lines = long.text().splitlines()
    assert max(map(len, lines)) < 120
    assert next(iter(LONG)) in lines


def test_what_is_no_number_is_counted() -> None:
    a = np.array([[np.inf, 0], [60000, 60000]], np.float16)
    half = "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16"
    text = wm.error(a, np.array([[1, 0], [1, 2]], np.float16), instruction=half, target="sm_80").text()
    assert "sm_80: 1 results are NaN" in text
    assert "sm_80: 3 results are infinite" in text
    assert "sm_80: 2 of those are finite, exactly" in text
    assert "sm_80: 2 exact results are NaN or infinite, for an operand is" in text
    assert "came out otherwise" not in text


def test_json_holds_what_the_record_does() -> None:
    record = report()
    for told, product in zip(json.loads(record.json())["products"], record.products, strict=True):
        assert told["name"] == product.name
        assert told["mean_ulps"] == product.mean_ulps
        assert product.largest is not None
        assert Fraction(told["largest"]["error"]) == product.largest.error
        assert Fraction(told["largest"]["ulps"]) == product.largest.ulps
        assert tuple(told["largest"]["index"]) == product.largest.index
        assert [x["count"] for x in told["histogram"]] == list(product.bins)
        assert told["choice"]["instruction"] == str(product.choice.instruction)


def test_csv_holds_the_histograms() -> None:
    record = report()
    head, *rows = csv.reader(record.csv().splitlines())
    assert head == ["above", "to", "sm_80", "sm_90"]
    assert [int(row[3]) for row in rows] == list(record["sm_90"].bins)
    assert rows[1][:2] == ["0.0", "0.5"]


@pytest.mark.parametrize("kind", ["text", "json", "csv"])
def test_nothing_at_all_is_shown_too(kind: str) -> None:
    empty = wm.error(np.zeros((0, 8), np.float16), np.zeros((8, 4), np.float16), target="sm_90")
    assert getattr(empty, kind)()
    assert empty.products[0].largest is None
