"""From which version of PTX on there is an instruction: the tables against ptxas (`lab.compare.versions`)."""

from __future__ import annotations

from random import Random

from oracles import needs

from lab.compare.versions import asked, taken
from warpmma.operations import lowest_version, row, rows


def test_every_row_is_asked_about_in_the_last_older_text() -> None:
    groups = asked(rows())
    assert sum(map(len, groups.values())) > 4900
    assert row("mbarrier.expect_tx.shared.b64") in groups["sm_90", (7, 8)]
    assert row("fence.acquire.gpu") not in [x for given in groups.values() for x in given]
    assert all(version < lowest_version(x) for (_, version), given in groups.items() for x in given)


def test_rows_that_ptxas_takes_earlier() -> None:
    assert lowest_version(row("fence.acquire.gpu")) == (6, 0) < row("fence.acquire.gpu").ptx
    assert lowest_version(row("mbarrier.arrive.expect_tx.shared.b64")) == (8, 0)


@needs("ptxas")
def test_ptxas_refuses_them() -> None:
    for (target, version), given in asked(rows("sm_90", "mbarrier")).items():
        assert taken(Random(1), given, target, version) == ([], len(given))


@needs("ptxas")
def test_ptxas_takes_them_in_a_text_of_their_version() -> None:
    given = [x for x in rows("sm_90", "mbarrier") if lowest_version(x) == (8, 0) and x.sources]
    some = [x for x in given if "::cluster" not in str(x)]
    assert some and len(taken(Random(1), some, "sm_90", (8, 0))[0]) == len(some)
