"""The whole public surface, fuzzed: each call ends in a result or in an error of the package.

`python -m tests.fuzzing` makes more of them, and one by one.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest
from fuzzing.entries import entries, missing, surplus
from fuzzing.plan import Journal, search
from fuzzing.trial import Streams

CALLS, SEED = 20_000, 0
PARTS = {
    module: list(those)
    for module, those in groupby(sorted(entries().values(), key=lambda e: e.module), key=lambda e: e.module)
}


def test_every_public_callable_is_in_the_table() -> None:
    assert missing() == [], "give it an entry in tests/fuzzing, or name it in INNER with the reason"


def test_the_table_has_no_more() -> None:
    assert surplus() == []


@pytest.mark.parametrize("module", PARTS)
def test_calls_end_in_results_or_errors_of_the_package(
    module: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    streams = Streams()
    calls = CALLS if request.config.getoption("every_case") else CALLS // 4
    with Journal(tmp_path / "call") as journal, streams.caught():
        ended = search(PARTS[module], SEED, calls, streams, journal)
        bad = [
            f"{call.id}: {outcome.kind}: {outcome.detail}\n    {call}" for call, outcome in ended if not outcome.good
        ]
    assert not bad, f"python -m tests.fuzzing --seed {SEED} --call '...' makes one again\n" + "\n".join(bad[:20])
