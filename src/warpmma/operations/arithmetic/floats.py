"""Floating-point `add`, `sub`, `mul`, `fma`, `min`, `max`, `neg` and `abs`.

Specification (PTX ISA 9.1, 9.7.3 to 9.7.5; what PTX leaves open was measured on an H200):

1.  A packed operation works on each element separately. An operand of another type than the result's (`add.f32.f16`) is
    converted to it, which is exact.
2.  `add`, `sub`, `mul` and `fma` round the exact result once, to nearest even (`.rn`, also the default),
    toward zero (`.rz`), down (`.rm`) or up (`.rp`). Overflow gives infinity, or the largest number where the
    rounding is toward zero.
3.  A sum that is exactly zero is +0, and -0 with `.rm`; but two zeros of one sign give that sign.
4.  `.ftz` first flushes subnormal operands to zeros of the same sign; then the result, if it is below the least normal
    number when rounded to the format's precision with an unbounded exponent. (So a product just below the least normal
    number is flushed if it rounds up to it only on the coarser grid of subnormal numbers.)
5.  NaN in f32, f16 and bf16: any NaN result, propagated or generated, is the canonical one, positive with all ones.
6.  NaN in f64: the NaN operand that ranks first, made quiet with its sign and payload. The ranks are b, c, a in
    `fma a b c`; b, a in `mul a b`, `add a b` and `sub a b`; `sub` does not flip the sign of a NaN b. A generated NaN is
    0xFFF8000000000000.
7.  Then `.sat` clamps to [0, 1], with +0 for NaN and -0; `.relu` gives +0 for negative values and -0, and keeps NaN.
8.  `min` and `max` choose an operand by value, -0 below +0. If one is NaN: the other operand; with `.NaN`, or if both
    are, the canonical NaN, but in f64 the second operand, made quiet. `.ftz` applies to operands.
9.  `.xorsign.abs` compares magnitudes; the result's sign is the exclusive or of both signs, including that of a NaN
    operand; only a NaN result stays positive.
10. `neg` and `abs` flip or clear the sign. NaN becomes canonical; in f64 it becomes quiet and keeps its sign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, cast

import numpy as np

from ..._arrays import Array, frozen
from ..._rounding import Float64, Rounding
from ...arithmetic import ElementForm, fma64, run_elements, sum_to_odd
from ...formats import FORMATS, FloatFormat
from ..carriage import per_element, whole
from ..elements import TYPES, RegisterOf, by_element, clamped, flushed, is_nan, magnitude, quieted, rectified, signs
from ..forms import Form
from ..measurements import derived, measured
from ..records import DTYPES, Operation

Words = frozenset[str]
Formats = Sequence[FloatFormat]

_F64 = FORMATS["f64"]
_ONE = frozen(np.array(_F64.bias << _F64.fraction_bits, np.uint64))


def rounded(fmt: FloatFormat, values: Float64, rounding: Rounding, *, ftz: bool) -> Array:
    """Round values to a format (rules 2, 4 and 5): f32, f16 or bf16.

    Values rounded to odd give the same as the exact ones. Whether a number is flushed follows from its double, which is
    exact and, if the number is just below the least normal one, has the format's full precision.
    """
    codes = fmt.encode(values, rounding, overflow="infinity")
    if ftz:
        with np.errstate(over="ignore", invalid="ignore"):
            doubled = magnitude(fmt, fmt.encode(values * 2, rounding, overflow="infinity"))
        codes = np.where(doubled < fmt.code_dtype.type(2 << fmt.fraction_bits), signs(fmt, codes), codes)
    return codes


def _arithmetic(op: str, fmts: Formats, fmt: FloatFormat, words: Words, *x: Array) -> Array:
    """One element of `add`, `sub`, `mul` or `fma`: rules 2 to 7."""
    rounding = cast(Rounding, next((w for w in ("rz", "rm", "rp") if w in words), "rn"))
    ftz = "ftz" in words
    if fmt.name == "f64":
        return _arithmetic64(op, rounding, *x)
    values = [f.decode(flushed(f, codes) if ftz else codes) for f, codes in zip(fmts, x, strict=True)]
    with np.errstate(invalid="ignore"):  # infinity times zero
        first = values[0] * values[1] if op in ("mul", "fma") else values[0]
    if op != "mul":
        second = -values[-1] if op == "sub" else values[-1]
        total = sum_to_odd(first, second)
        if rounding == "rm":  # a sum of +0 with a negative addend; rounding to nearest made it positive
            total = np.where((total == 0) & (np.signbit(first) | np.signbit(second)), -0.0, total)
        first = total
    result = rounded(fmt, first, rounding, ftz=ftz)
    if "sat" in words:
        result = clamped(fmt, result)
    return rectified(fmt, result) if "relu" in words else result


def _arithmetic64(op: str, rounding: Rounding, *x: Array) -> Array:
    """One element in f64, on exact integers: a product is a * b plus a zero of its sign, a sum is 1 * a + b.

    The ranks of NaN (rule 6) follow from those of `fma64`, which are b, c, a.
    """
    if op == "fma":
        return fma64(x[0], x[1], x[2], rounding)
    a, b = x
    if op == "mul":
        return fma64(a, b, signs(_F64, a ^ b), rounding)
    if op == "sub":
        b = np.where(is_nan(_F64, b), b, b ^ np.uint64(_F64.sign_bit))
    return fma64(a, _ONE, b, rounding)


def _extreme(op: str, fmts: Formats, fmt: FloatFormat, words: Words, *x: Array) -> Array:
    """One element of `min` or `max`: rules 8 and 9."""
    a, b = (flushed(fmt, codes) for codes in x) if "ftz" in words else x
    a_nan, b_nan, sign = is_nan(fmt, a), is_nan(fmt, b), signs(fmt, a ^ b)
    if "xorsign" in words:
        a, b = magnitude(fmt, a), magnitude(fmt, b)
    chosen = np.where((_order(fmt, a) < _order(fmt, b)) == (op == "min"), a, b)
    chosen = np.where(a_nan, b, np.where(b_nan, a, chosen))
    if "xorsign" in words:
        chosen = chosen | sign
    nan = quieted(fmt, b) if fmt.name == "f64" else _canonical(fmt)
    return np.where(a_nan | b_nan if "NaN" in words else a_nan & b_nan, nan, chosen)


def _sign(op: str, fmts: Formats, fmt: FloatFormat, words: Words, a: Array) -> Array:
    """One element of `neg` or `abs`: rule 10."""
    a = flushed(fmt, a) if "ftz" in words else a
    result = a ^ fmt.code_dtype.type(fmt.sign_bit) if op == "neg" else magnitude(fmt, a)
    return np.where(is_nan(fmt, a), quieted(fmt, a) if fmt.name == "f64" else _canonical(fmt), result)


def _canonical(fmt: FloatFormat) -> Any:
    return fmt.code_dtype.type(cast(int, fmt.nan_code))


def _order(fmt: FloatFormat, codes: Array) -> Array:
    """Return unsigned integers in the order of the numbers, -0 before +0."""
    return np.where(signs(fmt, codes) != 0, ~codes, codes | fmt.code_dtype.type(fmt.sign_bit))


_COMPUTE: dict[str, Callable[..., Array]] = {
    **dict.fromkeys(("add", "sub", "mul", "fma"), _arithmetic),
    **dict.fromkeys(("min", "max"), _extreme),
    **dict.fromkeys(("neg", "abs"), _sign),
}
_OPERANDS = {"fma": 3, "neg": 1, "abs": 1}


def float_row(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of a mnemonic determine."""
    op = words[0]
    types = [TYPES[w] for w in words if w in TYPES]
    out, number = types[0], _OPERANDS.get(op, 2)
    sources = [*[types[-1]] * (number - 1), out] if number > 1 else [out]
    fmts = [cast(FloatFormat, s.fmt) for s in sources]
    element = partial(_COMPUTE[op], op, fmts, fmts[-1], frozenset(words[1:]))
    return {
        "inputs": tuple(s.register for s in sources), "input_types": tuple(s.name for s in sources),
        "outputs": (out.register,), "compute": partial(by_element, element, sources, out),
        "native": _native(op, sources, out, frozenset(words[1:])),
        "carriage": per_element(out.slot) if out.count > 1 else whole,
    }  # fmt: skip


def _native(op: str, sources: Sequence[RegisterOf], out: RegisterOf, words: Words) -> Callable[..., Any] | None:
    """Return the native form of a row whose operands and result are of one format."""
    name = out.fmt.name
    if op in ("neg", "abs") or any(source.fmt.name != name for source in sources):
        return None
    rounding = next((w for w in ("rz", "rm", "rp") if w in words), "rn")
    of_result = "ftz" in words and op not in ("min", "max")
    form = ElementForm(
        op=op, source=name, result=name, rounding=rounding, flush="ftz" in words, flush_result=of_result,
        saturate="sat" in words, rectify="relu" in words, keep_nan="NaN" in words, magnitudes="xorsign" in words,
    )  # fmt: skip
    return partial(run_elements, form, DTYPES[out.register])


_OPEN = "NaN, and what is flushed just below the least normal number,"
_measured = partial(Form, kind=Operation, fields=float_row, left_open=_OPEN)
_f32 = partial(_measured, evidence=measured("9.7.3"))
_f16 = partial(_measured, evidence=measured("9.7.4"))
_mixed = partial(
    Form, kind=Operation, fields=float_row, since="sm_100", ptx=(8, 6),
    evidence=derived("9.7.3 and 9.7.5", "that it computes as the rows of f32 do, on an H200"),
)  # fmt: skip

FORMS = (
    _f32(spelling="<add sub mul>{.<rn rz rm rp>}{.ftz}{.sat}.f32"),
    _f32(spelling="<add sub mul>{.<rn rz rm rp>}.f64"),
    _f32(spelling="fma.<rn rz rm rp>{.ftz}{.sat}.f32"),
    _f32(spelling="fma.<rn rz rm rp>.f64"),
    _f16(spelling="<add sub mul>{.rn}{.ftz}{.sat}.<f16 f16x2>"),
    _f16(spelling="fma.rn{.ftz}{.sat}.<f16 f16x2>"),
    _f16(spelling="fma.rn{.ftz}.relu.<f16 f16x2>", since="sm_80", ptx=(7, 0)),
    _f16(spelling="<add sub mul>{.rn}.<bf16 bf16x2>", since="sm_90", ptx=(7, 8)),
    _f16(spelling="fma.rn{.relu}.<bf16 bf16x2>", since="sm_80", ptx=(7, 0)),
    _mixed(spelling="<add sub mul>{.<rn rz rm rp>}{.ftz}.f32x2"),
    _mixed(spelling="fma.<rn rz rm rp>{.ftz}.f32x2"),
    _mixed(spelling="<add sub>{.<rn rz rm rp>}{.sat}.f32.<f16 bf16>"),
    _mixed(spelling="fma.<rn rz rm rp>{.sat}.f32.<f16 bf16>"),
    _f32(spelling="<min max>{.ftz}.f32"),
    _f32(spelling="<min max>{.ftz}.NaN.f32", since="sm_80", ptx=(7, 0)),
    _f32(spelling="<min max>{.ftz}{.NaN}.xorsign.abs.f32", since="sm_86", ptx=(7, 2)),
    _f32(spelling="<min max>.f64"),
    _f16(spelling="<min max>{.ftz}{.NaN}.<f16 f16x2>", since="sm_80", ptx=(7, 0)),
    _f16(spelling="<min max>{.ftz}{.NaN}.xorsign.abs.<f16 f16x2>", since="sm_86", ptx=(7, 2)),
    _f16(spelling="<min max>{.NaN}.<bf16 bf16x2>", since="sm_80", ptx=(7, 0)),
    _f16(spelling="<min max>{.NaN}.xorsign.abs.<bf16 bf16x2>", since="sm_86", ptx=(7, 2)),
    _f32(spelling="<neg abs>{.ftz}.f32"),
    _f32(spelling="<neg abs>.f64"),
    _f16(spelling="neg{.ftz}.<f16 f16x2>"),
    _f16(spelling="abs{.ftz}.<f16 f16x2>", ptx=(6, 5)),
    _f16(spelling="<neg abs>.<bf16 bf16x2>", since="sm_80", ptx=(7, 0)),
)
"""Every form of this module."""


@cache
def float_operation(mnemonic: str) -> Operation:
    """Return the operation of a mnemonic of this module's forms."""
    words = tuple(mnemonic.split("."))
    form, name = next((form, name) for form in FORMS if (name := form.match(words)) is not None)
    found = form.record(name)
    assert isinstance(found, Operation)
    return found
