"""Guesses: which mix-up explains the bits, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._arguments import check_choice, is_integer
from ..._arrays import Array
from ...arithmetic import Engine, resolve
from ...errors import OperandError, shown
from ...execution import SharedOperand
from ...isa import Instruction, WarpgroupInstruction, check_target, parse, parse_any
from ...layouts import Operand
from .descriptor_guesses import guess_descriptor
from .mistakes import Mistake
from .problem import posed, tiles_of
from .searching import Guesses, gives, guesses_of, search
from .suspects import mistakes_in_fragments, mistakes_in_matrices, too_large

_OF_THE_SEARCH = ("pairs", "elements", "engine", "got")


def guess(
    instruction: str | Instruction | WarpgroupInstruction, a: npt.ArrayLike | SharedOperand,
    b: npt.ArrayLike | SharedOperand, c: npt.ArrayLike | None = None, *,
    got: npt.ArrayLike, target: str, metadata: npt.ArrayLike | None = None, selector: int = 0,
    scale_a: npt.ArrayLike | None = None, scale_b: npt.ArrayLike | None = None, byte_id_a: int = 0,
    thread_id_a: int = 0, byte_id_b: int = 0, thread_id_b: int = 0, pairs: int | None = None,
    elements: int = 1 << 16, engine: Engine = "auto",
) -> Guesses:  # fmt: skip
    """Guess which mistake with an instruction's operands explains its result.

    Some hundreds of mistakes are tried: registers, lanes, halves, rows, columns or k swapped, shifted, copied or left
    out; matrices transposed or read in another order; other types, selectors, metadata, scales; accumulators
    forgotten; tiles of k left out, late or used twice; the result stored in the wrong places. Those that give every bit
    of the result are named.

    Parameters
    ----------
    instruction : str, Instruction or WarpgroupInstruction
        Of a `wgmma`, descriptors are tried: leading and stride offsets exchanged, another swizzle, base offset,
        major-ness or size, a start that was not advanced. Then `a` and `b` are SharedOperands with the descriptors that
        were meant (`a` may be registers), and `pairs` and `elements` do not count.
    a, b, c : array_like
        What the kernel should have multiplied: matrices as `warpmma.mma` takes them, whole numbers of them in rows,
        columns and k (multiplied by a chain of the instruction, k ascending), or registers. Without `c`, C is +0.
    got : array_like
        The result: D, as a matrix or as registers. Of an f32 D it may be the value that a kernel stored, rounded to
        float16 or bfloat16.
    target : str
    metadata, selector
        As of `warpmma.mma`: a dense A that obeys the pattern has no metadata to give. Of whole matrices metadata is
        `[..., rows of tiles, tiles of k, 32]`.
    scale_a, scale_b : array_like
        Matrices of scales as `warpmma.mma` takes them, or words, uint32 `[..., 32]`.
    byte_id_a, thread_id_a, byte_id_b, thread_id_b : int
        Where scales are in their words.
    pairs : int, optional
        How many pairs of mistakes to try, if none gives the result alone; by default 20,000, or fewer for products of
        more than 13 tiles along k.
    elements : int
        Matrices of more elements are not rearranged as a whole (transposed, swizzled, shifted). The time and memory
        that this takes grow with them; the default is 256 x 256.
    engine
        As of `warpmma.execute`.

    Returns
    -------
    Guesses
        Printed, it says what was found: one mistake; several that give the same bits; too many to tell, where operands
        are too uniform; or none, with what was not tried because of `pairs`, `elements` or another limit.

    Raises
    ------
    WarpmmaError
        As `warpmma.mma` does.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> rng = np.random.default_rng(0)
    >>> A, B = (rng.standard_normal(shape).astype(np.float16) for shape in ((16, 16), (16, 8)))
    >>> import warpmma as wm
    >>> wrong = wm.load(i, "A", A)[[0, 2, 1, 3]]
    >>> D = wm.execute(i, wrong, wm.load(i, "B", B), np.zeros((4, 32), np.uint32), target="sm_90")
    >>> print(guess(i, A, B, got=wm.store(i, "D", D), target="sm_90"))
    guess: as if registers 1 and 2 of A were swapped
    """
    record = parse_any(instruction)
    check_target(record, target)
    resolve(engine)
    if pairs is not None and (not is_integer(pairs) or pairs < 0):
        raise OperandError(f"pairs is {shown(pairs)}; expected how many pairs of mistakes to try")
    _check_elements(elements)
    if isinstance(record, WarpgroupInstruction):
        for name, value in (("scale_a", scale_a), ("scale_b", scale_b)):
            if value is not None:
                raise OperandError(f"{record} takes no {name}")
        return guess_descriptor(
            record, a, b, c, got=got, target=target, engine=engine, metadata=metadata, selector=selector
        )
    assert isinstance(record, Instruction)
    problem = posed(
        record, target, a, b, c, got, metadata=metadata, selector=selector, scale_a=scale_a, scale_b=scale_b,
        byte_id_a=byte_id_a, thread_id_a=thread_id_a, byte_id_b=byte_id_b, thread_id_b=thread_id_b,
    )  # fmt: skip
    return search(problem, None if pairs is None else int(pairs), engine, int(elements))


def target_of(record: Instruction, expected: npt.ArrayLike, given: Mapping[str, Any]) -> str | None:
    """Return the first target on which operands, as `guess` takes them, have a result; None without one."""
    operands = {"c": None, **{name: x for name, x in given.items() if name not in _OF_THE_SEARCH}}
    problem = posed(record, record.targets[0], got=expected, **operands)
    return next((t for t in record.targets if gives(replace(problem, target=t), given.get("engine", "auto"))), None)


def guess_fragment(
    instruction: str | Instruction, operand: Operand, actual: npt.ArrayLike, expected: npt.ArrayLike, *,
    elements: int = 1 << 16,
) -> Guesses:  # fmt: skip
    """Guess which mistake explains an operand's fragment, or its matrix.

    Parameters
    ----------
    instruction : str or Instruction
    operand : {"A", "B", "C", "D"}
    actual, expected : array_like
        Matrices of the operand, whole numbers of them, or registers.
    elements : int
        As of `guess`.

    Returns
    -------
    Guesses

    Raises
    ------
    OperandError
        Arrays that do not go with the operand.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> right = np.random.default_rng(0).integers(0, 1 << 32, (4, 32), np.uint32)
    >>> print(guess_fragment(i, "A", right[[0, 2, 1, 3]], right))
    guess: as if registers 1 and 2 of A were swapped
    """
    record = parse(instruction)
    check_choice("operand", operand, ("A", "B", "C", "D"))
    _check_elements(elements)
    got, right = (tiles_of(record, operand, x) for x in (actual, expected))
    if got.shape != right.shape:
        raise OperandError(f"{record}: {operand} has tiles {got.shape} and {right.shape}")
    if np.array_equal(got, right):
        return Guesses(as_given=True)
    got, right = (x.reshape(-1, *x.shape[-3:]) for x in (got, right))
    table = mistakes_in_fragments(record, operand)
    one = tuple(np.argwhere((got != right).any(axis=-1))[0])  # a tile that differs: what fails there need not be tried
    found = tuple(m for m in table if np.array_equal(m.steps[0].change(right[one]), got[one]) and _makes(m, right, got))
    without_effect = sum(np.array_equal(m.steps[0].change(right[one]), right[one]) for m in table)
    whole: tuple[Mistake, ...] = ()
    if not found:
        whole = tuple(mistakes_in_matrices(record, operand, right, elements))
        found = tuple(m for m in whole if _makes(m, right, got))
    return guesses_of(
        ((m,) for m in found), uniform=2 * without_effect > len(table), alone=len(table) + len(whole),
        untried=tuple(too_large(record, operand, right, elements)),
    )  # fmt: skip


def _makes(mistake: Mistake, right: Array, got: Array) -> bool:
    return np.array_equal(mistake.steps[0].change(right), got)


def _check_elements(elements: object) -> None:
    if not is_integer(elements) or elements < 0:
        raise OperandError(f"elements is {shown(elements)}; expected a number of elements of a matrix")
