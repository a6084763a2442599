"""Approximate functions: `ex2`, `lg2`, `rcp`, `rsqrt`, `sqrt`, `sin`, `cos`, `tanh`, `div.approx` and `div.full`.

Specification (PTX ISA 9.1, 9.7.3 to 9.7.5, bounds their errors; the bits are those of an H200):

1.  A form is a sequence of machine instructions around one function of the special-function unit:
    `arithmetic.SEQUENCES` defines the sequence and its rules, `arithmetic.SPECIAL_FUNCTIONS` the functions.
2.  A packed operation works on each element separately.
3.  The tables of the special-function unit are known for an H200. Every other target, sm_100 and later included, is
    assumed to have the same tables: ptxas emits the same machine instructions for it, but that does not determine the
    tables. `warpmma compare` on such a GPU checks the assumption.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from ..._arrays import Array
from ...arithmetic import SEQUENCES, approximate, folded_reference, machine_text, quotient_factors
from ...errors import OperandError, shown
from ..elements import TYPES, by_element
from ..forms import Form
from ..measurements import EVERY_OPERAND, EVERY_OPERAND16, EVERY_UPPER_WORD, HARD_OPERANDS, measured
from ..records import Operation

_TABLES = "the special-function unit's tables, which warpmma compare on such a GPU compares,"  # rule 3
_PTX = {"sm_70": (6, 0), "sm_75": (7, 0), "sm_90": (7, 8)}  # first PTX version of what these targets introduced


def _unpacked(words: tuple[str, ...]) -> str:
    """Return the form of one element (rule 2)."""
    return ".".join((*words[:-1], words[-1].removesuffix("x2")))


def _fields(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of a mnemonic determine."""
    form, operand = _unpacked(words), TYPES[words[-1]]
    sources = [operand] * SEQUENCES[form].operands
    return {
        "inputs": tuple(s.register for s in sources), "input_types": tuple(s.name for s in sources),
        "outputs": (operand.register,), "compute": partial(by_element, partial(approximate, form), sources, operand),
        "machine": partial(machine_text, ".".join(words)),
    }  # fmt: skip


def _compared(form: str) -> str:
    """Describe how many operands of a form were compared."""
    sequence = SEQUENCES[form]
    if sequence.operands == 2 or sequence.refinement:
        return HARD_OPERANDS
    return {"f32": EVERY_OPERAND, "f64": EVERY_UPPER_WORD}.get(sequence.fmt.name, EVERY_OPERAND16)


def _forms() -> Iterator[Form]:
    sections = {"f32": "9.7.3", "f64": "9.7.3", "f16": "9.7.4", "bf16": "9.7.4"}
    for form, sequence in SEQUENCES.items():
        packed = f"{form}x2" if sequence.fmt.bits == 16 else ""
        for spelling in filter(None, (form, packed)):
            yield Form(
                spelling=spelling, kind=Operation, fields=_fields, since=sequence.since, ptx=_PTX[sequence.since],
                evidence=measured(sections[sequence.fmt.name], _compared(form)),
                left_open=_TABLES,
            )  # fmt: skip


FORMS = tuple(_forms())
"""Every form of this module."""


def divided_factors(mnemonic: str) -> Operation:
    """Return a row that gives the factors of an approximate division's last product, which may fuse with a sum.

    Parameters
    ----------
    mnemonic : str
        "div.full.f32", "div.full.ftz.f32", "div.approx.f32" or "div.approx.ftz.f32".

    Returns
    -------
    Operation
        From dividend and divisor to two factors: the machine code of ptxas has one `FFMA` of them and the addend.

    Raises
    ------
    OperandError
        No such division.

    Examples
    --------
    >>> row = divided_factors("div.full.f32")
    >>> row.inputs, row.outputs
    (('b32', 'b32'), ('b32', 'b32'))
    """
    if not (isinstance(mnemonic, str) and mnemonic in SEQUENCES and SEQUENCES[mnemonic].dividend):
        known = ", ".join(form for form, sequence in SEQUENCES.items() if sequence.dividend)
        raise OperandError(f"{shown(mnemonic)} is not an approximate division: expected one of {known}")
    return _factors(mnemonic)


def folded_function(mnemonic: str) -> Operation:
    """Return a row that gives what ptxas would put in the place of an approximate function of constants.

    Parameters
    ----------
    mnemonic : str
        An approximate function of f32, or a division: "rcp.approx.ftz.f32".

    Returns
    -------
    Operation
        Each different operand is computed once, by `folded_reference`; what ptxas leaves to the GPU, as it does.

    Raises
    ------
    OperandError
        No such function.

    Examples
    --------
    >>> folded_function("rcp.approx.ftz.f32").outputs
    ('b32',)
    """
    if not (isinstance(mnemonic, str) and mnemonic in SEQUENCES and SEQUENCES[mnemonic].fmt.bits == 32):
        raise OperandError(f"{shown(mnemonic)} is not an approximate function of f32")
    return _folded_row(mnemonic)


@cache
def _folded_row(mnemonic: str) -> Operation:
    (whole,) = (form for form in FORMS if form.spelling == mnemonic)
    row, sources = SEQUENCES[mnemonic], [TYPES["f32"]] * SEQUENCES[mnemonic].operands
    return Operation(
        mnemonic=mnemonic, since=row.since, ptx=(1, 0), evidence=whole.evidence, outputs=("b32",),
        inputs=tuple(x.register for x in sources), input_types=tuple(x.name for x in sources),
        compute=partial(_folded, mnemonic),
    )  # fmt: skip


def _folded(form: str, *operands: Array) -> tuple[Array]:
    given = np.stack(np.broadcast_arrays(*operands), axis=-1).astype(np.uint32)
    different, where = np.unique(given.reshape(-1, given.shape[-1]), axis=0, return_inverse=True)
    results = approximate(form, *different.T.copy())
    for i, codes in enumerate(different.tolist()):
        if (result := folded_reference(form, *codes)) is not None:
            results[i] = result
    return (results[where.reshape(given.shape[:-1])],)


@cache
def _factors(mnemonic: str) -> Operation:
    (whole,) = (form for form in FORMS if form.spelling == mnemonic)
    return Operation(
        mnemonic=mnemonic, since=SEQUENCES[mnemonic].since, ptx=(1, 0), evidence=whole.evidence,
        inputs=("b32", "b32"), outputs=("b32", "b32"), input_types=("f32", "f32"),
        compute=partial(quotient_factors, mnemonic),
    )  # fmt: skip
