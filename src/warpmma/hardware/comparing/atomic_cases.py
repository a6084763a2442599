"""`atom` and `red` of a GPU beside the simulator: what they leave in memory, and what they return.

1. A block is one warp with its own memory, global or shared as the form says; that of forms with generic addresses is
   shared in every second piece, if they have no cache policy.
2. Lanes change different elements. In one of four pieces they change one to four elements together, if the form's
   operation gives the same in any order: integers, of `inc` and `dec` with one operand for all lanes. Memory alone is
   compared then, since what a lane reads depends on the order.
3. Operands are those of the same operation on registers (`operation_inputs`), which aim at ties, overflow and special
   values; those of `inc`, `dec` and `cas` are near the element in memory, or equal to it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._arrays import Array
from ...operations import Atomic, operation, rows
from ...registers import LANES
from ..generators import operation_inputs
from .kernel_parts import POLICY, entry, loaded, pointed, stored
from .launched_cases import LaunchedWork, Place, RowForm

__all__ = ["AtomicForm", "atomic_forms", "atomic_kernel", "atomic_values"]

_TOGETHER = ("and", "or", "xor", "add", "min", "max", "inc", "dec")
_WHOLE = 128  # bits, of a register of its own


def atomic_forms(target: str) -> Iterator[Atomic]:
    """List the forms of a target, except those that `Atomic.packed` says are not atomic in another block."""
    for row in rows(target):
        if isinstance(row, Atomic) and not (row.packed and row.space == "shared::cluster"):
            yield row


def atomic_kernel(row: Atomic, *, shared: bool = False) -> str:
    """Return a kernel that executes a form on each lane.

    Parameters
    ----------
    row : Atomic
    shared : bool
        Whether memory is copied to shared memory for a generic address.

    Returns
    -------
    str
        PTX, without the module's header. Parameters are addresses of memory `[block, slot, register]` with a slot for
        each lane, offsets in it in bytes `[block, lane]`, operands a and, of `cas`, b `[block, register, lane]`, and
        of `atom` results d.
    """
    near = shared or row.space.startswith("shared")
    bits = min(row.bits, 64)
    used = "ab"[: row.values] + "d" * row.returns
    registers = {x: [f"%{x}{i}" for i in range(row.registers)] for x in used}
    declared = [f".reg .b{bits} %{x}<{row.registers}>;" for x in used]
    declared.append(".reg .b32 %here, %mine, %offset, %close; .reg .b64 %policy, %far, %wide;")
    lines = loaded("offsets", ["%offset"], 32)
    lines += [line for x in "ab"[: row.values] for line in loaded(x, registers[x], bits)]
    lines += [POLICY] * row.hint
    here, word = pointed("memory", LANES * row.size, row.size), bits // 8
    moves = [
        (f"ld.{{}}.b{bits} %m{i}, [{{}}+{word * i}];", f"st.{{}}.b{bits} [{{}}+{word * i}], %m{i};")
        for i in range(row.registers)
    ]
    if near:
        declared.append(f".shared .align 32 .b8 room[{LANES * row.size}]; .reg .b{bits} %m<{row.registers}>;")
        lines += [f"mov.u32 %here, room; mad.lo.u32 %mine, %lane, {row.size}, %here;", here]
        lines += [x.format("global", "%at") + y.format("shared", "%mine") for x, y in moves]
        lines += ["add.u32 %close, %here, %offset; cvt.u64.u32 %far, %close; cvta.shared.u64 %far, %far; bar.sync 0;"]
    else:
        lines += [pointed("memory", LANES * row.size), "cvt.u64.u32 %wide, %offset; add.u64 %far, %at, %wide;"]
    place = "%close" if row.space.startswith("shared") else "%far"
    if row.bits == _WHOLE:
        declared.append(".reg .b128 %wa, %wb, %wd;")
        lines += [f"mov.b128 %w{x}, {{{', '.join(registers[x])}}};" for x in "ab"[: row.values]]
        operands = [*["%wd"] * row.returns, f"[{place}]", *(f"%w{x}" for x in "ab"[: row.values])]
        lines.append(f"{row} {', '.join([*operands, *['%policy'] * row.hint])};")
        lines += [f"mov.b128 {{{', '.join(registers['d'])}}}, %wd;"] * row.returns
    else:
        lines.append(row.statement(lambda name: {"p": place}.get(name, f"%{name}")))
    if row.returns:
        lines += stored("d", registers["d"], bits)
    if near:
        lines += ["bar.sync 0;", here]
        lines += [x.format("shared", "%mine") + y.format("global", "%at") for x, y in moves]
    return entry(["memory", "offsets", *used], declared, lines)


def atomic_values(row: Atomic, count: int, rng: np.random.Generator) -> tuple[Array, ...]:
    """Make elements in memory and operands, `[count]` of the words of a register (rule 3)."""
    word = np.dtype(f"u{min(row.bits, 64) // 8}")

    def any_() -> Array:
        return rng.integers(0, np.iinfo(word).max, count, word, endpoint=True)

    if row.operation == "exch":
        return any_(), any_()
    if row.operation in ("inc", "dec", "cas"):
        old = np.where(rng.random(count) < 0.5, any_(), rng.integers(0, 4, count, word)).astype(word)
        close = old + rng.integers(0, 3, count, word) - word.type(1)
        given = np.where(rng.random(count) < 0.7, close, any_()).astype(word)
        flipped = old ^ (word.type(1) << rng.integers(0, 8 * word.itemsize, count).astype(word))
        if row.operation != "cas":
            return old, given
        return old, np.where(rng.random(count) < 0.6, old, np.where(rng.random(count) < 0.7, flipped, given)), any_()
    rounded = ".rn" * row.floating
    name = operation(f"{row.operation}{rounded}.{row.type}").mnemonic
    lanes = -(-count // LANES) * LANES
    old, given = (x.reshape(-1)[:count] for x in operation_inputs(name, lanes, int(rng.integers(1 << 40)))[:2])
    return old.view(word), given.view(word)


class AtomicForm(RowForm[Atomic]):
    """One `atom` or `red`, for `LaunchComparison`."""

    @property
    def ordered(self) -> bool:
        """Whether the order of lanes shows in memory (rule 2); or they are not atomic together."""
        row = self.row
        return row.operation not in _TOGETHER or "f" in row.type or (row.divided and row.space == "shared::cluster")

    def work(self, target: str, blocks: int, number: int, rng: np.random.Generator, place: Place) -> LaunchedWork:
        """Make the kernel and the arrays of a piece of work."""
        row, shape = self.row, (blocks, self.row.registers, LANES)
        together = number % 4 == 3 and not self.ordered
        old, *given = (x.reshape(shape) for x in atomic_values(row, blocks * row.registers * LANES, rng))
        if together:
            slots = rng.integers(0, rng.integers(1, 5, (blocks, 1)), (blocks, LANES))
            if row.operation in ("inc", "dec"):
                given = [np.repeat(x[..., :1], LANES, axis=-1) for x in given]
        else:
            slots = np.argsort(rng.random((blocks, LANES)), axis=-1)
        each = np.arange(blocks)[:, None], slots
        memory = rng.integers(0, 1 << 16, (blocks, LANES, row.registers)).astype(old.dtype)
        memory[each] = old.swapaxes(1, 2)
        arrays = {"memory": memory, "offsets": (slots * row.size).astype(np.uint32)}
        arrays |= dict(zip("ab", given, strict=False))
        compared = ["memory"]
        operands: dict[str, list[Array]] = {"memory": [memory]}
        if not together:
            operands["memory"] += [_scattered(x, each) for x in given]
            operands["d"] = [old, *given]
        if row.returns:
            arrays["d"] = np.zeros_like(old)
            compared += ["d"] * (not together)
        shared = row.space == "generic" and not row.hint and bool(number % 2)
        return LaunchedWork(
            text=atomic_kernel(row, shared=shared), arrays=arrays, compared=tuple(compared), operands=operands
        )  # fmt: skip


def _scattered(registers: Array, each: tuple[Array, Array]) -> Array:
    """Put operands `[block, register, lane]` where their lanes' elements are."""
    moved = registers.swapaxes(1, 2)
    found = np.empty_like(moved)
    found[each] = moved
    return found
