"""Signatures: the operands of an instruction as data.

The rules:

1. A signature lists operands in the order of PTX's text. An operand has a name for each of its registers. Several
   registers are written in braces; braces around a single register are optional.
2. Optional operands may be omitted, from the last one backwards. A second result follows `|`, or is omitted.
3. An implicit operand is read or written without being named in the text: the carry.
4. A signature validates itself (`problem`): a table checks each signature when it creates the row.
5. The coordinates of a tensor are an operand within the brackets of the address before it: `[p, {c0, c1}]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from ..._records import Shown
from ...errors import TargetError
from ...layouts import Layout, Operand
from ...registers import Packing
from ..gpus import since

RegisterType = Literal["b16", "b32", "b64", "pred", "imm"]
Role = Literal["result", "source", "address", "mask", "policy"]
Sink = Literal["", "element", "alone", "only"]
Braces = Literal["never", "optional", "always"]

_CLASSES = ("b16", "b32", "b64", "pred", "imm")
_WIDE_SPACES = ("generic", "global")
_FEW = 4
_BYTES = ("b8", "e2m1x2")
_PLAIN = re.compile(r"(b|s|u|f|bf)\d+(x2)?|pred|imm")


def register_type(type_: str) -> RegisterType:
    """Return the class of registers that hold a PTX type: "b32" for "s32", "f32" and "f16x2".

    Examples
    --------
    >>> register_type("f64"), register_type("s8"), register_type("pred"), register_type("bf16x2")
    ('b64', 'b16', 'pred', 'b32')
    """
    if type_ in ("pred", "imm"):
        return cast(RegisterType, type_)
    bits, _, count = type_.lstrip("bfsu").partition("x")
    return cast(RegisterType, f"b{max(int(bits) * int(count or 1), 16)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandSpec(Shown):
    """One operand of an instruction.

    Attributes
    ----------
    names : tuple of str
        One for each register, as `syntax` prints them.
    role : {"result", "source", "address", "mask", "policy"}
        "mask" is a membermask, "policy" a cache policy.
    type : str
        PTX type of each register, and of a number in its place; "imm" for an immediate.
    kind : {"b16", "b32", "b64", "pred", "imm"}
        Class of the registers.
    other : RegisterType or None
        Another accepted class with a different meaning: the predicate of `cp.async`, a 32-bit generic address.
    braces : {"never", "optional", "always"}
        Whether the registers are written in braces; a vector register is accepted instead.
    space : str
        State space of an address.
    optional : bool
        Whether it may be omitted.
    paired : bool
        Whether it is the second result, after `|`; it may be omitted if it is optional.
    wider : bool
        Whether the registers may be wider than the type: values are truncated when read and extended when written.
    implicit : bool
        Whether the operand is absent from the text.
    literal : bool
        Whether a number is passed as a number although a register is accepted as well.
    sink : {"", "element", "alone", "only"}
        For a result: whether `_` may replace a register in its braces, or all of it; "only" allows nothing but `_`.
    updated : bool
        For a result: whether the previous value is read as well.
    symbol, special, number : bool
        Whether the operand accepts the name of a variable, for its address; a special register; a number.
    default : int or None
        Default value when a kernel in Python omits the operand.
    values : collection of int
        Legal values of an immediate; all if empty.
    within : bool
        Whether it is written within the brackets of the address before it (rule 5).
    since : str
        First target that takes an optional operand, if later than that of the instruction; "" if it is not.
    selector : str
        What a video instruction writes after it, such as "b0", or "-" before it.
    """

    names: tuple[str, ...]
    role: Role = "source"
    type: str
    kind: RegisterType
    other: RegisterType | None = None
    braces: Braces = "never"
    space: str = ""
    optional: bool = False
    paired: bool = False
    wider: bool = False
    implicit: bool = False
    literal: bool = False
    sink: Sink = ""
    updated: bool = False
    symbol: bool = False
    special: bool = False
    number: bool = True
    default: int | None = None
    values: Collection[int] = field(default=(), compare=False)
    within: bool = False
    since: str = ""
    selector: str = ""

    def __str__(self) -> str:
        return self.text()

    def text(self, name: Callable[[str], str] = str, comma: str = ", ") -> str:
        """Format it; a function names each register."""
        inside = comma.join(map(name, self.names))
        if self.role == "address":
            return f"[{inside}]"
        text = f"{{{inside}}}" if self.braces == "always" or len(self.names) > 1 else inside
        sign, chosen = self.selector[: self.selector.startswith("-")], self.selector.removeprefix("-")
        return f"{sign}{text}{'.' * bool(chosen)}{chosen}"

    @property
    def allowed(self) -> str:
        """Legal values of an immediate, in words."""
        if isinstance(self.values, range):
            step = f", a multiple of {self.values.step}" * (self.values.step > 1)
            return f"{self.values[0]} to {self.values[-1]}{step}"
        numbers = [*map(str, self.values)]
        if len(numbers) > _FEW:
            numbers = [*numbers[:_FEW], "...", numbers[-1]]
            return ", ".join(numbers)
        return " or ".join(numbers) or "an integer"

    def accepts(self, kind: str) -> bool:
        """Return whether the operand accepts a register of a class, or a number ("imm")."""
        if kind in (self.kind, self.other) or (self.literal and kind == "imm"):
            return True
        if self.role == "address":
            return kind in ("b32", "b64")
        return self.wider and kind in ("b32", "b64") and int(kind[1:]) > int(self.kind[1:])

    @property
    def expected(self) -> str:
        """Describe what the operand accepts."""
        return "b32 or b64" if self.role == "address" else self.kind + " or wider" * self.wider

    @property
    def declared(self) -> str:
        """Class of the registers that PTX declares for it: bytes have a class of their own."""
        return "b8" if self.type in _BYTES else self.kind

    @property
    def problem(self) -> str:
        """The first inconsistency; "" if there is none (rule 4)."""
        if not self.names or self.kind not in _CLASSES:
            return f"{self.names} of {self.kind}: expected at least one register of {', '.join(_CLASSES)}"
        if (self.role == "address") != bool(self.space):
            return f"{self}: an address has a state space, and nothing else has one"
        if self.kind == "imm" and (self.role == "result" or self.wider or self.type != "imm"):
            return f"{self}: an immediate is a source of type imm"
        if _PLAIN.fullmatch(self.type) and self.kind != register_type(self.type) and not self.wider:
            return f"{self}: a register of {self.kind} does not hold {self.type}"
        if self.within and self.role != "source":
            return f"{self}: only a source is written within the brackets of an address"
        if (self.paired or self.sink) and self.role != "result":
            return f"{self}: only results are paired or discarded"
        return ""


Signature = tuple[OperandSpec, ...]


def check_since(row: object, spec: OperandSpec, target: str) -> None:
    """Raise `TargetError` if a target has an instruction without an operand that is given."""
    if spec.since and target not in since(spec.since):
        raise TargetError(
            f"{row} takes the operand {spec} from {spec.since} on; got {target}, which has it without that operand"
        )


def value(name: str | tuple[str, ...], type_: str, **more: object) -> OperandSpec:
    """Return an operand of a PTX type, which determines its class of registers."""
    names = (name,) if isinstance(name, str) else name
    kind = more.pop("kind", None) or register_type(type_)
    return OperandSpec(names=names, type=type_, kind=kind, **more)  # type: ignore[arg-type]


def numbered(letter: str, count: int, type_: str, **more: object) -> OperandSpec:
    """Return an operand of registers named by a letter and numbers: `{a0, a1}`."""
    return value(tuple(f"{letter}{i}" for i in range(count)), type_, **more)


def address(name: str, space: str, **more: object) -> OperandSpec:
    """Return an address in a state space: 64 bits, or 32 in the spaces of a block or thread, which accept both."""
    wide = space in _WIDE_SPACES
    other = {} if wide else {"other": "b64"}
    return value(name, "u64" if wide else "u32", role="address", space=space, **{**other, **more})


def packed(element: str, packing: Packing) -> str:
    """Name the type of a register of elements: "f16x2", or "f32" if it holds one element."""
    return element if packing.per_register == 1 else f"{element}x{packing.per_register}"


def fragments(type_: Callable[[Operand], str], layout: Callable[[Operand], Layout]) -> Signature:
    """Return the fragments of D, A, B and C as operands, from the types of their elements and their layouts."""
    found = []
    operands: tuple[Operand, ...] = ("D", "A", "B", "C")
    for operand in operands:
        of = layout(operand)
        role = {"role": "result", "sink": "element"} if operand == "D" else {}
        kind = f"b{of.packing.width}"
        name, type_of = operand.lower(), packed(type_(operand), of.packing)
        found.append(numbered(name, of.registers, type_of, kind=kind, braces="always", **role))
    return tuple(found)


POLICY = value("policy", "u64", role="policy")
"""A cache policy."""


def printed(signature: Signature, name: Callable[[str], str] | None = None, comma: str = ", ") -> str:
    """Write the operands as PTX does.

    Parameters
    ----------
    signature : tuple of OperandSpec
    name : callable, optional
        From the name of a register to the text that replaces it. If given, the text is that of a statement, and
        optional operands are omitted.
    comma : str
        What separates the registers in braces.

    Examples
    --------
    >>> given = (numbered("d", 2, "b32", role="result"), address("p", "shared"), value("size", "u32", optional=True))
    >>> printed(given), printed(given, "%{}".format)
    ('{d0, d1}, [p]{, size}', '{%d0, %d1}, [%p]')
    """
    text = ""
    for x in signature:
        if x.implicit or (x.optional and not x.paired and name is not None):
            continue
        one = x.text(name or str, comma)
        if x.within:
            text = f"{text.removesuffix(']')}, {one}]"
            continue
        text += f"|{one}" if x.paired else f"{{, {one}}}" if x.optional else f"{', ' * bool(text)}{one}"
    return text


def present(
    signature: Sequence[OperandSpec], count: int, size: Callable[[OperandSpec], int] = lambda x: 1,
    *, defaults: bool = False,
) -> list[OperandSpec] | None:  # fmt: skip
    """Return which operands are present if there are `count`; None if there cannot be so many (rule 2).

    Parameters
    ----------
    signature : sequence of OperandSpec
    count : int
        How many operands there are.
    size : callable
        How many an operand counts as.
    defaults : bool
        Whether operands with a default may be omitted as well.
    """
    left, missing = list(signature), sum(map(size, signature)) - count
    for x in reversed(signature):
        if missing > 0 and (x.optional or (defaults and x.default is not None)):
            left.remove(x)
            missing -= size(x)
    return left if missing == 0 else None
