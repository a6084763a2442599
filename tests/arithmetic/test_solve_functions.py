"""The tool that solves tables from results: it finds our tables from our own results, and none from wrong results."""

from __future__ import annotations

import importlib.util
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import Array
from oracles import skip_without

from lab.solve.positions import VIEWS, View, inputs, save_archive, simulated
from warpmma.arithmetic import interpolators

skip_without("SciPy")

from lab.solve import functions as tool  # noqa: E402
from lab.solve.functions import Segment, compared, main, record, recorded, share, shared_constants, solved  # noqa: E402

TABLES = ["tanh 119", "tanh 122"]


def view_of(table: str) -> View:
    (view,) = (view for view in VIEWS if view.table == table)
    return view


@pytest.fixture(autouse=True)
def kept_signals() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def solve(folder: Path, *options: str) -> tuple[int, str]:
    status = main([str(folder), "--processes", "1", *options])
    return status, (folder / "report.txt").read_text()


@pytest.fixture(scope="module")
def solution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("solved")
    assert solve(folder, "--simulate", "--tables", *TABLES)[0] == 0
    return folder


def test_tables_are_found(solution: Path) -> None:
    """Of the law's own results, all that can be told; K of tanh 119 may be one more."""
    lines = (solution / "report.txt").read_text().splitlines()
    assert [line for line in lines if not line.startswith("  ")] == [
        "solved from results of: simulated",
        "tanh 119: 1 segments; p 39, shifts [15, 0] (s0 and s1 taken: of so few rows they are not told); K 0 to 1",
        "tanh 122: 2 segments; p 38, shifts [15, 0] (s0 and s1 taken: of so few rows they are not told); K 0",
    ]
    assert [line for line in lines if "unique" in line] == [
        "  unique but for K: with each of its 2, every position gives the same result",
        "  unique: these are the only integers",
    ]
    for name, table in json.loads((solution / "tables.json").read_text()).items():
        ours = interpolators()[name]
        assert (table["point"], tuple(table["shifts"])) == (ours.point, ours.shifts)
        assert table["constants"][0][0] == ours.constant
        assert [[tuple(row) for row in rows] for rows in table["rows"]] == [[row] for row in ours.rows]


def test_integers_are_those_that_give_every_result(solution: Path) -> None:
    """Of the only B and D, each A that is left gives every result; one less, or one more, does not."""
    found = solved(solution)
    assert set(found) == {("tanh 119", 0), ("tanh 122", 0), ("tanh 122", 1)}
    for (table, segment), left in found.items():
        view, ((b, d, low, high),) = view_of(table), left.triples
        b0, b1, d0, d1 = left.bounds
        assert b0 <= b <= b1 and d0 <= d <= d1 and b1 - b0 < 1 > d1 - d0
        x, q = inputs(view.interpolator.bits)
        least, greatest = view.bracket(recorded(solution, view)[1][segment])
        gives = [bool(np.all((least <= a + b * x + d * q) & (a + b * x + d * q <= greatest)))
                 for a in (low - 1, low, high, high + 1)]  # fmt: skip
        assert gives == [False, True, True, False]


def test_what_is_there_is_not_made_again(
    solution: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line that was not written whole is solved again, and it alone."""
    path = solution / "segments.jsonl"
    lines = [line for line in path.read_text().splitlines() if line]
    assert len(lines) == 3
    (cut,) = (line for line in lines if '"tanh 122", "segment": 1' in line)
    path.write_text("\n".join([*(line for line in lines if line != cut), cut[: len(cut) // 2]]))
    assert ("tanh 122", 1) not in solved(solution)

    def none(*_: object) -> Array:
        raise AssertionError("recorded twice")

    monkeypatch.setattr(tool, "simulated", none)
    report = (solution / "report.txt").read_text()
    assert solve(solution, "--simulate", "--tables", *TABLES) == (0, report)
    out = capsys.readouterr().out
    assert "tanh 119: 0 segments solved" in out and "tanh 122: 1 segments solved" in out
    assert solved(solution)["tanh 122", 1].triples


def damaged(folder: Path, view: View, x: int, code: int) -> None:
    """Make a recording whose result at a position of the last segment is another."""
    record(folder, simulated, "no GPU", [view])
    results = recorded(folder, view)[1].astype(np.int64)
    results[-1, x] = code if code > 1 else results[-1, x] + code
    save_archive(
        folder / f"{view.name}.npz",
        {"device": np.array("no GPU"), "first": results[:, 0], "steps": np.diff(results, axis=1)},
    )


def test_a_wrong_result_leaves_no_integers(tmp_path: Path) -> None:
    damaged(tmp_path, view_of("tanh 119"), 99_999, 1)
    assert solve(tmp_path, "--tables", "tanh 119") == (
        1,
        "solved from results of: no GPU\n"
        "tanh 119: a segment without any triple; no integers satisfy all results of segments [0]\n",
    )


def test_a_result_that_no_sum_gives_leaves_none(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    damaged(tmp_path, view_of("tanh 119"), 5, 0x7FFFFFFF)
    status, report = solve(tmp_path, "--tables", "tanh 119")
    assert status == 1 and "no integers satisfy all results of segments [0]" in report
    assert "segment 0: tanh 119: results that the law cannot give" in capfd.readouterr().err


def test_other_integers_are_not_ours(solution: Path, tmp_path: Path) -> None:
    """Integers one off, and more than one pair, are reported."""
    one = solved(solution)["tanh 119", 0]
    ((b, d, low, high),) = one.triples
    others: dict[str, Any] = {
        "other A": ((b, d, low + (8 << 15), high + (8 << 15)),),
        "other C1": ((b + 4, d, low, high),),
        "two pairs": (*one.triples, (b + 4, d, low, high)),
    }
    for triples in others.values():
        segments = [Segment(table="tanh 119", segment=0, bounds=one.bounds, triples=triples)]
        assert list(compared("tanh 119", segments, share(segments)))[-1] == "  NOT determined, or not ours"
        assert tool.report(tmp_path, {"tanh 119": segments}, {"no GPU"}) == 1


def test_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*options: str) -> str:
        with pytest.raises(SystemExit, match="2"):
            main([str(tmp_path / "new"), "--tables", "tanh 119", *options])
        assert not (tmp_path / "new").exists()
        return capsys.readouterr().err.splitlines()[-1].partition("error: ")[2]

    assert refused() == f"{tmp_path}/new has no results of tanh 119: --record or --simulate makes them"
    assert refused("--simulate", "--processes", "0") == "--processes is positive"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert refused("--simulate") == "linear programs are solved by SciPy, which is not installed (the extra `tools`)"


def test_what_is_shared() -> None:
    """p and s1 are from the largest powers of two of all segments; s0 is the largest with a K that all share."""
    k, rows = 5, [(1 << 20 | i, 3 * i + 1, i + 1) for i in range(8)]
    triples = [((c1 << 3) << 4, (2 * c2) << 4, ((c0 << 9) + k) << 4, ((c0 << 9) + k) << 4) for c0, c1, c2 in rows]
    segments = [Segment(table="t", segment=i, bounds=(), triples=(t,)) for i, t in enumerate(triples)]
    table = share(segments)
    assert (table.point, table.shifts) == (37, (9, 3)) and table.constants == [(k, k)]
    assert table.rows == [[row] for row in rows]
    with pytest.raises(ValueError, match=r"odd in units of 2\^-41"):
        share([Segment(table="t", segment=0, bounds=(), triples=((2, 1, 0, 0),))])


def test_constants_that_wrap() -> None:
    """Of intervals modulo 2^s0."""
    left = [[(0, 0, 14, 17)], [(0, 0, 30, 33)], [(0, 0, 15, 48)]]
    assert shared_constants(left, 4, 0) == [(0, 1), (14, 15)]
    assert shared_constants([*left, [(0, 0, 5, 6)]], 4, 0) == []
