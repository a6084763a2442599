"""Evidence: how we know what each instruction computes on each target.

The rows of `EVIDENCE` are searched in order, and the first that fits is the answer. What was measured, by whom and how
much, is told at more length in `docs/evidence.md`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from ..isa import AnyInstruction
from .recipes import GENERATIONS, SINCE_AMPERE, family, group, path

__all__ = ["EVIDENCE", "Evidence", "EvidenceRow", "evidence"]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """How a result is known.

    Attributes
    ----------
    kind : {"measured", "published", "derived"}
        Compared with hardware by this project; published, by others who measured or in PTX, which defines integers
        exactly; or concluded.
    source : str
        By whom, or from what.
    device : str
        The GPU that was measured, if any.
    compared : str
        How much was compared, and with which outcome.
    assumption : str
        What is taken for granted beyond the source; empty where nothing is.
    machine : str
        The machine instructions that ptxas makes of it.
    """

    kind: Literal["measured", "published", "derived"]
    source: str
    device: str = ""
    compared: str = ""
    assumption: str = ""
    machine: str = ""

    def __str__(self) -> str:
        on, given = f"on {self.device}" * bool(self.device), f"assuming {self.assumption}" * bool(self.assumption)
        runs = f"as {self.machine}" * bool(self.machine)
        return f"{self.kind}: " + "; ".join(part for part in (self.source, on, self.compared, given, runs) if part)


@dataclass(frozen=True, kw_only=True)
class EvidenceRow:
    """Evidence for the instructions of a group on some targets, narrowed by attributes of the instruction.

    Attributes
    ----------
    group : str
    targets : tuple of str
    evidence : Evidence
    only : dict
        Attributes of the instruction and the values that fit.
    """

    group: str
    targets: tuple[str, ...]
    evidence: Evidence
    only: tuple[tuple[str, tuple[object, ...]], ...] = ()

    def fits(self, instruction: AnyInstruction, target: str) -> bool:
        """Whether the row speaks of this instruction on this target."""
        return (
            self.group == group(instruction)
            and target in self.targets
            and all(getattr(instruction, name) in values for name, values in self.only)
        )


_XIE = "Xie et al., arXiv 2511.10909, and mmasim 2.1.1"
_KHATTAK = "Khattak and Mikaitis, arXiv 2512.07004"
_BOTH = f"{_XIE}; {_KHATTAK}"
_PTXAS = "machine code of ptxas 13.0"
_H200 = "H200, driver 580.159, CUDA 13.0"
_NAN64 = "NaN payloads as on an H200"
_SM100, _SM103, _SM110 = family(100), family(103), family(110)
_SM120, _SM121 = family(120), family(121)
_SM90 = GENERATIONS["Hopper"]
_AMPERE_ON = tuple(t for g in SINCE_AMPERE for t in GENERATIONS[g])


def _measured(compared: str) -> Evidence:
    return Evidence(kind="measured", source="this project", device=_H200, compared=f"{compared} outputs, 0 differences")


def _published(source: str, device: str, assumption: str = "") -> Evidence:
    return Evidence(kind="published", source=source, device=device, assumption=assumption)


def _derived(source: str, assumption: str) -> Evidence:
    return Evidence(kind="derived", source=source, assumption=assumption)


def _row(group: str, targets: tuple[str, ...], evidence: Evidence, **only: tuple[object, ...]) -> EvidenceRow:
    return EvidenceRow(group=group, targets=targets, evidence=evidence, only=tuple(only.items()))


def _like(group: str, targets: tuple[str, ...], other: str) -> EvidenceRow:
    """Make a row for targets with the machine instruction of one that was measured; nobody measured these."""
    return _row(group, targets, _derived(_PTXAS, f"that its matrix unit computes as {other}'s does"))


def _sparse_rows() -> tuple[EvidenceRow, ...]:
    """Nobody published a sparse instruction's arithmetic; on an H200 it was measured."""
    every = tuple(GENERATIONS[g] for g in SINCE_AMPERE)
    stored = "that the unit takes stored products in their order, as many in a step as of dense ones, as on an H200"
    counts = {"half": "229,376", "fp8": "229,376", "int8": "65,536", "int4": "65,536"}
    measured = [_row(name, _SM90, _measured(count), sparse=(True,)) for name, count in counts.items()]
    elsewhere = [
        _row("fp8", _SM100 + _SM103 + _SM110, _derived(f"{_PTXAS}: the code of sm_90", stored), sparse=(True,)),
        *(
            _row(name, sum(every, ()), _derived(f"{_PTXAS}, and the dense instruction", stored), sparse=(True,))
            for name in ("half", "fp8", "f8f6f4", "mxf8f6f4")
        ),
        *(
            _row(
                name, _SM120 + _SM121,
                _derived(f"{_PTXAS}, and the dense instruction", "groups of 16 stored products"), sparse=(True,),
            )
            for name in ("mxf4", "mxf4nvf4")
        ),
    ]  # fmt: skip
    return (*measured, *elsewhere)


def _warpgroup_rows() -> tuple[EvidenceRow, ...]:
    """Make the rows of `wgmma`: what was measured had n = 8 and A in registers."""
    on, eight = ("sm_90a",), (8,)
    floating = _measured("2,097,152")
    return (
        _row("wgmma half", on, floating, n=eight),
        _row("wgmma half", on, _published(_XIE, "H100")),
        _row("wgmma fp8", on, floating, n=eight, a_type=("e4m3",), b_type=("e4m3",)),
        _row("wgmma fp8", on, floating, n=eight, a_type=("e5m2",), d_type=("f32",)),
        _row("wgmma fp8", on, floating, n=eight, a_type=("e4m3",), d_type=("f16",)),
        _row("wgmma fp8", on, _published(_XIE, "H100"), d_type=("f32",)),
        _row(
            "wgmma fp8", on,
            _published(_XIE, "H100", "a model's parameters for f16 D, measured where A is e4m3 and n is 8"),
        ),
        _row("wgmma int8", on, _measured("262,144"), n=eight, satfinite=(False,)),
        _row("wgmma int8", on, _published("PTX ISA 9.1: exact, wrapping", ""), satfinite=(False,)),
        _row(
            "wgmma int8", on,
            _derived("PTX ISA 9.1: the final value is saturated", "one clamp at the end, as of IMMA on an H200"),
        ),
        _row("wgmma b1", on, _published("PTX ISA 9.1: exact, wrapping", "")),
    )  # fmt: skip


EVIDENCE: tuple[EvidenceRow, ...] = (
    *_sparse_rows(),
    *_warpgroup_rows(),
    # f16 m8n8k4
    _row(
        "quad pair", GENERATIONS["Volta"] + GENERATIONS["Turing"],
        _derived(
            "HMMA.884 of other accumulators",
            "an f16 C enters with f16's exponents where D is f32; F = 23, and sm_72 and sm_75 as sm_70",
        ),
        d_type=("f32",), c_type=("f16",),
    ),
    _row("quad pair", ("sm_70",), _published(_BOTH, "V100"), d_type=("f32",)),
    _row(
        "quad pair", ("sm_70",),
        _published(_BOTH, "V100", "F = 23, Z = -19 and a single rounding of a simulator, which rows hardly notice"),
        d_type=("f16",),
    ),
    _row("quad pair", ("sm_72",), _derived("sm_70", "that sm_72 computes as sm_70 does")),
    _row(
        "quad pair", ("sm_75",),
        _derived(_XIE, "F = 23 (its later version); the first version of the paper says 24"),
    ),
    _row("quad pair", _SM90, _measured("458,752")),
    _row(
        "quad pair", _AMPERE_ON,
        _derived(_PTXAS, "nothing but IEEE arithmetic; the same code was measured on an H200"),
    ),
    # f16, bf16, tf32
    _row("half", ("sm_75",), _published(_XIE, "T4")),
    _row("half", ("sm_80",), _published(_BOTH, "A100, A30")),
    _row("half", ("sm_86",), _published(_KHATTAK, "A2")),
    _like("half", ("sm_87", "sm_88"), "sm_80"),
    _row("half", ("sm_89",), _published(_BOTH, "RTX 4090, L40S, RTX 1000 Ada")),
    _row("half", _SM90, _measured("3,670,016")),
    _row("half", _SM100, _published(_BOTH, "B200")),
    _like("half", _SM103 + _SM110, "sm_100"),
    _row("half", _SM120, _published(_XIE, "RTX PRO 6000 Blackwell")),
    _like("half", _SM121, "sm_120"),
    # e4m3, e5m2
    _row("fp8", ("sm_89",), _published(_BOTH, "RTX 4090, L40S, RTX 1000 Ada")),
    _row("fp8", _SM90, _measured("2,621,440")),
    _row(
        "fp8", _SM100, _published(f"{_KHATTAK}: rows recognised as this software path", "B200"),
        k=(32,), a_type=("e4m3",), b_type=("e4m3",),
    ),
    _row(
        "fp8", _SM100, _published(f"{_KHATTAK}: rows recognised as this software path", "B200"),
        k=(32,), a_type=("e5m2",), b_type=("e5m2",),
    ),
    _row("fp8", _SM100, _derived(f"{_PTXAS}: the code of sm_90", "that HMMA computes as it is published for sm_100")),
    _like("fp8", _SM103 + _SM110, "sm_100"),
    _row("fp8", _SM120, _published(_XIE, "RTX PRO 6000 Blackwell")),
    _like("fp8", _SM121, "sm_120"),
    # e3m2, e2m3, e2m1 among them
    _row("f8f6f4", _SM120, _published(_XIE, "RTX PRO 6000 Blackwell")),
    _like("f8f6f4", _SM121, "sm_120"),
    # Block-scaled
    *(
        row
        for name in ("mxf8f6f4", "mxf4", "mxf4nvf4")
        for row in (
            _row(name, _SM120, _published(_XIE, "RTX PRO 6000 Blackwell")),
            _like(name, _SM121, "sm_120"),
        )
    ),
    # f64
    _row("f64", _SM90, _measured("786,432 or 1,572,864")),
    _row("f64", ("sm_80",), _published(_BOTH, "A100", _NAN64)),
    _row("f64", _SM100, _published(_XIE, "B200", _NAN64), m=(8,), rounding=(None, "rn")),
    _row("f64", _SM120, _published(_XIE, "RTX PRO 6000 Blackwell", _NAN64), m=(8,), rounding=(None, "rn")),
    _row("f64", _AMPERE_ON, _derived(f"{_PTXAS}: DMMA.8x8x4, k ascending", f"that it is a chain of fma; {_NAN64}")),
    # Integers
    _row("int8", _SM90, _measured("131,072 or 262,144")),
    _row("int4", _SM90, _measured("131,072 or 262,144")),
    *(
        row
        for name in ("int8", "int4")
        for row in (
            _row(name, ("sm_75", *_AMPERE_ON), _published("PTX ISA 9.1: exact, wrapping", ""), satfinite=(False,)),
            _row(
                name, ("sm_75", *_AMPERE_ON),
                _derived("PTX ISA 9.1: the final value is saturated", "one clamp at the end, as measured on an H200"),
            ),
        )
    ),
    _row("b1", _SM90, _measured("8,192")),
    _row("b1", ("sm_75", *_AMPERE_ON), _published("PTX ISA 9.1: exact, wrapping", "")),
)  # fmt: skip
"""How we know, first fit first."""


@cache
def evidence(instruction: AnyInstruction, target: str) -> Evidence:
    """Return how we know what an instruction computes on a target; see `warpmma.evidence`."""
    machine = path(instruction, target).machine
    row = next(row for row in EVIDENCE if row.fits(instruction, target))
    return replace(row.evidence, machine=machine.format(sp=".SP" if instruction.sparse else ""))
