"""Resolver of statements, as steps take them.

The rules:

1. Only the class of a register is checked, which is its width: `mov.b32 %r, %f` is legal. An instruction of another
   width refuses it, except those for which PTX allows wider registers (`ld`, `st`, `cvt`).
2. A number is a value of the operand's type. Integers keep their low bits. Decimal floats are f64, and are
   rounded to nearest where an f32 is expected; `0f` and `0d` are bits, or values where the other type is expected. As
   in ptxas, f32 and f64 accept floats, integers accept integers, bits accept integers and floats of their width, and
   other float types do not accept numbers.
3. The name of a variable is its address, in its state space; that of a function, its address. In the brackets of an
   instruction without a state space it is the generic address, and ptxas refuses constants and parameters there. It may
   be used without brackets if the signature allows it.
4. A register plus a number, outside of brackets, is an operand that ptxas accepts, and PTX does not define: their sum
   in the register's width. It is accepted for an integer, or bits, of that width, not for a float or predicate.
5. A special register is read by `mov`, and by `cvt` between integers; `WARP_SZ` is 32. A
   register of 128 bits is two of 64, low first.
"""

from __future__ import annotations

from typing import Protocol

from ..._text import counted
from ...errors import PtxError
from ...isa import OperandSpec, PtxInstruction
from ...machine import Constant, Frame, Inverted, ReadOnly, SharedAddress, Slot, StepOperand, Sum, special_kind
from ...operations import WINDOWS, RegisterType
from ...registers import LANES
from ..storage import Declared, Slots, register_class
from ..text import (
    Element,
    Function,
    Immediate,
    Module,
    Negation,
    Operand,
    Place,
    RegisterRange,
    Selection,
    Statement,
    Symbol,
    Variable,
    VectorOf,
    number,
)

_APART = {"global", "shared", "const", "local"}
"""State spaces of variables; what is in one is in no other. Parameters lie in different ones."""


class Places(Protocol):
    """Where variables and functions lie: see `symbols`."""

    def address(self, key: tuple[str, int, str]) -> tuple[str, int] | None:
        """Space and address, in it, of a variable; of a function, ("func", address); None for others."""


BoundSignature = tuple[PtxInstruction, tuple[tuple[OperandSpec, int | None], ...]]
"""An instruction, and which of the operands that are written each of its signature is; None for none."""


class Resolver:
    """Resolver of the statements of one function."""

    def __init__(self, module: Module, function: Function, slots: Slots, places: Places) -> None:
        self._module, self._function, self._slots, self._places = module, function, slots, places
        self.declared = Declared(function)
        self._made: dict[tuple[str, int, int], Slot] = {}
        self._single: dict[tuple[str, int], Slot] = {}  # registers that are one, by their own names
        self.bound: dict[tuple[int, bool, int], BoundSignature] = {}
        self.frame: dict[tuple[str, int], int] = {}

    def fail(self, statement: Statement, text: str) -> PtxError:
        """Make an error at a statement."""
        return self._module.error_at(statement, f"{statement.mnemonic}: {text}")

    # Registers

    def slot(self, name: str, kind: RegisterType) -> Slot:
        """Return a register that the text does not name: the carry, say."""
        key = (name, -1, 0)
        if key not in self._made:
            self._made[key] = Slot(self._slots.new(kind, name))
        return self._made[key]

    def register(self, x: Operand, statement: Statement) -> Slot | None:
        """Return the slot of a register; None for what is none."""
        symbol, index = (x.vector, x.index) if isinstance(x, Element) else (x, 0)
        if not isinstance(symbol, Symbol):
            return None
        key = (symbol.name, symbol.scope, index)
        if (made := self._made.get(key)) is not None:
            return made
        found = self.declared.find(symbol)
        if not isinstance(found, RegisterRange):
            return None
        count = _elements(found)
        if isinstance(x, Element) and index >= count:
            raise self.fail(statement, f"{symbol.name} has {counted(count, 'element')}, and no {'xyzw'[index]}")
        if not isinstance(x, Element) and count > 1:
            what = "128 bits" if found.type == "b128" else f"a vector of {count}"
            raise self.fail(statement, f"{symbol.name} is {what}; expected one register")
        suffix = f".{'xyzw'[index]}" if isinstance(x, Element) else ""
        made = self._made[key] = Slot(self._slots.new(register_class(found.type), symbol.name + suffix))
        if count == 1 and not isinstance(x, Element):
            self._single[symbol.name, symbol.scope] = made
        return made

    def fitting(self, x: Operand | None, spec: OperandSpec, statement: Statement) -> Slot | None:
        """Return the slot of one register, of the very class that an operand has.

        None for everything else, which is to be checked.
        """
        if not isinstance(x, Symbol):
            return None
        slot = self._single.get((x.name, x.scope))
        if slot is None:  # it is named for the first time
            found = self.declared.find(x)
            if not isinstance(found, RegisterRange) or _elements(found) > 1:
                return None
            slot = self.register(x, statement)
        if slot is None:
            return None
        fits = self._slots.kinds[slot.number] == spec.kind and len(spec.names) == 1
        return slot if fits and spec.braces != "always" and spec.sink != "only" else None

    def kind(self, slot: Slot) -> RegisterType:
        """Class of a register."""
        return self._slots.kinds[slot.number]

    def items(self, x: Operand) -> list[Operand]:
        """List what a vector holds: `{a, b}`, a vector register, or one of 128 bits; of one operand itself."""
        if isinstance(x, VectorOf):
            return list(x.items)
        found = self.declared.find(x) if isinstance(x, Symbol) else None
        if isinstance(x, Symbol) and isinstance(found, RegisterRange) and (count := _elements(found)) > 1:
            return [Element(x, i) for i in range(count)]
        return [x]

    def is_vector(self, x: Operand) -> bool:
        """Whether an operand is in braces, or is a vector register."""
        return isinstance(x, VectorOf) or (isinstance(x, Symbol) and len(self.items(x)) > 1 and not self._long(x))

    def _long(self, x: Symbol) -> bool:
        """Whether a symbol is a register of 128 bits, which `items` gives as two of 64."""
        found = self.declared.find(x)
        return isinstance(found, RegisterRange) and found.type == "b128"

    def target(self, x: Operand, spec: OperandSpec, statement: Statement, *, inside: bool = False) -> Slot | None:
        """Return the slot of a result, which may be inside braces; None for `_`."""
        if isinstance(x, Symbol) and x.name == "_":
            if spec.sink not in ("alone", "only", "element" if inside else "alone"):
                raise self.fail(statement, "_ stands where a register is expected: its result cannot be discarded")
            return None
        if spec.sink == "only":
            raise self.fail(
                statement, f"{written(x)} stands where _ is expected: nothing is returned from another block"
            )
        slot = self.register(x, statement)
        if slot is None:
            raise self.fail(statement, f"{written(x)} is not a register, and a result goes there")
        self._check(x, self.kind(slot), spec.kind, statement, spec.wider)
        return slot

    def source(self, x: Operand, spec: OperandSpec, statement: Statement) -> StepOperand:
        """Return a register or a number that is read."""
        kind, type_ = spec.kind, spec.type
        if isinstance(x, Immediate):
            return self._number(x, spec, statement)
        slot = self.register(x.operand if isinstance(x, Negation) else x, statement)
        if slot is not None and self.kind(slot) == spec.other:
            kind = type_ = spec.other
        if isinstance(x, Negation):
            return self._negated(x, kind, statement)
        if slot is not None:
            if kind == "imm":
                raise self.fail(statement, f"{written(x)} is a register; expected an immediate")
            self._check(x, self.kind(slot), kind, statement, spec.wider)
            return slot
        if isinstance(x, Symbol) and x.name[:1] == "%" and (own := special_kind(x.name[1:])) is not None:
            if not spec.special:
                raise self.fail(
                    statement, f"{written(x)} is a special register; expected a register, into which mov puts it"
                )
            if (own, kind) != ("b32", "b16"):  # PTX reads the lower half, too
                self._check(x, own, kind, statement, wider=False)
            return ReadOnly(x.name[1:], kind)
        if isinstance(x, Symbol) and x.name == "WARP_SZ":
            return Constant(LANES, kind)
        if isinstance(x, VectorOf):
            raise self.fail(statement, f"{written(x)} is a vector; expected one register")
        if isinstance(x, Symbol) and x.name == "_":
            raise self.fail(statement, "_ cannot be read")
        if isinstance(x, Place) and x.form == "address":
            raise self.fail(statement, f"{written(x)} is an address in brackets; expected a register or a number")
        if isinstance(x, Place) and x.base is not None and (slot := self.register(x.base, statement)) is not None:
            self._check_number(x, spec, statement)
            return self._sum(x, slot, kind, type_, statement)
        address = self._address_of(x, kind, statement)
        if not spec.symbol or type_[0] not in "bsu":
            raise self.fail(statement, f"{written(x)} is an address; expected a register, into which mov puts it")
        return address

    def _sum(self, x: Place, slot: Slot, kind: RegisterType, type_: str, statement: Statement) -> StepOperand:
        """Return a register plus a number (rule 4)."""
        if kind in ("pred", "imm") or type_[0] not in "bsu":
            raise self.fail(statement, f"{written(x)} is a sum; expected a register of {type_}")
        self._check(x, self.kind(slot), kind, statement, wider=False)
        return Sum(slot, x.offset) if x.offset else slot

    def _number(self, x: Immediate, spec: OperandSpec, statement: Statement) -> StepOperand:
        """Return a number of the text (rule 2)."""
        self._check_number(x, spec, statement)
        kind: RegisterType = "imm" if spec.literal else spec.kind
        if kind == "imm" and x.kind not in "su":
            raise self.fail(statement, f"{written(x)} stands where an immediate is expected, an integer")
        if wanted := _misfit(x, spec.type, kind):
            raise self.fail(statement, f"{written(x)} stands where {wanted}")
        if spec.values and x.value not in spec.values:
            raise self.fail(statement, f"{spec} is {x.value}; expected {spec.allowed}")
        return Constant(number(x, spec.type, kind), kind)

    def _check_number(self, x: Operand, spec: OperandSpec, statement: Statement) -> None:
        if not spec.number:
            raise self.fail(statement, f"{written(x)} stands where a register is expected")

    def _negated(self, x: Negation, kind: RegisterType, statement: Statement) -> StepOperand:
        slot = self.register(x.operand, statement)
        if x.sign != "!" or slot is None or self.kind(slot) != "pred" or kind != "pred":
            raise self.fail(statement, f"{written(x)}: what may be negated here is a predicate, as !p")
        return Inverted(slot)

    def _check(self, x: Operand, kind: RegisterType, expected: RegisterType, statement: Statement, wider: bool) -> None:
        if kind == expected or (wider and "pred" not in (kind, expected) and int(kind[1:]) >= int(expected[1:])):
            return
        than = " or wider" if wider else ""
        raise self.fail(statement, f"{written(x)} is a register of {kind}; expected {expected}{than}")

    # Addresses

    def space(self, x: Operand) -> str | None:
        """Return the state space of the variable that an operand names; None where it names none."""
        symbol = x.base if isinstance(x, Place) else x
        if not isinstance(symbol, Symbol):
            return None
        found = self.declared.find(symbol)
        if isinstance(found, Variable):
            return found.space
        known = self._places.address(("", -1, symbol.name))
        return None if known is None else known[0]

    def place(self, x: Operand, spec: OperandSpec, statement: Statement) -> StepOperand:
        """Return the address in brackets: a register plus bytes, a variable, or a number."""
        if isinstance(x, Place) and x.form != "sum":
            if x.more:
                more = ", ".join(map(written, x.more))
                raise self.fail(statement, f"{more} follows an address in its brackets; expected [address] alone")
            if x.base is None:
                if spec.space != "local":
                    raise self.fail(statement, f"{written(x)} is a number, which is an address in .local alone")
                return Constant(x.offset & ((1 << 64) - 1), "b64")
            slot = self.register(x.base, statement)
            if slot is not None:
                if self.kind(slot) not in ("b32", "b64"):
                    raise self.fail(statement, f"{x.base.name} is a register of {self.kind(slot)}, and no address")
                if self.kind(slot) not in (spec.kind, spec.other):
                    raise self.fail(statement, f"{x.base.name} has 32 bits; generic and global addresses have 64")
                return Sum(slot, x.offset) if x.offset else slot
            space = self.space(x)
            generic = spec.space == "generic"
            wanted = spec.space.partition("::")[0]
            if space in ("const", "param") if generic else space != wanted and {space, wanted} <= _APART:
                expected = ".global, .shared or .local" if generic else f".{wanted}"
                raise self.fail(statement, f"{x.base.name} lies in .{space}; expected an address in {expected}")
            return self._in_window(self._address_of(x, "b64", statement), space, spec)
        raise self.fail(statement, f"{written(x)} is not an address; expected [register+bytes] or [variable+bytes]")

    def _in_window(self, address: StepOperand, space: str | None, spec: OperandSpec) -> StepOperand:
        """Make the address of a variable generic where the instruction names no space (rule 3)."""
        base = 0 if spec.space != "generic" or space is None or space not in WINDOWS else WINDOWS[space].base
        if base and isinstance(address, Constant):
            return Constant(address.bits + base, "b64")
        if base and isinstance(address, SharedAddress):
            return SharedAddress(address.offset, "b64", base)
        return Sum(address, base) if base and isinstance(address, Frame) else address

    def _address_of(self, x: Operand, kind: RegisterType, statement: Statement) -> StepOperand:
        """Return the address of a variable or a function, plus bytes (rule 3)."""
        symbol, offset = (x.base, x.offset) if isinstance(x, Place) else (x, 0)
        if not isinstance(symbol, Symbol):
            raise self.fail(statement, f"{written(x)} cannot be read")
        found = self.declared.find(symbol)
        if kind not in ("b32", "b64"):
            raise self.fail(statement, f"{symbol.name} is an address; expected a register of {kind}")
        if isinstance(found, Variable) and (symbol.name, symbol.scope) in self.frame:
            return Frame(self.frame[symbol.name, symbol.scope] + offset, kind)
        key = ("", -1, symbol.name) if found is None else (self._function.name, symbol.scope, symbol.name)
        known = self._places.address(key)
        if known is None:
            raise self.fail(statement, f"{symbol.name} is not declared")
        if kind == "b32" and known[1] >> 32:
            raise self.fail(statement, f"the address of {symbol.name}, in .{known[0]}, has 64 bits; expected {kind}")
        if known[0] == "shared":
            return SharedAddress(known[1] + offset, kind)
        return Constant((known[1] + offset) & ((1 << int(kind[1:])) - 1), kind)


def _misfit(x: Immediate, type_: str, kind: RegisterType) -> str:
    """Say what stands where a number does not fit (rule 2); "" where it does."""
    whole = x.kind in ("s", "u")
    if kind in ("pred", "imm") or type_[0] in "su":
        return "" if whole else "an integer is expected"
    if type_ in ("f32", "f64"):
        return f"a float is expected, as {x.value}.0" if whole else ""
    if type_[0] == "b" and type_[1:].isdigit():
        return "" if whole or x.kind == f"f{type_[1:]}" else f"an integer or a float of {type_[1:]} bits is expected"
    return f"a register of {type_} is expected"


def _elements(found: RegisterRange) -> int:
    """Count the registers that one name refers to: 128 bits are two registers of 64."""
    return 2 if found.type == "b128" and found.vector == 1 else found.vector


def written(x: Operand) -> str:
    """Write an operand as PTX does."""
    if isinstance(x, Symbol):
        return x.name
    if isinstance(x, Immediate):
        return str(x.value) if x.kind in "su" else f"0{'f' if x.kind == 'f32' else 'd'}{x.value:X}"
    if isinstance(x, Negation):
        return x.sign + written(x.operand)
    if isinstance(x, Element):
        return f"{x.vector.name}.{'xyzw'[x.index]}"
    if isinstance(x, VectorOf):
        return f"{{{', '.join(map(written, x.items))}}}"
    if isinstance(x, Selection):
        return f"{x.register.name}.{x.selector}"
    base = x.base.name if x.base else ""
    text = ", ".join((f"{base}{x.offset:+d}" if x.offset or not base else base, *map(written, x.more)))
    return f"[{text}]" if x.form == "address" else text
