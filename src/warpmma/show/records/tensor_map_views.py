"""Tensor maps as text, as JSON, and as pictures of what a load brings and where it lands.

A picture has the rows of the box at the left, in the tensor's coordinates, and lines of 128 bytes of shared memory at
the right. A cell is a chunk of 16 bytes, which a swizzle moves as a whole; its text, in both places, is the row of the
box and the innermost coordinate of its first element. Colours are rows.
"""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._text import counted
from ...layouts import BoxCopy, Im2colBox, TensorMap
from ..drawing.cards import card, opened, preformatted
from ..drawing.drawing import Theme, box, document, group, text_width
from ..drawing.drawing import text as written
from ..drawing.legends import MARGIN, header, lines

_CHUNK, _LINE = 16, 128
_MOST = 32  # rows and lines that are drawn
_HIGH, _GAP, _LABEL = 20.0, 48.0, 62.0
_HUES = 8


def facts(of: TensorMap) -> dict[str, Any]:
    """Return the fields by their names, with those of an im2col box in the box's place."""
    b = of.box
    shape: dict[str, Any] = {"box": list(b)} if not isinstance(b, Im2colBox) else {
        "lower": list(b.lower), "upper": list(b.upper), "channels": b.channels, "pixels": b.pixels,
    }  # fmt: skip
    return {
        "mode": "im2col" if of.im2col else "tiled", "type": of.type, "address": of.address, "shape": list(of.shape),
        "strides": list(of.strides), **shape, "element_strides": list(of.element_strides),
        "interleave": of.interleave, "swizzle": of.swizzle, "l2_promotion": of.l2_promotion, "fill": of.fill,
        "encoded": of.encoded.hex(),
    }  # fmt: skip


def json(of: TensorMap) -> str:
    """Write the fields as JSON, and the bytes as hexadecimal digits."""
    return json_format.dumps(facts(of), indent=2)


def text(of: TensorMap) -> str:
    """Write a card: a line for each field, dimensions outermost first."""
    known = facts(of)
    rows = [("address", hex(of.address)), ("shape", _listed(known["shape"]))]
    rows += [("strides", f"{_listed(known['strides'])} bytes")] * bool(of.strides)
    if isinstance(of.box, Im2colBox):
        rows += [("corners", f"{_listed(of.box.lower)} to {_listed(of.box.upper)}"),
                 ("box", f"{counted(of.box.pixels, 'pixel')} of {counted(of.box.channels, 'channel')}")]  # fmt: skip
    else:
        rows.append(("box", _listed(of.box)))
    if any(x > 1 for x in of.element_strides):
        rows.append(("element strides", _listed(of.element_strides)))
    what = f"slices of {of.interleave} bytes" if of.interleave else "elements"
    rows.append(("a copy", f"{_listed(of.copied_elements)} {what}, {of.copied_bytes:,} bytes"))
    for name in ("interleave", "swizzle", "l2_promotion"):
        size = getattr(of, name)
        rows.append((name.replace("_", " ").replace("l2", "L2"), f"{size} bytes" if size else "none"))
    rows.append(("fill", {"zero": "0", "nan": "NaN, 0x7ff7 in every 16 bits"}[of.fill]))
    wide = max(len(name) for name, _ in rows)
    head = f"tensor map: {known['mode']}, {of.type}, {counted(of.rank, 'dimension')}"
    return "\n".join([head, *(f"  {name:<{wide}}  {value}" for name, value in rows)])


def _listed(values: Sequence[int]) -> str:
    return f"[{', '.join(map(str, values))}]"


def html(of: TensorMap) -> str:
    """Show the card; the bytes open at a click."""
    digits = of.encoded.hex()
    words = "\n".join(
        f"word {w:2}  {int.from_bytes(of.encoded[8 * w : 8 * w + 8], 'little'):#018x}" for w in range(len(digits) // 16)
    )
    return card("", parts=[preformatted(text(of)), opened("The 128 bytes, as words of 64 bits", preformatted(words))])


# The picture


def svg(
    of: TensorMap, coordinates: Sequence[int], at: int = 0, *, offsets: Sequence[int] = (), theme: Theme = "auto"
) -> str:
    """Picture a load: the rows of the box, and the lines of shared memory where their chunks land."""
    copy = of.box_copy(coordinates, at, offsets=offsets)
    per = _CHUNK // copy.itemsize
    shape = copy.target.shape
    chunks = shape[-1] // per
    starts = copy.target.reshape(-1, chunks, per)[..., 0]
    inside = copy.inside.reshape(-1, chunks, per).sum(-1)
    index = (*copy.index, np.arange(shape[-1])) if of.interleave else copy.index  # a row of the picture is a slice
    outer = np.stack([np.broadcast_to(x, shape)[..., 0].ravel() for x in index[:-1]] or [np.zeros(1, int)], -1)
    inner = np.broadcast_to(index[-1], shape).reshape(-1, chunks, per)[0, :, 0]
    labels = [f"{row},{c}" for row in range(min(len(outer), _MOST)) for c in inner.tolist()]
    cell = max(34.0, max(text_width(x, 9.5) for x in labels) + 6)
    names = [_listed(x) if index[:-1] else "" for x in outer[:_MOST].tolist()]
    label = max(_LABEL, *(text_width(x, 10) + 10 for x in names))
    heading = "The box, row by row"
    right = MARGIN + label + max(chunks * cell, text_width(heading, 12, bold=True) - _GAP) + _GAP + _LABEL
    width = right + _LINE // _CHUNK * cell + MARGIN
    moved = f" with offsets {_listed(list(offsets))}" if of.im2col else ""
    title = f"A load at {_listed(list(coordinates))}{moved}, to shared memory {at:#x}"
    body, top = header(title, "", _summary(of, copy), width)
    body += [
        written(MARGIN + label, top, heading, size=12, weight="bold"),
        written(right, top, "Shared memory: lines of 128 bytes", size=12, weight="bold"),
    ]
    top += 24
    heads = [(MARGIN + label + i * cell, str(c)) for i, c in enumerate(inner.tolist())]
    heads += [(right + i * cell, f"+{_CHUNK * i:#x}") for i in range(_LINE // _CHUNK)]
    body += [written(x + cell / 2, top - 6, said, size=9, anchor="middle", fill="pale") for x, said in heads]
    first = at // _LINE
    count = -(-copy.span // _LINE)
    for line in range(min(count, _MOST)):
        y = top + line * _HIGH
        said = hex((first + line) * _LINE)
        body.append(written(right - 8, y + 14, said, size=10, anchor="end", fill="pale", mono=True))
        body.append(box(right, y, _LINE // _CHUNK * cell, _HIGH, "idle", stroke="faint"))
    for row, name in enumerate(names):
        y = top + row * _HIGH
        body.append(written(MARGIN + label - 8, y + 14, name, size=10, anchor="end", fill="pale"))
        for i in range(chunks):
            place = int(starts[row, i]) - first * _LINE
            full = int(inside[row, i])
            note = _note(outer[row].tolist() if index[:-1] else [], int(inner[i]), per, int(starts[row, i]), full)
            data = {"address": int(starts[row, i]), "index": f"{row},{int(inner[i])}", "filled": per - full}
            drawn = [_cell(MARGIN + label + i * cell, y, cell, row, full / per, f"{row},{int(inner[i])}")]
            if place // _LINE < _MOST:
                x = right + place % _LINE // _CHUNK * cell
                drawn.append(_cell(x, top + place // _LINE * _HIGH, cell, row, full / per, f"{row},{int(inner[i])}"))
            body.append(group(drawn, note=note, data=data))
    y = top + _HIGH * min(max(len(outer), count), _MOST)
    below = ["Grey: outside of the tensor, filled. Empty: not touched."]
    if len(outer) > _MOST or count > _MOST:
        below.append(f"The first {_MOST} rows and lines, of {len(outer)} rows and {count} lines.")
    parts, y = lines(MARGIN, y + 4, below, width - 2 * MARGIN, fill="pale")
    data = {"view": "tensor-map", "swizzle": of.swizzle, "bytes": copy.copied_bytes}
    return document([*body, *parts], width, y + MARGIN, f"{title}: {of.type}", theme=theme, data=data)


def _summary(of: TensorMap, copy: BoxCopy) -> str:
    filled = copy.inside.size - int(copy.inside.sum())
    swizzle = f"a swizzle of {of.swizzle} bytes" if of.swizzle else "no swizzle"
    with_ = {"zero": "0", "nan": "NaN"}[of.fill]
    return (
        f"{of.type} {_listed(of.shape)}, {swizzle}: {_listed(copy.target.shape)} elements, {copy.copied_bytes:,} bytes "
        f"at the mbarrier; {counted(filled, 'element')} filled with {with_}. A cell is a chunk of 16 bytes: the row of "
        "the box, and the innermost coordinate of its first element."
    )


def _note(outer: list[int], inner: int, per: int, address: int, full: int) -> str:
    last = f"{inner}-{inner + per - 1}" if per > 1 else str(inner)
    filled = f", {counted(per - full, 'element')} filled" if full < per else ""
    return f"[{', '.join([*map(str, outer), last])}] at {address:#x}{filled}"


def _cell(x: float, y: float, wide: float, row: int, full: float, said: str) -> str:
    """Draw a chunk: the part in the tensor coloured, the rest grey."""
    parts = [(0.0, full, f"hue{row % _HUES}"), (full, 1.0, "padding")]
    drawn = [box(x + wide * a, y, wide * (b - a), _HIGH, fill, stroke="paper") for a, b, fill in parts if a < b]
    return "".join([*drawn, written(x + wide / 2, y + 14, said, size=9.5, anchor="middle")])
