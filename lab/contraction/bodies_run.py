"""Bodies of PTX, run on formulas, as `machine_code` runs machine code."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from warpmma.ptx import Function
from warpmma.ptx.text.syntax import Immediate, Label, Negation, Operand, Place, Statement, Symbol, VectorOf

from .formulas import Formula, fused, negated, product, total


class BodyRun:
    """One way through a body.

    Parameters
    ----------
    function : Function
    chosen : mapping of int to bool
        Whether the integer that is loaded at each offset is other than zero.
    otherwise : collection of int
        Which of the comparisons of the body have the other result.
    """

    def __init__(self, function: Function, chosen: Mapping[int, bool], otherwise: Collection[int] = ()):
        self.chosen = chosen
        self.otherwise = otherwise
        self.compared = 0
        self.registers: dict[str, Formula] = {}
        self.predicates: dict[str, bool] = {}
        self.stored: dict[int, Formula] = {}
        labels = {one.name: i for i, one in enumerate(function.body) if isinstance(one, Label)}
        at = 0
        while at < len(function.body):
            one = function.body[at]
            at += 1
            if isinstance(one, Label):
                continue
            if one.guard is not None and self.predicates[one.guard.name] == one.negated:
                continue
            if one.mnemonic == "ret":
                return
            if one.mnemonic.startswith("bra"):
                label = one.operands[0]
                assert isinstance(label, Symbol)
                at = labels[label.name]
                continue
            self._step(one)

    def _value(self, operand: Operand) -> Formula:
        if isinstance(operand, Immediate):
            return "number", operand.value
        assert isinstance(operand, Symbol)
        return self.registers.get(operand.name, ("unknown", operand.name))

    def _step(self, one: Statement) -> None:
        words = one.mnemonic.split(".")
        first = one.operands[0] if one.operands else None
        flags = " ".join(sorted(word.upper() for word in words if word in ("ftz", "sat", "rz", "rm", "rp")))
        if words[0] == "st" and isinstance(first, Place):
            self.stored[first.offset] = self._value(one.operands[1])
            return
        if not isinstance(first, Symbol):
            return
        if words[0] == "alternative":
            self._alternatives(first, one.operands[1:])
        elif words[0] == "ld":
            place = one.operands[1]
            assert isinstance(place, Place)
            self.registers[first.name] = "in", place.offset
        elif words[0] == "setp":
            value = self._value(one.operands[1])
            self.predicates[first.name] = self.chosen.get(value[1], False)  # type: ignore[call-overload]
        elif words[0] == "selp":
            condition = one.operands[3]
            assert isinstance(condition, Symbol)
            self.registers[first.name] = self._value(one.operands[1 if self.predicates[condition.name] else 2])
        elif words[-1] in ("f32", "f64", "f16x2") or words[0] == "mov":
            result = self._float(
                words[0], flags, [self._value(x) for x in one.operands[1:] if not isinstance(x, Negation)]
            )
            self.registers[first.name] = result

    def _alternatives(self, result: Symbol, others: Sequence[Operand]) -> None:
        for pair in others:
            assert isinstance(pair, VectorOf)
            other, there = (self._value(x) for x in pair.items)
            if there == ("number", 1) and self.compared in self.otherwise:
                self.registers[result.name] = other
            self.compared += 1

    def _float(self, opcode: str, flags: str, values: list[Formula]) -> Formula:
        if opcode == "mov":
            return values[0]
        if opcode == "neg":
            return negated(values[0])
        if opcode == "mul":
            return product(values[0], values[1], flags)
        if opcode in ("add", "sub"):
            return total(values[0], negated(values[1]) if opcode == "sub" else values[1], flags)
        if opcode == "fma":
            return fused(values[0], values[1], values[2], flags)
        if opcode == "max" and values[0] == values[1]:
            return values[0]
        return (opcode, *([flags] if opcode in ("min", "max") else []), *sorted(values, key=repr))
