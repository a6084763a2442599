"""PTX kernels in which the GPU's own matrix instruction multiplies all row tiles of A by all column tiles of B.

1. A block is one warp (of `mma`) or one warpgroup (of `wgmma`) and executes the instruction once, on tile i of A and
   tile j of B. A tile has the instruction's shape; m8n8k4 with f16, which works on four matrices, has those of B side
   by side, and four times the same of A.
2. A and metadata come in registers, `[tile, register, thread]`, and so does B of `mma`. Operands of `wgmma` in shared
   memory are images of a tile without a swizzle, which the block copies there; K-major and MN-major differ only inside
   of a core matrix of 16-bit elements.
3. C is a sequence of codes: C[r, s] is element r + s. D is a matrix of codes, whose rows have a pitch in bytes. The
   places of elements are those of the layouts; rows and columns are sums of a part that depends on the thread and one
   that depends on the register, because a layout renames bits.
4. The kernel takes one structure of 64-bit words: `ARGUMENT`. `wgmma` adds C if the last one is not 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from ..._arrays import Array
from ..._records import Shown
from ...formats import FORMATS
from ...isa import Instruction, MatrixInstruction, WarpgroupInstruction, printed
from ...layouts import Layout, MatrixDescriptor, Operand
from ...scaling import byte_ids, thread_ids
from ...sparsity import selectors
from ..emitting import register_class, statement_of

__all__ = ["ARGUMENT", "TileVariant", "columns_of", "shared_image", "tile_kernel", "variants_of"]

ARGUMENT = ("a", "b", "c", "d", "metadata", "scale_a", "scale_b", "tiles", "pitch", "accumulate")
"""Addresses of the operands, column tiles of a row of tiles, bytes of a row of D, `scale-d` of `wgmma`."""

_LINES, _CHUNK = 8, 16  # a core matrix: rows, and bytes of each


@dataclass(frozen=True, kw_only=True)
class TileVariant(Shown):
    """The immediate operands of an instruction, and where A of `wgmma` lies.

    Attributes
    ----------
    selector : int
        Of a sparse instruction.
    ids : tuple of int
        Of a block-scaled one: byte-id and thread-id of A, byte-id and thread-id of B.
    source : {"registers", "memory"}
        Where A of `wgmma` is.
    signs : tuple of int
        `imm-scale-a` and `imm-scale-b` of `wgmma`; what the kernel is given has its signs changed likewise.
    transposed : tuple of bool
        Whether A and B of `wgmma` are MN-major in shared memory.
    """

    selector: int = 0
    ids: tuple[int, int, int, int] = (0, 0, 0, 0)
    source: Literal["registers", "memory"] = "registers"
    signs: tuple[int, int] = (1, 1)
    transposed: tuple[bool, bool] = (False, False)

    @property
    def text(self) -> str:
        """What reports say."""
        turned = [x for x, transposed in zip("AB", self.transposed, strict=True) if transposed]
        return (
            f"selector {self.selector}, ids {self.ids}, A in {self.source}, signs {self.signs}, "
            f"MN-major {' and '.join(turned) or 'none'}"
        )


def variants_of(record: MatrixInstruction) -> tuple[TileVariant, ...]:
    """List every selector with the first and the last ids; of `wgmma` every selector, source, sign and major-ness."""
    chosen = selectors(record) if record.sparse else (0,)
    if isinstance(record, WarpgroupInstruction):
        return _of_warpgroup(record, chosen)
    ids = [(0, 0, 0, 0)]
    if record.block_scale:
        last = byte_ids(record)[-1]  # type: ignore[arg-type]
        ids.append((last, thread_ids("A")[-1], last, thread_ids("B")[-1]))
    return tuple(TileVariant(selector=selector, ids=some) for selector in chosen for some in ids)


def _of_warpgroup(record: WarpgroupInstruction, chosen: tuple[int, ...]) -> tuple[TileVariant, ...]:
    """Every major-ness with every source and selector that it can have; the signs take turns."""
    immediates = {name for operand in record.signatures[0] for name in operand.names}
    signs = [(1, 1), (-1, 1), (1, -1), (-1, -1)] if "imm-scale-a" in immediates else [(1, 1)]
    major = (False, True) if "imm-trans-a" in immediates else (False,)
    sources: tuple[Literal["registers", "memory"], ...] = ("registers", "memory")
    every = [
        (source, selector, (of_a, of_b)) for of_a, of_b, selector, source in product(major, major, chosen, sources)
        if source == "memory" or not of_a
    ]  # fmt: skip
    return tuple(
        TileVariant(selector=selector, source=source, signs=signs[number % len(signs)], transposed=transposed)
        for number, (source, selector, transposed) in enumerate(every * -(-len(signs) // len(every)))
    )


def columns_of(record: MatrixInstruction) -> int:
    """Return the columns of a tile (rule 1)."""
    return record.n * record.layout("D").matrices


def shared_image(record: MatrixInstruction, lines: Array, *, transposed: bool = False) -> Array:
    """Lay out tiles in shared memory (rule 2): codes `[tile, line, k]` to bytes `[tile, byte]`."""
    if transposed:
        lines = _transposed_cores(lines)
    packing = FORMATS[record.type("B")].bits
    if packing < 8:  # single bits, the lowest first
        octets = np.packbits(lines.astype(np.uint8), axis=-1, bitorder="little")
    else:
        octets = np.ascontiguousarray(lines).view(np.uint8)
    tiles, count, width = octets.shape
    cores = octets.reshape(tiles, count // _LINES, _LINES, width // _CHUNK, _CHUNK)
    return np.ascontiguousarray(cores.transpose(0, 3, 1, 2, 4)).reshape(tiles, -1)


def _transposed_cores(lines: Array) -> Array:
    """Transpose each core matrix, eight by eight elements of 16 bits, where it is."""
    tiles, count, k = lines.shape
    cores = lines.reshape(tiles, count // _LINES, _LINES, k // _LINES, _LINES)
    return cores.transpose(0, 1, 4, 3, 2).reshape(tiles, count, k)


def tile_kernel(record: MatrixInstruction, name: str, variant: TileVariant) -> str:
    """Write the kernel, without the module's header.

    Parameters
    ----------
    record : Instruction or WarpgroupInstruction
    name : str
        Of the entry.
    variant : TileVariant

    Returns
    -------
    str
    """
    of_warpgroup = isinstance(record, WarpgroupInstruction)
    c, d = record.layout("C"), record.layout("D")
    lines = [
        f".visible .entry {name}(.param .align 8 .b8 given[{8 * len(ARGUMENT)}])", f".maxntid {d.lanes}", "{",
        f".reg .b64 {', '.join('%' + x for x in ARGUMENT)}, %at, %row, %descriptor_a, %descriptor_b;",
        ".reg .b32 %thread, %tile, %i, %j, %columns, %x, %y, %metadata_word, %sa, %sb;",
        ".reg .b32 %v<4>; .reg .b16 %h<2>; .reg .pred %done, %added;",
        *(f"ld.param.u64 %{x}, [given+{8 * n}];" for n, x in enumerate(ARGUMENT)),
        "mov.u32 %thread, %tid.x; mov.u32 %tile, %ctaid.x; cvt.u32.u64 %columns, %tiles;",
        "div.u32 %i, %tile, %columns; rem.u32 %j, %tile, %columns;",
    ]  # fmt: skip
    lines += [f".reg .{register_class(record, x)} %{x.lower()}<{record.layout(x).registers}>;" for x in _held(record)]
    if of_warpgroup:
        lines += _copied("b", "%j", name, record.n * _bytes_of(record, "B"), record.n)
        if variant.source == "memory":
            lines += _copied("a", "%i", name, record.m * _bytes_of(record, "A"), record.m)
        lines += ["fence.proxy.async.shared::cta;", "bar.sync 0;"]
    tiles: tuple[tuple[Operand, str], ...] = (("A", "%i"), ("B", "%j"))
    for operand, tile in tiles:
        if operand in _held(record) and not (operand == "A" and variant.source == "memory"):
            lines += _registers(record, operand, tile)
    words = [("metadata", "%i", "%metadata_word")] * record.sparse
    words += [("scale_a", "%i", "%sa"), ("scale_b", "%j", "%sb")] * record.block_scale
    for word, tile, register in words:
        lines += [f"mad.lo.u32 %x, {tile}, {d.lanes}, %thread;", f"mad.wide.u32 %at, %x, 4, %{word};",
                  f"ld.global.u32 {register}, [%at];"]  # fmt: skip
    lines += _of_c(record, c)
    lines += ["setp.ne.u64 %added, %accumulate, 0;", *_executed(record, variant), *_into_d(record, d), "ret;", "}"]
    return "\n".join(lines)


def _held(record: MatrixInstruction) -> tuple[Operand, ...]:
    """Operands in registers of their own: C of `wgmma` is D."""
    return ("A", "D") if isinstance(record, WarpgroupInstruction) else ("A", "B", "C", "D")


def _bytes_of(record: MatrixInstruction, operand: Literal["A", "B"]) -> int:
    """Bytes of a line of k in shared memory."""
    k = record.layout("A").shape[-1] if operand == "A" else record.k
    return k * FORMATS[record.type(operand)].bits // 8


def _copied(operand: str, tile: str, name: str, size: int, lines: int) -> list[str]:
    """Copy a tile's image to shared memory and make its descriptor."""
    word = MatrixDescriptor(start=0, leading=lines * _CHUNK, stride=_LINES * _CHUNK).word
    return [
        f".shared .align 128 .b8 {name}_{operand}[{size}];",
        f"mul.wide.u32 %at, {tile}, {size}; add.u64 %{operand}, %{operand}, %at;",
        f"mov.u32 %y, {name}_{operand}; shl.b32 %x, %thread, 4;",
        f"FILL_{operand}:", f"setp.ge.u32 %done, %x, {size};", f"@%done bra FILLED_{operand};",
        f"cvt.u64.u32 %at, %x; add.u64 %at, %at, %{operand};",
        "ld.global.v4.b32 {%v0, %v1, %v2, %v3}, [%at];", "add.u32 %y, %y, %x;",
        "st.shared.v4.b32 [%y], {%v0, %v1, %v2, %v3};", "sub.u32 %y, %y, %x;", "add.u32 %x, %x, 2048;",
        f"bra FILL_{operand};", f"FILLED_{operand}:",
        f"shr.u32 %y, %y, 4; cvt.u64.u32 %descriptor_{operand}, %y;",
        f"or.b64 %descriptor_{operand}, %descriptor_{operand}, {word:#x};",
    ]  # fmt: skip


def _registers(record: MatrixInstruction, operand: Operand, tile: str) -> list[str]:
    """Load a tile's fragment (rule 2)."""
    layout, x, kind = record.layout(operand), operand.lower(), register_class(record, operand)
    size = layout.packing.width // 8
    each = layout.registers * layout.lanes
    return [
        f"mad.lo.u32 %x, {tile}, {each}, %thread; mad.wide.u32 %at, %x, {size}, %{x};",
        *(
            f"ld.global.{kind} %{x}{r}, [%at+{r * layout.lanes * size}];" for r in range(layout.registers)
        ),
    ]  # fmt: skip


def _lane_part(names: tuple[str, ...], into: str) -> Iterator[str]:
    """Compute what the thread contributes to a coordinate (rule 3)."""
    yield f"mov.u32 {into}, 0;"
    for weight, name in enumerate(names):
        if name[0] == "l":
            yield f"bfe.u32 %v0, %thread, {name[1:]}, 1; shl.b32 %v0, %v0, {weight}; or.b32 {into}, {into}, %v0;"


def _constants(layout: Layout, n: int) -> list[tuple[int, int]]:
    """Return row and column of each element of thread 0, the matrices side by side."""
    matrix, row, column = layout.places
    return [(int(row[0, i]), int(column[0, i] + n * matrix[0, i])) for i in range(layout.elements)]


def _across(record: MatrixInstruction, layout: Layout) -> tuple[str, ...]:
    """Return the bits of a column, the matrices side by side."""
    return (*layout.column, *layout.matrix)


def _of_c(record: MatrixInstruction, layout: Layout) -> list[str]:
    """Gather C (rule 3)."""
    size, kind = FORMATS[record.type("C")].code_dtype.itemsize, register_class(record, "C")
    x = "d" if isinstance(record, WarpgroupInstruction) else "c"
    lines = [
        *_lane_part(layout.row, "%x"), *_lane_part(_across(record, layout), "%y"), "add.u32 %x, %x, %y;",
        f"mad.lo.u32 %x, %i, {record.m}, %x; mad.lo.u32 %x, %j, {columns_of(record)}, %x;",
        f"mad.wide.u32 %at, %x, {size}, %c;",
    ]  # fmt: skip
    each = layout.packing.per_register
    at = [size * (row + column) for row, column in _constants(layout, record.n)]
    for r in range(layout.registers):
        if each == 1:
            lines.append(f"ld.global.{kind} %{x}{r}, [%at+{at[r]}];")
        else:
            lines += [f"ld.global.b16 %h{p}, [%at+{at[2 * r + p]}];" for p in range(2)]
            lines.append(f"mov.b32 %{x}{r}, {{%h0, %h1}};")
    return lines


def _into_d(record: MatrixInstruction, layout: Layout) -> list[str]:
    """Scatter D (rule 3)."""
    size, kind = FORMATS[record.type("D")].code_dtype.itemsize, register_class(record, "D")
    lines = [
        *_lane_part(layout.row, "%x"), f"mad.lo.u32 %x, %i, {record.m}, %x;",
        "cvt.u64.u32 %at, %x; mad.lo.u64 %d, %at, %pitch, %d;",
        *_lane_part(_across(record, layout), "%y"), f"mad.lo.u32 %y, %j, {columns_of(record)}, %y;",
        f"mad.wide.u32 %d, %y, {size}, %d;",
    ]  # fmt: skip
    each, constants = layout.packing.per_register, _constants(layout, record.n)
    for row in dict.fromkeys(row for row, _ in constants):
        lines.append(f"mad.lo.u64 %row, %pitch, {row}, %d;")
        for r in range(layout.registers):
            if constants[each * r][0] != row:
                continue
            at = [size * column for _, column in constants[each * r : each * (r + 1)]]
            if each == 1:
                lines.append(f"st.global.{kind} [%row+{at[0]}], %d{r};")
            else:
                lines.append(f"mov.b32 {{%h0, %h1}}, %d{r};")
                lines += [f"st.global.b16 [%row+{at[p]}], %h{p};" for p in range(2)]
    return lines


def _executed(record: MatrixInstruction, variant: TileVariant) -> list[str]:
    """Write the instruction."""
    if isinstance(record, Instruction):
        return [statement_of(record, variant.selector, variant.ids, metadata="%metadata_word")]
    names = {
        "a-desc": "%descriptor_a", "b-desc": "%descriptor_b", "metadata": "%metadata_word",
        "selector": f"{variant.selector:#x}", "scale-d": "%added",
        **{f"imm-scale-{x}": str(sign) for x, sign in zip("ab", variant.signs, strict=True)},
        **{f"imm-trans-{x}": str(int(turn)) for x, turn in zip("ab", variant.transposed, strict=True)},
    }  # fmt: skip
    assert isinstance(record, WarpgroupInstruction)
    operands = printed(record.signatures[variant.source == "registers"], lambda name: names.get(name, f"%{name}"))
    return [
        "wgmma.fence.sync.aligned;", f"{record} {operands};", "wgmma.commit_group.sync.aligned;",
        "wgmma.wait_group.sync.aligned 0;",
    ]  # fmt: skip
