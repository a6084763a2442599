"""Whether a block `with` was left early, seen from its bytecode alone: see rule 4 of `blocks`.

A block's normal end and the way on after an exception that its `__exit__` swallowed lead to the same place. So a call
of `__exit__` without an exception belongs to a `return`, `break` or `continue` if the code behind it is another.
Compilers copy short ends of functions, so code counts as the same as long as it says the same.
"""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import CodeType, FrameType

_SKIPPED = ("NOP", "SWAP", "CACHE", "EXTENDED_ARG")
_RETURNS = ("RETURN_VALUE", "RETURN_CONST")
_ENDS = (*_RETURNS, "RERAISE", "RAISE_VARARGS")
# What takes a swallowed exception off the stack, and then the block's own __exit__ (and from 3.14 on its object).
_SWALLOWED = ("POP_TOP", "POP_EXCEPT", "POP_TOP", "POP_TOP", *(("POP_TOP",) if sys.version_info >= (3, 14) else ()))


def left_early(frame: FrameType, code: CodeType, entered: int) -> bool:
    """Tell whether a frame, which calls `__exit__`, certainly leaves early a block that code entered at that offset."""
    return frame.f_code is code and _left_early(code, entered, frame.f_lasti)


@lru_cache(maxsize=4096)
def _left_early(code: CodeType, entered: int, leaving: int) -> bool:
    steps = list(dis.get_instructions(code))
    index = {step.offset: i for i, step in enumerate(steps)}
    if entered not in index or leaving not in index or not _enters(steps, index[entered]):
        return False
    after = _swallowed(code, steps, index, steps[index[entered] + 1].offset)
    here = index[leaving] + 1
    if after is None or steps[here].opname != "POP_TOP":
        return False
    return _differ(steps, index, here + 1, after)


def _enters(steps: list[dis.Instruction], at: int) -> bool:
    """Whether an instruction enters a block, as no call of `__enter__` by name does."""
    special = steps[at - 1].opname == "LOAD_SPECIAL" and steps[at].opname.startswith("CALL")  # from Python 3.14 on
    return steps[at].opname == "BEFORE_WITH" or special


def _swallowed(code: CodeType, steps: list[dis.Instruction], index: dict[int, int], inside: int) -> int | None:
    """Find where a block's handler goes on after an exception that was swallowed."""
    entries = getattr(dis.Bytecode(code), "exception_entries", ())
    handlers = [entry.target for entry in entries if entry.start <= inside < entry.end]
    if len(handlers) != 1 or handlers[0] not in index:
        return None
    start = index[handlers[0]]
    names = [step.opname for step in steps[start : start + 5]]
    if names[:2] != ["PUSH_EXC_INFO", "WITH_EXCEPT_START"]:
        return None
    jumps = [i for i, name in enumerate(names) if name.endswith("IF_TRUE")]
    at = index.get(steps[start + jumps[0]].argval) if jumps else None
    if at is None:
        return None
    for name in _SWALLOWED:
        while steps[at].opname == "NOT_TAKEN" or steps[at].opname in _SKIPPED:
            at += 1
        if steps[at].opname != name:
            return None
        at += 1
    return at


def _differ(steps: list[dis.Instruction], index: dict[int, int], one: int, other: int) -> bool:
    """Tell whether two places in code certainly do different things."""
    for _ in steps:
        one, other = _resolved(steps, index, one), _resolved(steps, index, other)
        a, b = steps[one], steps[other]
        if one == other or ((a.opname, a.argval) == (b.opname, b.argval) and a.opname in _ENDS):
            return False
        if (a.opname, a.argval) != (b.opname, b.argval):
            nothing_lost = _returns(steps, one) and _returns(steps, other, none=True)
            place = a.positions
            return not nothing_lost and place is not None and None not in place and place != b.positions
        one, other = one + 1, other + 1
    return False


def _resolved(steps: list[dis.Instruction], index: dict[int, int], at: int) -> int:
    """Follow jumps that are always taken."""
    for _ in steps:
        name = steps[at].opname
        if name in _SKIPPED:
            at += 1
        elif name.startswith("JUMP") and "_IF_" not in name and steps[at].argval in index:
            at = index[steps[at].argval]
        else:
            break
    return at


def _returns(steps: list[dis.Instruction], at: int, none: bool = False) -> bool:
    """Whether a function returns here: anything, or None."""
    step = steps[at]
    if step.opname == "LOAD_CONST":
        return (step.argval is None or not none) and steps[at + 1].opname == "RETURN_VALUE"
    return step.opname == "RETURN_CONST" and step.argval is None if none else step.opname in _RETURNS
