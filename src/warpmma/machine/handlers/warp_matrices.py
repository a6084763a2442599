"""`wmma`: matrices between memory and opaque fragments, and their products.

The rules:

1. Memory has the matrix as lines, its rows or columns, which are a stride apart; of no stride they follow each other.
   A line begins at a multiple of 16 bytes, or of its size if it has fewer: so CUDA's `load_matrix_sync` asks for it.
   PTX asks for multiples of a lane's whole fragment, which no GPU does.
2. All lanes bring the same address and stride. Lanes touch the lines in pieces of 16 bytes, the first lane the first.
3. What is loaded is where the target's fragment has it, in every place that has it.
4. A product is that of the chain of `mma` of `WmmaMultiply.steps`. Where a fragment holds an element in several lanes,
   each tile takes those of its own lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._arrays import Array
from ...arithmetic import Popcount, product, recipe_of, resolve
from ...errors import OperandError
from ...isa import Instruction
from ...layouts import Layout, Operand
from ...operations import DTYPES, WINDOWS, Operation, WmmaMove, WmmaMultiply, row
from ...registers import LANES, Packing
from ..base import Site, WarpRegister
from ..block import Batch, Results, load, store
from .load_store import address, check_whole, read
from .product_poison import collected, poison_of_product, spread

_PIECE = 16


# Memory


def move_matrix(batch: Batch, site: Site, row: WmmaMove, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute a `wmma.load` or `wmma.store`."""
    check_whole(batch, site, lanes)
    where, *fragment, stride = operands
    pieces = _pieces(batch, site, row, where, stride, lanes)
    if row.direction == "load":
        return _load(batch, site, row, pieces, lanes)
    _store(batch, site, row, pieces, fragment, lanes)
    return ()


def _pieces(
    batch: Batch, site: Site, row: WmmaMove, where: WarpRegister, given: WarpRegister | None, lanes: Array
) -> list[tuple[Array, int, Array]]:
    """Rule 2: for each access of a lane, the addresses, how many bytes, and the lanes that do it."""
    at = address(batch, site, where, lanes)
    stride = np.full(batch.shape, row.line, np.uint32) if given is None else read(batch, site, [given], lanes)[0]
    local = lanes & (at.astype(np.uint64) - np.uint64(WINDOWS["local"].base) < np.uint64(WINDOWS["local"].size))
    if not row.space and local.any():
        batch.reporter.report("bounds", site, local, at, "a matrix in local memory; expected global or shared memory")
        lanes = lanes & ~local
    for what, x in (("addresses", at), ("strides", stride)):
        batch.reporter.report(
            "divergent", site, lanes & (x != x[..., :1]),
            detail=f"lanes of a warp bring {what} of their own; PTX wants the same of all",
        )  # fmt: skip
    line = row.line * row.bits // 8
    size = min(line, _PIECE)
    each, total = line // size, row.lines * (line // size)
    step = stride.astype(at.dtype) * at.dtype.type(row.bits)
    found = []
    for first in range(0, total, LANES):
        number = np.arange(first, first + LANES)
        which = np.minimum(number, total - 1)
        offset = step * (which // each).astype(at.dtype) // at.dtype.type(8) + (which % each * size).astype(at.dtype)
        found.append((at + offset, size, lanes & (number < total)))
    return found


def _load(batch: Batch, site: Site, row: WmmaMove, pieces: Sequence[tuple[Array, int, Array]], lanes: Array) -> Results:
    loaded, spoilt, origin = [], [], None
    for at, size, some in pieces:
        element = max(row.bits // 8, 1)
        data, bad = load(batch, site, row.space or "generic", at, size, some, element=element)
        loaded.append(data)
        spoilt.append(np.zeros((*lanes.shape, size), np.uint8) if bad is None else bad.bits)
        origin = origin if bad is None else bad.origin
    layout = row.layout(batch.target)
    registers = _distributed(row, layout, _matrix(row, np.stack(loaded, axis=-3)))
    if not any(x.any() for x in spoilt):
        return batch.fragment(registers, lanes, site)
    bits = _distributed(row, layout, _matrix(row, np.stack(spoilt, axis=-3)))
    return batch.fragment(registers, lanes, site, bits if batch.reporter.follows else bits != 0, origin)


def _store(
    batch: Batch, site: Site, row: WmmaMove, pieces: Sequence[tuple[Array, int, Array]], fragment: Sequence[Any],
    lanes: Array,
) -> None:  # fmt: skip
    data = _lines(batch, row, batch.read_fragment(site, fragment, lanes), pieces[0][1])
    held = batch.carried(fragment, site, lanes) if batch.reporter.follows else None
    bits = None if held is None else _lines(batch, row, np.stack(held.masks, axis=-2), pieces[0][1])
    for i, (at, size, some) in enumerate(pieces):
        poison = None if bits is None or held is None else batch.held(_piece(bits, i, lanes, size), held)
        store(batch, site, row.space or "generic", at, _piece(data, i, lanes, size), some, poison=poison)


def _lines(batch: Batch, row: WmmaMove, registers: Array, size: int) -> Array:
    """Make the pieces of a matrix, `[block, warp, piece, byte]`, of its fragment's registers."""
    matrix = collected(row.layout(batch.target), registers)[:, :, 0]
    lines = matrix if row.order == "row" else matrix.swapaxes(-1, -2)
    codes = np.ascontiguousarray(lines).astype(f"u{row.bits // 8}")  # no element that is stored has fewer than 16 bits
    return codes.view(np.uint8).reshape(*matrix.shape[:2], -1, size)


def _piece(data: Array, i: int, lanes: Array, size: int) -> Array:
    """Return the pieces that lanes store in their i-th access, `[block, warp, lane, byte]`."""
    part = np.zeros((*lanes.shape, size), np.uint8)
    piece = data[:, :, i * LANES : (i + 1) * LANES]
    part[:, :, : piece.shape[2]] = piece
    return part


def _arranged(row: WmmaMove, elements: Array) -> Array:
    """Make a matrix `[block, warp, row, column]` of the elements of pieces, `[block, warp, piece, lane, element]`."""
    shape = elements.shape[:2]
    lines = elements.reshape(*shape, -1)[..., : row.lines * row.line]
    matrix = lines.reshape(*shape, row.lines, row.line)
    return matrix if row.order == "row" else matrix.swapaxes(-1, -2)


def _matrix(row: WmmaMove, data: Array) -> Array:
    """Make codes of the bytes of pieces, `[block, warp, piece, lane, byte]`."""
    if row.bits >= 8:
        return _arranged(row, np.ascontiguousarray(data).view(f"u{row.bits // 8}"))
    shifts = np.arange(0, 8, row.bits, dtype=np.uint8)
    codes = data[..., None] >> shifts & np.uint8((1 << row.bits) - 1)
    return _arranged(row, codes.reshape(*data.shape[:-1], -1))


def _distributed(row: WmmaMove, layout: Layout, matrix: Array) -> Array:
    """Rule 3: registers `[block, warp, register, lane]` of a matrix."""
    flat = matrix.reshape(*matrix.shape[:2], -1)
    return layout.packing.join(np.ascontiguousarray(flat[..., layout.flat % flat.shape[-1]]))


# Products


def multiply_matrices(batch: Batch, site: Site, row: WmmaMultiply, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute a `wmma.mma`: fragments of A, B and C."""
    check_whole(batch, site, lanes)
    names: tuple[Operand, ...] = ("A", "B", "C", "D")
    layouts = {name: row.layout(name, batch.target) for name in names}
    given, fragments = {}, dict[str, Array]()
    items, read_from = iter(operands), list[WarpRegister]()
    for name, spec in zip(names, row.sources, strict=False):
        registers = [next(items) for _ in spec.names]
        fragments[name] = batch.read_fragment(site, registers, lanes)
        given[name] = collected(layouts[name], fragments[name])
        read_from += registers
    d = np.empty(given["C"].shape[:2] + layouts["D"].shape[-2:], layouts["D"].packing.dtype)
    m, n = d.shape[-2:]
    of_a, of_b = _apart(layouts["A"]), _apart(layouts["B"])
    for i in range(of_b):  # rule 4: A is apart for blocks of columns, B for blocks of rows
        rows = slice(i * m // of_b, (i + 1) * m // of_b)
        for j in range(of_a):
            columns = slice(j * n // of_a, (j + 1) * n // of_a)
            d[..., rows, columns] = _chain(
                batch,
                row,
                given["A"][:, :, j, rows],
                given["B"][:, :, i, :, columns],
                given["C"][:, :, 0, rows, columns],
            )
    flat = d.reshape(*d.shape[:2], -1)[..., layouts["D"].flat]
    packed = layouts["D"].packing.join(flat)
    if batch.watching is not None:
        blocks = [batch.reporter.running(place) for place in range(len(batch.blocks))]
        some = np.asarray(lanes.any(axis=-1))
        batch.watching.see(site, row, batch.target, blocks, some, {"D": packed, **fragments}, {})
    held = batch.carried(read_from, site, lanes) if batch.reporter.follows else None
    if held is None:
        return batch.fragment(packed, lanes, site)
    masks = iter(held.masks)
    poison = {
        name: collected(layouts[name], np.stack([next(masks) for _ in spec.names], axis=-2)) != 0
        for name, spec in zip(names, row.sources, strict=False)
    }
    bits = spread(layouts["D"], poison_of_product(poison["A"], poison["B"], poison["C"]))
    return batch.fragment(packed, lanes, held.site, bits, held.origin)


def _apart(layout: Layout) -> int:
    """How many copies of each element are read: those in several lanes."""
    return layout.matrices if layout.matrix[:1] and layout.matrix[0][0] == "l" else 1


def _chain(batch: Batch, row: WmmaMultiply, a: Array, b: Array, c: Array) -> Array:
    """Multiply matrices `[block, warp, row, column]`: codes of D."""
    steps = row.steps(batch.target)
    batches = a.shape[:2]
    a, b, c = (x.reshape(-1, *x.shape[-2:]) for x in (a, b, c))
    if row.c_type != steps[0].c_type:
        c = _converted("cvt.f32.f16", c)
    c, first = c.astype(_code(steps[0], "C")), 0
    while first < len(steps):
        same = next((i for i in range(first, len(steps)) if steps[i] != steps[first]), len(steps)) - first
        step = steps[first]
        recipe = recipe_of(step, batch.target if batch.target in step.targets else step.targets[0])
        along = slice(first * step.k, (first + same) * step.k)
        of_a, of_b, k = a[..., along].astype(_code(step, "A")), b[:, along].astype(_code(step, "B")), step.k
        if isinstance(recipe.unit, Popcount):
            of_a, of_b, k = _words(of_a), _words(of_b.swapaxes(1, 2)).swapaxes(1, 2), k // 32
        c = product(recipe, of_a, of_b, c, k=k, engine=resolve(batch.engine))
        first += same
    if row.d_type != steps[-1].d_type:
        c = _converted("cvt.rn.f16.f32", c)
    return c.reshape(*batches, *c.shape[-2:])


def _code(step: Instruction, operand: Operand) -> np.dtype[Any]:
    return step.format(operand).code_dtype


def _words(bits: Array) -> Array:
    """Pack single bits along the last dimension, 32 in a word."""
    return Packing(slot=1, bits=1).join(bits.reshape(*bits.shape[:-1], -1, 32))


def _converted(mnemonic: str, codes: Array) -> Array:
    """Convert codes of C or D as the machine's own instruction does."""
    operation = row(mnemonic)
    if not isinstance(operation, Operation):
        raise OperandError(f"{mnemonic} is not an operation")
    (out,) = operation.compute(codes.astype(DTYPES[operation.inputs[0]]))
    return np.asarray(out)
