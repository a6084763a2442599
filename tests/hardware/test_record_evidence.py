"""Rows of evidence from reports of `warpmma compare`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.record import evidence as tool
from warpmma.arithmetic import group
from warpmma.hardware import Counts, Report, every_variant
from warpmma.isa import instructions, warpgroup_instructions
from warpmma.isa.tables.matrix_moves import MATRICES, TRANSPOSED
from warpmma.isa.tables.wmma_instructions import WMMA
from warpmma.operations import operations
from warpmma.operations.measurements import OPERATIONS, VARIANTS

DATA = Path(__file__).parents[1] / "data"


def reported(target: str, outputs: int = 10**7) -> Report:
    device = {"gpu": "Tesla T4", "target": target, "driver": "580.1", "cuda": "13.0", "nvrtc": "13.0"}
    report = Report(device=device, seed=0)
    for kind, some in (("mma", instructions(target)), ("wgmma", warpgroup_instructions(target))):
        for record in some:
            report.counts.setdefault(kind, {})[str(record)] = Counts(outputs=outputs, pieces=1)
    return report


@pytest.mark.parametrize("target", ["sm_70", "sm_75", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_all_of_a_target_makes_rows_that_answer_for_it(target: str) -> None:
    report = reported(target)
    rows, missing = tool.supported(report)
    assert rows and not missing
    table, replaced = tool.merged(rows)
    tool.checked(table)
    assert replaced and not any(target in row.places for row in table if row not in rows)
    assert {place for row in replaced for place in row.places} == {target}
    for record in (*instructions(target), *warpgroup_instructions(target)):
        (row,) = [x for x in rows if x.fits(record, target)]
        assert row.evidence.kind == "measured" and row.evidence.device == "Tesla T4, driver 580.1, CUDA 13.0"
        assert record.shape in row.shapes


def test_the_report_of_an_h200_makes_rows_for_all_it_has() -> None:
    report = Report.read(DATA / "h200_compare.json")
    counts = [x for kind in report.counts.values() for x in kind.values()]
    assert not any(x.differences or x.wrong for x in counts)
    assert {kind: len(some) for kind, some in report.counts.items()} == {
        "access": 1915, "asynchronous": 424, "atomic": 643, "fragment": 36, "function": 30, "mma": 198,
        "operation": 8755, "wgmma": 1074, "wmma": 594,
    }  # fmt: skip
    assert sum(x.outputs for x in counts) == 2_213_230_922_526
    assert min(x.outputs for kind in ("mma", "wgmma") for x in report.counts[kind].values()) == 1_006_632_960
    assert {x.outputs for x in report.counts["operation"].values() if x.outputs < 10**8} == {1 << 16}  # all operands
    rows, missing = tool.supported(report)
    assert len(rows) == 18 and not missing
    tool.checked(tool.merged(rows)[0])


def test_figures_of_evidence_are_those_of_the_report() -> None:
    counts = Report.read(DATA / "h200_compare.json").counts
    of_rows = {name: x for name, x in counts["operation"].items() if " " not in name}
    of_variants = {name: x for name, x in counts["operation"].items() if " " in name}
    for text, some in (
        (OPERATIONS, of_rows), (TRANSPOSED, of_rows), (VARIANTS, of_variants), (MATRICES, counts["fragment"]),
        (WMMA, counts["wmma"]),
    ):  # fmt: skip
        figures = {int(x.replace(",", "")) for x in re.findall(r"\b\d[\d,]*\b", text)}
        assert figures == {len(some), sum(x.outputs for x in some.values())}, text
    assert {x.mnemonic for x in operations("sm_90a") if OPERATIONS in x.evidence.compared} <= of_rows.keys()
    assert set(of_variants) == set(dict(every_variant("sm_90a")))


def test_differences_and_few_outputs_make_no_row() -> None:
    report = reported("sm_80")
    half, int8 = (next(i for i in instructions("sm_80") if group(i) == name) for name in ("half", "int8"))
    report.counts["mma"][str(half)].differences = 3
    report.counts["mma"][str(int8)].outputs = 5
    rows, missing = tool.supported(report)
    assert not {(row.group, row.only[0][1][0]) for row in rows} & {(group(i), i.sparse) for i in (half, int8)}
    assert {"half: 3 differences"} < set(missing) and any("1 of " in text for text in missing)
    tool.checked(tool.merged(rows)[0])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.json"
    report = reported("sm_75")
    report.experiments["turing-quad-depth"] = {"answer": "F = 23"}
    report.write(path)
    assert tool.main([str(path)]) == 0
    out = capsys.readouterr().out
    assert (
        "EvidenceRow(group=\"quad pair\", places=('sm_75',)" in out and "# experiment turing-quad-depth: F = 23" in out
    )
    assert "# replaces, there: 'quad pair' on sm_75: derived; F = 23" in out
    assert tool.main([str(path), "--outputs", "1e8"]) == 1 and "# not yet: half" in capsys.readouterr().out
    path.write_text("{}")
    assert tool.main([str(path)]) == 2 and "is not a report" in capsys.readouterr().err
