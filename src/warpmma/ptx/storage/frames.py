"""Frames: where parameters, results and `.local` variables of a function lie in a thread's local memory."""

from __future__ import annotations

from collections.abc import Sequence

from ..text import Declaration, Function, Variable, bytes_of

_ALIGNMENT = 16


def laid_out(variables: Sequence[Declaration], start: int = 0) -> tuple[list[tuple[int, int]], int]:
    """Lay parameters out one behind the other; return the offset and bytes of each, and where they end."""
    found, end = [], start
    for x in variables:
        size = size_of(x)
        alignment = max(x.alignment, 1) if isinstance(x, Variable) else size
        end = -(-end // alignment) * alignment
        found.append((end, size))
        end += size
    return found, end


def size_of(x: Declaration) -> int:
    """Bytes of a parameter; a register has at least 2."""
    return x.size if isinstance(x, Variable) else max(bytes_of(x.type) * x.vector, 2)


class FrameLayout:
    """The frame of a function.

    Parameters
    ----------
    function : Function
    start : int
        Bytes of an entry's frame that other variables take.

    Attributes
    ----------
    offsets : dict of (str, int) to int
        Of variables, by name and scope.
    sizes : dict of (str, int) to int
    parameters, results : tuple of (int, int)
        Offset and bytes of each, of a `.func`.
    size : int
        Bytes.
    """

    def __init__(self, function: Function, start: int = 0) -> None:
        entry = function.kind == "entry"
        self.offsets: dict[tuple[str, int], int] = {}
        self.sizes: dict[tuple[str, int], int] = {}
        given = () if entry else (*function.results, *function.parameters)
        places, self._end = laid_out(given, start)
        for x, (offset, size) in zip(given, places, strict=True):
            if isinstance(x, Variable):
                self.offsets[x.name, 0], self.sizes[x.name, 0] = offset, size
        self.results = tuple(places[: len(function.results)])
        self.parameters = tuple(places[len(function.results) :])
        apart = {x.name for x in (*function.results, *function.parameters)}
        for scope, declarations in enumerate(function.scopes):
            for x in declarations:
                if isinstance(x, Variable) and x.space in ("local", "param") and not (scope == 0 and x.name in apart):
                    ((offset, size),), self._end = laid_out([x], self._end)
                    self.offsets[x.name, scope], self.sizes[x.name, scope] = offset, size
        self._most = self._end

    @property
    def size(self) -> int:
        """Bytes."""
        return -(-self._most // _ALIGNMENT) * _ALIGNMENT

    def scratch(self, variables: Sequence[Declaration]) -> list[tuple[int, int]]:
        """Return places behind all variables, for parameters and results of one call."""
        places, end = laid_out(variables, -(-self._end // _ALIGNMENT) * _ALIGNMENT)
        self._most = max(self._most, end)
        return places
