"""All that is compared with a GPU: its target, its description, and the comparisons of what it has."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable
from contextlib import suppress
from math import isqrt
from pathlib import Path

from ...errors import UnsupportedError
from ...isa import TARGETS, instructions, warpgroup_instructions
from ...operations import matrix_moves
from ...registers import LANES
from .findings import ComparedGroup
from .form_groups import launched_groups, launched_left_out
from .matrix_cases import MatrixComparison, matrix_groups
from .move_cases import MoveComparison
from .rooms import AnyGpu
from .row_cases import function_groups, left_out, row_groups

__all__ = ["comparisons", "device_of", "matched", "not_compared", "target_of"]

_MOST_SIDE, _MOST_LANES, _MOST_OPERANDS = 4096, 1 << 16, 1 << 20
_PIECES = 16  # of what is compared little, about
_VERSION_FILE = Path("/proc/driver/nvidia/version")


def target_of(capability: tuple[int, int]) -> str:
    """Return the target of a GPU that has the most instructions.

    Raises
    ------
    UnsupportedError
        No target has this capability.

    Examples
    --------
    >>> target_of((9, 0)), target_of((7, 5))
    ('sm_90a', 'sm_75')
    """
    found = [target for target in TARGETS.values() if target.capability == capability]
    if not found:
        known = ", ".join(dict.fromkeys("{}.{}".format(*target.capability) for target in TARGETS.values()))
        raise UnsupportedError(f"the GPU has capability {'{}.{}'.format(*capability)}; expected one of {known}")
    return max(found, key=lambda x: len(instructions(x.name)) + len(warpgroup_instructions(x.name))).name


def device_of(gpu: AnyGpu) -> dict[str, str]:
    """Describe a GPU and what is between it and us."""
    driver = ""
    with suppress(OSError):
        found = re.search(r"\s(\d+\.\d+(?:\.\d+)?)\s", _VERSION_FILE.read_text(encoding="utf-8"))
        driver = found[1] if found else ""
    nvrtc = ""
    with suppress(Exception):  # whatever a missing library raises
        from cuda.bindings import nvrtc as library

        nvrtc = ".".join(str(x) for x in library.nvrtcVersion()[1:])
    return {
        "gpu": gpu.name, "target": target_of(gpu.capability), "driver": driver,
        "cuda": f"{gpu.driver // 1000}.{gpu.driver % 1000 // 10}", "nvrtc": nvrtc,
    }  # fmt: skip


def comparisons(target: str, pattern: str, outputs: int, seed: int) -> list[ComparedGroup]:
    """List what to compare.

    Parameters
    ----------
    target : str
    pattern : str
        Mnemonics, with `*` and `?`, or a part of them.
    outputs : int
        Of each matrix instruction; pieces of work are smaller where these are few.
    seed : int

    Returns
    -------
    list of ComparedGroup
    """
    side = _power(isqrt(max(1, outputs // _PIECES)), 8, _MOST_SIDE)
    lanes = _power(outputs // (10 * _PIECES), 256, _MOST_LANES)
    operands = _power(outputs // _PIECES, 256, _MOST_OPERANDS)
    fits = matched(pattern)
    found: list[ComparedGroup] = []
    for every in (instructions(target), warpgroup_instructions(target)):
        records = [record for record in every if fits(str(record))]
        found += [MatrixComparison(group, side, seed) for group in matrix_groups(target, records)]
    found += function_groups(target, operands, outputs, fits)
    found += row_groups(target, lanes, seed, fits)
    moves = [move for move in matrix_moves(target) if fits(move.mnemonic)]
    found += [MoveComparison(move=move, warps=max(1, lanes // LANES), seed=seed) for move in moves]
    return found + launched_groups(target, max(1, lanes // LANES), seed, fits)


def not_compared(target: str, pattern: str) -> dict[str, str]:
    """Say which instructions of a target are not compared, and why."""
    fits = matched(pattern)
    every = left_out(target) | launched_left_out(target)
    return {name: why for name, why in every.items() if pattern == "*" or fits(name)}


def _power(most: int, low: int, high: int) -> int:
    """Return the largest power of two up to a number, within limits."""
    return min(max(1 << max(0, most).bit_length() >> 1, low), high)


def matched(pattern: str) -> Callable[[str], bool]:
    """Return a test of mnemonics: by a pattern with `*` and `?`, or by a part of them."""
    whole = pattern if any(x in pattern for x in "*?[") else f"*{pattern}*"
    return lambda name: fnmatch.fnmatchcase(name, whole)
