"""`wgmma` in kernels: tiles in shared memory and registers of four warps; fences, groups and waits.

The rules (PTX ISA 9.1, 9.7.15; measured on an H200, docs/specification/wgmma.md):

1. The four warps of a warpgroup execute a product together. The descriptors are those of the first lane of the first
   warp; `scale-d` is true if it is in any lane of the first warp. Others are an error.
2. Tiles are read by the async proxy, in pieces of 16 bytes; lanes of warp w read the rows of A from 16w on.
3. D is pending until it has been waited for (`warpgroup_products`).
4. `wgmma.fence` changes no bit: ptxas injects those that are missing, and no product was seen to fail without one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import Array, all_ones, frozen
from ...errors import MetadataError
from ...execution import WarpgroupExecution, WarpgroupOptions, codes_in_registers, in_registers
from ...isa import WarpgroupInstruction
from ...layouts import MatrixDescriptor, Operand
from ...operations import WarpgroupGroup, WarpgroupMultiply
from ...registers import LANES, WARPS
from ..base import Fragment, Origin, RegisterShadow, Site, WarpRegister, acting, get, of_warpgroups, put, with_shadow
from ..block import Batch, Results, touches
from ..memory import Allocation, LockstepTouch, Touch
from ..sync import Touched
from .load_store import check_whole, read
from .product_tiles import ProductTiles

_PIECE = 16


def group(batch: Batch, site: Site, row: WarpgroupGroup, operands: Sequence[Any], lanes: Array) -> Results:
    """Fence, commit or wait."""
    check_whole(batch, site, lanes)
    if row.action == "commit_group":
        batch.warpgroups.commit(lanes)
    elif row.action == "wait_group":
        batch.warpgroups.wait(lanes, operands[0])
    return ()


def multiply(batch: Batch, site: Site, row: WarpgroupMultiply, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute a `wgmma.mma_async`: registers of C, A or its descriptor, the descriptor of B, and what PTX writes."""
    record = row.record
    check_whole(batch, site, lanes)
    given, numbers = _given(row, operands)
    which = _whole_groups(batch, site, lanes)
    lanes = lanes & which.lanes
    count = record.layout("D").registers
    shape = (*lanes.shape[:2], count, LANES)
    if not len(which.block):
        return batch.fragment(np.zeros(shape, record.layout("D").packing.dtype), lanes, site)
    scale, of_c = _scale(batch, site, given["scale-d"], which, lanes), lanes.copy()
    of_c[which.warps_of(~scale)] = False
    held = _Held()
    _check_registers(batch, site, given["c"], which, of_c, held, "C", record)
    c = batch.warpgroups.accumulated(record, given["c"]) if _of_every_warp(which, shape) else None
    kept: dict[str, Array] = {}
    if c is None or batch.watching is not None:
        kept["C"] = _of_warps(batch.together(given["c"]), which)
    if c is None:
        c = codes_in_registers(record, "C", kept["C"], by_warp=True)
    if not scale.all():
        c = np.where(scale[:, None, None], c, c.dtype.type(0))
    tiles: list[tuple[Operand, Any, int]] = [("B", given["b-desc"], numbers.get("imm-trans-b", 0))]
    codes: dict[str, Array] = {}
    if row.in_registers:
        _check_registers(batch, site, given["a"], which, lanes, held, "A", record)
        kept["A"] = _of_warps(batch.together(given["a"]), which)
        codes["A"] = codes_in_registers(record, "A", kept["A"], by_warp=True)
    else:
        tiles.append(("A", given["a-desc"], numbers.get("imm-trans-a", 0)))
    metadata = _metadata(batch, site, given, which, lanes)
    sources: list[Touched] = []
    read_by: dict[str, tuple[Array, bool, Array]] = {}
    read_there: list[tuple[Operand, Array, bool]] = []
    if batch.reporter.tracking:  # before it reads, for reports of that
        batch.reporter.reads(site, ProductTiles(
            site=site, record=record, block=which.block, tiles=read_there, sources=sources, named=batch.shared.named,
        ))  # fmt: skip
    for operand, descriptor, transposed in tiles:
        words = _descriptors(batch, site, operand, descriptor, which, lanes)
        read_there.append((operand, words, bool(transposed)))
        codes[operand] = _tile(batch, site, record, operand, words, bool(transposed), which, sources, held)
        read_by[operand] = words, bool(transposed), codes[operand]
    options = WarpgroupOptions(
        imm_a=numbers.get("imm-scale-a", 1), imm_b=numbers.get("imm-scale-b", 1), selector=numbers.get("selector", 0)
    )
    call = WarpgroupExecution(
        instruction=record, target=batch.target, options=options, a=codes["A"], b=codes["B"].swapaxes(-1, -2), c=c,
        metadata=metadata, engine=batch.engine,
    )  # fmt: skip
    try:
        found = call.run(batch.workers)
    except MetadataError as error:
        batch.reporter.report("metadata", site, lanes, detail=str(error))
        found = replace(call, options=replace(options, undefined="hardware")).run(batch.workers)
    d = Fragment(
        shape, record.layout("D").packing.dtype,
        lambda: _of_all(shape, which, in_registers(record, "D", found, by_warp=True)),
    )  # fmt: skip
    batch.warpgroups.computed(record, d if _of_every_warp(which, shape) else None, found)
    if batch.watching is not None:
        kept["D"] = _of_warps(d.registers, which)
        kept = {name: np.moveaxis(x, 1, 2).reshape(len(x), x.shape[2], -1) for name, x in kept.items()}
        kept |= {} if metadata is None else {"metadata": metadata}
        plain = {"scale_d": scale, "imm_a": options.imm_a, "imm_b": options.imm_b, "selector": options.selector}
        _watched(batch, site, record, which, kept, plain, read_by)
    bits = _poison_of_d(record, held, which, shape)
    made = batch.warpgroups.issue(site, lanes, sources, record.n, marked=bits is None)
    if bits is not None:
        return batch.fragment(d, lanes, held.site or site, bits, held.origin)
    if made is None:
        return batch.fragment(d, lanes, site)
    results = batch.fragment(d, lanes, site, lanes, made.origin)
    if (shadow := results[0].shadow) is not None:  # that of all
        shadow.pending = ((made, lanes),)
    return results


def _watched(
    batch: Batch, site: Site, record: WarpgroupInstruction, which: _Groups, registers: dict[str, Array],
    numbers: dict[str, Any], tiles: dict[str, tuple[Array, bool, Array]],
) -> None:  # fmt: skip
    """Let a `Watch` see the product."""
    assert batch.watching is not None
    places = [
        (batch.reporter.running(block), block, warp)
        for block, warp in zip(which.block.tolist(), which.warp.tolist(), strict=True)
    ]
    batch.watching.see_warpgroups(site, record, batch.target, places, registers, numbers, tiles, batch.shared.of_block)


def _given(row: WarpgroupMultiply, operands: Sequence[Any]) -> tuple[dict[str, Any], dict[str, int]]:
    """Return what is in registers, and immediates, by name."""
    given: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    items = iter(operands)
    for spec in row.sources:
        some = [next(items) for _ in spec.names]
        if spec.kind == "imm":
            numbers[spec.names[0]] = some[0]
        elif spec.braces == "always":
            given["c" if "c" not in given else "a"] = some
        else:
            given[spec.names[0]] = some[0]
    return given, numbers


# Rule 1


class _Groups(NamedTuple):
    """The whole warpgroups that execute a product: block and first warp of each, and their lanes."""

    block: Array
    warp: Array
    lanes: Array

    def warps_of(self, some: Any = slice(None)) -> tuple[Array, Array]:
        """Return the places of the warps of some of them in `[block, warp]`, two `[n, 4]`."""
        return self.block[some, None], self.warp[some, None] + np.arange(WARPS)


def _whole_groups(batch: Batch, site: Site, lanes: Array) -> _Groups:
    warps = np.asarray(lanes.any(axis=-1))
    whole = of_warpgroups(warps, np.logical_and)
    whole[:, warps.shape[1] // WARPS * WARPS :] = False  # the last warps of a block may be no warpgroup
    batch.reporter.report(
        "divergent", site, lanes & ~whole[..., None],
        detail="the four warps of a warpgroup execute this together, and some have exited, are masked off or are not "
        "in the block",
    )  # fmt: skip
    block, number = np.nonzero(whole[:, ::WARPS])
    return _Groups(block, number * WARPS, np.asarray(np.broadcast_to(whole[..., None], lanes.shape)))


def _of_every_warp(which: _Groups, shape: tuple[int, ...]) -> bool:
    """Whether the warpgroups are all of the batch's warps, `[block, warp, ...]`."""
    return len(which.block) * WARPS == shape[0] * shape[1]


def _of_warps(values: Array, which: _Groups) -> Array:
    """Return what is known of warps, `[block, warp, ...]`, by warpgroup: `[n, 4, ...]`."""
    if _of_every_warp(which, values.shape):
        return values.reshape(-1, WARPS, *values.shape[2:])
    return np.asarray(values[which.warps_of()])


def _of_all(shape: tuple[int, ...], which: _Groups, values: Array) -> Array:
    """Return registers `[n, 4, register, lane]` of warpgroups as those of warps, `[block, warp, register, lane]`."""
    if values.size == math.prod(shape):
        return values.reshape(shape)
    found: Array = np.zeros(shape, values.dtype)
    found[which.warps_of()] = values
    return found


def _scale(batch: Batch, site: Site, given: Any, which: _Groups, lanes: Array) -> Array:
    """Return `scale-d` of each warpgroup."""
    if not isinstance(given, WarpRegister):
        return np.full(len(which.block), bool(given))
    return np.asarray(_uniform(batch, site, given, which, lanes, "scale-d is")[:, 0].any(axis=-1))


def _descriptors(batch: Batch, site: Site, operand: str, given: Any, which: _Groups, lanes: Array) -> Array:
    """Return the descriptors of each warpgroup, uint64 `[n]`."""
    return np.asarray(_uniform(batch, site, given, which, lanes, f"the descriptors of {operand} are")[:, 0, 0])


def _uniform(batch: Batch, site: Site, given: WarpRegister, which: _Groups, lanes: Array, what: str) -> Array:
    """Return an operand of each warpgroup, `[n, 4, 32]`; report those in which it is not the same in all lanes."""
    (bits,) = read(batch, site, [given], lanes)
    found = _of_warps(bits, which)
    apart = (found != found[:, :1, :1]).any(axis=(1, 2))
    if apart.any():
        where = np.zeros(lanes.shape, bool)
        where[which.warps_of(apart)] = True
        says = f"{what} not the same in all lanes of the warpgroup; an H200 takes what the first warp has"
        batch.reporter.report("divergent", site, where & lanes, detail=says)
    return found


# Operands


class _Held:
    """The poison of operands, by name, and where it comes from."""

    def __init__(self) -> None:
        self.of: dict[str, Array] = {}
        self.site: Site | None = None
        self.origin: Origin | None = None


def _check_registers(
    batch: Batch, site: Site, given: Sequence[WarpRegister], which: _Groups, lanes: Array, held: _Held, name: Operand,
    record: WarpgroupInstruction,
) -> None:  # fmt: skip
    """Report or hold the poison of registers of warpgroups; a C that is pending may be read (rule 3)."""

    def checked(x: WarpRegister) -> WarpRegister:
        if name != "C" or x.shadow is None or not x.shadow.pending:
            return x
        if id(x.shadow) not in late:  # registers share it
            late[id(x.shadow)] = x.shadow.without(x.shadow.not_complete())
        return with_shadow(x, late[id(x.shadow)])

    late: dict[int, RegisterShadow] = {}
    accumulated = [checked(x) for x in given]
    if not batch.reporter.follows:
        batch.check(site, accumulated, [lanes] * len(accumulated))
    elif (found := batch.carried(accumulated, site, lanes)) is not None:
        masks = _of_warps(np.stack(found.masks, axis=-2), which)
        held.of[name] = codes_in_registers(record, name, masks, by_warp=True) != 0
        held.site, held.origin = found.site, found.origin


def _metadata(batch: Batch, site: Site, given: dict[str, Any], which: _Groups, lanes: Array) -> Array | None:
    if "metadata" not in given:
        return None
    (bits,) = read(batch, site, [given["metadata"]], lanes)
    return _of_warps(bits, which).reshape(len(which.block), -1)


class _Plan(NamedTuple):
    """How a tile is read: pieces of 16 bytes, each of elements that follow one another along the major dimension.

    Attributes
    ----------
    piece : ndarray of int
        The piece that each lane of the warpgroup reads in each turn, `[turn, 4, 32]`; -1 for none.
    address : ndarray of uint32
        Of that piece, `[turn, 4, 32]`; 0 for none.
    pieces : int
        How many the tile has.
    place : ndarray of int
        Where the pieces of the tile are among those, in bytes: `[row, piece]`, or `[column, piece]` of an MN-major one.
    """

    piece: Array
    address: Array
    pieces: int
    place: Array


@lru_cache(maxsize=1024)
def _plan(record: WarpgroupInstruction, operand: Operand, word: int, transposed: bool) -> _Plan:
    """Rule 2."""
    bits = record.format(operand).bits
    columns = record.k // 2 if record.sparse and operand == "A" else record.k
    rows = record.m if operand == "A" else record.n
    major: Any = "MN" if transposed else "K"
    found = MatrixDescriptor.from_word(word).addresses(rows, columns, bits=bits, major=major)
    octets = found[:, ::8].reshape(rows, columns // 32, 4) if bits == 1 else found[..., None] + np.arange(bits // 8)
    pieces, first, inverse = np.unique(octets // _PIECE, return_index=True, return_inverse=True)
    row = first // (octets.size // rows)
    order = np.argsort(row, kind="stable")
    warp = row // 16 if operand == "A" else np.empty(len(pieces), np.int64)
    if operand == "B":
        warp[order] = np.arange(len(pieces)) * WARPS // len(pieces)
    turns = -(-int(np.bincount(warp).max()) // LANES)
    piece = np.full((turns, WARPS, LANES), -1)
    for w in range(WARPS):
        mine = order[warp[order] == w]
        turn, lane = np.divmod(np.arange(len(mine)), LANES)
        piece[turn, w, lane] = mine
    place = inverse.reshape(octets.shape) * _PIECE + octets % _PIECE
    along = (place.swapaxes(0, 1) if transposed else place).reshape(columns if transposed else rows, -1, _PIECE)
    assert (along == along[..., :1] + np.arange(_PIECE)).all()  # a swizzle moves whole pieces
    address = np.where(piece >= 0, pieces[piece] * _PIECE, 0).astype(np.uint32)
    return _Plan(frozen(piece), frozen(address), len(pieces), frozen(along[..., 0]))


def _tile(
    batch: Batch, site: Site, record: WarpgroupInstruction, operand: Operand, words: Array, transposed: bool,
    which: _Groups, sources: list[Touched], held: _Held,
) -> Array:  # fmt: skip
    """Read codes `[n, row, column]` of a tile; of single bits words of 32."""
    plans = {word: _plan(record, operand, word, transposed) for word in dict.fromkeys(words.tolist())}
    most = max(x.pieces for x in plans.values())
    spoilt: Array | None = None
    found: list[tuple[Allocation, Touch, Array]] = []
    for turn in range(max(len(x.piece) for x in plans.values())):
        piece, address, some = _lanes_of_turn(batch, which, words, plans, turn)
        for _, allocation, touch in touches(batch, site, "shared", address, _PIECE, some, _PIECE):
            touch = touch.until_complete()
            poison = allocation.shadow.loads(touch, 1, travels=False)
            found.append((allocation, touch, piece))
            if poison is not None and poison.origin is not None:
                spoilt = np.zeros((len(words), most, _PIECE), np.uint8) if spoilt is None else spoilt
                put(spoilt.reshape(-1), _in_image(batch, which, most, piece, touch), poison.bits)
                held.site, held.origin = site, poison.origin
    sources.extend((allocation, touch) for allocation, touch, _ in found)
    batch.costs.moved(site, "shared", len(words) * most * _PIECE)
    one, *others = plans.values()
    place = np.stack([plans[word].place for word in words.tolist()]) if others else one.place
    places = np.arange(len(words))[:, None, None] * (most * _PIECE) + place
    code = np.dtype(np.uint32) if record.format(operand).bits == 1 else record.format(operand).code_dtype

    def gathered(of: Array, places: Array) -> Array:
        octets = get(of.reshape(-1), places.reshape(-1), _PIECE).reshape(*places.shape[:2], -1)
        codes = octets.view(code)
        return codes.swapaxes(-1, -2) if transposed else codes

    if spoilt is not None:
        held.of[operand] = gathered(spoilt, places) != 0
    if not others and (inside := _in_memory(one, found, which)) is not None:
        return gathered(found[0][0].data, inside)
    image: Array = np.zeros((len(words), most, _PIECE), np.uint8)
    for allocation, touch, piece in found:
        where = _in_image(batch, which, most, piece, touch)
        put(image.reshape(-1), where, get(allocation.data, touch.offset, _PIECE))
    return gathered(image, places)


def _lanes_of_turn(
    batch: Batch, which: _Groups, words: Array, plans: dict[int, _Plan], turn: int
) -> tuple[Array, Array, Array]:  # fmt: skip
    """Return the piece that each lane reads in a turn, -1 for none, its address, and which lanes read one."""
    shape = batch.shape
    if batch.clocks.scopes.cluster == 1 and words.size * WARPS == shape[0] * shape[1]:
        of_blocks = words.reshape(shape[0], -1)
        if shape[0] > 1 and (of_blocks == of_blocks[:1]).all():  # all blocks read alike
            of_warps = [x for word in of_blocks[0].tolist() for x in _of_turn(plans[word], turn)]
            piece, address = (np.broadcast_to(np.concatenate(x), shape) for x in (of_warps[::2], of_warps[1::2]))
            return piece, address, np.broadcast_to(piece[:1] >= 0, shape)
    piece, address = np.full(shape, -1), np.zeros(shape, np.uint32)
    for word, plan in plans.items():
        at = which.warps_of(words == word)
        piece[at], address[at] = _of_turn(plan, turn)
    return piece, address + batch.shared.starts.astype(np.uint32), piece >= 0


def _of_turn(plan: _Plan, turn: int) -> tuple[Array, Array]:
    """Return the pieces and addresses of a turn, `[4, 32]` each."""
    if turn < len(plan.piece):
        return plan.piece[turn], plan.address[turn]
    return np.full(plan.piece.shape[1:], -1), np.zeros(plan.address.shape[1:], np.uint32)


def _in_image(batch: Batch, which: _Groups, most: int, piece: Array, touch: Touch) -> Array:
    """Return where the pieces that lanes access are among those of the tiles of all warpgroups, in bytes, `[n]`."""
    number = np.zeros((*batch.shape[:2], 1), np.int64)
    number[which.warps_of()] = np.arange(len(which.block))[:, None, None]
    return acting(((number * most + piece) * _PIECE)[..., None], touch.lanes)[:, 0]


def _in_memory(plan: _Plan, found: Sequence[tuple[Allocation, Touch, Array]], which: _Groups) -> Array | None:
    """Return where the pieces of tiles are, `[n, row, piece]`, if blocks in lockstep have read all of the same tile."""
    start = np.full(plan.pieces, -1)
    for allocation, touch, piece in found:
        if not isinstance(touch, LockstepTouch) or allocation is not found[0][0]:
            return None
        start[piece[0][touch.part.lanes[0]]] = touch.part.offset
        step = touch.step
    if not found or (start < 0).any():
        return None
    return np.asarray(which.block[:, None, None] * step + start[plan.place // _PIECE])


def _poison_of_d(
    record: WarpgroupInstruction, held: _Held, which: _Groups, shape: tuple[int, ...]
) -> Array | None:  # fmt: skip
    """Return which bits of D are poison, if an operand holds some."""
    if not held.of:
        return None
    n, (m, k) = len(which.block), (record.m, record.k)
    sizes = {"A": (m, k // 2 if record.sparse else k), "B": (record.n, k), "C": (m, record.n)}
    of: dict[str, Array] = {name: held.of.get(name, np.zeros((n, *size), bool)) for name, size in sizes.items()}
    of_rows, of_columns = (np.asarray(of[x].any(axis=-1)) for x in "AB")
    bad = of_rows[:, :, None] | of_columns[:, None, :] | of["C"]
    return _of_all(shape, which, in_registers(record, "D", all_ones(bad, record.format("D").code_dtype), by_warp=True))
