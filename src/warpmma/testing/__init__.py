"""Tests of kernels: comparison bit for bit, reports of differing bits, a pytest plugin, hypothesis strategies.

Every name and every module, such as `warpmma.testing.strategies`, is loaded when it is first used: pytest imports this
package whenever it starts, for the plugin.
"""

from typing import TYPE_CHECKING

from .._lazy import on_demand as _on_demand

if TYPE_CHECKING:  # what `_ORIGINS` says
    from . import plugin as plugin
    from . import strategies as strategies
    from .assertions import assert_same_bits, ulps
    from .simulated import Gpu
    from .written import array_with

__all__ = ["Gpu", "array_with", "assert_same_bits", "ulps"]

_ORIGINS = {
    ".": ("plugin", "strategies"),
    ".assertions": ("assert_same_bits", "ulps"),
    ".simulated": ("Gpu",),
    ".written": ("array_with",),
}

if not TYPE_CHECKING:  # to which every name would be one
    __getattr__, __dir__ = _on_demand(__name__, _ORIGINS)
