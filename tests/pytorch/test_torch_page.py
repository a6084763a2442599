"""What docs/torch.md shows runs, and prints what it says."""

from __future__ import annotations

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from oracles import skip_without

skip_without("PyTorch")

PAGE = (Path(__file__).parents[2] / "docs" / "torch.md").read_text()


def test_the_page_runs_and_prints_what_it_says() -> None:
    codes, printed = (re.findall(rf"^```{name}\n(.*?)^```$", PAGE, re.M | re.S) for name in ("python", "text"))
    assert len(codes) == 2 and len(printed) == 1
    out, names = StringIO(), {"__name__": "page"}
    with redirect_stdout(out):
        for code in codes:
            exec(code, names)
    assert out.getvalue() == printed[0]
