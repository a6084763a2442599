"""Checks of what `execute` takes: registers, missing and superfluous operands, selectors, metadata."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from .._arguments import check_choice, is_integer
from .._arrays import MOST_ELEMENTS, Array, as_array
from ..errors import OperandError, UnsupportedError, shown
from ..isa import Instruction, MatrixInstruction
from ..layouts import Operand
from ..registers import LANES
from ..scaling import block_scales
from ..sparsity import UNDEFINED_MEASURED, sparse_a

Undefined = Literal["error", "hardware"]
Ids = dict[Literal["A", "B"], dict[str, int]]
"""Byte-id and thread-id of the scales of A and B, by their names in `scaling`."""


def check_fragment(instruction: Instruction, operand: Operand | str, registers: npt.ArrayLike) -> Array:
    """Check a fragment's dtype and shape."""
    layout = instruction.layout(operand)  # type: ignore[arg-type]
    plain = type(registers) is np.ndarray and registers.dtype == layout.packing.dtype
    if plain and registers.shape[1:] == (layout.registers, LANES) and registers.size <= MOST_ELEMENTS:  # type: ignore[union-attr]
        return registers  # type: ignore[return-value]  # as it mostly is; names in errors take a while to write
    array = as_array(registers, f"{instruction}: registers of {operand}")
    expected = layout.packing.dtype
    if array.dtype != expected:
        same = array.dtype.kind in "if" and array.dtype.itemsize == expected.itemsize
        raise OperandError(
            f"{instruction}: registers of {operand} are {array.dtype}; expected {expected}"
            + (f" (use .view(np.{expected}))" if same else "")
        )
    if array.ndim < 2 or array.shape[-2:] != (layout.registers, LANES):
        raise OperandError(
            f"{instruction}: registers of {operand} are {array.shape}; expected [..., {layout.registers}, {LANES}]"
        )
    return array


def check_words(
    instruction: Instruction, metadata: npt.ArrayLike | None, scale_a: npt.ArrayLike | None,
    scale_b: npt.ArrayLike | None,
) -> dict[str, Array]:  # fmt: skip
    """Check that the operands with one word per lane are those that the instruction takes."""
    needed = {"metadata": instruction.sparse, "scale_a": instruction.block_scale, "scale_b": instruction.block_scale}
    found: dict[str, Array] = {}
    for (name, needs), given in zip(needed.items(), (metadata, scale_a, scale_b), strict=True):
        if needs != (given is not None):
            raise OperandError(f"{instruction} {'needs' if needs else 'takes no'} {name}")
        if given is not None:
            array = as_array(given, f"{instruction}: {name}")
            if array.dtype != np.uint32 or array.shape[-1:] != (LANES,):
                raise OperandError(
                    f"{instruction}: {name} is {array.dtype} {array.shape}; expected uint32 [..., {LANES}]"
                )
            found[name] = array
    return found


def refuse_others(instruction: MatrixInstruction, **given: tuple[object, object]) -> None:
    """Raise `OperandError` for an argument of instructions of another kind; each comes with its default."""
    for name, (value, default) in given.items():
        if value is not default and not (is_integer(value) and value == default):
            kinds = (
                "wgmma" if name.split()[0] in ("scale_d", "imm_a", "imm_b", "swizzle", "major") else "block-scaled mma"
            )
            raise OperandError(f"{instruction} takes no {name} (it is of {kinds}); got {shown(value)}")


def check_choices(instruction: Instruction, selector: int, undefined: str, ids: Ids) -> None:
    """Refuse a selector, byte-id or thread-id that the instruction does not take, or that is out of range."""
    check_selector(instruction, selector, undefined)
    for operand, named in ids.items():
        if instruction.block_scale:
            block_scales(instruction).check_ids(operand, **named)
            continue
        for x in named.values():
            if not is_integer(x) or x:
                raise OperandError(
                    f"{instruction} is not block-scaled: it takes no byte-id and thread-id; got {shown(named)}"
                )


def check_selector(instruction: MatrixInstruction, selector: int, undefined: str) -> None:
    """Refuse a selector or a treatment of metadata that the instruction does not take."""
    check_choice("undefined", undefined, ("error", "hardware"))
    if undefined == "hardware" and not instruction.sparse:
        raise OperandError(f"{instruction} is dense: it has no metadata, undefined or not; leave undefined='error'")
    if instruction.sparse:
        sparse_a(instruction).check_selector(selector)
    elif not is_integer(selector) or selector:
        raise OperandError(f"{instruction} is dense: it takes no selector; got {shown(selector)}")


def check_sparse(instruction: MatrixInstruction, metadata: Array, selector: int, undefined: str, target: str) -> bool:
    """Refuse metadata that is undefined or of unknown effect; return whether tf32 halves may be mixed."""
    if undefined == "hardware":
        if target not in UNDEFINED_MEASURED:
            raise UnsupportedError(
                f"{instruction}: the effect of undefined metadata on {target} is not known; undefined='hardware' is "
                f"for {', '.join(UNDEFINED_MEASURED)}, measured on an H200"
            )
        return instruction.a_type == "tf32"
    sparse_a(instruction).check_words_on(metadata, selector, target)
    return False
