"""Mistakes with metadata of a sparse A and with block scales."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from ..._arrays import Array
from ...isa import Instruction
from ...registers import LANES
from ...scaling import byte_ids, pack_scales, thread_ids, unpack_scales
from ...sparsity import pack_metadata, pattern, selectors, unpack_metadata
from .fragment_mistakes import lane_sources
from .matrix_mistakes import axis_sources
from .mistakes import COMMON, RARE, USUAL, Change, Mistake, mistake_of, taken


def metadata_mistakes(record: Instruction, selector: int) -> Iterator[Mistake]:
    """List what may be wrong with metadata."""
    name, groups = "the metadata", record.k // pattern(record).width

    def of_indices(change: Change) -> Change:
        def changed(words: Array) -> Array:
            indices = change(unpack_metadata(words, record, selector=selector))
            return pack_metadata(indices, record, selector=selector, into=words)

        return changed

    for axis, (length, one, many) in enumerate(((record.m, "row", "rows"), (groups, "group", "groups"))):
        for text, source, rank in axis_sources(length, one, many, (8,)):
            change = of_indices(partial(taken, source=source, axis=axis - 3))
            if (source >= 0).all():  # a nibble of 0 is not metadata
                yield mistake_of("metadata", text.format(f"of {name}"), change, rank)
    yield mistake_of(
        "metadata", f"the two indices in each nibble of {name} were swapped", of_indices(lambda x: x[..., ::-1]), COMMON
    )
    complement = of_indices(lambda x: (3 - x)[..., ::-1])
    yield mistake_of("metadata", f"the indices of {name} were counted from the other end", complement, USUAL)
    yield from _of_words("metadata", name)
    others = [x for x in selectors(record) if x != selector]
    for other in others:
        yield Mistake(text=f"the sparsity selector was {other}", settings={"selector": other}, rank=COMMON)
    for other in others:
        laid = partial(_laid_for, record=record, selector=selector, other=other)
        yield mistake_of("metadata", f"{name} lay where selector {other} reads", laid)


def _laid_for(words: Array, record: Instruction, selector: int, other: int) -> Array:
    return pack_metadata(unpack_metadata(words, record, selector=selector), record, selector=other)


def scale_mistakes(record: Instruction, operand: Any, ids: Mapping[str, int]) -> Iterator[Mistake]:
    """List what may be wrong with the scales of A or B."""
    key, name = f"scale_{operand.lower()}", f"the scales of {operand}"
    own = {"byte_id": ids["byte_id_" + operand.lower()], "thread_id": ids["thread_id_" + operand.lower()]}

    def of_scales(change: Change) -> Change:
        def changed(words: Array) -> Array:
            scales = change(unpack_scales(words, record, operand, **own))
            return pack_scales(scales, record, operand, **own, into=words)

        return changed

    across = (16, "row", "rows", -2) if operand == "A" else (8, "column", "columns", -1)
    along = (record.scales_per_row, "block", "blocks", -3 - across[3])
    for length, one, many, axis in (across, along):
        for text, source, rank in axis_sources(length, one, many, (8,)):
            change = of_scales(partial(taken, source=source, axis=axis))
            yield mistake_of(key, text.format(f"of {name}"), change, rank)
    code, step, most = (0x38, 8, 127) if record.stype == "ue4m3" else (127, 1, 255)  # of 1, to twice as much, the last
    yield mistake_of(key, f"{name} were all 1", of_scales(lambda x: np.full_like(x, code)), COMMON)
    for text, by in (("doubled", step), ("halved", -step)):
        yield mistake_of(key, f"{name} were {text}", of_scales(partial(_moved_by, by=by, most=most)), USUAL)
    for text, lane in _SCALE_LANES:
        for rest in (True, False):
            said = f"the scale of {across[1]} i of {operand} lay in lane {text}" + ("" if rest else ", and 0 elsewhere")
            yield mistake_of(key, said, _laid(lane, rest, record, operand, own), COMMON if rest else USUAL)
    yield from _of_words(key, name)
    for which, legal in (("byte_id", byte_ids(record)), ("thread_id", thread_ids(operand))):
        for other in legal:
            if other != own[which]:
                said = f"the {which.replace('_', '-')} of {operand} was {other}"
                yield Mistake(text=said, settings={f"{which}_{operand.lower()}": other}, rank=COMMON)


_SCALE_LANES = (
    ("i", lambda i: i),
    ("2 * i", lambda i: 2 * i),
    ("4 * (i % 8)", lambda i: 4 * (i % 8)),
    ("4 * (i / 2) + i % 2", lambda i: 4 * (i // 2) + i % 2),
    ("4 * (i % 8) + 2 * (i / 8)", lambda i: 4 * (i % 8) + 2 * (i // 8)),
)


def _laid(lane: Callable[[int], int], rest: bool, record: Instruction, operand: Any, own: dict[str, int]) -> Change:
    """Return a function that puts scales into other lanes, over their contents or over 0."""
    shift, count = 8 * own["byte_id"], record.scales_per_row
    mask = np.uint32(((1 << 8 * count) - 1) << shift)

    def changed(words: Array) -> Array:
        scales = unpack_scales(words, record, operand, **own)
        rows = scales if operand == "A" else scales.swapaxes(-1, -2)  # [..., i, S]
        out = words.copy() if rest else words & ~mask
        for i in range(rows.shape[-2]):
            parts = [rows[..., i, s].astype(np.uint32) << np.uint32(shift + 8 * s) for s in range(count)]
            at = lane(i) % LANES
            out[..., at] = out[..., at] & ~mask | np.bitwise_or.reduce(parts)
        return out

    return changed


def _of_words(key: str, name: str) -> Iterator[Mistake]:
    for text, source, rank in lane_sources():
        yield mistake_of(key, text.format(f"of {name}"), source, rank)
    yield mistake_of(key, f"the halves of the words of {name} were swapped", partial(_turned, by=16), COMMON)
    yield mistake_of(key, f"the bytes of the words of {name} were in reverse order", lambda x: x.byteswap(), USUAL)
    for turn in (4, 8, 24, 28):
        text = f"the words of {name} were rotated left by {turn} bits"
        yield mistake_of(key, text, partial(_turned, by=turn), RARE)
    yield mistake_of(key, f"the nibbles of the words of {name} were in reverse order", _nibbles_reversed, RARE)
    yield mistake_of(
        key, f"the two bytes in each half of the words of {name} were swapped",
        lambda x: (x & np.uint32(0x00FF00FF)) << np.uint32(8) | x >> np.uint32(8) & np.uint32(0x00FF00FF), USUAL,
    )  # fmt: skip


def _turned(words: Array, by: int) -> Array:
    return words << np.uint32(by) | words >> np.uint32(32 - by)


def _moved_by(codes: Array, by: int, most: int) -> Array:
    return np.clip(codes.astype(np.int16) + by, 0, most).astype(np.uint8)


def _nibbles_reversed(words: Array) -> Array:
    low = words.byteswap()
    return (low & np.uint32(0x0F0F0F0F)) << np.uint32(4) | low >> np.uint32(4) & np.uint32(0x0F0F0F0F)
