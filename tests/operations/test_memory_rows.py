"""`ld`, `st`, `cp.async`, barriers and `exit`: what their rows say, and which of them ptxas takes."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from oracles import needs

from warpmma.errors import MnemonicError, TargetError
from warpmma.operations import Access, Barrier, Copy, CopyGroup, Exit, InstructionRow, row, rows
from warpmma.operations.memory.loads_and_stores import FORMS
from warpmma.operations.table import FormTable

ACCESSES = [x for x in rows() if isinstance(x, Access)]


# What rows say


def test_accesses_say_what_their_names_do() -> None:
    for given in ACCESSES:
        words = given.mnemonic.split(".")
        bare = [word if word == "shared::cluster" else word.partition("::")[0] for word in words]
        assert given.direction == {"ld": "load", "ldu": "load", "st": "store"}[words[0]]
        assert given.type == words[-1] and given.bits == int(words[-1][1:]) and given.signed == (words[-1][0] == "s")
        assert given.kind == f"b{min(max(given.bits, 16), 64)}"
        assert given.count == int((re.search(r"\.v(\d)\.", given.mnemonic) or [0, 1])[1])
        assert given.size == given.count * given.bits // 8 <= (32 if "sm_90" not in given.targets else 16)
        assert given.space in bare or (given.space == "generic" and not {"global", "shared", "local"} & {*bare})
        assert given.nc == ("nc" in words or words[0] == "ldu") and given.hint == ("L2::cache_hint" in words)
        letter = "d" if given.direction == "load" else "a"
        assert given.registers == given.count * (2 if given.bits == 128 else 1)
        assert len(re.findall(rf"{letter}\d", given.syntax)) == given.registers and "[p]" in given.syntax
        assert given.syntax.endswith(", policy") == given.hint
        strong = {"relaxed", "acquire", "release", "volatile", "mmio"} & {*words}
        assert (given.order == "weak") == (not strong) and given.observes == (letter == "d" and bool(strong))
        assert given.scope in words or (given.scope == "sys" and not {"cta", "cluster", "gpu"} & {*words})


@pytest.mark.parametrize(
    ("mnemonic", "expected"),
    [
        ("ld.global.s8", {"size": 1, "kind": "b16", "signed": True, "syntax": "d0, [p]", "count": 1}),
        ("st.shared::cta.v2.f64", {"size": 16, "kind": "b64", "space": "shared", "syntax": "[p], {a0, a1}"}),
        ("ld.global.nc.v8.f32", {"size": 32, "nc": True, "since": "sm_100", "ptx": (8, 8)}),
        ("ld.b32", {"space": "generic", "order": "weak", "observes": False}),
        ("ld.v4.u16", {"size": 8, "count": 4, "kind": "b16", "since": "sm_70"}),
        ("ld.volatile.shared.v2.b32", {"space": "shared", "order": "relaxed", "scope": "sys", "observes": True}),
        ("st.volatile.b32", {"order": "relaxed", "observes": False}),
        ("ld.mmio.relaxed.sys.global.u8", {"order": "relaxed", "scope": "sys", "ptx": (8, 2)}),
        ("ld.acquire.gpu.b64", {"space": "generic", "order": "acquire", "scope": "gpu", "ptx": (6, 0)}),
        ("st.release.cluster.shared::cluster.b32", {"order": "release", "scope": "cluster", "since": "sm_90"}),
        ("ld.relaxed.cta.global.L1::no_allocate.L2::cache_hint.b32", {"scope": "cta", "hint": True}),
        ("ld.param::entry.b128", {"space": "param", "kind": "b64", "registers": 2, "size": 16, "ptx": (8, 3)}),
        ("st.param::func.v4.b16", {"space": "param", "direction": "store"}),
        ("ld.const.f64", {"space": "const", "kind": "b64"}),
        ("ldu.global.v4.f32", {"nc": True, "direction": "load", "order": "weak"}),
        ("ld.weak.shared.b32", {"ptx": (6, 0), "since": "sm_70"}),
        ("ld.global.L2::256B.b32", {"since": "sm_80", "ptx": (7, 4)}),
        ("st.global.L2::cache_hint.b32", {"hint": True, "syntax": "[p], a0, policy", "since": "sm_80"}),
        (
            "cp.async.ca.shared.global",
            {"sizes": (4, 8, 16), "hint": False, "syntax": "[p], [q], size{, src-size | ignore-src}"},
        ),
        ("cp.async.cg.shared::cta.global.L2::128B", {"sizes": (16,), "ptx": (7, 8), "since": "sm_80"}),
        ("cp.async.ca.shared.global.L2::cache_hint", {"hint": True, "ptx": (7, 4)}),
        ("cp.async.commit_group", {"action": "commit", "syntax": ""}),
        ("cp.async.wait_group", {"action": "wait_group", "syntax": "n"}),
        ("cp.async.wait_all", {"action": "wait_all", "syntax": ""}),
        ("bar.sync", {"action": "sync", "aligned": True, "syntax": "a{, b}"}),
        ("bar.cta.arrive", {"action": "arrive", "aligned": True, "syntax": "a, b", "ptx": (7, 8)}),
        ("barrier.sync", {"action": "sync", "aligned": False, "ptx": (6, 0)}),
        ("barrier.cta.arrive.aligned", {"action": "arrive", "aligned": True}),
        ("bar.warp.sync", {"action": "warp", "aligned": False, "syntax": "membermask"}),
        ("exit", {"syntax": ""}),
    ],
)
def test_what_rows_say(mnemonic: str, expected: dict[str, Any]) -> None:
    found = row(mnemonic)
    assert isinstance(found, Access | Copy | CopyGroup | Barrier | Exit)
    assert {name: getattr(found, name) for name in expected} == expected
    assert found.evidence.kind == "published"


@pytest.mark.parametrize(
    "mnemonic", ["ld.global.v4.b64", "ld.global.v8.b32", "st.global.v8.f32", "ld.global.nc.L2::evict_last.v4.f64"]
)
def test_32_bytes_came_with_sm_100(mnemonic: str) -> None:
    assert isinstance(row(mnemonic, "sm_100"), Access)
    with pytest.raises(TargetError):
        row(mnemonic, "sm_90a")


@pytest.mark.parametrize(
    "mnemonic",
    [
        "ld.shared.v8.b32", "ld.global.v16.b8", "ld.global.v3.b32", "ld.global.f16", "ld.global.v2.b128", "ld.global",
        "ld.volatile.local.b32", "ld.relaxed.b32", "ld.acquire.gpu.const.b32", "ld.mmio.relaxed.gpu.b32",
        "ldu.shared.b32",
        "st.param::entry.b32", "st.const.b32", "ld.volatile.ca.b32", "st.acquire.gpu.b32", "ld.release.gpu.b32",
        "st.global.nc.b32", "ld.shared.nc.b32", "ld.global.L2::evict_last.b32", "ld.global.ca.cg.b32", "exit.b32",
        "cp.async.cg.shared.global.L2::evict_last", "cp.async.shared.global", "bar.warp.arrive", "bar.sync.aligned",
    ],
)  # fmt: skip
def test_what_is_no_access(mnemonic: str) -> None:
    with pytest.raises(MnemonicError):
        row(mnemonic)


# What ptxas takes

_EVICT = [f"L1::{x}" for x in ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")]
_ORDER = ["volatile", "relaxed", "acquire", "release", "cta", "gpu", "sys", "mmio"]
_SPACES = ["", "global", "shared", "shared::cta", "shared::cluster", "local", "const", "param", "param::entry",
           "param::func"]  # fmt: skip
_SPEED = ["weak", "nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", *_EVICT, "L2::evict_last", "L2::64B", "L2::256B",
          "L2::cache_hint"]  # fmt: skip
_REGISTER = {"8": "h", "16": "h", "32": "r", "64": "d", "128": "q"}
_HEAD = """.version {version}
.target {target}
.address_size 64
.entry k() {{ .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .f64 %e<9>;
.reg .pred %p<3>;{more}
"""


def _statement(mnemonic: str) -> str:
    """Write an access as one line, its qualifiers as they are given."""
    words = mnemonic.split(".")
    letter = {"f32": "f", "f64": "e"}.get(words[-1], _REGISTER[words[-1][1:]])
    count = int(words[-2][1:]) if words[-2] in ("v2", "v4", "v8") else 1
    registers = ", ".join(f"%{letter}{i}" for i in range(count))
    registers = registers if count == 1 else f"{{{registers}}}"
    address = "[%r8]" if {"shared", "shared::cta", "local", "const"} & {*words} else "[%d8]"
    operands = f"{registers}, {address}" if words[0] in ("ld", "ldu") else f"{address}, {registers}"
    return f"{mnemonic} {operands}{', %d7' if 'L2::cache_hint' in words else ''};"


_LAST = "no.such.instruction;"


def _refused(statements: list[str], folder: Path, target: str, version: str = "9.0") -> set[str]:
    """Return the statements that ptxas has errors for, each on a line of its own.

    The last line is an error, so that ptxas reads all lines and assembles none.
    """
    said = _assembled([*statements, _LAST], folder, target, version)
    lines = {int(line) - 6 for line in re.findall(r"line (\d+); error", said)}
    assert len(statements) in lines, said
    return {statements[line] for line in lines - {len(statements)}}


def _assembled(statements: list[str], folder: Path, target: str, version: str) -> str:
    """Return what ptxas has against statements; nothing if it assembles them."""
    source = folder / "statements.ptx"
    more = " .reg .b128 %q<9>;" * (version >= "8.3")
    lines = [_HEAD.format(version=version, target=target, more=more).strip(), *statements, "ret; }", ""]
    source.write_text("\n".join(lines))
    command = ["ptxas", "-O0", f"-arch={target}", str(source), "-o", str(folder / "x.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr or "failed" * (done.returncode != 0)


@needs("ptxas")
@pytest.mark.parametrize("opcode", ["ld", "st"])
@pytest.mark.parametrize("target", ["sm_75", "sm_90", "sm_100"])
def test_ptxas_takes_the_same_qualifiers_alone_and_in_pairs(opcode: str, target: str, tmp_path: Path) -> None:
    """Those that change nothing but speed, in both state spaces, for elements of 4, 16 and 32 bytes."""
    table, ours, statements = FormTable(FORMS), set(), []
    for space, element, number in itertools.product(("global", "shared::cta"), ("b32", "v2.f64", "v8.f32"), range(3)):
        for words in itertools.combinations(_SPEED, number):
            mnemonic = ".".join((opcode, space, *words, element))
            statements.append(_statement(mnemonic))
            found = table.find(mnemonic)
            if found is None or target not in found.targets:
                ours.add(statements[-1])
    assert _refused(statements, tmp_path, target) == ours


@needs("ptxas")
@pytest.mark.parametrize("opcode", ["ld", "st", "ldu"])
@pytest.mark.parametrize("target", ["sm_75", "sm_90", "sm_100"])
def test_ptxas_takes_the_same_spaces_and_orders(opcode: str, target: str, tmp_path: Path) -> None:
    """Of each space, with up to three words of order and one of speed."""
    table, ours, statements = FormTable(FORMS), set(), []
    orders = [words for number in range(4) for words in itertools.combinations(_ORDER, number)]
    speed = ["ca", "wb", "L1::evict_last", "L2::128B", "L2::cache_hint"]
    cases: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
        (space, words, ()) for space in _SPACES for words in orders
    ]
    few = [(), ("volatile",), ("relaxed", "gpu"), ("acquire", "sys"), ("release", "cta"), ("mmio", "relaxed", "sys")]
    cases += [(space, words, (one,)) for space in _SPACES for words in few for one in speed]
    for (space, words, more), element in itertools.product(cases, ("b32", "v2.u64", "v4.b16", "b128", "v8.b32")):
        mnemonic = ".".join((opcode, *words, *([space] if space else []), *more, element))
        statements.append(_statement(mnemonic))
        found = table.find(mnemonic)
        if found is None or target not in found.targets:
            ours.add(statements[-1])
    theirs = _refused(statements, tmp_path, target)
    assert (sorted(ours - theirs)[:9], sorted(theirs - ours)[:9]) == ([], [])


@needs("ptxas")
def test_ptxas_takes_every_element(tmp_path: Path) -> None:
    plain = [x for x in ACCESSES if not x.hint and "L1::" not in x.mnemonic]
    for target in ("sm_90", "sm_100"):
        statements = {_statement(x.mnemonic): x for x in plain}
        refused = {name for name, x in statements.items() if target not in x.targets}
        assert _refused(list(statements), tmp_path, target) == refused
        assembled = [x for x in statements if x not in refused and "st.param" not in x]  # which need a call's name
        assert _assembled(assembled, tmp_path, target, "9.0") == ""


@pytest.mark.parametrize(
    ("mnemonic", "instead"), [("ld.v8.b16", "v4"), ("st.global.v8.u8", "v2"), ("ld.relaxed.gpu.shared.v8.s16", "v4")]
)
def test_eight_small_elements_are_refused(mnemonic: str, instead: str) -> None:
    """ptxas 13.0 takes them, and makes code that moves one element; for loads of 16 bits it crashes."""
    with pytest.raises(MnemonicError, match=rf"moves one element, or crashes; expected {instead}\.b32"):
        row(mnemonic)


_NONE = ("commit", "wait_all", "wait")


@needs("ptxas")
def test_ptxas_takes_copies_and_barriers_from_their_first_version_on(tmp_path: Path) -> None:
    operands = {
        "sync": "1",
        "arrive": "1, 64",
        "warp": "-1",
        "commit": "",
        "wait_group": "1",
        "wait_all": "",
        "wait": "",
    }
    reduced = {"popc": "%r0, 1, %p1", "and": "%p0, 1, %p1", "or": "%p0, 1, %p1"}
    taken, refused = defaultdict[Any, list[str]](list), defaultdict[Any, list[str]](list)
    for given in rows():
        if isinstance(given, Copy):
            text = "[%r0], [%d0], 16" + ", %d7" * given.hint
        elif isinstance(given, Barrier | CopyGroup):
            reduction = getattr(given, "reduction", None)
            text = operands[given.action] if reduction is None else reduced[reduction]
            text = "" if getattr(given, "cluster", False) else text
        elif isinstance(given, Exit):
            text = ""
        else:
            continue
        statement = f"{given.mnemonic} {text};"
        oldest = max(given.since, "sm_75")
        known = {"sm_80": (7, 0), "sm_90": (7, 8)}.get(oldest, (6, 3))
        taken[oldest, max(given.ptx, known)].append(statement)
        # PTX's text has ::cta of 7.8 here too; ptxas takes it earlier.
        if given.ptx > max(known, (7, 0)) and "shared::cta" not in given.mnemonic:
            before = (7, 8) if given.ptx == (8, 0) else (given.ptx[0], given.ptx[1] - 1)
            refused[oldest, before].append(statement)
    assert sum(map(len, taken.values())) > 30 and sum(map(len, refused.values())) > 15
    for target, version in {**taken, **refused}:
        there, absent = taken[target, version], refused[target, version]
        assert _refused([*there, *absent], tmp_path, target, "{}.{}".format(*version)) == {*absent}
        assert _assembled(there, tmp_path, target, "{}.{}".format(*version)) == ""


def test_forms_of_memory_are_few() -> None:
    """Of hundreds of thousands of spellings."""
    assert len(FORMS) < 30 and all(issubclass(form.kind, InstructionRow) for form in FORMS)
