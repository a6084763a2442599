"""Tests of kernels: comparison bit for bit, reports and guesses of what differs, a pytest plugin, strategies.

Every name and every module, such as `warpmma.testing.strategies`, is loaded when it is first used: pytest imports this
package whenever it starts, for the plugin.
"""

from typing import TYPE_CHECKING

from .._lazy import on_demand as _on_demand

if TYPE_CHECKING:  # what `_ORIGINS` says
    from . import plugin as plugin
    from . import strategies as strategies
    from .array_repr import array_with
    from .assertions import assert_close, assert_same_bits, ulps
    from .guessing import Guesses, LaunchGuess, guess, guess_copy, guess_fragment, guess_launch
    from .simulated import Gpu

__all__ = [
    "Gpu",
    "Guesses",
    "LaunchGuess",
    "array_with",
    "assert_close",
    "assert_same_bits",
    "guess",
    "guess_copy",
    "guess_fragment",
    "guess_launch",
    "ulps",
]

_ORIGINS = {
    ".": ("plugin", "strategies"),
    ".assertions": ("assert_close", "assert_same_bits", "ulps"),
    ".guessing": ("Guesses", "LaunchGuess", "guess", "guess_copy", "guess_fragment", "guess_launch"),
    ".simulated": ("Gpu",),
    ".array_repr": ("array_with",),
}

if not TYPE_CHECKING:  # to which every name would be one
    __getattr__, __dir__ = _on_demand(__name__, _ORIGINS)
