"""Kernels with a hazard, whose lines are marked: `# here` where it is reported, `# there` the other access."""

from __future__ import annotations

import inspect
import linecache
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from warpmma.kernel import Hazard, HazardError, HazardWarning, Launch, launch

Kernel = Callable[..., object]
COPY, COMMIT = "cp.async.cg.shared.global", "cp.async.commit_group"
WAIT, WAIT_ALL = "cp.async.wait_group", "cp.async.wait_all"
EVERY = 0xFFFFFFFF
TWO: dict[str, Any] = {"block": 64}


def words(n: int = 256) -> np.ndarray[Any, Any]:
    return np.arange(n, dtype=np.uint32)


def one_array() -> tuple[Any, ...]:
    return (words(),)


def run(kernel: Kernel, *args: Any, block: Any = 32, grid: Any = 1, **options: Any) -> Launch:
    return launch(kernel, grid, block, args, target="sm_90", **{"shared": 4096, **options})  # launched


@dataclass
class Case:
    """A kernel with a hazard at its line marked `# here`, because of the one marked `# there`, if there is one."""

    kernel: Kernel
    kind: str
    says: str = ""
    args: Callable[[], tuple[Any, ...]] = tuple
    options: dict[str, Any] = field(default_factory=dict)
    mark: str = "# here"


def each(cases: list[Case]) -> pytest.MarkDecorator:
    """Parametrise over cases, by the names of their kernels."""
    return pytest.mark.parametrize("case", [pytest.param(x, id=getattr(x.kernel, "__name__", "")) for x in cases])


def marked(site: Any, mark: str) -> bool:
    return site is not None and linecache.getline(site.file, site.line).rstrip().endswith(mark)


def check(case: Case, hazard: Hazard) -> None:
    assert hazard.kind == case.kind
    assert marked(hazard.site, case.mark), hazard
    if "# there\n" in inspect.getsource(case.kernel):
        assert marked(hazard.other, "# there"), hazard
        assert hazard.other is not None and hazard.other.place in str(hazard)
    assert case.says in str(hazard)


def check_error(case: Case) -> None:
    with pytest.raises(HazardError) as caught:
        run(case.kernel, *case.args(), **case.options)
    check(case, caught.value.hazard)


def check_warning(case: Case) -> None:
    """The same hazard is the first of its kind in the report, and the kernel goes on to its end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HazardWarning)
        result = run(case.kernel, *case.args(), **case.options, hazards="warn")
    found = [x for x in result.hazards if x.kind == case.kind]
    assert found
    check(case, found[0])
