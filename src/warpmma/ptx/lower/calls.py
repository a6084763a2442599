"""CallLowering: parameters and results in frames.

The rules:

1. A parameter or result that is a `.param` variable of the caller lies in its frame already. A register or a number is
   stored there before the call, and a result that is a register loaded after it.
2. A function whose parameters are registers loads them when it begins, and stores its results before it returns; a
   vector element by element, a predicate as 16 bits that are 1 or 0.
3. A function without a body is called where the machine provides one (`PROVIDED`), and is an error otherwise.
4. What a call passes has the sizes that the function, or the prototype of a call through a register, declares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import cast

from ..._text import counted
from ...isa import value
from ...machine import Call, Constant, Frame, Guard, InstructionStep, Site, Slot, StepOperand
from ...operations import RegisterType, row
from ..storage import FrameLayout, callee, size_of
from ..text import Declaration, Function, Module, Operand, RegisterRange, Statement, Symbol, VectorOf, bytes_of
from .resolving import Resolver

PROVIDED = ("vprintf", "__assertfail", "malloc", "free")
"""Functions that have no body, and that the machine provides."""

_PASSED = "passed"
_VALUE = {
    kind: value("", kind, role="result", wider=kind != "pred", sink="alone", symbol=True, special=True)
    for kind in ("b16", "b32", "b64", "pred")
}
"""A parameter or result that is a register, by its class."""
AnyStep = InstructionStep | Call
Places = tuple[tuple[int, int], ...]


class CallLowering:
    """The calls of one function, and how it is called; its frame gets places for parameters that are registers."""

    def __init__(self, module: Module, function: Function, names: Resolver, frame: FrameLayout, target: str) -> None:
        self._module, self._function, self._names, self._frame = module, function, names, frame
        self._target = target

    def call(self, statement: Statement, site: Site, guard: Guard | None) -> list[AnyStep]:
        """Return the steps of a call."""
        to, results, arguments, prototype = self._read(statement)
        slot = self._names.register(to, statement)
        declared = self._declared(statement, to, slot, prototype)
        if len(results) != len(declared[0]) or len(arguments) != len(declared[1]):
            raise self._names.fail(
                statement, f"{to.name} takes {counted(len(declared[1]), 'parameter')} and gives "
                f"{counted(len(declared[0]), 'result')}; got {len(arguments)} and {len(results)}",
            )  # fmt: skip
        given, formals = (*results, *arguments), (*declared[0], *declared[1])
        apart = [formal for x, formal in zip(given, formals, strict=True) if self._place(x) is None]
        scratch = iter(self._frame.scratch(apart))
        before: list[AnyStep] = []
        after: list[AnyStep] = []
        places = []
        for i, (x, formal) in enumerate(zip(given, formals, strict=True)):
            place = self._place(x)
            if place is not None:
                places.append((place[0], min(place[1], size_of(formal))))
                continue
            place = next(scratch)
            places.append(place)
            if i < len(results):
                after += self._load(statement, site, guard, x, formal, place[0])
            else:
                before += self._store(statement, site, guard, x, formal, place[0])
        call = Call(
            site=site, to=to.name if slot is None else slot, arguments=tuple(places[len(results) :]),
            results=tuple(places[: len(results)]), guard=guard, uniform=statement.words.uniform,
        )  # fmt: skip
        return [*before, call, *after]

    @cached_property
    def results(self) -> frozenset[Operand]:
        """What the calls of the function give as results."""
        calls = (x for x in self._function.body if isinstance(x, Statement) and callee(x) is not None)
        given = (x.operands[0] for x in calls)
        return frozenset(y for x in given if isinstance(x, VectorOf) for y in x.items)

    def _place(self, x: Operand) -> tuple[int, int] | None:
        """Return the offset and the bytes of a `.param` variable of the caller; None for any other operand."""
        key = (x.name, x.scope) if isinstance(x, Symbol) else None
        return (self._frame.offsets[key], self._frame.sizes[key]) if key in self._frame.offsets else None

    def _read(self, statement: Statement) -> tuple[Symbol, Sequence[Operand], Sequence[Operand], Symbol | None]:
        """Split a call into `(results), function, (parameters), prototype`."""
        to = callee(statement)
        if to is None:
            raise self._names.fail(statement, "no function is named")
        at = next(i for i, x in enumerate(statement.operands) if x is to)
        before, after = statement.operands[:at], statement.operands[at + 1 :]
        results = before[0].items if before and isinstance(before[0], VectorOf) else ()
        arguments = after[0].items if after and isinstance(after[0], VectorOf) else ()
        last = after[-1] if after and isinstance(after[-1], Symbol) else None
        return to, results, arguments, last

    def _declared(
        self, statement: Statement, to: Symbol, slot: Slot | None, prototype: Symbol | None
    ) -> tuple[Sequence[Declaration], Sequence[Declaration]]:
        """Return results and parameters of what is called (rules 3 and 4)."""
        if slot is not None:
            name = "" if prototype is None else prototype.name
            if name in self._function.prototypes:
                return self._function.prototypes[name]
            for target in self._function.targets.get(name, ()):
                if target not in self._module.kinds:
                    raise self._names.fail(statement, f"{name} lists {target}, which is not a function of this module")
                return self._module.functions[target].results, self._module.functions[target].parameters
            raise self._names.fail(statement, f"a call through {to.name} needs a .callprototype or .calltargets")
        if to.name not in self._module.kinds:
            raise self._names.fail(statement, f"{to.name} is not declared")
        function = self._module.functions[to.name]
        if function.kind == "entry":
            raise self._names.fail(statement, f"{to.name} is an entry; launching from a kernel is not simulated")
        if not function.defined and to.name not in PROVIDED:
            raise self._names.fail(
                statement, f"{to.name} has no body in this module, and warpmma provides {', '.join(PROVIDED)} alone. "
                "Link it: nvcc -rdc=false, or the whole program in one file",
            )  # fmt: skip
        return function.results, function.parameters

    # Registers as parameters

    def received(self) -> list[AnyStep]:
        """Return the steps by which a function gets parameters that are registers (rule 2)."""
        statement = Statement("ld.param", (), position=self._function.position)
        site = Site(self._module.name, statement.position.line, "ld.param", column=statement.position.column)
        return [
            step
            for x, (offset, _) in zip(self._function.parameters, self._frame.parameters, strict=False)
            if isinstance(x, RegisterRange)
            for step in self._load(statement, site, None, Symbol(x.name, 0), x, offset)
        ]

    def returned(self, statement: Statement, site: Site, guard: Guard | None) -> list[AnyStep]:
        """Return the steps by which a function gives results that are registers."""
        return [
            step
            for x, (offset, _) in zip(self._function.results, self._frame.results, strict=False)
            if isinstance(x, RegisterRange)
            for step in self._store(statement, site, guard, Symbol(x.name, 0), x, offset)
        ]

    def _load(
        self, statement: Statement, site: Site, guard: Guard | None, x: Operand, formal: Declaration, offset: int
    ) -> Iterator[InstructionStep]:
        type_ = _passed(formal)
        load = row(f"ld.local.{type_}", self._target)
        for item, at in self._items(statement, x, formal, offset):
            if formal.type != "pred":
                slot = self._names.target(item, _VALUE[type_], statement)
                yield InstructionStep(site=site, row=load, operands=(Frame(at),), results=(slot,), guard=guard)
                continue
            slot, word = self._names.target(item, _VALUE["pred"], statement), self._names.slot(_PASSED, "b16")
            yield InstructionStep(site=site, row=load, operands=(Frame(at),), results=(word,), guard=guard)
            yield InstructionStep(
                site=site, row=row("setp.ne.u16"), operands=(word, Constant(0, "b16")), results=(slot,), guard=guard
            )

    def _store(
        self, statement: Statement, site: Site, guard: Guard | None, x: Operand, formal: Declaration, offset: int
    ) -> Iterator[InstructionStep]:
        type_ = _passed(formal)
        store = row(f"st.local.{type_}", self._target)
        for item, at in self._items(statement, x, formal, offset):
            value: StepOperand
            if formal.type != "pred":
                value = self._names.source(item, replace(_VALUE[type_], type=formal.type), statement)
            else:
                given = self._names.source(item, _VALUE["pred"], statement)
                value = self._names.slot(_PASSED, "b16")
                one, nought = Constant(1, "b16"), Constant(0, "b16")
                yield InstructionStep(
                    site=site, row=row("selp.b16"), operands=(one, nought, given), results=(value,), guard=guard
                )
            yield InstructionStep(site=site, row=store, operands=(Frame(at), value), guard=guard)

    def _items(
        self, statement: Statement, x: Operand, formal: Declaration, offset: int
    ) -> Iterator[tuple[Operand, int]]:
        """Yield the registers of a parameter, or the numbers, each with its place (rule 2)."""
        items = self._names.items(x) if formal.vector > 1 else [x]
        if len(items) != formal.vector:
            raise self._names.fail(
                statement, f"got {counted(len(items), 'register')} for a parameter of {formal.vector}"
            )
        for i, item in enumerate(items):
            yield item, offset + i * bytes_of(formal.type)


def _passed(formal: Declaration) -> RegisterType:
    """Class of a register that is passed."""
    return cast(RegisterType, f"b{8 * max(bytes_of(formal.type), 2)}")
