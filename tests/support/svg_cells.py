"""Elements that a picture says it has: from its `data-...` attributes alone, repeats unfolded."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from warpmma.layouts import Layout

__all__ = ["FIELDS", "SVG", "boxes", "elements", "expected"]

Cells = npt.NDArray[np.int64]

SVG = "{http://www.w3.org/2000/svg}"
FIELDS = ("matrix", "row", "column", "lane", "register", "low", "high", "index")


def repeats(written: str) -> list[tuple[int, dict[str, int]]]:
    """Read "4 row+16 lane+32; 2 column+8"."""
    found = []
    for part in filter(None, written.split("; ")):
        count, *steps = part.split(" ")
        named = (re.fullmatch(r"([a-z]+)([+-]\d+)", step) for step in steps)
        found.append((int(count), {step[1]: int(step[2]) for step in named if step}))
        assert len(found[-1][1]) == len(steps) > 0
    return found


def unfolded(cells: Cells, written: str) -> Cells:
    """Repeat cells, `[n, 8]`, by laws."""
    for count, steps in repeats(written):
        step = np.array([steps.get(name, 0) for name in FIELDS])
        cells = (cells[None] + np.arange(count)[:, None, None] * step).reshape(-1, len(FIELDS))
    return cells


def boxes(root: ElementTree.Element) -> list[ElementTree.Element]:
    return [each for each in root.iter(f"{SVG}g") if "data-lane" in each.attrib]


def elements(svg: str) -> Cells:
    """Return the fields of every element, `[n, 8]`, in ascending order."""
    root = ElementTree.fromstring(svg)
    found: dict[str, list[list[int]]] = {}
    for box in boxes(root):
        cell = [int(box.attrib.get(f"data-{name}", 0)) for name in FIELDS]
        found.setdefault(box.attrib.get("data-repeat", ""), []).append(cell)
    whole = np.concatenate([unfolded(np.array(cells), law) for law, cells in found.items()])
    return ascending(unfolded(whole, root.attrib.get("data-repeat", "")))


def ascending(cells: Cells) -> Cells:
    return cells[np.lexsort(cells.T[::-1])]


def expected(layout: Layout) -> Cells:
    """Return the same of a layout, from its arrays."""
    index = np.broadcast_to(np.arange(layout.elements), layout.places[0].shape)
    register, position = np.divmod(index, layout.packing.per_register)
    low = position * layout.packing.slot + layout.packing.shift
    lane = np.broadcast_to(np.arange(layout.lanes)[:, None], index.shape)
    columns = (*layout.places, lane, register, low, low + layout.packing.bits - 1, index)
    return ascending(np.stack([np.ravel(column) for column in columns], axis=1))
