"""Writers of random programs: choices from a seed, registers, operands, instructions of `forms`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from .forms import Form, forms
from .launches import words

__all__ = ["POOL", "Choices", "Writer"]

Item = TypeVar("Item")

POOL = {"h": 8, "r": 14, "d": 8, "p": 5}
"""Registers of each class that instructions read and write: %h, %r, %d, %p. Others have names of their own."""

_COMMUTED = ("add", "sub", "mul", "fma", "min", "max")
"""f64 instructions whose result is one of several NaN, in an order that ptxas may change: they get at most one NaN."""

_OPAQUE = re.compile(r"cvt.*\.sat\.(f16|f32|f64)\.(f16|f32|f64)|sh[lr]\..*|(abs|neg)(\.ftz)?\.b?f.*|cvt.*\.tf32\.f32")
"""What ptxas simplifies by the instruction that made the last operand: it drops `.sat` where that had one, of integers
too, shifts by known zeros in the low bits of a count, takes `abs` of two halves for nothing where an f32 of that
register was not negative, `neg` of `neg` and of a sum of another type too, and of two halves takes one to tf32."""

_OPAQUE_RESULT = re.compile(r"set\..*\.(b?f|u|s)16\.b?f16|(abs|neg)(\.ftz)?\.b?f.*")
"""What ptxas takes for 0 in the upper bits of a register that has others there, and what it makes part of the
instruction that reads it: a NaN keeps its bits then."""

_NUMBER = "0d3FF8000000000000"
_GUARDED = re.compile(
    r"(mov|selp)\.(([bus](32|64))|f32|f64)|(add|sub)\.[us](32|64)|(mul|mad)\.lo\.[us]32|mul\.wide\.[us]32"
    r"|(and|or|xor|not)\.b(32|64)|shl\.b32|shr\.[bus]32|lop3\.b32|(min|max)(\.ftz)?\.(f32|[us]32)"
    r"|(add|sub|mul|fma)\.(rn|rz|rm|rp)(\.ftz)?\.f(32|64)|(add|mul|fma)\.rn(\.ftz)?\.f16x2"
    r"|setp\.\w+(\.ftz)?\.([us]32|b32|f32|f64)"
)
"""What is guarded: ptxas 13.0 makes one instruction of each. Of others it makes several, of which not all have it."""

BITS = {"h": 16, "r": 32, "d": 64}
_LIMITS = {"8": 255, "5": 31, "o": 63}


class Choices:
    """A stream of choices that a seed decides, the same everywhere."""

    def __init__(self, seed: int) -> None:
        self._seed, self._round = seed, 0
        self._words: list[int] = []

    def below(self, count: int) -> int:
        """Return a number from 0 to count - 1."""
        if not self._words:
            self._words = words(self._seed << 12 | self._round, 256).tolist()
            self._round += 1
        return (self._words.pop() >> 11) % count

    def chance(self, percent: int) -> bool:
        """Return True with a probability in percent."""
        return self.below(100) < percent

    def of(self, items: Sequence[Item]) -> Item:
        """Return one of the items."""
        return items[self.below(len(items))]


class Writer:
    """Lines of a program, with what it takes to write another.

    Attributes
    ----------
    mask : int or None
        Exactly the lanes of every warp that execute the statements being written; None if that
        depends on values.
    """

    def __init__(self, seed: int, target: str) -> None:
        self.choose = Choices(seed)
        self.target = target
        self.lines: list[str] = []
        self.mask: int | None = 0xFFFFFFFF
        self._families = forms(target)
        self._names = 0

    def __call__(self, *lines: str) -> None:
        """Write lines."""
        self.lines += [f"\t{line}" for line in lines]

    def fresh(self, stem: str) -> str:
        """Return a name that nothing else has in this program."""
        self._names += 1
        return f"{stem}_{self._names}"

    def temporary(self, kind: str, type_: str = "") -> str:
        """Declare a register and return its name."""
        name = self.fresh(f"%t{kind}")
        self(f".reg .{type_ or {'p': 'pred'}.get(kind) or f'b{BITS[kind]}'} {name};")
        return name

    def register(self, kind: str) -> str:
        """Return one of the pool."""
        return f"%{kind}{self.choose.below(POOL[kind])}"

    def limited(self, kind: str, most: int, register: str = "") -> str:
        """Return a register limited to a power of two minus 1."""
        made = self.temporary(kind)
        self(f"and.b{BITS[kind]} {made}, {register or self.register(kind)}, {most};")
        return made

    def operand(self, letter: str, form: Form) -> str:
        """Return an operand of a form, after writing the statements that it needs."""
        if letter == "n":
            return str(self.choose.below(256))
        if letter == "!":
            return "!" * self.choose.below(2) + self.register("p")
        if letter in _LIMITS:
            made = self.limited("r", _LIMITS[letter])
            if letter == "o":
                self(f"sub.s32 {made}, {made}, 32;")
            return made
        if letter == "/":
            kind = form.results[0]
            made = self.limited(kind, (1 << BITS[kind] - 1) - 1)
            self(f"or.b{BITS[kind]} {made}, {made}, 1;")
            return made
        immediate = (
            letter in "rd"
            and form.mnemonic[0] not in "v"
            and not form.mnemonic.startswith("mov")
            and self.choose.chance(5)
        )
        if immediate and any(x in form.mnemonic for x in (".u32", ".s32", ".u64", ".s64")) and "f" not in form.mnemonic:
            return str(self.choose.of((3, 7, 31, 255, 4097, 65535, 0x12345678)))
        return self.register(letter)

    def number(self, register: str, test: str = "number") -> str:
        """Return an f64 register with the value of another one, or a number if that is NaN."""
        is_number, made = self.temporary("p"), self.temporary("d")
        self(f"testp.{test}.f64 {is_number}, {register};", f"selp.f64 {made}, {register}, {_NUMBER}, {is_number};")
        return made

    def opaque(self, register: str, kind: str) -> str:
        """Return a register with the value of another one, unknown to ptxas."""
        if register[:1] != "%":
            return register
        made = self.temporary(kind)
        self(f"xor.b{BITS[kind]} {made}, {register}, %zero_{kind};")
        return made

    def instruction(self, guarded: bool = True) -> None:
        """Write any instruction of any family."""
        form = self.choose.of(self.choose.of(self._families))
        operands: list[str] = []
        for letter in form.operands:  # ptxas folds x - x and max(x, x), even with a carry or a NaN
            operand = self.operand(letter, form)
            while operand in operands and operand[:1] == "%":
                operand = self.operand(letter, form)
            operands.append(operand)
        if _OPAQUE.fullmatch(form.mnemonic):
            operands[-1] = self.opaque(operands[-1], form.operands[-1])
        if form.mnemonic.endswith(".f64") and form.mnemonic.partition(".")[0] in _COMMUTED:
            operands[1:] = [self.number(x) for x in operands[1:]]
        guarded = guarded and _GUARDED.fullmatch(form.mnemonic) is not None
        results: list[str] = []
        used = {operand.lstrip("!") for operand in operands} if form.paired else set()  # ptxas may read it afterwards
        for letter in form.results:
            result = self.register(letter)
            while result in results or result in used:
                result = self.register(letter)
            results.append(result)
        guard = f"@{'!' * self.choose.below(2)}{self.register('p')} " if guarded and self.choose.chance(30) else ""
        separator = "|" if form.paired else ", "
        self(f"{guard}{form.mnemonic} {separator.join(results)}, {', '.join(operands)};")
        if _OPAQUE_RESULT.fullmatch(form.mnemonic):
            result, letter = results[0], form.results[0]
            self(f"xor.b{BITS[letter]} {result}, {result}, %zero_{letter};")
