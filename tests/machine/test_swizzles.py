"""Swizzles as records: what they take, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpmma.errors import OperandError
from warpmma.kernel import Site, Swizzle, Threads, launch


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_integers_of_every_width(dtype: Any) -> None:
    swizzled = Swizzle(3, 4, 3)(np.array([0x080, 0x100, 0x190], dtype))
    assert swizzled.dtype == dtype and swizzled.tolist() == [144, 288, 416]


def test_numbers_and_fields_of_numpy() -> None:
    assert Swizzle(3, 4, 3)(0x190) == 416
    fields: Any = (np.int8(7), np.int8(4), np.int8(3))
    assert Swizzle(*fields).mask == 0x7F0


@pytest.mark.parametrize(
    ("address", "came"),
    [
        ("0x80", "str"), ([0x80], "list"), (None, "NoneType"), (1.5, "float"), (np.zeros(3), "an array of float64"),
        (np.zeros(3, "m8[s]"), "an array of timedelta64[s]"),
    ],
)  # fmt: skip
def test_what_is_no_address(address: Any, came: str) -> None:
    with pytest.raises(OperandError) as caught:
        Swizzle(3, 4, 3)(address)
    expected = f"an address is {came}; expected integers that hold 10 bits, or a register of a kernel"
    assert str(caught.value) == expected


def test_integers_too_narrow() -> None:
    with pytest.raises(OperandError, match="an address is an array of uint8; expected integers that hold 13 bits"):
        Swizzle(3, 7, 3)(np.zeros(3, np.uint8))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (("3", 4, 3), "bits of a swizzle is '3'; expected 0 to 32"),
        ((3, -1, 3), "base of a swizzle is -1; expected 0 to 32"),
        ((3, 4, True), "shift of a swizzle is True; expected 0 to 32"),
        ((3, 4, 10**5000), "shift of a swizzle is <int that cannot be shown>; expected 0 to 32"),
    ],
)
def test_what_is_no_swizzle(fields: Any, message: str) -> None:
    with pytest.raises(OperandError) as caught:
        Swizzle(*fields)
    assert str(caught.value) == message


def test_lines_together_with_what_is_none() -> None:
    def kernel(t: Threads) -> None:
        t("st.shared.b32", t.laneid * 4, t.laneid)

    costs = launch(kernel, 1, 32, [], target="sm_90", shared=128).costs
    (site,) = costs.sites
    for wrong in (3, [site], None, Site(site.file, site.line, "ld.shared.b32")):
        with pytest.raises(OperandError) as caught:
            costs.together(wrong)  # type: ignore[arg-type]
        assert str(caught.value).endswith(f": 0 accesses to shared memory; give a Site of `costs.sites`:\n  {site}")
