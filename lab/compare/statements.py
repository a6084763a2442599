"""Compare which PTX statements ptxas and warpmma accept.

    python -m lab.compare.statements --statements 5000 --seed 1 --out differences.json

Legal statements are drawn from the signatures of all rows; one token of each is added, dropped, doubled or exchanged;
ptxas (13.0, for sm_90a and sm_120a) and `ptx check` accept or reject the result. One kernel holds many statements:
ptxas names the lines that it rejects, and runs again without them until it accepts the rest.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

import warpmma as wm
from warpmma import ptx
from warpmma.errors import PtxError, WarpmmaError
from warpmma.isa import OperandSpec, PtxInstruction
from warpmma.operations import packing, rows, unpacking

TARGETS = ("sm_90a", "sm_120a")
HEAD = """.version 9.0
.target {target}
.address_size 64
.global .align 16 .b32 gl[8];
.const .align 16 .b32 cn[8];
.visible .entry k(.param .u64 pp, .param .u64 qq)
{{
.shared .align 16 .b32 sh[64]; .local .align 16 .b32 lc[8];
.reg .pred %p<33>; .reg .b8 %c<9>; .reg .b16 %h<33>; .reg .b32 %r<65>; .reg .b64 %rd<33>; .reg .f32 %f<65>;
.reg .f64 %fd<33>; .reg .b128 %q<9>;
"""
_LINES = HEAD.count("\n")
_REGISTERS = {"b8": "%c{}", "b16": "%h{}", "b32": "%r{}", "b64": "%rd{}", "pred": "%p{}"}
_STRANGERS = ("%r1", "%rd1", "%f1", "%p1", "%h1", "%fd1", "7", "0", "-1", "0.5", "0f3F800000", "sh", "gl", "[%rd1]",
              "[sh]", "{%r1, %r2}", "_", "%tid.x", "!%p1", "[%rd1+4]", "-%r1", "%q1", "%r1+4", "WARP_SZ")  # fmt: skip
_WORDS = ("sync", "aligned", "shared", "global", "ftz", "sat", "rn", "u32", "f32", "b64", "v2", "cta", "gpu", "relaxed")
_TWICE = ("row", "col", "pred")  # words that legal mnemonics may have twice, as types


class Statement(NamedTuple):
    """The tokens of a statement: mnemonic, operands and separators, in the order of the text."""

    mnemonic: str
    operands: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.mnemonic} {''.join(x if x == '|' else x + ' ' * (x == ',') for x in self.operands)};"


def legal(random: Random, instruction: PtxInstruction) -> Statement:
    """Draw registers and numbers for an instruction."""
    parts: list[str] = []
    for x in instruction.signature:
        if x.implicit or (x.optional and random.random() < 0.5):
            continue
        if parts:
            parts.append("|" if x.paired else ",")
        parts.append(_operand(random, x))
    return Statement(str(instruction), tuple(parts))


def _operand(random: Random, x: OperandSpec) -> str:
    if x.sink == "only":
        return "_"
    if x.role == "address":
        return f"[{'%rd' if x.kind == 'b64' else '%r'}{random.randrange(1, 9)}{random.choice(('', '', '+16'))}]"
    if x.kind == "imm":
        return str(random.choice([*islice(x.values, 4)] or [0, 1, 2, 3]))
    if x.values:
        return str(next(iter(x.values)))
    single = x.type.removesuffix("x1")
    form = {"f32": "%f{}", "f64": "%fd{}"}.get(single, _REGISTERS[x.declared])
    names = [form.format(i) for i in random.sample(range(1, 9 if form == "%c{}" else 33), len(x.names))]
    if len(names) == 2 and x.braces == "never":
        return f"%q{random.randrange(1, 9)}"
    inside = ", ".join(names)
    return f"{{{inside}}}" if x.braces == "always" or len(names) > 1 else inside


def mutated(random: Random, given: Statement) -> Statement:
    """Add, drop, double or exchange one token."""
    words, operands = given.mnemonic.split("."), [*given.operands]
    how = random.choice(("add", "drop", "double", "exchange"))
    if not operands or random.random() < 0.25:
        at = random.randrange(1, len(words)) if len(words) > 1 else 0
        if how == "add" or len(words) == 1:
            words.insert(at + 1, random.choice(_WORDS))
        elif how == "drop":
            del words[at]
        elif how == "double":
            words.insert(at, words[at])
        else:
            words[at] = random.choice(_WORDS)
        return Statement(".".join(words), given.operands)
    at = random.randrange(len(operands))
    if operands[at][0] in "{[" and random.random() < 0.6:
        operands[at] = _inside(random, operands[at], how)
    elif how == "add":
        operands[at:at] = [random.choice(_STRANGERS), ","] if operands[at] not in ",|" else [","]
    elif how == "drop":
        del operands[at]
    elif how == "double":
        operands[at:at] = [operands[at], ","] if operands[at] not in ",|" else [operands[at]]
    else:
        operands[at] = random.choice(_STRANGERS)
    return Statement(given.mnemonic, tuple(operands))


def _inside(random: Random, text: str, how: str) -> str:
    """Change one token inside braces or brackets."""
    items = [x.strip() for x in text[1:-1].split(",")]
    at = random.randrange(len(items))
    if how == "add":
        items.insert(at, random.choice(_STRANGERS))
    elif how == "drop":
        del items[at]
    elif how == "double":
        items.insert(at, items[at])
    else:
        items[at] = random.choice(_STRANGERS)
    return f"{text[0]}{', '.join(items)}{text[-1]}"


# Verdicts


def ours(statement: str, target: str) -> str:
    """Return our error for a statement; "" if it is legal."""
    text = f"{HEAD.format(target=target)}{statement}\nL: ret;\n}}\n"
    try:
        problems = [str(x) for entry in ptx.load(text).check().entries for x in entry.problems]
    except PtxError as error:
        return str(error).splitlines()[0]
    return problems[0].splitlines()[0] if problems else ""


def refused(statements: Sequence[str], target: str, head: str = HEAD) -> dict[int, str]:
    """Return the errors of ptxas for statements behind a head, by their numbers."""
    found: dict[int, str] = {}
    _ask(statements, list(range(len(statements))), target, head, found)
    return found


def _ask(statements: Sequence[str], numbers: list[int], target: str, head: str, found: dict[int, str]) -> None:
    while numbers:
        text = head.format(target=target) + "".join(statements[i] + "\n" for i in numbers) + "L: ret;\n}\n"
        command = ["ptxas", f"-arch={target}", "-O0", "/dev/stdin", "-o", "/dev/null"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        said = re.findall(r"/dev/stdin, line (\d+); (?:error|fatal)\s*: (.*)", done.stderr)
        lines = {int(line) - _LINES - 1: what for line, what in reversed(said)}
        bad = {numbers[at]: what for at, what in lines.items() if 0 <= at < len(numbers)}
        if not bad and len(numbers) == 1:
            bad = {numbers[0]: done.stderr.strip() or f"ptxas ended with {done.returncode}"}
        if not bad:  # no line is named
            half = len(numbers) // 2
            _ask(statements, numbers[:half], target, head, found)
            numbers = numbers[half:]
            continue
        found |= bad
        numbers = [i for i in numbers if i not in bad]


class Verdict(NamedTuple):
    """A statement with the errors of ptxas and of warpmma."""

    target: str
    statement: str
    mutated: bool
    ptxas: str
    ours: str


class _Known(NamedTuple):
    """A difference that docs/programs.md lists: which side accepts the statement, and how to recognise it.

    The other side accepts the result of `plain`, or the statement matches `pattern`.
    """

    by: str
    what: str
    plain: Callable[[str], str] | None = None
    pattern: str = ""


def _once(text: str) -> str:
    """Remove repeated qualifiers, other than types, from a mnemonic."""
    mnemonic, blank, rest = text.partition(" ")
    words = mnemonic.split(".")
    kept = (x for i, x in enumerate(words) if x not in words[:i] or x in _TWICE or any(c.isdigit() for c in x))
    return ".".join(kept) + blank + rest


def _bits(text: str) -> str:
    """Replace float registers by bit registers."""
    return re.sub(r"%f(\d)", r"%r\1", re.sub(r"%fd(\d)", r"%rd\1", text))


KNOWN = (
    _Known("ours", "a floating-point register where integers or bits are expected", plain=_bits),
    _Known("ours", "a number as a whole fragment", pattern=r"mma\..*\{(-?\d+|WARP_SZ)\}.*Arguments mismatch"),
    _Known("ours", "a float in redux", pattern=r"^redux\..*Arguments mismatch"),
    _Known("ours", "an operand or a modifier newer than .version", pattern=r"scale_vec::4X.*\.ue8m0.*Illegal modifier"),
    _Known("ours", "a number for s16x2 and u16x2", pattern=r"\.[su]16x2 .*Arguments mismatch"),
    _Known("ours", "a number as the predicate of a bf16 comparison", pattern=r"^setp?\..*bf16.*Arguments mismatch"),
    _Known("ours", "statements on which ptxas crashes", pattern=r"ptxas ended with -11|Internal compiler error"),
    _Known(
        "ours",
        "a register plus a number in createpolicy.range and video instructions",
        pattern=r"^(v|createpolicy\.range).*\+.*Parsing error",
    ),
    _Known(
        "ours",
        "registers wider than bf16, tf32 and packed floats in cvt",
        pattern=r"^cvt\..*(bf16|tf32|e\dm\dx2).*Arguments mismatch",
    ),
    _Known("ptxas", "a repeated qualifier", plain=_once),
    _Known("ptxas", "c of a video instruction without a selector", pattern=r"v(add|sub|min|max|absdiff|set|sh[lr])\."),
    _Known("ptxas", "min and max of three operands", pattern=r"(min|max)\..*got 4 operands; expected d0, a0, a1$"),
    _Known("ptxas", "a register as the rank of mapa", pattern=r"mapa\..*ranks other than 0"),
    _Known(
        "ptxas", "a register of another type plus an offset as an address", pattern=r"is a sum; expected|r1\+4 is a reg"
    ),
    _Known("ptxas", "a float where an integer is expected", pattern=r"stands where an integer is expected"),
    _Known(
        "ptxas", "a number in a fragment of packed elements", pattern=r"stands where a register of \w+x\d+ is expected"
    ),
    _Known("ptxas", "a 16-bit register as an address", pattern=r"is a register of b16, and no address"),
    _Known(
        "ptxas", "a predicate in a fragment", pattern=r"(mma|matrix)\..*(of pred; expected b32|may be negated here)"
    ),
    _Known("ptxas", "a special register in braces", pattern=r"\{[^}]*%tid.*is (a special|not a) register"),
    _Known("ptxas", "a number of 128 bits", pattern=r"\.b128 .*got 1 register; expected 2"),
    _Known("ptxas", "an address of 16 bits", pattern=r"is an address; expected a register of b16"),
    _Known("ptxas", ".sat of addc, subc and madc", pattern=r"^(addc|subc|madc)\..*\.sat"),
    _Known("ptxas", "a float of another width in braces", pattern=r"\{.*stands where an integer or a float of"),
    _Known("ptxas", "a register plus a number as a scale", pattern=r"block_scale.*\+4 stands where a register"),
    _Known("ptxas", "a fourth operand of atom", pattern=r"^atom\..*got 4 operands"),
    _Known("ptxas", "any address in fence.proxy.tensormap", pattern=r"^fence\.proxy\.tensormap.* \["),
    _Known(
        "ptxas",
        "32-bit generic addresses",
        pattern=r"(mapa|getctarank)\.u32|^(?!cp).*has 32 bits|isspacep\..*b32; expected b64",
    ),
    _Known("ptxas", "bulk copies between 32-bit addresses", pattern=r"async\.bulk\..*has 32 bits; generic and global"),
    _Known("ptxas", "testp without a test", pattern=r"^testp\.f(32|64) "),
    _Known("ptxas", "a state space in fence.proxy", pattern=r"^fence\.proxy\..*is not a simulated instruction"),
    _Known("ptxas", "braces around a single register", pattern=r"stands where one register is expected"),
    _Known("ptxas", "a 128-bit register for a shorter one", pattern=r"%q\d.*got 2 registers; expected 1"),
    _Known("ptxas", ".ftz of f64", pattern=r"\.ftz\.f64 "),
    _Known("ours", "a variable of another state space", pattern=r"^(cvta|getctarank|mapa)\..*State space mismatch"),
    _Known(
        "ours",
        "positions and lengths of bit fields above 255",
        pattern=r"^bf[ei]\..*expected to be in range \[0..255\]",
    ),
    _Known("ours", "selectors, which are checked when an mma runs", pattern=r"^mma\.sp.*(unexpected value|Sparse mma)"),
)
"""Differences that are documented and not fixed."""


def known(one: Verdict) -> str:
    """Name the documented difference; "" for a new one."""
    by = "ours" if one.ptxas else "ptxas"
    for x in KNOWN:
        if x.by != by:
            continue
        if x.pattern and re.search(x.pattern, f"{one.statement} {one.ptxas or one.ours}"):
            return x.what
        plain = one.statement if x.plain is None else x.plain(one.statement)
        if plain != one.statement and not (refused([plain], one.target) if by == "ours" else ours(plain, one.target)):
            return x.what
    return ""


def compared(statements: Sequence[tuple[str, bool]], target: str) -> Iterator[Verdict]:
    """Compare verdicts on statements, which are legal or mutated."""
    theirs = refused([x for x, _ in statements], target)
    for i, (text, changed) in enumerate(statements):
        yield Verdict(target, text, changed, theirs.get(i, ""), ours(text, target))


def drawn(random: Random, target: str, count: int) -> list[tuple[str, bool]]:
    """Draw statements, every tenth unchanged; all opcodes are equally likely."""
    every: dict[str, list[PtxInstruction]] = {}
    others = [make(type_, n) for make in (packing, unpacking) for type_, n in (("b32", 2), ("b64", 2), ("b64", 4))]
    for one in (*rows(target), *wm.instructions(target), *others):
        every.setdefault(str(one).partition(".")[0], []).append(one)
    opcodes = sorted(every)
    found: list[tuple[str, bool]] = []
    while len(found) < count:
        statement = legal(random, random.choice(every[random.choice(opcodes)]))
        changed = len(found) % 10 > 0
        text = str(mutated(random, statement) if changed else statement)
        found.append((text, changed))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, and write undocumented differences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statements", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=250, help="statements of one call of ptxas")
    parser.add_argument("--out", type=Path, help="new differences, as JSON")
    options = parser.parse_args(arguments)
    random, counts, different = Random(options.seed), Counter[str](), []
    while counts["statements"] < options.statements:
        target = TARGETS[counts["statements"] // options.batch % len(TARGETS)]
        for one in compared(drawn(random, target, options.batch), target):
            counts["statements"] += 1
            counts["refused by ptxas"] += bool(one.ptxas)
            if bool(one.ptxas) != bool(one.ours):
                what = known(one)
                counts["taken by us alone" if one.ptxas else "taken by ptxas alone"] += 1
                counts[what or "new differences"] += 1
                if not what:
                    different.append(one)
    print("\n".join(f"{n:7,} {name}" for name, n in counts.most_common()))
    if options.out:
        options.out.write_text(json.dumps([one._asdict() for one in different], indent=1))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WarpmmaError as error:
        sys.exit(str(error))
