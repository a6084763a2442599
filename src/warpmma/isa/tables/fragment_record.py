"""Instructions that move or multiply fragments and are not `mma`: `ldmatrix`, `stmatrix`, `movmatrix`, `wmma`.

1. A form is a row of the table: a spelling, and what its mnemonics have in common. The words of a mnemonic determine
   the fields of its record.
2. `fragment` returns the part of an operand in a lane's registers, as a layout. If the layout differs between targets,
   the caller must name one: an error is better than the answer for another GPU.
3. `layout_known` returns the source of a layout. PTX defines the fragments of `ldmatrix` and the like. It calls those
   of `wmma` opaque: they were read from machine code, and measured on one GPU.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType
from typing import Literal

from ..._arguments import check_choice
from ..._views import view
from ...errors import TargetError
from ...layouts import Layout
from ..gpus import check_known, since
from ..grammar import FormInstruction, InstructionForm
from ..targets import TARGETS

Variant = Literal["matrix", "copy"]
"""What `Layout.matrix` numbers: matrices, or copies of one."""

MEASURED_ON = tuple(t.name for t in TARGETS.values() if t.capability == (9, 0))
"""Targets of the GPU on which layouts were measured, an H200."""

READ_ON = ("sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90")
"""Targets for which opaque layouts were read from machine code of ptxas: `tests/data/wmma.json`."""


@dataclass(frozen=True, kw_only=True)
class FragmentInstruction(FormInstruction, ABC):
    """One instruction whose registers hold fragments; its attributes are those of `FormInstruction`."""

    @property
    @abstractmethod
    def form(self) -> FragmentForm:
        """The row of the table that it comes from."""

    @property
    @abstractmethod
    def shape_name(self) -> str:
        """Shape as PTX spells it."""

    @property
    @abstractmethod
    def operands(self) -> tuple[str, ...]:
        """The fragment that a lane holds in registers: "A", "B", "C", "D", and "address" for the address of a row."""

    @abstractmethod
    def _element_type(self, operand: str) -> str:
        """PTX type of one of the operands."""

    @abstractmethod
    def _fragment(self, operand: str, target: str) -> Layout:
        """Return the layout of an operand on a target that has the instruction."""

    def element_type(self, operand: str) -> str:
        """PTX type of an operand's elements in registers; "address" for addresses. Other operands are errors."""
        check_choice(f"{self}: operand", operand, self.operands)
        return self._element_type(operand)

    def variant(self, operand: str) -> Variant:
        """Describe what the layout's matrix numbers count."""
        return "matrix"

    def counted(self, operand: str, target: str | None = None) -> int:
        """Return how many of the layout's matrices the instruction reads or writes."""
        return self.fragment(operand, target).matrices

    def fragment(self, operand: str, target: str | None = None) -> Layout:
        """Return the part of an operand that a lane's registers hold, as a layout.

        Parameters
        ----------
        operand : str
            One of `operands`.
        target : str, optional
            Optional if the layout is the same on all targets of the instruction.

        Raises
        ------
        OperandError
            Another operand.
        TargetError
            An unknown target, one without the instruction, or no target although targets differ (rule 2).
        """
        check_choice(f"{self}: operand", operand, self.operands)
        if target is not None:
            self._check(target)
            return self._fragment(operand, target)
        (layout, _), *others = self.fragments(operand).items()
        if others:
            groups = "; ".join(_span(targets) for targets in self.fragments(operand).values())
            raise TargetError(f"{self}: the fragment of {operand} differs between targets; name one of {groups}")
        return layout

    def _check(self, target: str) -> None:
        check_known(target)
        if target not in self.targets:
            raise TargetError(f"{self} is not legal on {target}; legal on {', '.join(self.targets)}")

    def fragments(self, operand: str) -> Mapping[Layout, tuple[str, ...]]:
        """Return the layouts of an operand, each with the targets that have it, oldest first."""
        check_choice(f"{self}: operand", operand, self.operands)
        if operand not in self._fragments:
            found: dict[Layout, tuple[str, ...]] = {}
            for target in self.targets:
                layout = self._fragment(operand, target)
                found[layout] = (*found.get(layout, ()), target)
            self._fragments[operand] = MappingProxyType(found)
        return self._fragments[operand]

    @cached_property
    def _fragments(self) -> dict[str, Mapping[Layout, tuple[str, ...]]]:
        return {}

    def layout_known(self, target: str | None = None) -> str:
        """State how the layouts are known (rule 3); a target without the instruction is a `TargetError`."""
        if target is not None:
            self._check(target)
        return self.form.layout_known(target)

    def svg(self, operand: str = "D", by: str = "element", *, target: str | None = None, theme: str = "auto") -> str:
        """Draw which lane and register each element of an operand is in, or which elements each register has.

        Parameters
        ----------
        operand : str
            One of `operands`.
        by : {"element", "lane"}
        target : str, optional
            As for `fragment`.

        Raises
        ------
        OperandError, TargetError
            Another operand, order or theme; for targets see `fragment`.
        """
        return view(self, "svg", operand, by, target=target, theme=theme)


@dataclass(frozen=True, kw_only=True, eq=False)
class FragmentForm(InstructionForm[FragmentInstruction]):
    """A row of the table: mnemonics that differ in their qualifiers."""

    section: str  # of the PTX ISA
    compared: str = ""  # what was compared with an H200; empty if nothing
    opaque: bool = False  # whether PTX leaves the fragments undefined

    def layout_known(self, target: str | None = None) -> str:
        """Rule 3."""
        source = f"PTX ISA 9.1, {self.section}"
        if not self.compared:
            return f"derived from the text of {source}; no GPU was asked"
        figures = f"measured on an H200, {self.compared}, 0 differences"
        if not self.opaque:
            return f"published: {source}" + f"; {figures}" * (target is None or target in MEASURED_ON)
        read = "read from machine code of ptxas"
        if target is None:
            having = tuple(name for name in READ_ON if name in since(self.since))
            return f"opaque in PTX; {read} for {', '.join(having)}; {figures}"
        if target in MEASURED_ON:
            return f"opaque in PTX; {figures}"
        if target in READ_ON:
            return f"opaque in PTX; {read} for {target}; not measured on such a GPU"
        return f"opaque in PTX; derived: taken to be as {read} for {_before(target)}; not measured on such a GPU"


def _before(target: str) -> str:
    """Return the newest target below one for which layouts were read."""
    return max((x for x in READ_ON if TARGETS[x].number <= TARGETS[target].number), key=lambda x: TARGETS[x].number)


def _span(targets: tuple[str, ...]) -> str:
    return targets[0] if len(targets) == 1 else f"{targets[0]} to {targets[-1]}"


@cache
def form_of(forms: tuple[FragmentForm, ...], mnemonic: str) -> FragmentForm:
    """Return the form that spells a mnemonic."""
    words = tuple(mnemonic.split("."))
    return next(form for form in forms if form.match(words))
