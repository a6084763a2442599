"""What is read at once is what the grammar reads token by token: a comment inside makes it go that way."""

from __future__ import annotations

import re

import pytest

from warpmma.errors import PtxError
from warpmma.ptx import read
from warpmma.ptx.text import Function, Immediate, Place, Statement, Symbol

_HEAD = """.version 8.6 .target sm_90 .address_size 64
.file 1 "kernel.cu" .file 2 "lib/inlined.cuh"
.entry k(.param .u64 p) {
.reg .b32 %r<9>; .reg .b64 %rd<5>; .reg .pred %p1; .reg .f32 %f<3>; .reg .v4 .f32 v; .shared .b8 tile[64];
"""
_BODY = """.loc 1 5 3
ld.param.u64 %rd1, [p];
.loc 2 17 9, function_name $L__info_string0, inlined_at 1 5 3
{ .reg .b32 %r1; mov.u32 %r1, %tid.x; add.s32 %r1, %r1, -5; }
.loc 2 18 1, function_name $L__info_string1, inlined_at 2 17 9
mov.u32 %r1, 0x1F; mov.u32 %r2, WARP_SZ; add.s32 %r3 ,%r1,  017;
mov.f32 %f1, 0f3F800000; mov.f32 %f2, v.y; st.shared.u32 [tile+8], %r1; ld.global.u32 %r4, [%rd1+-16];
setp.ne.s32 %p1, %r1, 0;
@!%p1 bra $END;
.loc 1 6 0
st.global.u32 [%rd1], %r1;
$END: ret;
}"""


def _read(text: str) -> Function:
    return read(_HEAD + text).functions["k"]


def _by_tokens(text: str) -> str:
    """Put a comment, as long as the blank that it replaces or longer, behind each opcode and each number of a line."""
    text = re.sub(r"(?m)^(\.loc \d+ \d+ \d+)", r"\1/**/", text)
    return re.sub(r"(?<=[a-z\d]) (?=[%\[$])", "/**/", text)


def _without_places(function: Function) -> list[object]:
    return [
        (x.mnemonic, x.operands, x.guard, x.negated, x.paired, x.loc) if isinstance(x, Statement) else x.name
        for x in function.body
    ]


def test_statements_and_lines_are_those_of_the_grammar() -> None:
    at_once, by_tokens = _read(_BODY), _read(_by_tokens(_BODY))
    assert _by_tokens(_BODY).count("/**/") > 15
    assert _without_places(at_once) == _without_places(by_tokens)


def test_what_names_mean_depends_on_their_scope() -> None:
    body = [x for x in _read(_BODY).body if isinstance(x, Statement)]
    assert body[1].operands == (Symbol("%r1", 1), Symbol("%tid.x"))
    assert body[3].operands == (Symbol("%r1", 0), Immediate(31))
    assert [x.operands[-1] for x in body if x.mnemonic == "ld.global.u32"] == [Place(Symbol("%rd1", 0), -16)]
    inner = body[3].loc
    assert inner is not None and inner.inlined_at is not None and inner.inlined_at.inlined_at is not None
    assert [x.line for x in (inner, inner.inlined_at, inner.inlined_at.inlined_at)] == [18, 17, 5]


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("add.s32 %r1, %r2.q, 5;", r"5:14: '%r2' has no part 'q'"),
        ("add.s32 %r1, %r2, 0x11223344556677889;", r"5:19: 0x11223344556677889 needs more than 64 bits"),
        ("add.s32 %r1, %r2, 08;", r"5:19: '08' is not a PTX number"),
        ("add.s32 %r1, %r2, 5 7;", r"5:21: expected ',' or ';', found '7'"),
        (".loc 1 5 3 5", r"5:12: expected a statement, found '5'"),
        (".loc 1 5 3, 5", r"5:13: expected function_name or inlined_at, found '5'"),
    ],
)
def test_errors_are_where_they_were(statement: str, says: str) -> None:
    with pytest.raises(PtxError, match=says):
        _read(f"{statement}\nret;\n}}")


def _initial(declaration: str) -> tuple[object, ...]:
    return read(f".version 8.6 .target sm_90 {declaration}").variables["t"].initial


@pytest.mark.parametrize("type_", ["b8", "u16", "s32", "u64"])
def test_tables_of_integers(type_: str) -> None:
    numbers = [0, 1, -1, 255, 256, -70000, 10**17, 7]
    bits = int(type_[1:])
    expected = tuple(x % (1 << bits) for x in numbers)
    at_once = ", ".join(map(str, numbers))
    assert _initial(f".global .{type_} t[8] = {{{at_once}}};") == expected
    assert _initial(f".global .{type_} t[] = {{\n{at_once}\n}};") == expected
    assert _initial(f".global .{type_} t[8] = {{/**/{at_once}}};") == expected
    assert _initial(f".global .{type_} t[9] = {{{at_once}}};") == expected
    rows = f"{{{{{', '.join(map(str, numbers[:4]))}}}, {{{', '.join(map(str, numbers[4:6]))}}}}}"
    assert _initial(f".global .{type_} t[2][4] = {rows};") == expected[:6]


@pytest.mark.parametrize(
    ("declaration", "says"),
    [
        (".global .b8 t[2] = {1, 2, 3};", "2 values are all that these braces take"),
        (".global .b8 t[3] = {1, 2,};", "found '}'"),
        (".global .f32 t[2] = {1, 2};", "an integer cannot initialize .f32"),
        (".global .b8 t[2][] = {{1, 2}};", "only the first dimension"),
    ],
)
def test_tables_that_are_wrong(declaration: str, says: str) -> None:
    with pytest.raises(PtxError, match=re.escape(says)):
        _initial(declaration)
