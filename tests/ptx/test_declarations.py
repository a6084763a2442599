"""Declarations that are accepted or refused, like ptxas."""

from __future__ import annotations

import pytest
from oracles import needs
from ptxas_cases import verdict

from warpmma import ptx
from warpmma.errors import PtxError

ENTRY = "\n.visible .entry other() { ret; }"


def text(declaration: str) -> str:
    """Return a module with a declaration; a body's in braces."""
    version, target = ("6.5", "sm_30") if declaration.startswith("old: ") else ("9.0", "sm_90")
    declaration = declaration.removeprefix("old: ")
    if declaration.startswith("{"):
        declaration = f".visible .entry k() {declaration}"
    return f".version {version}\n.target {target}\n.address_size 64\n{declaration}{ENTRY}"


def said(of: str) -> str:
    """What is said against a text, if anything."""
    try:
        return "\n".join(str(x) for entry in ptx.load(of).check().entries for x in entry.problems)
    except PtxError as error:
        return str(error)


TAKEN = [
    ".global .attribute(.managed) .b32 x;", ".global .align 8 .b32 x;", ".global .v2 .b64 x;", ".global .b128 x;",
    ".global .b32 x[] = {1, 2};", ".extern .shared .b32 x[];", ".common .global .b32 x;", ".global .texref x;",
    ".entry f(.param .u64 .ptr .global .align 16 x) { ret; }", ".entry f(.param .b32 .align 8 x) { ret; }",
    ".entry f(.param .align 8 .b8 x[24]) { ret; }", ".func f(.param .b32 x, .param .b32 y[]) { ret; }",
    ".func (.reg .b32 a, .reg .b32 b) f(.reg .v2 .b32 x, .reg .pred y) { ret; }",
    "{ .reg .v4 .f32 x; .shared .b32 y[4]; .local .b8 z; .global .b32 w; ret; }", "old: .global .f16 x;",
]  # fmt: skip
REFUSED = {
    ".global .b32 x[];": "'x' has no size; expected one, as x[4]",
    ".const .b32 x[];": "'x' has no size",
    ".shared .b32 x[];": "'x' has no size",
    ".global .b32 x[0];": "'x' has no size",
    "{ .shared .b32 x[]; ret; }": "'x' has no size",
    ".entry f(.param .b32 x[]) { ret; }": "'x' has no size",
    ".func f(.param .b32 x[], .param .b32 y) { ret; }": "only a function's last parameter may leave its size open",
    ".entry f(.param .v2 .b32 x) { ret; }": ".param has no vectors, as .v2",
    ".func f(.param .b32 .v2 x) { ret; }": "expected a name, found '.v2'",
    ".entry f(.param .f16x2 x) { ret; }": ".param has no .f16x2; expected .b32",
    ".entry f(.reg .b32 x) { ret; }": "parameters of an entry are in .param, not in .reg",
    ".entry f(.param .b32 x<2>) { ret; }": "expected ',' or ')', found '<'",
    ".entry f(.param .b8 x[2][3]) { ret; }": "a parameter has one dimension at most",
    ".func (.param .b32 a, .param .b32 b) f() { ret; }": "several results are in .reg; in .param there is one",
    "old: .func (.reg .b32 a) f(.reg .f16x2 x) { ret; }": ".f16x2 requires sm_53; this text is for sm_30",
    "old: .global .b128 x;": ".b128 requires PTX 8.3; this text is PTX 6.5",
    ".global .v8 .b32 x;": "'.v8' does not belong into a declaration",
    ".global .v4 .b64 x;": "there are no vectors .v4 of .b64; a vector has 128 bits at most",
    "{ .reg .v2 .pred x; ret; }": "there are no vectors .v2 of .pred",
    ".global .pred x;": "a predicate is a register, not a variable in .global",
    ".global .bf16 x;": "'.bf16' does not belong into a declaration",
    "{ .reg .tf32 x; ret; }": "'.tf32' does not belong into a declaration",
    "{ .reg .f32x2 x; ret; }": "'.f32x2' does not belong into a declaration",
    "{ .shared .texref x; ret; }": ".texref is of variables of a module",
    ".global .b32 .align 8 x;": "expected a name, found '.align'",
    ".global .ptr .b32 x;": "'.ptr' does not belong into a declaration",
    ".common .shared .b32 x;": ".common variables are in .global, not in .shared",
    ".const .attribute(.managed) .b32 x;": ".managed variables are in .global, not in .const",
    ".extern .visible .global .b32 x;": "expected a directive, such as '.entry', found '.visible'",
    ".local .b32 x[4];": "variables of a module in .local ended with PTX 2.3; declare it in the function",
    ".tex .u32 x;": ".tex ended with PTX 1.4",
    ".global .b32 x;;": "expected a directive, such as '.entry', found ';'",
}


@pytest.mark.parametrize("declaration", TAKEN)
def test_declarations_that_are_taken(declaration: str) -> None:
    assert said(text(declaration)) == ""


@pytest.mark.parametrize(("declaration", "message"), REFUSED.items())
def test_declarations_that_are_refused(declaration: str, message: str) -> None:
    assert message in said(text(declaration))


@needs("ptxas")
def test_ptxas_takes_the_same_declarations() -> None:
    assert not [(x, why) for x in TAKEN if (why := verdict(text(x)))]
    assert not [x for x in REFUSED if not verdict(text(x))]
