"""The syntax tree of a PTX text: records of modules, functions, variables, statements and operands.

It does not depend on what instructions do. Names are resolved to declarations (scopes), not to addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple

from ..._records import Shown
from ...errors import PtxError, printable

BYTES: Mapping[str, int] = MappingProxyType(
    {
        "pred": 1,
        **dict.fromkeys(("b8", "s8", "u8"), 1),
        **dict.fromkeys(("b16", "s16", "u16", "f16", "bf16"), 2),
        **dict.fromkeys(("b32", "s32", "u32", "f32", "f16x2", "bf16x2", "tf32"), 4),
        **dict.fromkeys(("b64", "s64", "u64", "f64", "f32x2", "texref", "samplerref", "surfref"), 8),
        "b128": 16,
    }
)
"""Bytes of an element of each type that a declaration can have; a predicate and an opaque reference have some."""


def bytes_of(type: str) -> int:
    """Say how many bytes an element of a declared type has.

    Examples
    --------
    >>> bytes_of("f16x2")
    4
    """
    return BYTES[type]


Space = Literal["reg", "param", "global", "const", "shared", "local"]


@dataclass(frozen=True, slots=True)
class Position:
    """A position in the text: line and column, from 1 on."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class LineOf:
    """A `.loc`: the source line of the statements that follow.

    Attributes
    ----------
    file : str
        As `.file` names it.
    line, column : int
    inlined_at : LineOf or None
        Where the function that holds the line was inlined.
    """

    file: str
    line: int
    column: int = 0
    inlined_at: LineOf | None = None

    @property
    def own(self) -> LineOf:
        """The line in the folder of the kernel's own file, or below it, into which this one is inlined."""
        return _own(self)


@lru_cache(maxsize=1 << 12)
def _own(loc: LineOf) -> LineOf:
    lines = [loc]
    while lines[-1].inlined_at is not None:
        lines.append(lines[-1].inlined_at)
    home = Path(lines[-1].file).parent
    return next(line for line in lines if home in Path(line.file).parents)


@dataclass(frozen=True, slots=True)
class RegisterRange:
    """`.reg .b32 %r<5>` or `.reg .v2 .f32 %v`: one declaration; registers are found by name, not listed."""

    name: str  # the part before the number, or the whole name
    type: str  # PTX type of one element: "b32", "pred", "f16x2"
    vector: int  # elements: 1, 2 or 4
    count: int | None  # of `name<count>`; None where it is one register
    position: Position


@dataclass(frozen=True, slots=True)
class AddressOf:
    """An address in an initial value: of a symbol, plus bytes, or of a function; generic, or in the symbol's space."""

    name: str
    offset: int = 0
    generic: bool = False
    byte: int | None = None  # which byte alone a mask picks: 0 of `0xFF(name)`, 1 of `0xFF00(name)`


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in memory, or a parameter.

    Attributes
    ----------
    space : str
    dimensions : tuple of int or None
        Of an array; None for a scalar. `[]` is (0,), extern shared memory, unless initial values say the size.
    initial : tuple of int or AddressOf
        Codes of elements in the order of memory, cut off where zeros follow; () for none.
    """

    space: Space
    type: str  # PTX type of an element: "b8", "f32"; of a parameter "b64", "u32",
    vector: int  # of `.v2`, `.v4`; 1 otherwise
    name: str  # as it is written
    dimensions: tuple[int, ...] | None
    alignment: int  # in bytes: that of `.align`, or the natural one
    initial: tuple[int | AddressOf, ...] = ()
    linkage: str = ""  # "extern", "visible", "weak", "common" or ""
    pointer: tuple[str, int] | None = None  # of `.ptr .global .align 16`: the space, "" for none, and the alignment
    position: Position = Position(0, 0)

    @property
    def count(self) -> int:
        """Elements, those of vectors too."""
        total = self.vector
        for n in self.dimensions or ():
            total *= n
        return total

    @property
    def size(self) -> int:
        """Bytes."""
        return self.count * bytes_of(self.type)


Declaration = RegisterRange | Variable


# Operands. A name is resolved by its function's scopes to a `Symbol`; names of special registers are symbols, too.


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name: register, variable, parameter, function, label, special register (`%tid.x`) or the sink `_`.

    Attributes
    ----------
    name : str
        As it is written.
    scope : int
        Number of the scope in its function that declares it: 0 is the function itself, larger ones inner `{ }`. -1 of
        what the module declares, of special registers, labels, and undeclared names. A label that an inner
        scope names as an earlier scope did gets that scope's number in its name, `DONE@3`, where it is declared and
        where it is meant.
    """

    name: str
    scope: int = -1


@dataclass(frozen=True, slots=True)
class Immediate:
    """A number.

    Attributes
    ----------
    value : int
        Of integers the value, as PTX evaluates constant expressions in 64 bits: of "s" from -2^63, of "u" below 2^64;
        of floats the code.
    kind : str
        "s" and "u" for integers, "f32" for `0f3F800000`, "f64" for `0d...` and decimal ones.
    """

    value: int
    kind: Literal["s", "u", "f32", "f64"] = "s"


@dataclass(frozen=True, slots=True)
class Negation:
    """`!p` of a predicate, or `-r`, which video instructions and old texts have for a register."""

    operand: Symbol | Selection
    sign: str = "!"


@dataclass(frozen=True, slots=True)
class Element:
    """`%v.x`: an element of a vector register, 0 to 3."""

    vector: Symbol
    index: int


@dataclass(frozen=True, slots=True)
class Selection:
    """`%r1.b0`, `%r1.h1`, `%r1.b3210`: bytes or halves of a register, which video instructions pick."""

    register: Symbol
    selector: str


@dataclass(frozen=True, slots=True)
class VectorOf:
    """`{a, b, c, d}`; of a call `(a, b)` too."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """`[base + offset]`, `[base]`, `[4096]`; without brackets `base + offset` and `base[3]`.

    Attributes
    ----------
    base : Symbol or None
        A register or a variable.
    offset : int
    more : tuple
        What follows in the brackets: `[a, {x, y}]` of tensors.
    form : {"address", "sum", "element"}
        Of `[base + 8]`, of `base + 8` without brackets, and of `base[2]`, which is an address or a value.
    """

    base: Symbol | None
    offset: int = 0
    more: tuple[Operand, ...] = ()
    form: Literal["address", "sum", "element"] = "address"


Operand = Symbol | Immediate | Negation | Element | Selection | VectorOf | Place
"""`p|q` is two operands; the statement then has `Statement.paired`."""


@dataclass(frozen=True, slots=True)
class Label:
    """A label in a body.

    Attributes
    ----------
    name : str
    position : Position
    pragmas : tuple of str
        What `.pragma` says directly behind it, of the loop that begins there: "nounroll".
    """

    name: str
    position: Position
    pragmas: tuple[str, ...] = ()


class Mnemonic(NamedTuple):
    """The words of a mnemonic, for code that rewrites statements before their instruction is known."""

    opcode: str
    qualifiers: tuple[str, ...] = ()  # in the order of the text; the last one is usually a type
    part: str = ""  # what follows a blank, which no text has: `contraction.FACTORS`

    def __str__(self) -> str:
        return ".".join((self.opcode, *self.qualifiers)) + f" {self.part}" * bool(self.part)

    @property
    def type(self) -> str:
        """The last qualifier, or ""."""
        return self.qualifiers[-1] if self.qualifiers else ""

    @property
    def modifiers(self) -> tuple[str, ...]:
        """The qualifiers before the type."""
        return self.qualifiers[:-1]

    @property
    def uniform(self) -> bool:
        """Whether a branch, call or return states that all lanes take it."""
        return "uni" in self.qualifiers


@lru_cache(maxsize=1 << 12)
def words_of(text: str) -> Mnemonic:
    """Split a mnemonic into its words."""
    name, _, part = text.partition(" ")
    opcode, *qualifiers = name.split(".")
    return Mnemonic(opcode, tuple(qualifiers), part)


@dataclass(frozen=True, slots=True)
class Statement:
    """An instruction.

    Attributes
    ----------
    operands : tuple of Operand
        In their order. `variable+8` without brackets (as of `mov`) is a `Place`, too, and so is `variable[2]`, whose
        offset is in bytes. Of `call (r), f, (a, b), proto` a `VectorOf`, a `Symbol`, a `VectorOf` and a `Symbol`, with
        the parts that are written.
    guard : Symbol or None
    loc : LineOf or None
    beside : str
        Of what no text has: the mnemonic of the statement beside which it stands. It changes nothing of the program.
    """

    mnemonic: str  # the opcode with its qualifiers, as it is written, without blanks: "ld.global.L2::128B.v4.u32"
    operands: tuple[Operand, ...]
    guard: Symbol | None = None
    negated: bool = False  # of `@!p`
    paired: bool = False  # whether operands 0 and 1 were written `d|p`
    position: Position = Position(0, 0)  # of the opcode
    loc: LineOf | None = None
    beside: str = ""

    @property
    def words(self) -> Mnemonic:
        """The words of its mnemonic."""
        return words_of(self.mnemonic)

    @property
    def opcode(self) -> str:
        """The first word of its mnemonic."""
        return words_of(self.mnemonic).opcode


@dataclass(frozen=True, slots=True)
class Function(Shown):
    """An entry or a `.func`: its declaration, with its body if it has one.

    Attributes
    ----------
    parameters, results : tuple of Variable or RegisterRange
    directives : mapping of str to tuple of int
        "maxntid", "reqntid", "minnctapersm", "maxnreg", "noreturn", ...: () where no number follows.
    scopes : tuple of tuple of Declaration
        What each scope declares; 0 has the parameters and results first.
    body : tuple of Statement or Label
    targets : mapping of str to tuple of str
        `.branchtargets` and `.calltargets` by label.
    prototypes : mapping of str to (results, parameters)
        `.callprototype` by label.
    """

    kind: Literal["entry", "func"]
    name: str
    parameters: tuple[Declaration, ...]
    results: tuple[Declaration, ...]
    directives: Mapping[str, tuple[int, ...]]
    scopes: tuple[tuple[Declaration, ...], ...] = ((),)
    body: tuple[Statement | Label, ...] = ()
    targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prototypes: Mapping[str, tuple[tuple[Declaration, ...], tuple[Declaration, ...]]] = field(default_factory=dict)
    defined: bool = True  # whether it has a body
    linkage: str = ""
    position: Position = Position(0, 0)


@dataclass(frozen=True, slots=True)
class Module(Shown):
    """A text as it was read: variables and files, and an index of functions, whose bodies are read when asked for.

    Attributes
    ----------
    address_size : int
    """

    name: str  # path of the text, or "<ptx>"
    text: str = field(repr=False)  # all of it
    version: tuple[int, int]
    target: str
    address_size: int
    variables: Mapping[str, Variable]  # of the module, in its order
    functions: Mapping[str, Function]  # reads a body when it is looked up first; iterating over names reads none
    kinds: Mapping[str, str]  # "entry" or "func" of each function, without reading it
    options: tuple[str, ...] = ()  # what `.target` says besides: "debug", "map_f64_to_f32"
    targeted: Position = Position(0, 0)  # of the target's name

    def place(self, position: Position) -> str:
        """Write a place in the text: "kernel.ptx:12:5"."""
        return f"{printable(self.name)}:{position}"

    def error(self, what: str, position: Position) -> PtxError:
        """Make the error that shows a place in the text."""
        return PtxError.at(self.name, position.line, position.column, what, self.text)

    def error_at(self, statement: Statement, what: str) -> PtxError:
        """Make the error that shows a statement, and names the line of the source that it was compiled from."""
        loc = statement.loc
        if loc is not None:
            what += f" ({_line(loc.own)}{f', from {_line(loc)}' * (loc.own != loc)})"
        return self.error(what, statement.position)


def _line(loc: LineOf) -> str:
    return f"{printable(Path(loc.file).name)}:{loc.line}"
