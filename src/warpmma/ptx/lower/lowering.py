"""Lower the body of a function to steps: place the basic blocks, and translate each statement.

The rules:

1. `flow` determines the order of blocks; a branch is added where the next block is not the one that follows in the
   text.
2. Parameters of an entry that are read by name are constants of the launch (`Argument`); if their address is taken,
   they are in parameter memory. Parameters, results and `.local` variables of functions are in frames: `ld.param` and
   `st.param` of these become `ld.local` and `st.local`.
3. Everything in a body that is not simulated is found before anything runs.
4. The source line of a step is the innermost `.loc` line in the folder of the kernel's own file or its subfolders: code
   inlined from a compiler's headers, or a library, is attributed to the line where the kernel's author called it.
5. ptxas 13.0 omits the guards of some instructions (`UNGUARDED`): they are executed in all lanes, as on an H200. Of
   2,953 guarded instructions on registers, these are unguarded in its machine code for sm_90; results of random
   programs on an H200 agree.
6. Statements that contraction adds for comparison are lowered like the program, and are marked.
7. When only half of a packed register is needed, compilers emit `mov.b64 d, {a, u}` with a u that nothing in the
   function writes: its bits do not matter, and are 0.
8. An instruction that PTX got in a later version than the text's is an error, as in ptxas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import cast

from ..._text import counted
from ...errors import PtxError, TargetError, WarpmmaError
from ...isa import PtxInstruction, WarpgroupInstruction, check_since
from ...machine import Alternative, Branch, BranchTable, Call, Guard, InstructionStep, Return, Site
from ...operations import (
    Access,
    InstructionRow,
    Operation,
    divided_factors,
    folded_function,
    lowest_version,
    packing,
    row,
    unpacking,
    warpgroup_multiply,
)
from ..contraction import ALTERNATIVE, FACTORS
from ..flow import ENDS, BasicBlock, Register, cut, placed, uses
from ..folding import FOLDED
from ..storage import FrameLayout, Slots
from ..text import Function, Immediate, Module, Place, Statement, Symbol, Variable, VectorOf, bytes_of
from .binding import BoundStatement, bind
from .calls import CallLowering
from .entry_parameters import EntryParameters
from .legacy_syntax import without_sync
from .resolving import Places, Resolver

AnyStep = InstructionStep | Branch | BranchTable | Call | Return | Alternative

UNGUARDED = frozenset(("testp", "vadd4.u32.u32.u32.add", "vsub4.u32.u32.u32.add"))
"""Opcodes and mnemonics whose guards do nothing (rule 5)."""

_COMPARED = (6, 3)
"""The first version of texts whose instructions are compared with it (rule 8): older ones are for GPUs before sm_75."""


@dataclass
class Body:
    """The steps of a function; branches lead to places counted from its first."""

    frame: FrameLayout
    steps: list[AnyStep] = field(default_factory=list)
    problems: list[PtxError] = field(default_factory=list)  # lines that are not simulated


def lower(module: Module, function: Function, slots: Slots, places: Places, target: str, start: int = 0) -> Body:
    """Return the steps of a function for a device's target; its registers are added to the program's slots.

    `start` is the size of the frame that other variables take. Lines that are not simulated are in the result; a branch
    to what is not a label raises `PtxError`.
    """
    return _Lowering(module, function, places, target, slots, FrameLayout(function, start)).run()


class _Lowering:
    """The way from one function to its steps."""

    def __init__(
        self, module: Module, function: Function, places: Places, target: str, slots: Slots, frame: FrameLayout
    ) -> None:
        self._module, self._function, self._target, self._frame = module, function, target, frame
        self._names = Resolver(module, function, slots, places)
        self._names.frame = self._frame.offsets
        self._parameters = EntryParameters(function)
        self._calls = CallLowering(module, function, self._names, self._frame, target)
        self._body = Body(self._frame)
        self._written: frozenset[Register] | None = None
        self._leads: list[tuple[int, tuple[int, ...]]] = []  # branches, and the blocks that they lead to

    def run(self) -> Body:
        """Return the steps, and what is not simulated."""
        blocks = cut(self._module, self._function)
        order, moved = placed([block.successors for block in blocks])
        heads = {latch: edge for edge, latch in moved.items()}
        first: dict[int, int] = {}
        steps = self._body.steps
        if self._function.kind == "func":
            steps += self._calls.received()
        for i, number in enumerate(order):
            first[number] = len(steps)
            if number in heads:  # what leads back to the head of a loop
                source, head = heads[number]
                self._jump(self._site(blocks[source].statements[-1], "bra"), None, head)
                continue
            following = order[i + 1] if i + 1 < len(order) else None
            self._place(blocks[number], {x: moved.get((number, x), x) for x in blocks[number].successors}, following)
        for at, to in self._leads:
            places = tuple(first[x] for x in to)
            step = steps[at]
            steps[at] = replace(step, to=places if isinstance(step, BranchTable) else places[0])  # type: ignore[arg-type]
        return self._body

    def _place(self, block: BasicBlock, to: dict[int, int], following: int | None) -> None:
        """Add the steps of a block (rule 1); `to` says where its successors are."""
        branch = block.branch
        for statement in block.statements[: -1 if branch else None]:
            try:
                self._body.steps += self._statement(statement)
            except PtxError as error:
                self._body.problems.append(error)
        after = None if block.next is None else to[block.next]
        if branch is None:
            last = block.statements[-1] if block.statements else None
            if after is None and not (last is not None and last.guard is None and last.opcode in ENDS):
                self._body.steps.append(Return(site=self._site(last, "ret")))
            elif after is not None and after != following:
                self._jump(self._site(last, "bra"), None, after)
            return
        try:
            self._check_flow(branch)
        except PtxError as error:
            self._body.problems.append(error)
        guard, site = self._guard(branch), self._site(branch)
        if branch.opcode == "brx":
            index = self._names.register(branch.operands[0], branch)
            if index is None:
                self._body.problems.append(self._names.fail(branch, "the index is not a register"))
                return
            self._leads.append((len(self._body.steps), tuple(to[x] for x in block.targets)))
            self._body.steps.append(BranchTable(site=site, index=index, to=(), guard=guard))
            if after is not None and after != following:
                self._jump(site, None, after)
            return
        self._branch(site, guard, to[block.targets[0]], after, following, branch.words.uniform)

    def _branch(
        self, site: Site, guard: Guard | None, there: int, after: int | None, following: int | None, uniform: bool
    ) -> None:
        """Add a branch, or two where neither of its ways follows it."""
        if guard is None or after is None or there == after:
            if there != following:
                self._jump(site, None, there, uniform)
        elif there == following:
            self._jump(site, replace(guard, negated=not guard.negated), after, uniform)
        else:
            self._jump(site, guard, there, uniform)
            if after != following:
                self._jump(site, None, after)

    def _jump(self, site: Site, guard: Guard | None, to: int, uniform: bool = False) -> None:
        self._leads.append((len(self._body.steps), (to,)))
        self._body.steps.append(Branch(site=site, to=0, guard=guard, uniform=uniform))

    # Statements

    def _check_flow(self, statement: Statement) -> None:
        """Refuse qualifiers of a branch, call or return, except `.uni`."""
        name = "brx.idx" if statement.opcode == "brx" else statement.opcode
        if statement.mnemonic not in (name, f"{name}.uni"):
            raise self._names.fail(statement, f"expected {name} or {name}.uni")

    def _statement(self, statement: Statement) -> Sequence[AnyStep]:
        """Return the steps of a statement other than a branch."""
        opcode, guard, site = statement.opcode, self._guard(statement), self._site(statement)
        if opcode == "call":
            self._check_flow(statement)
            return self._calls.call(statement, site, guard)
        if opcode == "ret":
            if statement.operands:
                raise self._names.fail(statement, f"got {counted(len(statement.operands), 'operand')}; expected none")
            self._check_flow(statement)
            back = Return(site=site, guard=guard, uniform=statement.words.uniform)
            return [*self._calls.returned(statement, site, guard), back]
        if opcode == ALTERNATIVE:
            return [self._alternative(statement, site, guard)]
        if opcode == "wgmma" and isinstance(found := self._row(statement), WarpgroupInstruction):
            return [self._warpgroup_product(statement, site, guard, found)]
        if opcode == "mov" and len(statement.operands) == 2:
            return self._move(statement, site, guard)
        step = self._step(statement, site, guard)
        if isinstance(step.row, Access) and step.row.space == "param":
            return self._parameter_access(statement, step, step.row)
        return [step]

    def _warpgroup_product(
        self, statement: Statement, site: Site, guard: Guard | None, record: WarpgroupInstruction
    ) -> InstructionStep:
        """Return the step of a `wgmma.mma_async`, whose accumulators are read and written."""
        given = statement.operands
        row = warpgroup_multiply(record, len(given) > 1 and isinstance(given[1], VectorOf))
        return self._step(replace(statement, operands=(*given[:1], *given)), site, guard, row)

    def _move(self, statement: Statement, site: Site, guard: Guard | None) -> Sequence[AnyStep]:
        """Return the steps of a `mov`: several if it is of 128 bits or copies a vector."""
        if statement.words.qualifiers == ("b128",):
            halves = zip(*map(self._names.items, statement.operands), strict=False)
            return [self._step(replace(statement, mnemonic="mov.b64", operands=x), site, guard) for x in halves]
        plain = self._checked_move(statement)
        statement = self._without_undefined(statement)
        given = [self._names.items(x) for x in statement.operands]
        if len(given[0]) == len(given[1]) > 1:  # elements at once: each is read before any is written
            kind = plain.inputs[0]
            kept = [Symbol(f"moved {kind} {i}") for i in range(len(given[0]))]
            for x in kept:
                self._names.slot(x.name, kind)
            pairs = [*zip(kept, given[1], strict=True), *zip(given[0], kept, strict=True)]
            wanted = (pair for pair in pairs if not (isinstance(pair[0], Symbol) and pair[0].name == "_"))
            return [self._step(replace(statement, operands=pair), site, guard, plain) for pair in wanted]
        both = zip(statement.operands, given, strict=True)
        operands = tuple(VectorOf(tuple(items)) if len(items) > 1 else x for x, items in both)
        return [self._step(replace(statement, operands=operands), site, guard)]

    def _checked_move(self, statement: Statement) -> Operation:
        """Return the `mov` of one element; refuse `.v2` and `.v4` unless they state the size of two vectors."""
        words = statement.words
        said = [x for x in words.qualifiers if x in ("v2", "v4")]
        plain = words._replace(qualifiers=tuple(x for x in words.qualifiers if x not in said))
        found = cast(Operation, self._row(replace(statement, mnemonic=str(plain), operands=())))
        counts = [len(self._names.items(x)) for x in statement.operands if self._names.is_vector(x)]
        if len(counts) == 2 or said:
            fits = found.inputs != ("pred",) and sum(counts) * bytes_of(found.types[0]) <= 32
            if len(said) != 1 or counts != [int(said[0][1:])] * 2 or not fits:
                expected = "mov.v2 or mov.v4 of two vectors, of 128 bits at most, or mov of one vector and one register"
                raise self._names.fail(statement, f"got vectors of {counts} registers; expected {expected}")
        return found

    def _without_undefined(self, statement: Statement) -> Statement:
        """Return a packing `mov` with 0 for registers that are never written, if others are written (rule 7)."""
        given = statement.operands[1]
        if not isinstance(given, VectorOf):
            return statement
        if self._written is None:
            self._written = frozenset(
                x for one in self._function.body if isinstance(one, Statement) for x in uses(one).written
            )
        unwritten = [
            isinstance(x, Symbol) and (x.name, x.scope) not in self._written and self._is_register(x, statement)
            for x in given.items
        ]
        if all(unwritten) or not any(unwritten):
            return statement
        items = tuple(Immediate(0, "u") if bad else x for x, bad in zip(given.items, unwritten, strict=True))
        return replace(statement, operands=(statement.operands[0], VectorOf(items)))

    def _is_register(self, x: Symbol, statement: Statement) -> bool:
        return self._names.register(x, statement) is not None

    def _parameter_access(self, statement: Statement, step: InstructionStep, access: Access) -> Sequence[AnyStep]:
        """Return the steps of a load or store of `.param` (rule 2)."""
        place = next(x for x in statement.operands if isinstance(x, Place))
        found = None if place.base is None else self._names.declared.find(place.base)
        if isinstance(found, Variable):
            self._check_direction(statement, access, found, place.base in self._calls.results)
        constants = self._parameters.load(self._names, statement, place, step) if access.direction == "load" else None
        if constants is not None:
            return [replace(step, row=row(f"mov.{x.kind}"), operands=(x,), results=(slot,)) for x, slot in constants]
        if self._function.kind == "func" or isinstance(found, Variable):
            return [replace(step, row=replace(access, space="local"))]
        return [step]

    def _check_direction(self, statement: Statement, access: Access, found: Variable, given: bool) -> None:
        """Refuse what no compiler emits: a read of what is given away, a write of what is received."""
        load, function = access.direction == "load", self._function
        if not load and found in function.parameters:
            raise self._names.fail(statement, f"{found.name} is a parameter of {function.name}, which is read alone")
        if load and found in function.results:
            raise self._names.fail(statement, f"{found.name} is a result of {function.name}, which is written alone")
        if load and found not in function.parameters and not given:
            raise self._names.fail(statement, f"{found.name} is a .param that no call gives as a result")

    def _step(
        self, statement: Statement, site: Site, guard: Guard | None, found: PtxInstruction | None = None
    ) -> InstructionStep:
        found = found or self._row(statement)
        bound = bind(self._names, statement, found)
        if any(x.since for x in bound.row.signature):
            self._check_operands(statement, bound)
        return InstructionStep(
            site=site, row=bound.row, operands=bound.operands, results=bound.results, guard=guard,
            beside=bool(statement.beside),
        )  # fmt: skip

    def _check_operands(self, statement: Statement, bound: BoundStatement) -> None:
        """Refuse operands that only later targets take."""
        given = iter(bound.operands)
        for spec in bound.row.sources:
            if [x for x in islice(given, len(spec.names)) if x is not None]:
                try:
                    check_since(bound.row, spec, self._target)
                except TargetError as error:
                    raise self._module.error_at(statement, str(error)) from None

    def _row(self, statement: Statement) -> PtxInstruction:
        try:
            found = _row(statement, self._target)
        except WarpmmaError as error:
            raise self._module.error_at(statement, without_sync(statement) or str(error)) from None
        has, wants = self._module.version, lowest_version(found)
        if _COMPARED <= has < wants and isinstance(found, InstructionRow) and not statement.words.part:
            says = f"{statement.mnemonic} requires PTX {wants[0]}.{wants[1]}; this text is PTX {has[0]}.{has[1]}"
            raise self._module.error_at(statement, f"{says}: write .version {wants[0]}.{wants[1]}")
        return found

    def _alternative(self, statement: Statement, site: Site, guard: Guard | None) -> Alternative:
        """Return the comparison of a sum with what it may be (rule 6)."""
        result, *others = statement.operands
        pairs = [tuple(self._names.register(x, statement) for x in self._names.items(other)) for other in others]
        return Alternative(
            site=site, line=statement.position.line, column=statement.position.column, guard=guard,
            type=statement.words.type, result=self._names.register(result, statement),  # type: ignore[arg-type]
            others=tuple(pairs),  # type: ignore[arg-type]
        )  # fmt: skip

    def _guard(self, statement: Statement) -> Guard | None:
        if statement.guard is None:
            return None
        slot = self._names.register(statement.guard, statement)
        if slot is None or self._names.kind(slot) != "pred":
            raise self._names.fail(statement, f"its guard {statement.guard.name} is not a predicate")
        return None if UNGUARDED & {statement.opcode, statement.mnemonic} else Guard(slot, statement.negated)

    def _site(self, statement: Statement | None, mnemonic: str = "") -> Site:
        if statement is None:
            where = self._function.position
            return Site(self._module.name, where.line, mnemonic, column=where.column)
        return site_of(self._module, statement, mnemonic)


def site_of(module: Module, statement: Statement, mnemonic: str = "") -> Site:
    """Return where a statement stands: the line of the source that `.loc` names, if there is one (rule 4)."""
    (line, column), loc = (statement.position.line, statement.position.column), statement.loc
    mnemonic = mnemonic or statement.beside or statement.mnemonic
    if loc is None:
        return Site(module.name, line, mnemonic, column=column)
    own, text = loc.own, f"{_file_name(module.name)}:{line}:{column}"
    if own != loc:
        text += f" in {_file_name(loc.file)}:{loc.line}"
    return Site(own.file, own.line, mnemonic, text=text, column=column)


@lru_cache(maxsize=256)
def _file_name(path: str) -> str:
    return Path(path).name


def _row(statement: Statement, target: str) -> PtxInstruction:
    """Return the row of a statement; a `mov` of vectors has one by its types."""
    words = statement.words
    if words.part == FACTORS:
        return divided_factors(str(words._replace(part="")))
    if words.part == FOLDED:
        return folded_function(str(words._replace(part="")))
    if words.opcode == "mov":
        for i, x in enumerate(statement.operands):
            if isinstance(x, VectorOf):
                return (packing if i else unpacking)(words.type, len(x.items))
    return row(statement.mnemonic, target)
