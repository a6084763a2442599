"""The instruction table against ptxas."""

from __future__ import annotations

import re
import subprocess
from functools import lru_cache
from pathlib import Path

import pytest
from isa_cases import ORDERS
from oracles import skip_without

from warpmma.isa import TARGET_NAMES as TARGETS
from warpmma.isa import Instruction, Version, instructions, parse
from warpmma.layouts import Operand

VERSIONS: list[Version] = [
    (major, minor) for major, last in ((6, 5), (7, 8), (8, 8), (9, 5)) for minor in range(last + 1)
]
MINIMA = sorted({(i.targets, i.ptx) for i in instructions()}, key=lambda group: (group[1], -len(group[0])))
each_minimum = pytest.mark.parametrize(
    ("targets", "version"), MINIMA, ids=[f"{targets[0]}-{a}.{b}" for targets, (a, b) in MINIMA]
)


def statement(instruction: Instruction, mnemonic: str | None = None) -> str:
    """One instruction with operands: docs/specification/ptx.md 1.1."""

    def fragment(operand: Operand, first: int) -> str:
        bank = {"f32": "f", "f64": "d"}.get(instruction.type(operand), "r")
        count = instruction.layout(operand).registers
        return "{" + ", ".join(f"%{bank}{first + r}" for r in range(count)) + "}"

    operands = [fragment("D", 0), fragment("A", 8), fragment("B", 16), fragment("C", 24)]
    operands += ["%r32", "0"] if instruction.sparse else []
    operands += ["%r33", "{0, 0}", "%r34", "{0, 0}"] if instruction.block_scale else []
    return f"{mnemonic or instruction} {', '.join(operands)};"


class Ptxas:
    """The assembler, asked which of some statements it refuses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.takes = lru_cache(maxsize=None)(self._takes)
        known = re.search(r"current version is '(\d+)\.(\d+)'", self._ptxas("sm_80", (99, 9), [])[1])
        assert known is not None
        self.latest: Version = int(known[1]), int(known[2])

    def _ptxas(self, target: str, version: Version, statements: list[str]) -> tuple[bool, str]:
        """Return whether a file of statements, the first in line 6, assembles, and what ptxas says."""
        header = [
            ".version {}.{}".format(*version), f".target {target}", ".address_size 64", ".entry kernel() {",
            ".reg .b32 %r<40>; .reg .f32 %f<40>; .reg .f64 %d<40>;",
        ]  # fmt: skip
        source = self.folder / "test.ptx"
        source.write_text("\n".join([*header, *statements, "ret;", "}", ""]))
        command = ["ptxas", f"-arch={target}", str(source), "-o", str(self.folder / "test.cubin")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode == 0, done.stderr

    def _takes(self, target: str, version: Version) -> bool:
        return self._ptxas(target, version, [])[0]

    def refused(self, target: str, version: Version, statements: list[str]) -> set[int]:
        assembles, said = self._ptxas(target, version, statements)
        errors = {int(line) - 6 for line in re.findall(r"line (\d+); (?:error|fatal)", said)}
        assert assembles == (not errors), said
        return errors


@pytest.fixture(scope="module")
def ptxas(tmp_path_factory: pytest.TempPathFactory) -> Ptxas:
    skip_without("ptxas")
    return Ptxas(tmp_path_factory.mktemp("ptxas"))


@pytest.mark.parametrize("target", TARGETS)
def test_ptxas_takes_the_instructions_of_a_target_and_no_others(ptxas: Ptxas, target: str) -> None:
    if not ptxas.takes(target, ptxas.latest):
        pytest.skip(f"this ptxas does not know {target}")
    asked = [i for i in instructions() if i.ptx <= ptxas.latest]
    refused = ptxas.refused(target, ptxas.latest, [statement(i) for i in asked])
    assert {str(asked[n]) for n in refused} == {str(i) for i in asked if target not in i.targets}


@each_minimum
def test_ptxas_takes_an_instruction_from_its_ptx_version_on(
    ptxas: Ptxas, targets: tuple[str, ...], version: Version
) -> None:
    asked = [statement(i) for i in instructions() if (i.targets, i.ptx) == (targets, version)]
    target = next((t for t in targets if ptxas.takes(t, version)), None)
    if target is None:
        pytest.skip("this ptxas does not know the PTX version")
    assert ptxas.refused(target, version, asked) == set()


@each_minimum
def test_ptxas_refuses_an_instruction_before_its_ptx_version(
    ptxas: Ptxas, targets: tuple[str, ...], version: Version
) -> None:
    asked = [statement(i) for i in instructions() if (i.targets, i.ptx) == (targets, version)]
    before = VERSIONS[VERSIONS.index(version) - 1]
    target = next((t for t in targets if ptxas.takes(t, before)), None)
    if target is None:
        pytest.skip("their targets came with this PTX version, or this ptxas knows no older one")
    assert ptxas.refused(target, before, asked) == set(range(len(asked)))


def test_ptxas_takes_the_orders_in_use_elsewhere(ptxas: Ptxas) -> None:
    if not ptxas.takes("sm_120a", ptxas.latest):
        pytest.skip("this ptxas does not know sm_120a")
    statements = [statement(parse(written), written) for written, _ in ORDERS]
    assert ptxas.refused("sm_120a", ptxas.latest, statements) == set()
