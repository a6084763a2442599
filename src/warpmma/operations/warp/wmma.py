"""`wmma`: rows of its loads, stores and multiplications, from the table in `isa`, with their evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...arithmetic import Evidence, evidence_of
from ...isa import WMMA_MOVES, WMMA_PRODUCTS, FragmentForm, WmmaProduct, WmmaTransfer
from ..forms import Form
from ..measurements import elsewhere, measured
from ..records import InstructionRow

_PTXAS = "machine code of ptxas 12.9 and 13.0"


@dataclass(frozen=True, kw_only=True)
class WmmaMove(WmmaTransfer, InstructionRow):
    """One `wmma.load` or `wmma.store`, for the machine."""


@dataclass(frozen=True, kw_only=True)
class WmmaMultiply(WmmaProduct, InstructionRow):
    """One `wmma.mma`, for the machine."""

    def known(self, target: str) -> Evidence:
        """Evidence on a target: that of its `mma`; that it consists of these was read from machine code."""
        step = self.steps(target)[0]
        here = elsewhere(self.evidence, self.left_open, target)
        if here.kind == "measured":
            return replace(here, machine=evidence_of(step, target).machine)
        on = target if target in step.targets else step.targets[0]
        known = evidence_of(step, on)
        assumption = "; ".join(
            filter(None, (f"that it computes what {step} does, which is {known.kind}", known.assumption))
        )
        return Evidence(
            kind="derived", source=f"{_PTXAS}; {known.source}", assumption=assumption, machine=known.machine
        )


_FRAGMENTS = "that fragments are laid out as in the code of ptxas,"
_PRODUCTS = "that it computes what the `mma` of ptxas's code do,"


def _row_form(form: FragmentForm, kind: type[InstructionRow], left_open: str) -> Form:
    return Form(
        spelling=form.spelling, kind=kind, fields=form.fields, since=form.since, ptx=form.ptx, left_open=left_open,
        evidence=measured(f"{form.section}, and {_PTXAS}", form.compared),
    )  # fmt: skip


FORMS: tuple[Form, ...] = (
    *(_row_form(form, WmmaMove, _FRAGMENTS) for form in WMMA_MOVES),
    *(_row_form(form, WmmaMultiply, _PRODUCTS) for form in WMMA_PRODUCTS),
)
"""Every form of this module."""
