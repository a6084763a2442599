"""Operands in five kinds, always the same for the same arguments.

* random: uniformly random codes of finite numbers. With bf16 sums soon overflow, and infinities and NaN go on.
* normal: the standard normal distribution.
* model-like: A as activations of a language model, normal values in channels (columns) whose sizes are lognormal, and
  every 500th channel or so 100 to 1000 times as large; B as weights, normal with a deviation of 0.02.
* denormal-heavy: half of the values normally distributed, the others subnormal, of random sign and fraction.
* special-heavy: normal, but one value in 16 is infinite or NaN, one in 16 a zero of either sign, one in 16 the largest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import warpmma as wm
from warpmma.formats import FORMATS, FloatFormat, Format
from warpmma.layouts import Operand
from warpmma.scaling import pack_scales
from warpmma.sparsity import legal_codes, pack_metadata, pattern

Array = npt.NDArray[Any]

DISTINCT = 4096
KINDS = ("random", "normal", "model-like", "denormal-heavy", "special-heavy")


def codes(kind: str, fmt: FloatFormat, shape: tuple[int, ...], *, operand: Operand, seed: int = 0) -> Array:
    """Codes of a matrix `[..., rows, columns]` of one kind."""
    rng = np.random.default_rng([seed, KINDS.index(kind), "ABCD".index(operand)])
    if kind == "random":
        found = rng.integers(0, fmt.max_code + 1, shape, dtype=np.uint32)
        return (found | np.where(rng.integers(0, 2, shape, dtype=np.uint8), fmt.sign_bit, 0)).astype(fmt.code_dtype)
    values = rng.standard_normal(shape, np.float64 if fmt.bits > 32 else np.float32)
    if kind == "model-like" and operand == "A":
        size = np.exp(0.5 * rng.standard_normal(shape[-1]))
        size[rng.choice(shape[-1], max(1, shape[-1] // 500), replace=False)] *= 10 ** rng.uniform(2, 3)
        values *= size.astype(values.dtype)
    elif kind == "model-like" and operand == "B":
        values *= values.dtype.type(0.02)
    found = fmt.encode(values, "rn", overflow="saturate")
    which = rng.integers(0, 16, shape, dtype=np.uint8)
    if kind == "denormal-heavy":
        subnormal = rng.integers(1, 1 << fmt.fraction_bits, shape, dtype=np.uint32).astype(fmt.code_dtype)
        signs = np.where(which & 1, fmt.sign_bit, 0).astype(fmt.code_dtype)
        found = np.where(which < 8, subnormal | signs, found)
    elif kind == "special-heavy":
        specials = [x for x in (fmt.inf_code, fmt.nan_code) if x is not None]
        for number, choices in enumerate((specials, [0], [fmt.max_code])):
            both = np.array([*choices, *(x | fmt.sign_bit for x in choices)], fmt.code_dtype)
            found = np.where(which == number, rng.choice(both, shape), found)
    return found


def matrices(kind: str, name: str, m: int, n: int, k: int) -> tuple[Array, Array]:
    """A and B of a product, as arrays of the format's dtype."""
    fmt = _float(FORMATS[name])
    return (fmt.array(codes(kind, fmt, (m, k), operand="A")), fmt.array(codes(kind, fmt, (k, n), operand="B")))


def registers(mnemonic: str, warps: int, kind: str = "normal") -> tuple[tuple[Array, ...], dict[str, Any]]:
    """Registers of A, B and C for so many warps, and what else `execute` takes; integers are random bits.

    Every 4,096 warps they are the same again: making them takes much longer than executing them.
    """
    if warps > DISTINCT:
        few, extra = registers(mnemonic, DISTINCT, kind)
        return tuple(_repeated(x, warps) for x in few), {name: _repeated(x, warps) for name, x in extra.items()}
    i = wm.parse(mnemonic)
    rng = np.random.default_rng(warps)
    operands = []
    names: tuple[Operand, ...] = ("A", "B", "C")
    for name in names:
        layout, fmt = i.layout(name), i.format(name)
        if not isinstance(fmt, FloatFormat):
            operands.append(rng.integers(0, 2**32, (warps, layout.registers, 32), dtype=np.uint32))
        else:
            # Accumulators are what sums of any kind become: about normal.
            given = codes("normal" if name == "C" else kind, fmt, (warps, *layout.shape), operand=name)
            operands.append(wm.load(i, name, given))
    extra = {}
    if i.sparse:
        groups = i.k // pattern(i).width
        nibbles = rng.choice(np.array(sorted(legal_codes(i)), np.uint8), (warps, i.m, groups))
        extra["metadata"] = pack_metadata(np.stack([nibbles & 3, nibbles >> 2], axis=-1), i)
    if i.block_scale:
        s, one = i.scales_per_row, 127 if i.stype == "ue8m0" else 0x38
        of_a, of_b = (rng.integers(one - 3, one + 4, (warps, *shape), np.uint8) for shape in ((i.m, s), (s, i.n)))
        extra |= {"scale_a": pack_scales(of_a, i, "A"), "scale_b": pack_scales(of_b, i, "B")}
    return tuple(operands), extra


def _repeated(x: Array, warps: int) -> Array:
    return np.resize(x, (warps, *x.shape[1:]))


def _float(fmt: Format) -> FloatFormat:
    assert isinstance(fmt, FloatFormat)
    return fmt
