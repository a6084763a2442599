"""PTX kernels that execute one instruction on registers from memory, one warp to a block.

A kernel's parameters are addresses of registers, each `[warp, register, lane]` in words of the operand's width, and of
metadata and scales, `[warp, lane]`; block i is warp i.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from .._arguments import is_integer, members
from ..errors import OperandError, shown
from ..isa import Instruction, MatrixInstruction, check_known, parse
from ..layouts import Operand
from ..scaling import checked_ids
from ..sparsity import sparse_a

_IDENTIFIER = re.compile(r"[a-zA-Z][\w$]{0,1000}|[_$%][\w$]{1,1000}", re.ASCII)


def _name(operand: str, index: int) -> str:
    return f"%{operand}{index}"


def ptx_statement(
    instruction: str | Instruction, *, selector: int = 0, ids: tuple[int, int, int, int] = (0, 0, 0, 0)
) -> str:
    """Return the instruction with its operands: registers `%d0`.., `%a0`.., `%b0`.., `%c0`.., `%e`, `%sa` and `%sb`.

    Parameters
    ----------
    instruction : str or Instruction
    selector : int
        Of a sparse instruction.
    ids : tuple of int
        Of a block-scaled one: byte-id and thread-id of A, byte-id and thread-id of B.

    Returns
    -------
    str

    Raises
    ------
    MnemonicError, MetadataError, ScaleError
        No such instruction, or a selector, byte-id or thread-id that it does not have.

    Examples
    --------
    >>> ptx_statement("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32")
    'mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%d0,%d1}, {%a0}, {%b0}, {%c0,%c1};'
    """
    return statement_of(parse(instruction), selector, ids)


def statement_of(record: Instruction, selector: int, ids: tuple[int, int, int, int], metadata: str = "%e") -> str:
    """Write the statement of a record, with metadata in this register."""
    names: dict[str, object] = {"metadata": metadata, "scale_a": "%sa", "scale_b": "%sb"}
    if record.sparse:
        sparse_a(record).check_selector(selector)
        names["selector"] = f"{selector:#x}"
    if record.block_scale:
        of = ("byte_id_a", "thread_id_a", "byte_id_b", "thread_id_b")
        names |= zip(of, checked_ids(record, ids), strict=True)
    return record.statement(lambda name: str(names.get(name, f"%{name}")), ",")


def register_class(instruction: MatrixInstruction, operand: Operand) -> str:
    """Return the register class that PTX wants: `.f32` accumulators, `.f64`, and `.b32` for everything else."""
    name = instruction.type(operand)
    return {"f64": "f64", "f32": "f32"}.get(name, "b32")


def ptx_kernel(
    instruction: str | Instruction, name: str, *, selector: int = 0, ids: tuple[int, int, int, int] = (0, 0, 0, 0)
) -> str:
    """Return a kernel that executes an instruction once on every warp.

    Parameters
    ----------
    instruction : str or Instruction
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
    MnemonicError, MetadataError, ScaleError, OperandError
        No such instruction; a selector, byte-id or thread-id that it does not have; an invalid PTX name.
    """
    record = parse(instruction)
    done = statement_of(record, selector, ids)
    if not isinstance(name, str) or not _IDENTIFIER.fullmatch(name):
        raise OperandError(f"{record}: the kernel's name is {shown(name)}; expected an identifier of PTX")
    words = [*(["e"] if record.sparse else []), *(["sa", "sb"] if record.block_scale else [])]
    operands: list[tuple[Operand, str]] = [("A", "ld"), ("B", "ld"), ("C", "ld"), ("D", "st")]
    pointers = [*(operand.lower() for operand, _ in operands), *words]
    lines = [f".visible .entry {name}({', '.join(f'.param .u64 p{x}' for x in pointers)}) {{"]
    lines += [f".reg .u32 {', '.join(['%lane', '%warp', '%t', *('%' + x for x in words)])};"]
    lines += [".reg .u64 %address, %offset;", "mov.u32 %lane, %tid.x;", "mov.u32 %warp, %ctaid.x;"]
    body: dict[str, list[str]] = {"ld": [], "st": []}
    for operand, move in operands:
        layout, x, kind = record.layout(operand), operand.lower(), register_class(record, operand)
        lines.append(f".reg .{kind} %{x}<{layout.registers}>;")
        size = layout.packing.width // 8
        body[move] += _address(x, layout.registers, size)
        for i in range(layout.registers):
            register, place = _name(x, i), f"[%address+{i * 32 * size}]"
            ends = f"{register}, {place}" if move == "ld" else f"{place}, {register}"
            body[move].append(f"{move}.global.{kind} {ends};")
    for x in words:
        body["ld"] += [*_address(x, 1, 4), f"ld.global.u32 %{x}, [%address];"]
    return "\n".join([*lines, *body["ld"], done, *body["st"], "ret;", "}"])


def _address(operand: str, registers: int, size: int) -> list[str]:
    """Point `%address` to this lane's place in register 0 of this warp."""
    return [
        f"ld.param.u64 %address, [p{operand}];",
        f"mad.lo.u32 %t, %warp, {registers * 32}, %lane;",
        f"mul.wide.u32 %offset, %t, {size};",
        "add.u64 %address, %address, %offset;",
    ]


def ptx_module(kernels: Iterable[str], target: str, version: tuple[int, int]) -> str:
    """Put kernels together into a PTX module for a target, of a PTX version that has them all.

    An unknown target is a `TargetError`, a version that is not two integers or a kernel that is not text an
    `OperandError`.
    """
    check_known(target)
    numbers = members(version, 2)
    if numbers is None or len(numbers) != 2 or not all(map(is_integer, numbers)):
        raise OperandError(f"version is {shown(version)}; expected two integers, such as (8, 0)")
    texts: list[str] = []
    try:
        for text in kernels:
            texts.append(text + "")  # which only text allows
    except Exception:  # no iterable, one of something else, or one that fails
        raise OperandError(f"kernels are {shown(kernels)}; expected an iterable of strings") from None
    if isinstance(kernels, str):
        raise OperandError("kernels are one string; expected an iterable of strings")
    header = f".version {numbers[0]}.{numbers[1]}\n.target {target}\n.address_size 64\n"
    return header + "\n".join(texts) + "\n"
