"""The process around the native engine: memory, and the floating-point environment."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from arrays import same
from environments import DOWNWARD, FLUSH, TOWARD_ZERO, UPWARD, Environment, x86
from native_cases import EVERY, LEVELS, check, draw, each_kind, each_sample, one_by_one, only, words
from oracles import needs

from lab.generators import RecipeCase, styles
from warpmma import execute
from warpmma.arithmetic.dispatch import native
from warpmma.arithmetic.recipes.units import FmaChain
from warpmma.execution import running
from warpmma.formats import FloatFormat
from warpmma.isa import parse
from warpmma.registers import LANES

pytestmark = needs("native engine")


def test_a_large_batch_needs_no_memory_beside_its_output() -> None:
    """Of NumPy here, and of the whole process elsewhere, where nothing else has been done."""
    i = parse("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    shapes = [i.layout(name) for name in ("A", "B", "C")]
    a, b, c = (np.zeros((1, layout.registers, LANES), np.uint32) for layout in shapes)
    e = np.broadcast_to(np.full(LANES, 0x44444444, np.uint32), (1, LANES))
    call = partial(execute, i, b=b, c=c, metadata=e, target="sm_90", engine="native")
    call(np.broadcast_to(a, (3000, *a.shape[1:])))
    tracemalloc.start()
    try:
        d = call(np.broadcast_to(a, (100_000, *a.shape[1:])))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert d.nbytes <= peak < d.nbytes + (8 << 20)


RESIDENT = """
import re, numpy as np, pathlib
from warpmma import execute
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) << 10
a, b, c = (np.zeros((1, r, 32), np.uint32) for r in (4, 2, 4))
def call(n):
    i = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    return execute(i, np.broadcast_to(a, (n, 4, 32)), b, c, target="sm_90", engine="native")
call(3000)
before = peak()
d = call(100_000)
print(peak() - before - d.nbytes)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_the_process_does_not_grow() -> None:
    done = subprocess.run([sys.executable, "-c", RESIDENT], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 8 << 20


@x86
def test_a_hostile_environment_can_be_made() -> None:
    environment = Environment()
    tiny, one = np.array([1e-40], np.float32), np.ones(1)
    with environment.with_control(FLUSH | UPWARD):
        flushed, raised = tiny * np.float32(1), one + 2.0**-60
    assert flushed[0] == 0 and raised[0] > 1
    assert (tiny * np.float32(1))[0] > 0 and (one + 2.0**-60)[0] == 1


@x86
@pytest.mark.parametrize("control", [FLUSH, UPWARD, FLUSH | DOWNWARD, TOWARD_ZERO])
@each_kind
def test_flushed_subnormals_and_rounding_modes_change_nothing(case: RecipeCase, control: int) -> None:
    rng, environment = np.random.default_rng(13), Environment()
    for style in ("tiny", "special", "sticky") if "tiny" in styles(case.recipe) else ("bits",):
        x = draw(case, [style], 9, 10, rng)
        expected = one_by_one(case, x)
        for level in LEVELS:
            native._plan.cache_clear()
            with only(level), environment.with_control(control):
                before = environment.control()
                got = native.product(case.recipe, k=case.k, scales=case.blocks, **x)  # type: ignore[arg-type]
                after = environment.control()
            same(got, expected)
            assert before == after and before & control == control


@x86
@each_sample
def test_threads_keep_the_environment_too(mnemonic: str, target: str, style: str) -> None:
    environment = Environment()
    tiny = "tiny" if isinstance(parse(mnemonic).format("A"), FloatFormat) else style
    x = words(parse(mnemonic), target, [style, tiny], np.random.default_rng(14))
    expected = execute(mnemonic, **x, engine="numpy")
    for threads in (1, 2):
        running._native_registers.cache_clear()
        with environment.with_control(FLUSH | UPWARD):
            before = environment.control()
            got = execute(mnemonic, **x, engine="native", threads=threads)
            after = environment.control()
        same(got, expected)
        assert before == after


@pytest.mark.parametrize("rounding", ["rn", "rz", "rm", "rp"])
def test_rounding_modes_do_not_leak(rounding: str) -> None:
    case = next(x for x in EVERY if x.recipe.unit == FmaChain(rounding=rounding))  # type: ignore[arg-type]
    one, half = np.ones(40), np.full(40, 2.0**-53)
    for level in LEVELS:
        check(case, draw(case, ["near"], 5, 5, np.random.default_rng(15)), [level])
        assert (one + half == 1).all() and (-one - half == -1).all() and (one + 1.5 * half > 1).all()
        assert float(one[0]) + float(half[0]) == 1 and -float(one[0]) - float(half[0]) == -1
