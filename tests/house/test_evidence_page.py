"""The page of evidence: each figure of a claim is on the page that it leads to, and each command is there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import warpmma as wm
from warpmma.cli.command_line import COMMANDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "evidence.md"
TEXT = PAGE.read_text()
NUMBER = re.compile(r"(?<![\w.^])\d[\d,.^]*")
LINK = re.compile(r"\[([^\]]+)\](?:\[([\w-]+)\]|\(([^)]+)\))")
LABELS = ["targets", "measured", "published", "derived"]


@dataclass(frozen=True)
class Row:
    """A row of a table of claims: the cells by the names of their columns."""

    cells: dict[str, str]

    def __str__(self) -> str:
        return next(iter(self.cells.values()))


def claims(text: str) -> str:
    return text.partition("\n## Claims\n")[2].partition("\n## ")[0]


def tables(text: str) -> Iterator[list[Row]]:
    """Tables of a text, row by row."""
    for found in re.findall(r"(?:^\|.*\|\n)+", text, re.M):
        head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in found.splitlines())
        yield [Row(dict(zip(head, row, strict=True))) for row in rows]


def slug(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-")


def section(text: str, anchor: str) -> str:
    """Return what follows a title of a page, up to the next one of its level; the page, if there is no anchor."""
    if not anchor:
        return text
    lines = text.splitlines()
    [first] = [i for i, line in enumerate(lines) if re.match("#+ ", line) and slug(line.lstrip("#")) == anchor]
    level = len(lines[first].split()[0])
    ends = (i for i in range(first + 1, len(lines)) if re.match(f"#{{1,{level}}} ", lines[i]))
    return "\n".join(lines[first : next(ends, len(lines))])


def led(link: re.Match[str], text: str) -> str:
    """Return the text that a link of the page leads to."""
    places = dict(re.findall(r"^\[([\w-]+)\]: (\S+)$", text, re.M))
    name, _, anchor = (link[3] or places[link[2]]).partition("#")
    page = text.replace(claims(text), "") if not name else (PAGE.parent / name).read_text()
    return section(page, anchor)


def numbers(text: str) -> set[str]:
    """Numbers of a text, without those in code."""
    return {x.rstrip(",.") for x in NUMBER.findall(re.sub(r"`[^`]*`", "", text))}


def strayed(claim: str, text: str) -> set[str]:
    """Numbers of a row or a paragraph that are not where its figures lead."""
    links = [x for x in LINK.finditer(claim) if NUMBER.search(x[1])]
    assert links, claim
    return numbers(LINK.sub(r"\1", claim)) - {x for link in links for x in numbers(led(link, text))}


CLAIMS = [row for table in tables(claims(TEXT)) for row in table if list(row.cells) != LABELS]
FROM_COUNTING = {"0"}
"""Reports that did not happen are on no page."""

each_claim = pytest.mark.parametrize("row", CLAIMS, ids=str)


def test_claims_are_found() -> None:
    assert len(CLAIMS) > 40
    names = {str(row).replace("`", "") for row in CLAIMS}
    assert names >= {"13,669 of all kinds", ".approx functions", "recipes of instructions", "random pipelines"}


@each_claim
def test_figures_are_on_the_page_that_they_lead_to(row: Row) -> None:
    assert strayed(" | ".join(row.cells.values()), TEXT) - FROM_COUNTING == set()


def test_figures_of_paragraphs_are_on_the_pages_that_they_lead_to() -> None:
    paragraphs = [x for x in claims(TEXT).split("\n\n") if not x.startswith(("|", "[")) and LINK.search(x)]
    with_figures = [x for x in paragraphs if any(NUMBER.search(link[1]) for link in LINK.finditer(x))]
    assert with_figures and all(strayed(x, TEXT) == set() for x in with_figures)


@each_claim
def test_what_refutes_a_claim_is_said(row: Row) -> None:
    """Of false alarms it is said above the table."""
    assert row.cells.get("refuted by", "") or "why" in row.cells


@each_claim
def test_commands_are_there(row: Row) -> None:
    commands = re.findall(r"`([\w./]+)`", row.cells["shown again by"])
    of_cli = re.findall(r"`warpmma (\w+)`", row.cells["shown again by"])
    assert set(of_cli) <= set(COMMANDS)
    assert commands or of_cli or (row.cells["needs"] == "F" and "why" in row.cells)
    for name in commands:
        path = ROOT / (name if "/" in name else f"{name.replace('.', '/')}.py")
        path = path if path.exists() else path.with_suffix("") / "__main__.py"
        assert "/" in name or "__main__" in path.read_text() or path.name == "__main__.py"
        assert path.exists()


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("| products | [338,314,688,512 outputs][gpu] |", set()),
        ("| products | [338,314,688,513 outputs][gpu] |", {"338,314,688,513"}),
        ("| outputs | [2,213,230,922,526][measured] |", set()),
        ("| outputs | [2,213,230,922,527][measured] |", {"2,213,230,922,527"}),
        ("| of a third | [2,580 of 2,588](torch.md#compiled-models) |", {"2,588"}),
        ("| 37 roots | [45,106,560 results][operations] |", {"37"}),
        ("| elsewhere | [2,580 of 2,587](torch.md#tests) |", {"2,580", "2,587"}),
    ],
)
def test_a_figure_that_strays_is_noticed(row: str, found: set[str]) -> None:
    assert strayed(row, TEXT) == found


def test_labels_are_counted() -> None:
    """As `warpmma.evidence` has them, of each target once."""
    [table] = [x for x in tables(claims(TEXT)) if list(x[0].cells) == LABELS]
    counts = {target: dict(row.cells) for row in table for target in row.cells["targets"].split(", ")}
    assert set(counts) == set(wm.TARGETS)
    for target, row in counts.items():
        kinds = Counter[str](wm.evidence(i, target=target).kind for i in wm.instructions(target))
        assert [int(row[kind]) for kind in LABELS[1:]] == [kinds[kind] for kind in LABELS[1:]], target
    warpgroups = Counter(wm.evidence(i, target="sm_90a").kind for i in wm.find(m=64))
    assert f"All {warpgroups['measured']:,} `wgmma`" in TEXT and set(warpgroups) == {"measured"}


PEERS = (ROOT / "docs" / "peers.md").read_text()


def test_peers_are_compared_both_ways() -> None:
    """Each is in every table, with what was read of it."""
    named = {part: {str(row) for table in tables(section(PEERS, part)) for row in table} - {""} for part in PARTS}
    glance, *others = named.values()
    assert len(glance) > 10 and all(glance - {"warpmma"} == names for names in others)
    read = [row for table in tables(section(PEERS, "what-was-read")) for row in table]
    assert all(row.cells["version"] and "](https://" in row.cells["what"] for row in read)


PARTS = ("at-a-glance", "what-they-have-and-warpmma-lacks", "what-warpmma-has-and-they-lack", "what-was-read")
