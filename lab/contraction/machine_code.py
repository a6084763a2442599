"""Machine code of a kernel, run on formulas: which loads and predicates lead to which stores.

It supports only the instructions that `kernels` need; any other stops the run with `UnknownCodeError`.
"""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .formulas import Formula, fused, negated, product, total

_LINE = re.compile(r"/\*([0-9a-f]{4,5})\*/\s+(?:(@!?U?P[T\d]+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
_IGNORED = ("NOP", "S2R", "S2UR", "CS2R", "BAR", "WARPSYNC", "MEMBAR", "ERRBAR", "CCTL", "BSSY", "BSYNC",
            "I2F", "F2I", "IABS", "DEPBAR", "FENCE", "CGAERRBAR", "YIELD", "R2UR")  # fmt: skip
_COUNTED = (
    "IMAD",
    "IADD3",
    "LOP3",
    "SHF",
    "LEA",
    "ISETP",
    "IMNMX",
    "VIADD",
    "UISETP",
    "PRMT",
    "UIADD3",
    "PLOP3",
    "ISUB",
)


class UnknownCodeError(Exception):
    """An unsupported machine instruction."""


def assembled(text: str, target: str, disassembler: str) -> list[str]:
    """Return the lines of machine code that ptxas emits for a text."""
    with tempfile.TemporaryDirectory() as folder:
        source, code = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(text)
        subprocess.run(["ptxas", f"-arch={target}", "-o", code, source], check=True, capture_output=True)
        listed = subprocess.run([disassembler, "-c", code], check=True, capture_output=True, text=True)
    return listed.stdout.splitlines()


class MachineRun:
    """One way through the machine code of a kernel.

    Parameters
    ----------
    lines : list of str
    first : int
        Offset of the first input; the inputs are consecutive words.
    chosen : mapping of int to bool
        Whether the integer that is loaded at each offset is other than zero.
    """

    def __init__(self, lines: list[str], chosen: Mapping[int, bool]):
        self.chosen = chosen
        self.registers: dict[str, Formula] = {}
        self.predicates: dict[str, bool] = {"PT": True, "!PT": False}
        self.stored: dict[int, Formula] = {}
        code: list[tuple[str, str, list[str]]] = []
        labels: dict[str, int] = {}
        for line in lines:
            label = re.match(r"(\.L_x_\d+):", line.strip())
            if label:
                labels[label[1]] = len(code)
            found = _LINE.search(line)
            if found:
                code.append((found[2] or "", found[3], [x.strip() for x in found[4].split(",")]))
        at = steps = 0
        while at < len(code):
            guard, opcode, operands = code[at]
            at += 1
            steps += 1
            if steps > 20_000:
                raise UnknownCodeError("it does not end")
            if guard and opcode.partition(".")[0] in _COUNTED and not self._known(guard[1:]):
                self._forget(operands)
                continue
            if guard and not self._holds(guard[1:]):
                continue
            if opcode == "EXIT":
                return
            if opcode == "BRA":
                target = re.search(r"\.L_x_\d+", operands[-1])
                if len(operands) > 1 and not all(self._holds(x) for x in operands[:-1]):
                    continue
                if target is None:
                    raise UnknownCodeError(f"{opcode} {operands}")
                at = labels[target[0]]
                continue
            self._step(opcode, operands)

    def _known(self, name: str) -> bool:
        return name.replace("U", "").lstrip("!") in self.predicates

    def _holds(self, name: str) -> bool:
        name = name.replace("U", "")
        if name in self.predicates:
            return self.predicates[name]
        if name.startswith("!") and name[1:] in self.predicates:
            return not self.predicates[name[1:]]
        raise UnknownCodeError(f"a predicate {name} that is not known")

    def _value(self, text: str) -> Formula:
        text = text.replace(".reuse", "").strip()
        if text.startswith("-"):
            return negated(self._value(text[1:]))
        if text.startswith("|"):
            return "abs", self._value(text.strip("|"))
        if text.startswith(("RZ", "URZ")):
            return "number", 0
        if re.fullmatch(r"U?R\d+", text):
            return self.registers.get(text, ("unknown", text))
        try:
            value = float(text.replace("+INF", "inf").replace("+QNAN", "nan"))
        except ValueError:
            return "text", text
        return "number", int.from_bytes(struct.pack("<f", value), "little")

    def _step(self, opcode: str, operands: list[str]) -> None:
        name, *words = opcode.split(".")
        flags = " ".join(sorted(word for word in words if word in ("FTZ", "SAT", "RZ", "RM", "RP")))
        if name in ("LDG", "LD"):
            self.registers[operands[0]] = "in", self._place(operands[1])
        elif name in ("STG", "ST"):
            self.stored[self._place(operands[0])] = self._value(operands[1])
        elif name in ("FMUL", "FADD", "FFMA", "DMUL", "DADD", "DFMA", "HMUL2", "HADD2", "HFMA2"):
            self._arithmetic(name[1:4], flags, operands, paired=name.startswith("H"))
        elif (name in ("MOV", "UMOV") or opcode in ("IMAD.MOV.U32", "IMAD.U32")) and "c[" not in operands[-1]:
            self.registers[operands[0]] = self._value(operands[-1])
        elif name in ("FSEL", "SEL"):
            kept = operands[1] if self._holds(operands[3]) else operands[2]
            self.registers[operands[0]] = self._value(kept)
        elif name == "FMNMX":
            pair = sorted((self._value(x) for x in operands[1:3]), key=repr)
            self.registers[operands[0]] = ("min" if self._holds(operands[3]) else "max"), flags, *pair
        elif name == "MUFU":
            self.registers[operands[0]] = words[0], self._value(operands[1])
        elif opcode.startswith("ISETP.") and words[0] in ("NE", "EQ") and operands[3] == "RZ":
            self._compare(words[0] == "EQ", words[-1], operands)
        elif name in ("UIADD3", "IADD3", "VIADD") and ".X" not in opcode:
            self._moved(operands)
        elif name in ("ULDC", "LDC", "MOV", "IMAD") and re.match(r"c\[0x0\]\[0x(160|210)\]", operands[-1]):
            self.registers[operands[0]] = "pointer", 0
        elif name in _COUNTED:
            self._forget(operands)
        elif name not in (*_IGNORED, "ULDC", "LDC", "MOV"):
            raise UnknownCodeError(f"{opcode} {', '.join(operands)}")

    def _arithmetic(self, kind: str, flags: str, operands: list[str], *, paired: bool) -> None:
        values = [self._value(x) for x in operands[1:]]
        if paired:  # numbers come in pairs
            values = [x for x, before in zip(values, [None, *values], strict=False) if x[0] != "number" or x != before]
        if len(values) < 2 + (kind == "FMA"):  # a number that is made
            result: Formula = ("made", *values)
        elif kind == "MUL":
            result = product(values[0], values[1], flags)
        elif kind == "FMA":
            result = fused(values[0], values[1], values[2], flags)
        elif not flags and (found := _sign_alone(values)) is not None:
            result = found
        else:
            result = total(values[0], values[1], flags)
        self.registers[operands[0]] = result

    def _compare(self, equal: bool, joint: str, operands: list[str]) -> None:
        value = self.registers.get(operands[2])
        if value is None or value[0] != "in":
            return self._forget(operands)
        holds = self.chosen.get(value[1], False) != equal  # type: ignore[call-overload]
        other = self._holds(operands[4]) if len(operands) > 4 else True
        self.predicates[operands[0]] = (holds or other) if joint == "OR" else (holds and other)
        return None

    def _place(self, text: str) -> int:
        found = re.search(r"\[(U?R\d+)(?:\.64)?(?:\+(-?0x[0-9a-f]+))?\]$", text)
        base = self.registers.get(found[1]) if found else None
        if found is None or base is None or base[0] != "pointer" or not isinstance(base[1], int):
            raise UnknownCodeError(f"an address {text}")
        return base[1] + int(found[2] or "0", 16)

    def _moved(self, operands: list[str]) -> None:
        """Add to a pointer, or to a value that is ignored here."""
        for x in operands[1:]:
            base = self.registers.get(x)
            if base is not None and base[0] == "pointer" and isinstance(base[1], int):
                bytes_ = [int(y, 16) for y in operands[1:] if re.fullmatch(r"-?0x[0-9a-f]+", y)]
                self.registers[operands[0]] = "pointer", base[1] + sum(bytes_)
                return
        self._forget(operands)

    def _forget(self, operands: list[str]) -> None:
        self.predicates.pop(operands[0], None)
        self.registers[operands[0]] = "integer", operands[0]


def _sign_alone(values: list[Formula]) -> Formula | None:
    """Return the operand of an addition of zero that only flips or clears its sign."""
    for x, zero in (values, values[::-1]):
        if zero in (("number", 0), ("number", 1 << 31)) and x[0] in ("neg", "abs"):
            return x
    return None
