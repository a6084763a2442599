"""Parameters of an entry: where each lies among their bytes, and what reads them."""

from __future__ import annotations

from typing import cast

from ...machine import Argument, InstructionStep, Slot
from ...operations import Access
from ..storage import laid_out
from ..text import Function, Place, Statement, Variable
from .resolving import Resolver


class EntryParameters:
    """The parameters of an entry: `places` has the offset and bytes of each, `size` the bytes of all."""

    def __init__(self, function: Function) -> None:
        given = function.parameters if function.kind == "entry" else ()
        places, self.size = laid_out(given)
        self.places = {x.name: place for x, place in zip(given, places, strict=True)}

    def load(
        self, names: Resolver, statement: Statement, place: Place, step: InstructionStep
    ) -> list[tuple[Argument, Slot]] | None:
        """Return what an `ld.param` reads and where it goes; None where its address is in no parameter's name."""
        base, row = place.base, cast(Access, step.row)
        if base is None or base.name not in self.places or (base.name, base.scope) in names.frame:
            return None
        if not isinstance(names.declared.find(base), Variable):
            return None
        start, size = self.places[base.name]
        each, read = row.word.itemsize, row.word.itemsize * len(step.results)
        if not 0 <= place.offset <= size - read:
            raise names.fail(statement, f"{read} bytes at {place.offset} of {base.name}, which has {size}")
        return [
            (Argument(start + place.offset + i * each, each, row.signed, names.kind(slot)), slot)
            for i, slot in enumerate(step.results)
            if slot is not None
        ]
