"""Which targets there are, and which of them have what appeared with another."""

from __future__ import annotations

from functools import cache

from ..errors import TargetError
from .gpus import unknown
from .targets import TARGETS


def check_known(target: str) -> None:
    """Raise `TargetError` unless the target exists; it says which target a GPU's name, or another spelling, is."""
    if not isinstance(target, str) or target not in TARGETS:
        raise TargetError(unknown(target, TARGETS))


def since(first: str) -> tuple[str, ...]:
    """List the targets that have what appeared with a target; "f" and "a" at its end ask for such feature sets.

    An unknown target is a `TargetError`.

    Examples
    --------
    >>> since("sm_120f")
    ('sm_120f', 'sm_120a', 'sm_121f', 'sm_121a')
    """
    check_known(first)
    return _since(first)


@cache
def _since(first: str) -> tuple[str, ...]:
    oldest = TARGETS[first]
    having = {"f": ("f", "a"), "a": ("a",)}.get(oldest.features, ("", "f", "a"))
    return tuple(t.name for t in TARGETS.values() if t.number >= oldest.number and t.features in having)
