"""Colours: text can be read on all of them, and eyes of all kinds tell apart what stands side by side."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from colour_vision import EYES, distance

from warpmma.show import PALETTE, contrast

pytestmark = pytest.mark.quick

LINES = {"line", "strong", "faint", "pale", *(f"series{i}" for i in range(4))}
FILLS = sorted(PALETTE.keys() - LINES - {"ink"})
each_eye = pytest.mark.parametrize("eyes", EYES)
each_theme = pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])


def test_a_light_form_says_which_dark_form() -> None:
    forms = {(colour.light, colour.dark) for colour in PALETTE.values()}
    assert len(forms) == len({light for light, _ in forms})
    assert all(re.fullmatch("#[0-9a-f]{6}", form) for pair in forms for form in pair)


@each_theme
@pytest.mark.parametrize("fill", FILLS)
def test_text_on_fills(fill: str, theme: int) -> None:
    assert contrast(PALETTE[fill][theme], PALETTE["ink"][theme]) >= 4.5


@each_theme
def test_text_and_lines_on_paper(theme: int) -> None:
    paper = PALETTE["paper"][theme]
    for text in ("pale", "strong"):
        assert contrast(PALETTE[text][theme], paper) >= 4.5
        assert contrast(PALETTE[text][theme], PALETTE["panel"][theme]) >= 4.5
    assert min(contrast(PALETTE[name][theme], paper) for name in ("line", *(f"series{i}" for i in range(4)))) >= 3


def test_contrast_is_wcag_s() -> None:
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005)
    assert contrast("#ffffff", "#767676") == contrast("#767676", "#ffffff")


@each_eye
@each_theme
def test_neighbours_differ(eyes: str, theme: int) -> None:
    """Groups stand above one another, the eighth above the first; threads of a group beside one another."""

    def apart(one: int, other: int, least: float) -> None:
        assert distance(PALETTE[f"lane{one}"][theme], PALETTE[f"lane{other}"][theme], eyes) >= least, (one, other)

    for lane in range(32):
        apart(lane, (lane + 4) % 32, 5)
        if lane % 4 < 3:
            apart(lane, lane + 1, 4)
    if not theme:
        for group in range(8):
            assert distance(PALETTE[f"hue{group}"].light, PALETTE[f"hue{(group + 1) % 8}"].light, eyes) >= 30


@each_eye
@each_theme
@pytest.mark.parametrize(
    "names", [("free", "lost", "idle"), ("sign", "exponent", "fraction", "lost"), tuple(f"series{i}" for i in range(4))]
)
def test_what_means_something_differs(eyes: str, theme: int, names: tuple[str, ...]) -> None:
    for one, other in combinations(names, 2):
        assert distance(PALETTE[one][theme], PALETTE[other][theme], eyes) >= 8, (one, other)


def test_who_lacks_cones_sees_less() -> None:
    """The simulation is one: what differs to most eyes is alike to some."""
    assert distance("#ff0000", "#948d00", "all cones") > 60 > 20 > distance("#b00000", "#514c00", "deuteranopia")
