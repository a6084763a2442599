"""Autotuned kernels, heuristics, hooks, and the substitute for time."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, name-defined"

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from oracles import skip_without

import warpmma as wm

tl: Any = pytest.importorskip("triton.language")
triton: Any = pytest.importorskip("triton")
VERSION = tuple(int(x) for x in triton.__version__.split(".")[:2])
N = 1000


@pytest.fixture
def gpu() -> Any:
    """Active before a kernel is decorated, where Triton 3.2 asks its driver."""
    with wm.triton.device("sm_90") as made:
        yield made


def tuned_kernel(calls: list[str]) -> Any:
    configs = [
        triton.Config({"BLOCK": block}, num_warps=warps, pre_hook=lambda args: calls.append(f"{args['BLOCK']}"))
        for block, warps in ((64, 4), (128, 4), (128, 4), (32, 1))
    ]

    @triton.autotune(configs, key=["n"])
    @triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
    @triton.jit
    def doubled(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
        places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        if EVEN:
            tl.store(out + places, 2 * tl.load(x + places))
        else:
            tl.store(out + places, 2 * tl.load(x + places, places < n), places < n)

    return doubled


def test_the_fewest_instructions_are_chosen_of_equal_ones_the_first(gpu: Any) -> None:
    calls: list[str] = []
    doubled = tuned_kernel(calls)
    x, out = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    doubled[lambda meta: (triton.cdiv(N, meta["BLOCK"]),)](x, out, N)
    assert (out == 2 * x).all()
    counts = [sum(each.report.costs.instructions.values()) for each in gpu.launches]
    assert len(counts) == 5 and counts[4] == min(counts) and calls == ["64", "128", "128", "32", calls[4]]
    assert doubled.best_config is doubled.configs[counts[:4].index(min(counts))]
    doubled[lambda meta: (triton.cdiv(N, meta["BLOCK"]),)](x, out, N)
    assert len(gpu.launches) == 6
    assert gpu.instructions == sum(counts) + counts[4]


def test_what_was_chosen_is_remembered_by_target(gpu: Any) -> None:
    doubled = tuned_kernel([])
    x, out = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    doubled[(32,)](x, out, N)
    assert doubled.cache == {}  # what a real GPU would look at
    with wm.triton.device("sm_80") as other:
        doubled[(32,)](x, out, N)
    assert len(gpu.launches) == len(other.launches) == 5 and gpu.number != other.number


def test_too_much_shared_memory_is_not_chosen(gpu: Any) -> None:
    configs = [triton.Config({"M": m}, num_warps=4) for m in (128, 32)]

    @triton.autotune(configs, key=[])
    @triton.jit
    def product(x, out, M: tl.constexpr):
        places = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
        tl.store(out + places, tl.dot(tl.load(x + places), tl.load(x + places)))

    x, out = np.ones((128, 128), np.float32), np.zeros((128, 128), np.float32)
    with wm.triton.device("sm_86"):
        product[(1,)](x, out)
    assert product.best_config.kwargs == {"M": 32} and (out.ravel()[:1024] == 32).all()


def test_clusters_are_not_chosen_and_arrays_are_restored() -> None:
    with wm.triton.device("sm_90", ptx_target="sm_80") as gpu:
        tuned_with_clusters(gpu, 3)
    with wm.triton.device("sm_90") as gpu:  # which has clusters
        tuned_with_clusters(gpu, 4)


def tuned_with_clusters(gpu: Any, launches: int) -> None:
    configs = [triton.Config({}, num_warps=1, num_ctas=n) for n in (2, 1, 1)]

    @triton.autotune(configs, key=[], restore_value=["x"], reset_to_zero=["y"])
    @triton.jit
    def added(x, y):
        tl.atomic_add(x, 1)
        tl.atomic_add(y, 1)

    x, y = np.full(1, 5, np.int32), np.full(1, 5, np.int32)
    added[(1,)](x, y)
    assert added.best_config is configs[1] and x[0] == 6 and y[0] == 1 and len(gpu.launches) == launches
    if launches == 4:
        return
    with pytest.raises(wm.UnsupportedError, match="num_ctas is 2, and Triton writes for sm_80 here"):
        added.fn[(1,)](x, y, num_ctas=2)


def test_hooks_are_called(gpu: Any) -> None:
    @triton.jit
    def nothing(x):
        tl.store(x, 1)

    seen: list[Any] = []
    nothing.add_pre_run_hook(lambda *args, **options: seen.append("run"))

    def enter(metadata: Any) -> None:
        seen.append(("enter", metadata.get()["name"]))

    def leave(metadata: Any) -> None:
        seen.append("exit")

    if VERSION >= (3, 5):
        hooks = triton.knobs.runtime
        hooks.launch_enter_hook.add(enter)
        hooks.launch_exit_hook.add(leave)
        undo = [lambda: hooks.launch_enter_hook.remove(enter), lambda: hooks.launch_exit_hook.remove(leave)]
    else:
        holder = triton.compiler.CompiledKernel if VERSION < (3, 4) else triton.knobs.runtime
        holder.launch_enter_hook, holder.launch_exit_hook = enter, leave
        undo = [partial(setattr, holder, f"launch_{x}_hook", None) for x in ("enter", "exit")]
    try:
        nothing[(1,)](np.zeros(1, np.int32))
    finally:
        for each in undo:
            each()
    assert seen == ["run", ("enter", "nothing"), "exit"]


def test_warmup_compiles_and_does_not_run(gpu: Any) -> None:
    @triton.jit
    def one(x):
        tl.store(x, 1)

    x = np.zeros(1, np.int32)
    compiled = one.warmup(x, grid=(1,))
    assert not x.any() and gpu.launches == [] and ".visible .entry one(" in compiled.asm["ptx"]
    one.run(x, grid=(1,), warmup=False)
    assert x[0] == 1 and ".entry one(" in compiled.asm["cubin"].decode()


def test_do_bench_counts(gpu: Any) -> None:
    skip_without("PyTorch")

    @triton.jit
    def many(x, n):
        for i in range(n):
            tl.store(x + i, i)

    x = np.zeros(64, np.int32)
    counted = triton.testing.do_bench(lambda: many[(1,)](x, 64))
    assert counted == sum(gpu.launches[-1].report.costs.instructions.values()) > 100
    assert triton.testing.do_bench(lambda: None) == 100
