"""Options of the tests, and their helpers whose assertions are explained as those of tests are."""

from __future__ import annotations

import atexit
import gc
import importlib.util
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestItem

pytest.register_assert_rewrite("native_cases", "operation_references", "product_cases", "report_cases")

# `tests` is on the path, so where Triton is not installed its name would be that of the folder of its tests: an import
# would succeed, of nothing, and PyTorch takes that for Triton.
_FOUND = importlib.util.find_spec("triton") if "triton" not in sys.modules else None
if _FOUND is not None and _FOUND.origin is None:
    sys.modules["triton"] = None  # type: ignore[assignment]


_QUICK = "\npytestmark = pytest.mark.quick\n"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-oracles", action="store_true",
        help="tests: compare with everything there is to compare with; an error if any of it is absent",
    )  # fmt: skip

    parser.addoption(
        "--every-case", action="store_true",
        help="tests: run every case of tests that are marked `alike`; without it, one in so many",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    # Tests start some hundred processes, which all would compile the package again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if hasattr(config, "workerinput"):
        atexit.register(_leave, os.getpid())  # first, so that it is called last
    config.addinivalue_line(
        "markers", "alike(n): its cases differ in nothing but names and numbers; one in n runs without --every-case"
    )
    config.addinivalue_line(
        "markers", "quick: a whole file of tests that `-m quick` runs; doctests of the package are quick, too"
    )


def _leave(worker: int) -> None:
    """End one of pytest-xdist's workers: Python would look through all its tests again, and free them one by one."""
    if os.getpid() == worker:
        os._exit(0)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files without the mark out before they are imported: importing all takes longer than the quick tests."""
    if (
        config.getoption("markexpr") != "quick"
        or collection_path.suffix != ".py"
        or collection_path.name == "conftest.py"
    ):
        return None
    return None if _QUICK in collection_path.read_text() else True


def pytest_collection(session: pytest.Session) -> None:
    gc.disable()  # it would go through a million objects of tests again and again, and find nothing
    if session.config.getoption("all_oracles"):
        from oracles import ORACLES, absent  # beside this file, which is on the path by now

        lacking = [absent(name) for name in ORACLES if absent(name)]
        if lacking:
            raise pytest.UsageError("--all-oracles: " + "; ".join(lacking))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark doctests as quick, and leave out cases that are alike, unless they were asked for by name."""
    for item in items:
        if isinstance(item, DoctestItem):
            item.add_marker("quick")
    if config.getoption("every_case") or any("::" in x for x in config.args):
        return
    seen: defaultdict[str, int] = defaultdict(int)
    left_out = []
    for item in items:
        if mark := item.get_closest_marker("alike"):
            test = item.nodeid.partition("[")[0]
            if seen[test] % mark.args[0]:
                left_out.append(item)
            seen[test] += 1
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        absent = set(left_out)
        items[:] = [x for x in items if x not in absent]


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()  # so that neither tests that call `gc.collect` nor pytest in the end look at all tests
    gc.set_threshold(20_000)  # a test makes more objects than 700, and most are gone with it
    gc.enable()
    atexit.register(gc.unfreeze)  # nanobind calls what is left a leak


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Freeze what earlier files left in caches: `gc.collect` then looks at what came since, not at a gigabyte."""
    if item.path != _LATEST[0]:
        _LATEST[0] = item.path
        gc.collect()  # frozen cycles would stay
        gc.freeze()


_LATEST: list[Path | None] = [None]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests of pages and pictures."""
    from explorer_page import browsing

    with browsing() as started:
        yield started
