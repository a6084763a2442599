"""Random structured programs: each lane ends with the registers that it has when it runs alone."""

from __future__ import annotations

from assembler import Assembler, batch_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scalar_reference import alone

from warpmma.machine import Grid, Limit, run_program

_ROWS = ("add.u32", "sub.u32", "mul.lo.u32", "and.b32", "or.b32", "xor.b32")
_GLOBAL = ("x", "y", "z", "w")  # which functions share
_CLASSES = {
    **dict.fromkeys((*_GLOBAL, "d"), "b32"), "address": "b64",
    **dict.fromkeys("pqr", "pred"),
    **dict.fromkeys(("f0", "f1", "g0", "g1"), "b32"),  # of the functions f and g
    **{f"n{i}": "b32" for i in range(40)},  # counters of loops
}  # fmt: skip


class _Writer:
    """Writes the text of a program as it is drawn."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw, self.lines = draw, list[str]()
        self.number = self.loops = 0
        self.local: tuple[str, ...] = ()
        self.may_call: tuple[str, ...] = ("f", "g")

    def pick(self, *these: str) -> str:
        return self.draw(st.sampled_from(these))

    def label(self) -> str:
        self.number += 1
        return f"L{self.number}"

    def source(self) -> str:
        names = (*_GLOBAL, *self.local)
        return self.pick(*names, "tid", "lane", "warp", "3", "0x9E3779B1", "1")

    def predicate(self) -> str:
        name = self.pick(*"pqr")
        kind = self.pick("lt", "eq", "ne")
        mask = self.pick("1", "3", "7", "31")
        self.lines += [f"and.b32 w, {self.source()}, {mask}", f"setp.{kind}.u32 {name}, w, {self.pick('0', '1', '5')}"]
        return self.pick(name, f"!{name}")

    def block(self, depth: int, inner: tuple[str, str] | None = None) -> None:
        for _ in range(self.draw(st.integers(1, 3))):
            self.statement(depth, inner)

    def statement(self, depth: int, inner: tuple[str, str] | None) -> None:
        kinds = ["row", "row", "guarded"]
        if depth:
            kinds += ["if", "if", "loop", "switch", "call", "leave"] if inner else ["if", "loop", "switch", "call"]
        getattr(self, self.pick(*kinds))(depth, inner)

    def row(self, depth: int, inner: object) -> None:
        to = self.pick(*_GLOBAL[:3], *self.local)
        self.lines.append(f"{self.pick(*_ROWS)} {to}, {self.source()}, {self.source()}")

    def guarded(self, depth: int, inner: object) -> None:
        guard = self.predicate()
        self.row(depth, inner)
        self.lines[-1] = f"@{guard} {self.lines[-1]}"

    def leave(self, depth: int, inner: tuple[str, str]) -> None:
        """Break or continue."""
        self.lines.append(f"@{self.predicate()} bra {self.pick(*inner)}")

    def _if(self, depth: int, inner: tuple[str, str] | None) -> None:
        other, end = self.label(), self.label()
        self.lines.append(f"@{self.predicate()} bra {other}")
        self.block(depth - 1, inner)
        self.lines += [f"bra {end}", f"{other}:"]
        self.block(depth - 1, inner)
        self.lines.append(f"{end}:")

    def loop(self, depth: int, inner: object) -> None:
        if self.loops == 40:
            return
        n, head, again, end = f"n{self.loops}", self.label(), self.label(), self.label()
        self.loops += 1
        mask = self.pick("1", "3", "7")
        self.lines += [f"and.b32 {n}, {self.source()}, {mask}", f"{head}:"]
        self.block(depth - 1, (again, end))
        self.lines += [f"{again}:", f"setp.eq.u32 p, {n}, 0", f"@p bra {end}", f"sub.u32 {n}, {n}, 1", f"bra {head}"]
        self.lines.append(f"{end}:")

    def switch(self, depth: int, inner: tuple[str, str] | None) -> None:
        ways, end = [self.label() for _ in range(4)], self.label()
        self.lines += [f"and.b32 w, {self.source()}, 3", f"brx.idx w, {{{', '.join(ways)}}}"]
        for way in ways:
            self.lines.append(f"{way}:")
            self.block(depth - 1, inner)
            self.lines.append(f"bra {end}")
        self.lines.append(f"{end}:")

    def call(self, depth: int, inner: object) -> None:
        if not self.may_call:
            return
        name = self.pick(*self.may_call)
        if name == "g":
            self.lines.append(f"and.b32 d, {self.source()}, 3")
        guard = f"@{self.predicate()} " if self.draw(st.booleans()) else ""
        if self.draw(st.booleans()):
            self.lines += [f"mov.u64 address, {name}", f"{guard}call address"]
        else:
            self.lines.append(f"{guard}call {name}")

    def function(self, head: str, local: tuple[str, ...], may_call: tuple[str, ...], recursive: bool) -> None:
        self.lines.append(head)
        self.local, self.may_call = local, may_call
        self.lines += [f"mov.u32 {local[0]}, {self.source_global()}", f"add.u32 {local[1]}, {local[0]}, 1"]
        self.block(1)
        if recursive:  # as deep as the caller said
            self.lines += ["setp.eq.u32 p, d, 0", "@p ret", "sub.u32 d, d, 1", "call g"]
            self.lines.append(f"add.u32 x, x, {local[0]}")
            self.block(1)
        self.lines.append("ret")

    def source_global(self) -> str:
        return self.pick(*_GLOBAL)


setattr(_Writer, "if", _Writer._if)


@st.composite
def programs(draw: st.DrawFn) -> str:
    made = _Writer(draw)
    made.lines += [f"mov.u32 {x}, {v}" for x, v in zip(_GLOBAL, ("tid", "lane", "warp", "0"), strict=True)]
    made.lines += [f"setp.lt.u32 {p}, tid, 9" for p in "pqr"]
    made.block(3)
    if draw(st.booleans()):
        made.lines.append(f"@{made.predicate()} exit")
        made.block(1)
    made.lines.append(made.pick("ret", "exit"))
    made.function(".func f f0 f1", ("f0", "f1"), (), False)
    made.function(".func g recursive g0 g1", ("g0", "g1"), ("f",), True)
    return "\n".join(made.lines)


@settings(max_examples=40, deadline=None)
@given(programs(), st.sampled_from([0, 0, 1, 7]))
def test_lanes_that_go_together_go_as_they_would_alone(text: str, seed: int) -> None:
    threads, blocks = 70, 2  # the last warp has six threads
    batch, _, _ = batch_of(blocks, threads, seed=seed)
    program = Assembler(text, _CLASSES).program
    found = run_program(
        batch, program, Grid((blocks, 1, 1), (threads, 1, 1), 4096), limit=Limit(instructions=10**6), keep=True
    )
    for thread in range(threads):
        special = {"tid.x": thread, "laneid": thread % 32, "warpid": thread // 32}
        for slot, value in alone(program, special).items():
            for block in range(blocks):
                register, at = found[slot], (block, thread // 32, thread % 32)
                assert register.defined is None or register.defined[at], (thread, program.names[slot])
                assert int(register.bits[at]) == value, (thread, program.names[slot])


def test_the_reference_counts_on_its_own() -> None:
    text = "mov.u32 x, tid\n.func unused f0\nret"
    assert alone(Assembler(text, _CLASSES).program, {"tid.x": 5}) == {0: 5}
