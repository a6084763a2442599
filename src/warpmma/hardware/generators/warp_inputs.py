"""Registers of instructions, in the styles of `adversarial_codes`; and metadata."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...arithmetic import recipe
from ...execution import load
from ...isa import Instruction
from ...layouts import Operand
from ...registers import LANES
from ...scaling import byte_ids, pack_scales, thread_ids
from ...sparsity import legal_codes, pack_metadata, selectors, unpack_metadata
from .adversarial_codes import operands

__all__ = ["MmaJob", "instruction_inputs", "metadata_words", "mma_jobs"]

Array = npt.NDArray[Any]
Rng = np.random.Generator


class MmaJob(NamedTuple):
    """An instruction with its immediate operands.

    Attributes
    ----------
    instruction : Instruction
    selector : int
        Of a sparse one.
    ids : tuple of int
        Of a block-scaled one: byte-id and thread-id of A, byte-id and thread-id of B.
    """

    instruction: Instruction
    selector: int = 0
    ids: tuple[int, int, int, int] = (0, 0, 0, 0)


def mma_jobs(instruction: Instruction) -> list[MmaJob]:
    """List every selector of a sparse instruction; the first and the last ids of a block-scaled one.

    Parameters
    ----------
    instruction : Instruction

    Returns
    -------
    list of MmaJob
    """
    ids = [(0, 0, 0, 0)]
    if instruction.block_scale:
        last = byte_ids(instruction)[-1]
        ids.append((last, thread_ids("A")[-1], last, thread_ids("B")[-1]))
    return [MmaJob(instruction, s, i) for s in (selectors(instruction) if instruction.sparse else (0,)) for i in ids]


def instruction_inputs(instruction: Instruction, target: str, style: str, warps: int, rng: Rng) -> dict[str, Array]:
    """Make registers of a batch of warps; the rows and columns on the diagonal of D belong together.

    Parameters
    ----------
    instruction : Instruction
    target : str
        The target whose recipe has the style.
    style : str
        One of the recipe's `styles`.
    warps : int
    rng : numpy.random.Generator

    Returns
    -------
    dict of str to ndarray of unsigned int
        As in a recording: `a`, `b` and `c` as `[warp, register, lane]`, and of a block-scaled instruction `sa` and `sb`
        as `[warp, lane]`, from which every choice of ids in `mma_jobs` selects the same scales.

    Raises
    ------
    TargetError, OperandError
        An instruction that the target does not have; a style that its recipe does not have.
    """
    k, s = instruction.layout("A").shape[-1], instruction.scales_per_row
    names: tuple[Operand, ...] = ("A", "B", "C")
    shapes = {name: instruction.layout(name).shape for name in names}
    matrices = {n: np.empty((warps, *shape), instruction.format(n).code_dtype) for n, shape in shapes.items()}
    scales = {"A": np.empty((warps, instruction.m, s), np.uint8), "B": np.empty((warps, s, instruction.n), np.uint8)}
    rows, n = instruction.m, instruction.n
    for index in np.ndindex(warps, *shapes["A"][:-2]):
        codes = operands(recipe(instruction, target), k, rows, style, rng, s)
        wide = np.repeat(codes["b"], 2, axis=0) if instruction.sparse else codes["b"]
        matrices["A"][index] = codes["a"].T
        matrices["B"][index] = wide[:, :n]
        matrices["C"][index] = codes["c"][:, None]
        if s:
            scales["A"][index], scales["B"][index] = codes["scale_a"].T, codes["scale_b"][:, :n]
    given = {name.lower(): load(instruction, name, x) for name, x in matrices.items()}
    for name, scale in scales.items() if s else ():
        words = _any_words(warps, rng)
        for job in mma_jobs(instruction):
            byte, thread = job.ids[:2] if name == "A" else job.ids[2:]
            words = pack_scales(scale, instruction, name, byte_id=byte, thread_id=thread, into=words)  # type: ignore[arg-type]
        given[f"s{name.lower()}"] = words
    return given


def metadata_words(instruction: Instruction, target: str, warps: int, rng: Rng, *, undefined: bool = False) -> Array:
    """Make metadata of a sparse instruction that is legal for every selector at once, or any words.

    Parameters
    ----------
    instruction : Instruction
    target : str
        On which it is legal.
    warps : int
    rng : numpy.random.Generator
    undefined : bool
        Whether any words are allowed, most of which PTX leaves undefined.

    Returns
    -------
    ndarray of uint32
        `[warp, lane]`.
    """
    words = _any_words(warps, rng)
    if not undefined:
        codes = np.array(sorted(legal_codes(instruction, target)), np.uint8)
        for selector in selectors(instruction):
            shape = unpack_metadata(words, instruction, selector=selector).shape[:-1]
            nibbles = rng.choice(codes, shape)
            indices = np.stack([nibbles & 3, nibbles >> 2], axis=-1)
            words = pack_metadata(indices, instruction, selector=selector, into=words)
    return words


def _any_words(warps: int, rng: Rng) -> Array:
    return rng.integers(0, 2**32, (warps, LANES), dtype=np.uint32)
