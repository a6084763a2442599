"""Where texts of a picture are, and which of them run over the picture's edge, or over each other."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

from svg_cells import SVG

from warpmma.show.drawing.drawing import text_width

__all__ = ["overlaps", "place"]

Place = tuple[float, float, float, float]


def place(element: ElementTree.Element) -> Place:
    """Left, top, right and bottom of a text or a box."""
    at = {name: float(element.attrib.get(name, 0)) for name in ("x", "y", "width", "height", "font-size")}
    if element.tag == f"{SVG}rect":
        return at["x"], at["y"], at["x"] + at["width"], at["y"] + at["height"]
    size = at["font-size"]
    options = {"bold": element.get("font-weight") == "bold", "mono": "Mono" in element.get("font-family", "")}
    wide = text_width(element.text or "", size, **options)
    left = at["x"] - wide * {"start": 0.0, "middle": 0.5, "end": 1.0}[element.get("text-anchor", "start")]
    return left, at["y"] - 0.76 * size, left + wide, at["y"] + 0.05 * size


def _texts(root: ElementTree.Element, x: float = 0, y: float = 0) -> list[tuple[Place, str]]:
    """All texts, groups' translations heeded."""
    found = []
    for element in root:
        dx, dy = x, y
        if transform := element.get("transform"):
            shift = transform.removeprefix("translate(").removesuffix(")").split()
            dx, dy = x + float(shift[0]), y + float(shift[1])
        if element.tag == f"{SVG}text":
            left, top, right, bottom = place(element)
            found.append(((left + dx, top + dy, right + dx, bottom + dy), element.text or ""))
        found += _texts(element, dx, dy)
    return found


def overlaps(root: ElementTree.Element) -> list[str]:
    """Say which texts leave the picture or lie on one another."""
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    texts = _texts(root)
    bad = [f"outside: {said}" for (x1, y1, x2, y2), said in texts if x1 < 4 or x2 > width - 4 or y1 < 0 or y2 > height]
    bands: dict[int, list[tuple[Place, str]]] = {}
    for each in texts:
        bands.setdefault(int(each[0][3] // 60), []).append(each)
        bands.setdefault(int(each[0][3] // 60) + 1, []).append(each)
    for near in bands.values():
        for (one, said), (other, also) in combinations(near, 2):
            if not (one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]):
                bad.append(f"{said!r} on {also!r}")
    return bad
