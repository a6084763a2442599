"""Directives of functions: those of clusters, those that are ignored on purpose, and unknown ones."""

from __future__ import annotations

from typing import Any

import pytest
from oracles import needs
from ptxas_cases import verdict

import warpmma as wm
from warpmma import ptx
from warpmma.errors import OperandError, PtxError

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
OTHER = "\n.visible .entry other() { ret; }"


def entry(directives: str, body: str = "") -> str:
    registers = ".shared .b32 word; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>; mov.u32 %r1, %tid.x;"
    return f"{HEAD}.visible .entry k() {directives} {{ {registers} {body} ret; }}{OTHER}"


def launched(text: str) -> None:
    ptx.load(text, "k.ptx")["k"].launch(wm.Device("sm_90"), 2, 32, [])


ONE_BLOCK = [
    ".reqnctapercluster 1", ".reqnctapercluster 1, 1, 1", ".explicitcluster .reqnctapercluster 1, 1, 1",
    ".maxclusterrank 1", ".reqnctapercluster 0",
    ".reqntid 32 .reqnctapercluster 1 .blocksareclusters",
]  # fmt: skip
MORE_BLOCKS = [
    ".reqnctapercluster 2", ".explicitcluster .reqnctapercluster 2", ".maxclusterrank 8",
    ".reqntid 32 .reqnctapercluster 1, 2, 1 .blocksareclusters",
]  # fmt: skip
OTHERS = [
    (".reqnctapercluster 2", {"cluster": 4}, r"cluster is 4; k declares .reqnctapercluster 2: no other size"),
    (".reqnctapercluster 2", {"cluster": (1, 2)}, r"cluster is \(1, 2\); k declares .reqnctapercluster 2"),
    (".reqnctapercluster 3", {}, r"grid is 2 and cluster 3; expected .* the nearest larger one is 3"),
    (".explicitcluster", {}, r"no cluster is given; k declares .explicitcluster: a launch has to give a size"),
    (".maxclusterrank 2", {"cluster": 4}, r"cluster is 4; k declares .maxclusterrank 2: that many blocks at most"),
    ("", {"cluster": 17}, r"cluster is 17: 17 blocks; on sm_90 expected 16 at most"),
]


@pytest.mark.parametrize("directives", ONE_BLOCK)
def test_clusters_of_one_block_are_launched(directives: str) -> None:
    assert ptx.load(entry(directives)).check().problems == 0
    launched(entry(directives))


@pytest.mark.parametrize(
    "directives", [".reqnctapercluster 2", ".reqntid 32 .reqnctapercluster 1, 2 .blocksareclusters"]
)
def test_clusters_of_more_blocks_are_launched(directives: str) -> None:
    assert ptx.load(entry(directives)).check().problems == 0
    launched(entry(directives))


@pytest.mark.parametrize(("directives", "options", "message"), OTHERS)
def test_other_clusters_are_refused(directives: str, options: dict[str, Any], message: str) -> None:
    module = ptx.load(entry(directives), "k.ptx")
    assert module.check().problems == 0
    with pytest.raises(OperandError, match=rf"k\.ptx:4:17: {message}"):
        module["k"].launch(wm.Device("sm_90"), 2, 32, [], **options)


IGNORED = [
    ".maxnreg 32", ".reqntid 32 .minnctapersm 2", '.pragma "nounroll";', ".maxntid 32, 1, 1 .maxnreg 8",
]  # fmt: skip
REFUSED = [
    (".noreturn", "noreturn is a directive of functions, not of entries"),
    (".abi_preserve 3", "abi_preserve is a directive of functions"),
    (".frobnicate 3", "expected '{' or ';', found '.frobnicate'"),
    (".attribute(.managed)", "expected '{' or ';', found '.attribute'"),
    (".maxntid 32 .reqntid 32", ".maxntid and .reqntid exclude each other"),
    (".maxclusterrank 1 .reqnctapercluster 1", ".maxclusterrank and .reqnctapercluster exclude each other"),
    (".blocksareclusters .reqntid 32", ".blocksareclusters requires .reqntid and .reqnctapercluster"),
    (".maxntid 0", ".maxntid takes positive numbers, not 0"),
    (".maxntid 1, 2, 3, 4", "expected '{' or ';', found ','"),
    (".maxntid", "expected a number, found '{'"),
    (".maxnctapersm 2", ".maxnctapersm ended with PTX 2.0"),
]


@pytest.mark.parametrize("directives", IGNORED)
def test_what_is_ignored_on_purpose(directives: str) -> None:
    launched(entry(directives))


@pytest.mark.parametrize(("directives", "message"), REFUSED)
def test_what_no_entry_has(directives: str, message: str) -> None:
    with pytest.raises(PtxError) as caught:
        ptx.load(entry(directives))
    assert message in str(caught.value)


FUNCTIONS = [
    (".func f() .noreturn { trap; }", ""),
    (".func f() .abi_preserve 3 { ret; }", ""),
    (".func .noreturn f() { trap; }", "expected a function's name, found '.noreturn'"),
    (".func f() .maxntid 32 { ret; }", ".maxntid is a directive of entries, not of functions"),
    (".func .attribute(.frob) f() { ret; }", "expected an attribute, .managed or .unified, found '.frob'"),
    (".entry .maxntid 32 f() { ret; }", "expected a function's name, found '.maxntid'"),
]


@pytest.mark.parametrize(("function", "message"), FUNCTIONS)
def test_directives_of_functions(function: str, message: str) -> None:
    if not message:
        ptx.load(HEAD + function + OTHER)["other"].launch(wm.Device("sm_90"), 1, 1, [])
        return
    with pytest.raises(PtxError) as caught:
        ptx.load(HEAD + function + OTHER)
    assert message in str(caught.value)


def test_directives_of_later_versions_and_targets() -> None:
    with pytest.raises(PtxError, match=r"\.reqnctapercluster requires PTX 7\.8; this text is PTX 7\.0"):
        ptx.load(entry(".reqnctapercluster 1").replace("9.0", "7.0"))
    with pytest.raises(PtxError, match=r"\.maxclusterrank requires sm_90; this text is for sm_80"):
        ptx.load(entry(".maxclusterrank 1").replace("sm_90", "sm_80"))


@needs("ptxas")
def test_ptxas_takes_and_refuses_the_same() -> None:
    taken = [entry(x) for x in (*ONE_BLOCK, *IGNORED, *MORE_BLOCKS)]
    taken += [HEAD + x + OTHER for x, message in FUNCTIONS if not message]
    refused = [entry(x) for x, _ in REFUSED] + [HEAD + x + OTHER for x, message in FUNCTIONS if message]
    assert not [(x, said) for x in taken if (said := verdict(x))]
    assert not [x for x in refused if not verdict(x)]
