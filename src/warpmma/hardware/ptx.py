"""PTX kernels that execute one instruction on registers from memory, one warp to a block.

A kernel's parameters are addresses of a, b, c (and e, the metadata) and d, each `[warp, register, lane]` in words of
the operand's width; block i is warp i.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..instructions import Instruction
from ..layouts import Operand

__all__ = ["kernel", "module", "statement"]


def _name(operand: str, index: int) -> str:
    return f"%{operand}{index}"


def statement(instruction: Instruction, *, selector: int = 0, ids: tuple[int, int, int, int] = (0, 0, 0, 0)) -> str:
    """Return the instruction with its operands: registers `%d0`.., `%a0`.., `%b0`.., `%c0`.., `%e`, `%sa` and `%sb`.

    Parameters
    ----------
    instruction : Instruction
    selector : int
        Of a sparse instruction.
    ids : tuple of int
        Of a block-scaled one: byte-id and thread-id of A, byte-id and thread-id of B.

    Returns
    -------
    str

    Examples
    --------
    >>> from warpmma import parse
    >>> statement(parse("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"))
    'mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%d0,%d1}, {%a0}, {%b0}, {%c0,%c1};'
    """
    parts = [_fragment(instruction, operand) for operand in ("D", "A", "B", "C")]
    if instruction.sparse:
        parts += ["%e", f"{selector:#x}"]
    if instruction.block_scale:
        parts += ["{%sa}", f"{{{ids[0]}, {ids[1]}}}", "{%sb}", f"{{{ids[2]}, {ids[3]}}}"]
    return f"{instruction} {', '.join(parts)};"


def _fragment(instruction: Instruction, operand: Operand) -> str:
    names = (_name(operand.lower(), i) for i in range(instruction.layout(operand).registers))
    return "{" + ",".join(names) + "}"


def _class(instruction: Instruction, operand: Operand) -> str:
    """Return the register class that PTX wants: `.f32` accumulators, `.f64`, and `.b32` for everything else."""
    name = instruction.type(operand)
    return {"f64": "f64", "f32": "f32"}.get(name, "b32")


def kernel(instruction: Instruction, name: str, *, selector: int = 0) -> str:
    """Return a kernel that executes a dense or sparse instruction once on every warp.

    Parameters
    ----------
    instruction : Instruction
        Not block-scaled.
    name : str
        Name of the entry point.
    selector : int

    Returns
    -------
    str
        PTX, without the module's header.
    """
    operands: list[tuple[Operand, str]] = [("A", "ld"), ("B", "ld"), ("C", "ld"), ("D", "st")]
    pointers = [*(operand.lower() for operand, _ in operands), *(["e"] if instruction.sparse else [])]
    lines = [f".visible .entry {name}({', '.join(f'.param .u64 p{x}' for x in pointers)}) {{"]
    lines += [".reg .u32 %lane, %warp, %t, %e;", ".reg .u64 %address, %offset;"]
    lines += ["mov.u32 %lane, %tid.x;", "mov.u32 %warp, %ctaid.x;"]
    body: dict[str, list[str]] = {"ld": [], "st": []}
    for operand, move in operands:
        layout, x, kind = instruction.layout(operand), operand.lower(), _class(instruction, operand)
        lines.append(f".reg .{kind} %{x}<{layout.registers}>;")
        size = layout.packing.width // 8
        body[move] += [
            f"ld.param.u64 %address, [p{x}];",
            f"mad.lo.u32 %t, %warp, {layout.registers * 32}, %lane;",
            f"mul.wide.u32 %offset, %t, {size};",
            "add.u64 %address, %address, %offset;",
        ]
        for i in range(layout.registers):
            register, place = _name(x, i), f"[%address+{i * 32 * size}]"
            ends = f"{register}, {place}" if move == "ld" else f"{place}, {register}"
            body[move].append(f"{move}.global.{kind} {ends};")
    if instruction.sparse:
        body["ld"] += [
            "ld.param.u64 %address, [pe];", "mad.lo.u32 %t, %warp, 32, %lane;", "mul.wide.u32 %offset, %t, 4;",
            "add.u64 %address, %address, %offset;", "ld.global.u32 %e, [%address];",
        ]  # fmt: skip
    return "\n".join([*lines, *body["ld"], statement(instruction, selector=selector), *body["st"], "ret;", "}"])


def module(kernels: Iterable[str], target: str, version: tuple[int, int] = (9, 0)) -> str:
    """Put kernels together into a PTX module for a target."""
    header = f".version {version[0]}.{version[1]}\n.target {target}\n.address_size 64\n"
    return header + "\n".join(kernels) + "\n"
