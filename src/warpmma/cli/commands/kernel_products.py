"""Which `mma` of a kernel `warpmma run --explain` means: `77 lane=13 register=1`, `gemm`'s line 77, its lane 13.

1. First stands the line: of the source, or of the PTX text; then NAME=NUMBER for block, warp, occurrence, lane,
   register, index, row, column and matrix, and `against=TARGET`; `chain` explains a loop from its first turn on.
2. Block, warp and lane are 0 where nothing is said; of several occurrences it is the first.
"""

from __future__ import annotations

import re
from typing import Any

from ..._arguments import suggestion
from ...analysis import Explanation, explain_launch
from ...errors import OperandError, shown
from ...kernel import Launch, Watch

_NUMBERS = ("block", "warp", "occurrence", "lane", "register", "index", "row", "column", "matrix")
_WORDS = (*_NUMBERS, "against", "chain")
_HELP = "expected a line and NAME=NUMBER, such as '77 warp=1 lane=13 register=2 occurrence=3 chain'"


class KernelProduct:
    """What was asked for.

    Parameters
    ----------
    text : str

    Raises
    ------
    OperandError
        What is no line, or no such name.
    """

    def __init__(self, text: str) -> None:
        line, *words = re.split(r"[\s,]+", text.strip())
        if not (line.isascii() and line.isdigit()):
            raise OperandError(f"--explain {shown(text)}: {shown(line)} is no line of the kernel; {_HELP}")
        self.given: dict[str, Any] = {"line": int(line), "block": 0, "warp": 0}
        for word in words:
            name, separator, value = word.partition("=")
            if name not in _WORDS or bool(separator) == (name == "chain"):
                raise OperandError(f"--explain {shown(text)}: {shown(word)}{suggestion(name, _WORDS)}; {_HELP}")
            if name in _NUMBERS and not (value.isascii() and value.isdigit()):
                raise OperandError(f"--explain {shown(text)}: {name} is {shown(value)}; {_HELP}")
            self.given[name] = int(value) if name in _NUMBERS else value or True
        if "row" not in self.given and "column" not in self.given:
            self.given.setdefault("lane", 0)

    @property
    def watch(self) -> Watch:
        """What the launch must keep: of a chain all occurrences."""
        plain = {name: self.given[name] for name in ("line", "block", "warp")}
        return Watch(**plain, occurrence=None if "chain" in self.given else self.given.get("occurrence", 0))

    def explained(self, report: Launch) -> Explanation:
        """Explain it."""
        return explain_launch(report, **self.given)
