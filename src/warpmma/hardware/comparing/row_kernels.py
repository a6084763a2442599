"""PTX kernels that execute one operation on each lane, derived from its row's syntax and types of operands."""

from __future__ import annotations

from collections.abc import Sequence

from ...operations import MatrixMove, Operation

__all__ = ["row_kernel", "row_statement"]

_BYTES = {"b16": 2, "b32": 4, "b64": 8, "pred": 1}


def row_statement(row: Operation | MatrixMove, immediates: Sequence[int] = (), pointer: str = "%p") -> str:
    """Return the instruction with its operands: registers `%d0`.., `%a0`.., numbers, and `%p`.

    Parameters
    ----------
    row : Operation or MatrixMove
    immediates : sequence of int
        Values of the operands that are immediates, in their order.
    pointer : str
        Register that holds the address, if there is one.

    Returns
    -------
    str

    Examples
    --------
    >>> from warpmma.operations import matrix_move, operation
    >>> row_statement(operation("add.f32"))
    'add.f32 %d0, %a0, %a1;'
    >>> row_statement(matrix_move("ldmatrix.sync.aligned.m8n8.x2.shared.b16"))
    'ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%d0, %d1}, [%p];'
    """
    names, values = {"p": pointer}, iter(immediates)
    names |= {name: str(next(values)) for x in row.sources if x.kind == "imm" for name in x.names}
    return row.statement(lambda name: names.get(name, f"%{name}"))


def row_kernel(row: Operation, name: str, immediates: Sequence[int] = ()) -> str:
    """Return a kernel that executes an operation on each lane.

    Parameters
    ----------
    row : Operation
    name : str
        Name of the entry point.
    immediates : sequence of int
        Values of the operands that are immediates, in their order.

    Returns
    -------
    str
        PTX, without the module's header. Parameters are addresses of registers `[lane]`: of the inputs except
        immediates, then of the outputs; predicates and carries are bytes. Lanes that a membermask does not name skip
        the instruction.
    """
    inputs: list[tuple[str, str]] = [(f"a{i}", kind) for i, kind in enumerate(row.inputs) if kind != "imm"]
    outputs: list[tuple[str, str]] = [(f"d{i}", kind) for i, kind in enumerate(row.outputs)]
    narrow = {name for x in row.signature if x.declared == "b8" for name in x.names}
    lines = [f".visible .entry {name}({', '.join(f'.param .u64 p{x}' for x, _ in (*inputs, *outputs))}) {{"]
    lines += [
        ".reg .u64 %address, %offset;",
        ".reg .u32 %t, %block, %width, %one;",
        ".reg .pred %out;",
        ".reg .b16 %byte;",
        *(f".reg .{'b8' if x in narrow else kind} %{x};" for x, kind in (*inputs, *outputs)),
        "mov.u32 %block, %ctaid.x;",
        "mov.u32 %width, %ntid.x;",
        "mov.u32 %t, %tid.x;",
        "mad.lo.u32 %t, %block, %width, %t;",
    ]
    for x, kind in inputs:
        lines += [*_address(x, kind), *_load(x, kind, x in narrow)]
    if row.membermask and row.inputs[-1] == "b32":
        mask = f"%a{len(row.inputs) - 1}"
        lines += ["mov.u32 %one, %laneid;", "shl.b32 %one, 1, %one;", f"and.b32 %one, %one, {mask};"]
        lines += ["setp.eq.u32 %out, %one, 0;", "@%out bra DONE;"]
    if row.reads_carry:
        lines += [f"selp.b32 %one, 1, 0, %a{len(row.inputs) - 1};", "add.cc.u32 %one, %one, 0xffffffff;"]
    lines.append(row_statement(row, immediates))
    if row.writes_carry:
        lines += ["addc.u32 %one, 0, 0;", f"setp.ne.u32 %d{len(row.outputs) - 1}, %one, 0;"]
    for x, kind in outputs:
        lines += [*_address(x, kind), *_store(x, kind, x in narrow)]
    return "\n".join([*lines, "DONE:", "ret;", "}"])


def _address(operand: str, kind: str) -> list[str]:
    """Point `%address` to this lane's element."""
    return [
        f"ld.param.u64 %address, [p{operand}];",
        f"mul.wide.u32 %offset, %t, {_BYTES[kind]};",
        "add.u64 %address, %address, %offset;",
    ]


def _load(operand: str, kind: str, byte: bool) -> list[str]:
    if kind == "pred":
        return ["ld.global.u8 %byte, [%address];", f"setp.ne.b16 %{operand}, %byte, 0;"]
    if byte:
        return ["ld.global.b16 %byte, [%address];", f"cvt.u8.u16 %{operand}, %byte;"]
    return [f"ld.global.{kind} %{operand}, [%address];"]


def _store(operand: str, kind: str, byte: bool) -> list[str]:
    if kind == "pred":
        return [f"selp.b16 %byte, 1, 0, %{operand};", "st.global.u8 [%address], %byte;"]
    if byte:
        return [f"cvt.u16.u8 %byte, %{operand};", "st.global.b16 [%address], %byte;"]
    return [f"st.global.{kind} [%address], %{operand};"]
