"""Predict which multiplications and additions ptxas fuses, and rewrite a body with the fused instructions.

PTX allows `mul` and `add` (`sub`) without a rounding modifier to be fused. ptxas 13.0 follows these rules, derived from
its machine code for sm_80 and sm_90 (docs/specification/contraction.md):

1.  A product is the result of an unguarded `mul` without rounding and `.sat`, of f32, f64, f16, f16x2, bf16 or bf16x2,
    unless both operands are immediates; and of the last multiplication of `div.full` and `div.approx`.
2.  It passes through unguarded `mov` and `mul` by 1.0, through `neg` without `.ftz` and `mul` by -1.0, which change its
    sign, and as bits through integer registers.
3.  A sum is the result of `add` or `sub` without rounding, of the same type, with `.ftz` if the product has it, guarded
    or not, with `.sat` or not.
4.  A product is fused if every live use of it is an operand of a sum in its region (`fusion_regions`), and no sum adds
    it to itself: each sum becomes a fused multiply-add, and the product is not computed.
5.  If both operands of a sum are products that may be fused, one is fused; the other is rounded and is not fused
    elsewhere. Products with one use are fused first, in the order of their sums; then, in the same order, products with
    several uses. If both operands have equal priority, the first is fused.
6.  Two kinds of sums are not predicted. The first are sums of products that are also used outside their stretches, if
    ptxas unrolls a loop before it fuses: some copies are fused. `.pragma "nounroll"` at the head of the loop prevents
    this. The second are sums that are used, directly or through instructions that pass them on, only outside their
    stretch: ptxas may move or recompute them there. (Of 100 random kernels with branches two had such a sum fused.)
    The other possible results are computed in addition (`alternatives`).
7.  Before these rules apply, products of constants are rematerialized at their uses (`rematerialization`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ..flow import Flow, Register, registers_of, traced
from ..text import Function, Label, Mnemonic, Operand, Statement
from .alternatives import Alternatives, Doubts, factors_of, negative
from .product_uses import CONTAINERS, HiddenRegisters, ProductUses, StretchProducts, product_type, sum_type
from .rematerialization import remade


@dataclass(frozen=True, slots=True)
class Contraction:
    """A body as ptxas fuses it: with `fma` in place of sums, and without the products that are not computed.

    `fused` has each sum and its replacement, `open` the sums for which the behaviour of ptxas is unknown (rule 6): they
    are unchanged, and the function compares each with the other possible results (`alternatives`).
    """

    function: Function
    fused: tuple[tuple[Statement, Statement], ...] = ()
    open: tuple[Statement, ...] = ()


def contracted(function: Function, target: str = "sm_90") -> Contraction:
    """Fuse what ptxas, or the driver, fuses in a function for a target.

    Examples
    --------
    >>> from warpmma.ptx import read
    >>> text = '''.version 8.0 .target sm_80 .entry k(.param .u64 p) {
    ...     .reg .f32 %f<5>; mul.f32 %f1, %f2, %f3; add.f32 %f4, %f1, %f2; st.global.f32 [p], %f4; }'''
    >>> [one.mnemonic for one in contracted(read(text).functions["k"]).function.body]
    ['fma.rn.f32', 'st.global.f32']
    """
    statements = [one for one in function.body if isinstance(one, Statement)]
    if not (any(map(sum_type, statements)) and any(map(product_type, statements))):
        return Contraction(function)
    found = traced(function, target)
    again = remade(function, found)
    if again is not function:
        function, found = again, traced(again, target)
    rewriting = _Rewriting(function, found)
    those = [StretchProducts(found, *each) for each in zip(found.stretches, found.wanted, strict=True)]
    for one in those:
        rewriting.fuse(one)
    rewriting.unpredicted(those)
    return rewriting.done()


_Use = tuple[int, bool, ProductUses]
"""Which operand of a sum, whether its sign is turned, and the product."""


def _choice(one: StretchProducts, order: Mapping[int, int]) -> dict[int, _Use]:
    """Choose a product for each sum that is fused (rule 5)."""
    by_sum: dict[int, list[_Use]] = {}
    for product in one.found:
        for i, operand, turned in product.sums:
            by_sum.setdefault(i, []).append((operand, turned, product))
    sums = {i: sorted(by_sum[i], key=lambda use: use[0]) for i in sorted(by_sum, key=order.__getitem__)}
    chosen: dict[int, _Use] = {}
    for alone in (True, False):
        for i, those in sums.items():
            fit = [use for use in those if use[2].fits and (len(use[2].sums) == 1 or not alone)]
            if fit and i not in chosen:
                for _, _, other in those:
                    other.refused = other.refused or other is not fit[0][2]
                chosen[i] = fit[0]
    return chosen


class _Rewriting:
    """The body in which sums are fused."""

    def __init__(self, function: Function, found: Flow):
        self.function = function
        self.flow = found
        self.instead: dict[int, list[Statement]] = {}
        self.before: dict[int, list[Statement]] = {}
        self.hidden = HiddenRegisters("%fused")
        self.overwritten = {register for i in found.dropped for register in found.uses[i].written}
        self.read_on = {register for i in found.dropped for register in found.uses[i].read}
        self.factors: dict[int, tuple[Operand, Operand]] = {}
        self.copies: dict[tuple[int, int], Operand] = {}
        self.fused: dict[int, Statement] = {}
        self.doubts = Doubts()

    def fuse(self, one: StretchProducts) -> None:
        """Rules 4 and 5."""
        order = {i: n for n, i in enumerate(one.stretch)}
        left = {id(product): len(product.sums) for product in one.found}
        for i, use in _choice(one, order).items():
            left[id(use[2])] -= 1
            self._fuse(i, *use, one.stretch[order[use[2].at] : order[i]])
        for product in one.found:
            gone = (product.at, *product.through)
            read = any(not self.read_on.isdisjoint(self.flow.uses[i].written) for i in gone)
            if product.sums and not left[id(product)] and not product.unwanted and not read:
                for i in gone:
                    self.instead.setdefault(i, [])

    def _fuse(self, i: int, operand: int, turned: bool, product: ProductUses, between: Sequence[int]) -> None:
        """Put a fused multiply-add in the place of a sum."""
        one = self.flow.statements[i]
        a, b = (self._factor(product, n, between) for n in (0, 1))
        addend = one.operands[3 - operand]
        turns = {1: (turned, True), 2: (not turned, False)}[operand] if one.opcode == "sub" else (turned, False)
        extra: list[Statement] = []
        a, addend = (
            negative(x, one, extra, self.hidden) if turn else x for x, turn in zip((a, addend), turns, strict=True)
        )
        fma = Mnemonic("fma", ("rn", *one.words.qualifiers))
        made = replace(one, mnemonic=str(fma), operands=(one.operands[0], a, b, addend))
        self.instead[i] = [*extra, made]
        self.fused[i] = made

    def _factor(self, product: ProductUses, n: int, between: Sequence[int]) -> Operand:
        """Return a factor as it was at the multiplication; one that is overwritten since is copied there."""
        mul = self.flow.statements[product.at]
        if mul.opcode == "div":
            if product.at not in self.factors:
                pair = self.hidden.new("b32"), self.hidden.new("b32")
                self.factors[product.at] = pair
                split = replace(mul, mnemonic=factors_of(mul), operands=(*pair, *mul.operands[1:]), paired=True)
                self.before.setdefault(product.at, []).append(split)
            return self.factors[product.at][n]
        factor = mul.operands[1 + n]
        registers = {*registers_of(factor)}
        kept = registers.isdisjoint(self.overwritten)
        if kept and all(registers.isdisjoint(self.flow.uses[j].written) for j in between):
            return factor
        if (product.at, n) not in self.copies:
            kind = CONTAINERS[product.type]
            copy = self.copies[product.at, n] = self.hidden.new(kind)
            self.before.setdefault(product.at, []).append(replace(mul, mnemonic=f"mov.{kind}", operands=(copy, factor)))
        return self.copies[product.at, n]

    def unpredicted(self, those: Sequence[StretchProducts]) -> None:
        """Rule 6."""
        crossing: dict[Register, list[tuple[int, ProductUses]]] = {}
        for n, one in enumerate(those):
            for register, product in one.escaping.items():
                crossing.setdefault(register, []).append((n, product))
                if n in self.flow.joined[n]:
                    self._doubt_sums(product)
            for product in one.found:
                self._doubt_sums(product, set(one.local))
        for n, one in enumerate(those):
            for i, operand, register in one.entering:
                for m, product in crossing.get(register, ()):
                    if n in self.flow.joined[m]:
                        self._doubt_sums(product)
                    if n in self.flow.joined[m] or (i not in one.local and m != n and i not in self.fused):
                        self._doubt(i, operand, product)

    def _doubt_sums(self, product: ProductUses, local: Collection[int] = ()) -> None:
        for i, operand, _ in product.sums:
            if i not in self.fused and i not in local:
                self._doubt(i, operand, product)

    def _doubt(self, i: int, operand: int, product: ProductUses) -> None:
        if product.type == sum_type(self.flow.statements[i]):
            self.doubts.add(i, operand, product.at)

    def done(self) -> Contraction:
        if not self.fused and not self.doubts.sums:
            return Contraction(self.function)
        beside_hidden = HiddenRegisters("%beside")
        beside = Alternatives(self.flow, self.doubts, self.fused, beside_hidden)
        body: list[Statement | Label] = []
        for i, one in enumerate(self.function.body):
            body += beside.before.get(i, ())
            body += self.before.get(i, ())
            body += self.instead.get(i, [one])
            body += beside.after.get(i, ())
        function = beside_hidden.declared(self.hidden.declared(self.function, body), body)
        statements = self.flow.statements
        fused = tuple((statements[i], made) for i, made in self.fused.items())
        return Contraction(function, fused, tuple(statements[i] for i in sorted(self.doubts.sums)))
