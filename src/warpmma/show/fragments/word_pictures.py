"""Pictures of given words: which places of a sparse A metadata keeps, and which scale each block has."""

from __future__ import annotations

from collections.abc import Sequence

from ...lookup import WarpWords, WordPart
from ...sparsity import legal_codes, pattern
from ..drawing.cards import card
from ..drawing.drawing import Theme, box, document, group, text, text_width
from ..drawing.legends import MARGIN, header, lines

_LEAST = 600
_ROW = 26
_PLACES = 4  # of a group
_DASH = "\N{EN DASH}"
_Drawn = tuple[list[str], float, float]


def words_svg(of: WarpWords, *, theme: Theme = "auto") -> str:
    """Picture a warp's words of metadata or scales, and the parts that are read; colours are groups of lanes.

    Each group of metadata, and each scale, has attributes `data-row`, `data-column`, `data-lane`, `data-low`,
    `data-high` and `data-code`; each lane's word `data-word-lane` and `data-word`.
    """
    metadata = of.operand == "metadata"
    name = {"metadata": "Metadata", "scale_a": "Scales of A", "scale_b": "Scales of B"}[of.operand]
    chosen = ", ".join(f"{key.replace('_', '-')} {value}" for key, value in of.selectors.items())
    title = f"{name} of {of.instruction.shape}: {chosen}"
    grid, wide, high = _groups(of) if metadata else _scales(of)
    width = max(_LEAST, wide + 2 * MARGIN)
    body, y = header(title, str(of.instruction), _summary(of), width)
    body += [f"<g transform='translate({MARGIN} {y:g})'>", *grid, "</g>"]
    undefined = metadata and any(part.code not in legal_codes(of.instruction) for part in of.parts)
    said = ["A dashed edge: PTX leaves such a nibble undefined; an H200 reads it by the same rule."] * undefined
    parts, y = lines(MARGIN, y + high, said, width - 2 * MARGIN)
    body += parts
    parts, y = _words(of, y + 14)
    body += parts
    data = {"view": "words", "operand": of.operand, "mnemonic": of.instruction, **{
        key.replace("_", "-"): value for key, value in of.selectors.items()
    }}  # fmt: skip
    return document(body, width, y + MARGIN, f"{title} {of.instruction}", theme=theme, data=data)


def words_html(of: WarpWords) -> str:
    """Show the picture."""
    return card("", parts=[words_svg(of)])


def _summary(of: WarpWords) -> str:
    if of.operand != "metadata":
        return "Each scale: its lane and bits, its code, and its value."
    law = pattern(of.instruction)
    place = "half an element" if law.units < _PLACES else "an element" if law.unit == 1 else f"{law.unit} elements"
    return (
        f"A group is {law.width} columns of A, or four places of {place}; filled places are stored, in the order that "
        "their numbers say. Above them: the lane and the bits of the nibble, and the nibble."
    )


def _data(part: WordPart) -> dict[str, object]:
    return {**{name: getattr(part.cell, name) for name in ("row", "column", "lane", "low", "high")}, "code": part.code}


def _groups(of: WarpWords) -> _Drawn:
    """Draw A row by row: a group's nibble, and its four places."""
    legal, law = legal_codes(of.instruction), pattern(of.instruction)
    groups, rows = (max(getattr(part.cell, axis) for part in of.parts) + 1 for axis in ("column", "row"))
    place, gap = (22.0, 8.0) if groups <= 8 else (17.0, 7.0)
    wide, high, left, top = _PLACES * place, 34.0, 34.0, 26.0
    body = _indices(
        "m",
        law.width,
        [left + i * (wide + gap) + wide / 2 for i in range(groups)],
        left - 8,
        [top + i * high for i in range(rows)],
    )
    for part in of.parts:
        x, y = left + part.cell.column * (wide + gap), top + part.cell.row * high
        named, code = f"T{part.cell.lane} {part.cell.low}{_DASH}{part.cell.high}", f"{part.code:X}"
        if text_width(named, 9) + text_width(code, 9) + 4 > wide:
            named = f"T{part.cell.lane}"
        parts = [text(x, y + 9, named, size=9, fill="pale"), text(x + wide, y + 9, code, size=9, anchor="end")]
        kept = _kept(part.code)
        for i in range(_PLACES):
            fill = _hue(part.cell.lane) if i in kept else "idle"
            parts.append(box(x + i * place, y + 12, place, 16, fill, stroke="line" if i in kept else "faint"))
            if i in kept:
                parts.append(text(x + (i + 0.5) * place, y + 24, "=".join(kept[i]), size=10, anchor="middle"))
        if part.code not in legal:
            parts.append(box(x - 1.5, y + 11.5, wide + 3, 18, "none", stroke="strong", dashed=True))
        bits = f"lane {part.cell.lane}, bits {part.cell.low}{_DASH}{part.cell.high}"
        note = f"{part.meaning}; nibble {part.code:#x}, indices {part.code & 3} and {part.code >> 2}, of {bits}"
        body.append(group(parts, note=note, data=_data(part)))
    return body, left + groups * (wide + gap) - gap, top + rows * high


def _indices(outer: str, each: int, middles: Sequence[float], left: float, tops: Sequence[float]) -> list[str]:
    """Write the k above columns, of `each` k, and the numbers of rows to the left."""
    body = [text(left, tops[0] - 8, f"{outer} \\ k", size=11, anchor="end", fill="pale")]
    for i, x in enumerate(middles):
        said = f"{i * each}{_DASH}{(i + 1) * each - 1}"
        body.append(text(x, tops[0] - 8, said, size=11, anchor="middle", fill="pale"))
    return body + [text(left, y + 24, str(i), size=11, anchor="end", fill="pale") for i, y in enumerate(tops)]


def _kept(nibble: int) -> dict[int, list[str]]:
    """Places that are stored, and which of the group's two stored places they are."""
    found: dict[int, list[str]] = {}
    for number, place in enumerate((nibble & 3, nibble >> 2)):
        found.setdefault(place, []).append(str(number))
    return found


def _scales(of: WarpWords) -> _Drawn:
    """Draw a line for each row of A, or column of B."""
    blocks, rows = (max(getattr(part.cell, axis) for part in of.parts) + 1 for axis in ("column", "row"))
    size = of.instruction.k // blocks
    outer = "m" if of.operand == "scale_a" else "n"
    left, top, wide = 44.0, 26.0, 128.0
    body = _indices(
        outer,
        size,
        [left + (i + 0.5) * wide for i in range(blocks)],
        left - 8,
        [top + i * (_ROW + 12) for i in range(rows)],
    )
    for part in of.parts:
        cell = part.cell
        x, y = left + cell.column * wide, top + cell.row * (_ROW + 12)
        bits = f"{cell.low}{_DASH}{cell.high}"
        parts = [
            box(x, y, wide, _ROW + 12, _hue(cell.lane), stroke="paper", weight=1.5),
            text(x + 6, y + 15, f"T{cell.lane}", size=13, weight="bold"),
            text(x + wide - 6, y + 15, f"bits {bits}", size=10, anchor="end"),
            text(x + 6, y + 31, f"{part.code:#04x}", size=11, mono=True),
            text(x + wide - 6, y + 31, _value(part, of.instruction.stype), size=12, anchor="end"),
        ]
        note = f"{outer} {cell.row}, block {cell.column}: {part.meaning}, of lane {cell.lane}, bits {bits}"
        body.append(group(parts, note=note, data=_data(part)))
    return body, left + blocks * wide, top + rows * (_ROW + 12)


def _hue(lane: int) -> str:
    """Return the strongest colour of a lane's group, so that words that are read stand out."""
    return f"lane{lane // 4 * 4}"


def _value(part: WordPart, stype: str | None) -> str:
    """Write a scale; one of a type that has only powers of two, as a power."""
    if part.value is None or stype != "ue8m0":
        return part.meaning
    return f"2^{part.value.numerator.bit_length() - part.value.denominator.bit_length()}"


def _words(of: WarpWords, y: float) -> tuple[list[str], float]:
    """Draw all words; of lanes that are not read, pale."""
    read = {part.cell.lane for part in of.parts}
    body = [text(MARGIN, y + 14, "The words; of uncoloured ones nothing is read", size=12, weight="bold")]
    y += 24
    for lane, word in enumerate(of.words):
        x, top = MARGIN + lane % 4 * 142, y + lane // 4 * 22
        inside = [
            box(x, top, 138, 20, _hue(lane) if lane in read else "idle", stroke="none"),
            text(x + 6, top + 14, f"T{lane}", size=11, weight="bold" if lane in read else "normal"),
            text(x + 132, top + 14, f"0x{word:08x}", size=11, mono=True, anchor="end"),
        ]
        body.append(group(inside, data={"word-lane": lane, "word": f"0x{word:08x}"}))
    return body, y + 8 * 22
