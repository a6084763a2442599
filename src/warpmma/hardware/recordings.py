"""Recorded registers: what a GPU was given and what it returned, and their replay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Array
from .._records import Shown
from ..arithmetic import Evidence
from ..errors import OperandError, shown
from ..execution import Undefined, evidence, execute
from ..isa import Instruction, check_known, check_target, parse
from ..scaling import checked_ids
from ..sparsity import selectors

IDS = ("byte_id_a", "thread_id_a", "byte_id_b", "thread_id_b")


@dataclass(frozen=True)
class Replay(Shown):
    """The outcome for one instruction.

    Attributes
    ----------
    instruction : Instruction
    outputs : int
        Elements of D compared; each result counts, one for each selector where there are several.
    differences : int
        How many of them differ.
    first : str
        Where the first difference is, with both values; empty where there is none.
    evidence : Evidence
    """

    instruction: Instruction
    outputs: int
    differences: int
    first: str
    evidence: Evidence


@dataclass(frozen=True)
class Recording(Shown):
    """A checked archive.

    Attributes
    ----------
    name : str
        The file.
    target : str
        What it was recorded on, "sm_90" if it does not say.
    device : str
        GPU, driver and toolkit, if it says.
    undefined : {"error", "hardware"}
        What `execute` is to do about undefined metadata.
    fields : dict
        Arrays by instruction and field.
    """

    name: str
    target: str
    device: str
    undefined: Undefined
    fields: dict[Instruction, dict[str, Array]]

    def replay(self, target: str | None = None) -> Iterator[Replay]:
        """Execute what was recorded, instruction by instruction, and compare.

        Parameters
        ----------
        target : str, optional
            Instead of the one it was recorded on.

        Yields
        ------
        Replay

        Raises
        ------
        TargetError
            Unknown target, or one that has none of the instructions; raised before anything is executed.
        """
        target = self.target if target is None else target
        legal = self.legal(target)
        if not legal:
            check_target(next(iter(self.fields)), target)
        return (self._one(instruction, target) for instruction in legal)

    def legal(self, target: str) -> list[Instruction]:
        """List the recorded instructions that a target has; the others cannot be replayed as on it."""
        check_known(target)
        return [instruction for instruction in self.fields if target in instruction.targets]

    def _one(self, instruction: Instruction, target: str) -> Replay:
        fields = self.fields[instruction]
        packing = instruction.packing("D")
        outputs = differences = 0
        first = ""
        for name, selector in result_fields(instruction).items():
            ids = fields["ids"].tolist() if instruction.block_scale else ()
            got = execute_fields(instruction, fields, target, selector=selector, ids=ids, undefined=self.undefined)
            unequal = packing.unpack(got) != packing.unpack(fields[name])
            outputs += unequal.size
            differences += int(unequal.sum())
            if unequal.any() and not first:
                warp, register, lane = (int(x) for x in np.argwhere(unequal)[0][:3])
                computed, recorded = int(got[warp, register, lane]), int(fields[name][warp, register, lane])
                first = f"warp {warp} register {register} lane {lane}: {computed:#x}, recorded {recorded:#x}"
        return Replay(instruction, outputs, differences, first, evidence(instruction, target=target))


def execute_fields(
    instruction: str | Instruction, fields: Mapping[str, Array], target: str, *, selector: int, ids: Sequence[int],
    undefined: Undefined,
) -> Array:  # fmt: skip
    """Execute an instruction on registers named as in an archive.

    Parameters
    ----------
    instruction : str or Instruction
    fields : mapping of str to ndarray
        `a`, `b`, `c`; and `e`, `sa`, `sb` where the instruction takes them.
    target : str
    selector : int
        Of a sparse instruction.
    ids : sequence of int
        Of a block-scaled one: byte-id and thread-id of A, byte-id and thread-id of B.
    undefined : {"error", "hardware"}
        Of a sparse one; as for `execute`.

    Returns
    -------
    ndarray
        Registers of D.

    Raises
    ------
    WarpmmaError
        As `execute` does, and for fields that are missing.
    """
    record, extra = parse(instruction), dict[str, Any]()
    names = ["a", "b", "c", *(["e"] if record.sparse else []), *(["sa", "sb"] if record.block_scale else [])]
    if not isinstance(fields, Mapping) or not all(x in fields for x in names):
        raise OperandError(f"{record}: fields are {shown(fields)}; expected a mapping with {', '.join(names)}")
    if record.sparse:
        extra |= {"metadata": fields["e"], "selector": selector, "undefined": undefined}
    if record.block_scale:
        extra |= {
            "scale_a": fields["sa"],
            "scale_b": fields["sb"],
            **dict(zip(IDS, checked_ids(record, ids), strict=True)),
        }
    return execute(record, *(fields[x] for x in "abc"), target=target, **extra)


def result_fields(instruction: Instruction) -> dict[str, int]:
    """Fields that hold results, with the selector of each."""
    return {f"d{s}": s for s in selectors(instruction)} if instruction.sparse else {"d": 0}
