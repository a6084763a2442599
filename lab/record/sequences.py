"""Record the results of a GPU for the approximate functions of PTX: `python -m lab.record.sequences --help`.

Needs a GPU that has them all (sm_90 or newer), `ptxas` on the PATH and CuPy; was run on an H200. Every result is also
compared with `warpmma.arithmetic.approximate`. Operands are made from a form's place in `FORMS`, so that they need not
be kept: `operands` makes them again. Of results the archive has those of every `KEPT`-th chosen operand,
`FORM|results`, and digests of all of them in blocks, `FORM|chosen` and `FORM|random`; `device` says whose they are.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.gpu.runner import KernelGpu
from lab.solve.positions import save_archive
from warpmma.arithmetic import SEQUENCES, approximate

Array = npt.NDArray[Any]

_FTZ = ("", ".ftz")
_F32 = [f"{name}.approx{ftz}.f32" for name in ("rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2") for ftz in _FTZ]
_NARROW = ["ex2.approx.f16", "tanh.approx.f16", "ex2.approx.ftz.bf16", "tanh.approx.bf16"]
FORMS = (
    *_F32, "tanh.approx.f32", *(f"div.{how}{ftz}.f32" for how in ("approx", "full") for ftz in _FTZ),
    *_NARROW, *(f"{form}x2" for form in _NARROW), "rcp.approx.ftz.f64", "rsqrt.approx.ftz.f64", "rsqrt.approx.f64",
)  # fmt: skip
"""The recorded forms. The index of a form seeds its random operands: append new ones."""

KEPT = 96
_BLOCK, _RANDOM = 1 << 12, 1 << 20
_THREADS = 256
_U, _W = np.uint32, np.uint64


def mixed(x: Array) -> Array:
    """Return splitmix64 of each number."""
    with np.errstate(over="ignore"):
        x = x.astype(_W) + _W(0x9E3779B97F4A7C15)
        x = (x ^ (x >> _W(30))) * _W(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> _W(27))) * _W(0x94D049BB133111EB)
        x ^= x >> _W(31)
    return x


def random_words(seed: int, count: int) -> Array:
    """Return a number of 64-bit words."""
    return mixed(np.arange(count, dtype=_W) + _W(seed << 32))


def digests(results: Array, block: int = _BLOCK) -> Array:
    """Return a digest of each block of results and their positions."""
    with np.errstate(over="ignore"):
        words = mixed(results.astype(_W) + mixed(np.arange(len(results), dtype=_W)))
    return np.add.reduceat(words, np.arange(0, len(words), block))


def _code(value: float) -> int:
    return int(np.float32(value).view(_U))


def _signed(magnitudes: Array) -> Array:
    return np.concatenate([magnitudes, magnitudes | _U(1 << 31)])


def _fractions(ends: list[int], seed: int, count: int, bits: int) -> Array:
    return np.array([*ends, *(random_words(seed, count) & _W((1 << bits) - 1)).tolist()], _U)


def _specials() -> Array:
    """Return the boundary codes of f32."""
    codes = [0, 1, 2, 3, 0x100, 0x12345, 0x3FFFFF, 0x400000, 0x600001, 0x7FFFFE, 0x7FFFFF, 0x800000, 0x800001, 0xC00000,
             0xFFFFFF, 0x1000000, 0x1000001, 0x7E7FFFFF, 0x7E800000, 0x7E800001, 0x7E800002, 0x7EC12345, 0x7EFFFFFF,
             0x7F000000, 0x7F000001, 0x7F7FFFFE, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FA12345, 0x7FC00000, 0x7FFFFFFF,
             0x3F7FFFFF, 0x3F800001]  # fmt: skip
    values = [1, 2, 3, 1 / 3, 0.5, 1.5, np.pi, 10, 7, 1.1e38, 1e-38, 3e-39, 7e-42, 1e10, 1e-10]
    values += [2.0**n for n in (24, -24, -23, 100, -100, -125, -124, -103, -102, -101, 125)]
    return _signed(np.array(sorted({*codes, *map(_code, values)}), _U))


def _one_operand() -> Array:
    """Return codes of f32: every exponent, round the bounds of scalings, subnormal, NaN; where ex2 is subnormal."""
    ends = [0, 1, 2, 3, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFD, 0x7FFFFE, 0x7FFFFF]
    exponents = np.arange(256, dtype=_U)[:, None] << _U(23) | _fractions(ends, 1, 6, 23)
    values = (126, 127, 128, 125, 149, 150, 151, 63, 74.5, 1, 0.5)
    bounds = [0x00800000, 0x7E800000, 0x7F000000, *map(_code, values), 0x7F800000, 0x42FD0000]
    windows = np.array(bounds)[:, None] + np.arange(-300, 301)
    nan = random_words(3, 3000) % _W(0x7FFFFF) + _W(0x7F800001)
    parts = [exponents, windows, np.arange(600), random_words(2, 4000) & _W(0x7FFFFF), nan]
    magnitudes = np.unique(np.concatenate([part.ravel().astype(_U) for part in parts]) & _U(0x7FFFFFFF))
    exponentials = np.concatenate([np.linspace(-155, -120, 12000), np.linspace(120, 130, 1000)]).astype(np.float32)
    return np.concatenate([_signed(magnitudes), exponentials.view(_U), _specials()])


def _divisions() -> tuple[Array, Array]:
    """Return dividends and divisors: all pairs of special ones; random ones of every sort that is scaled."""
    words = [random_words(seed, 1 << 14) for seed in range(10, 16)]
    bounds = [0x00800000, 0x7E800000, 0x7F000000, 0x00400000, 0x01000000, 0x7F7FFF00, 0x00000100, 0x3F800000]
    near = np.array(bounds, _U)[words[0] & _W(7)] + (words[0] >> _W(8) & _W(0xFF)).astype(_U) - _U(128)
    near = near & _U(0x7FFFFFFF) | (words[0] >> _W(20)).astype(_U) & _U(1 << 31)
    any_ = words[1].astype(_U)
    fractions, upper = [w.astype(_U) & _U(0x807FFFFF) for w in words], [w >> _W(40) for w in words]
    subnormal = fractions[2]
    huge = fractions[3] | (upper[3] & _W(3)).astype(_U) * _U(1 << 23) + _U(0x7E000000)
    normal = fractions[4] | ((upper[4] % _W(254)).astype(_U) + _U(1)) << _U(23)
    tiny = fractions[5] | (upper[5] % _W(30)).astype(_U) << _U(23)
    divisors, dividends = np.meshgrid(_specials(), _specials())
    pairs = [
        (dividends.ravel(), divisors.ravel()), (any_, near), (near, near[::-1]), (any_, subnormal),
        (subnormal, subnormal[::-1]), (tiny, subnormal), (any_, huge), (huge, huge[::-1]), (tiny, huge), (huge, tiny),
        (subnormal, normal), (normal, subnormal), (normal, normal[::-1]), (tiny, tiny[::-1]),
    ]  # fmt: skip
    return np.concatenate([x for x, _ in pairs]), np.concatenate([y for _, y in pairs])


def _upper_words() -> Array:
    """Return codes of f64, with four lower words: every sign and exponent; subnormal ones, NaN and large ones."""
    ends = [0, 1, 2, 3, 0x7FFFF, 0x80000, 0x80001, 0xFFFFD, 0xFFFFE, 0xFFFFF, 0x1FFF, 0x2000, 0x3FFF, 0x4000]
    exponents = np.arange(4096, dtype=_U)[:, None] << _U(20) | np.unique(_fractions(ends, 20, 10, 20))
    more = (random_words(21, 20000) & _W(0xFFFFF)).astype(_U)
    fields = (0, 0x800, 0x7FF, 0xFFF, 0x7FE, 0x7FD, 0x001, 0x002, 0x7FC, 0xFFE)
    some = [more[i::10] | _U(field << 20) for i, field in enumerate(fields)]
    words = np.concatenate([exponents.ravel(), *some, _signed(np.arange(600, dtype=_U))])
    return (words.astype(_W) << _W(32) | np.array([[0], [1], [0xFFFFFFFF], [1 << 31]], _W)).ravel()


def _hard_roots() -> Array:
    """Return codes of f64: near squares and near powers of two, subnormal, at the ends of the fraction, and any."""
    a, b, c, d = (random_words(seed, 1 << 16) for seed in range(30, 34))
    magnitude = _W((1 << 63) - 1)
    with np.errstate(over="ignore"):
        roots = a >> _W(38) | _W(1 << 26)
        squares = (roots * roots).astype(np.float64).view(_W) + (a & _W(7)) - _W(3)
        exponents = ((a >> _W(8)) % _W(2000) - _W(1000)).view(np.int64) // 2 * 2
        squares = squares + np.clip(exponents, -960, 900).view(_W) * _W(1 << 52)
        powers = ((b >> _W(8)) % _W(2047) << _W(52)) + (b & _W(0xFF)) - _W(128) & magnitude
    fractions = c & _W((1 << 52) - 1)
    subnormal = fractions >> (fractions & _W(63)) * _W(13) // _W(16)
    return np.concatenate([squares, powers, subnormal, d & magnitude | _W(0x000FFFFFF0000000), d])


def operands(form: str) -> dict[str, tuple[Array, ...]]:
    """Return the operands of a form: "chosen" ones, and "random" ones unless all were chosen."""
    words = random_words(100 + FORMS.index(form), _RANDOM)
    if form.endswith("x2"):
        codes = np.arange(1 << 16, dtype=_U)
        return {"chosen": (codes | (codes * _U(40503) & _U(0xFFFF)) << _U(16),)}
    if form.endswith("f16"):
        return {"chosen": (np.arange(1 << 16).astype(np.uint16),)}
    if form == "rsqrt.approx.f64":
        hard = _hard_roots()
        chosen = np.concatenate([_upper_words()[::7], hard[::5]])
        return {"chosen": (chosen,), "random": (np.concatenate([words, hard]),)}
    if form.endswith("f64"):
        return {"chosen": (_upper_words(),), "random": (words,)}
    if form.startswith("div"):
        return {"chosen": _divisions(), "random": (words.astype(_U), (words >> _W(32)).astype(_U))}
    return {"chosen": (_one_operand(),), "random": (words.astype(_U),)}


def expected(form: str, given: tuple[Array, ...]) -> Array:
    """Compute the results of the recorded forms."""
    if not form.endswith("x2"):
        return approximate(form, *given)
    halves = given[0].view(np.uint16)
    return approximate(form.removesuffix("x2"), halves).view(_U)


def kernel(form: str, name: str) -> str:
    """Return a kernel of PTX that executes a form on each element; parameters are addresses of operands and result."""
    packed = form.endswith("x2")
    row = SEQUENCES[form.removesuffix("x2")]
    bits = row.fmt.bits << packed
    given = [f"a{i}" for i in range(row.operands)]
    lines = [f".visible .entry {name}({', '.join(f'.param .u64 p{x}' for x in (*given, 'd'))}) {{"]
    lines += [".reg .u64 %at, %offset;", ".reg .u32 %t, %block, %width;"]
    lines += [f".reg .b{bits} %{x};" for x in (*given, "d")]
    lines += ["mov.u32 %block, %ctaid.x;", "mov.u32 %width, %ntid.x;", "mov.u32 %t, %tid.x;"]
    lines += ["mad.lo.u32 %t, %block, %width, %t;", f"mul.wide.u32 %offset, %t, {bits // 8};"]
    for x in (*given, "d"):
        lines += [f"ld.param.u64 %at, [p{x}];", "add.u64 %at, %at, %offset;"]
        lines += [f"ld.global.b{bits} %{x}, [%at];"] if x != "d" else []
    lines += [f"{form} %d, {', '.join(f'%{x}' for x in given)};", f"st.global.b{bits} [%at], %d;", "ret;", "}"]
    return "\n".join(lines)


class SequenceGpu(KernelGpu[str]):
    """The kernels of forms."""

    def __init__(self, forms: list[str], target: str) -> None:
        super().__init__({form: partial(kernel, form) for form in forms}, target, (8, 0))

    def run(self, form: str, given: tuple[Array, ...]) -> Array:
        """Execute a form."""
        count = len(given[0])
        blocks = -(-count // _THREADS)
        padded = [np.concatenate([x, np.zeros(blocks * _THREADS - count, x.dtype)]) for x in given]
        return self.launch(form, blocks, _THREADS, [*padded, np.zeros_like(padded[0])], [len(padded)])[0][:count]


def kept(form: str, which: str, results: Array) -> Iterator[tuple[str, Array]]:
    """Yield what the archive has of results, by its key."""
    if which == "chosen":
        yield f"{form}|results", results[::KEPT]
    yield f"{form}|{which}", digests(results, _BLOCK if which == "chosen" else 16 * _BLOCK)


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="forms, with * and ?")
    parser.add_argument("--record", type=Path, metavar="FILE", help="record results here")
    options = parser.parse_args(arguments)
    forms = fnmatch.filter(FORMS, options.only)
    if not forms:
        print("no such form")
        return 2
    start = time.monotonic()
    gpu = SequenceGpu(forms, options.target)
    arrays: dict[str, Array] = {"device": np.array(gpu.device)}
    number = differences = 0
    for form in forms:
        for which, given in operands(form).items():
            got = gpu.run(form, given)
            places = np.flatnonzero(got != expected(form, given))
            number, differences = number + len(got), differences + len(places)
            for place in places[:1]:
                shown = " ".join(f"{x[place]:#x}" for x in (*given, got, expected(form, given)))
                print(f"  {len(places):7d} {form} {which}: in, out, expected {shown}", flush=True)
            arrays |= kept(form, which, got)
    if options.record:
        save_archive(options.record, arrays)
    seconds = time.monotonic() - start
    print(f"{gpu.device}: {len(forms)} forms, {number} results, {differences} differences; {seconds:.0f} s")
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main())
