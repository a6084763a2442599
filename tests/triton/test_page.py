"""What docs/triton.md shows runs and gives what it says."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

pytest.importorskip("triton.language")
pytest.importorskip("sybil")

PAGE = Path(__file__).parents[2] / "docs" / "triton.md"


def test_the_page_of_triton() -> None:
    from sybil import Document
    from sybil.parsers.markdown import PythonCodeBlockParser

    for example in Document.parse(str(PAGE), PythonCodeBlockParser(doctest_optionflags=doctest.NORMALIZE_WHITESPACE)):
        example.evaluate()
