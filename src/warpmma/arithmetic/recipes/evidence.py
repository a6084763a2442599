"""Evidence: how we know what each instruction computes on each target.

One row of `EVIDENCE` answers for an instruction (`scopes` has the rule). Evidence for a shape that did not exist when
a GPU was measured, or for a target that no row names, is derived from a row. `docs/evidence.md` describes what was
measured, by whom and how much.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Literal

from ..._records import Shown
from ...errors import UnsupportedError
from ...isa import TARGETS, MatrixInstruction
from .lowerings import GENERATIONS, lowering_of, variants
from .scopes import Scope, ScopedTable


@dataclass(frozen=True, kw_only=True)
class Evidence(Shown):
    """The evidence for a result.

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
        What is assumed beyond the source; may be empty.
    machine : str
        The machine instructions that ptxas emits for it.
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
class EvidenceRow(Scope):
    """Evidence for the instructions of a group on some targets.

    Attributes
    ----------
    group, places, only
        As of `Scope`; the places are targets.
    evidence : Evidence
    shapes : tuple of str
        The measured ones; empty where the shape does not matter or nothing was measured.
    """

    evidence: Evidence
    shapes: tuple[str, ...] = ()


_XIE = "Xie et al., arXiv 2511.10909, and mmasim 2.1.1"
_KHATTAK = "Khattak and Mikaitis, arXiv 2512.07004"
_BOTH = f"{_XIE}; {_KHATTAK}"
_PTXAS = "machine code of ptxas 13.0"
_H200 = "H200, driver 580.159, CUDA 13.0"
_NAN64 = "NaN payloads as on an H200"
_VOLTA, _TURING, _AMPERE, _ADA = ("sm_70", "sm_72"), ("sm_75",), variants(80, 86, 87, 88), ("sm_89",)
_SM90, _SM100, _SM103, _SM110, _SM120, _SM121 = (variants(number) for number in (90, 100, 103, 110, 120, 121))
_SINCE_AMPERE_BUT_HOPPER = _AMPERE + _ADA + _SM100 + _SM103 + _SM110 + _SM120 + _SM121
_SPARSE: Mapping[str, tuple[object, ...]] = MappingProxyType({"sparse": (True,)})
_DENSE: Mapping[str, tuple[object, ...]] = MappingProxyType({"sparse": (False,)})

# The shapes that existed when GPUs were measured; for `wgmma` the rows name them.
_SHAPES: Mapping[str, str] = MappingProxyType({
    "quad pair": "m8n8k4",
    "half": "m16n8k4 m16n8k8 m16n8k16",
    "sparse half": "m16n8k8 m16n8k16 m16n8k32",
    "fp8": "m16n8k16 m16n8k32",
    "sparse fp8": "m16n8k64",
    "f8f6f4": "m16n8k32",
    "mxf8f6f4": "m16n8k32",
    "mxf4": "m16n8k64",
    "mxf4nvf4": "m16n8k64",
    "f64": "m8n8k4 m16n8k4 m16n8k8 m16n8k16",
    "int8": "m8n8k16 m16n8k16 m16n8k32",
    "sparse int8": "m16n8k32 m16n8k64",
    "int4": "m8n8k32 m16n8k32 m16n8k64",
    "sparse int4": "m16n8k64 m16n8k128",
    "b1": "m8n8k128 m16n8k128 m16n8k256",
})  # fmt: skip


# tests/data/h200_compare.json: of each instruction that sm_90a has at least so many; sm_90's machine code is the same.
_MEASURED = Evidence(
    kind="measured", source="this project", device=_H200, compared="1,006,632,960 outputs, 0 differences"
)  # fmt: skip


def _published(source: str, device: str, assumption: str = "") -> Evidence:
    return Evidence(kind="published", source=source, device=device, assumption=assumption)


def _derived(source: str, *assumptions: str, machine: str = "") -> Evidence:
    return Evidence(kind="derived", source=source, assumption="; ".join(filter(None, assumptions)), machine=machine)


def _row(group: str, targets: tuple[str, ...], evidence: Evidence, **only: tuple[object, ...]) -> EvidenceRow:
    shapes = _SHAPES.get("sparse " * (only.get("sparse") == (True,)) + group, "") if evidence.device else ""
    return EvidenceRow(
        group=group, places=targets, evidence=evidence, only=tuple(only.items()), shapes=tuple(shapes.split())
    )


def _like(group: str, targets: tuple[str, ...], other: str, **only: tuple[object, ...]) -> EvidenceRow:
    """Make a row for unmeasured targets that share the machine instruction of a measured one."""
    return _row(group, targets, _derived(_PTXAS, f"that its matrix unit computes as {other}'s does"), **only)


def _quad_pair_rows() -> tuple[EvidenceRow, ...]:
    """Of m8n8k4 f16: HMMA.884 up to sm_75, software later."""
    odd = _derived(
        "HMMA.884 of other accumulators",
        "an f16 C enters with f16's exponents where D is f32; F = 23, and sm_72 and sm_75 as sm_70",
    )
    return (
        *(_row("quad pair", (target,), odd, d_type=("f32",), c_type=("f16",)) for target in _VOLTA + _TURING),
        _row("quad pair", ("sm_70",), _published(_BOTH, "V100"), d_type=("f32",)),
        _row(
            "quad pair",
            ("sm_70",),
            _published(_BOTH, "V100", "F = 23, Z = -19 and a single rounding of a simulator, which rows hardly notice"),
            d_type=("f16",),
        ),
        _row("quad pair", ("sm_72",), _derived("sm_70", "that sm_72 computes as sm_70 does")),
        _row(
            "quad pair", _TURING, _derived(_XIE, "F = 23 (its later version); the first version of the paper says 24")
        ),
        _row("quad pair", _SM90, _MEASURED),
        _row(
            "quad pair",
            _SINCE_AMPERE_BUT_HOPPER,
            _derived(_PTXAS, "nothing but IEEE arithmetic; the same code was measured on an H200"),
        ),
    )


def _half_rows() -> tuple[EvidenceRow, ...]:
    """Of f16, bf16, tf32."""
    return (
        _row("half", _TURING, _published(_XIE, "T4"), **_DENSE),
        _row("half", ("sm_80",), _published(_BOTH, "A100, A30"), **_DENSE),
        _row("half", ("sm_86",), _published(_KHATTAK, "A2"), **_DENSE),
        _like("half", ("sm_87", "sm_88"), "sm_80", **_DENSE),
        _row("half", _ADA, _published(_BOTH, "RTX 4090, L40S, RTX 1000 Ada"), **_DENSE),
        _row("half", _SM90, _MEASURED, **_DENSE),
        _row("half", _SM100, _published(_BOTH, "B200"), **_DENSE),
        _like("half", _SM103 + _SM110, "sm_100", **_DENSE),
        _row("half", _SM120, _published(_XIE, "RTX PRO 6000 Blackwell"), **_DENSE),
        _like("half", _SM121, "sm_120", **_DENSE),
    )


def _fp8_rows() -> tuple[EvidenceRow, ...]:
    """Of e4m3 and e5m2."""
    recognised = _published(f"{_KHATTAK}: rows recognised as this software path", "B200")
    software = _derived(f"{_PTXAS}: the code of sm_90", "that HMMA computes as it is published for sm_100")
    return (
        _row("fp8", _ADA, _published(_BOTH, "RTX 4090, L40S, RTX 1000 Ada"), **_DENSE),
        _row("fp8", _SM90, _MEASURED, **_DENSE),
        *(
            _row("fp8", _SM100, recognised, k=(32,), a_type=(name,), b_type=(name,), **_DENSE)
            for name in ("e4m3", "e5m2")
        ),
        _row("fp8", _SM100, software, **_DENSE),
        _like("fp8", _SM103 + _SM110, "sm_100", **_DENSE),
        _row("fp8", _SM120, _published(_XIE, "RTX PRO 6000 Blackwell"), **_DENSE),
        _like("fp8", _SM121, "sm_120", **_DENSE),
    )


def _narrow_rows() -> tuple[EvidenceRow, ...]:
    """Of e3m2, e2m3, e2m1 among others, and of block scales."""
    return tuple(
        row
        for name in ("f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4")
        for row in (
            _row(name, _SM120, _published(_XIE, "RTX PRO 6000 Blackwell"), **_DENSE),
            _like(name, _SM121, "sm_120", **_DENSE),
        )
    )


def _sparse_rows() -> tuple[EvidenceRow, ...]:
    """Rows of sparse instructions, whose arithmetic is unpublished; it was measured on an H200."""
    stored = "that the unit takes stored products in their order, as many in a step as of dense ones, as on an H200"
    dense = f"{_PTXAS}, and the dense instruction"
    return (
        *(_row(name, _SM90, _MEASURED, **_SPARSE) for name in ("half", "fp8", "int8", "int4")),
        _row("half", _SINCE_AMPERE_BUT_HOPPER, _derived(dense, stored), **_SPARSE),
        _row("fp8", _SM100 + _SM103 + _SM110, _derived(f"{_PTXAS}: the code of sm_90", stored), **_SPARSE),
        _row("fp8", _ADA + _SM120 + _SM121, _derived(dense, stored), **_SPARSE),
        *(_row(name, _SM120 + _SM121, _derived(dense, stored), **_SPARSE) for name in ("f8f6f4", "mxf8f6f4")),
        *(
            _row(name, _SM120 + _SM121, _derived(dense, "groups of 16 stored products"), **_SPARSE)
            for name in ("mxf4", "mxf4nvf4")
        ),
    )


def _f64_rows() -> tuple[EvidenceRow, ...]:
    nearest: tuple[object, ...] = (None, "rn")
    chain = _derived(f"{_PTXAS}: DMMA.8x8x4, k ascending", f"that it is a chain of fma; {_NAN64}")
    return (
        _row("f64", _SM90, _MEASURED),
        _row("f64", ("sm_80",), _published(_BOTH, "A100", _NAN64)),
        _row("f64", _SM100, _published(_XIE, "B200", _NAN64), m=(8,), rounding=nearest),
        _row("f64", _SM120, _published(_XIE, "RTX PRO 6000 Blackwell", _NAN64), m=(8,), rounding=nearest),
        _row("f64", tuple(t for t in _SINCE_AMPERE_BUT_HOPPER if t != "sm_80"), chain),
    )


_EXACT = _published("PTX ISA 9.1: exact, wrapping", "")


def _integer_rows() -> tuple[EvidenceRow, ...]:
    """Of integers, and single bits."""
    elsewhere = _TURING + _SINCE_AMPERE_BUT_HOPPER
    clamped = _derived("PTX ISA 9.1: the final value is saturated", "one clamp at the end, as measured on an H200")
    return (
        *(_row(name, _SM90, _MEASURED, **_DENSE) for name in ("int8", "int4")),
        *(_row(name, elsewhere, _EXACT, satfinite=(False,)) for name in ("int8", "int4")),
        *(_row(name, elsewhere, clamped, satfinite=(True,)) for name in ("int8", "int4")),
        _row("b1", _SM90, _MEASURED),
        _row("b1", elsewhere, _EXACT),
    )


def _warpgroup_rows() -> tuple[EvidenceRow, ...]:
    """Of `wgmma`, dense and sparse; docs/specification/wgmma.md 5 has more."""
    return tuple(_row(f"wgmma {group}", ("sm_90a",), _MEASURED) for group in ("half", "fp8", "int8", "b1"))


EVIDENCE: tuple[EvidenceRow, ...] = (
    *_quad_pair_rows(), *_half_rows(), *_fp8_rows(), *_narrow_rows(), *_sparse_rows(), *_f64_rows(), *_integer_rows(),
    *_warpgroup_rows(),
)  # fmt: skip
"""The evidence for every instruction on every target that a row names."""

_NAMED = {target for row in EVIDENCE for target in row.places}
_TABLE = ScopedTable(
    "EVIDENCE", EVIDENCE, lambda record: tuple(target for target in record.targets if target in _NAMED)
)


@cache
def evidence_of(record: MatrixInstruction, target: str) -> Evidence:
    """Return how we know what a record computes on a target that has it; see `warpmma.evidence`.

    Raises
    ------
    UnsupportedError
        Nothing is known: of a target that no row names, and of whose generation no row names one with the instruction.
    """
    machine = lowering_of(record, target).machine.format(sp=".SP" if record.sparse else "")
    row = _TABLE.find(record, target)
    if row is None:
        return _as_its_generation(record, target, machine)
    if row.shapes and record.shape not in row.shapes:
        known = row.evidence
        return _derived(
            f"other shapes ({known.kind}: {known.source})", f"that {record.shape} is computed as {row.shapes[-1]} is",
            known.assumption, machine=machine,
        )  # fmt: skip
    return replace(row.evidence, machine=machine)


def _as_its_generation(record: MatrixInstruction, target: str, machine: str) -> Evidence:
    """Conclude from a target of the same generation."""
    generation = TARGETS[target].generation
    other = next((t for t in GENERATIONS[generation] if t in _NAMED and t in record.targets), None)
    if other is None:
        raise UnsupportedError(
            f"{record}: how it computes on {target} is not known; no row of evidence names a target of its generation, "
            f"{generation}, that has it"
        )
    known = evidence_of(record, other)
    return _derived(
        f"{other}, of the same generation ({known.kind}: {known.source})", f"that {target} computes as {other} does",
        known.assumption, machine=machine,
    )  # fmt: skip
