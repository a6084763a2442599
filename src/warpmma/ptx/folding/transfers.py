"""The values that a statement writes, given those that it reads: rule 1 of `known_values`, prepared once for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from ...arithmetic import folded_reference
from ..flow import JUMPS, Register, Uses
from ..text import BYTES, Immediate, Negation, Operand, Statement, Symbol, VectorOf, bytes_of, number, words_of
from .evaluated import approximate_form, decided, evaluate, evaluates, masked, operation_of


@dataclass(frozen=True, slots=True)
class Varying:
    """A value that is not known: where it is made, and whether it may be constant in an unrolled loop (rule 5)."""

    origin: tuple[object, ...] = ()
    counted: bool = False


Value = int | Varying
"""Bits of a constant, those of a signed one in 64; or what is not known."""

Read = Callable[[Register], Value]
"""The value of a register where a statement reads it."""

Transfer = Callable[[Read], Mapping[Register, Value]]
"""Returns the values of registers that a statement writes, if they may be known."""

UNKNOWN = Varying()
_PACKED = "packed"  # the origin of elements that a `mov` packs, some of which may be constant
_DECIDED = frozenset(("and", "mul", "or", "xor", "selp"))  # opcodes for which `decided` may know the result


def countable(x: Value) -> bool:
    """Whether a value is a constant in each copy of an unrolled loop."""
    return isinstance(x, int) or x.counted


@dataclass(frozen=True, slots=True)
class Source:
    """An operand: a register, perhaps a predicate that is negated, or what is always the same."""

    register: Register | None
    negated: bool = False
    value: Value = UNKNOWN

    @staticmethod
    def of(x: Operand, type_: str, kind: str) -> Source:
        """Return the source that an operand of a type and a class of registers is."""
        if isinstance(x, Immediate):
            return Source(None, value=number(x, type_, kind))  # type: ignore[arg-type]
        if isinstance(x, Negation) and x.sign == "!" and isinstance(x.operand, Symbol):
            return Source((x.operand.name, x.operand.scope), negated=True)
        if isinstance(x, Symbol) and x.scope >= 0:
            return Source((x.name, x.scope))
        return Source(None, value=32 if isinstance(x, Symbol) and x.name == "WARP_SZ" else UNKNOWN)

    def read(self, read: Read) -> Value:
        """Return its value."""
        if self.register is None:
            return self.value
        x = read(self.register)
        return 1 - (x & 1) if self.negated and isinstance(x, int) else x


_ALWAYS = Source(None, value=1)


def guard_of(one: Statement) -> Source:
    """Return whether a statement executes: 1 or 0, or what is not known."""
    return _ALWAYS if one.guard is None else Source((one.guard.name, one.guard.scope), one.negated)


def sources_of(one: Statement) -> tuple[Source, ...]:
    """Return the operands of a statement but the first, which is the result."""
    found = operation_of(one.mnemonic) if may_know(one.mnemonic) else None
    kinds = () if found is None else found.inputs
    if found is None or len(kinds) != len(one.operands) - 1:
        return (Source(None),) * (len(one.operands) - 1)
    types = found.input_types or found.inputs
    return tuple(map(Source.of, one.operands[1:], types, kinds))


@lru_cache(maxsize=4096)
def may_know(mnemonic: str) -> bool:
    """Whether the result of an instruction other than `mov` may be known."""
    words = words_of(mnemonic)
    return evaluates(words) is not False or bool(approximate_form(words))


def needed(one: Statement, read: Sequence[Register]) -> int | None:
    """Return of how many of the registers that it reads something has to be known, to know a result; None: never."""
    decides = _decides(one.mnemonic)
    if decides is None:
        return None
    given = one.operands[1:]
    for x in given:
        if isinstance(x, Symbol) and x.scope < 0 and x.name != "WARP_SZ" and not decides:
            return None
    if decides or any(isinstance(x, VectorOf) for x in one.operands):
        return 0 if _decided_by_text(one.opcode, given) else min(1, len(read))
    return len(read) if len(read) < 2 else len({*read})


def _decided_by_text(opcode: str, given: Sequence[Operand]) -> bool:
    """Whether the numbers among the operands may decide a result by themselves; True where that is not certain."""
    if opcode in ("xor", "selp"):
        return given[:1] == given[1:2]
    items = [y for x in given for y in (x.items if isinstance(x, VectorOf) else (x,))]
    if opcode in ("and", "mul"):  # what is 0 has no low bits, whatever its width
        return any(isinstance(x, Immediate) and not x.value & 0xFFFF for x in items)
    return any(isinstance(x, Immediate) or (isinstance(x, Symbol) and x.scope < 0) for x in items)


@lru_cache(maxsize=4096)
def _decides(mnemonic: str) -> bool | None:
    """Whether one operand may decide the result of an instruction; None if nothing is ever known of it."""
    opcode = words_of(mnemonic).opcode
    return (opcode in _DECIDED) if opcode not in JUMPS and (opcode == "mov" or may_know(mnemonic)) else None


@dataclass(frozen=True, slots=True)
class ValueStep:
    """A statement that writes registers whose values are looked for.

    Attributes
    ----------
    written : tuple of (Register, Varying)
        What it writes, and what that is where nothing is known of it.
    guard : Source
    sources : tuple of Source
        What `transfer` reads.
    transfer : callable or None
        None if nothing is ever known of its results.
    matters : bool
        Whether it is one of the statements whose results may be known.
    """

    written: tuple[tuple[Register, Varying], ...]
    guard: Source
    sources: tuple[Source, ...] = ()
    transfer: Transfer | None = None
    matters: bool = True

    def reads(self) -> list[Register]:
        """List the registers on which its results depend."""
        return [x.register for x in (self.guard, *self.sources) if x.register is not None]


def step(i: int, one: Statement, found: Uses) -> ValueStep:
    """Return statement `i` of a body as a function of the values that it reads."""
    written = tuple((register, Varying((i, register))) for register in found.written)
    guard, first = guard_of(one), one.operands[0] if one.operands else None
    if _decides(one.mnemonic) is None:
        return ValueStep(written, guard, matters=False)
    if one.opcode == "mov":
        return _move(i, one, written, guard)
    sources, operation = sources_of(one), operation_of(one.mnemonic)
    if not isinstance(first, Symbol) or one.paired or operation is None or len(operation.inputs) != len(sources):
        return ValueStep(written, guard)
    return ValueStep(written, guard, sources, _computed(i, one, (first.name, first.scope), operation.inputs, sources))


def _computed(i: int, one: Statement, key: Register, kinds: Sequence[str], sources: Sequence[Source]) -> Transfer:
    """Rule 1, for all but `mov`."""
    words, mnemonic = one.words, one.mnemonic
    form, evaluated = approximate_form(words), evaluates(words)
    decides, same = words.opcode in _DECIDED, len(one.operands) == 3 and one.operands[1] == one.operands[2]
    counted, unknown = Varying((i, key), True), Varying((i, key))
    pairs = tuple(zip(sources, kinds, strict=True))

    def transfer(read: Read) -> Mapping[Register, Value]:
        codes: list[int | None] = []
        known = all_counted = True
        for source, kind in pairs:
            x = source.read(read)
            if isinstance(x, int):
                codes.append(masked(x, kind))
            else:
                codes.append(None)
                known, all_counted = False, all_counted and x.counted
        if known and form:
            result = folded_reference(form, *cast(list[int], codes))
            return {} if result is None else {key: result}
        if decides and (result := decided(words, codes, kinds, same)) is not None:
            return {key: result}
        if known and evaluated:
            return {key: evaluate(mnemonic, tuple(cast(list[int], codes)))}
        return {key: counted if all_counted else unknown}

    return transfer


def _move(i: int, one: Statement, written: tuple[tuple[Register, Varying], ...], guard: Source) -> ValueStep:
    """Return a `mov`: elements of a vector are parts of its bits."""
    vector = {"v2", "v4"}.intersection(one.words.qualifiers)
    if len(one.operands) != 2 or vector or one.words.type not in BYTES:
        return ValueStep(written, guard)
    to, given = one.operands
    items, targets = (x.items if isinstance(x, VectorOf) else (x,) for x in (given, to))
    width = 1 if one.words.type == "pred" else 8 * bytes_of(one.words.type)
    sources = tuple(Source.of(x, one.words.type, _class(width // len(items))) for x in items)
    names = [(x.name, x.scope) if isinstance(x, Symbol) else None for x in targets]

    def transfer(read: Read) -> Mapping[Register, Value]:
        values = [x.read(read) for x in sources]
        found = values if len(sources) == len(names) else _repacked(i, width, values, len(names))
        pairs = zip(names, found, strict=bool(found))
        return {name: value for name, value in pairs if name is not None}

    return ValueStep(written, guard, sources, transfer)


def _repacked(i: int, width: int, values: Sequence[Value], targets: int) -> Sequence[Value]:
    """Return the values of so many elements that are packed in other ones; () if nothing is known of them."""
    if all(isinstance(x, int) for x in values):
        each, part = width // len(values), width // targets
        whole = sum(masked(x, f"b{each}") << n * each for n, x in enumerate(cast(Sequence[int], values)))
        return [whole >> n * part & (1 << part) - 1 for n in range(targets)]
    if targets == 1:
        return [Varying((_PACKED, *values), all(map(countable, values)))]
    if isinstance(packed := values[0], Varying) and packed.origin[:1] == (_PACKED,):
        parts = cast(tuple[Value, ...], packed.origin[1:])
        return parts if len(parts) == targets else ()
    return [Varying((i, n), countable(values[0])) for n in range(targets)]


def _class(bits: int) -> str:
    return "pred" if bits == 1 else f"b{bits}"
