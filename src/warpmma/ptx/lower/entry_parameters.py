"""Parameters of an entry: where each lies among their bytes, and what reads them."""

from __future__ import annotations

from ...isa import value
from ...machine import Argument, Slot
from ..storage import laid_out, register_class
from ..text import BYTES, Function, Place, Statement, Variable, bytes_of
from .resolving import Resolver


class EntryParameters:
    """The parameters of an entry.

    Parameters
    ----------
    function : Function

    Attributes
    ----------
    places : dict of str to (int, int)
        Offset and bytes of each.
    size : int
        Bytes of all.
    """

    def __init__(self, function: Function) -> None:
        given = function.parameters if function.kind == "entry" else ()
        places, self.size = laid_out(given)
        self.places = {x.name: place for x, place in zip(given, places, strict=True)}

    def load(self, names: Resolver, statement: Statement) -> list[tuple[Argument, Slot]] | None:
        """Return what an `ld.param` reads and where it goes; None where its address is in no parameter's name."""
        if len(statement.operands) != 2:
            raise names.fail(statement, f"got {len(statement.operands)} operands; expected a register and [parameter]")
        target, place = statement.operands
        base = place.base if isinstance(place, Place) else None
        if not isinstance(place, Place) or base is None or (base.name, base.scope) in names.frame:
            return None
        if base.name not in self.places or not isinstance(names.declared.find(base), Variable):
            return None
        start, size = self.places[base.name]
        type_ = statement.mnemonic.rpartition(".")[2]
        kind = register_class(type_) if type_ in BYTES and type_ != "pred" else None
        if kind is None:
            raise names.fail(statement, f".{type_} is no type that ld.param has here")
        each, items = bytes_of(type_), names.items(target)
        if not 0 <= place.offset <= size - each * len(items):
            text = f"{each * len(items)} bytes at {place.offset} of {base.name}, which has {size}"
            raise names.fail(statement, text)
        found = []
        for i, x in enumerate(items):
            slot = names.target(x, value("d0", kind, role="result", wider=True, sink="element"), statement, inside=True)
            if slot is not None:
                signed = type_[0] == "s"
                found.append((Argument(start + place.offset + i * each, each, signed, names.kind(slot)), slot))
        return found
