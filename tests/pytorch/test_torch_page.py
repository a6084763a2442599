"""What docs/torch.md shows runs, and prints what it says."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from oracles import skip_without

pytest.importorskip("triton.language")
skip_without("PyTorch")

from compile_cases import own_caches  # noqa: E402, F401

PAGE = (Path(__file__).parents[2] / "docs" / "torch.md").read_text()


def test_the_page_runs_and_prints_what_it_says() -> None:
    codes, printed = (re.findall(rf"^```{name}\n(.*?)^```$", PAGE, re.M | re.S) for name in ("python", "text"))
    assert len(codes) == 5 and len(printed) == 3
    out, names = StringIO(), {"__name__": "page"}
    with redirect_stdout(out):
        for code in codes:
            exec(code, names)
    assert out.getvalue() == "".join(printed)
