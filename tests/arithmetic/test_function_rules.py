"""The rules around the tables of the special-function unit: an H200's results reveal every changed rule."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from arrays import Array, same
from changed_sources import changed

from warpmma.arithmetic import SPECIAL_FUNCTIONS
from warpmma.arithmetic.arrays import function_arrays
from warpmma.arithmetic.exact import special_functions
from warpmma.operations import elementwise

H200 = Path(__file__).parents[1] / "data" / "h200_functions.npz"
LAWS = ("rcp", "rsqrt", "sqrt", "ex2", "lg2", "sin", "cos", "tanh")


@cache
def recorded(law: str) -> tuple[Array, Array]:
    """All operands of a function, as the unit gets them, and their results."""
    with np.load(H200) as archive:
        names = [key.removesuffix("|results") for key in archive.files if key.endswith("|results")]
        names = [name for name in names if name.removeprefix("rules of ").split()[0] == law]
        codes, results = (np.concatenate([archive[f"{name}|{x}"] for name in names]) for x in ("operands", "results"))
    if law in ("sin", "cos"):
        codes = elementwise("mul.rz.ftz.f32", codes, np.uint32(0x3E22F983)).view(np.uint32)
    return codes, results


@pytest.mark.parametrize("law", LAWS)
def test_the_reference_is_as_an_h200(law: str) -> None:
    codes, results = recorded(law)
    assert len(codes) > 1536
    same(np.array([special_functions.special_function_reference(law, x) for x in codes.tolist()], np.uint32), results)


Change = tuple[str, str]

NANS = "rcp rsqrt sqrt ex2 lg2 tanh"  # before sin and cos the multiplication has made it 0x7FFFFFFF
CUT = "if field < 1:"
FLUSH = "    if e == 0:\n        f = 0\n"
FIELDS = "e not in TANH_FIELDS:"
SPECIAL = 'return {"rsqrt": sign | infinity, "sqrt": sign, "lg2": _SIGN | infinity}[law]'

REFERENCE: list[tuple[str, *tuple[Change, ...]]] = [
    # Rule 3.
    ("rcp sqrt ex2", ("significand = numerator >> drop if", "significand = numerator + (1 << drop >> 1) >> drop if")),
    ("rcp ex2", (CUT, "if field < 0:")),
    ("rcp ex2", (CUT, "if field < 2:")),
    ("rcp", (FLUSH, ""), ("e == 0, e == word.top", "e == 0 and f == 0, e == word.top")),
    ("ex2", ("if field >= self.top", "if field >= self.top - 1")),
    (" ".join(LAWS), ("_NAN, _ONE, _SIGN = 0x7FFFFFFF", "_NAN, _ONE, _SIGN = 0x7FC00000")),
    (NANS, ("and f:\n        return _NAN\n", "and f:\n        return code\n")),
    (NANS, ("and f:\n        return _NAN\n", "and f:\n        return sign | _NAN\n")),
    # Rule 4.
    ("rcp", ("return sign | word.cut", "return word.cut")),
    ("rcp", ("tables[0].point, -exponent", "tables[0].point, ~exponent")),
    ("rcp", ("sign | infinity if zero", "infinity if zero")),
    ("rcp", ("sign if infinite", "0 if infinite")),
    # Rule 5.
    ("rsqrt sqrt", ("k, odd = divmod(exponent, 2)", "k, odd = int(exponent / 2), exponent & 1")),
    ("rsqrt", ('if law == "rsqrt" and not odd and f == 0', "if False")),
    ("rsqrt", ('if law == "rsqrt" and not odd and f == 0', 'if law == "rsqrt" and f == 0')),
    ("sqrt", ("else k + 1", "else k")),
    ("rsqrt", (SPECIAL, SPECIAL.replace("sign | infinity,", "infinity,"))),
    ("sqrt", (SPECIAL, SPECIAL.replace('"sqrt": sign', '"sqrt": 0'))),
    ("rsqrt sqrt lg2", ("if sign:\n        return _NAN", "")),
    ("rsqrt", ('return 0 if law == "rsqrt" else infinity', "return infinity")),
    ("sqrt lg2", ('return 0 if law == "rsqrt" else infinity', "return 0")),
    # Rule 6.
    ("ex2", ("a = ~a if a & _FRACTION else -a", "a = ~a")),
    ("ex2", ("a = ~a if a & _FRACTION else -a", "a = -a")),
    ("ex2", ("a = _fixed(e, f, 23)", "a = _fixed(e, f, 22) << 1")),
    ("ex2", ("a = _fixed(e, f, 23)", "a = _fixed(e, f, 24) + 1 >> 1")),
    ("ex2", ("(0 if sign else infinity)", "infinity")),
    # Rule 7.
    ("lg2", ("LG2_POINT = 36", "LG2_POINT = 35")),
    ("lg2", ("LG2_POINT = 36", "LG2_POINT = 37")),
    ("lg2", ("cut(~total", "cut(-total")),
    ("lg2", ("point) >> table.point - LG2_POINT", "point) + (1 << table.point - 37) >> table.point - LG2_POINT")),
    ("lg2", ('return 0 if law == "lg2" and e == word.bias and f == 0 else None', "return None")),
    ("lg2", ('return 0 if law == "lg2"', 'return _SIGN if law == "lg2"')),
    ("lg2", (SPECIAL, SPECIAL.replace("_SIGN | infinity", "infinity"))),
    # Rule 8.
    ("sin cos", ("_fixed(e, f, 23 + 2)", "(_fixed(e, f, 22 + 2) << 1)")),
    ("sin cos", ("_fixed(e, f, 23 + 2)", "(_fixed(e, f, 24 + 2) + 1 >> 1)")),
    ("sin cos", ("position ^= _FRACTION", "position = -position & _FRACTION")),
    ("sin cos", ("if quadrant & 1:", "if quadrant & 2:")),
    ("sin cos", ("if quadrant & 2:", "if quadrant & 1:")),
    ("sin cos", ("if quadrant & 2:", "if quadrant & 3 == 2:")),
    ("sin", ("sign ^= _SIGN", "sign = _SIGN")),
    ("sin", ("quadrant, position = turns >> 23,", "sign, quadrant, position = 0, turns >> 23,")),
    ("cos", ("quadrant, sign = quadrant + 1, 0", "quadrant, sign = quadrant + 1, sign")),
    ("cos", ("quadrant, sign = quadrant + 1, 0", "quadrant, sign = quadrant, 0")),
    ("cos", ("quadrant, sign = quadrant + 1, 0", "quadrant, sign = quadrant - 1, 0")),
    ("sin cos", ("return _NAN if infinite else None", "return None")),
    # Rule 9.
    ("tanh", ("_tanh(tables, code & ~_SIGN,", "_tanh(tables, code & ~_SIGN if e else 0,")),
    ("tanh", ("return sign | _tanh", "return _tanh")),
    ("tanh", ("magnitude if e < TANH_FIELDS.start", "0 if e < TANH_FIELDS.start")),
    ("tanh", ("else _ONE", "else _ONE - 1")),
    ("tanh", (FIELDS, "not 118 <= e < 130:"), ("tables[e -", "tables[max(e, 119) -")),
    ("tanh", (FIELDS, "not 120 <= e < 130:"), ("e < TANH_FIELDS.start else", "e < 120 else")),
    ("tanh", (FIELDS, "not 119 <= e < 129:")),
    ("tanh", (FIELDS, "not 119 <= e < 131:"), ("tables[e -", "tables[min(e, 129) -")),
    ("tanh", ("f >> 23 - table.bits", "f + (1 << 22 - table.bits - segment_bits) >> 23 - table.bits")),
]  # fmt: skip
"""Functions that must notice, each, and what is changed."""

AT_INFINITY = "np.where(magnitude == word.infinity, _U(0), result)"
COS = "quadrant + 1, np.zeros_like(sign)"

ARRAYS: list[tuple[str, *tuple[Change, ...]]] = [
    # Rule 3.
    ("rcp ex2", ("(code < 1 << self.fraction_bits)", "(code < 0)")),
    ("rcp ex2", ("(code < 1 << self.fraction_bits)", "(code < 2 << self.fraction_bits)")),
    ("ex2", ("np.minimum(code, int(self.infinity))", "code")),
    ("rcp sqrt ex2", ("np.float64).view(np.int64)", "np.float64).view(np.int64) + (1 << 51 - self.fraction_bits)")),
    (" ".join(LAWS), ("np.where(magnitude > word.infinity, _NAN, result)", "result")),
    (" ".join(LAWS), ("_U(0x7FFFFFFF)", "_U(0x7FC00000)")),
    ("rcp rsqrt sqrt", ("_U(0), magnitude)\n    result = ", "magnitude, magnitude)\n    result = ")),
    ("tanh", ('if law != "tanh":', "if True:")),
    # Rule 4.
    ("rcp", ("-exponent)", "~exponent)")),
    ("rcp", (f"return sign | {AT_INFINITY}", f"return {AT_INFINITY}")),
    ("rcp", (AT_INFINITY, AT_INFINITY.replace("_U(0)", "word.infinity"))),
    ("rcp", ("magnitude == 0, word.infinity", "magnitude == 1, word.infinity")),
    # Rule 5.
    ("rsqrt sqrt", ("k, odd = exponent >> 1,", "k, odd = (exponent / 2).astype(np.int64),")),
    ("rsqrt", ("(odd == 0) & (fraction == 0)", "fraction < 0")),
    ("rsqrt", ("(odd == 0) & (fraction == 0)", "fraction == 0")),
    ("rsqrt", ("zero, infinite = sign | word.infinity, _U(0)", "zero, infinite = word.infinity, _U(0)")),
    ("rsqrt", ("zero, infinite = sign | word.infinity, _U(0)", "zero, infinite = sign | word.infinity, word.infinity")),
    ("sqrt", ("k + 1), sign, word.infinity", "k), sign, word.infinity")),
    ("sqrt", ("k + 1), sign, word.infinity", "k + 1), _U(0), word.infinity")),
    ("sqrt", ("k + 1), sign, word.infinity", "k + 1), sign, _U(0)")),
    ("rsqrt sqrt", ("np.where(sign != 0, _NAN, result))\n\n\ndef _ex2", "result)\n\n\ndef _ex2")),
    # Rule 6.
    ("ex2", ("np.where(a & _FRACTION, ~a, -a)", "~a")),
    ("ex2", ("np.where(a & _FRACTION, ~a, -a)", "-a")),
    ("ex2", ("_U(0x44800000)", "_U(0x42FE0000)")),
    ("ex2", ("0x44800000)), 23)", "0x44800000)), 22) << 1")),
    # Rule 7.
    ("lg2", ("_U = np.uint32\n", "_U = np.uint32\nLG2_POINT = 35\n")),
    ("lg2", ("_U = np.uint32\n", "_U = np.uint32\nLG2_POINT = 37\n")),
    ("lg2", ("~total, total)", "-total, total)")),
    ("lg2", ("np.where(magnitude == _ONE, _U(0), ", "np.where(magnitude == _ONE, _SIGN, ")),
    ("lg2", ("np.where(magnitude == word.infinity, word.infinity, result))", "result)")),
    ("lg2", ("np.where(magnitude == 0, _SIGN | word.infinity,", "np.where(magnitude == 0, word.infinity,")),
    # Rule 8.
    ("sin cos", ("turns = _fixed(magnitude, 25)", "turns = _fixed(magnitude, 24) << 1")),
    ("sin cos", ("position ^ _FRACTION", "-position & _FRACTION")),
    ("sin cos", ("quadrant & 1,", "quadrant & 2,")),
    ("sin cos", ("quadrant & 2,", "quadrant & 1,")),
    ("sin", ("0) | sign ^", "0) |")),
    ("cos", (COS, "quadrant + 1, sign")),
    ("cos", (COS, COS.replace("+", "+ 0 *"))),
    ("cos", (COS, COS.replace("+", "-"))),
    ("sin cos", ("np.where(magnitude == word.infinity, _NAN, result)", "result")),
    # Rule 9.
    ("tanh", ("table < 0, magnitude", "table < -1, magnitude")),
    ("tanh", ("table < 0, magnitude", "table < 1, magnitude")),
    ("tanh", ("table >= len(TANH_FIELDS), _ONE", "table > len(TANH_FIELDS), _ONE")),
    ("tanh", ("table >= len(TANH_FIELDS), _ONE", "table >= len(TANH_FIELDS) - 1, _ONE")),
    ("tanh", ("return sign | result\n\n\n_LAWS", "return result\n\n\n_LAWS")),
    ("tanh", ("= fraction >> drop[table]", "= (fraction | 1 << drop[table]) >> drop[table]")),
]  # fmt: skip


@pytest.mark.parametrize(("laws", "changes"), [(laws, changes) for laws, *changes in REFERENCE])
def test_another_rule_is_noticed(laws: str, changes: list[Change]) -> None:
    names = changed(special_functions, *changes)
    for law in laws.split():
        codes, results = recorded(law)
        pairs = zip(codes.tolist(), results.tolist(), strict=True)
        assert any(names["special_function_reference"](law, code) != result for code, result in pairs), law


@pytest.mark.parametrize(("laws", "changes"), [(laws, changes) for laws, *changes in ARRAYS])
def test_another_rule_on_arrays_is_noticed(laws: str, changes: list[Change]) -> None:
    names = changed(function_arrays, *changes)
    for law in laws.split():
        codes, results = recorded(law)
        assert not np.array_equal(names["function_on_arrays"](SPECIAL_FUNCTIONS[law], codes), results), law


def test_changes_are_made() -> None:
    with pytest.raises(ValueError, match=r"special_functions has 0 times: nowhere"):
        changed(special_functions, ("nowhere", ""))
    codes, results = recorded("rcp")
    same(changed(function_arrays)["function_on_arrays"](SPECIAL_FUNCTIONS["rcp"], codes), results)
