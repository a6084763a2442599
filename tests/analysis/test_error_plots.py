"""Pictures of errors hold the numbers of the record; they are looked at by eyes besides."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import warpmma as wm
from warpmma.analysis import ErrorReport

SVG = "{http://www.w3.org/2000/svg}"
RNG = np.random.default_rng(0)
A, B = (RNG.standard_normal(shape).astype(np.float16) for shape in ((32, 256), (256, 16)))


def report(**more: Any) -> ErrorReport:
    return wm.error(A, B, **{"targets": ["sm_80", "sm_89", "sm_90"], **more})


def lines(picture: str) -> dict[str, list[int]]:
    found = ElementTree.fromstring(picture).iter(f"{SVG}g")
    return {x.attrib["data-product"]: [int(n) for n in x.attrib["data-counts"].split()] for x in found}


def test_every_line_holds_its_histogram_and_products_of_the_same_bits_share_one() -> None:
    record = report()
    assert lines(record.svg()) == {
        "sm_80, sm_89": list(record["sm_80"].bins), "sm_90": list(record["sm_90"].bins)
    }  # fmt: skip
    assert "the same bits: sm_80, sm_89" in record.text()


def test_marks_say_what_they_mean() -> None:
    record = report(targets=["sm_90"])
    [group] = ElementTree.fromstring(record.svg()).iter(f"{SVG}g")
    notes = [x.text for x in group.iter(f"{SVG}title")]
    bins = record.products[0].bins
    assert notes[0] == f"sm_90: {'0' if not bins[0] else f'{100 * bins[0] / 512:.1f}%'} have no error"
    assert notes[2] == f"sm_90: {100 * sum(bins[:3]) / 512:.1f}% have an error up to 1 ulps"
    assert notes[-1] is not None
    assert notes[-1].startswith("sm_90: 100% ")


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_themes_and_ends(theme: str) -> None:
    many = {f"way {i}": {"promote_every": 16 * i} for i in range(1, 10)}
    empty = wm.error(A[:0], B, target="sm_90")
    for each in (report(targets=None, target="sm_90", ways=many), empty):
        ElementTree.fromstring(each.svg(theme=theme))
    with pytest.raises(wm.OperandError, match="theme is 'grey'"):
        empty.svg(theme="grey")


def test_notebooks_show_picture_and_tables() -> None:
    record = report()
    shown = record._repr_html_()
    assert "Errors of D, 32 x 16" in shown
    assert "<svg" in shown
    assert "How each was computed" in shown
    assert "Recommended: rtol=" in record.advise()._repr_html_()
    for html in (shown, record.advise()._repr_html_()):
        ElementTree.fromstring(html)


def test_the_page_has_the_picture_of_its_example() -> None:
    page = Path(__file__).parents[2] / "docs" / "error.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec("import numpy as np, warpmma as wm\nrng = np.random.default_rng(0)", names)
    names["rng"].standard_normal(64 * 512 + 512 * 32)
    exec(next(block for block in blocks if "ways=" in block).replace("print(report)", ""), names)
    assert (page.parent / "error" / "fp8.svg").read_text() == names["report"].svg()
