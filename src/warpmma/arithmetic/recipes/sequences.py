"""The approximate functions of PTX: sequences of machine instructions around a function of the special-function unit.

Specification
-------------
1.  ptxas translates a form of PTX to one function of the unit (`special_functions`) and what surrounds it, the same on
    every target that has the form. A packed form is two of the unpacked one; `MACHINE_PACKED` says where one
    instruction does it.
2.  Multiplications and additions are IEEE: the exact result rounded once, to nearest even, subnormal numbers kept, any
    NaN 0x7FFFFFFF. With `.ftz` a multiplication (`FMUL.FTZ`) takes subnormal operands as zeros of their sign, and its
    result is a zero of its sign if it is below 2^-126 when rounded with no lower bound of the exponent.
3.  Scaling: where the operand lies in a range, it is multiplied before the function, and the function's result is
    multiplied, or added to, or squared. Outside all ranges nothing happens. A NaN lies in none.
4.  sin and cos: the operand times 0x3E22F983, nearly 1 / (2 pi), rounded toward zero, `.ftz` or not, is the turns that
    the unit takes.
5.  Division: the function is rcp, of the divisor; its result is multiplied by the dividend. The divisor's range
    decides whether both are scaled before; nothing is done after.
6.  `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: the unit takes the operand's upper word and gives the result's. The
    operand's lower word is ignored, the result's is zero.
7.  `rsqrt.approx.f64`: y, as of rule 6, is refined once: t = y y, e = 1 - x t, c = 0.375 e + 0.5, u = y e, and the
    result is c u + y; each is rounded once. Subnormal operands are scaled (rule 3). Of zeros, NaN, negative numbers and
    +infinity the result is some bits of the operand with others set.

Source: docs/specification/lowering.md 3, the machine code that ptxas 13.0 emits for sm_75 to sm_121, compared with the
forms on an H200.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from ..._arguments import check_choice
from ..._records import Shown
from ...errors import OperandError, TargetError
from ...formats import FloatFormat, floating
from ...isa import check_known, since
from .lowerings import variants


@dataclass(frozen=True, kw_only=True)
class CodeRange:
    """The codes from `first` to `last`, comparing only the bits of a mask."""

    mask: int
    first: int
    last: int

    def __contains__(self, code: int) -> bool:
        return self.first <= code & self.mask <= self.last


@dataclass(frozen=True, kw_only=True)
class OperandScaling:
    """The scaling of operands in a range (rule 3).

    Attributes
    ----------
    where : CodeRange
        Of the operand, or the divisor.
    before : float
        What the operands are multiplied by: a power of two.
    after : {"nothing", "multiply", "add", "square"}
        What happens to the function's result.
    number : float
        By what, of "multiply" and "add".
    """

    where: CodeRange
    before: float
    after: Literal["nothing", "multiply", "add", "square"]
    number: float = 1.0


@dataclass(frozen=True, kw_only=True)
class KeptBits:
    """Results that are some bits of the operand, with others set (rule 7): `code & keep | put`."""

    where: CodeRange
    keep: int
    put: int


@dataclass(frozen=True, kw_only=True)
class FusedStep:
    """One fused multiply-add in f64, `to = a b + c`, or a product.

    Attributes
    ----------
    to : str
    a : str
        "x", the operand; "y", the unit's result; or the result of an earlier step.
    b, c : str or float
        The same, or a number; `b` with "-" before it is negated. A product has no `c`.
    """

    to: str
    a: str
    b: str | float
    c: str | float | None = None


@dataclass(frozen=True, kw_only=True)
class ApproximateForm(Shown):
    """A form of PTX as a sequence of machine instructions.

    Attributes
    ----------
    form : str
        As PTX writes it, without packing.
    function : str
        Of the unit, by its name in `SPECIAL_FUNCTIONS`.
    machine : str
        The machine instructions, in their order, except comparisons, selections and moves; of operands that no slow
        path takes.
    since : str
        The oldest target that has it.
    factor : int or None
        f32 code of what the operand is multiplied by, toward zero (rule 4).
    scalings : tuple of OperandScaling
        At most one of them fits.
    dividend : bool
        Whether there are two operands, the dividend first (rule 5).
    ftz : bool
        Whether multiplications flush.
    refinement : tuple of FusedStep
        The last makes the result.
    special : tuple of KeptBits
        Results that are not computed; at most one fits.
    """

    form: str
    function: str
    machine: str
    since: str = "sm_70"
    factor: int | None = None
    scalings: tuple[OperandScaling, ...] = ()
    dividend: bool = False
    ftz: bool = False
    refinement: tuple[FusedStep, ...] = ()
    special: tuple[KeptBits, ...] = ()

    @property
    def fmt(self) -> FloatFormat:
        """Format of the operands and of the result."""
        return floating(self.form.rsplit(".", 1)[1])

    @property
    def operands(self) -> int:
        """Number of operands."""
        return 1 + self.dividend


_MAGNITUDE32, _MAGNITUDE64 = (1 << 31) - 1, (1 << 63) - 1
_SIGN64, _INFINITY64, _QUIET64 = 1 << 63, 0x7FF << 52, 1 << 51
_TINY = CodeRange(mask=_MAGNITUDE32, first=0, last=0x007FFFFF)  # below 2^-126 in magnitude
_HUGE = CodeRange(mask=_MAGNITUDE32, first=0x7E800001, last=0x7F800000)  # above 2^126 in magnitude
_LOW = CodeRange(mask=(1 << 32) - 1, first=0xC2FC0001, last=0xFF800000)  # below -126
_TURNS = 0x3E22F983
_UP, _DOWN = 2.0**24, 2.0**-2

_BOTH_UP = OperandScaling(where=_TINY, before=_UP, after="nothing")
_BOTH_DOWN = OperandScaling(where=_HUGE, before=_DOWN, after="nothing")

_FORMS = (
    ApproximateForm(
        form="rcp.approx.f32", function="rcp", machine="FMUL, MUFU.RCP, FMUL",
        scalings=(OperandScaling(where=_TINY, before=_UP, after="multiply", number=_UP),
                  OperandScaling(where=_HUGE, before=_DOWN, after="multiply", number=_DOWN)),
    ),
    ApproximateForm(form="rcp.approx.ftz.f32", function="rcp", machine="MUFU.RCP"),
    ApproximateForm(
        form="rsqrt.approx.f32", function="rsqrt", machine="FMUL, MUFU.RSQ, FMUL",
        scalings=(OperandScaling(where=_TINY, before=_UP, after="multiply", number=2.0**12),),
    ),
    ApproximateForm(form="rsqrt.approx.ftz.f32", function="rsqrt", machine="MUFU.RSQ"),
    ApproximateForm(
        form="sqrt.approx.f32", function="sqrt", machine="FMUL, MUFU.SQRT, FMUL",
        scalings=(OperandScaling(where=_TINY, before=_UP, after="multiply", number=2.0**-12),),
    ),
    ApproximateForm(form="sqrt.approx.ftz.f32", function="sqrt", machine="MUFU.SQRT"),
    ApproximateForm(
        form="ex2.approx.f32", function="ex2", machine="FMUL, MUFU.EX2, FMUL",
        scalings=(OperandScaling(where=_LOW, before=0.5, after="square"),),
    ),
    ApproximateForm(form="ex2.approx.ftz.f32", function="ex2", machine="MUFU.EX2"),
    ApproximateForm(
        form="lg2.approx.f32", function="lg2", machine="FMUL, MUFU.LG2, FADD",
        scalings=(OperandScaling(where=_TINY, before=_UP, after="add", number=-24.0),),
    ),
    ApproximateForm(form="lg2.approx.ftz.f32", function="lg2", machine="MUFU.LG2"),
    ApproximateForm(form="sin.approx.f32", function="sin", machine="FMUL.RZ, MUFU.SIN", factor=_TURNS),
    ApproximateForm(form="sin.approx.ftz.f32", function="sin", machine="FMUL.RZ, MUFU.SIN", factor=_TURNS),
    ApproximateForm(form="cos.approx.f32", function="cos", machine="FMUL.RZ, MUFU.COS", factor=_TURNS),
    ApproximateForm(form="cos.approx.ftz.f32", function="cos", machine="FMUL.RZ, MUFU.COS", factor=_TURNS),
    ApproximateForm(form="tanh.approx.f32", function="tanh", machine="MUFU.TANH", since="sm_75"),
    ApproximateForm(
        form="div.approx.f32", function="rcp", machine="FMUL, FMUL, MUFU.RCP, FMUL", dividend=True,
        scalings=(_BOTH_UP,),
    ),
    ApproximateForm(
        form="div.approx.ftz.f32", function="rcp", machine="MUFU.RCP, FMUL.FTZ", dividend=True, ftz=True,
    ),
    ApproximateForm(
        form="div.full.f32", function="rcp", machine="FMUL, FMUL, FMUL, FMUL, MUFU.RCP, FMUL", dividend=True,
        scalings=(_BOTH_DOWN, _BOTH_UP),
    ),
    ApproximateForm(
        form="div.full.ftz.f32", function="rcp", machine="FMUL.FTZ, FMUL.FTZ, MUFU.RCP, FMUL.FTZ", dividend=True,
        ftz=True, scalings=(_BOTH_DOWN,),
    ),
    ApproximateForm(form="ex2.approx.f16", function="ex2.f16", machine="MUFU.EX2.F16", since="sm_75"),
    ApproximateForm(form="tanh.approx.f16", function="tanh.f16", machine="MUFU.TANH.F16", since="sm_75"),
    ApproximateForm(form="ex2.approx.ftz.bf16", function="ex2.bf16", machine="MUFU.EX2.BF16", since="sm_90"),
    ApproximateForm(form="tanh.approx.bf16", function="tanh.bf16", machine="MUFU.TANH.BF16", since="sm_90"),
    ApproximateForm(form="rcp.approx.ftz.f64", function="rcp.f64", machine="MUFU.RCP64H"),
    ApproximateForm(form="rsqrt.approx.ftz.f64", function="rsqrt.f64", machine="MUFU.RSQ64H"),
    ApproximateForm(
        form="rsqrt.approx.f64", function="rsqrt.f64", machine="MUFU.RSQ64H, DMUL, DFMA, DFMA, DMUL, DFMA",
        scalings=(OperandScaling(
            where=CodeRange(mask=_MAGNITUDE64 | _SIGN64, first=1, last=(1 << 52) - 1), before=2.0**54,
            after="multiply", number=2.0**27,
        ),),
        refinement=(
            FusedStep(to="t", a="y", b="y"),
            FusedStep(to="e", a="x", b="-t", c=1.0),
            FusedStep(to="c", a="e", b=0.375, c=0.5),
            FusedStep(to="u", a="y", b="e"),
            FusedStep(to="result", a="c", b="u", c="y"),
        ),
        special=(
            KeptBits(where=CodeRange(mask=_MAGNITUDE64, first=0, last=0), keep=_SIGN64, put=_INFINITY64),
            KeptBits(
                where=CodeRange(mask=_MAGNITUDE64, first=_INFINITY64 + 1, last=_MAGNITUDE64),
                keep=_MAGNITUDE64 | _SIGN64, put=_QUIET64,
            ),
            KeptBits(
                where=CodeRange(mask=_MAGNITUDE64 | _SIGN64, first=_SIGN64 + 1, last=_SIGN64 | _INFINITY64),
                keep=0, put=_SIGN64 | _INFINITY64 | _QUIET64,
            ),
            KeptBits(
                where=CodeRange(mask=_MAGNITUDE64 | _SIGN64, first=_INFINITY64, last=_INFINITY64), keep=0, put=0,
            ),
        ),
    ),
)  # fmt: skip
SEQUENCES: Mapping[str, ApproximateForm] = MappingProxyType({row.form: row for row in _FORMS})
"""Every approximate form of PTX, by its name without packing."""

MACHINE_PACKED: Mapping[tuple[str, str], str] = MappingProxyType({
    (form, target): machine
    for form, machine in (("ex2.approx.f16", "MUFU.EX2.F16x2"), ("ex2.approx.ftz.bf16", "MUFU.EX2.BF16x2"))
    for target in variants(103)
})  # fmt: skip
"""By form and target: where the packed form is one machine instruction, and not two and `PRMT`."""


def find_sequence(form: str) -> ApproximateForm:
    """Return the sequence of a form; raise `OperandError` for an unknown form.

    Examples
    --------
    >>> find_sequence("ex2.approx.f32").scalings[0].after
    'square'
    """
    check_choice("approximate form", form, tuple(SEQUENCES))
    return SEQUENCES[form]


def machine_text(form: str, target: str) -> str:
    """Return the machine instructions that a form becomes, except comparisons, selections and moves.

    Parameters
    ----------
    form : str
        Packed or not: "ex2.approx.f16x2".
    target : str

    Returns
    -------
    str
        What ptxas 13.0 emits; of targets older than sm_75, which it does not know, what it emits for sm_75.

    Raises
    ------
    OperandError
        There is no such form.
    TargetError
        There is no such target, or it has not this form.

    Examples
    --------
    >>> machine_text("ex2.approx.f32", "sm_90")
    'FMUL, MUFU.EX2, FMUL'
    >>> machine_text("ex2.approx.f16x2", "sm_90"), machine_text("ex2.approx.f16x2", "sm_103a")
    ('MUFU.EX2.F16, MUFU.EX2.F16, PRMT', 'MUFU.EX2.F16x2')
    """
    packings = {f"{row.form}x2": row.form for row in _FORMS if row.fmt.bits == 16}
    check_choice("approximate form", form, (*SEQUENCES, *packings))
    row = SEQUENCES[packings.get(form, form)]
    check_known(target)
    if target not in since(row.since):
        raise TargetError(f"{form} is not legal on {target}; legal on {', '.join(since(row.since))}")
    if form not in packings:
        return row.machine
    return MACHINE_PACKED.get((row.form, target), f"{row.machine}, {row.machine}, PRMT")


def check_count(row: ApproximateForm, count: int) -> None:
    """Raise `OperandError` unless there are as many operands as a form takes."""
    if count != row.operands:
        takes = "a dividend and a divisor" if row.dividend else "one operand"
        raise OperandError(f"{row.form} takes {takes}; got {count}")
