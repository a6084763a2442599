"""`ld`, `ldu` and `st` of a GPU beside the simulator: every width, type, vector, order and cache operator.

1. A block is one warp. Of a load the registers of all lanes are compared, of a store what it left in memory. Registers
   are of each class that the type allows, by turns: wider ones are extended, or stored in part.
2. Memory has random bytes. Loads read any aligned places, `ldu` one for all lanes; stores write different ones.
3. Global and shared memory are the block's, local memory is the lane's. Generic addresses are of global memory, and in
   every second piece of shared memory, if the form is not for global memory alone. Constant memory and parameters of an
   entry are read at drawn places. A parameter of a function is written by its caller and read by the function with one
   type, as compilers do: ptxas keeps it in registers, and of what is written twice in different sizes it loses parts.
   `ld.param::func.b128` is left out: ptxas 13.0 loses its upper half.
4. Forms that differ in the letter of the type alone, as `ld.b32`, `ld.u32`, `ld.s32` and `ld.f32`, run by turns, and
   are counted under the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ..._arrays import Array
from ..._records import Shown
from ...operations import Access, row, rows
from ...registers import LANES
from .kernel_parts import CHUNK, POLICY, dumped, entry, filled, loaded, pointed, stored
from .launched_cases import LaunchedWork, Place

__all__ = ["AccessForm", "access_forms"]

_OWN, _MOST = 64, 16  # bytes of a lane in local memory, and of a function's parameter
_TABLE, _GIVEN, _HEAD = 512, 1024, 64  # of constant memory, of an entry's parameter, and of the addresses before that
_GLOBAL_ALONE = ("L1::", "L2::")
_CLASSES: Mapping[int, tuple[int, ...]] = MappingProxyType({8: (16, 32, 64), 16: (16, 32, 64), 32: (32, 64)})

Lines = list[str]


def access_forms(target: str) -> Iterator[tuple[Access, ...]]:
    """List the forms of a target: those that differ in the letter of the type alone together (rule 4)."""
    found: dict[str, list[Access]] = {}
    for one in rows(target):
        if isinstance(one, Access) and not (one.bits == 128 and "ld.param::func" in one.mnemonic):
            found.setdefault(f"{one.mnemonic.rpartition('.')[0]}.b{one.bits}", []).append(one)
    return (tuple(sorted(some, key=lambda x: x.mnemonic)) for some in found.values())


@dataclass(frozen=True, kw_only=True, eq=False)
class AccessForm(Shown):
    """Some `ld`, `ldu` or `st`, for `LaunchComparison`; the first has a type of bits."""

    rows: tuple[Access, ...]

    @property
    def name(self) -> str:
        """Return the mnemonic of the first."""
        return self.rows[0].mnemonic

    @property
    def ptx(self) -> tuple[int, int]:
        """Return the version that has them."""
        return max(row.ptx for row in self.rows)

    def work(self, target: str, blocks: int, number: int, rng: np.random.Generator, place: Place) -> LaunchedWork:
        """Make the kernel and the arrays of a piece of work."""
        round_, turn = divmod(number, len(self.rows))
        row = self.rows[turn]
        classes = _CLASSES.get(row.bits, (64,)) if row.type[0] in "bsu" else (max(16, row.bits),)
        width = classes[round_ // 2 % len(classes)]
        return _WAYS[_way(row, round_)](row, blocks, width, rng)


def _way(row: Access, number: int) -> str:
    """Name the memory (rule 3)."""
    words = row.mnemonic.split(".")
    if "param::func" in words or (row.space == "param" and row.direction == "store"):
        return "function"
    if row.space == "generic":
        alone = "mmio" in words or words[0] == "ldu" or any(x.startswith(_GLOBAL_ALONE) for x in words)
        return "shared" if number % 2 and not alone else "global"
    return row.space.partition("::")[0]


def _statement(row: Access, place: str, width: int) -> tuple[list[str], Lines]:
    """Return declarations and lines of the instruction with registers `%d0`.. or `%a0`.. of a width."""
    letter = "d" if row.direction == "load" else "a"
    declared = [f".reg .b{width} %{letter}<{row.registers}>; .reg .b64 %policy; .reg .b128 %w;"]
    return declared, [*[POLICY] * row.hint, *_lines(row, place, _registers(row))]


def _lines(row: Access, place: str, registers: Sequence[str]) -> Lines:
    """Return the instruction with these registers; one of 128 bits has two, and `%w` between."""
    if row.bits == 128:
        pair, last = f"{{{', '.join(registers)}}}", ", %policy" * row.hint
        if row.direction == "load":
            return [f"{row} %w, [{place}]{last};", f"mov.b128 {pair}, %w;"]
        return [f"mov.b128 %w, {pair};", f"{row} [{place}], %w{last};"]
    names = {"p": place, "policy": "%policy"}
    names |= {f"{letter}{i}": x for letter in "da" for i, x in enumerate(registers)}
    return [row.statement(names.__getitem__)]


def _registers(row: Access) -> list[str]:
    letter = "d" if row.direction == "load" else "a"
    return [f"%{letter}{i}" for i in range(row.registers)]


def _values(row: Access, blocks: int, width: int, rng: np.random.Generator, times: int = 1) -> dict[str, Array]:
    """Make the array of the registers of so many: of a store drawn, of a load what it replaces."""
    word = np.dtype(f"u{width // 8}")
    return {"values": rng.integers(0, np.iinfo(word).max, (blocks, times * row.registers, LANES), word, endpoint=True)}


def _places(row: Access, blocks: int, size: int, rng: np.random.Generator) -> Array:
    """Make offsets in memory of some bytes, `[block, 1, lane]` (rule 2)."""
    slots = size // row.size
    if row.direction == "store":
        found = np.argsort(rng.random((blocks, 1, slots)), axis=-1)[..., :LANES]
    else:
        found = rng.integers(0, slots, (blocks, 1, LANES))
        if row.mnemonic.startswith("ldu"):
            found[...] = found[..., :1]
    return np.asarray(found * row.size).astype(np.uint32)


def _made(
    row: Access, arrays: dict[str, Array], declared: list[str], lines: Lines, text: str = "", tail: bytes = b""
) -> LaunchedWork:  # fmt: skip
    """Load the registers of a store before, and store those of a load after the instruction."""
    load = row.direction == "load"
    return LaunchedWork(
        text=text + entry(arrays, declared, lines, structure=_HEAD + len(tail) if tail else 0), arrays=arrays,
        compared=("values" if load else "memory",), outputs=len(arrays["values"]) * LANES, tail=tail,
    )  # fmt: skip


def _in_blocks(row: Access, blocks: int, width: int, rng: np.random.Generator, *, shared: bool) -> LaunchedWork:
    """Access global or shared memory."""
    size, load = CHUNK * max(1, row.size * LANES // CHUNK), row.direction == "load"
    arrays = {"memory": rng.integers(0, 256, (blocks, size), np.uint8), "offsets": _places(row, blocks, size, rng)}
    arrays |= _values(row, blocks, width, rng)
    declared, statement = _statement(row, "%near" if row.space.startswith("shared") else "%far", width)
    declared.append(".reg .b32 %here, %mine, %near, %offset; .reg .b64 %far, %wide;")
    lines = [*loaded("offsets", ["%offset"], 32)]
    lines += [] if load else loaded("values", _registers(row), width)
    if shared:
        declared.append(f".shared .align 32 .b8 room[{size}];")
        lines += ["mov.u32 %here, room; mad.lo.u32 %mine, %lane, 16, %here;", *filled("memory", "%mine", size)]
        lines += ["add.u32 %near, %here, %offset; cvt.u64.u32 %far, %near; cvta.shared.u64 %far, %far; bar.sync 0;"]
    else:
        lines += [pointed("memory", size), "cvt.u64.u32 %wide, %offset; add.u64 %far, %at, %wide;"]
    lines += statement
    if load:
        lines += stored("values", _registers(row), width)
    elif shared:
        lines += ["bar.sync 0;", *dumped("memory", "%mine", size)]
    return _made(row, arrays, declared, lines)


def _in_global(row: Access, blocks: int, width: int, rng: np.random.Generator) -> LaunchedWork:
    return _in_blocks(row, blocks, width, rng, shared=False)


def _in_shared(row: Access, blocks: int, width: int, rng: np.random.Generator) -> LaunchedWork:
    return _in_blocks(row, blocks, width, rng, shared=True)


def _in_local(row: Access, blocks: int, width: int, rng: np.random.Generator) -> LaunchedWork:
    """Access memory of a lane, which is filled before a store as well, and read after it."""
    words = [f"%w{i}" for i in range(_OWN // 4)]
    arrays = {
        "memory": rng.integers(0, 1 << 32, (blocks, len(words), LANES), np.uint32),
        "offsets": (row.size * rng.integers(0, _OWN // row.size, (blocks, 1, LANES))).astype(np.uint32),
        **_values(row, blocks, width, rng),
    }  # fmt: skip
    declared, statement = _statement(row, "%near", width)
    declared.append(
        f".local .align 32 .b8 own[{_OWN}]; .reg .b32 %offset, {', '.join(words)}; .reg .b64 %near, %wide;"
    )  # fmt: skip
    lines = [*loaded("offsets", ["%offset"], 32), *loaded("memory", words, 32)]
    lines += [f"st.local.b32 [own+{4 * i}], {x};" for i, x in enumerate(words)]
    lines += ["mov.u64 %near, own; cvt.u64.u32 %wide, %offset; add.u64 %near, %near, %wide;"]
    if row.direction == "load":
        return _made(row, arrays, declared, [*lines, *statement, *stored("values", _registers(row), width)])
    lines += [*loaded("values", _registers(row), width), *statement]
    lines += [f"ld.local.b32 {x}, [own+{4 * i}];" for i, x in enumerate(words)]
    return _made(row, arrays, declared, [*lines, *stored("memory", words, 32)])


def _in_constants(row: Access, blocks: int, width: int, rng: np.random.Generator) -> LaunchedWork:
    """Load from a table, the same in all kernels."""
    table = np.random.default_rng(0).integers(0, 256, _TABLE, np.uint8)
    arrays = {"offsets": _places(row, blocks, _TABLE, rng), **_values(row, blocks, width, rng)}
    declared, statement = _statement(row, "%near", width)
    declared.append(".reg .b32 %offset; .reg .b64 %near, %wide;")
    lines = [*loaded("offsets", ["%offset"], 32), "mov.u64 %near, table; cvt.u64.u32 %wide, %offset;"]
    lines += ["add.u64 %near, %near, %wide;", *statement, *stored("values", _registers(row), width)]
    text = f".const .align 32 .b8 table[{_TABLE}] = {{{', '.join(map(str, table.tolist()))}}};\n"
    return _made(row, arrays, declared, lines, text)


def _in_parameters(row: Access, blocks: int, width: int, rng: np.random.Generator) -> LaunchedWork:
    """Load from the entry's own parameter, a structure whose end is drawn."""
    arrays = {"offsets": _places(row, blocks, _GIVEN, rng), **_values(row, blocks, width, rng)}
    declared, statement = _statement(row, "%near", width)
    declared.append(".reg .b32 %offset; .reg .b64 %near, %wide;")
    lines = [*loaded("offsets", ["%offset"], 32), "mov.u64 %near, given; cvt.u64.u32 %wide, %offset;"]
    lines += [f"add.u64 %near, %near, %wide; add.u64 %near, %near, {_HEAD};", *statement]
    tail = rng.integers(0, 256, _GIVEN, np.uint8).tobytes()
    return _made(row, arrays, declared, [*lines, *stored("values", _registers(row), width)], tail=tail)


def _in_function(row: Access, blocks: int, width: int, rng: np.random.Generator) -> LaunchedWork:
    """Write a parameter of 16 bytes, and read all of it in the function, both with one type; compare registers."""
    element = f"{f'v{row.count}.' * (row.count > 1)}{row.type}"
    load = row if row.direction == "load" else _of_function("ld", "v2.b64" if row.bits == 128 else element)
    store = row if row.direction == "store" else _of_function("st", element)
    times, each = _MOST // row.size, row.registers
    registers = [f"%a{i}" for i in range(times * each)]
    arrays = {name: _values(row, blocks, width, rng, times)["values"] for name in ("given", "values")}
    parts = [(i * row.size, registers[i * each : i * each + each]) for i in range(times)]
    reads, writes = (
        [line for offset, some in parts for line in _lines(access, f"{name}+{offset}", some)]
        for access, name in ((load, "a"), (store, "x"))
    )
    declared, step = f".reg .b{width} %a<{len(registers)}>; .reg .b128 %w;", LANES * width // 8
    body = [
        declared, ".reg .b64 %out; ld.param.b64 %out, [out];", *reads,
        *(f"st.global.b{width} [%out+{i * step}], {x};" for i, x in enumerate(registers)), "ret;",
    ]  # fmt: skip
    function = f".func taken(.param .align 16 .b8 a[{_MOST}], .param .b64 out)\n{{ {' '.join(body)} }}\n"
    lines = [
        *loaded("given", registers, width), pointed("values", step * len(registers), width // 8),
        f"{{ .param .align 16 .b8 x[{_MOST}]; .param .b64 y;", *writes,
        "st.param.b64 [y], %at; call taken, (x, y); }",
    ]  # fmt: skip
    text = function + entry(arrays, [declared], lines)
    return LaunchedWork(text=text, arrays=arrays, compared=("values",), outputs=blocks * LANES * times)


def _of_function(opcode: str, element: str) -> Access:
    found = row(f"{opcode}.param::func.{element}")
    assert isinstance(found, Access)
    return found


_WAYS: Mapping[str, Callable[[Access, int, int, np.random.Generator], LaunchedWork]] = MappingProxyType({
    "global": _in_global, "shared": _in_shared, "local": _in_local, "const": _in_constants, "param": _in_parameters,
    "function": _in_function,
})  # fmt: skip
