"""The results of sums if ptxas fused them, computed beside the actual ones: rule 6 of `contraction`, at run time.

The rules:

1. A register that may hold such a product at such a sum has hidden ones beside it: the product's two factors, and
   whether it holds one that may be fused there. Every statement that writes the register writes these too, by its own
   guard; what hands a product on (rule 2 of `contraction`) hands them on.
2. Before the sum each fused multiply-add that it may be is computed of these, and behind it compared with the sum, bit
   for bit, in the lanes that execute it and hold a product.
3. Where the sum is fused with its other product, that one is rounded instead: one product of a sum is fused.
4. All of that runs beside the program (`Statement.beside`): it is not checked for hazards, and not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..flow import Flow, Register
from ..text import Immediate, Mnemonic, Operand, Statement, Symbol, VectorOf
from .product_uses import CONTAINERS, SIGNS, HiddenRegisters, handed_on, makes_product, sum_type

ALTERNATIVE = "alternative"
"""Opcode of a comparison: the sum, and vectors of another result and whether there is one."""

FACTORS = "factors"
"""Part of the mnemonic of a division, after a blank, that requests its last two factors."""


@dataclass
class Doubts:
    """Sums that ptxas may fuse or not, with the operands whose products may be fused, and the statements of these."""

    sums: dict[int, set[int]] = field(default_factory=dict)
    products: set[int] = field(default_factory=set)

    def add(self, i: int, operand: int, product: int) -> None:
        """Record a product whose fusion into a sum is in doubt."""
        self.sums.setdefault(i, set()).add(operand)
        self.products.add(product)


@dataclass(frozen=True)
class _Shadow:
    """Kept beside a register: two factors, and whether there are any."""

    factors: tuple[Symbol, Symbol]
    there: Symbol


_Kept = tuple[Register, str, bool]
"""A register, and of what type, and whether with `.ftz`, the products are that it may hold."""


class Alternatives:
    """The statements that are added before and after those of a body; `fused` has sums fused with another product."""

    def __init__(self, flow: Flow, doubts: Doubts, fused: Mapping[int, Statement], hidden: HiddenRegisters) -> None:
        self.before: dict[int, list[Statement]] = {}
        self.after: dict[int, list[Statement]] = {}
        self._flow, self._doubts, self._hidden = flow, doubts, hidden
        self._shadows: dict[_Kept, _Shadow] = {}
        self._writers: dict[Register, list[int]] = {}
        for i, used in flow.uses.items():
            for register in used.written:
                self._writers.setdefault(register, []).append(i)
        for i, operands in sorted(doubts.sums.items()):
            self._compare(i, sorted(operands), fused.get(i))

    def _shadow(self, kept: _Kept) -> _Shadow:
        """Rule 1."""
        if (made := self._shadows.get(kept)) is None:
            a, b, there = (self._hidden.new(kind) for kind in (CONTAINERS[kept[1]], CONTAINERS[kept[1]], "b32"))
            made = self._shadows[kept] = _Shadow((a, b), there)
            for i in self._writers.get(kept[0], ()):
                self._write(i, kept, made)
        return made

    def _write(self, i: int, kept: _Kept, shadow: _Shadow) -> None:
        one, (register, type_, ftz) = self._flow.statements[i], kept
        kind = CONTAINERS[type_]
        passed = handed_on(self._flow, one)
        if passed is not None:
            source = (passed[0].name, passed[0].scope)
            if source == register and not passed[1]:
                return
            if source in self._writers:
                held = self._shadow((source, type_, ftz))
                self._beside(i, one, f"{'neg' if passed[1] else 'mov'}.{type_ if passed[1] else kind}",
                             shadow.factors[0], held.factors[0])  # fmt: skip
                self._beside(i, one, f"mov.{kind}", shadow.factors[1], held.factors[1])
                self._beside(i, one, "mov.b32", shadow.there, held.there)
                return
        fits = makes_product(self._flow, i) == type_ and ("ftz" in one.words.modifiers) == ftz
        if not fits or i not in self._doubts.products:
            self._beside(i, one, "mov.b32", shadow.there, Immediate(0))
            return
        if one.opcode == "div":
            self._beside(i, one, factors_of(one), *shadow.factors, *one.operands[1:])
        else:
            for factor, operand in zip(shadow.factors, one.operands[1:], strict=True):
                self._beside(i, one, f"mov.{kind}", factor, operand)
        self._beside(i, one, "mov.b32", shadow.there, Immediate(1))

    def _beside(self, i: int, one: Statement, mnemonic: str, *operands: Operand) -> None:
        where = self.after if i in self._doubts.sums else self.before  # a sum is compared before it is written over
        where.setdefault(i, []).append(_beside(one, mnemonic, *operands))

    def _compare(self, i: int, operands: list[int], instead: Statement | None) -> None:
        """Rules 2 and 3."""
        one = self._flow.statements[i]
        qualifiers, type_ = one.words.qualifiers, sum_type(one)
        others: list[Operand] = []
        for n in operands:
            operand = one.operands[n]
            if not isinstance(operand, Symbol):
                continue
            shadow = self._shadow(((operand.name, operand.scope), type_, "ftz" in qualifiers))
            a, addend = shadow.factors[0], one.operands[3 - n]
            extra: list[Statement] = []
            if instead is not None:
                addend = self._hidden.new(CONTAINERS[type_])
                mul = Mnemonic("mul", tuple(x for x in qualifiers if x != "sat"))
                extra.append(_beside(one, str(mul), addend, *instead.operands[1:3]))
            elif one.opcode == "sub" and n == 1:
                addend = negative(addend, one, extra, self._hidden)
            factor = negative(a, one, extra, self._hidden) if one.opcode == "sub" and n == 2 else a
            other = self._hidden.new(CONTAINERS[type_])
            fma = Mnemonic("fma", ("rn", *qualifiers))
            extra.append(_beside(one, str(fma), other, factor, shadow.factors[1], addend))
            self.before.setdefault(i, []).extend(replace(x, guard=None, beside=one.mnemonic) for x in extra)
            others.append(VectorOf((other, shadow.there)))
        if others:
            compare = _beside(one, f"{ALTERNATIVE}.{type_}", one.operands[0], *others)
            self.after.setdefault(i, []).insert(0, compare)


def _beside(one: Statement, mnemonic: str, *operands: Operand) -> Statement:
    """Make a statement that runs beside another, under its guard."""
    made = replace(one, mnemonic=mnemonic, operands=operands, beside=one.mnemonic)
    return replace(made, paired=made.words.part == FACTORS)


def factors_of(division: Statement) -> str:
    """Return the mnemonic of the last two factors of a division."""
    return str(division.words._replace(part=FACTORS))


def negative(operand: Operand, one: Statement, extra: list[Statement], hidden: HiddenRegisters) -> Operand:
    """Return an operand of a sum with its sign turned; add what turns it."""
    if isinstance(operand, Immediate) and operand.kind in SIGNS:
        return replace(operand, value=operand.value ^ SIGNS[operand.kind])
    type_ = one.words.type
    turned = hidden.new(CONTAINERS[type_])
    extra.append(replace(one, mnemonic=f"neg.{type_}", operands=(turned, operand), guard=None, negated=False))
    return turned
