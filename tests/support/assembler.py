"""Programs for the machine, from lines such as "add.u32 x, y, 1", "@p bra loop" and "loop:".

The rules:

1. A line is an instruction, with a guard in front of it if need be; or "label:"; or ".func name x y", behind which a
   function begins whose registers are x and y, and ".func name recursive x y", which may run several times at once.
2. A word is a number, a register, "%laneid" (a special register), "!p", "[x+4]", "frame+8", or "{x, y}".
3. "bra label", "brx.idx x, {label, label}", "call name", "call x" (through a register), "ret".
   "call name, (8:4), (12:4)": arguments and results as offset and bytes in the caller's frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from warpmma.isa import parse, present
from warpmma.machine import (
    Batch,
    Branch,
    BranchTable,
    Call,
    Callee,
    Constant,
    Costs,
    Frame,
    GlobalMemory,
    Grid,
    Guard,
    History,
    InstructionStep,
    Inverted,
    Limit,
    Program,
    ReadOnly,
    RegisterFile,
    Reporter,
    Return,
    RuntimeCall,
    Site,
    Slot,
    Sum,
    run_program,
)
from warpmma.operations import row

Array = np.ndarray[Any, Any]

_ALIASES = {"tid": ReadOnly("tid.x", "b32"), "lane": ReadOnly("laneid", "b32"), "warp": ReadOnly("warpid", "b32")}


class Assembler:
    """A text as a program.

    Parameters
    ----------
    text : str
    classes : dict of str to str
        Registers, and "b32", "b64", "b16" or "pred" of each.
    addresses : dict of str to int
        Names of addresses in global memory.
    parameters : dict of str to (parameters, results, frame)
        Of functions: offsets and bytes in their frames, and the bytes of these; of "" the bytes of the entry's frame.
    """

    def __init__(
        self, text: str, classes: Mapping[str, str], addresses: Mapping[str, int] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.slots = {name: Slot(i) for i, name in enumerate(classes)}
        self._classes, self._addresses = dict(classes), addresses or {}
        self._places: dict[str, int] = {}
        code: list[tuple[int, str]] = []
        functions: list[tuple[str, int]] = []
        lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
        for number, line in enumerate(lines, 1):
            if line.startswith(".func "):
                functions.append((line.removeprefix(".func "), len(code)))
            elif line.endswith(":"):
                self._places[line[:-1]] = len(code)
            else:
                code.append((number, line))
        callees = {}
        for line, first in functions:
            name, *names = line.split()
            recursive = names[:1] == ["recursive"]
            numbers = [self.slots[x].number for x in names[recursive:]]
            taken, given, frame = (parameters or {}).get(name, ((), (), 0))
            callees[name] = Callee(
                name=name, first=first, address=0x1000 + first, recursive=recursive, frame=frame, parameters=taken,
                results=given, slots=range(min(numbers, default=0), max(numbers, default=-1) + 1),
            )  # fmt: skip
        self._callees = callees
        steps = tuple(self._step(number, line) for number, line in code)
        self.program = Program(
            name="program", steps=steps, registers=tuple(self._classes.values()),  # type: ignore[arg-type]
            names=tuple(classes),
            callees=callees, frame=(parameters or {}).get("", 0),
        )  # fmt: skip

    def _step(self, number: int, line: str) -> Any:
        guard = None
        if line.startswith("@"):
            word, line = line[1:].split(" ", 1)
            guard = Guard(self.slots[word.lstrip("!")], negated=word[0] == "!")
        mnemonic, _, rest = line.partition(" ")
        words = re.findall(r"\{[^}]*\}|\([^)]*\)|[^,\s][^,]*", rest)
        common: dict[str, Any] = {"site": Site("program.ptx", number, mnemonic), "guard": guard}
        uniform: dict[str, Any] = {"uniform": True} if mnemonic.endswith(".uni") else {}
        match mnemonic.removesuffix(".uni"):
            case "bra":
                return Branch(**common, **uniform, to=self._places[words[0]])
            case "brx.idx":
                labels = [x.strip() for x in words[1].strip("{}").split(",")]
                return BranchTable(**common, index=self.slots[words[0]], to=tuple(self._places[x] for x in labels))
            case "ret":
                return Return(**common, **uniform)
            case "call":
                return self._call(common | uniform, words)
        record = parse(mnemonic) if mnemonic.startswith("mma.") else row(mnemonic, "sm_90")
        results = sum(len(x.names) for x in record.results)
        if mnemonic.startswith("mma."):
            words = [x.strip() for x in words[0].strip("{}").split(",")] + words[1:]
        return InstructionStep(
            **common, row=record, results=tuple(None if x == "_" else self.slots[x] for x in words[:results]),
            operands=tuple(self._operands(record, words[results:])),
        )  # fmt: skip

    def _operands(self, record: Any, words: list[str]) -> Iterator[Any]:
        given = [one.strip() for text in words for one in text.strip("{}").split(",") if one]
        there = present(record.sources, len(given), lambda x: len(x.names)) or list(record.sources)
        kinds = iter(given)
        for spec in record.sources:
            for _ in spec.names:
                if spec not in there:
                    yield None
                elif (text := next(kinds, None)) is not None:
                    yield self._operand("imm" if spec.literal else spec.kind, text)
        for text in kinds:
            yield self._operand("b32", text)

    def _call(self, common: dict[str, Any], words: list[str]) -> Call:
        def ranges(text: str) -> tuple[tuple[int, int], ...]:
            pairs = [x.split(":") for x in text.strip("()").split() if x]
            return tuple((int(a), int(b)) for a, b in pairs)

        more: dict[str, Any] = {}
        if len(words) > 1:
            more = {"arguments": ranges(words[1]), "results": ranges(words[2])}
        return Call(**common, **more, to=self.slots.get(words[0], words[0]))

    def _operand(self, kind: Any, text: str) -> Any:
        if text[0] == "!":
            return Inverted(self.slots[text[1:]])
        if text.startswith("["):
            base, _, offset = text.strip("[]").partition("+")
            return Sum(self._operand(kind, base), int(offset or "0"))
        if text.startswith("frame"):
            return Frame(int(text.partition("+")[2] or "0"))
        if text.startswith("%"):
            name, _, of = text[1:].partition(":")
            return ReadOnly(name, of or "b32")  # type: ignore[arg-type]
        if text in self.slots or text in _ALIASES:
            return self.slots.get(text) or _ALIASES[text]
        if text in self._addresses:
            return Constant(self._addresses[text], "b64")
        if text in self._callees:
            return Constant(self._callees[text].address, "b64")
        return Constant(int(text, 0), kind)


def classes_of(registers: str, predicates: str, wide: str) -> dict[str, str]:
    return {
        **dict.fromkeys(registers.split(), "b32"),
        **dict.fromkeys(wide.split(), "b64"),
        **dict.fromkeys(predicates.split(), "pred"),
    }


def batch_of(
    blocks: int | range,
    threads: int,
    policy: Any = "error",
    arrays: tuple[Array, ...] = (),
    shared: int = 4096,
    seed: int = 0,
) -> tuple[Batch, Costs, list[int]]:
    reporter, costs = Reporter(policy), Costs()
    memory = GlobalMemory(reporter)
    addresses = [memory.add(x, f"array {i}") for i, x in enumerate(arrays)]
    batch = Batch(
        blocks=blocks if isinstance(blocks, range) else range(blocks), threads=threads, target="sm_90", memory=memory,
        shared=shared, reporter=reporter, costs=costs, history=History(), seed=seed,
    )  # fmt: skip
    return batch, costs, addresses


def go(
    text: str, *, threads: int = 64, blocks: int = 1, policy: Any = "error", arrays: tuple[Array, ...] = (),
    registers: str = "x y z at", predicates: str = "p q", wide: str = "wide", seed: int = 0,
    limit: Limit | None = None, runtime_calls: Mapping[str, RuntimeCall] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> tuple[RegisterFile, Costs]:  # fmt: skip
    batch, costs, addresses = batch_of(blocks, threads, policy, arrays, seed=seed)
    classes = classes_of(registers, predicates, wide)
    program = Assembler(text, classes, {f"a{i}": x for i, x in enumerate(addresses)}, parameters).program
    grid = Grid(blocks=(blocks, 1, 1), threads=(threads, 1, 1), shared=4096)
    values = run_program(
        batch, program, grid, limit=limit or Limit(instructions=10**7), runtime_calls=runtime_calls or {}, keep=True
    )
    file = RegisterFile(batch.shape[:2])
    for name, kind, value in zip(classes, classes.values(), values, strict=True):
        file.declare(kind if kind == "pred" else int(kind[1:]), name)  # type: ignore[arg-type]
        file.put(name, value, np.ones(batch.shape, bool))
    return file, costs
