"""Random PTX programs: straight-line, branching, looping, exchanging and calling, each determined by its number.

A program is an entry with the addresses of input and output and a struct; two blocks of 64 threads. Registers begin
with words of the input; at the end each thread writes all its registers, its local memory, its part of shared memory
and the common part. Threads do not see each other's private work: no result depends on an order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from .launches import Array, Run, Step, Struct, words
from .snippets import ANYWHERE, COLLECTIVE, MASKED, OWN, UNIFORM
from .writing import BITS, POOL, Writer

__all__ = ["BLOCKS", "COUNT", "THREADS", "WORDS", "launch", "module", "program", "target_of", "texts_hash"]

COUNT = 2080
"""More than 2,000, since a few make ptxas crash, or give results that depend on its level."""

BLOCKS, THREADS = 2, 64
WORDS = 96
"""Words of 32 bits that a thread writes: 16 of its own, registers from 16 on, local memory from 60, shared from 76."""

_INPUT = 64  # words of input of each thread, and as many after the last


def target_of(number: int) -> str:
    """Return the target of a program: every fifth uses features that sm_80 lacks."""
    return "sm_90" if number % 5 == 4 else "sm_80"


def _zeros(w: Writer) -> None:
    """Write registers that hold 0 without ptxas being able to tell."""
    w(*(f".reg .b{BITS[kind]} %zero_{kind};" for kind in BITS))
    w(*(f"ld.global.b{BITS[kind]} %zero_{kind}, [t_zero];" for kind in BITS))


def _begin(w: Writer, name: str) -> None:
    w(".local .align 16 .b8 NAME_local[64];", f".shared .align 16 .b8 NAME_shared[{THREADS * OWN}];",
      ".shared .align 4 .b32 NAME_common[8];")  # fmt: skip
    w(*(f".reg .{'pred' if kind == 'p' else f'b{BITS[kind]}'} %{kind}<{count}>;" for kind, count in POOL.items()))
    spaces = ("local", "shared", "global")
    w(*(f".reg .b64 %{x};" for x in (*spaces, *(f"generic_{s}" for s in spaces), "input", "constants", "tables")))
    w(".reg .b64 %all_shared, %pointer;", ".reg .b32 %thread;", ".reg .b32 %begin;")
    w("mov.u32 %thread, %ctaid.x;", "mov.u32 %begin, %tid.x;", f"mad.lo.u32 %thread, %thread, {THREADS}, %begin;")
    w(f"ld.param.u64 %input, [{name}_param_0];", "cvta.to.global.u64 %input, %input;")
    w(f"mul.wide.u32 %global, %thread, {4 * _INPUT};", "add.u64 %input, %input, %global;")
    w(f"ld.param.u64 %generic_global, [{name}_param_1];", f"mul.wide.u32 %global, %thread, {4 * WORDS};")
    w("add.u64 %generic_global, %generic_global, %global;", "cvta.to.global.u64 %global, %generic_global;")
    w("mov.u64 %local, NAME_local;", "cvta.local.u64 %generic_local, %local;", "mov.u64 %all_shared, NAME_shared;")
    w(f"mul.wide.u32 %shared, %begin, {OWN};", "add.u64 %shared, %shared, %all_shared;")
    w(
        "cvta.shared.u64 %generic_shared, %shared;",
        "mov.u64 %constants, TABLE_constants;",
        "mov.u64 %tables, TABLE_tables;",
    )
    _zeros(w)
    w(*(f"ld.global.b16 %h{i}, [%input+{2 * i}];" for i in range(POOL["h"])))
    w(*(f"ld.global.b32 %r{i}, [%input+{16 + 4 * i}];" for i in range(POOL["r"])))
    w(*(f"ld.global.b64 %d{i}, [%input+{72 + 8 * i}];" for i in range(POOL["d"])))
    w(*(f"setp.lt.s32 %p{i}, %r{i}, {1 << 20 + 2 * i};" for i in range(POOL["p"])))
    w(*(f"st.local.b64 [%local+{8 * i}], %d{i};" for i in range(8)))
    w("st.shared.v4.b32 [%shared], {%r2, %r3, %r4, %r5};")
    w(*(f"st.global.b64 [%global+{8 * i}], %d{7 - i};" for i in range(8)))
    w("setp.lt.u32 %p0, %begin, 8;", "mov.u64 %pointer, NAME_common;", "shl.b32 %begin, %begin, 2;")
    w("cvt.u64.u32 %generic_shared, %begin;", "add.u64 %pointer, %pointer, %generic_shared;")
    w("@%p0 st.shared.b32 [%pointer], %r0;", "cvta.shared.u64 %generic_shared, %shared;", "bar.sync 0;")


def _end(w: Writer) -> None:
    at = 64
    w(*(f"st.global.b16 [%global+{at + 2 * i}], %h{i};" for i in range(POOL["h"])))
    at += 2 * POOL["h"]
    w(*(f"st.global.b32 [%global+{at + 4 * i}], %r{i};" for i in range(POOL["r"])))
    at += 4 * POOL["r"]
    w(*(f"st.global.b64 [%global+{at + 8 * i}], %d{i};" for i in range(POOL["d"])))
    at += 8 * POOL["d"]
    w(*(f"selp.b32 %r{i}, 1, 0, %p{i};" for i in range(POOL["p"])))
    w(*(f"st.global.b32 [%global+{at + 4 * i}], %r{i};" for i in range(POOL["p"])))
    at = 240
    for i in range(8):
        w(f"ld.local.b64 %d0, [%local+{8 * i}];", f"st.global.b64 [%global+{at + 8 * i}], %d0;")
    at += 64
    w(
        "bar.sync 0;",
        "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [%shared];",
        f"st.global.v4.b32 [%global+{at}], {{%r0, %r1, %r2, %r3}};",
    )
    w(
        "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [NAME_common];",
        f"st.global.v4.b32 [%global+{at + 16}], {{%r0, %r1, %r2, %r3}};",
    )
    w(
        "ld.shared.v4.b32 {%r0, %r1, %r2, %r3}, [NAME_common+16];",
        f"st.global.v4.b32 [%global+{at + 32}], {{%r0, %r1, %r2, %r3}};",
    )


class _Body:
    """Statements, blocks and loops."""

    def __init__(self, w: Writer, functions: Sequence[str]) -> None:
        self.w, self.functions = w, functions
        self.together = True  # whether all threads of the block are here
        self.depth = 0

    def statement(self) -> None:
        w, depth = self.w, self.depth
        kind = w.choose.below(100)
        if kind < 56:
            w.instruction()
        elif kind < 76:
            w.choose.of(ANYWHERE)(w)
        elif kind < 82 and w.mask == 0xFFFFFFFF:
            w.choose.of(COLLECTIVE)(w)
        elif kind < 82 and w.mask is not None:
            w.choose.of(MASKED)(w)
        elif kind < 86 and self.together and w.mask == 0xFFFFFFFF:
            w.choose.of(UNIFORM)(w)
        elif kind < 89 and self.functions:
            self.call()
        elif kind < 93 and depth < 2:
            self.branch()
        elif kind < 96 and depth < 2:
            self.loop()
        elif kind < 98 and depth < 2:
            self.table()
        else:
            w.instruction()

    def block(self, count: int, mask: int | None) -> None:
        """Write a number of statements for the lanes of `mask`."""
        w = self.w
        kept = w.mask, self.together
        w.mask, self.together = mask, self.together and mask == 0xFFFFFFFF
        self.depth += 1
        if w.choose.chance(30):
            w("{")
            for _ in range(count):
                self.statement()
            w("}")
        else:
            for _ in range(count):
                self.statement()
        self.depth -= 1
        w.mask, self.together = kept

    def branch(self) -> None:
        """Write an if, with or without else: by any predicate, or by one that selects known lanes."""
        w = self.w
        orelse, after = w.fresh("$L"), w.fresh("$L")
        taken, others, condition = None, None, w.register("p")
        if w.mask == 0xFFFFFFFF and w.choose.chance(50):
            distance = 1 + w.choose.below(31)
            lane, condition = w.temporary("r"), w.temporary("p")
            w(f"mov.u32 {lane}, %laneid;", f"setp.lt.u32 {condition}, {lane}, {distance};")
            taken, others = (1 << distance) - 1, 0xFFFFFFFF >> distance << distance
        if w.choose.chance(50):
            w(f"@!{condition} bra {after};")
            self.block(1 + w.choose.below(5), taken)
        else:
            w(f"@!{condition} bra {orelse};")
            self.block(1 + w.choose.below(5), taken)
            w(f"bra{w.choose.of(['', '.uni'])} {after};")
            w.lines.append(f"{orelse}:")
            self.block(1 + w.choose.below(5), others)
        w.lines.append(f"{after}:")

    def loop(self) -> None:
        """Write a loop with a common or per-thread number of iterations, which some threads leave early."""
        w = self.w
        counter, again, top, out = w.temporary("r"), w.temporary("p"), w.fresh("$L"), w.fresh("$L")
        uniform = w.choose.chance(40)
        if uniform:
            w(f"mov.u32 {counter}, {1 + w.choose.below(4)};")
        else:
            w(f"and.b32 {counter}, {w.register('r')}, 3;")
        w.lines.append(f"{top}:")
        early = not uniform and w.choose.chance(40)
        mask = w.mask if uniform else None
        self.block(1 + w.choose.below(5), mask)
        if early:
            w(f"@{w.register('p')} bra {out};")
            self.block(1 + w.choose.below(3), mask)
        w(f"sub.u32 {counter}, {counter}, 1;", f"setp.gt.s32 {again}, {counter}, 0;", f"@{again} bra {top};")
        w.lines.append(f"{out}:")

    def table(self) -> None:
        """Write a branch by an index."""
        w = self.w
        count = w.choose.of([2, 4])
        index, labels, targets, after = w.limited("r", count - 1), [], w.fresh("$T"), w.fresh("$L")
        labels = [w.fresh("$L") for _ in range(count)]
        w.lines.append(f"{targets}: .branchtargets {', '.join(labels)};")
        w(f"brx.idx {index}, {targets};")
        for label in labels:
            w.lines.append(f"{label}:")
            self.block(1 + w.choose.below(3), None)
            w(f"bra.uni {after};" if label == labels[-1] else f"bra {after};")
        w.lines.append(f"{after}:")

    def call(self) -> None:
        """Write a call, by name or through a register."""
        w = self.w
        x, y, z = w.register("r"), w.register("d"), w.register("r")
        depth = w.temporary("r")  # lanes with different recursion depths are not together at later barriers
        w(f"mov.u32 {depth}, {w.choose.below(4)};")
        w("{", ".param .b32 a0;", ".param .align 8 .b8 a1[16];", ".param .b32 a2;", ".param .align 8 .b8 r0[16];")
        w(
            f"st.param.b32 [a0], {x};",
            f"st.param.b64 [a1], {y};",
            f"st.param.b32 [a1+8], {z};",
            f"st.param.b32 [a1+12], {x};",
        )
        w(f"st.param.b32 [a2], {depth};")
        name = w.choose.of(self.functions)
        if w.choose.chance(30):
            pointer, other, label = w.temporary("d"), w.temporary("d"), w.fresh("$P")
            which = w.temporary("p")
            w(f"mov.u64 {pointer}, {name};", f"mov.u64 {other}, {self.functions[0]};")
            w(f"setp.lt.s32 {which}, {x}, {z};", f"selp.b64 {pointer}, {pointer}, {other}, {which};")
            struct = ".param .align 8 .b8 _[16]"
            w.lines.append(f"{label}: .callprototype ({struct}) _ (.param .b32 _, {struct}, .param .b32 _);")
            w(f"call (r0), {pointer}, (a0, a1, a2), {label};")
        else:
            w(f"call (r0), {name}, (a0, a1, a2);")
        w(f"ld.param.b64 {w.register('d')}, [r0];", f"ld.param.b32 {w.register('r')}, [r0+8];", "}")


def _function(w: Writer, name: str, callee: str) -> None:
    """Write a function of a word, a struct and a depth, which may call itself or another that was declared."""
    w.mask = None
    start = len(w.lines)
    w(*(f".reg .{'pred' if kind == 'p' else f'b{BITS[kind]}'} %{kind}<{count}>;" for kind, count in POOL.items()))
    _zeros(w)
    w(f"ld.param.b32 %r0, [{name}_a];", f"ld.param.b64 %d0, [{name}_b];", f"ld.param.b32 %r1, [{name}_b+8];")
    w(f"ld.param.b32 %r2, [{name}_b+12];")
    for i in range(3, POOL["r"]):
        w(f"mad.lo.u32 %r{i}, %r{i - 1}, 1664525, {1013904223 + i};")
    for i in range(1, POOL["d"]):
        w(f"mov.b64 %d{i}, {{%r{i}, %r{i + 4}}};")
    for i in range(POOL["h"]):
        w(f"cvt.u16.u32 %h{i}, %r{i + 2};")
    for i in range(POOL["p"]):
        w(f"setp.lt.s32 %p{i}, %r{i}, %r{i + 5};")
    for _ in range(4 + w.choose.below(8)):
        w.choose.of([Writer.instruction] * 6 + [_pack_or_carry])(w)
    if callee:
        over, done = w.temporary("p"), w.fresh("$L")
        depth = w.temporary("r")
        w(f"ld.param.b32 {depth}, [{name}_c];", f"setp.lt.s32 {over}, {depth}, 1;", f"@{over} bra {done};")
        w(f"sub.u32 {depth}, {depth}, 1;", "{", ".param .b32 a0;", ".param .align 8 .b8 a1[16];", ".param .b32 a2;")
        w(".param .align 8 .b8 r0[16];", "st.param.b32 [a0], %r3;", "st.param.b64 [a1], %d1;")
        w("st.param.b64 [a1+8], %d2;", f"st.param.b32 [a2], {depth};", f"call (r0), {callee}, (a0, a1, a2);")
        w(
            "ld.param.b64 %d3, [r0];",
            "ld.param.b32 %r4, [r0+8];",
            "xor.b64 %d0, %d0, %d3;",
            "add.u32 %r0, %r0, %r4;",
            "}",
        )
        w.lines.append(f"{done}:")
    for _ in range(3):
        w.instruction()
    w(f"st.param.b64 [{name}_r], %d0;", f"st.param.b32 [{name}_r+8], %r0;", f"st.param.b32 [{name}_r+12], %r1;", "ret;")
    body = w.lines[start:]
    del w.lines[start:]
    w.lines += [f"{_prototype(name)}", "{", *body, "}"]


def _pack_or_carry(w: Writer) -> None:
    ANYWHERE[w.choose.below(2)](w)


def _prototype(name: str) -> str:
    return (f".func (.param .align 8 .b8 {name}_r[16]) {name} (.param .b32 {name}_a, .param .align 8 .b8 {name}_b[16], "
            f".param .b32 {name}_c)")  # fmt: skip


def program(number: int, name: str = "") -> str:
    """Return the text of a program, without the module's header: the entry, and functions that it calls."""
    name = name or f"p{number}"
    w = Writer(number, target_of(number))
    functions = [f"{name}_f{i}" for i in range(w.choose.of([0, 0, 1, 2]))]
    w.lines += [f"{_prototype(x)};" for x in functions]
    for x in functions:
        _function(w, x, w.choose.of(["", x, functions[-1]]))
    w.lines.append(f".visible .entry {name}(.param .u64 {name}_param_0, .param .u64 {name}_param_1, "
                   f".param .align 8 .b8 {name}_param_2[32])")  # fmt: skip
    w.lines.append("{")
    w.mask = 0xFFFFFFFF
    _begin(w, name)
    body = _Body(w, functions)
    for _ in range(25 + w.choose.below(45)):
        body.statement()
    if w.choose.chance(30):  # some threads exit early
        done = w.fresh("$L")
        w(f"@{w.register('p')} bra {done};")
        body.block(8, None)
        w.lines.append(f"{done}:")
    _end(w)
    w("ret;")
    w.lines.append("}")
    return "\n".join(w.lines).replace("NAME", name).replace("TABLE", "t") + "\n"


def module(numbers: Sequence[int]) -> str:
    """Return a text of programs, all for one target."""
    (target,) = {target_of(number) for number in numbers}
    table = ", ".join(map(str, words(7, 16).astype(np.uint32).tolist()))
    more = ", ".join(map(str, words(8, 32).astype(np.uint32).tolist()))
    head = [".version 8.6", f".target {target}", ".address_size 64",
            f".const .align 8 .b32 t_constants[16] = {{{table}}};",
            f".global .align 8 .b32 t_tables[32] = {{{more}}};",
            ".visible .global .align 8 .b64 t_zero;"]  # fmt: skip
    return "\n".join(head) + "\n" + "\n".join(map(program, numbers))


def texts_hash() -> str:
    """Return a hash of all programs, to which a recording belongs."""
    texts = "".join(program(number) for number in range(COUNT))
    return hashlib.sha256(texts.encode()).hexdigest()


def inputs(number: int) -> Array:
    """Return a program's input: words of any bits, and moderate numbers in f32, f64 and f16."""
    word = words(number << 1 | 1 << 40, BLOCKS * THREADS + 1, _INPUT)
    made = word.astype(np.uint32)
    tame32 = (made & np.uint32(0x807FFFFF)) | (
        np.uint32(118) + (word >> np.uint64(40)).astype(np.uint32) % np.uint32(18) << np.uint32(23)
    )
    kind = (word >> np.uint64(60)).astype(int)
    made = np.where(kind < 8, tame32, made)
    small = (word >> np.uint64(33)).astype(np.uint32) % np.uint32(40)
    made = np.where(kind == 8, small, np.where(kind == 9, ~small, made))
    # Upper words of f64 that are moderate, in half of the threads.
    upper = (made & np.uint32(0x800FFFFF)) | (np.uint32(1013) + small << np.uint32(20))
    places = np.arange(_INPUT) % 2 == 1
    made[::2] = np.where(places & (np.arange(_INPUT) >= 18), upper, made)[::2]
    return made.astype(np.uint32)


def launch(number: int) -> Run:
    """Return the run of a program."""
    out = np.full((BLOCKS * THREADS, WORDS), 0xFFFFFFFF, np.uint32)
    struct = Struct((words(number << 1 | 1 << 41, 4).tobytes(),))
    step = Step(f"p{number}", (BLOCKS,), (THREADS,), ("input", "output", struct))
    return Run({"input": inputs(number), "output": out}, (step,), ("output",))
