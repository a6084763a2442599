"""Operands in shared memory: every element as text, CSV and JSON, and the memory with its banks as a picture.

1. A line of the picture is 128 bytes of shared memory, so a column is a bank. A box is a chunk of 16 bytes with what
   the instruction reads there; its colour is its number in its line of the matrix, so a swizzle is seen as diagonals.
2. The boxes of the first access have a strong edge. Below, each row is a wavefront: a bank gives one word in it.
3. 64 lines of memory are drawn at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from json import dumps

from ..._text import counted, table
from ...layouts import SharedCell
from ...lookup import SharedReading
from ..drawing.drawing import Theme, box, document, text

_FIELDS = ("operand", "row", "column", "address", "linear", "bank", "low", "high")
_CHUNK, _LINE, _BANKS = 16, 128, 32
_MOST = 64
_LEFT, _BANK, _ROW = 120, 30, 24


def _facts(cell: SharedCell) -> dict[str, int | str]:
    return {name: getattr(cell, name) for name in _FIELDS}


def _rows(of: SharedReading) -> Iterator[list[str]]:
    yield ["element", "address", "bank", "bits", "before the swizzle"]
    for cell in of.cells:
        bits = f"{cell.low}-{cell.high}" if cell.high > cell.low else f"{cell.low}"
        name = f"{of.operand}[{cell.row}, {cell.column}]"
        yield [name, f"{cell.address:#x}", str(cell.bank), bits, f"{cell.linear:#x}"]


def title(of: SharedReading) -> str:
    """Name the operand, its instruction, and the bits that describe it."""
    return f"{of.operand} of {of.instruction}, {of.major}-major, by {of.descriptor.word:#018x}"


def plain(of: SharedReading) -> str:
    """Write a line for each element, row after row."""
    return "\n".join([title(of), "", *table(_rows(of), left=range(5))])


def csv(of: SharedReading) -> str:
    """Write a line for each element, with numbers in decimal."""
    return "\n".join([",".join(_FIELDS), *(",".join(map(str, _facts(cell).values())) for cell in of.cells)]) + "\n"


def json(of: SharedReading) -> str:
    """Write the fields of the descriptor, and every element."""
    d = of.descriptor
    return dumps({
        "instruction": str(of.instruction), "operand": of.operand, "major": of.major, "word": d.word,
        "start": d.start, "leading": d.leading, "stride": d.stride, "swizzle": d.swizzle, "base_offset": d.base_offset,
        "cells": [_facts(cell) for cell in of.cells],
    })  # fmt: skip


def svg(of: SharedReading, theme: Theme = "auto") -> str:
    """Draw the memory that is read (rules 1 to 3)."""
    chunks: dict[int, list[tuple[int, SharedCell]]] = {}
    accesses = of.accesses
    along = max(1, len(accesses) // max(1, -(-_lines(of) // 8)))
    for number, access in enumerate(accesses):
        for cell in access:
            chunks.setdefault(cell.address // _CHUNK, []).append((number % along, cell))
    first = {cell.address // _CHUNK for cell in accesses[0]}
    places = sorted({chunk // 8 for chunk in chunks})
    d, drawn = of.descriptor, places[:_MOST]
    fields = (
        f"start {d.start:#x}, leading {d.leading}, stride {d.stride}, "
        f"{f'swizzle of {d.swizzle} bytes' if d.swizzle else 'no swizzle'}, base offset {d.base_offset}"
    )
    body = [text(16, 30, title(of), size=15, weight="bold"), text(16, 54, fields)]
    rules = (
        "Columns are the banks of shared memory; a box is 16 bytes, and its colour the number of the chunk in its line "
        "of the matrix.",
        "Boxes with a strong edge are what the first access touches: eight lines by one chunk. +1: one more chunk is "
        "read there.",
    )
    body += [text(16, 76 + 18 * i, rule, size=12) for i, rule in enumerate(rules)]
    y = 126.0
    body += _heads(y)
    y += 8
    strong: list[str] = []
    before = None
    for place in drawn:
        if before is not None and place != before + 1:
            y += 10  # memory between is not read
        before = place
        body.append(text(_LEFT - 10, y + 16, f"{place * _LINE:#x}", size=11, anchor="end", mono=True))
        for column in range(8):
            chunk, x, width = 8 * place + column, _LEFT + column * 4 * _BANK, 4 * _BANK
            held = chunks.get(chunk, [])
            if not held:
                body.append(box(x, y, width, _ROW, "idle", stroke="faint"))
                continue
            number, cell = held[0]
            label = _named(of, cell) + (f" +{len(held) - 1}" if len(held) > 1 else "")
            note = "; ".join(f"{_named(of, each)} at {each.address:#x}, before the swizzle {each.linear:#x}"
                             for _, each in held[:8])  # fmt: skip
            drawing = box(
                x, y, width, _ROW, f"hue{number % 8}", note=note, stroke="ink" if chunk in first else "line",
                weight=3 if chunk in first else 1, data={"address": f"{16 * chunk:#x}"},
            )  # fmt: skip
            (strong if chunk in first else body).append(drawing)
            (strong if chunk in first else body).append(
                text(x + width / 2, y + 16, label, size=11, anchor="middle")
            )  # fmt: skip
        y += _ROW
    body += strong
    if len(places) > _MOST:
        y += 18
        body.append(text(_LEFT, y, f"{len(places) - _MOST} further lines of 128 bytes are not drawn", size=12))
    drawn_access, y = _access(of, accesses[0], y + 36)
    return document([*body, *drawn_access], _LEFT + _BANKS * _BANK + 24, y + 16, title(of), theme=theme)


def _lines(of: SharedReading) -> int:
    rows, columns = of.shape
    of_k = (of.operand == "A") == (of.major == "K")
    return rows if of_k else columns


def _named(of: SharedReading, cell: SharedCell) -> str:
    """Write what a chunk holds by its first element: `n 3, k 8-15`."""
    count = 8 * _CHUNK // of.bits
    outer, k = (cell.row, cell.column) if of.operand == "A" else (cell.column, cell.row)
    letter = "m" if of.operand == "A" else "n"
    if of.major == "K":
        return f"{letter} {outer}, k {k}-{k + count - 1}"
    return f"{letter} {outer}-{outer + count - 1}, k {k}"


def _heads(y: float) -> list[str]:
    heads = [text(_LEFT - 10, y, "bank", size=11, anchor="end", fill="pale")]
    return heads + [
        text(_LEFT + bank * _BANK + _BANK / 2, y, str(bank), size=11, anchor="middle", fill="pale")
        for bank in range(_BANKS)
    ]


def _access(of: SharedReading, access: tuple[SharedCell, ...], y: float) -> tuple[list[str], float]:
    """Draw the wavefronts of an access (rule 2); return also where they end."""
    queues: dict[int, dict[int, SharedCell]] = {}
    for cell in access:
        for word in range(cell.address // 4, cell.address // 4 + _CHUNK // 4):
            queues.setdefault(word % _BANKS, {})[word] = cell
    waves = of.wavefronts(access)
    touched = f"The first access touches {counted(len(queues), 'bank')}, in {counted(waves, 'wavefront')}"
    body = [text(16, y, touched, weight="bold"), *_heads(y + 24)]
    y += 32
    for turn in range(waves):
        body.append(text(_LEFT - 10, y + 16, f"wavefront {turn}", size=11, anchor="end", fill="pale"))
        for first in range(0, _BANKS, 4):  # a chunk takes four banks
            cells = list(queues.get(first, {}).values())
            x, width = _LEFT + first * _BANK, 4 * _BANK
            if turn < len(cells):
                body.append(box(x, y, width, _ROW, "lost" if turn else "free"))
                body.append(text(x + width / 2, y + 16, _named(of, cells[turn]), size=11, anchor="middle"))
            else:
                body.append(box(x, y, width, _ROW, "idle", stroke="faint"))
        y += _ROW
    return body, y
