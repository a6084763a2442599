"""Operands of the special-function unit and of the sequences around it, and how one build of the engine runs them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from arrays import Array

from warpmma.arithmetic import SEQUENCES, SPECIAL_FUNCTIONS, ApproximateForm, SpecialFunction
from warpmma.arithmetic.dispatch import functions, native

FUNCTIONS = [function for function in SPECIAL_FUNCTIONS.values() if function.bits == 32]
ROWS = [row for row in SEQUENCES.values() if row.fmt.bits >= 32]
BUILDS = sorted({level.name for level in native.levels()}) or [""]  # tests of none are skipped


def border_codes(fraction_bits: int) -> Array:
    """Every exponent field and sign with fractions at the borders of segments and of the whole."""
    step = 1 << (fraction_bits - 7)
    near = [k * step + d for k in (0, 1, 2, 31, 32, 63, 64, 65, 126, 127, 128) for d in (-2, -1, 0, 1)]
    fractions = np.unique(np.array(near, np.int64) & ((1 << fraction_bits) - 1))
    upper = np.arange(1 << (32 - fraction_bits), dtype=np.int64)[:, None] << fraction_bits
    return (upper | fractions).astype(np.uint32).ravel()


def run(of: SpecialFunction | ApproximateForm, codes: Sequence[Array], level: str | None = None) -> Array:
    """Compute by one build; of a division the dividend comes first."""
    out = np.full_like(codes[-1], 0xABCDABCD)
    if isinstance(of, SpecialFunction):
        functions.run_function(of, codes[0], out, level)
    else:
        functions.run_sequence(of, list(codes), out, level)
    return out


def operands(of: SpecialFunction | ApproximateForm, words: Array, rng: np.random.Generator) -> list[Array]:
    """Return operands of a function; the dividends of a division are some of the same, words of f64 are the upper."""
    if isinstance(of, ApproximateForm) and of.fmt.bits == 64:
        some = np.array([0, 1, 1 << 31, (1 << 32) - 1, *rng.integers(0, 1 << 32, 12)], np.uint64)
        return [words.astype(np.uint64) << np.uint64(32) | rng.choice(some, len(words))]
    return [rng.permutation(words), words] if isinstance(of, ApproximateForm) and of.dividend else [words]


def label(of: SpecialFunction | ApproximateForm) -> str:
    return of.name if isinstance(of, SpecialFunction) else of.form
