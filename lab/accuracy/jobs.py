"""All measurements, as jobs of about a second, and the summary of their results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from warpmma.arithmetic import interpolators

from .exactness import facts
from .forms import FORMS, GRADUAL, Form
from .measure import COUNTS, Record, measured, repetition, together
from .narrow import NARROW, UPPER, measured_narrow, measured_upper, repetition_upper

__all__ = ["Job", "digest", "done", "jobs", "line", "summary"]

_EXPONENTS = 2047
_STEP = 23  # exponent fields of f64 in a job


class Job(NamedTuple):
    """One unit of measurement.

    Attributes
    ----------
    kind : str
        "block", "repetition", "narrow", "upper", "upper repetition", "facts".
    name : str
        A mnemonic.
    first, end : int
        Codes of magnitudes, or exponent fields.
    negative : bool
    """

    kind: str
    name: str = ""
    first: int = 0
    end: int = 0
    negative: bool = False


def jobs() -> Iterator[Job]:
    """List all jobs."""
    for name in NARROW:
        yield Job("narrow", name)
    for name in UPPER:
        yield Job("upper", name)
    for name, form in FORMS.items():
        for first, end, negative in form.blocks():
            yield Job("block", name, first, end, negative)
    for name, form in GRADUAL.items():
        for part in form.ranges:
            yield Job("block", name, part.first, part.end, part.negative)
    yield Job("facts")
    for name in FORMS:
        for exponent in range(1, 255):
            yield Job("repetition", name, exponent)
    for name in UPPER:
        for first in range(1, _EXPONENTS, _STEP):
            yield Job("upper repetition", name, first, min(first + _STEP, _EXPONENTS))


def done(job: Job) -> Any:
    """Run a job: return a record, a count of exceptions, or facts."""
    match job.kind:
        case "block":
            return measured({**FORMS, **GRADUAL}[job.name], job.first, job.end, job.negative)
        case "repetition":
            return repetition(FORMS[job.name], job.first)
        case "narrow":
            return measured_narrow(NARROW[job.name])
        case "upper":
            return measured_upper(UPPER[job.name])
        case "upper repetition":
            return repetition_upper(UPPER[job.name], job.first, job.end)
        case _:
            return facts()


def digest() -> str:
    """Return a fingerprint of the interpolator's tables."""
    rows = [(name, t.bits, t.point, t.shifts, t.constant, t.rows) for name, t in interpolators().items()]
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:16]


def summary(results: Mapping[Job, Any]) -> dict[str, Any]:
    """Return a summary of the results of all jobs."""
    whole: dict[str, Any] = {"tables": digest(), "facts": results[Job("facts")], "forms": {}}
    for name, form in FORMS.items():
        blocks = [(job, r) for job, r in results.items() if job.kind == "block" and job.name == name]
        ranges = {
            part.name: together(
                _weighted(form, job.first >> 23, r) for job, r in sorted(blocks)
                if form.repeats == "scaled" or (part.first <= job.first < part.end and job.negative == part.negative)
            )
            for part in form.ranges
        }  # fmt: skip
        exceptions = sum(r for job, r in results.items() if job.kind == "repetition" and job.name == name)
        whole["forms"][name] = {"section": form.section, "ranges": ranges, "exceptions": exceptions}
    for name, form in GRADUAL.items():
        ranges = {p.name: results[Job("block", name, p.first, p.end, p.negative)] for p in form.ranges}
        whole["forms"][name] = {"section": form.section, "ranges": ranges}
    for name, narrow in NARROW.items():
        whole["forms"][name] = {"section": narrow.section, "ranges": {"all": results[Job("narrow", name)]}}
    for name, upper in UPPER.items():
        exceptions = sum(r for job, r in results.items() if job.kind == "upper repetition" and job.name == name)
        record: Record = results[Job("upper", name)]
        whole["forms"][name] = {"section": upper.section, "ranges": {"all": record}, "exceptions": exceptions}
    return whole


def _weighted(form: Form, exponent: int, record: Record) -> Record:
    """Return the results for all octaves that repeat this one, including those whose results are flushed."""
    if form.repeats == "no":
        return record
    octaves = sum(form.base(e) == exponent for e in range(1, 255))
    return record | {name: value * octaves for name, value in record.items() if name in (*COUNTS, "sum")}


def line(job: Job, result: Any) -> str:
    """Return a line of the file of results."""
    return json.dumps([digest(), *job, result])
