"""Around pictures of registers: their heading, how elements share a register, colours, formulas."""

from __future__ import annotations

from collections.abc import Iterable

from ...layouts import Layout
from ...registers import Packing
from .drawing import box, group, text, text_width

MARGIN = 20


def wrapped(
    words: str, width: float, size: float, *, mono: bool = False, at: str = " ", bold: bool = False
) -> list[str]:
    """Break a text into lines that fit a width, at blanks or at another sign, which stays at the end of its line."""
    pieces = words.split(at)
    found = [pieces[0]]
    for piece in pieces[1:]:
        longer = found[-1] + at + piece
        if text_width(longer + at, size, mono=mono, bold=bold) <= width:
            found[-1] = longer
        else:
            found[-1] += at.strip()
            found.append(piece)
    return found


def lines(
    x: float, y: float, texts: Iterable[str], width: float, *, size: float = 12, weight: str = "normal",
    fill: str = "ink", mono: bool = False,
) -> tuple[list[str], float]:  # fmt: skip
    """Write lines, broken to fit a width; return also where they end."""
    body = []
    for each in texts:
        for i, piece in enumerate(wrapped(each, width - 14, size, mono=mono, bold=weight == "bold")):
            y += size * 1.45
            body.append(text(x + 14 * bool(i), y, piece, size=size, weight=weight, fill=fill, mono=mono))
    return body, y


def header(title: str, mnemonic: str, summary: str, width: float) -> tuple[list[str], float]:
    """Write the heading: a title, the mnemonic, and a sentence; return also where it ends."""
    inner = width - 2 * MARGIN
    y, body = 12.0, []
    for piece in wrapped(title, inner, 17, bold=True):
        y += 22
        body.append(text(MARGIN, y, piece, size=17, weight="bold"))
    for piece in wrapped(mnemonic, inner, 12, mono=True, at=".") if mnemonic else ():
        y += 18
        body.append(text(MARGIN, y, piece, size=12, mono=True))
    drawn, y = lines(MARGIN, y + 3, [summary] if summary else [], inner, fill="pale")
    return [*body, *drawn], y + 16


def register_strip(packing: Packing, letter: str, y: float, width: float) -> tuple[list[str], float]:
    """Draw the bits of a register, the highest at the left, and the elements in them; return also where it ends."""
    x, across = MARGIN, min(640, width - 2 * MARGIN)
    per, unit = packing.per_register, across / packing.width
    noun = f"{letter}s" if len(letter) > 1 else "elements"
    held = (
        "an element"
        if per == 1
        else f"{per} {noun}" + (f", of {packing.bits} bits in {packing.slot}" if packing.bits < packing.slot else "")
    )
    y += 18
    body = [text(x, y, f"A register: {held}, the first in the lowest bits", size=12, weight="bold")]
    y += 8
    for position in range(per):
        low = position * packing.slot + packing.shift
        high = low + packing.bits - 1
        first = position * packing.slot
        for start, end in ((first, low - 1), (high + 1, first + packing.slot - 1)):
            if end >= start:
                place = x + (packing.width - 1 - end) * unit
                body.append(
                    box(place, y, (end - start + 1) * unit, 22, "padding", note=f"bits {start} to {end}: nothing")
                )
        place, wide = x + (packing.width - 1 - high) * unit, (high - low + 1) * unit
        named = f"{letter}{' ' * (len(letter) > 1)}{position}"
        name = named if per <= 8 else str(position)
        size = 11 if per <= 8 else 9
        parts = [box(place, y, wide, 22, "fraction"), text(place + wide / 2, y + 15, name, size=size, anchor="middle")]
        bits = f"{high}:{low}" if high > low else str(low)
        data = {"position": position, "low": low, "high": high}
        body.append(group(parts, note=f"{named} of a register: bits {bits}", data=data))
        if per <= 8 or position % 8 in (0, 7):
            body.append(text(place + wide / 2, y + 34, bits, size=10, anchor="middle", fill="pale"))
    return body, y + 38


def lane_legend(y: float, lanes: int) -> tuple[list[str], float]:
    """Draw the colour of each lane; return also where it ends."""
    words = "Colour is the lane: hue its group, lane / 4, strength its thread in the group"
    body = [text(MARGIN, y + 18, words, size=12, weight="bold")]
    if lanes > 32:
        y += 17
        body.append(text(MARGIN, y + 18, "(of a warpgroup's threads: thread % 32)", size=12))
    y += 26
    for lane in range(32):
        x, top = MARGIN + lane // 4 * 46, y + lane % 4 * 19
        body += [
            box(x, top, 44, 18, f"lane{lane}", stroke="none"),
            text(x + 22, top + 13, f"T{lane}", size=11, anchor="middle"),
        ]
    return body, y + 76


def formulas(layout: Layout, letter: str, y: float, width: float) -> tuple[list[str], float]:
    """Write the law in PTX's words; return also where it ends."""
    body = [text(MARGIN, y + 18, f"Formulas, with i of {letter}{' ' * (len(letter) > 1)}i", size=12, weight="bold")]
    y += 22
    known = layout.formulas()
    size = max(map(len, known))
    written = [f"{name.ljust(size, chr(160))} = {law}" for name, law in known.items()]
    drawn, y = lines(MARGIN, y, written, width - 2 * MARGIN, size=11, mono=True)
    return [*body, *drawn], y + 4
