"""What notebooks show of records: of every one something, well-formed and escaped, and never an error."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import import_module
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from bank_conflicts import tiles
from hypothesis import given, settings
from hypothesis import strategies as st

import warpmma as wm
from warpmma import _views, analysis, arithmetic, isa, kernel, lookup, operations
from warpmma._records import Record, Shown
from warpmma.show import fields_html, viewer
from warpmma.show.drawing.cards import card, opened, preformatted

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SCALED = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
WARPGROUP = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16"
FACES = (
    "", ".analysis", ".arithmetic", ".execution", ".formats", ".hardware", ".isa", ".kernel", ".layouts", ".lookup",
    ".machine", ".operations", ".products", ".ptx", ".registers", ".scaling", ".sparsity", ".testing",
)  # fmt: skip


def public() -> Iterator[type]:
    for face in FACES:
        module = import_module(f"warpmma{face}")
        for name in getattr(module, "__all__", ()):
            x = getattr(module, name)
            if inspect.isclass(x) and x.__module__.startswith("warpmma") and (is_dataclass(x) or issubclass(x, Record)):
                yield x


def test_every_public_record_draws_itself() -> None:
    records = set(public())
    assert len(records) > 80
    assert {x.__name__ for x in records if not issubclass(x, Shown)} == set()
    assert isinstance(wm.Device("sm_90"), Shown)


def collected(roots: list[Any]) -> dict[type, list[Any]]:
    """Return records by their type, a few of each, with those inside of them."""
    found: dict[type, list[Any]] = {}
    rest = list(roots)
    while rest:
        x = rest.pop()
        if isinstance(x, Mapping):
            rest += [*x.keys(), *x.values()]
        elif isinstance(x, list | tuple | set | frozenset):
            rest += x
        elif isinstance(x, Shown):
            kept = found.setdefault(type(x), [])
            if len(kept) < 3 and not any(x is y for y in kept):
                kept.append(x)
                rest += [getattr(x, each.name) for each in fields(x)] if is_dataclass(x) else []
    return found


@pytest.fixture(scope="module")
def records() -> dict[type, list[Any]]:
    i = wm.parse(F16)
    a, b = np.ones((16, 16), np.float16), np.ones((16, 8), np.float16)
    device = wm.Device("sm_90")
    launch = kernel.launch(
        lambda t, x: tiles(t, x, 64, lambda at: at), 1, 32, [np.zeros(2048, np.uint8)], target="sm_90", shared=2048
    )
    rows, recipes = list(operations.rows()), wm.instructions("sm_90")[::20]
    return collected([
        [wm.parse(x) for x in (F16, SPARSE, SCALED)], isa.parse_any(WARPGROUP), wm.FORMATS, isa.TARGETS, device,
        device.array(a), launch, launch.costs.sites, [lookup.operand_layout(i, x) for x in "ABCD"],
        lookup.where(i, "A", 3, 5),
        arithmetic.LOWERINGS, [arithmetic.recipe_of(x, "sm_90") for x in recipes],
        [wm.evidence(i, target=x) for x in i.targets],
        arithmetic.SPECIAL_FUNCTIONS, arithmetic.SEQUENCES, rows[::37], wm.choose(a, b, target="sm_90"),
        analysis.explain(i, a, b, row=1, column=1, target="sm_90", against="sm_80"),
        analysis.error(a, b, target="sm_90"), i.family, isa.parse_any(WARPGROUP).family,
    ])  # fmt: skip


def test_many_kinds_are_looked_at(records: dict[type, list[Any]]) -> None:
    named = {x.__name__ for x in records}
    wanted = "Instruction WarpgroupInstruction Layout Packing FloatFormat IntegerFormat Recipe Evidence Launch Device "
    wanted += "DeviceArray Target Cell Operation Access Choice Explanation SumStep Addend ErrorReport FusedDotAdd"
    assert set(wanted.split()) <= named and len(named) > 45


def test_every_view_works_and_is_well_formed(records: dict[type, list[Any]]) -> None:
    """Views are asked themselves: `_repr_html_` would hide that one fails."""
    for kind, several in records.items():
        for x in several:
            for made in (viewer(kind, "html") or fields_html, fields_html):
                root = ElementTree.fromstring(made(x))
                assert root.tag in ("div", "figure", "section") and "warpmma" in root.attrib["class"], kind
            assert x._repr_html_() == str((viewer(kind, "html") or fields_html)(x))


def test_style_speaks_of_nothing_else(records: dict[type, list[Any]]) -> None:
    selector = re.compile(r"(:is\([^)]*\) )?(svg)?\.warpmma[\w.-]*( [^,{}]+)?")
    for several in records.values():
        for sheet in re.findall(r"<style>(.*?)</style>", several[0]._repr_html_(), re.S):
            flat = re.sub(r"@media\(prefers-color-scheme:dark\)\{(.*?\})\}", r"\1", sheet)
            rules = re.findall(r"([^{}]+)\{([^{}]*)\}", flat)
            assert rules and "".join(f"{a}{{{b}}}" for a, b in rules) == flat.strip()
            for names, _ in rules:
                for name in re.sub(r":is\([^)]*\)", ":is()", names).split(","):
                    assert selector.fullmatch(name.strip()), name


@dataclass(frozen=True)
class Hostile(Shown):
    """Whatever a field can hold."""

    one: Any
    several: Any = ()
    _hidden: Any = field(default=None, repr=False)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.builds(object),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x) | st.tuples(x) | st.builds(Hostile, x, x),
    max_leaves=30,
)


@settings(max_examples=150, deadline=None)
@given(values, values)
def test_whatever_it_holds(one: Any, several: Any) -> None:
    drawn = Hostile(one, several)._repr_html_()
    assert drawn.startswith("<div class='warpmma warpmma-card'>")
    root = ElementTree.fromstring(drawn)
    assert root.findtext("h4") == "Hostile"
    assert {element.tag for element in root.iter()} <= {
        "div", "style", "h4", "table", "tbody", "tr", "th", "td", "details", "summary", "pre", "code", "p",
    }  # fmt: skip


class Broken(Record):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def test_nothing_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Broken()._repr_html_().startswith("<pre>&lt;")
    assert "no words" not in Broken()._repr_html_()
    loop = Hostile([])
    loop.one.append(loop)
    assert ElementTree.fromstring(loop._repr_html_()) is not None
    long = Hostile("x" * 10_000, list(range(1000)), {i: i for i in range(100)})._repr_html_()
    assert len(long) < 12_000 and "(10,000 characters)" in long and "1000 in all" in long

    def failing(record: object) -> str:
        raise ValueError("a picture failed")

    monkeypatch.setattr("warpmma.show.viewer", lambda kind, what: failing)
    assert "<h4>Packing</h4>" in wm.parse(F16).packing("A")._repr_html_()
    monkeypatch.setattr("warpmma.show.fields_html", failing)
    assert _views.html(wm.parse(F16).packing("A")) == "<pre>Packing(slot=16, bits=16, shift=0)</pre>"


def test_parts() -> None:
    drawn = card("<h>", [("<n>", "<b/>")], [opened("<s>", preformatted("<p>\x00"), now=True)])
    assert "<h4>&lt;h&gt;</h4>" in drawn and "<th scope='row'>&lt;n&gt;</th><td><b/></td>" in drawn
    assert "<details open=''><summary>&lt;s&gt;</summary><pre>&lt;p&gt;\ufffd</pre></details>" in drawn


def test_what_instructions_show() -> None:
    drawn = wm.parse(F16)._repr_html_()
    assert drawn.count("<svg ") == 3 and "C and D: 16 × 8, f32, 4 registers" in drawn
    assert wm.isa.parse_any(WARPGROUP)._repr_html_().count("<svg ") == 2
    assert (
        "two of four places" in wm.parse(SPARSE)._repr_html_() and "ue8m0, 2 for each" in wm.parse(SCALED)._repr_html_()
    )


def test_formats_and_registers_are_drawn() -> None:
    root = ElementTree.fromstring(viewer(type(wm.FORMATS["tf32"]), "svg")(wm.FORMATS["tf32"]))  # type: ignore[misc]
    bits = {int(x.attrib["data-bit"]): x.attrib["data-field"] for x in root.iter() if "data-bit" in x.attrib}
    assert sorted(bits) == list(range(32)) and bits[31] == "sign" and bits[12] == "padding" and bits[23] == "exponent"
    assert "bits 31:0" not in wm.FORMATS["s8"]._repr_html_() and "bits 7:0" in wm.FORMATS["s8"]._repr_html_()
    padded = wm.parse("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.e4m3.e2m1.f16").packing("B")
    assert "of 4 bits in 8" in padded._repr_html_()
