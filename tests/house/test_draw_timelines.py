"""The picture of a timeline is what `lab.draw.timelines` draws."""

from __future__ import annotations

import pytest

from lab.draw.timelines import PICTURE, drawn
from warpmma.cuda import nvrtc


@pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())
def test_the_picture_of_the_page_is_what_is_drawn() -> None:
    assert PICTURE.read_text() == drawn(), "run: python -m lab.draw.timelines"
