"""Approximate functions of PTX: results that follow from their rules by hand, and tables that are wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np

from warpmma.arithmetic import SEQUENCES, ApproximateForm, Engine, approximate


def f32(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def f64(value: float) -> int:
    return int(np.float64(value).view(np.uint64))


INFINITY, NAN, SIGN = 0x7F800000, 0x7FFFFFFF, 1 << 31


BY_HAND: list[tuple[str, list[int], int]] = [
    # Rule 3: subnormal operands and results, where `.ftz` has neither.
    ("ex2.approx.f32", [f32(-149)], 1),
    ("ex2.approx.ftz.f32", [f32(-149)], 0),
    ("ex2.approx.f32", [f32(-128)], f32(2.0**-128)),
    ("ex2.approx.f32", [f32(-127)], f32(2.0**-127) - 1),  # the square of 2^-63.5, which is cut
    ("ex2.approx.f32", [SIGN | INFINITY], 0),
    ("ex2.approx.f32", [0xFFC00001], NAN),
    ("rcp.approx.f32", [f32(2.0**127)], f32(2.0**-127)),
    ("rcp.approx.ftz.f32", [f32(2.0**127)], 0),
    ("rcp.approx.f32", [f32(2.0**-127)], f32(2.0**127)),
    ("rcp.approx.ftz.f32", [f32(2.0**-127)], INFINITY),
    ("rcp.approx.f32", [f32(-(2.0**-149))], SIGN | INFINITY),
    ("rsqrt.approx.f32", [f32(2.0**-148)], f32(2.0**74)),
    ("rsqrt.approx.ftz.f32", [f32(2.0**-148)], INFINITY),
    ("sqrt.approx.f32", [f32(2.0**-148)], f32(2.0**-74)),
    ("sqrt.approx.f32", [SIGN], SIGN),
    ("sqrt.approx.f32", [SIGN | 1], NAN),
    ("sqrt.approx.ftz.f32", [SIGN | 1], SIGN),
    ("lg2.approx.f32", [1], f32(-149)),
    ("lg2.approx.f32", [0x007FFFFF], f32(-126)),
    ("lg2.approx.ftz.f32", [1], SIGN | INFINITY),
    ("lg2.approx.f32", [0], SIGN | INFINITY),
    # Rule 4: subnormal operands are multiplied, and the unit takes the turns as zero.
    ("sin.approx.f32", [0], 0),
    ("sin.approx.f32", [SIGN | 1], SIGN),
    ("cos.approx.f32", [1], f32(1)),
    ("cos.approx.ftz.f32", [INFINITY], NAN),
    # Rule 5. PTX ISA, `div`: of |b| in [2^126, 2^128] div.approx gives 0, and NaN if a is infinite.
    ("div.approx.f32", [f32(2.0**127), f32(2.0**127)], 0),
    ("div.approx.f32", [INFINITY, f32(2.0**127)], NAN),
    ("div.full.f32", [f32(2.0**127), f32(2.0**127)], f32(1)),
    ("div.full.ftz.f32", [f32(2.0**127), f32(2.0**127)], f32(1)),
    ("div.full.f32", [1, 1], f32(1)),
    ("div.full.ftz.f32", [1, 1], NAN),
    ("div.approx.f32", [f32(2.0**-126), f32(2)], f32(2.0**-127)),
    ("div.approx.ftz.f32", [f32(2.0**-126), f32(2)], 0),
    # Rule 2: the product is 1.12 2^-151 below the least normal number, which it rounds to on the coarser grid alone.
    ("div.full.f32", [0x00C1835E, 0x3FC1835E], 0x00800000),
    ("div.full.ftz.f32", [0x00C1835E, 0x3FC1835E], 0),
    ("div.approx.ftz.f32", [SIGN | 0x00C1835E, 0x3FC1835E], SIGN),
    # Here it is 0.35 2^-151 below, and rounds to it on either grid.
    ("div.full.ftz.f32", [0x00BC9172, 0x3FBC9172], 0x00800000),
    # Here it is the middle, and rounds to the even one; 2^-126 itself is no subnormal operand.
    ("div.full.ftz.f32", [0x00E12000, 0x3FE12000], 0x00800000),
    ("div.approx.ftz.f32", [SIGN | 0x00842108, 0x3F842108], SIGN | 0x00800000),
    ("div.approx.ftz.f32", [0x00800000, f32(0.5)], 0x01000000),
    # Rule 7.
    ("rsqrt.approx.f64", [f64(4.0)], f64(0.5)),
    ("rsqrt.approx.f64", [1], f64(2.0**537)),
    ("rsqrt.approx.f64", [(1 << 52) - 1], f64(2.0**511) + 1),
    ("rsqrt.approx.f64", [1 << 63], 0xFFF << 52),
    ("rsqrt.approx.f64", [f64(-1.0)], 0xFFF8 << 48),
    ("rsqrt.approx.f64", [0xFFF << 52], 0xFFF8 << 48),
    ("rsqrt.approx.f64", [0x7FF << 52], 0),
    ("rsqrt.approx.f64", [0xFFF0_0000_0000_0001], 0xFFF8_0000_0000_0001),
    # Rule 6: the lower word has no say.
    ("rcp.approx.ftz.f64", [f64(2.0) | 0xFFFFFFFF], f64(0.5)),
]


def by_arrays(form: str, codes: list[int], engine: Engine = "auto") -> int:
    return int(approximate(form, *(np.array(x, SEQUENCES[form].fmt.code_dtype) for x in codes), engine=engine))


def mutants(row: ApproximateForm) -> Iterator[tuple[str, ApproximateForm]]:
    def scaled(index: int, **changes: Any) -> ApproximateForm:
        scalings = list(row.scalings)
        scalings[index] = replace(scalings[index], **changes)
        return replace(row, scalings=tuple(scalings))

    for number, scaling in enumerate(row.scalings):
        others = row.scalings[:number] + row.scalings[number + 1 :]
        yield f"without scaling {number}", replace(row, scalings=others)
        yield f"scaling {number}: twice before", scaled(number, before=scaling.before * 2)
        if scaling.after in ("multiply", "add"):
            yield f"scaling {number}: half after", scaled(number, number=scaling.number / 2)
        for end in ("first", "last"):
            for step in (-1, 1):
                at = getattr(scaling.where, end) + step
                if at >= 0:
                    yield (
                        f"scaling {number}: {end} {step:+d}",
                        scaled(number, where=replace(scaling.where, **{end: at})),
                    )
    if row.factor is not None:
        yield from ((f"factor {step:+d}", replace(row, factor=row.factor + step)) for step in (-1, 1))
    if row.dividend:
        yield "ftz", replace(row, ftz=not row.ftz)
    for number, fused in enumerate(row.refinement):
        for name in ("b", "c"):
            if isinstance(value := getattr(fused, name), float):
                steps = list(row.refinement)
                steps[number] = replace(fused, **cast(Any, {name: value + 2.0**-20}))
                yield f"step {number}: {name}", replace(row, refinement=tuple(steps))
    for number in range(len(row.special)):
        yield f"without special {number}", replace(row, special=row.special[:number] + row.special[number + 1 :])
