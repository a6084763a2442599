"""Guesses about a product inside of a kernel: what it read, against the matrices that it should have multiplied.

1. A watched launch has the operands of each execution, so nothing is multiplied: A, B and C are compared one by one,
   and the first execution with a wrong operand is the one that is told.
2. An operand that is wrong may be another part of k (a stage that is stale, or a start that was not advanced), the
   other operand, all zero, its own transpose; of a `wgmma` what another descriptor would have read right, one field
   changed at a time; of an `mma` a fragment that was loaded wrongly (`guess_fragment`).
3. C is wrong if it is not the D of the execution before: of the first one, if it is not what was given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._arrays import Array, as_array
from ..._records import Shown
from ...analysis import format_of_watched, in_registers, matrix_of, watched_products
from ...errors import OperandError, shown
from ...execution import load
from ...isa import Instruction, WarpgroupInstruction
from ...layouts import MatrixDescriptor, Operand
from ...lookup import SharedReading, descriptor_mistake
from ...machine import Launch, WatchedProduct
from .descriptor_guesses import mistaken
from .guesses import guess_fragment


@dataclass(frozen=True, kw_only=True)
class LaunchGuess(Shown):
    """What is wrong with a product in a launch.

    Attributes
    ----------
    place : str
        The line, block, warps and occurrence of the first product with a wrong operand; empty if none has.
    compared : int
        How many products were compared until then.
    mistakes : mapping of str to tuple of str
        Of each operand that is wrong, what would explain it, each completes "as if"; none if nothing that was tried
        does.
    untried : tuple of str
        What was not tried, and why.
    """

    place: str = ""
    compared: int
    mistakes: Mapping[str, tuple[str, ...]]
    untried: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.place:
            return f"guess: none; {self.compared} products have the operands that were meant"
        parts = []
        for operand, texts in self.mistakes.items():
            if not texts:
                parts.append(f"{operand} is not what was meant, and no mistake that was tried explains it")
            elif len(texts) == 1:
                parts.append(f"as if {texts[0]}")
            else:
                parts.append("as if one of these, which memory does not tell apart: " + "; ".join(texts))
        lines = [f"guess: {self.place}", *(f"  {part}" for part in parts)]
        return "\n".join([*lines, *(f"  not tried: {x}" for x in self.untried)])


def guess_launch(
    launch: Launch, a: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike | None = None, *, line: int | None = None,
    block: int | None = None, warp: int | None = None, occurrence: int | None = None,
) -> LaunchGuess:  # fmt: skip
    """Guess what is wrong with a product (`mma`, `wmma.mma`, `wgmma`) inside of a kernel.

    Parameters
    ----------
    launch : Launch
        With `watch=Watch(...)`; of a `wgmma` with `shared=True`, so that descriptors can be tried. A kernel that ends
        with a hazard has no launch: it needs `hazards="warn"` too.
    a, b : array_like
        What should have been multiplied: the matrices of one product, or of all executions of the line, one after the
        other along k: `[m, k * times]` and `[k * times, n]`.
    c : array_like, optional
        What the accumulator should begin with, +0 by default. The C of a single product is looked at only if it is
        given.
    line, block, warp, occurrence : int, optional
        Which of those that were watched, as of `explain_launch`.

    Returns
    -------
    LaunchGuess

    Raises
    ------
    OperandError
        Nothing was watched, several were, or matrices of other shapes.
    """
    products = watched_products(launch, line, block, warp)
    if occurrence is not None:
        products = [x for x in products if x.occurrence == occurrence] or _absent(occurrence)
    first = products[0]
    of_a, of_b = _expected(first, "A", a), _expected(first, "B", b)
    rows, k = matrix_of(first, "A").shape[-2:]
    times, rest = divmod(of_a.shape[1], k)
    columns, along = matrix_of(first, "B").shape[-1], matrix_of(first, "B").shape[-2]
    if rest or not times or of_a.shape[0] != rows or of_b.shape != (along * times, columns):
        raise OperandError(
            f"{first.instruction}: A is {of_a.shape} and B {of_b.shape}; expected ({rows}, {k}) and ({along}, "
            f"{columns}), or as often along k as the line is executed"
        )
    whole = {"A": of_a.reshape(rows, times, k).swapaxes(0, 1), "B": of_b.reshape(times, along, columns)}
    of_c = None if c is None else _expected(first, "C", c)
    before: WatchedProduct | None = None
    for number, product in enumerate(products):
        if times > 1 and product.occurrence >= times:
            raise OperandError(f"{product.place}: A and B have {times} parts along k, and this would be another one")
        mistakes = dict(_operands(product, whole, product.occurrence if times > 1 else 0))
        if (times > 1 or c is not None) and (says := _accumulator(product, before, of_c)):
            mistakes["C"] = (says,)
        if mistakes:
            return LaunchGuess(
                place=product.place, compared=number + 1, mistakes=mistakes, untried=tuple(_untried(product, mistakes))
            )
        before = product
        if times == 1:
            return LaunchGuess(compared=1, mistakes={})
    return LaunchGuess(compared=len(products), mistakes={})


def _absent(occurrence: int) -> list[WatchedProduct]:
    raise OperandError(f"occurrence {shown(occurrence)} was not watched")


def _expected(product: WatchedProduct, operand: Operand, given: npt.ArrayLike) -> Array:
    """Return codes of a matrix that is given."""
    array = as_array(given, f"{product.instruction}: {operand}")
    if array.ndim != 2:
        raise OperandError(f"{product.instruction}: {operand} is {array.shape}; expected a matrix")
    return np.asarray(format_of_watched(product, operand).codes(array))


def _operands(product: WatchedProduct, whole: Mapping[str, Array], part: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield operands that are wrong, with what explains each (rule 2)."""
    found = {"A": matrix_of(product, "A"), "B": matrix_of(product, "B")}
    meant = {name: x[part] for name, x in whole.items()}
    wrong = [name for name in ("A", "B") if not np.array_equal(found[name], meant[name])]
    if len(wrong) == 2 and all(
        found[x].shape == meant[y].T.shape and np.array_equal(found[x], meant[y].T) for x, y in (("A", "B"), ("B", "A"))
    ):
        yield "A and B", ("A and B were exchanged",)
        return
    for name in wrong:
        operand: Any = name
        texts = [*_alike(operand, found[name], whole, part)]
        if not texts and isinstance(product.instruction, WarpgroupInstruction):
            texts = [*_descriptors(product, operand, meant[name])]
        elif not texts and isinstance(product.instruction, Instruction):
            texts = [*_fragments(product, operand, meant[name])]
        yield name, tuple(texts)


def _alike(operand: str, found: Array, whole: Mapping[str, Array], part: int) -> Iterator[str]:
    """Yield what it may be as a matrix."""
    own, other = whole[operand], whole["B" if operand == "A" else "A"]
    k = own.shape[2] if operand == "A" else own.shape[1]
    for i in range(len(own)):
        if i != part and np.array_equal(found, own[i]):
            when = "an earlier" if i < part else "a later"
            yield (
                f"{operand} were k {i * k}-{i * k + k - 1}, of {when} turn, meant k {part * k}-{part * k + k - 1}: a "
                "stale stage, or a start that was not advanced"
            )
    if not found.any() and own[part].any():
        yield f"{operand} were all zero: no thread and no copy has written it"
    if found.shape == own[part].T.shape and np.array_equal(found, own[part].T):
        yield f"{operand} were transposed"
    if found.shape == other[part].T.shape and np.array_equal(found, other[part].T):
        yield f"{operand} were the other operand"


def _descriptors(product: WatchedProduct, operand: Operand, meant: Array) -> Iterator[str]:
    """Name the fields of the descriptor that, changed alone, would have read what was meant."""
    i, memory = product.instruction, product.shared
    assert isinstance(i, WarpgroupInstruction)
    if memory is None or operand not in product.tiles or i.format(operand).bits == 1:
        return
    tile = product.tiles[operand]
    got = SharedReading(
        instruction=i, operand=operand, descriptor=MatrixDescriptor.from_word(tile.word),
        major="MN" if tile.transposed else "K",
    )  # fmt: skip
    told = set[str]()
    for field, candidate in mistaken(got):
        codes, inside = candidate.matrix(memory) if field not in told else (meant, np.False_)
        if inside.all() and np.array_equal(codes, meant):
            told.add(field)
            yield descriptor_mistake(field, got, candidate).text


def _fragments(product: WatchedProduct, operand: Operand, meant: Array) -> Iterator[str]:
    """Name mistakes with the fragment of an `mma`."""
    i = product.instruction
    assert isinstance(i, Instruction)
    yield from guess_fragment(i, operand, product.registers[operand], np.asarray(load(i, operand, meant))).mistakes


def _accumulator(product: WatchedProduct, before: WatchedProduct | None, given: Array | None) -> str:
    """Say what is wrong with C (rule 3); "" if nothing is."""
    follows = before is not None and before.occurrence + 1 == product.occurrence
    if before is not None and follows and before.instruction.d_type == product.instruction.c_type:
        taken = in_registers(product, "C")
        if taken is not None and np.array_equal(taken, before.registers["D"]):
            return ""
        if taken is None or not taken.any():
            return "" if not before.registers["D"].any() else "the accumulator began again at zero"
        return f"the accumulator were not the D of occurrence {before.occurrence}"
    if product.occurrence:
        return ""
    c = matrix_of(product, "C")
    if np.array_equal(c, np.zeros_like(c) if given is None else given):
        return ""
    return "the accumulator did not begin with " + ("zero" if given is None else "the C that was given")


def _untried(product: WatchedProduct, mistakes: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    if product.shared is None and any(not texts and name in product.tiles for name, texts in mistakes.items()):
        yield "other descriptors: watch with Watch(..., shared=True)"
