"""Mistakes with the instruction itself: other types, roundings, saturation, of the same registers."""

from __future__ import annotations

from collections.abc import Iterator

from ...isa import Instruction, instructions
from .mistakes import COMMON, RARE, USUAL, Mistake

_FIELDS = {
    "a_type": "the type of A was {other}, not {own}",
    "b_type": "the type of B was {other}, not {own}",
    "stype": "the type of the scales was {other}, not {own}",
    "scale_vec": "the scales were {other}, not {own}",
    "rounding": "the rounding was {other}, not {own}",
    "satfinite": ".satfinite was {other}, not {own}",
    "bit_op": "the operation on bits was {other}, not {own}",
    "kind": "the kind was {other}, not {own}",
    "a_layout": "A was .{other}, not .{own}",
    "b_layout": "B was .{other}, not .{own}",
    "sparsity": ".{other} stood in place of .{own}",
}


def instruction_mistakes(record: Instruction, target: str) -> Iterator[Mistake]:
    """List other instructions of a target that take and give the same registers, and a D of the same type."""
    for other in instructions(target):
        if not _alike(record, other) or other.canonical == record.canonical:
            continue
        parts = [
            text.format(own=getattr(record, name), other=getattr(other, name))
            for name, text in _FIELDS.items() if getattr(other, name) != getattr(record, name)
        ]  # fmt: skip
        if (other.m, other.n, other.k) != (record.m, record.n, record.k):
            parts.insert(0, f"the shape was {other.shape}, not {record.shape}")
        rank = COMMON if len(parts) == 1 else USUAL if len(parts) == 2 else RARE
        yield Mistake(text=" and ".join(parts) + f" ({other})", settings={"record": other}, rank=rank)


def _alike(one: Instruction, other: Instruction) -> bool:
    same = all(getattr(one, name) == getattr(other, name) for name in ("sparse", "block_scale", "d_type", "c_type"))
    return same and all(
        one.layout(x).registers == other.layout(x).registers and one.packing(x).width == other.packing(x).width
        for x in ("A", "B", "C", "D")
    )
