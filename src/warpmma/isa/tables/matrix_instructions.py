"""Matrix instructions of every kind: what their records have in common, and tables of them.

1. Every combination of a row's choices is an instruction, and no two rows yield the same one: otherwise the first use
   of the table fails.
2. The grammar of its kind reads a mnemonic; the result must be an instruction of the table. Otherwise the error says
   which parts differ from the nearest legal one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Generic, Self, TypeVar

from ..._arguments import check_choice, is_integer
from ..._records import Record
from ..._views import view
from ...errors import MnemonicError, TableError, UnsupportedError, nearest, shown
from ...formats import FORMATS, Format
from ...layouts import OPERANDS, Layout, Operand
from ...registers import Packing
from ..gpus import check_known
from ..grammar import SIMULATED, Door, Grammar, MnemonicRow, PtxInstruction, Version, bare


class MatrixInstruction(PtxInstruction):
    """The parts of a mnemonic, and properties derived from shape and types.

    A field whose value no mnemonic could have is a `MnemonicError`.

    Attributes
    ----------
    m, n, k : int
        Shape; of a sparse instruction k is logical, twice what A stores.
    d_type, a_type, b_type, c_type : str
    sparsity, kind, scale_vec, stype, rounding, bit_op : str or None
        As spelled.
    """

    _grammar: ClassVar[Grammar[Any]]

    m: int
    n: int
    k: int
    d_type: str
    a_type: str
    b_type: str
    c_type: str
    sparsity: str | None
    kind: str | None
    scale_vec: str | None
    satfinite: bool
    stype: str | None
    rounding: str | None
    bit_op: str | None

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            name, value = field.name, getattr(self, field.name)
            plain = self._grammar.types[name]
            if plain is int:
                good, expected = is_integer(value) and 0 < value < 10_000, "an integer of 1 to 9999"
            elif plain is bool:
                good, expected = isinstance(value, bool), "a bool"
            elif value is None:
                continue
            else:
                good = isinstance(value, str) and len(value) <= 40 and value.isprintable()
                expected = "a qualifier, a string"
            if not good:
                raise MnemonicError(f"no instruction has {name} {shown(value)}; expected {expected}")
            if type(value) is not plain:  # NumPy's, or a subclass, which may behave differently
                object.__setattr__(self, name, plain(value))

    @cached_property
    def mnemonic(self) -> str:  # type: ignore[override]
        """In the order of PTX's grammar."""
        return self._grammar.printed(vars(self))

    @property
    def sparse(self) -> bool:
        """Whether A is sparse."""
        return self.sparsity is not None

    @property
    def block_scale(self) -> bool:
        """Whether A and B carry scales."""
        return self.stype is not None

    @property
    def scales_per_row(self) -> int:
        """Scales in a row of A or a column of B: PTX's 1X, 2X or 4X; 0 without block scaling."""
        return 0

    @property
    def canonical(self) -> Self:
        """The same instruction with defaults omitted: spellings of one operation compare equal here."""
        return self

    @property
    def family(self) -> MnemonicRow:
        """The table's row that this instruction comes from."""
        raise NotImplementedError

    @cached_property
    def targets(self) -> tuple[str, ...]:  # type: ignore[override]
        """Targets that have the instruction, oldest first."""
        return self.family.targets

    @cached_property
    def ptx(self) -> Version:  # type: ignore[override]
        """First PTX version that has the instruction."""
        return self.family.ptx

    @property
    def documented(self) -> bool:
        """Whether PTX's grammar has this spelling; ptxas accepts a few more."""
        return self.family.documented

    @property
    def shape(self) -> str:
        """Shape as PTX spells it."""
        return f"m{self.m}n{self.n}k{self.k}"

    def type(self, operand: Operand) -> str:
        """PTX type of an operand: "A", "B", "C" or "D"."""
        check_choice("operand", operand, OPERANDS)
        return str(getattr(self, f"{operand.lower()}_type"))

    def format(self, operand: Operand) -> Format:
        """Return the number format of an operand."""
        return FORMATS[self.type(operand)]

    def packing(self, operand: Operand) -> Packing:
        """How an operand's elements share registers."""
        raise NotImplementedError

    def layout(self, operand: Operand) -> Layout:
        """Fragment layout of an operand; for a sparse A, that of its stored elements.

        Raises
        ------
        OperandError
            Another operand; for warpgroup instructions also B, which is in shared memory.
        """
        found = self._layouts.get(operand) if isinstance(operand, str) else None
        if found is None:
            found = self._layouts[operand] = self._layout(operand)
        return found

    def svg(
        self, operand: str = "A", by: str = "element", *, selector: int | None = None, byte_id: int | None = None,
        thread_id: int | None = None, theme: str = "auto",
    ) -> str:  # fmt: skip
        r"""Draw which lane and register each element of an operand is in, or which elements each register has.

        Parameters
        ----------
        operand : {"A", "B", "C", "D", "metadata", "scale_a", "scale_b"}
        by : {"element", "lane"}
        selector, byte_id, thread_id : int, optional
            For metadata and scales: draw only what an instruction with these selectors reads.
        theme : {"auto", "light", "dark"}
            "auto" follows the reader's system or page.

        Raises
        ------
        OperandError, MetadataError, ScaleError
            Another operand, order, selector or theme.

        Examples
        --------
        >>> from warpmma.isa import parse
        >>> i = parse("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
        >>> "<title>A[3, 4\N{EN DASH}5]: a0 a1 of lane 14, register 0, bits 0\N{EN DASH}31</title>" in i.svg("A")
        True
        """
        chosen = {"selector": selector, "byte_id": byte_id, "thread_id": thread_id}
        return view(self, "svg", operand, by, theme=theme, **chosen)

    @cached_property
    def _layouts(self) -> dict[str, Layout]:
        return {}

    def _layout(self, operand: Operand) -> Layout:
        raise NotImplementedError


Explain = Callable[[str, Door], str]
InstructionT = TypeVar("InstructionT", bound=MatrixInstruction)
RowT = TypeVar("RowT", bound=MnemonicRow)


@dataclass(frozen=True, kw_only=True, eq=False)
class Table(Record, Generic[InstructionT, RowT]):
    """All instructions of one kind."""

    record: type[InstructionT]  # the record that the fields of the grammar make
    grammar: Grammar[RowT]

    @cached_property
    def rows(self) -> Mapping[InstructionT, RowT]:
        """The row of each instruction, in the order of the rows; `TableError` if two rows yield the same one."""
        named, known = [field.name for field in fields(self.record)], self.grammar.types  # type: ignore[arg-type]
        if sorted(named) != sorted(known):
            raise TableError(f"{self.record.__name__} has the fields {named}; its grammar spells {list(known)}")
        found: dict[InstructionT, RowT] = {}
        for row, values in self.grammar.combinations:
            instruction = self.record(**values)
            if instruction in found:
                raise TableError(f"{instruction} comes from two rows, {found[instruction]} and {row}")
            found[instruction] = row
        return found

    def listed(self, target: str | None) -> tuple[InstructionT, ...]:
        """List the instructions of a target, or all of them; an unknown target is a `TargetError`."""
        if target is None:
            return tuple(self.rows)
        check_known(target)
        return tuple(instruction for instruction, row in self.rows.items() if target in row.targets)

    def row(self, instruction: InstructionT) -> RowT:
        """Return the row of an instruction; raise `MnemonicError` for a record that has none."""
        row = self.rows.get(instruction)
        if row is None:
            raise MnemonicError(self._explained(instruction))
        return row

    def parse(self, mnemonic: str | InstructionT, explain: Explain | None = None) -> InstructionT:
        """Read a mnemonic, or check that a record is an instruction.

        Parameters
        ----------
        mnemonic : str or record
        explain : callable, optional
            Explains, for the error, a name that starts differently, given what is read here.
        """
        if isinstance(mnemonic, self.record):
            _ = mnemonic.family
            return mnemonic
        return self._read(bare(mnemonic), str(mnemonic), explain)

    @cached_property
    def _read(self) -> Callable[[str, str, Explain | None], InstructionT]:
        return lru_cache(maxsize=4096)(self._parsed)

    def _parsed(self, text: str, mnemonic: str, explain: Explain | None) -> InstructionT:
        """Read the text of a mnemonic; errors quote it as given."""
        opcode = self.grammar.opcode
        words = text.split(".")
        start = ".".join(words[: opcode.count(".") + 1])
        if start != opcode:
            known = explain(text, SIMULATED[opcode.split(".")[0]]) if explain else ""
            meant = f" ({known})" if known else self.grammar.hint(mnemonic)
            raise MnemonicError(f"{mnemonic}: starts with {start!r}; expected {opcode!r}{meant}")
        for word, why in self.grammar.unsupported.items():
            if word in words:
                raise UnsupportedError(f"{mnemonic}: {why}")
        instruction = self.record(**self.grammar.read(mnemonic, words[1:]))
        _ = self.row(instruction)
        return instruction

    def _explained(self, instruction: InstructionT) -> str:
        """Explain why a well-formed mnemonic is illegal: list the parts that differ from the nearest legal one.

        The nearest k, then the nearest n, breaks ties.
        """
        for refusal in self.grammar.refusals:
            if all(getattr(instruction, name) == value for name, value in refusal.fields.items()):
                return f"{instruction} is refused: {refusal.why}. Nearest legal: {refusal.nearest}"

        names = [field.name for field in fields(instruction)]  # type: ignore[arg-type]

        def differing(other: Any) -> list[str]:
            return [name for name in names if getattr(other, name) != getattr(instruction, name)]

        def likeness(other: InstructionT) -> tuple[int, int, int]:
            weight = sum(self.grammar.weights.get(name, 1) for name in differing(other))
            return -weight, -abs(other.k - instruction.k), -abs(other.n - instruction.n)

        legal = nearest(str(instruction), self.rows, (), likeness) or instruction
        parts = ", ".join(
            f"{name} is {getattr(instruction, name)!r} where {getattr(legal, name)!r} is legal"
            for name in differing(legal)
        )
        return f"{instruction} is not an instruction: {parts}. Nearest legal: {legal}"
