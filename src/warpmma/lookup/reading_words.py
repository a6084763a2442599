"""What the bits of a given register mean: numbers, nibbles of metadata, scales.

1. An element's code is cut out of the word: its bits from `low` to `high`.
2. A number is the exact value of the code in its format.
3. A nibble of metadata is two indices, i0 its low bits and i1 its high ones. They name the columns of a group that are
   stored, i0 the first half of the stored elements and i1 the second. Of tf32 an index addresses half an element: 0x4
   and 0xE are elements 0 and 1; any other nibble mixes halves, and stores no column.
4. All sixteen nibbles have an effect. `sparsity.legal_codes` has those that PTX defines.
5. `ldmatrix` and the like move bits, and addresses are addresses: they have no meaning beyond the code.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from .._arguments import check_choice, is_integer
from .._lazy import later
from .._records import Record
from .._text import ranges
from .._views import view
from ..errors import OperandError, shown
from ..formats import FORMATS, Number
from ..isa import FragmentHolder, Instruction, parse
from ..layouts import Cell
from ..registers import LANES
from .finding_places import layout_table, what
from .register_operands import checked, operand_layout, type_of

if TYPE_CHECKING:
    from .. import sparsity
else:  # loaded by the look-ups that need it
    sparsity = later("..sparsity", __package__)


_OPERANDS = ("metadata", "scale_a", "scale_b")


@dataclass(frozen=True, kw_only=True)
class WarpWords(Record):
    """A word of each lane, and how an instruction reads them.

    Attributes
    ----------
    operand : {"metadata", "scale_a", "scale_b"}
    byte_id, thread_id : int
        Scale selectors; of scales.
    """

    instruction: Instruction
    operand: str
    words: tuple[int, ...]  # A lane's each, 32 bits
    selector: int = 0  # sparsity selector; of metadata
    byte_id: int = 0
    thread_id: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "instruction", parse(self.instruction))  # a mnemonic makes the same record

    @property
    def selectors(self) -> dict[str, int]:
        """What chooses, as arguments of `what`."""
        if self.operand == "metadata":
            return {"selector": self.selector}
        return {"byte_id": self.byte_id, "thread_id": self.thread_id}

    @cached_property
    def parts(self) -> tuple[WordPart, ...]:
        """What is read: nibbles or scales, by row and column."""
        found = [
            part
            for lane, word in enumerate(self.words)
            for part in read_word(self.instruction, self.operand, word, lane=lane, **self.selectors)  # type: ignore[arg-type]
        ]
        return tuple(sorted(found, key=lambda part: (part.cell.row, part.cell.column)))

    def svg(self, *, theme: str = "auto") -> str:
        """Draw it; `theme` is "auto", "light" or "dark"."""
        return view(self, "svg", theme=theme)


def read_words(
    instruction: str | Instruction, operand: str, words: Iterable[int], *,
    selector: int = 0, byte_id: int = 0, thread_id: int = 0,
) -> WarpWords:  # fmt: skip
    """Return the meaning of a warp's words of metadata or of scales.

    Parameters
    ----------
    instruction : str or Instruction
    operand : {"metadata", "scale_a", "scale_b"}
    words : iterable of int
        A lane's each, 32: such as `sparsity.pack_metadata` and `scaling.pack_scales` return.
    selector, byte_id, thread_id : int
        As the instruction has them.

    Returns
    -------
    WarpWords
        Its `parts` are the meanings; it has views.

    Raises
    ------
    MnemonicError, OperandError, MetadataError, ScaleError
        As of `what`; other words.

    Examples
    --------
    >>> sp = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    >>> print(read_words(sp, "metadata", [0x4EEE_E944] * 32).parts[2].meaning)
    A[0, 8-11]: columns 9 and 10 are stored
    """
    check_choice("operand", operand, _OPERANDS)
    record = parse(instruction)
    try:
        given = [operator.index(word) for word in islice(words, LANES + 1)]
    except Exception:  # no iterable, no integers, or an iterator of its own that fails
        given = []
    if len(given) != LANES:
        raise OperandError(f"{record}: words are {shown(words)}; expected {LANES} integers, one of each lane")
    chosen = {"selector": selector} if operand == "metadata" else {"byte_id": byte_id, "thread_id": thread_id}
    layout_table(record, operand, **chosen)  # type: ignore[call-overload]
    for lane, word in enumerate(given):
        read_word(record, operand, word, lane=lane)
    numbers = {name: int(number) for name, number in chosen.items()}
    return WarpWords(instruction=record, operand=operand, words=tuple(given), **numbers)


@dataclass(frozen=True, kw_only=True)
class WordPart(Record):
    """What some bits of a register mean.

    Attributes
    ----------
    stored : tuple of int
        Of metadata, the columns of A that are stored, in the order of the stored elements; empty for all else, and for
        a nibble that mixes halves of tf32 elements.
    """

    cell: Cell  # which bits, and whose they are
    code: int  # what they hold
    value: Fraction | None = None  # the number; None for infinity, NaN, metadata, addresses and bits without a type
    stored: tuple[int, ...] = ()
    meaning: str  # the same in words


def read_word(
    instruction: str | FragmentHolder, operand: str, word: int, *, lane: int, register: int = 0,
    selector: int | None = None, byte_id: int | None = None, thread_id: int | None = None, target: str | None = None,
) -> tuple[WordPart, ...]:  # fmt: skip
    """Return the meaning of the bits of a register.

    Parameters
    ----------
    instruction, operand, lane, register, selector, byte_id, thread_id, target
        As of `what`.
    word : int
        The register's 32 bits, or 64.

    Returns
    -------
    tuple of WordPart
        The lowest bits first.

    Raises
    ------
    MnemonicError, OperandError, MetadataError, ScaleError, TargetError
        As of `what`; a word that the register has no bits for.

    Examples
    --------
    >>> sp = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
    >>> print(read_word(sp, "metadata", 0x4EEE_E944, lane=6)[2].meaning)
    A[1, 8-11]: columns 9 and 10 are stored
    """
    record, layout = checked(instruction, operand), operand_layout(instruction, operand, target)
    if register is None:
        raise OperandError(f"{record}: register is None; expected the one that has the word")
    cells = what(
        record, operand, lane=lane, register=register, selector=selector, byte_id=byte_id, thread_id=thread_id,
        target=target,
    )  # fmt: skip
    width = layout.packing.width
    if not is_integer(word) or not 0 <= word < 1 << width:
        raise OperandError(f"{record}: the word is {shown(word)}; expected {width} bits, 0 to {(1 << width) - 1:#x}")
    mask = layout.packing.mask
    if operand == "metadata" and isinstance(record, Instruction):
        return tuple(_group(record, cell, int(word) >> cell.low & mask) for cell in cells)
    return tuple(_number(type_of(record, operand), cell, int(word) >> cell.low & mask) for cell in cells)


def _number(format_: str, cell: Cell, code: int) -> WordPart:
    """Rules 2 and 5."""
    if format_ not in FORMATS:
        return WordPart(cell=cell, code=code, meaning=f"{code:#0{2 + -(-(cell.high - cell.low + 1) // 4)}x}")
    number = FORMATS[format_].unpack(code)
    if not isinstance(number, Number):
        return WordPart(cell=cell, code=code, value=Fraction(number), meaning=str(number))
    sign = "-" * number.sign
    if number.kind != "finite":
        return WordPart(cell=cell, code=code, meaning=f"{sign}{number.kind}" if number.kind == "infinity" else "NaN")
    value = Fraction(number.significand) * Fraction(2) ** number.exponent
    return WordPart(cell=cell, code=code, value=-value if number.sign else value, meaning=sign + _decimal(value))


def _decimal(value: Fraction) -> str:
    """Write a number as Python does; one that no float is, or that is an integer, as it is."""
    if value.denominator == 1 and value < 1 << 53:
        return str(value.numerator)
    return repr(float(value))


def _group(record: Instruction, cell: Cell, nibble: int) -> WordPart:
    """Rules 3 and 4."""
    law = sparsity.pattern(record)
    first, i0, i1 = law.width * cell.column, nibble & 3, nibble >> 2
    place = f"A[{cell.row}, {first}-{first + law.width - 1}]"
    defined = "" if nibble in sparsity.legal_codes(record) else "; PTX leaves it undefined"
    if law.units == 2 and nibble not in sparsity.legal_codes(record):
        halves = " and ".join(f"the {('low', 'high')[x % 2]} half of column {first + x // 2}" for x in (i0, i1))
        return WordPart(cell=cell, code=nibble, meaning=f"{place}: {halves} are stored as one{defined}")
    stored = tuple(first + column for column in sparsity.stored_columns(law, nibble))
    if len(stored) == 1:
        said = f"column {stored[0]} is stored"
    elif len(stored) == 2:
        said = f"columns {stored[0]} and {stored[1]} are stored"
    else:
        said = f"columns {' and '.join(ranges(stored[x : x + 2]) for x in (0, 2))} are stored"
    return WordPart(cell=cell, code=nibble, stored=stored, meaning=f"{place}: {said}{defined}")
