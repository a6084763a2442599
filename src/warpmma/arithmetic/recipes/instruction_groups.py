"""Groups: the instructions that share a path through the hardware, on any one target.

The types of A and B decide it, but for f16 in the one shape that has a unit of its own, and for block-scaled
instructions, whose kind does.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...errors import UnsupportedError
from ...isa import AnyInstruction, WarpgroupInstruction, parse_any

WARPGROUPS = "wgmma "
"""What the names of groups of `wgmma` begin with."""

# What the types of A and B are; e4m3 and e5m2 have a path of their own where no narrower type is with them.
_TYPES: Mapping[str, str] = MappingProxyType({
    "f16": "half", "bf16": "half", "tf32": "half", "e4m3": "fp8", "e5m2": "fp8", "e3m2": "f8f6f4", "e2m3": "f8f6f4",
    "e2m1": "f8f6f4", "f64": "f64", "s8": "int8", "u8": "int8", "s4": "int4", "u4": "int4", "b1": "b1",
})  # fmt: skip


def group(instruction: str | AnyInstruction) -> str:
    """Name the group of instructions that share a lowering: the types decide it, or the shape where one type has two.

    Examples
    --------
    >>> group("mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e5m2.f32")
    'fp8'
    >>> group("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2")
    'wgmma fp8'
    """
    return group_of(parse_any(instruction))


def group_of(record: AnyInstruction) -> str:
    """Name the group of a record that is known to be legal; `UnsupportedError` if its types are of no group."""
    if record.shape == "m8n8k4" and record.a_type == record.b_type == "f16":
        return "quad pair"
    if record.block_scale:
        return str(record.kind)
    found = {_TYPES.get(record.a_type), _TYPES.get(record.b_type)}
    if found == {"fp8", "f8f6f4"}:
        found = {"f8f6f4"}
    name = found.pop()
    if found or name is None:
        raise UnsupportedError(f"{record}: no group of instructions has A of {record.a_type} and B of {record.b_type}")
    return WARPGROUPS + name if isinstance(record, WarpgroupInstruction) else name
