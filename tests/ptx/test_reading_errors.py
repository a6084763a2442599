"""Invalid PTX ends in `PtxError` with line and column."""

from __future__ import annotations

import pickle

import pytest

from warpmma import Device
from warpmma.errors import PtxError
from warpmma.ptx import load, read
from warpmma.ptx.storage.call_graph import reach

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
ENTRY = f"{HEAD}.entry k(.param .u64 p) {{\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .v4 .f32 v;\n"


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("", (1, 1), "'.version'"),
        (".target sm_80", (1, 1), "expected '.version' first"),
        (".version 8.0\n", (2, 1), "'.target'"),
        (".version 10.0 .target sm_80", (1, 10), "up to version 9"),
        (".version 8.0 .target compute_80", (1, 22), "such as sm_80, found 'compute_80'"),
        (HEAD + ".entry k() { ret;", (4, 12), "'{' is not closed"),
        (HEAD + ".entry k() { ret; } /* x", (4, 21), "comment does not end"),
        (HEAD + '.file 1 "a', (4, 9), "string does not end"),
        (HEAD + ".entry k() { ret; }\0x", (4, 20), r"'\x00'"),
        (HEAD + ".global .u32 x[2] = {1, 2, 3};", (4, 28), "2 values are all"),
        (HEAD + ".global .u32 x[2][900000000] = {{1}, {2}};", (4, 38), "more than 16777216 elements"),
        (HEAD + ".global .f32 x = 1;", (4, 18), "an integer cannot initialize .f32"),
        (HEAD + ".global .u32 x; .global .u32 x;", (4, 30), "declared already, at 4:14"),
        (HEAD + ".entry k() { ret; } .entry k() { ret; }", (4, 28), "defined already, at 4:8"),
        (HEAD + ".alias a, b;", (4, 11), "declared before it"),
        (HEAD + ".reg .b32 %r;", (4, 1), "expected a directive"),
        (HEAD + ".global .align 3 .b8 x;", (4, 16), "a power of two, not 3"),
    ],
)
def test_modules(text: str, place: tuple[int, int], says: str) -> None:
    with pytest.raises(PtxError) as caught:
        read(text, "k.ptx")
    assert (caught.value.line, caught.value.column) == place and says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("add.s32 %r1, %r2 %r3;", 18, "expected ',' or ';', found '%r3'"),
        ("add.s32 %r1, %r2, 019;", 19, "'019' is not a PTX number"),
        ("add.s32 %r1, %r2, 12abc;", 19, "'12abc' is not a PTX number"),
        ("add.s32 %r1, %r2, 0xFFFFFFFFFFFFFFFFF;", 19, "more than 64 bits"),
        ("add.s32 %r1, %r2, 1 / 0;", 19, "divided by zero"),
        ("add.s32 %r1, %r2, 1 << 64;", 19, "shifted by 64"),
        ("add.s32 %r1, %r2, 1.5 & 1;", 19, "does not join"),
        ("add.s32 %r1, %r2, -0f3F800000;", 19, "does not go before this float"),
        ("mov.f32 v.q, 1.0;", 9, "'v' has no part 'q'"),
        ("mov.b32 %r1.x, 1;", 9, "'%r1' has no part 'x'"),
        ("ld.b32 %r1, [%rd1 - 4];", 19, "expected '+', ',' or ']'"),
        ("mov.b64 %rd1, %rd2[1];", 15, " is not a variable"),
        ("%r1 add;", 1, "expected an instruction"),
        ("} ret; {", 3, "expected a directive"),
        (".reg .b32 %r<5>;", 11, "declared in this scope already"),
        ("L: L: ret;", 4, "a label of this scope already"),
        (".reg .q32 x;", 6, "does not belong into a declaration"),
        ("mov.b32 %r1, " + "(" * 100 + "1" + ")" * 100 + ";", 78, "nested deeper than 64"),
        ("{" * 501 + "}" * 501, 501, "nest deeper than 500"),
        ("ret;\x01", 5, r"'\x01'"),
        ("mov.b32 %r1, ä;", 14, "does not begin anything"),
    ],
)
def test_bodies(text: str, column: int, says: str) -> None:
    with pytest.raises(PtxError) as caught:
        read(f"{ENTRY}{text}\n}}").functions["k"]
    assert (caught.value.line, caught.value.column) == (6, column) and says in str(caught.value)


def test_an_error_shows_its_line_with_a_caret_and_can_be_pickled() -> None:
    with pytest.raises(PtxError) as caught:
        read(f"{ENTRY}\tadd.s32 %r1, %r2 %r3; {'x' * 500}\n}}", "k.ptx").functions["k"]
    assert str(caught.value).splitlines()[1:] == [f"   add.s32 %r1, %r2 %r3; {'x' * 55}", "                    ^"]
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.file, again.line, again.column) == (str(caught.value), "k.ptx", 6, 19)


def test_bytes_that_are_no_utf_8() -> None:
    with pytest.raises(PtxError, match=r"^<ptx>:2:3: invalid UTF-8"):
        read(b".version 8.0\n//\xff")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (".visible .entry k(.param .b8 p[40000]) { ret; }", "40000 bytes of parameters; there are 32764"),
        (".entry k() { .local .b8 x[600000]; .reg .b64 a; mov.u64 a, x; ret; }", "a thread has 524288"),
        (".global .b8 g[99999999999999]; .entry k() { .reg .b64 a; mov.u64 a, g; ret; }", "at most are simulated"),
    ],
)
def test_more_memory_than_there_is(text: str, says: str) -> None:
    with pytest.raises(PtxError, match=says):
        load(HEAD + text)["k"].launch(Device("sm_80"), 1, 32, [bytes(40000)] if "param" in text else [])


def test_functions_on_cycles_are_recursive() -> None:
    calls = {"a": "b", "b": "c", "c": "b", "d": "d", "e": "a"}
    bodies = "".join(f".func {name}() {{ call {other}; ret; }}\n" for name, other in calls.items())
    entry = ".entry k() { call e; call d; ret; }"
    assert reach(read(HEAD + bodies + entry), "k").recursive == {"b", "c", "d"}
