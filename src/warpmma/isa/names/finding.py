"""Finding instructions by what they do, `mma` and `wgmma` alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._arguments import is_integer
from ...errors import MnemonicError, nearest, shown
from ..tables import MatrixInstruction, instructions, warpgroup_instructions


def _scale_vec(instruction: MatrixInstruction) -> str | None:
    """Return `scale_vec`, even if it is a default that the mnemonic omits."""
    return f"{instruction.scales_per_row}X" if instruction.block_scale else None


# The value that an argument is compared with, if it is not the attribute of the same name.
_PARTS: dict[str, Callable[[MatrixInstruction], Any]] = {
    "a": lambda i: i.a_type, "b": lambda i: i.b_type, "c": lambda i: i.c_type, "d": lambda i: i.d_type,
    "scale_vec": _scale_vec,
}  # fmt: skip


def find(
    *, a: str | None = None, b: str | None = None, c: str | None = None, d: str | None = None,
    m: int | None = None, n: int | None = None, k: int | None = None, target: str | None = None,
    kind: str | None = None, sparse: bool | None = None, block_scale: bool | None = None,
    scale_vec: str | None = None, stype: str | None = None, satfinite: bool | None = None,
) -> tuple[MatrixInstruction, ...]:  # fmt: skip
    """List the instructions that fit a description.

    Parameters
    ----------
    a, b, c, d : str, optional
        PTX types of the operands, such as "e4m3". An omitted argument matches anything.
    m, n, k : int, optional
        Shape; k of a sparse instruction is logical. Only `wgmma` has `m=64`.
    target : str, optional
        One that has the instruction.
    kind : str, optional
        PTX's `.kind`, such as "f8f6f4".
    sparse, block_scale, satfinite : bool, optional
    scale_vec, stype : str, optional
        Of block-scaled instructions, such as "2X" and "ue8m0"; a default that the mnemonic omits matches too.

    Returns
    -------
    tuple of Instruction and WarpgroupInstruction
        In the order of the tables, `mma` before `wgmma`; empty if nothing matches.

    Raises
    ------
    MnemonicError
        A type, kind, size or choice that no instruction has.
    TargetError
        An unknown target.

    Examples
    --------
    >>> for i in find(a="e4m3", b="e4m3", d="f32", k=32, n=8, target="sm_90a"):
    ...     print(i)
    mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32
    wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3
    >>> find(a="e4m3", target="sm_80")
    ()
    """
    asked = {
        "a": a, "b": b, "c": c, "d": d, "m": m, "n": n, "k": k, "kind": kind, "sparse": sparse,
        "block_scale": block_scale, "scale_vec": scale_vec, "stype": stype, "satfinite": satfinite,
    }  # fmt: skip
    wanted = {part: value for part, value in asked.items() if value is not None}
    for part, value in wanted.items():
        _check(part, value)
    return tuple(i for i in _every(target) if all(_part(i, part) == value for part, value in wanted.items()))


def _part(instruction: MatrixInstruction, part: str) -> Any:
    return _PARTS[part](instruction) if part in _PARTS else getattr(instruction, part)


def _check(part: str, value: object) -> None:
    """Raise `MnemonicError` for what no instruction has."""
    legal = {_part(i, part) for i in _every(None)} - {None}
    kind = type(min(legal))
    fits = is_integer(value) if kind is int else isinstance(value, kind)
    if fits and value in legal:
        return
    near = nearest(value[:80], sorted(legal)) if fits and isinstance(value, str) else None
    meant = f", did you mean {near!r}?" if near else ";"
    listed = ", ".join(map(repr, sorted(legal)))
    raise MnemonicError(f"no instruction has {part}={shown(value)}{meant} expected one of {listed}")


def _every(target: str | None) -> tuple[MatrixInstruction, ...]:
    return (*instructions(target), *warpgroup_instructions(target))
