"""Compare what ptxas computes of constants with what `warpmma.ptx` does: `python -m lab.compare.folding --help`.

Needs `ptxas` on the PATH and `nvdisasm` (the PyPI package `nvidia-cuda-nvdisasm`). Three comparisons, all of machine
code: the number that ptxas stores in the place of an approximate function of constants; before which instructions on
constants it still does so; and ways in which a register may be constant. Prints what differs; with `--record`, writes
what ptxas does, which tests compare without it.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from lab.contraction.machine_code import assembled
from warpmma.arithmetic import SEQUENCES, folded_reference
from warpmma.operations import Operation, rows
from warpmma.ptx import read
from warpmma.ptx.folding.evaluated import evaluates
from warpmma.ptx.folding.replacing import folded
from warpmma.ptx.text import words_of

FORMS = tuple(name for name, row in SEQUENCES.items() if row.fmt.name == "f32")

EDGES = (0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000, 0x40400000,
         0x44840000, 0x42FFFFFF, 0x43000000, 0xC2FC0000, 0xC2FC0001, 0xC3150000, 0x7E800000, 0x7E800001, 0x7F000000,
         0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x40490FDB, 0x4F000000)  # fmt: skip
"""Operands at the bounds of the rules: zeros, subnormal numbers, ends of the ranges that are scaled, infinity, NaN."""

_C, _F = "mov.b32 %r2, 0f40400000; ", "cvt.rn.f32.s32 %r8, %r3; "
_LOOP = (
    "mov.u32 %r5, 0; L1: {} add.s32 %r5, %r5, 1; cvt.rn.f32.s32 %r7, %r5; rcp.approx.ftz.f32 %r9, %r7; "
    "st.global.b32 [%rd1+4], %r9; setp.lt.s32 %p1, %r5, {}; @%p1 bra L1; mov.b32 %r8, 0f40400000;"
)
_CHANGED = (
    _C + 'mov.b32 %r8, %r2; mov.u32 %r5, 0; L1: .pragma "nounroll"; add.s32 %r5, %r5, 1; '
    "rcp.approx.ftz.f32 %r9, %r8; st.global.b32 [%rd1+8], %r9; {} setp.lt.s32 %p1, %r5, %r1; @%p1 bra L1;"
)
_BRANCH = "setp.eq.s32 %p1, %r1, 7; @%p1 bra L1; {} bra L2; L1: {} L2:"
WAYS: Mapping[str, str] = {
    "a copy": _C + "mov.b32 %r8, %r2;",
    "of an integer": "mov.u32 %r2, 7; mul.lo.s32 %r3, %r2, 3; " + _F,
    "a sum": _C + "add.rn.f32 %r8, %r2, 0f3F800000;",
    "a product and a sum, not fused": _C + "mul.f32 %r3, %r2, 0f40A00000; add.f32 %r8, %r3, 0f3F800000;",
    "a fused multiply-add": _C + "fma.rn.f32 %r8, %r2, %r2, %r2;",
    "a folded function": _C + "rcp.approx.ftz.f32 %r8, %r2;",
    "two folded functions": "lg2.approx.f32 %r2, 0f40400000; mul.f32 %r3, %r2, 0f3F000001; ex2.approx.f32 %r8, %r3;",
    "or with ones": "or.b32 %r3, %r1, -1; and.b32 %r3, %r3, 0x1fff; " + _F,
    "times zero": "mul.lo.s32 %r3, %r1, 0; add.s32 %r3, %r3, 3; " + _F,
    "xor with itself": "xor.b32 %r3, %r1, %r1; add.s32 %r3, %r3, 3; " + _F,
    "minus itself": "sub.s32 %r3, %r1, %r1; add.s32 %r3, %r3, 3; " + _F,
    "selected by a constant": _C + "setp.eq.s32 %p1, 7, 7; selp.b32 %r8, %r2, %r1, %p1;",
    "selected of two equal": "setp.eq.s32 %p1, %r1, 7; selp.b32 %r8, 0f40400000, 0f40400000, %p1;",
    "selected of two": "setp.eq.s32 %p1, %r1, 7; selp.b32 %r8, 0f40400000, 0f40A00000, %p1;",
    "packed": "mov.b16 %h1, 0x4040; mov.b16 %h2, 0; mov.b32 %r8, {%h2, %h1};",
    "packed beside what varies": _C + "mov.b64 %rd3, {%r2, %r1}; mov.b64 {%r8, %r7}, %rd3;",
    "written over later": _C + "mov.b32 %r8, %r2; st.global.b32 [%rd1+8], %r8;",
    "a guarded copy of another": "setp.eq.s32 %p1, %r1, 7; mov.b32 %r8, 0f40400000; @%p1 mov.b32 %r8, 0f40A00000;",
    "a guarded copy of the same": "setp.eq.s32 %p1, %r1, 7; mov.b32 %r8, 0f40400000; @%p1 mov.b32 %r8, 0f40400000;",
    "not written on one way": "setp.eq.s32 %p1, %r1, 7; @%p1 mov.b32 %r8, 0f40400000;",
    "the same on two ways": _BRANCH.format("mov.b32 %r8, 0f40400000; bar.sync 0;", "mov.b32 %r8, 0f40400000;"),
    "different on two ways": _BRANCH.format("mov.b32 %r8, 0f40400000; bar.sync 0;", "mov.b32 %r8, 0f40A00000;"),
    "a constant branch": "mov.u32 %r3, 7; setp.eq.s32 %p1, %r3, 7; mov.b32 %r8, 0f40400000; @%p1 bra L1; "
                         "mov.b32 %r8, 0f40A00000; L1:",
    "behind a barrier": _C + "mov.b32 %r8, %r2; setp.eq.s32 %p1, %r1, 7; @%p1 bra L1; bar.sync 0; L1:",
    "implied by a branch": "setp.ne.s32 %p1, %r1, 0x40400000; @%p1 bra L1; rcp.approx.ftz.f32 %r9, %r1; "
                           "st.global.b32 [%rd1+8], %r9; L1: mov.b32 %r8, 0f40400000;",
    "a special register": "mov.u32 %r3, %ntid.y; " + _F,
    "the size of a warp": "mov.u32 %r3, WARP_SZ; " + _F,
    "memory": "ld.global.b32 %r8, [%rd1+16];",
    "not changed by a loop": _CHANGED.format(""),
    "written again in a loop": _CHANGED.format("mov.b32 %r8, 0f40400000;"),
    "kept by a loop": _CHANGED.format("max.f32 %r8, %r8, 0f40400000;"),
    "exchanged in a loop": _CHANGED.format("mov.b32 %r6, %r8; mov.b32 %r8, %r2; mov.b32 %r2, %r6;").replace(
        _C, _C + "mov.b32 %r2, 0f40800000; "),
    "counted to 4": _LOOP.format("", 4),
    "counted to 100": _LOOP.format("", 100),
    "counted, not unrolled": _LOOP.format('.pragma "nounroll";', 4),
    "counted to a parameter": _LOOP.format("", "%r1"),
    "the last count": "mov.u32 %r3, 0; L1: add.s32 %r3, %r3, 1; st.global.b32 [%rd1+8], %r3; "
                      "setp.lt.s32 %p1, %r3, 4; @%p1 bra L1; " + _F,
    "shifted out": "shl.b32 %r3, %r1, 32; add.s32 %r3, %r3, 3; " + _F,
    "single bits": "and.b32 %r3, %r1, 0xf0; and.b32 %r3, %r3, 0x0f; add.s32 %r3, %r3, 3; " + _F,
    "compared with itself": "setp.eq.s32 %p1, %r1, %r1; selp.b32 %r3, 3, 5, %p1; " + _F,
}  # fmt: skip
"""Bodies that put something into `%r8`, of a parameter `%r1`, before an `rcp.approx` of it."""

NOT_SEEN = ("shifted out", "single bits", "compared with itself")
"""Ways in which ptxas knows a number and `warpmma` does not."""

_MOST = 60  # functions in one kernel


def kernel(body: str, target: str = "sm_90") -> str:
    """Return a text with a body."""
    return (
        f".version 8.7\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 p, .param .b32 x)\n{{\n"
        ".reg .b32 %r<9000>; .reg .b64 %rd<9000>; .reg .b16 %h<9000>; .reg .pred %p<9000>;\n"
        f"ld.param.b64 %rd1, [p]; ld.param.b32 %r1, [x];\n{body}\nret;\n}}\n"
    )


def way(name: str) -> str:
    """Return the kernel of a way."""
    return kernel(WAYS[name] + " rcp.approx.ftz.f32 %r9, %r8; st.global.b32 [%rd1], %r9;")


def predicted(text: str) -> str:
    """Say what becomes of the functions of a kernel: "number", "GPU", or "open"."""
    found = folded(read(text).functions["k"])
    return "open" if found.open else "GPU" if any("rcp" in str(one) for one in found.function.body) else "number"


_LINE = re.compile(r"/\*[0-9a-f]{4,5}\*/\s+(?:@!?U?P[T\d]+\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
_CODE = re.compile(r"-?0x[0-9a-f]+$")
_PLACE = re.compile(r"\+(0x[0-9a-f]+)\]$")


def stored(lines: Iterable[str]) -> dict[int, int | None]:
    """Return what machine code stores, by offset: a number, or None for anything else."""
    known: dict[str, int | None] = {"RZ": 0, "URZ": 0}
    found: dict[int, int | None] = {}
    for line in lines:
        if (parts := _LINE.search(line)) is None:
            continue
        opcode, *words = parts[1], *(x.strip().replace(".reuse", "") for x in parts[2].split(","))
        if opcode.startswith("STG"):
            place = _PLACE.search(words[0])
            found[int(place[1], 16) if place else 0] = known.get(words[-1])
        elif opcode in ("MOV", "UMOV") or opcode.startswith("IMAD.MOV"):
            known[words[0]] = _number(words[-1], known)
        elif opcode == "CS2R" and words[0][1:].isdigit():
            known[words[0]] = known[f"R{int(words[0][1:]) + 1}"] = 0
        elif opcode.startswith("HFMA2") and words[1] in ("-RZ", "RZ"):
            halves = [_half(x) for x in words[-2:]]
            known[words[0]] = None if None in halves else (halves[0] or 0) << 16 | (halves[1] or 0)
        else:
            known[words[0]] = None
    return found


def _number(text: str, known: Mapping[str, int | None]) -> int | None:
    return int(text, 16) & 0xFFFFFFFF if _CODE.match(text) else known.get(text)


def _half(text: str) -> int | None:
    named = {"RZ": 0, "-RZ": 0x8000, "+INF": 0x7C00, "INF": 0x7C00, "-INF": 0xFC00}
    try:
        return named[text] if text in named else int(np.float16(text).view(np.uint16))
    except ValueError:
        return None


def functions(form: str, operands: Sequence[tuple[int, ...]], nvdisasm: str) -> Iterator[int | None]:
    """Yield what ptxas stores for a form of constants: a code, or None for what it leaves to the GPU."""
    for first in range(0, len(operands), _MOST):
        some = operands[first : first + _MOST]
        body = "".join(
            f"{form} %r{i + 10}, {', '.join(f'0f{x:08X}' for x in codes)}; st.global.b32 [%rd1+{4 * i}], %r{i + 10};\n"
            for i, codes in enumerate(some)
        )
        found = stored(assembled(kernel(body), "sm_90", nvdisasm))
        yield from (found.get(4 * i) for i in range(len(some)))


def drawn(form: str, count: int, rng: random.Random) -> list[tuple[int, ...]]:
    """Draw operands of a form: the edges, and as many near them and anywhere."""
    number = SEQUENCES[form].operands

    def one() -> int:
        near = rng.choice(EDGES) + rng.randrange(-40, 41) & 0xFFFFFFFF
        return rng.choice((near, rng.getrandbits(32), rng.randrange(100, 150) << 23 | rng.getrandbits(23)))

    edges = [tuple(rng.choice(EDGES) if i else x for i in range(number)) for x in EDGES]
    return edges + [tuple(one() for _ in range(number)) for _ in range(count)]


def instructions(nvdisasm: str, rng: random.Random, step: int = 1) -> Iterator[tuple[str, bool]]:
    """Yield mnemonics, and whether ptxas computes a function of what they give of constants."""
    found = [x for x in rows("sm_90") if isinstance(x, Operation) and _writable(x)][::step]
    for first in range(0, len(found), _MOST):
        some = found[first : first + _MOST]
        kept = {i: _case(x, i, rng) for i, x in enumerate(some)}
        while kept:
            try:
                values = stored(assembled(kernel("\n".join(kept.values())), "sm_90", nvdisasm))
            except subprocess.CalledProcessError as error:  # of what ptxas refuses: numbers that it checks
                bad = {int(x) - 8 for x in re.findall(r"line (\d+)", error.stderr.decode())}
                kept = {i: x for n, (i, x) in enumerate(kept.items()) if n not in bad}
                if not bad:
                    raise
                continue
            yield from ((some[i].mnemonic, values.get(4 * i) is not None) for i in kept)
            break


def _writable(x: Operation) -> bool:
    plain = not (x.lanes or x.selectors or x.reads_carry or x.writes_carry) and x.vectors == (0, 0)
    return plain and len(x.outputs) == 1 and x.mnemonic not in SEQUENCES and not x.mnemonic.startswith("mov.")


_NAMES = {"b16": "%h", "b32": "%r", "b64": "%rd", "pred": "%p"}


def _case(x: Operation, k: int, rng: random.Random) -> str:
    """Return the statements, on one line, that put an instruction on constants before a function."""
    names, text = list[str](), ""
    values = rng.sample((1.5, -2.25, 3.1, 10.0), 4)  # of equal operands ptxas knows more
    for j, (kind, type_) in enumerate(zip(x.inputs, x.input_types or x.inputs, strict=True)):
        if kind == "imm":
            names.append(str(rng.randrange(8)))
            continue
        names.append(f"{_NAMES[kind]}{k * 8 + j + 20}")
        code = _constant(type_, kind, values[j % 4], rng)
        text += f"setp.eq.u32 {names[-1]}, {code}, 1; " if kind == "pred" else f"mov.{kind} {names[-1]}, {code}; "
    out, to, a = x.outputs[0], f"{_NAMES[x.outputs[0]]}{k * 8 + 27}", f"%r{k * 8 + 26}"
    moved = {
        "b16": f"cvt.u32.u16 {a}, {to};", "b32": f"mov.b32 {a}, {to};", "pred": f"selp.b32 {a}, 7, 5, {to};",
        "b64": f"mov.b64 {{{a}, %r9}}, {to}; xor.b32 {a}, {a}, %r9;",
    }[out]  # fmt: skip
    return (
        f"{text}{x.mnemonic} {', '.join([to, *names])}; {moved} and.b32 {a}, {a}, 0x3fffffff; "
        f"rcp.approx.ftz.f32 {a}, {a}; st.global.b32 [%rd1+{4 * k}], {a};"
    )


def _constant(type_: str, kind: str, value: float, rng: random.Random) -> int:
    if type_.startswith(("f", "bf", "tf")) and kind != "pred":
        single = int(np.float32(value).view(np.uint32))
        half = single >> 16 if type_.startswith("bf") else int(np.float16(value).view(np.uint16))
        codes = {"b16": half, "b32": half * 0x10001 if type_.endswith("x2") else single,
                 "b64": int(np.float64(value).view(np.uint64))}  # fmt: skip
        return codes[kind]
    return rng.getrandbits(1) if kind == "pred" else rng.choice((rng.randrange(1, 15), rng.getrandbits(14) | 1))


def main() -> int:
    """Compare; print what differs, and how much was compared."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--constants", type=int, default=200, help="of each form, in addition to the edges")
    parser.add_argument("--step", type=int, default=1, help="look at each nth instruction only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nvdisasm", default=shutil.which("nvdisasm") or "nvdisasm")
    parser.add_argument("--record", type=Path, help="write what ptxas does to a JSON file")
    given = parser.parse_args()
    rng, bad = random.Random(given.seed), 0
    record: dict[str, object] = {"source": "machine code of ptxas 13.0 for sm_90"}
    constants: dict[str, list[list[int | None]]] = {}
    for form in FORMS:
        operands = drawn(form, given.constants, rng)
        results = list(functions(form, operands, given.nvdisasm))
        constants[form] = [[*x, y] for x, y in zip(operands, results, strict=True)]
        wrong = [x for x in constants[form] if folded_reference(form, *x[:-1]) != x[-1]]  # type: ignore[arg-type]
        bad += len(wrong)
        print(f"{form}: {len(operands)} constants, {len(wrong)} differ", *map(_shown, wrong[:3]), flush=True)
    seen = {name: _seen(name, given.nvdisasm) for name in WAYS}
    for name, what in seen.items():
        said = predicted(way(name))
        if said not in (what, "open") and name not in NOT_SEEN:
            bad += 1
            print(f"{name}: ptxas leaves a {what}, predicted a {said}")
    looked = dict(instructions(given.nvdisasm, rng, given.step))
    for mnemonic, evaluated in looked.items():
        said_so = evaluates(words_of(mnemonic))
        if said_so is not None and said_so != evaluated:
            bad += 1
            print(f"{mnemonic}: {'not ' * (not evaluated)}evaluated")
    print(f"{len(looked):,} instructions, {len(seen)} ways; {bad} differ")
    if given.record:
        record |= {"constants": constants, "ways": seen, "evaluated": sorted(x for x in looked if looked[x]),
                   "others": sorted(x for x in looked if not looked[x])}  # fmt: skip
        given.record.write_text(json.dumps(record, separators=(",", ":")) + "\n")
    return int(bool(bad))


def _seen(name: str, nvdisasm: str) -> str:
    lines = assembled(way(name), "sm_90", nvdisasm)
    return "GPU" if any("MUFU" in line for line in lines) else "number"


def _shown(codes: Sequence[int | None]) -> str:
    return " ".join("GPU" if x is None else f"0x{x:08x}" for x in codes)


if __name__ == "__main__":
    sys.exit(main())
