"""Versions of PTX: the lowest `.version` of a text in which ptxas takes an instruction.

That is the row's `ptx`, which PTX's manual states, except for the rows here. Compared with ptxas 13.0: it refuses all
others of the 5,116 rows whose target takes an older text (`python -m lab.compare.versions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from types import MappingProxyType

from ..isa import PtxInstruction

_FP8 = (
    *(f"cvt.rn.satfinite{relu}.{to}.{of}" for relu, to, of in product(
        ("", ".relu"), ("e4m3x2", "e5m2x2"), ("f32", "f16x2"))),
    *(f"cvt.rn{relu}.f16x2.{of}" for relu, of in product(("", ".relu"), ("e4m3x2", "e5m2x2"))),
)  # fmt: skip
_EARLIER: Mapping[str, tuple[int, int]] = MappingProxyType({
    **{f"fence.{order}.{scope}": (6, 0) for order in ("acquire", "release") for scope in ("cta", "gpu", "sys")},
    **{f"fence.{order}.cluster": (7, 8) for order in ("acquire", "release")},
    **dict.fromkeys(_FP8, (7, 8)),  # on sm_90; sm_89 has them since 8.1
    **{f"cp.async.{cache}.shared::cta.global{hint}": since for cache in ("ca", "cg")
       for hint, since in (("", (7, 0)), (".L2::cache_hint", (7, 4)))},
})  # fmt: skip
"""Rows that ptxas takes in earlier texts."""


def lowest_version(row: PtxInstruction) -> tuple[int, int]:
    """Return the lowest version of PTX in which ptxas 13.0 takes an instruction, as far as is known.

    Examples
    --------
    >>> from warpmma.operations import row
    >>> lowest_version(row("fence.acquire.gpu")), lowest_version(row("mbarrier.try_wait.shared.b64"))
    ((6, 0), (7, 8))
    """
    return _EARLIER.get(str(row), row.ptx)
