"""Evidence of rows: what was compared with a GPU, and what PTX's text defines.

Every row of sm_90a was compared with an H200, lane by lane, except those of memory and barriers, which follow PTX's
text and ran in whole kernels (docs/kernels.md, "How we know"). What PTX defines exactly is published for every target.
Where PTX leaves something undefined, a row of another target is assumed to behave as on an H200: `elsewhere`.
"""

from __future__ import annotations

from dataclasses import replace

from ..arithmetic import Evidence
from ..isa import MEASURED_ON

_H200 = "H200, driver 580.159, CUDA 13.0"

# tests/data/h200_compare.json, by `warpmma compare`: at least 10^8 lanes of each, or all operands of 16 bits.
OPERATIONS = "617,179,476,190 lanes of 6,489 operations of sm_90a"
VARIANTS = "226,518,040,576 lanes of 2,266 operations with two predicates, vectors, or bytes and halves of registers"
GROUPS = "146,000,000 lanes, up to 32 groups in a warp and any field"
EVERY_OPERAND = "all 4,294,967,296 operands"
EVERY_OPERAND16 = "all 65,536 operands"
EVERY_UPPER_WORD = "all 4,294,967,296 upper words of operands"
HARD_OPERANDS = "1,073,741,824 random and hard operands"
QUOTIENTS = "45,106,560 results of all 36 forms of div, rcp and sqrt, on special and hard operands"
CLUSTERS = "the addresses of 4 blocks in clusters of 1 and of 2"
ATOMICS = "8,386,560 elements in 52 forms, in global and in shared memory, special and random"
COPIES = "800 random copies of boxes, every byte of tensors and of shared memory"
OOB = "2,359,296 results, every code as each operand, beside three others"
"""How many operands were compared."""


def measured(section: str, compared: str = OPERATIONS) -> Evidence:
    """Evidence of rows that were compared with an H200."""
    return Evidence(
        kind="measured", source=f"PTX ISA 9.1, {section}", device=_H200, compared=f"{compared}, 0 differences"
    )


def published(section: str) -> Evidence:
    """Evidence of rows that PTX defines, every bit."""
    return Evidence(kind="published", source=f"PTX ISA 9.1, {section}")


def derived(section: str, assumption: str) -> Evidence:
    """Evidence of rows that were not compared with a GPU."""
    return Evidence(kind="derived", source=f"PTX ISA 9.1, {section}", assumption=assumption)


def elsewhere(evidence: Evidence, left_open: str, target: str) -> Evidence:
    """Return the evidence of a row on a target, which may differ from the target that was measured."""
    if evidence.kind != "measured" or target in MEASURED_ON:
        return evidence
    if not left_open:
        return Evidence(kind="published", source=evidence.source)
    return replace(evidence, kind="derived", device="", compared="", assumption=f"{left_open} as on an H200")
