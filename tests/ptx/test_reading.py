"""Parsing of PTX into records."""

from __future__ import annotations

import pytest

from warpmma.errors import PtxError
from warpmma.ptx import Function, Module, declared, read
from warpmma.ptx.text.syntax import (
    AddressOf,
    Element,
    Immediate,
    Label,
    LineOf,
    Negation,
    Place,
    Position,
    RegisterRange,
    Selection,
    Statement,
    Symbol,
    Variable,
    VectorOf,
)

pytestmark = pytest.mark.quick

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"


def module(text: str) -> Module:
    return read(HEAD + text, "k.ptx")


def body(text: str, before: str = "") -> Function:
    return module(f"{before}\n.visible .entry k(.param .u64 p)\n{{\n{text}\n}}").functions["k"]


def statements(text: str, before: str = "") -> list[Statement]:
    return [one for one in body(text, before).body if isinstance(one, Statement)]


def operands(text: str) -> tuple[object, ...]:
    return statements(text)[0].operands


def test_a_module_says_its_version_and_target() -> None:
    found = read(".version 8.4\n.target sm_90a, debug\n.address_size 64\n", "name")
    assert (found.name, found.version, found.target, found.address_size) == ("name", (8, 4), "sm_90a", 64)


def test_nul_characters_at_the_end_are_cut_off() -> None:
    assert read(HEAD.encode() + b"\0\0").target == "sm_80"


def test_an_entry_has_parameters_directives_and_a_body() -> None:
    found = module(
        """
        .visible .entry k(
            .param .u64 .ptr .global .align 16 out,   // where results go
            .param .align 8 .b8 s[24],
            .param .f32 x
        )
        .maxntid 128, 2 .minnctapersm 2
        .pragma "something";
        .maxnreg 64
        { ret; }
        """
    ).functions["k"]
    out, s, x = found.parameters
    assert out == Variable("param", "u64", 1, "out", None, 8, pointer=("global", 16), position=Position(6, 48))
    assert isinstance(s, Variable) and (s.dimensions, s.alignment, s.size) == ((24,), 8, 24)
    assert isinstance(x, Variable) and x.size == 4
    assert found.directives == {"maxntid": (128, 2), "minnctapersm": (2,), "maxnreg": (64,)}
    assert (found.kind, found.linkage, found.defined) == ("entry", "visible", True)
    assert found.body == (Statement("ret", (), position=Position(13, 11)),)


def test_functions_are_declared_and_defined() -> None:
    found = module(
        """
        .extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
        .weak .func later(.reg .u32 n);
        .func (.reg .b32 s) inner .noreturn { ret; }
        .weak .func later(.reg .u32 m) { ret; }
        """
    )
    assert list(found.functions) == ["vprintf", "later", "inner"]
    assert not found.functions["vprintf"].defined
    assert [one.name for one in found.functions["vprintf"].results] == ["r"]
    assert found.functions["later"].parameters == (RegisterRange("m", "u32", 1, None, Position(8, 37)),)
    assert found.functions["inner"].directives == {"noreturn": ()}
    assert set(found.kinds.values()) == {"func"}


def test_a_body_is_read_when_it_is_looked_up() -> None:
    found = module(".entry good() { ret; }\n.entry bad() { add.s32 % ; }")
    assert list(found.functions) == ["good", "bad"] and len(found.functions["good"].body) == 1
    with pytest.raises(PtxError, match=r"k\.ptx:5:24"):
        found.functions["bad"]


def test_qualifiers_may_stand_apart() -> None:
    assert (
        statements("ld .global .L2::128B.v4 .u32 {%r1, %r2, _, %r4}, [p];")[0].mnemonic == "ld.global.L2::128B.v4.u32"
    )


def test_operands() -> None:
    registers = ".reg .b32 %r<9>; .reg .v4 .f32 %v; .reg .pred %p<3>; .reg .b64 %rd<3>;"
    found = statements(
        f"""{registers}
        @!%p1 add.s32 %r1, %r2, (1 + 2) * 4 - WARP_SZ;
        setp.lt.and.s32 %p1|%p2, %r1, -1, !%p1;
        mov.f32 %v.y, 0f3F800000;
        st.global.v2.u32 [%rd1 + -8], {{%r1, 0x10U}};
        mov.u64 %rd1, p+8;
        vadd.u32.u32.s32 %r1, %r2.b1, %r3.h0;
        mov.u32 %r1, %tid.x;
        cp.async.bulk.tensor.2d.shared.global [%rd1], [%rd2, {{%r1, %r2}}], [%rd1+8];
        """
    )
    add, setp, mov, st, address, video, special, tensor = found
    r1, r2 = Symbol("%r1", 0), Symbol("%r2", 0)
    assert (add.guard, add.negated, add.operands) == (Symbol("%p1", 0), True, (r1, r2, Immediate(-20)))
    assert setp.paired and setp.operands[:2] == (Symbol("%p1", 0), Symbol("%p2", 0))
    assert setp.operands[2:] == (r1, Immediate(-1), Negation(Symbol("%p1", 0)))
    assert mov.operands == (Element(Symbol("%v", 0), 1), Immediate(0x3F800000, "f32"))
    assert st.operands == (Place(Symbol("%rd1", 0), -8), VectorOf((r1, Immediate(16, "u"))))
    assert address.operands[1] == Place(Symbol("p", 0), 8, form="sum")
    assert video.operands[1:] == (Selection(r2, "b1"), Selection(Symbol("%r3", 0), "h0"))
    assert special.operands[1] == Symbol("%tid.x")
    assert tensor.operands[1] == Place(Symbol("%rd2", 0), 0, (VectorOf((r1, r2)),))


def test_an_index_counts_elements() -> None:
    found = statements("ld.global.u32 %r1, a[3]; mov.u64 %rd1, b[2];", ".global .u32 a[4]; .global .v2 .f64 b[4];")
    assert found[0].operands[1] == Place(Symbol("a"), 12, form="element")
    assert found[1].operands[1] == Place(Symbol("b"), 32, form="element")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("call.uni f;", (Symbol("f"),)),
        ("call f, ();", (Symbol("f"), VectorOf(()))),
        ("call (r), f, (p, 5);", (VectorOf((Symbol("r"),)), Symbol("f"), VectorOf((Symbol("p", 0), Immediate(5))))),
        ("call (r), %rd, (), proto;", (VectorOf((Symbol("r"),)), Symbol("%rd"), VectorOf(()), Symbol("proto"))),
        ("call f, (1, 2);", (Symbol("f"), VectorOf((Immediate(1), Immediate(2))))),
    ],
)
def test_calls(text: str, expected: object) -> None:
    assert operands(text) == expected


def test_scopes_declare_names_again() -> None:
    found = body(
        """.reg .b32 %r<4>;
        { .reg .b64 %r1; mov.b64 %r1, 1; mov.b32 %r2, 1; { .reg .pred %r2; not.pred %r2, %r2; } }
        { .reg .pred %r1; not.pred %r1, %r1; }
        mov.b32 %r1, %r1;"""
    )
    first = [one.operands[0] for one in found.body if isinstance(one, Statement)]
    assert first == [Symbol("%r1", 1), Symbol("%r2", 0), Symbol("%r2", 2), Symbol("%r1", 3), Symbol("%r1", 0)]
    types = [one.type for one in (declared(found, name) for name in first if isinstance(name, Symbol)) if one]
    assert types == ["b64", "b32", "pred", "pred", "b32"]


def test_labels_that_scopes_redefine_are_distinguished() -> None:
    block = "{ WAIT: @%p bra DONE; bra.uni WAIT; DONE: }"
    found = body(f"DONE: {block} {block} bra DONE;").body
    names = [one.name if isinstance(one, Label) else one.operands[0].name for one in found]  # type: ignore[union-attr]
    assert names == [*("DONE", "WAIT", "DONE@1", "WAIT", "DONE@1"), *("WAIT@2", "DONE@2", "WAIT@2", "DONE@2", "DONE")]


def test_lists_of_labels_and_prototypes() -> None:
    found = body(
        """ts: .branchtargets A, B;
        fs: .calltargets f, g;
        proto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[16]);
        brx.idx %r1, ts; A: B: ret;"""
    )
    assert found.targets == {"ts": ("A", "B"), "fs": ("f", "g")}
    results, given = found.prototypes["proto"]
    assert [one.type for one in results] == ["b32"]
    assert isinstance(given[1], Variable) and given[1].size == 16
    assert [one.name for one in found.body if isinstance(one, Label)] == ["A", "B"]


def test_lines_of_the_source_are_kept() -> None:
    found = module(
        """.entry k() {
        .loc 1 10 3
        mov.b32 a, 1;
        .loc 2 5 1, function_name $L__info+9, inlined_at 1 10 3
        mov.b32 a, 2; }
        .file 1 "a.cu"
        .file 2 "b.cuh", 123, 456
        .section .debug_str { $L__info: .b8 "{", 1, 2 }
        """
    ).functions["k"]
    first, second = (one.loc for one in found.body if isinstance(one, Statement))
    assert first == LineOf("a.cu", 10, 3)
    assert second == LineOf("b.cuh", 5, 1, first)


def test_variables_have_initial_values() -> None:
    found = module(
        """.extern .shared .align 16 .b8 dynamic[];
        .global .f32 f[4] = {1.0, 0fBF800000, -1.5};
        .const .align 8 .u64 q[] = {f, f+8, generic(f), generic(f)+4, -1};
        .global .u8 bytes[4] = {0xFF(f), 0xFF00(f+8), 0xFF0000(generic(f)), 300};
        .global .u16 m[3][2] = {{1}, {}, {2, 3}};
        .global .v2 .f64 d = {1.0, 0d4000000000000000};
        .global .b32 a, b = 1+2*3, c[5];
        .global .u32 n<3>;"""
    ).variables
    assert (found["dynamic"].dimensions, found["dynamic"].linkage, found["dynamic"].alignment) == ((0,), "extern", 16)
    assert found["f"].initial == (0x3F800000, 0xBF800000, 0xBFC00000) and found["f"].size == 16
    addresses = AddressOf("f"), AddressOf("f", 8), AddressOf("f", 0, True), AddressOf("f", 4, True)
    assert found["q"].initial == (*addresses, 2**64 - 1) and found["q"].size == 40
    picked = AddressOf("f", byte=0), AddressOf("f", 8, byte=1), AddressOf("f", generic=True, byte=2)
    assert found["bytes"].initial == (*picked, 44)
    assert found["m"].initial == (1, 0, 0, 0, 2, 3)
    assert found["d"].initial == (0x3FF0000000000000, 0x4000000000000000)
    assert found["b"].initial == (7,) and found["c"].size == 20
    assert {"n0", "n1", "n2"} <= set(found) and "n" not in found


def test_a_range_of_registers_is_not_listed() -> None:
    found = body(".reg .b32 %r<4000000000>; mov.b32 %r3999999999, %r4000000000;")
    assert found.scopes[0][1] == RegisterRange("%r", "b32", 1, 4_000_000_000, Position(7, 11))
    assert [one.scope for one in found.body[0].operands] == [0, -1]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("017", 15), ("0b101U", 5), ("0X1f", 31), ("7 / -2", -3), ("-7 % 3", -1), ("1 << 4 | 1", 17), ("~0", -1),
        ("2 > 1 ? 10 : 20", 10), ("(.u64)-1 / 2", 2**63 - 1), ("!5 || 0 && 1", 0), ("3 == 3", 1), ("1 + 2 << 3", 24),
        ("0x8000000000000000 * 2", 0), ("0x7FFFFFFFFFFFFFFF + 1", -(2**63)), ("-1 < 1U", 0), ("6 ^ 3 & 1", 7),
    ],
)  # fmt: skip
def test_constant_expressions(text: str, value: int) -> None:
    found = operands(f"mov.b64 x, {text};")[1]
    assert isinstance(found, Immediate) and found.value == value


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1.5", 0x3FF8000000000000),
        (".5", 0x3FE0000000000000),
        ("-1e3", 0xC08F400000000000),
        ("1.5 + 2.0", 0x400C000000000000),
    ],
)
def test_decimal_floats(text: str, code: int) -> None:
    assert operands(f"mov.f64 x, {text};")[1] == Immediate(code, "f64")


def test_comments_and_line_markers_are_blank() -> None:
    found = body('/* } { */ // " }\n# 12 "a { file.cu"\nret /* one */ ; // two')
    assert found.body == (Statement("ret", (), position=Position(9, 1)),)


def test_a_label_has_the_pragmas_after_it() -> None:
    found = body('.pragma "one"; L: .pragma "nounroll"; ret;').body
    assert found[0] == Label("L", Position(7, 16), ("nounroll",))
