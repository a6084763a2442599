"""`warpmma.testing` as a package: it loads what is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import warpmma.testing
from warpmma.testing import assert_same_bits


def output(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


def test_it_loads_no_more_than_is_asked_for() -> None:
    loaded = (
        "print(*sorted(m.removeprefix('warpmma.testing.') for m in sys.modules if m.startswith('warpmma.testing.')))"
    )
    code = f"import sys, warpmma.testing as t; {loaded}; t.array_with; {loaded}; t.assert_same_bits; {loaded}"
    assert output(code) == ["", "array_repr reading", "array_repr assertions compared criteria difference reading"]


def test_its_names_are_listed_and_those_of_their_modules() -> None:
    assert {*warpmma.testing.__all__, "plugin", "strategies"} <= {*dir(warpmma.testing)}
    assert warpmma.testing.assert_same_bits is assert_same_bits
    with pytest.raises(AttributeError, match=r"^module 'warpmma\.testing' has no attribute 'gpu'$"):
        warpmma.testing.gpu  # type: ignore[attr-defined]  # noqa: B018
