"""Conversions: `cvt` between numbers of all types, and `cvt.pack`.

Specification (PTX ISA 9.1, 9.7.9.21 and 9.7.9.22; what PTX leaves open was measured on an H200):

1.  A packed conversion works on each element separately. Of two operands, the first becomes the upper element. A value
    narrower than its register or byte is in the low bits with zeros above; only a signed integer narrower than its
    register is sign-extended. Of a wider source, only the low bits are used.
2.  A value is rounded once, to nearest even (`.rn`, `.rni`), toward zero (`.rz`, `.rzi`), down (`.rm`, `.rmi`) or up
    (`.rp`, `.rpi`). `.rna.tf32` adds half a unit of the last place kept to the magnitude and truncates.
3.  Overflow gives infinity in an IEEE format, or its largest number if the rounding is toward zero; with `.satfinite`,
    and in formats of at most 8 bits, the largest number.
4.  `.rni` and the like give integers in floating-point types too; a zero has the sign of the value that became zero.
5.  `.ftz` flushes subnormal f32 operands to zero, except in conversions to f16, and f32 results by rule 4 of
    `arithmetic`.
6.  NaN becomes the canonical NaN, or the largest number of a format without NaN. But:
    a.  if one side is f64, NaN is quiet and keeps its sign and the top of its payload; but `cvt.ftz.f64.f32` first
        makes it the canonical one of f32;
    b.  `cvt.f32.f32`, `cvt.f64.f64` and `cvt.f32.bf16`, without any qualifier, move bits;
    c.  in tf32 it is 0x7FFFE000. `.rna` only truncates its low bits, which leaves infinity if no other bit was set; and
        `.rna.satfinite` then subtracts one from the last place kept, for infinity as for NaN.
7.  Then `.sat` clamps to [0, 1], with +0 for NaN and -0; `.relu` gives +0 for negative values and -0, and keeps
    NaN.
8.  A number out of range becomes the nearest integer of the type, even without `.sat`. NaN becomes 0; but the
    integer with only the top bit set if it was an f64 or if the integer has 64 bits.
9.  An integer is rounded to floating point once. To another integer it is converted by its low bits, like a cast in
    C, or with `.sat` by clamping.
10. In ue8m0, magnitudes are rounded and signs ignored. Values below 2^-127 give 2^-127; values above 2^127 give
    NaN, or with `.satfinite` 2^127 unless it was NaN. (CUDA 13.0's cuda_fp8.hpp emulates the instruction.)
11. `cvt.pack` clamps both integers and puts the first above the second, and the low bits of the third operand above
    these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import numpy as np

from ..._arrays import Array, all_ones
from ..._rounding import Float64, Rounding
from ...arithmetic import ElementForm, fma64, run_elements
from ...formats import FORMATS, FloatFormat, IntegerFormat
from ..carriage import Masks, moved
from ..elements import TYPES, RegisterOf, clamped, flushed, is_nan, magnitude, quieted, rectified, signs
from ..forms import Form
from ..measurements import derived, measured
from ..records import DTYPES, Operation
from .floats import rounded

Words = frozenset[str]

_U = np.uint64
_UE8M0, _TF32 = FORMATS["ue8m0"], FORMATS["tf32"]
_TF32_LAST = np.uint32(1 << _TF32.padding)
"""The last place of a tf32 in its register; the bits below are zeros."""
_TF32_NAN = np.uint32(cast(int, _TF32.nan_code)) & ~(_TF32_LAST - np.uint32(1))
"""The canonical NaN without these bits: 0x7FFFE000."""
_INTEGRAL: dict[str, Any] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _rounding(words: Words) -> Rounding:
    """Return the rounding that a mnemonic names; "rn" if none."""
    return cast(Rounding, next((w for w in ("rz", "rm", "rp") if w in words), "rn"))


def _integral(values: Float64, words: Words) -> Float64:
    """Round to integers in float64 (rules 2 and 4), if a mnemonic says so."""
    function = next((f for word, f in _INTEGRAL.items() if word in words), None)
    return values if function is None else np.copysign(function(values), values)


# Floating point to floating point


def _moved(source: FloatFormat, out: FloatFormat, words: Words, codes: Array) -> Array:
    """Rule 6b: from a format to itself, or from bf16, whose codes are the upper halves of f32's."""
    result: Array = codes.astype(out.code_dtype) << out.code_dtype.type(out.bits - source.bits)
    return result


def _float_to_float(source: FloatFormat, out: FloatFormat, words: Words, codes: Array) -> Array:
    """Rules 2 to 7."""
    ftz, rounding = "ftz" in words, _rounding(words)
    if ftz and source.name == "f32" and out.name != "f16":
        codes = flushed(source, codes)
    with np.errstate(invalid="ignore"):  # signalling NaN
        values = _integral(source.decode(codes), words)
        if out.overflow == "saturate":
            return _rectified(out, words, out.encode(values, rounding))
        result = rounded(out, values, rounding, ftz=ftz and out.name == "f32")
    if "satfinite" in words:
        largest = np.minimum(magnitude(out, result), out.code_dtype.type(out.max_code)) | signs(out, result)
        result = np.where(np.isnan(values), result, largest)
    if "f64" in (source.name, out.name):
        if ftz and source.name == "f32":
            codes = np.where(is_nan(source, codes), source.code_dtype.type(cast(int, source.nan_code)), codes)
        result = np.where(is_nan(source, codes), _nan_kept(source, out, codes), result)
    if out.name == "tf32":
        result = np.where(np.isnan(values), _TF32_NAN, result)
    return clamped(out, result) if "sat" in words else _rectified(out, words, result)


def _rectified(out: FloatFormat, words: Words, codes: Array) -> Array:
    return rectified(out, codes) if "relu" in words else codes


def _nan_kept(source: FloatFormat, out: FloatFormat, codes: Array) -> Array:
    """Move sign and fraction of NaN to another format (rule 6a)."""
    wide = magnitude(source, codes).astype(_U) & _U((1 << source.fraction_bits) - 1)
    fraction = wide << _U(52 - source.fraction_bits) >> _U(52 - out.fraction_bits)
    sign = np.where(signs(source, codes) != 0, _U(out.sign_bit), _U(0))
    return quieted(out, (fraction | sign | _U(cast(int, out.inf_code))).astype(out.code_dtype))


def _tf32_away(source: FloatFormat, out: FloatFormat, words: Words, codes: Array) -> Array:
    """`.rna`: rules 2, 3 and 6c."""
    sign, size = signs(source, codes), magnitude(source, codes)
    infinity = np.uint32(cast(int, source.inf_code))
    kept = np.where(size < infinity, size + _TF32_LAST // np.uint32(2), size) & ~(_TF32_LAST - np.uint32(1))
    if "satfinite" in words:
        kept = np.where(kept >= infinity, kept - _TF32_LAST, kept)
    return kept | sign


def _power(source: FloatFormat, out: FloatFormat, words: Words, codes: Array) -> Array:
    """Rule 10."""
    values = np.abs(source.decode(codes))
    beyond = (values > 2.0**127) if "rp" in words else np.isinf(values)
    nan = np.isnan(values) | (beyond & ("satfinite" not in words))
    return np.where(nan, out.code_dtype.type(cast(int, out.nan_code)), out.encode(values, _rounding(words)))


# Between floating point and integers, and among integers


def _float_to_integer(source: FloatFormat, out: IntegerFormat, words: Words, codes: Array) -> Array:
    """Rule 8."""
    with np.errstate(invalid="ignore"):  # signalling NaN
        values = _integral(source.decode(flushed(source, codes) if "ftz" in words else codes), words)
        nan, low, high = np.isnan(values), values < float(out.least), values >= 2.0 ** (out.bits - out.signed)
    inside = np.where(nan | low | high, 0.0, values)  # exact as integers of 64 bits
    integers = inside.astype(np.int64).view(_U) if out.signed else inside.astype(_U)
    integers = np.where(high, _U(out.greatest), np.where(low, _U(out.least & out.mask), integers))
    made = 1 << (out.bits - 1) if out.bits == 64 or source.name == "f64" else 0
    return (np.where(nan, _U(made), integers) & _U(out.mask)).astype(out.code_dtype)


def _wide(source: IntegerFormat, codes: Array) -> Array:
    """Integers in 64 bits, sign-extended."""
    return codes.astype(_U) if source.bits == 64 else source.decode(codes).view(_U)


def _integer_to_float(source: IntegerFormat, out: FloatFormat, words: Words, codes: Array) -> Array:
    """Rule 9: by magnitude and sign."""
    wide, rounding = _wide(source, codes), _rounding(words)
    negative = (wide >> _U(63) != 0) & source.signed
    size = np.where(negative, ~wide + _U(1), wide)
    sign = np.where(negative, -1.0, 1.0)
    if out.name == "f64":
        # high * 2^32 + low, each exact in f64, is one fma; of zero, +0 + +0.
        high, low = ((x.astype(np.float64) * sign).view(_U) for x in (size >> _U(32), size & _U(0xFFFFFFFF)))
        result = fma64(high, np.array(2.0**32).view(_U), low, rounding)
    else:
        # Above 2^53 the low 11 bits are merged into the next, as rounding to odd (`arithmetic.sum_to_odd`).
        gathered = ((size >> _U(11)) | (size & _U(0x7FF) != 0)).astype(np.float64) * 2048
        result = out.encode(np.where(size >> _U(53) != 0, gathered, size.astype(np.float64)) * sign, rounding)
    return clamped(out, result) if "sat" in words else result


def _integer_to_integer(source: IntegerFormat, out: IntegerFormat, words: Words, codes: Array) -> Array:
    """Rule 9."""
    wide = _wide(source, codes)
    if "sat" in words:
        wide = _clamped_integers(wide, source.signed, out)
    return (wide & _U(out.mask)).astype(out.code_dtype)


def _cast(source: RegisterOf, out: RegisterOf) -> Callable[[Array], tuple[Array]]:
    """Rule 9 for whole registers: the same as `_integer_to_integer` of their elements, by NumPy casts."""
    value, made = (np.dtype(f"{'i' if x.fmt.signed else 'u'}{x.fmt.bits // 8}") for x in (source, out))
    register = np.dtype(DTYPES[out.register])

    def cast_register(word: Array) -> tuple[Array]:
        codes = word.view(value) if word.dtype.itemsize == value.itemsize else word.astype(value)
        if codes.dtype.itemsize != made.itemsize:
            codes = codes.astype(made)
        elif made.itemsize < register.itemsize:
            codes = codes.view(made)
        return (codes.view(register) if made.itemsize == register.itemsize else codes.astype(register),)

    return cast_register


def _clamped_integers(wide: Array, signed: bool, out: IntegerFormat) -> Array:
    """Clamp integers of 64 bits to a format's range."""
    if not signed:
        return np.minimum(wide, _U(out.greatest))
    values: Array = wide.view(np.int64)
    return np.clip(values, out.least, min(out.greatest, (1 << 63) - 1)).view(_U)


def _pack(out: IntegerFormat, *x: Array) -> tuple[Array]:
    """Rule 11."""
    s32 = FORMATS["s32"]
    a, b = (_integer_to_integer(s32, out, frozenset({"sat"}), codes).astype(np.uint32) for codes in x[:2])
    size = np.uint32(out.bits)
    word = b | (a << size)
    return (word | (x[2] << (size * np.uint32(2))) if len(x) == 3 else word,)


def _carried(
    source: RegisterOf, out: RegisterOf, compute: object, operands: object, masks: Masks, dtypes: object
) -> list[Array]:
    """Return the poison bits of a result: of each element, all or none, as of its source."""
    shape = next(mask.shape for mask in masks if mask is not None)
    words = [np.zeros(shape, DTYPES[source.register]) if mask is None else mask for mask in reversed(masks)]
    elements = [code != 0 for word in words for code in source.split(word)]
    codes = [all_ones(some, out.fmt.code_dtype) & out.fmt.code_dtype.type(out.fmt.mask) for some in elements]
    return [out.join(codes)]


# Rows

_MOVED = ("cvt.f32.f32", "cvt.f64.f64", "cvt.f32.bf16")


def _element(words: tuple[str, ...], source: RegisterOf, out: RegisterOf) -> Callable[[Array], Array]:
    qualifiers = frozenset(words[1:-2])
    function: Any = {
        (False, False): _float_to_float,
        (False, True): _float_to_integer,
        (True, False): _integer_to_float,
        (True, True): _integer_to_integer,
    }[isinstance(source.fmt, IntegerFormat), isinstance(out.fmt, IntegerFormat)]
    if ".".join(words) in _MOVED:
        function = _moved
    elif "rna" in qualifiers:
        function = _tf32_away
    elif out.fmt is _UE8M0:
        function = _power
    return partial(function, source.fmt, out.fmt, qualifiers)


def _compute(element: Callable[[Array], Array], source: RegisterOf, out: RegisterOf, *x: Array) -> tuple[Array]:
    """Rule 1."""
    codes = [code for word in reversed(x) for code in source.split(word)]
    return (out.join([element(code) for code in codes]),)


def _converted(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of `cvt` determine."""
    out, source = TYPES[words[-2]], TYPES[words[-1]]
    number = out.count // source.count
    integers = isinstance(source.fmt, IntegerFormat) and isinstance(out.fmt, IntegerFormat)
    compute = partial(_compute, _element(words, source, out), source, out)
    return {
        "inputs": (source.register,) * number, "input_types": (source.name,) * number, "outputs": (out.register,),
        "output_types": (out.name,), "wider": True, "specials": integers,
        "compute": _cast(source, out) if integers and "sat" not in words else compute,
        "carriage": moved() if integers and "sat" not in words else partial(_carried, source, out),
        "native": _native(words, source, out),
    }  # fmt: skip


_NATIVE_FLOATS = ("f16", "bf16", "f32", "f64")


def _native(words: tuple[str, ...], source: RegisterOf, out: RegisterOf) -> Callable[..., Any] | None:
    """Return the native form of a conversion of f16, bf16, f32, f64, or between one of them and 32 bits."""
    qualifiers, source_name, name = frozenset(words), source.fmt.name, out.fmt.name
    floats = [x in _NATIVE_FLOATS for x in (source_name, name)]
    known = [x or y in ("s32", "u32") for x, y in zip(floats, (source_name, name), strict=True)]
    if not (all(known) and any(floats)) or ".".join(words) in _MOVED or source.count != 1:
        return None
    integral = next((word for word in words if word in _INTEGRAL), "")
    f32 = source_name == "f32" and name != "f16"
    form = ElementForm(
        op="convert", source=source_name, result=name, rounding=integral[:2] or _rounding(qualifiers),
        integral=bool(integral), flush="ftz" in qualifiers and f32, flush_result="ftz" in qualifiers and name == "f32",
        saturate="sat" in qualifiers and floats[1], finite="satfinite" in qualifiers, rectify="relu" in qualifiers,
    )  # fmt: skip
    return partial(run_elements, form, DTYPES[out.register])


def _packed(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of `cvt.pack` determine; short integers have a third operand."""
    name, number = words[3], 3 if words[-1] == "b32" else 2
    fmt = IntegerFormat(
        name=name, bits=int(name[1:]), signed=name[0] == "s", dtype_name="", source="PTX ISA 9.1, 9.7.9.22"
    )
    return {
        "inputs": ("b32",) * number, "input_types": ("s32", "s32", "u32")[:number], "outputs": ("b32",),
        "wider": True, "output_types": ("s32",),
        "compute": partial(_pack, fmt),
    }  # fmt: skip


_exact = partial(Form, kind=Operation, fields=_converted, evidence=measured("9.7.9.21"))
_cvt = partial(_exact, left_open="what becomes of NaN")
_untried = partial(
    Form, kind=Operation, fields=_converted,
    evidence=derived("9.7.9.21", "PTX's text, and NaN and saturation as of the conversions that an H200 has"),
)  # fmt: skip
_pack_form = partial(Form, kind=Operation, fields=_packed, evidence=measured("9.7.9.22"))

_ALL = "s8 u8 s16 u16 s32 u32 s64 u64"
_WIDE = "s16 u16 s32 u32 s64 u64"


def _integers() -> Iterator[Form]:
    """Conversions of integers: `.sat` only where the range does not hold every value (9.7.9.21)."""
    formats = [cast(IntegerFormat, TYPES[n].fmt) for n in _ALL.split()]
    for out in formats:
        held = [x.name for x in formats if out.least <= x.least and x.greatest <= out.greatest]
        others = [x.name for x in formats if x.name not in held]
        yield _exact(spelling=f"cvt.{out.name}.<{' '.join(held)}>")
        yield _exact(spelling=f"cvt{{.sat}}.{out.name}.<{' '.join(others)}>")


FORMS = (
    *_integers(),
    _cvt(spelling=f"cvt.<rni rzi rmi rpi>{{.ftz}}{{.sat}}.<{_ALL}>.f32"),
    _cvt(spelling=f"cvt.<rni rzi rmi rpi>{{.sat}}.<{_ALL}>.<f16 f64>"),
    _cvt(spelling=f"cvt.<rni rzi rmi rpi>.<{_WIDE}>.bf16", since="sm_90", ptx=(7, 8)),
    _exact(spelling=f"cvt.<rn rz rm rp>{{.ftz}}{{.sat}}.f32.<{_ALL}>"),
    _exact(spelling=f"cvt.<rn rz rm rp>{{.sat}}.<f16 f64>.<{_ALL}>"),
    _exact(spelling=f"cvt.<rn rz rm rp>.bf16.<{_WIDE}>", since="sm_90", ptx=(7, 8)),
    _cvt(spelling="cvt{.ftz}{.sat}.f32.<f16 f32>"),
    _cvt(spelling="cvt.<rni rzi rmi rpi>{.ftz}{.sat}.f32.f32"),
    _cvt(spelling="cvt{.<rni rzi rmi rpi>}{.sat}.<f16.f16 f64.f64>"),
    _cvt(spelling="cvt{.sat}.f64.f16"),
    _cvt(spelling="cvt{.ftz}{.sat}.f64.f32"),
    _cvt(spelling="cvt.<rn rz rm rp>{.ftz}{.sat}.<f16.f32 f32.f64>"),
    _cvt(spelling="cvt.<rn rz rm rp>{.sat}.f16.f64"),
    _cvt(spelling="cvt.<rn rz>.satfinite.f16.f32", since="sm_75", ptx=(8, 1)),
    _cvt(spelling="cvt.<rn rz>.relu.f16.f32", since="sm_80", ptx=(7, 0)),
    _cvt(spelling="cvt.<rn rz>.relu.satfinite.f16.f32", since="sm_80", ptx=(8, 1)),
    _cvt(spelling="cvt.<rn rz rm rp>{.ftz}.bf16.f32", since="sm_80", ptx=(7, 0)),
    _cvt(spelling="cvt.<rn rz>.relu.bf16.f32", since="sm_80", ptx=(7, 0)),
    _cvt(spelling="cvt.<rn rz>{.relu}.satfinite.bf16.f32", since="sm_80", ptx=(8, 1)),
    _cvt(spelling="cvt.<rn rz>{.relu}.<f16x2 bf16x2>.f32", since="sm_80", ptx=(7, 0)),
    _cvt(spelling="cvt.<rn rz>{.relu}.satfinite.<f16x2 bf16x2>.f32", since="sm_80", ptx=(8, 1)),
    _cvt(spelling="cvt.f32.bf16", since="sm_80", ptx=(7, 1)),
    _cvt(spelling="cvt.ftz.f32.bf16", since="sm_90", ptx=(7, 8)),
    _cvt(spelling="cvt.<rn rz rm rp>.<f16.bf16 bf16.f16 bf16.f64>", since="sm_90", ptx=(7, 8)),
    _cvt(spelling="cvt.f64.bf16", since="sm_90", ptx=(7, 8)),
    _cvt(spelling="cvt{.<rni rzi rmi rpi>}.bf16.bf16", since="sm_90", ptx=(7, 8)),
    _cvt(spelling="cvt.rna.tf32.f32", since="sm_80", ptx=(7, 0)),
    _cvt(spelling="cvt.rna.satfinite.tf32.f32", since="sm_80", ptx=(8, 1)),
    _cvt(spelling="cvt.<rn rz>{.relu}.tf32.f32", since="sm_90", ptx=(7, 8)),
    _untried(spelling="cvt.<rn rz>.satfinite{.relu}.tf32.f32", since="sm_100", ptx=(8, 6)),
    _cvt(spelling="cvt.rn.satfinite{.relu}.<e4m3x2 e5m2x2>.<f32 f16x2>", since="sm_89", ptx=(8, 1)),
    _cvt(spelling="cvt.rn{.relu}.f16x2.<e4m3x2 e5m2x2>", since="sm_89", ptx=(8, 1)),
    _untried(spelling="cvt.rn.satfinite{.relu}.<e2m3x2 e3m2x2 e2m1x2>.f32", since="sm_100f", ptx=(8, 6)),
    _untried(spelling="cvt.rn{.relu}.f16x2.<e2m3x2 e3m2x2 e2m1x2>", since="sm_100f", ptx=(8, 6)),
    _untried(spelling="cvt.<rz rp>{.satfinite}.ue8m0x2.<f32 bf16x2>", since="sm_100f", ptx=(8, 6)),
    _untried(spelling="cvt.rn.bf16x2.ue8m0x2", since="sm_100f", ptx=(8, 6)),
    _pack_form(spelling="cvt.pack .sat.<u16 s16>.s32", since="sm_72", ptx=(6, 5)),
    _pack_form(spelling="cvt.pack .sat.<u8 s8>.s32.b32", since="sm_72", ptx=(6, 5)),
    _pack_form(spelling="cvt.pack .sat.<u4 s4 u2 s2>.s32.b32", since="sm_75", ptx=(6, 5)),
)
"""Every form of this module."""
