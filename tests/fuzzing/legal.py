"""What legal calls are made of: instructions, matrices, registers, metadata and scales that go together."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from warpmma import scaling, sparsity
from warpmma.formats import FORMATS, Format
from warpmma.isa import TARGET_NAMES as TARGETS
from warpmma.isa import Instruction, instructions, warpgroup_instructions
from warpmma.operations import operations

from .hostile import Rng, chance, pick

__all__ = [
    "accumulators",
    "anything",
    "batch",
    "codes",
    "dense",
    "elements",
    "fmt",
    "ids",
    "indices",
    "instruction",
    "matrix",
    "metadata",
    "modest",
    "record",
    "registers",
    "scaled",
    "scales",
    "sparse",
    "spelled",
    "target",
    "wgmma",
]  # fmt: skip

Array = np.ndarray[Any, Any]
_BATCHES: tuple[tuple[int, ...], ...] = ((), (), (), (), (1,), (2,), (3,), (2, 1), (0,))


@cache
def _those(kind: str) -> tuple[Instruction, ...]:
    fits: dict[str, Callable[[Instruction], bool]] = {
        "any": lambda i: True,
        "sparse": lambda i: i.sparse,
        "scaled": lambda i: i.block_scale,
        "dense": lambda i: not i.sparse and not i.block_scale,
    }
    return tuple(i for i in instructions() if fits[kind](i))


def record(rng: Rng, kind: str = "any") -> Instruction:
    """Choose an instruction: "any", "sparse", "scaled" or "dense"."""
    return pick(rng, _those(kind))


def sparse(rng: Rng) -> Instruction:
    """Choose a sparse instruction."""
    return record(rng, "sparse")


def scaled(rng: Rng) -> Instruction:
    """Choose a block-scaled instruction."""
    return record(rng, "scaled")


def dense(rng: Rng) -> Instruction:
    """Choose one that is neither."""
    return record(rng, "dense")


def wgmma(rng: Rng) -> Any:
    """Choose a warpgroup instruction."""
    return pick(rng, warpgroup_instructions())


def anything(rng: Rng) -> Any:
    """Choose an instruction of either kind."""
    return wgmma(rng) if chance(rng, 0.2) else record(rng)


def spelled(rng: Rng, instruction: Any) -> Any:
    """Give a record, or its mnemonic."""
    return str(instruction) if chance(rng, 0.5) else instruction


def instruction(rng: Rng) -> Any:
    """Choose an instruction and how to name it."""
    return spelled(rng, record(rng))


def modest(size: Any, most: int, instead: Any) -> Any:
    """Return a size, or another for one that is legal but takes long, or much memory."""
    given = size if isinstance(size, list | tuple) else (size,)
    numbers = [n for n in given if isinstance(n, int | np.integer) and not isinstance(n, np.timedelta64)]
    large = any(most < n < 1 << 47 for n in numbers)
    return instead if large else size


def target(rng: Rng, instruction: Any = None) -> str:
    """Choose a target, that has the instruction."""
    targets: tuple[str, ...] = TARGETS if instruction is None else instruction.targets
    return pick(rng, targets)


def fmt(rng: Rng) -> Format:
    """Choose a format."""
    return pick(rng, tuple(FORMATS.values()))


def batch(rng: Rng) -> tuple[int, ...]:
    """Choose leading dimensions."""
    return pick(rng, _BATCHES)


_SPECIAL = (0, 1, -1, 0x7F, 0x80, 0x38, 0x3C00, 0x7C00, 0x7E00, 0x3F800000, 0x7F800000, 0x7FC00000, 0x80000000)


def codes(rng: Rng, form: Format, shape: tuple[int, ...]) -> Array:
    """Random codes of a format, special ones among them."""
    size = int(np.prod(shape))
    made = np.frombuffer(rng.bytes(size * form.code_dtype.itemsize), form.code_dtype).reshape(shape)
    made = np.asarray(made & form.code_dtype.type(form.mask))
    if size and chance(rng, 0.4):
        made.flat[int(rng.integers(size))] = pick(rng, _SPECIAL) & form.mask
    return made


def elements(rng: Rng, form: Format, shape: tuple[int, ...]) -> Array:
    """Make a matrix of a format's type."""
    return form.array(codes(rng, form, shape))


def matrix(rng: Rng, form: Format, shape: tuple[int, ...]) -> Array:
    """Make a matrix, or its raw codes."""
    if chance(rng, 0.3):
        return codes(rng, form, shape)
    return elements(rng, form, shape)


def registers(rng: Rng, i: Instruction, operand: Any, lead: tuple[int, ...]) -> Array:
    """Random registers of an operand."""
    layout = i.layout(operand)
    shape = (*lead, layout.registers, 32)
    made = rng.bytes(int(np.prod(shape)) * layout.packing.dtype.itemsize)
    return np.frombuffer(made, layout.packing.dtype).reshape(shape).copy()


_SORTED = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], np.uint8)
_WHOLE = np.array([(0, 1), (2, 3)], np.uint8)


def indices(rng: Rng, i: Instruction, lead: tuple[int, ...] = (), m: int | None = None, k: int | None = None) -> Array:
    """Legal indices of a sparse A, ascending."""
    law = sparsity.pattern(i)
    pairs = _WHOLE if law.units == 2 else _SORTED
    return pairs[
        rng.integers(len(pairs), size=(*lead, i.m if m is None else m, (i.k if k is None else k) // law.width))
    ]


def metadata(rng: Rng, i: Instruction, selector: int, lead: tuple[int, ...]) -> Array:
    """Legal metadata registers."""
    return sparsity.pack_metadata(indices(rng, i, lead), i, selector=selector)


def scales(
    rng: Rng, i: Instruction, operand: str, lead: tuple[int, ...], m: int | None = None, k: int | None = None
) -> Array:
    """Codes of block scales, as a matrix."""
    count = i.scales_per_row * ((k or i.k) // i.k)
    outer = m if m is not None else i.m if operand == "A" else i.n
    shape = (outer, count) if operand == "A" else (count, outer)
    form = FORMATS[i.stype or ""]
    made = codes(rng, form, (*lead, *shape)).astype(np.uint8)
    if chance(rng, 0.3):
        typed = FORMATS["ue8m0" if i.stype == "ue8m0" else "e4m3"].dtype
        return made.view(typed)
    return made


def ids(rng: Rng, i: Instruction, operand: Any) -> dict[str, int]:
    """Legal byte-id and thread-id."""
    return {"byte_id": pick(rng, scaling.byte_ids(i)), "thread_id": pick(rng, scaling.thread_ids(operand))}


def accumulators(rng: Rng, i: Instruction, shape: tuple[int, ...]) -> Array:
    """Make a C."""
    return matrix(rng, i.format("C"), shape)


@cache
def plain_operations() -> tuple[Any, ...]:
    """List the operations of a kernel."""
    return operations()
