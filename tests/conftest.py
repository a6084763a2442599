"""Options of the tests, and their helpers whose assertions are explained as those of tests are."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from typing import Any

import pytest

pytest.register_assert_rewrite("native_cases", "operation_references", "product_cases", "report_cases")

# `tests` is on the path, so where Triton is not installed its name would be that of the folder of its tests: an import
# would succeed, of nothing, and PyTorch takes that for Triton.
_FOUND = importlib.util.find_spec("triton") if "triton" not in sys.modules else None
if _FOUND is not None and _FOUND.origin is None:
    sys.modules["triton"] = None  # type: ignore[assignment]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-oracles", action="store_true",
        help="tests: compare with everything there is to compare with; an error if any of it is absent",
    )  # fmt: skip


def pytest_collection(session: pytest.Session) -> None:
    if session.config.getoption("all_oracles"):
        from oracles import ORACLES, absent  # beside this file, which is on the path by now

        lacking = [absent(name) for name in ORACLES if absent(name)]
        if lacking:
            raise pytest.UsageError("--all-oracles: " + "; ".join(lacking))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests of pages and pictures."""
    from explorer_page import browsing

    with browsing() as started:
        yield started
