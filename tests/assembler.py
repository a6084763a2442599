"""Programs for the machine, from lines such as "add.u32 x, y, 1", "@p bra loop" and "loop:"."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpmma.machine import Batch, Costs, GlobalMemory, History, RegisterFile, Reporter, Site, Step, run
from warpmma.operations import row

Array = np.ndarray[Any, Any]


class Assembler:
    """Lines such as "add.u32 x, y, 1", "@p bra loop" and "loop:", as steps."""

    def __init__(self, text: str) -> None:
        lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
        self.steps: list[Step] = []
        places: dict[str, int] = {}
        code: list[tuple[int, str]] = []
        for number, line in enumerate(lines, 1):
            if line.endswith(":"):
                places[line[:-1]] = len(code)
            else:
                code.append((number, line))
        for number, line in code:
            self.steps.append(self._step(number, line, places))

    def _step(self, number: int, line: str, places: dict[str, int]) -> Step:
        guard = ""
        if line.startswith("@"):
            guard, line = line[1:].split(" ", 1)
        mnemonic, _, rest = line.partition(" ")
        words = [self._word(x) for x in rest.split(", ")] if rest else []
        common: dict[str, Any] = {
            "site": Site("program.ptx", number, mnemonic), "guard": guard.lstrip("!"), "negated": guard[:1] == "!",
        }  # fmt: skip
        if mnemonic == "bra":
            return Step(**common, to=places[words[0]])
        record = row(mnemonic, "sm_90")
        results = len(getattr(record, "outputs", ())) or getattr(record, "count", 0) * mnemonic.startswith("ld")
        return Step(**common, row=record, results=words[:results], operands=words[results:])

    @staticmethod
    def _word(text: str) -> Any:
        return int(text, 0) if text[0].isdigit() else text


def go(
    text: str, *, threads: int = 64, blocks: int = 1, policy: Any = "error", arrays: tuple[Array, ...] = (),
    registers: str = "x y z at", predicates: str = "p q",
) -> tuple[RegisterFile, Costs]:  # fmt: skip
    reporter, costs = Reporter(policy), Costs()
    memory = GlobalMemory(reporter)
    addresses = [memory.add(x, f"array {i}") for i, x in enumerate(arrays)]
    batch = Batch(
        blocks=range(blocks), threads=threads, target="sm_90", memory=memory, shared=4096, reporter=reporter,
        costs=costs, history=History(),
    )  # fmt: skip
    file = RegisterFile(batch.shape[:2])
    file.declare(32, "tid", "lane", "warp", *registers.split())
    file.declare(64, *(f"a{i}" for i in range(len(arrays))), "wide")
    file.declare("pred", *predicates.split())
    linear = np.arange(batch.shape[1] * 32).reshape(1, -1, 32)
    for name, values in (("tid", linear), ("lane", linear % 32), ("warp", linear // 32)):
        file.write(name, values)
    for i, address in enumerate(addresses):
        file.write(f"a{i}", np.uint64(address))
    run(batch, Assembler(text).steps, file)
    return file, costs
