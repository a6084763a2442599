"""Directives of functions: those of clusters, those that are ignored on purpose, and unknown ones."""

from __future__ import annotations

import pytest
from oracles import needs
from ptxas_cases import verdict

import warpmma as wm
from warpmma import ptx
from warpmma.errors import PtxError, UnsupportedError

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
    (".reqnctapercluster 2", "reqnctapercluster 2: clusters of more than one block"),
    (".reqnctapercluster 1, 2, 1", "reqnctapercluster 1, 2, 1: clusters of more than one block"),
    (".explicitcluster .reqnctapercluster 2", "reqnctapercluster 2: clusters of more than one block"),
    (".explicitcluster", "explicitcluster without .reqnctapercluster: clusters whose size the launch gives"),
    (".maxclusterrank 8", "maxclusterrank 8: clusters of more than one block"),
    (".reqntid 32 .reqnctapercluster 2 .blocksareclusters", "reqnctapercluster 2: clusters of more"),
]


@pytest.mark.parametrize("directives", ONE_BLOCK)
def test_clusters_of_one_block_are_launched(directives: str) -> None:
    assert ptx.load(entry(directives)).check().problems == 0
    launched(entry(directives))


@pytest.mark.parametrize(("directives", "message"), MORE_BLOCKS)
def test_clusters_of_more_blocks_are_refused(directives: str, message: str) -> None:
    module = ptx.load(entry(directives), "k.ptx")
    (problem,) = (x for needs in module.check().entries for x in needs.problems)
    assert message in str(problem) and str(problem).startswith("k.ptx:4:17: k: .")
    with pytest.raises(PtxError, match=message):
        launched(entry(directives))
    module["other"].launch(wm.Device("sm_90"), 1, 1, [])


@pytest.mark.parametrize(
    ("body", "runs"),
    [
        ("mapa.shared::cluster.u32 %r2, word, 0;", True),
        ("mov.u32 %r3, 0; mapa.shared::cluster.u32 %r2, word, %r3;", True),
        ("mapa.shared::cluster.u32 %r2, word, 1;", False),
        ("mapa.shared::cluster.u32 %r2, word, %r1;", False),
        ("setp.eq.u32 %p1, %r1, 0; @%p1 mapa.u64 %rd2, 4096, %r1;", True),
        ("mov.u32 %r3, %cluster_ctarank; mapa.u64 %rd2, 4096, %r3;", True),
    ],
)
def test_addresses_of_other_ranks_are_refused_when_they_are_made(body: str, runs: bool) -> None:
    problems = ptx.load(entry("", body)).check().entries[0].problems
    assert len(problems) == (", 0;" not in body.split("mapa")[1])
    says = "ranks other than 0 are refused when they are executed: a cluster has one block here"
    assert all(says in str(x) for x in problems)
    if runs:
        launched(entry("", body))
        return
    with pytest.raises(UnsupportedError, match=r"lane \d maps an address to rank 1; expected 0"):
        launched(entry("", body))


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
    taken = [entry(x) for x in (*ONE_BLOCK, *IGNORED, *(x for x, _ in MORE_BLOCKS))]
    taken += [HEAD + x + OTHER for x, message in FUNCTIONS if not message]
    refused = [entry(x) for x, _ in REFUSED] + [HEAD + x + OTHER for x, message in FUNCTIONS if message]
    assert not [(x, said) for x in taken if (said := verdict(x))]
    assert not [x for x in refused if not verdict(x)]
