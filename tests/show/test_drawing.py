"""Primitives of pictures: escaped, in both themes, the words of a page heard."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from warpmma import show
from warpmma.errors import OperandError, UnknownNameError
from warpmma.show.drawing.drawing import box, document, group, line, path, style_sheet, text, text_width
from warpmma.show.views import VIEWS

pytestmark = pytest.mark.quick

HOSTILE = "<&'\"> fill='#222222'"


def test_what_is_written_is_escaped() -> None:
    drawn = document(
        [text(1, 2, HOSTILE, data={"x": HOSTILE}), box(0, 0, 1, 1, "free", note=HOSTILE),
         path("M0 0L1 1", note=HOSTILE), group([line(0, 0, 1, 1)], note=HOSTILE)],
        10, 10, HOSTILE, description=HOSTILE, theme="dark", data={"of": HOSTILE},
    )  # fmt: skip
    root = ElementTree.fromstring(drawn)
    assert root.attrib["data-of"] == HOSTILE
    said = [element.text for element in root.iter() if element.text and element.text.strip()]
    assert said == [HOSTILE] * 6 and drawn.count("data-x=") == 1


def paints(drawn: str) -> set[str]:
    return set(re.findall(r"(?:fill|stroke)='(#\w+)'", drawn))


def test_themes() -> None:
    body = [box(0, 0, 9, 9, "free", stroke="lane5"), text(0, 9, "x"), text(0, 9, "y", fill="pale")]
    names = ("paper", "ink", "free", "lane5", "pale")
    light, dark, auto = (document(body, 9, 9, "t", theme=theme) for theme in ("light", "dark", "auto"))
    assert paints(light) == {show.PALETTE[name].light for name in names} and "<style" not in light
    assert paints(dark) == {show.PALETTE[name].dark for name in names} and "<style" not in dark
    assert re.sub(r"<style>.*</style>\n| class='warpmma'", "", auto) == light
    for name in names:
        assert f"--warpmma-{name}:var(--warpmma-light,{show.PALETTE[name].light}) " in auto
        assert f"fill:var(--warpmma-{name})" in auto or name == "lane5"
    assert "[stroke='#99ddff']{stroke:var(--warpmma-lane5)}" not in auto and "--warpmma-lost" not in auto
    assert all(f"--warpmma-{name}:" in style_sheet() for name in show.PALETTE)
    with pytest.raises(OperandError, match="theme is 'pink'"):
        document([], 1, 1, "t", theme="pink")  # type: ignore[arg-type]


def test_widths_are_dejavu_s() -> None:
    """As the font says, where it is installed with what reads it."""
    image_font = pytest.importorskip("PIL.ImageFont")
    folder = Path(pytest.importorskip("matplotlib").get_data_path()) / "fonts" / "ttf"
    plain = "".join(map(chr, range(32, 127)))
    for name, options in (("DejaVuSans", {}), ("DejaVuSansMono", {"mono": True})):
        font = image_font.truetype(str(folder / f"{name}.ttf"), 1000)
        for x in plain:
            assert text_width(x, 1000, **options) == pytest.approx(font.getlength(x), abs=1)
    bold = image_font.truetype(str(folder / "DejaVuSans-Bold.ttf"), 1000)
    for words in ("Fragment of A", "registers: 4", "lane 14", "columns 32-63"):
        assert text_width(words, 1000, bold=True) >= bold.getlength(words) * 0.99


def test_every_view_has_its_function() -> None:
    from importlib import import_module

    for where in VIEWS.values():
        module, _, name = where.rpartition(".")
        assert callable(getattr(import_module(f"warpmma.show.{module}"), name))


def test_what_has_no_view() -> None:
    from warpmma._views import view

    with pytest.raises(UnknownNameError, match="a int has no svg view"):
        view(3, "svg")
