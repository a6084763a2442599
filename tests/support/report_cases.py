"""What the tests of reports share."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from arrays import Array

from warpmma.formats import FORMATS, Format
from warpmma.testing import assert_same_bits

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
HALF = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
S8 = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
F64 = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
QUAD = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
MIXED = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32"
B1 = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc"
NARROW = [f for f in FORMATS.values() if f.bits <= 8]


def every(fmt: Format) -> Array:
    """Every code of a narrow format, as its type has it."""
    return fmt.array(np.arange(fmt.mask + 1).astype(fmt.code_dtype))


def report(actual: Any, expected: Any, **named: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_same_bits(actual, expected, **named)
    return str(caught.value)


def rows(text: str) -> list[list[str]]:
    """The lines of a report's table, cut into cells."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.lstrip().startswith("[")]


def where(text: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith("where: ")]
    return line.removeprefix("where: ")
