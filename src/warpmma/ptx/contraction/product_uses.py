"""The products of a stretch and their uses: rules 1 to 4 of `contraction`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from ..flow import Flow, Register, Uses
from ..text import Function, Immediate, Label, Operand, Position, RegisterRange, Statement, Symbol


class HiddenRegisters:
    """Registers that a rewriting adds: a prefix and a blank begin their names, which no name in a text has.

    Examples
    --------
    >>> hidden = HiddenRegisters("%fused")
    >>> hidden.new("b32"), hidden.new("b32").name
    (Symbol(name='%fused b32 0', scope=0), '%fused b32 1')
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._made: dict[str, int] = {}

    def new(self, kind: str) -> Symbol:
        """Make a register of a class."""
        number = self._made.get(kind, 0)
        self._made[kind] = number + 1
        return Symbol(f"{self._prefix} {kind} {number}", 0)

    def declared(self, function: Function, body: list[Statement | Label]) -> Function:
        """Return a function with another body, which declares them."""
        ranges = tuple(self._range(kind, count, function.position) for kind, count in self._made.items())
        scopes = ((*function.scopes[0], *ranges), *function.scopes[1:])
        return replace(function, body=tuple(body), scopes=scopes)

    def _range(self, kind: str, count: int, position: Position) -> RegisterRange:
        return RegisterRange(f"{self._prefix} {kind} ", kind, 1, count, position)


def is_hidden(name: str) -> bool:
    """Whether a slot has a name that the text does not have."""
    return " " in name


CONTAINERS: Mapping[str, str] = MappingProxyType(
    {"f32": "b32", "f64": "b64", "f16": "b16", "f16x2": "b32", "bf16": "b16", "bf16x2": "b32"}
)
"""Types that are fused, with those of the registers that hold them."""

SIGNS: Mapping[str, int] = MappingProxyType({"f32": 1 << 31, "f64": 1 << 63})
_ONES = {"f32": 0x3F800000, "f64": 0x3FF0000000000000}


@dataclass(slots=True)
class ProductUses:
    """A product while its uses are counted."""

    at: int  # its statement
    type: str
    ftz: bool
    sums: list[tuple[int, int, bool]] = field(default_factory=list)  # statement, operand, and whether negated there
    through: list[int] = field(default_factory=list)  # statements that hand it on
    refused: bool = False  # it has another use
    escapes: bool = False  # a use is outside its stretch
    unwanted: bool = False  # a dead statement reads it

    @property
    def fits(self) -> bool:
        """Whether it may be fused."""
        return not self.refused and not self.escapes


def sum_type(one: Statement) -> str:
    """Type of a sum, or "" (rule 3)."""
    words = one.words
    plain = one.opcode in ("add", "sub") and words.type in CONTAINERS and {"ftz", "sat"}.issuperset(words.modifiers)
    return words.type if plain and len(one.operands) == 3 else ""


def product_type(one: Statement, *, divisions: bool = True) -> str:
    """Type of a product, or "" (rule 1)."""
    words = one.words
    if one.guard is not None or len(one.operands) != 3:
        return ""
    if one.opcode == "mul" and words.type in CONTAINERS and {"ftz"}.issuperset(words.modifiers):
        return words.type
    divided = one.opcode == "div" and words.type == "f32" and not {"full", "approx"}.isdisjoint(words.modifiers)
    return words.type if divisions and divided else ""


def number_of(flow: Flow, operand: Operand) -> Immediate | None:
    """Find the number that an operand is, or that its register always holds."""
    if isinstance(operand, Immediate):
        return operand
    return flow.constants.get((operand.name, operand.scope)) if isinstance(operand, Symbol) else None


def handed_on(flow: Flow, one: Statement) -> tuple[Symbol, bool] | None:
    """Rule 2: the operand that a statement passes on, and whether negated."""
    words = one.words
    if one.guard is not None or not isinstance(one.operands[0] if one.operands else None, Symbol):
        return None
    if one.opcode in ("mov", "neg") and len(one.operands) == 2 and isinstance(one.operands[1], Symbol):
        floating = words.type in CONTAINERS and not words.modifiers
        return (one.operands[1], one.opcode == "neg") if one.opcode == "mov" or floating else None
    if one.opcode == "mul" and product_type(one) in _ONES and "ftz" not in words.modifiers:
        for a, b in ((one.operands[1], one.operands[2]), (one.operands[2], one.operands[1])):
            number = number_of(flow, b)
            if isinstance(a, Symbol) and number is not None and (turned := _unit(number)) is not None:
                return a, turned
    return None


def makes_product(flow: Flow, i: int) -> str:
    """Type of the product that a statement makes, and wholly; "" for none (rule 1)."""
    one, used = flow.statements[i], flow.uses[i]
    type_ = product_type(one)
    if not type_ or not used.whole or len(used.written) != 1:
        return ""
    return "" if all(number_of(flow, operand) is not None for operand in one.operands[1:]) else type_


class StretchProducts:
    """The products of a stretch and their uses; `wanted` are the registers that are live after it, as bits."""

    def __init__(self, found: Flow, stretch: Sequence[int], wanted: int):
        self.flow = found
        self.stretch = stretch
        self.of: dict[Register, tuple[ProductUses, bool]] = {}
        self.found: list[ProductUses] = []
        self.entering: list[tuple[int, int, Register]] = []
        self.escaping: dict[Register, ProductUses] = {}
        self.local: set[int] = set()
        self._written: dict[Register, int] = {}
        self._carried: dict[Register, Register] = {}
        live = wanted
        counted: dict[int, bool] = {}
        for i in reversed(stretch):
            counted[i], live = found.step(i, live)
        for i in stretch:
            self._statement(i, counted[i])
        for register, (product, _) in self.of.items():
            if wanted >> found.numbers[register] & 1:
                product.escapes = True
                if not product.refused:
                    self.escaping[register] = product

    def _statement(self, i: int, counted: bool) -> None:
        one, used = self.flow.statements[i], self.flow.uses[i]
        made = self._made(i, one) if counted else None
        if made is None:
            self._use(i, one, used, counted)
        passed = handed_on(self.flow, one)
        origin = None if passed is None or made else self._origin((passed[0].name, passed[0].scope))
        if not used.whole and counted:  # what was there may stay
            self._refuse(used.written)
        for register in used.written:
            self.of.pop(register, None)
            self._carried.pop(register, None)
            if origin is not None:
                self._carried[register] = origin
        writers = [self._written[register] for register in used.read if register in self._written]
        if counted and passed is None:
            self.local.update(writers)
        self._written.update(dict.fromkeys(used.written, writers[0] if passed and writers else i))
        if made is not None:
            self.of[used.written[0]] = made

    def _origin(self, register: Register) -> Register | None:
        """Find the register that held a value outside the stretch; None for one computed within."""
        return self._carried.get(register, None if register in self._written else register)

    def _refuse(self, registers: Iterable[Register]) -> None:
        for register in registers:
            if register in self.of:
                self.of[register][0].refused = True

    def _made(self, i: int, one: Statement) -> tuple[ProductUses, bool] | None:
        """Find the product that a statement makes or passes on, and whether it is negated."""
        passed = handed_on(self.flow, one)
        if passed is not None:
            source, turned = passed
            held = self.of.get((source.name, source.scope))
            if held is None:
                return None
            held[0].through.append(i)
            return held[0], held[1] != turned
        type_ = makes_product(self.flow, i)
        if not type_:
            return None
        self._refuse(self.flow.uses[i].read)
        product = ProductUses(i, type_, "ftz" in one.words.modifiers)
        self.found.append(product)
        return product, False

    def _use(self, i: int, one: Statement, used: Uses, counted: bool) -> None:
        """Record the uses of products by a statement."""
        guard = [(one.guard.name, one.guard.scope)] if one.guard else []
        if not counted:
            for register in (*used.read, *guard):
                if register in self.of:
                    self.of[register][0].unwanted = True
            return
        type_ = sum_type(one)
        if not type_:
            self._refuse((*used.read, *guard))
            return
        registers = [(x.name, x.scope) if isinstance(x, Symbol) else None for x in one.operands[1:]]
        held = [self.of.get(register) if register else None for register in registers]
        twice = held[0] is not None and held[1] is not None and held[0][0] is held[1][0]
        for index, (source, what) in enumerate(zip(registers, held, strict=True)):
            if what is None:
                origin = None if source is None else self._origin(source)
                if origin is not None:
                    self.entering.append((i, 1 + index, origin))
                continue
            product, turned = what
            if twice or product.type != type_ or product.ftz != ("ftz" in one.words.modifiers):
                product.refused = True
            else:
                product.sums.append((i, 1 + index, turned))


def _unit(number: Immediate) -> bool | None:
    """Whether a number is -1.0 (True) or 1.0 (False), or neither."""
    if number.kind not in _ONES:
        return None
    sign = SIGNS[number.kind]
    return bool(number.value & sign) if number.value & ~sign == _ONES[number.kind] else None
