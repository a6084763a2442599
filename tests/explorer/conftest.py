"""One browser for all tests of the explorer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from explorer_page import browsing


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with browsing() as started:
        yield started
