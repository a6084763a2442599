"""PTX kernels that execute one instruction on registers from memory, one warp to a block.

A kernel's parameters are addresses of registers, each `[warp, register, lane]` in words of the operand's width, and of
metadata and scales, `[warp, lane]`; block i is warp i.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..instructions import Instruction
from ..layouts import Operand
from ..scaling import scale_place
from ..sparsity import metadata_place

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


def kernel(
    instruction: Instruction, name: str, *, selector: int = 0, ids: tuple[int, int, int, int] = (0, 0, 0, 0)
) -> str:  # fmt: skip
    """Return a kernel that executes an instruction once on every warp.

    Parameters
    ----------
    instruction : Instruction
    name : str
        Name of the entry point.
    selector : int
        Of a sparse instruction.
    ids : tuple of int
        Of a block-scaled one: byte-id and thread-id of A, byte-id and thread-id of B.

    Returns
    -------
    str
        PTX, without the module's header. Parameters are addresses of a, b, c, d, then e of a sparse instruction, then
        sa and sb of a block-scaled one.

    Raises
    ------
    MetadataError, ScaleError
        A selector, byte-id or thread-id that the instruction does not have.
    """
    words = [*(["e"] if instruction.sparse else []), *(["sa", "sb"] if instruction.block_scale else [])]
    if instruction.sparse:
        metadata_place(instruction, 0, 0, selector=selector)  # checks it
    if instruction.block_scale:
        scale_place(instruction, "A", 0, 0, byte_id=ids[0], thread_id=ids[1])
        scale_place(instruction, "B", 0, 0, byte_id=ids[2], thread_id=ids[3])
    operands: list[tuple[Operand, str]] = [("A", "ld"), ("B", "ld"), ("C", "ld"), ("D", "st")]
    pointers = [*(operand.lower() for operand, _ in operands), *words]
    lines = [f".visible .entry {name}({', '.join(f'.param .u64 p{x}' for x in pointers)}) {{"]
    lines += [f".reg .u32 {', '.join(['%lane', '%warp', '%t', *('%' + x for x in words)])};"]
    lines += [".reg .u64 %address, %offset;", "mov.u32 %lane, %tid.x;", "mov.u32 %warp, %ctaid.x;"]
    body: dict[str, list[str]] = {"ld": [], "st": []}
    for operand, move in operands:
        layout, x, kind = instruction.layout(operand), operand.lower(), _class(instruction, operand)
        lines.append(f".reg .{kind} %{x}<{layout.registers}>;")
        size = layout.packing.width // 8
        body[move] += _address(x, layout.registers, size)
        for i in range(layout.registers):
            register, place = _name(x, i), f"[%address+{i * 32 * size}]"
            ends = f"{register}, {place}" if move == "ld" else f"{place}, {register}"
            body[move].append(f"{move}.global.{kind} {ends};")
    for x in words:
        body["ld"] += [*_address(x, 1, 4), f"ld.global.u32 %{x}, [%address];"]
    done = statement(instruction, selector=selector, ids=ids)
    return "\n".join([*lines, *body["ld"], done, *body["st"], "ret;", "}"])


def _address(operand: str, registers: int, size: int) -> list[str]:
    """Point `%address` to this lane's place in register 0 of this warp."""
    return [
        f"ld.param.u64 %address, [p{operand}];",
        f"mad.lo.u32 %t, %warp, {registers * 32}, %lane;",
        f"mul.wide.u32 %offset, %t, {size};",
        "add.u64 %address, %address, %offset;",
    ]


def module(kernels: Iterable[str], target: str, version: tuple[int, int]) -> str:
    """Put kernels together into a PTX module for a target, of a PTX version that has them all."""
    header = f".version {version[0]}.{version[1]}\n.target {target}\n.address_size 64\n"
    return header + "\n".join(kernels) + "\n"
