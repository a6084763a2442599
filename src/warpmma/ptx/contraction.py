"""Which multiplications and additions ptxas fuses, and a body in which they are.

PTX lets `mul` and `add` (`sub`) that say no rounding be fused. ptxas 13.0 does it by these rules, as its machine code
for sm_80 and sm_90 showed (docs/specification/contraction.md):

1.  A product is what an unguarded `mul` without rounding and `.sat` gives, of f32, f64, f16, f16x2, bf16 or bf16x2, of
    which not both operands are numbers; and the last multiplication of `div.full` and `div.approx`.
2.  It passes through unguarded `mov`, `mul` by 1.0, and, turning its sign, `neg` without `.ftz` and `mul` by -1.0, and
    goes as bits through registers of integers.
3.  A sum is what `add` or `sub` without rounding gives, of the same type, with `.ftz` if the product has it, guarded or
    not, with `.sat` or not.
4.  A product is fused if every use of it that counts is an operand of a sum in its stretch (`regions`), and none adds
    it to itself: each sum becomes a fused multiply-add, and the product is not computed.
5.  Where both operands of a sum are products that may be fused, one is, and the other is rounded: it is fused nowhere.
    Products with one use go first, in the order of their sums; then those with several. Of two alike the first operand
    is fused.
6.  Not predicted, but listed, are sums of products that have uses outside of their stretches too, where
    ptxas unrolls loops before it fuses, unless `.pragma "nounroll"` stands at their heads: some copies are fused; and
    where the sum itself is used outside of its stretch alone: ptxas may move it there. (Of 100 random kernels with
    branches one had such a sum fused.)
7.  Before all that, products of what is constant are made again where they are used (`remaking`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .regions import Flow, traced
from .registers_used import Register, Uses, registers_of
from .remaking import remade
from .syntax import Function, Immediate, Label, Operand, RegisterRange, Statement, Symbol

__all__ = ["FACTORS", "Contraction", "contracted"]

_TYPES = {"f32": "b32", "f64": "b64", "f16": "b16", "f16x2": "b32", "bf16": "b16", "bf16x2": "b32"}
_ONES = {"f32": 0x3F800000, "f64": 0x3FF0000000000000}
_SIGNS = {"f32": 1 << 31, "f64": 1 << 63}
HIDDEN = "%fused"
"""How registers that a contracted body has besides begin: a blank follows, which no name in a text has."""

FACTORS = "factors"
"""What stands behind the mnemonic of a division, and a blank, where its last two factors are asked for."""


@dataclass(frozen=True, slots=True)
class Contraction:
    """A body as ptxas fuses it.

    Attributes
    ----------
    function : Function
        With `fma` in the place of sums, and without the products that are not computed.
    fused : tuple of (Statement, Statement)
        Each sum, and what stands in its place.
    open : tuple of Statement
        Sums that ptxas may fuse or not (rule 6), as they stand in the text.
    """

    function: Function
    fused: tuple[tuple[Statement, Statement], ...] = ()
    open: tuple[Statement, ...] = ()


@dataclass(slots=True)
class _Product:
    """A product while its uses are counted.

    Attributes
    ----------
    at : int
        Number of its statement.
    type : str
    ftz : bool
    sums : list of (int, int, bool)
        Statement and operand of each use in a sum, and whether it is negated there.
    through : list of int
        Statements that hand it on.
    refused : bool
        Whether it has another use.
    escapes : bool
        Whether a use is outside of its stretch.
    unwanted : bool
        Whether what does not count reads it.
    """

    at: int
    type: str
    ftz: bool
    sums: list[tuple[int, int, bool]] = field(default_factory=list)
    through: list[int] = field(default_factory=list)
    refused: bool = False
    escapes: bool = False
    unwanted: bool = False

    @property
    def fits(self) -> bool:
        """Whether it may be fused."""
        return not self.refused and not self.escapes


def contracted(function: Function, target: str = "sm_90") -> Contraction:
    """Fuse what ptxas fuses in a function.

    Parameters
    ----------
    function : Function
    target : str
        For which ptxas, or the driver, makes machine code.

    Returns
    -------
    Contraction

    Examples
    --------
    >>> from warpmma.ptx import read
    >>> text = '''.version 8.0 .target sm_80 .entry k(.param .u64 p) {
    ...     .reg .f32 %f<5>; mul.f32 %f1, %f2, %f3; add.f32 %f4, %f1, %f2; st.global.f32 [p], %f4; }'''
    >>> [one.mnemonic for one in contracted(read(text).functions["k"]).function.body]
    ['fma.rn.f32', 'st.global.f32']
    """
    if not any(isinstance(one, Statement) and _sum(one) for one in function.body):
        return Contraction(function)
    found = traced(function, target)
    again = remade(function, found)
    if again is not function:
        function, found = again, traced(again, target)
    rewriting = _Rewriting(function, found)
    those = [_Stretch(found, *each) for each in zip(found.stretches, found.wanted, strict=True)]
    for one in those:
        rewriting.fuse(one)
    rewriting.unpredicted(those)
    return rewriting.done()


def _words(one: Statement) -> list[str]:
    return one.mnemonic.split(".")


def _sum(one: Statement) -> str:
    """Type of a sum, or "" (rule 3)."""
    words = _words(one)
    plain = words[0] in ("add", "sub") and words[-1] in _TYPES and set(words[1:-1]) <= {"ftz", "sat"}
    return words[-1] if plain and len(one.operands) == 3 else ""


def _product(one: Statement) -> str:
    """Type of a product, or "" (rule 1)."""
    words = _words(one)
    if one.guard is not None or len(one.operands) != 3:
        return ""
    if words[0] == "mul" and words[-1] in _TYPES and set(words[1:-1]) <= {"ftz"}:
        return words[-1]
    return words[-1] if words[0] == "div" and words[-1] == "f32" and words[1] in ("full", "approx") else ""


class _Stretch:
    """The products of a stretch, and what becomes of them."""

    def __init__(self, found: Flow, stretch: Sequence[int], wanted: set[Register]):
        self.flow = found
        self.stretch = stretch
        self.of: dict[Register, tuple[_Product, bool]] = {}
        self.found: list[_Product] = []
        self.entering: list[tuple[int, Register]] = []
        self.escaping: dict[Register, _Product] = {}
        self.local: set[int] = set()
        self._written: dict[Register, int] = {}
        live = set(wanted)
        counted: dict[int, bool] = {}
        for i in reversed(stretch):
            counted[i] = found.wants(i, live)
            found.step(i, live)
        for i in stretch:
            self._statement(i, counted[i])
        for register, (product, _) in self.of.items():
            if register in wanted:
                product.escapes = True
                if not product.refused:
                    self.escaping[register] = product

    def _statement(self, i: int, counted: bool) -> None:
        one, used = self.flow.statements[i], self.flow.uses[i]
        made = self._made(i, one) if counted else None
        if made is None:
            self._use(i, one, used, counted)
        if not used.whole and counted:  # what was there may stay
            self._refuse(used.written)
        for register in used.written:
            self.of.pop(register, None)
        if counted:
            self.local.update(self._written[register] for register in used.read if register in self._written)
        self._written.update(dict.fromkeys(used.written, i))
        if made is not None:
            self.of[used.written[0]] = made

    def _refuse(self, registers: Iterable[Register]) -> None:
        for register in registers:
            if register in self.of:
                self.of[register][0].refused = True

    def _made(self, i: int, one: Statement) -> tuple[_Product, bool] | None:
        """Find the product that a statement makes or hands on, and whether its sign is turned."""
        passed = self._passed(one)
        if passed is not None:
            source, turned = passed
            held = self.of.get((source.name, source.scope))
            if held is None:
                return None
            held[0].through.append(i)
            return held[0], held[1] != turned
        type_ = _product(one)
        if not type_ or not self.flow.uses[i].whole or len(self.flow.uses[i].written) != 1:
            return None
        if all(self._number(operand) is not None for operand in one.operands[1:]):
            return None
        self._refuse(self.flow.uses[i].read)
        product = _Product(i, type_, "ftz" in _words(one))
        self.found.append(product)
        return product, False

    def _passed(self, one: Statement) -> tuple[Symbol, bool] | None:
        """Rule 2: what a statement hands on, and whether with its sign turned."""
        words = _words(one)
        if one.guard is not None or not isinstance(one.operands[0] if one.operands else None, Symbol):
            return None
        if words[0] in ("mov", "neg") and len(one.operands) == 2 and isinstance(one.operands[1], Symbol):
            floating = words[-1] in _TYPES and len(words) == 2
            return (one.operands[1], words[0] == "neg") if words[0] == "mov" or floating else None
        if words[0] == "mul" and _product(one) in _ONES and "ftz" not in words:
            for a, b in ((one.operands[1], one.operands[2]), (one.operands[2], one.operands[1])):
                number = self._number(b)
                if isinstance(a, Symbol) and number is not None and (turned := _unit(number)) is not None:
                    return a, turned
        return None

    def _number(self, operand: Operand) -> Immediate | None:
        if isinstance(operand, Immediate):
            return operand
        return self.flow.constants.get((operand.name, operand.scope)) if isinstance(operand, Symbol) else None

    def _use(self, i: int, one: Statement, used: Uses, counted: bool) -> None:
        """Count what a statement does with products."""
        guard = [(one.guard.name, one.guard.scope)] if one.guard else []
        if not counted:
            for register in (*used.read, *guard):
                if register in self.of:
                    self.of[register][0].unwanted = True
            return
        type_ = _sum(one)
        if not type_:
            self._refuse((*used.read, *guard))
            return
        registers = [(x.name, x.scope) if isinstance(x, Symbol) else None for x in one.operands[1:]]
        held = [self.of.get(register) if register else None for register in registers]
        twice = held[0] is not None and held[1] is not None and held[0][0] is held[1][0]
        for index, (source, what) in enumerate(zip(registers, held, strict=True)):
            if what is None:
                if source is not None and source not in self._written:
                    self.entering.append((i, source))
                continue
            product, turned = what
            if twice or product.type != type_ or product.ftz != ("ftz" in _words(one)):
                product.refused = True
            else:
                product.sums.append((i, 1 + index, turned))


def _unit(number: Immediate) -> bool | None:
    """Whether a number is -1.0 (True) or 1.0 (False), or neither."""
    if number.kind not in _ONES:
        return None
    sign = _SIGNS[number.kind]
    return bool(number.value & sign) if number.value & ~sign == _ONES[number.kind] else None


_Use = tuple[int, bool, _Product]
"""Which operand of a sum, whether its sign is turned, and the product."""


def _choice(one: _Stretch, order: Mapping[int, int]) -> dict[int, _Use]:
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
    return {i: use for i, use in chosen.items() if use[2].fits}


class _Rewriting:
    """The body in which sums are fused."""

    def __init__(self, function: Function, found: Flow):
        self.function = function
        self.flow = found
        self.instead: dict[int, list[Statement]] = {}
        self.before: dict[int, list[Statement]] = {}
        self.hidden: dict[str, int] = {}
        self.overwritten = {register for i in found.dropped for register in found.uses[i].written}
        self.read_on = {register for i in found.dropped for register in found.uses[i].read}
        self.factors: dict[int, tuple[Operand, Operand]] = {}
        self.copies: dict[tuple[int, int], Operand] = {}
        self.fused: list[tuple[Statement, Statement]] = []
        self.open: list[Statement] = []

    def fuse(self, one: _Stretch) -> None:
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

    def _fuse(self, i: int, operand: int, turned: bool, product: _Product, between: Sequence[int]) -> None:
        """Put a fused multiply-add in the place of a sum."""
        one = self.flow.statements[i]
        words = _words(one)
        a, b = (self._factor(product, n, between) for n in (0, 1))
        addend = one.operands[3 - operand]
        turns = {1: (turned, True), 2: (not turned, False)}[operand] if words[0] == "sub" else (turned, False)
        extra: list[Statement] = []
        a, addend = (
            self._negative(x, one, extra) if negative else x for x, negative in zip((a, addend), turns, strict=True)
        )
        made = replace(one, mnemonic=".".join(["fma", "rn", *words[1:]]), operands=(one.operands[0], a, b, addend))
        self.instead[i] = [*extra, made]
        self.fused.append((one, made))

    def _factor(self, product: _Product, n: int, between: Sequence[int]) -> Operand:
        """Give a factor as it was at the multiplication; what is written over since is copied there."""
        mul = self.flow.statements[product.at]
        if mul.mnemonic.startswith("div"):
            if product.at not in self.factors:
                pair = self._new("b32"), self._new("b32")
                self.factors[product.at] = pair
                split = replace(
                    mul, mnemonic=f"{mul.mnemonic} {FACTORS}", operands=(*pair, *mul.operands[1:]), paired=True
                )
                self.before.setdefault(product.at, []).append(split)
            return self.factors[product.at][n]
        factor = mul.operands[1 + n]
        registers = {*registers_of(factor)}
        kept = registers.isdisjoint(self.overwritten)
        if kept and all(registers.isdisjoint(self.flow.uses[j].written) for j in between):
            return factor
        if (product.at, n) not in self.copies:
            kind = _TYPES[product.type]
            copy = self.copies[product.at, n] = self._new(kind)
            self.before.setdefault(product.at, []).append(replace(mul, mnemonic=f"mov.{kind}", operands=(copy, factor)))
        return self.copies[product.at, n]

    def _negative(self, operand: Operand, one: Statement, extra: list[Statement]) -> Operand:
        if isinstance(operand, Immediate) and operand.kind in _SIGNS:
            return replace(operand, value=operand.value ^ _SIGNS[operand.kind])
        type_ = _words(one)[-1]
        hidden = self._new(_TYPES[type_])
        extra.append(replace(one, mnemonic=f"neg.{type_}", operands=(hidden, operand), guard=None, negated=False))
        return hidden

    def _new(self, kind: str) -> Symbol:
        number = self.hidden.get(kind, 0)
        self.hidden[kind] = number + 1
        return Symbol(f"{HIDDEN} {kind} {number}", 0)

    def unpredicted(self, those: Sequence[_Stretch]) -> None:
        """Rule 6."""
        crossing: dict[Register, list[tuple[int, _Product]]] = {}
        for n, one in enumerate(those):
            for register, product in one.escaping.items():
                crossing.setdefault(register, []).append((n, product))
                if n in self.flow.joined[n]:
                    self._leave_open(i for i, _, _ in product.sums)
            for product in one.found:
                self._leave_open(i for i, _, _ in product.sums if i not in one.local)
        for n, one in enumerate(those):
            for i, register in one.entering:
                for m, product in crossing.get(register, ()):
                    if n in self.flow.joined[m]:
                        self._leave_open((i, *(j for j, _, _ in product.sums)))
                if i not in one.local and any(m != n for m, _ in crossing.get(register, ())):
                    self._leave_open((i,))

    def _leave_open(self, sums: Iterable[int]) -> None:
        self.open += [self.flow.statements[i] for i in sums if i not in self.instead]

    def done(self) -> Contraction:
        body: list[Statement | Label] = []
        for i, one in enumerate(self.function.body):
            body += self.before.get(i, ())
            body += self.instead.get(i, [one])
        hidden = tuple(
            RegisterRange(f"{HIDDEN} {kind} ", kind, 1, n, self.function.position) for kind, n in self.hidden.items()
        )
        scopes = ((*self.function.scopes[0], *hidden), *self.function.scopes[1:])
        function = replace(self.function, body=tuple(body), scopes=scopes) if self.fused else self.function
        seen = {id(one): one for one in self.open}
        return Contraction(function, tuple(self.fused), tuple(seen.values()))
