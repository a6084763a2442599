"""The report of a compiled model, of launches that are made up; PyTorch and Triton need not be installed."""

from __future__ import annotations

import sys
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

import warpmma as wm
from warpmma.torch.compile_report import CompileReport, calls_in

pytestmark = pytest.mark.quick


def launch(name: str, instructions: int, hazards: tuple[str, ...] = (), **order: int) -> Any:
    costs = SimpleNamespace(instructions={"a": instructions, "b": 1})
    report = SimpleNamespace(costs=costs, hazards=list(hazards), order=order)
    return SimpleNamespace(name=name, grid=(2, 1, 1), ptx_target="sm_90", report=report, seconds=0.25)


def test_launches_of_one_kernel_are_added() -> None:
    report = CompileReport("sm_90a")
    report.add("forward 0", [launch("sum", 10), launch("exp", 5), launch("sum", 20, ("race",))], Counter(mm=2))
    report.add("forward 0", [launch("sum", 10, ("race", "bounds"))], Counter(mm=2))
    report.add("backward 0", [launch("sum", 1)], Counter())
    found: Any = {(x.graph, x.name): (x.launches, x.instructions, x.seconds, x.hazards) for x in report.kernels}
    assert found == {
        ("forward 0", "sum"): (3, 43, 0.75, ("race", "bounds")),
        ("forward 0", "exp"): (1, 6, 0.25, ()),
        ("backward 0", "sum"): (1, 2, 0.25, ()),
    }
    assert (report.launches, report.instructions, report.seconds) == (5, 51, 1.25)
    assert [*map(str, report.hazards)] == ["race", "bounds"] and report.aten == Counter(mm=4)


def test_the_table() -> None:
    report = CompileReport("sm_80")
    report.add("forward 0", [launch("triton_poi_fused_add_0", 1233)], Counter({"aten.topk.default": 1}))
    assert str(report).splitlines() == [
        "1 launch on sm_80",
        "graph      kernel                  launches  instructions  seconds  hazards",
        "forward 0  triton_poi_fused_add_0         1         1,234   0.2500        0",
        "computed by PyTorch itself: 1 x aten.topk.default",
    ]


def test_atomics_whose_order_is_open_are_named() -> None:
    report = CompileReport("sm_90")
    report.add("forward 0", [launch("add", 5), launch("scatter", 5, line=7), launch("scatter", 5, line=8)], Counter())
    assert [kernel.order for kernel in report.kernels] == [0, 15]
    assert str(report).splitlines()[-1] == "the order of atomics, which CUDA leaves open, decides bits of: scatter"


def test_calls_of_operators() -> None:
    code = "extern_kernels.addmm(a, b, c, out=d)\nbuf = torch.ops.aten.sort.stable(d)\nextern_kernels.addmm(d, e)"
    assert calls_in(code) == Counter({"addmm": 2, "aten.sort.stable": 1})
    assert calls_in("triton_poi_fused_add_0.run(a, b)") == Counter()


def test_without_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    wm.torch.inductor.check_version.cache_clear()
    with pytest.raises(wm.UnsupportedError, match="needs PyTorch, pip install torch"):
        wm.torch.compile(lambda x: x, target="sm_90")
