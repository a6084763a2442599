"""Products that ptxas rematerializes at their uses, so that they are fused there.

ptxas 13.0 does this for sm_80 and sm_90, as the machine code of 40 kernels and results of an H200 showed:

1. A product (`contraction`, rule 1, divisions aside) qualifies if one of its factors is folded: an immediate, or a
   register that holds one, a parameter of the entry, a word of constant memory at a fixed address, or one of these with
   its sign changed. A conversion or computation of these is not folded, nor is a load from an address in a register.
2. Every live use of it must be a sum as in rule 4, or pass it on to such sums (rule 2 of `contraction`), and follow
   the product in the text.
3. Each use outside the product's stretch then gets its own copy of the product, with the original factors.

Only registers with a single writer qualify.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..flow import Flow, Register
from ..text import Function, Immediate, Label, Operand, Place, Statement, Symbol
from .product_uses import CONTAINERS, HiddenRegisters, product_type, sum_type


def remade(function: Function, flow: Flow) -> Function:
    """Return a function with copies of such products before their uses; the function itself if there are none."""
    if not any(product_type(one, divisions=False) for one in flow.statements.values()):
        return function
    return _Remaking(function, flow).done()


def _key(operand: Operand) -> Register | None:
    return (operand.name, operand.scope) if isinstance(operand, Symbol) else None


class _Remaking:
    def __init__(self, function: Function, flow: Flow) -> None:
        self.function, self.flow = function, flow
        self.place = {i: n for n, stretch in enumerate(flow.stretches) for i in stretch}
        self.parameters = {x.name for x in function.parameters} if function.kind == "entry" else set()
        self.writer = self._writers()
        self.readers = self._readers()
        self.folded = self._folded()
        self.hidden = HiddenRegisters("%remade")
        self.before: dict[int, list[Statement]] = {}
        self.instead: dict[int, Statement] = {}

    def _writers(self) -> Mapping[Register, int]:
        """Find registers that one statement writes, and wholly."""
        found: dict[Register, int] = {}
        for i, used in self.flow.uses.items():
            for register in used.written:
                found[register] = -1 if register in found or not used.whole else i
        return {register: i for register, i in found.items() if i >= 0}

    def _readers(self) -> Mapping[Register, list[int]]:
        """List the statements that count and read each register."""
        found: dict[Register, list[int]] = {}
        for stretch, live in zip(self.flow.stretches, self.flow.wanted, strict=True):
            for i in reversed(stretch):
                counts, live = self.flow.step(i, live)
                one = self.flow.statements[i]
                read = {*self.flow.uses[i].read, *([(one.guard.name, one.guard.scope)] if one.guard else [])}
                for register in read if counts else ():
                    found.setdefault(register, []).append(i)
        none = {*self.place, *self.flow.dropped}
        for i in (i for i in self.flow.statements if i not in none):  # what parts stretches counts, too
            for register in self.flow.uses[i].read:
                found.setdefault(register, []).append(i)
        return found

    def _folded(self) -> set[Register]:
        """Rule 1."""
        found: set[Register] = set()
        for i, one in sorted(self.flow.statements.items()):
            written = self.flow.uses[i].written
            if one.guard is None and all(self.writer.get(x) == i for x in written) and self._folds(one, found):
                found.update(written)
        return found

    def _folds(self, one: Statement, known: set[Register]) -> bool:
        words, last = one.words, one.operands[-1] if one.operands else None
        if one.opcode == "ld" and isinstance(last, Place) and isinstance(last.base, Symbol):
            return ("param" in words.modifiers and last.base.name in self.parameters) or (
                "const" in words.modifiers and last.base.scope < 0
            )
        changes_sign = one.opcode in ("neg", "abs") and words.type in CONTAINERS and not words.modifiers
        if one.opcode == "mov" or changes_sign:
            return len(one.operands) == 2 and (
                isinstance(last, Immediate) or (last is not None and _key(last) in known)
            )
        return False

    def done(self) -> Function:
        for i, one in sorted(self.flow.statements.items()):
            type_ = product_type(one, divisions=False)
            factors = one.operands[1:]
            folded = [isinstance(x, Immediate) or _key(x) in self.folded for x in factors] if type_ else []
            if any(folded) and not all(isinstance(x, Immediate) for x in factors) and i in self.place:
                self._remake(i, type_, folded)
        if not self.instead:
            return self.function
        body: list[Statement | Label] = []
        for i, item in enumerate(self.function.body):
            body += [*self.before.get(i, ()), self.instead.get(i, item)]
        return self.hidden.declared(self.function, body)

    def _remake(self, i: int, type_: str, folded: list[bool]) -> None:
        mul, uses = self.flow.statements[i], list(self._uses(i, type_, [i]))
        if any(chain is None for _, _, chain in uses):
            return
        far = [use for use in uses if self.place[use[0]] != self.place[i]]
        if not far:
            return
        factors = []
        for factor, fixed in zip(mul.operands[1:], folded, strict=True):
            kept = factor if fixed else self.hidden.new(CONTAINERS[type_])
            if not fixed:
                move = replace(mul, mnemonic=f"mov.{CONTAINERS[type_]}", operands=(kept, factor))
                self.before.setdefault(i, []).append(move)
            factors.append(kept)
        for at, operand, chain in far:
            own = self.hidden.new(CONTAINERS[type_])
            more = [replace(mul, operands=(own, *factors))]
            for j in (chain or [])[1:]:
                next_ = self.hidden.new(CONTAINERS[type_])
                more.append(replace(self.flow.statements[j], operands=(next_, own)))
                own = next_
            self.before.setdefault(at, []).extend(more)
            one = self.instead.get(at, self.flow.statements[at])
            self.instead[at] = replace(
                one, operands=tuple(own if n == operand else x for n, x in enumerate(one.operands))
            )

    def _uses(self, i: int, type_: str, chain: list[int]) -> Iterator[tuple[int, int, list[int] | None]]:
        """Yield uses of a product: statement, operand, and what passes it on, None there for anything but a sum."""
        written = tuple(self.flow.uses[i].written)
        if len(written) != 1 or self.writer.get(written[0]) != i:
            yield i, 0, None
            return
        (register,) = written
        ftz = "ftz" in self.flow.statements[chain[0]].words.modifiers
        for j in self.readers.get(register, ()):
            one = self.flow.statements[j]
            operands = [n for n, x in enumerate(one.operands) if n and _key(x) == register]
            fits = sum_type(one) == type_ and ftz == ("ftz" in one.words.modifiers)
            if fits and len(operands) == 1 and chain[0] < j:
                guarded = one.guard is not None and (one.guard.name, one.guard.scope) == register
                yield (j, operands[0], None if guarded or j not in self.place else chain)
            elif one.opcode in ("mov", "neg") and self._hands_on(one, type_) and j > i:
                yield from self._uses(j, type_, [*chain, j])
            else:
                yield j, 0, None

    def _hands_on(self, one: Statement, type_: str) -> bool:
        words = one.words
        right = words.qualifiers == (type_,) if one.opcode == "neg" else words.type in (type_, CONTAINERS[type_])
        return one.guard is None and len(one.operands) == 2 and right
