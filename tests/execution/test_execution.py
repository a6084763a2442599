"""Execution of dense instructions: the slow loop, batches, views, threads, engines."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from arrays import VIEWS, same
from execution_cases import ABC, F64, QUAD, SAMPLES, abc, each_sample, registers_of
from hypothesis import given, settings
from hypothesis import strategies as st
from messages import exactly

from lab.generators import mixed
from warpmma import engines, execute, load, mma, store
from warpmma.arithmetic import Engine
from warpmma.arithmetic.dispatch import native
from warpmma.arithmetic.exact.reference import dot
from warpmma.arithmetic.recipes.lowerings import recipe
from warpmma.errors import UnsupportedError
from warpmma.execution import running
from warpmma.isa import Instruction, instructions, parse
from warpmma.registers import LANES

# Execution against a loop over the elements of matrices.


# One instruction of each family, and for each of its recipes the last target that has it.
PLAIN = {i.family: i for i in instructions() if not i.sparse and not i.block_scale}
RECIPES = [(i, t) for i in PLAIN.values() for t in {recipe(i, t): t for t in i.targets}.values()]


@pytest.mark.parametrize(("instruction", "target"), RECIPES, ids=str)
def test_execute_is_the_slow_loop(instruction: Instruction, target: str) -> None:
    rng, how, fmt = np.random.default_rng(2), recipe(instruction, target), instruction.format("D")
    codes = [mixed(instruction.format(x), instruction.layout(x).shape, rng, 0.02) for x in ABC]
    a, b, c = codes
    slow = np.empty(c.shape, fmt.code_dtype)
    for *which, m, n in np.ndindex(c.shape):
        row, column = a[(*which, m)].tolist(), b[(*which, slice(None), n)].tolist()
        slow[(*which, m, n)] = dot(how, row, column, int(c[(*which, m, n)]))
    registers = [load(instruction, x, matrix) for x, matrix in zip(ABC, codes, strict=True)]
    d = execute(instruction, *registers, target=target)
    assert d.dtype == instruction.layout("D").packing.dtype and d.flags.c_contiguous
    same(fmt.codes(store(instruction, "D", d)), slow)
    typed = [instruction.format(x).array(matrix) for x, matrix in zip(ABC, codes, strict=True)]
    same(mma(str(instruction), *typed, target=target).view(fmt.code_dtype), slow)


@each_sample
def test_without_c_it_is_plus_zero(mnemonic: str, target: str) -> None:
    record, codes = parse(mnemonic), parse(mnemonic).format("D").codes
    a, b, c = (store(mnemonic, x, y) for x, y in zip(ABC, abc(mnemonic, 2), strict=True))
    zero = np.zeros(record.layout("C").shape, c.dtype)
    same(codes(mma(record, a, b, target=target)), codes(mma(record, a, b, zero, target=target)))
    assert not np.signbit(mma(F64, np.full((8, 4), -0.0), np.ones((4, 8)), target="sm_90")).any()


def test_four_matrices_at_once() -> None:
    a, b = np.random.default_rng(4).integers(-9, 10, (2, 3, 4, 8, 4)).astype(np.float16)
    b = b.swapaxes(-1, -2)
    for mnemonic in (QUAD, QUAD.replace("row.col", "col.row")):
        same(mma(mnemonic, a, b, target="sm_70"), a @ b)


# Batches, views, chunks, threads.


BATCHES = [((), (), ()), ((3,), (), ()), ((), (), (2,)), ((3, 1), (4,), (1, 1)), ((2, 1, 2), (3, 1), (1,))]


@each_sample
@pytest.mark.parametrize("batches", BATCHES)
def test_leading_dimensions_broadcast(mnemonic: str, target: str, batches: Any) -> None:
    given = [registers_of(mnemonic, x, *batch) for x, batch in zip(ABC, batches, strict=True)]
    d, batch = execute(mnemonic, *given, target=target), np.broadcast_shapes(*batches)
    assert d.shape == (*batch, parse(mnemonic).layout("D").registers, LANES)
    whole = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in given]
    for warp in np.ndindex(batch):
        same(d[warp], execute(mnemonic, *(x[warp] for x in whole), target=target))


@pytest.mark.parametrize("view", VIEWS)
@each_sample
def test_how_operands_lie_in_memory_does_not_matter(mnemonic: str, target: str, view: str) -> None:
    plain, codes = abc(mnemonic, 3), parse(mnemonic).format("D").codes
    viewed = [VIEWS[view](x) for x in plain]
    d = execute(mnemonic, *plain, target=target)
    same(execute(mnemonic, *viewed, target=target), d)
    matrices = [store(mnemonic, x, y) for x, y in zip(ABC, plain, strict=True)]
    same(codes(mma(mnemonic, *map(VIEWS[view], matrices), target=target)), codes(store(mnemonic, "D", d)))
    for x, y, z in zip(plain, viewed, abc(mnemonic, 3), strict=True):
        assert not (y.flags.carray and y.dtype.isnative)
        same([x, y], [z, z])  # nothing was written


@each_sample
def test_no_warps_are_no_results(mnemonic: str, target: str) -> None:
    for batches in (((0,), (), ()), ((3, 1), (0,), (1, 1)), ((), (), (2, 0, 3))):
        given = [registers_of(mnemonic, x, *batch) for x, batch in zip(ABC, batches, strict=True)]
        d = execute(mnemonic, *given, target=target, threads=len(batches[0]) or None)
        assert d.shape == (*np.broadcast_shapes(*batches), parse(mnemonic).layout("D").registers, LANES)


@each_sample
def test_no_matrices_are_no_results(mnemonic: str, target: str) -> None:
    record = parse(mnemonic)
    a, b = (np.zeros((0, *record.layout(x).shape), record.format(x).dtype) for x in ABC[:2])
    assert mma(mnemonic, a, b, target=target).shape == (0, *record.layout("D").shape)


@pytest.mark.parametrize("engine", engines())
@each_sample
def test_chunks_and_threads_are_not_seen(
    mnemonic: str, target: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = {"numpy": "CHUNK", "native": "NATIVE_CHUNK"}[engine]
    size = getattr(running, name) // parse(mnemonic).layout("D").flat.size
    given = abc(mnemonic, 2 * size + 3)
    call = partial(execute, mnemonic, target=target, engine=engine)
    whole = call(*given)
    for first, last in ((0, size), (size - 2, size + 2), (2 * size - 1, 2 * size + 3)):
        same(whole[first:last], call(*(x[first:last] for x in given)))
    for threads in (1, 2, 5):
        same(call(*given, threads=threads), whole)
    few = [x[:14].reshape(2, 7, *x.shape[1:]) for x in given]
    for chunk in (1, 3 * 128):
        monkeypatch.setattr(running, name, chunk)
        same(call(*few).reshape(14, *whole.shape[1:]), whole[:14])


ENGINES: list[Engine] = ["auto", "numpy", *(["native"] if native.levels() else [])]  # type: ignore[list-item]


@given(
    seed=st.integers(0), cuts=st.lists(st.integers(0, 9), max_size=3), sample=st.sampled_from(SAMPLES),
    which=st.tuples(st.sampled_from(ENGINES), st.sampled_from(ENGINES)),
)  # fmt: skip
@settings(deadline=None, max_examples=80)
def test_how_a_batch_is_split_does_not_matter(
    seed: int, cuts: list[int], sample: tuple[str, str], which: tuple[Engine, Engine]
) -> None:
    mnemonic, target = sample
    given = abc(mnemonic, 9, seed=seed)
    parts = zip(*(np.split(x, sorted(cuts)) for x in given), strict=True)
    joined = np.concatenate([execute(mnemonic, *part, target=target, engine=which[0]) for part in parts])
    same(joined, execute(mnemonic, *given, target=target, engine=which[1], threads=2))


# Engines.


def test_the_engines_that_there_are() -> None:
    assert list(engines()) == [*(["native"] if native.levels() else []), "numpy"]
    assert engines()["numpy"] == f"NumPy {np.__version__}"
    assert not native.levels() or engines()["native"] == f"C++, {native.levels()[0].name}"


UNBUILT = "the native engine is not built: warpmma was installed without a C++ compiler; use engine='auto' or 'numpy'"


@each_sample
def test_without_the_native_engine(mnemonic: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = abc(mnemonic, 3)
    d = execute(mnemonic, *given, target=target)
    monkeypatch.setattr(native, "levels", lambda: ())
    monkeypatch.setattr(native, "_native", None)  # whatever calls into it all the same does not get far
    assert list(engines()) == ["numpy"]
    for engine in ("auto", "numpy"):
        same(execute(mnemonic, *given, target=target, engine=engine), d)
    with pytest.raises(UnsupportedError, match=exactly(UNBUILT)):
        execute(mnemonic, *given, target=target, engine="native")


def test_the_package_is_whole_without_the_native_engine() -> None:
    """As where no compiler could build it."""
    program = "import sys; sys.modules['warpmma._native'] = None; import warpmma as wm; print(*wm.engines())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("numpy\n", "")
