"""Approximate functions that ptxas computes itself, and a body in which numbers are in their place.

ptxas 13.0 follows these rules, read from its machine code (docs/specification/folding.md):

1. An approximate function of f32 (`arithmetic.folded_reference` says which) of constants (`known_values`) is a number:
   not what the GPU's tables give, but the exact result, rounded.
2. A division by a constant is a multiplication of the dividend by the divisor's reciprocal, which may be fused with a
   sum; where the form scales both operands, the dividend is multiplied by that power of two before.
3. A product of constants is a number, so it is not fused; a constant factor counts as a number (`contraction`).
4. Functions of what a loop counts are not predicted: they are numbers if ptxas unrolls the loop. The other result is
   computed in addition, and compared (`Alternative`).

Source and evidence: docs/specification/folding.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np

from ...arithmetic import SEQUENCES, folded_divisor, folded_reference
from ..contraction import ALTERNATIVE, HiddenRegisters
from ..text import Function, Immediate, Label, Operand, Statement, VectorOf, words_of
from .evaluated import approximate_form, evaluate, evaluates, masked
from .known_values import find_values
from .transfers import Value

FOLDED = "folded"
"""Part of the mnemonic of an approximate function, after a blank: its result if ptxas computes it."""

_PRODUCTS = {"f32": "b32", "f64": "b64"}


@dataclass(frozen=True, slots=True)
class Folding:
    """A body with numbers in the place of functions of constants; `open` are the functions of rule 4."""

    function: Function
    open: tuple[Statement, ...] = ()


def folded(function: Function) -> Folding:
    """Compute what ptxas computes of constants.

    Examples
    --------
    >>> from warpmma.ptx import read
    >>> text = '''.version 8.0 .target sm_80 .entry k(.param .u64 p) {
    ...     .reg .f32 %f<5>; mov.f32 %f1, 0f44840000; rcp.approx.ftz.f32 %f2, %f1; st.global.f32 [p], %f2; }'''
    >>> [one.mnemonic for one in folded(read(text).functions["k"]).function.body]
    ['mov.f32', 'mov.b32', 'st.global.f32']
    """
    statements = {i: one for i, one in enumerate(function.body) if isinstance(one, Statement)}
    wanted = {i for i, one in statements.items() if _rewritten(one.mnemonic, len(one.operands))}
    if not wanted:
        return Folding(function)
    found = _Rewriting(function)
    for i, values in find_values(function, statements, wanted).items():
        found.rewrite(i, statements[i], values)
    return found.done()


def compared(function: Function, open: Sequence[Statement]) -> Function:
    """Return a body, contracted or not, that also computes both results of some functions, and compares them (rule 4).

    These statements come before the function, which may overwrite its operand, and change nothing of the program.
    """
    if not open:
        return function
    hidden, left = HiddenRegisters("%compared"), {one.position: one for one in open}
    body: list[Statement | Label] = []
    for one in function.body:
        function_ = left.pop(one.position, None) if isinstance(one, Statement) else None
        if function_ is not None:
            body += _compared(function_, hidden)
        body.append(one)
    return hidden.declared(function, body)


def _compared(one: Statement, hidden: HiddenRegisters) -> list[Statement]:
    here, other, there = (hidden.new("b32") for _ in range(3))
    beside, operands = replace(one, guard=None, beside=one.mnemonic), one.operands[1:]
    return [
        replace(beside, operands=(here, *operands)),
        replace(beside, mnemonic=str(one.words._replace(part=FOLDED)), operands=(other, *operands)),
        replace(beside, mnemonic="mov.b32", operands=(there, Immediate(1))),
        replace(one, mnemonic=f"{ALTERNATIVE}.f32", operands=(here, VectorOf((other, there))), beside=one.mnemonic),
    ]


@lru_cache(maxsize=4096)
def _rewritten(mnemonic: str, operands: int) -> bool:
    """Whether a statement of so many operands may be rewritten: a function (rule 1 or 2) or a product (rule 3)."""
    return bool(_form(mnemonic, operands)) or _is_product(mnemonic, operands)


def _form(mnemonic: str, operands: int) -> str:
    """Return the name of an approximate function that ptxas may compute; "" of other statements."""
    form = approximate_form(words_of(mnemonic))
    return form if form and operands == 1 + SEQUENCES[form].operands else ""


def _is_product(mnemonic: str, operands: int) -> bool:
    words = words_of(mnemonic)
    return words.opcode == "mul" and words.type in _PRODUCTS and operands == 3 and bool(evaluates(words))


class _Rewriting:
    """The body in which functions of constants are numbers."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._hidden = HiddenRegisters("%folded")
        self._instead: dict[int, list[Statement]] = {}
        self._open: list[Statement] = []

    def rewrite(self, i: int, one: Statement, values: tuple[Value, ...]) -> None:
        """Rewrite a statement, given the values of its operands."""
        form = _form(one.mnemonic, len(one.operands))
        if not form:
            self._product(i, one, values)
        elif all(isinstance(x, int) for x in values):
            result = folded_reference(form, *(masked(cast(int, x), "b32") for x in values))
            if result is not None:
                self._instead[i] = [_number(one, "b32", result)]
            elif SEQUENCES[form].dividend:
                self._divided(i, one, form, cast(int, values[1]))
        elif SEQUENCES[form].dividend and isinstance(values[1], int):
            self._divided(i, one, form, values[1])
        elif not isinstance(values[-1], int) and values[-1].counted:
            self._open.append(one)

    def _divided(self, i: int, one: Statement, form: str, divisor: int) -> None:
        """Rule 2."""
        factors = folded_divisor(form, masked(divisor, "b32"))
        if factors is None:
            return
        before, reciprocal = factors
        mul = "mul.ftz.f32" if SEQUENCES[form].ftz else "mul.f32"
        dividend, added = one.operands[1], list[Statement]()
        if before != 1.0:
            scaled = self._hidden.new("b32")
            scale = Immediate(int(np.float32(before).view(np.uint32)), "f32")
            added.append(replace(one, mnemonic=mul, operands=(scaled, dividend, scale), guard=None))
            dividend = scaled
        product = replace(one, mnemonic=mul, operands=(one.operands[0], dividend, Immediate(reciprocal, "f32")))
        self._instead[i] = [*added, product]

    def _product(self, i: int, one: Statement, values: tuple[Value, ...]) -> None:
        """Rule 3."""
        type_ = one.words.type
        kind = _PRODUCTS[type_]
        if all(isinstance(x, int) for x in values):
            codes = tuple(masked(cast(int, x), kind) for x in values)
            self._instead[i] = [_number(one, kind, evaluate(one.mnemonic, codes))]
            return
        factors: list[Operand] = [
            Immediate(masked(x, kind), "f32" if type_ == "f32" else "f64") if isinstance(x, int) else operand
            for operand, x in zip(one.operands[1:], values, strict=True)
        ]
        if factors != list(one.operands[1:]):
            self._instead[i] = [replace(one, operands=(one.operands[0], *factors))]

    def done(self) -> Folding:
        """Return the function with the new body."""
        if not self._instead:
            return Folding(self._function, tuple(self._open))
        body: list[Statement | Label] = []
        for i, one in enumerate(self._function.body):
            body += self._instead.get(i, [one])
        return Folding(self._hidden.declared(self._function, body), tuple(self._open))


def _number(one: Statement, kind: str, code: int) -> Statement:
    """Return a statement that writes a number, under the guard of another one."""
    number = Immediate(code, "f32" if kind == "b32" else "f64")
    return replace(one, mnemonic=f"mov.{kind}", operands=(one.operands[0], number))
