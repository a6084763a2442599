"""Special registers of PTX, and the class of each: what can be read where a register may stand."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..operations import RegisterType

__all__ = ["SPECIAL", "special_register"]

_VECTORS = "tid ntid ctaid nctaid clusterid nclusterid cluster_ctaid cluster_nctaid"
_WORDS = """
    laneid warpid nwarpid smid nsmid lanemask_eq lanemask_le lanemask_lt lanemask_ge lanemask_gt
    clock clock_hi globaltimer_lo globaltimer_hi cluster_ctarank cluster_nctarank
    total_smem_size aggr_smem_size dynamic_smem_size
"""
_LONG = "clock64 globaltimer gridid"

SPECIAL: Mapping[str, RegisterType] = MappingProxyType({
    **{f"%{name}.{axis}": "b32" for name in _VECTORS.split() for axis in "xyz"},
    **dict.fromkeys((f"%{name}" for name in _WORDS.split()), "b32"),
    **dict.fromkeys((f"%{name}" for name in _LONG.split()), "b64"),
    "%is_explicit_cluster": "pred",
})  # fmt: skip
"""Class of each, by its name in PTX."""


def special_register(name: str) -> RegisterType | None:
    """Class of a special register; None for other names.

    Examples
    --------
    >>> special_register("%tid.x"), special_register("%clock64"), special_register("%r1")
    ('b32', 'b64', None)
    """
    return SPECIAL.get(name)
