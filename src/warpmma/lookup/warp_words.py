"""A warp's words of metadata or of scales: what all that an instruction reads of them means."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

from .._arguments import check_choice
from .._records import Record
from .._views import view
from ..errors import OperandError, shown
from ..isa import Instruction, parse
from ..registers import LANES
from .finding_places import layout_table
from .reading_words import WordPart, read_word

_OPERANDS = ("metadata", "scale_a", "scale_b")


@dataclass(frozen=True, kw_only=True)
class WarpWords(Record):
    """A word of each lane, and what an instruction reads of them.

    Attributes
    ----------
    instruction : Instruction
    operand : {"metadata", "scale_a", "scale_b"}
    words : tuple of int
        A lane's each, 32 bits.
    selector : int
        Sparsity selector; of metadata.
    byte_id, thread_id : int
        Scale selectors; of scales.
    """

    instruction: Instruction
    operand: str
    words: tuple[int, ...]
    selector: int = 0
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
    """Say what a warp's words of metadata or of scales mean.

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
        Its `parts` are what is read; it draws itself.

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
    layout_table(record, operand, **chosen)  # type: ignore[arg-type]
    for lane, word in enumerate(given):
        read_word(record, operand, word, lane=lane)
    numbers = {name: int(number) for name, number in chosen.items()}
    return WarpWords(instruction=record, operand=operand, words=tuple(given), **numbers)
