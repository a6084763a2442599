"""Instructions on registers by the native engine: of every recipe, in batches, wherever they lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import VIEWS, Array, same
from native_cases import LEVELS, each_sample, only, words
from oracles import needs

from warpmma import execute
from warpmma.arithmetic.recipes.lowerings import recipe
from warpmma.execution import running
from warpmma.formats import FloatFormat
from warpmma.hardware import mma_jobs
from warpmma.isa import Instruction, instructions, parse
from warpmma.sparsity import selectors

pytestmark = needs("native engine")


INSTRUCTIONS = [(i, t) for i in instructions() for t in {recipe(i, t): t for t in reversed(i.targets)}.values()]


def choices(i: Instruction) -> list[dict[str, Any]]:
    """Every selector of a sparse instruction; the first and the last ids of a block-scaled one."""
    ids = ("byte_id_a", "thread_id_a", "byte_id_b", "thread_id_b")
    return [dict(zip(ids, chosen, strict=True)) | ({"selector": f} if i.sparse else {}) for _, f, chosen in mma_jobs(i)]


@pytest.mark.parametrize(("instruction", "target"), INSTRUCTIONS, ids=str)
def test_registers_of_every_instruction(instruction: Instruction, target: str) -> None:
    floating = isinstance(instruction.format("A"), FloatFormat)
    rng = np.random.default_rng(8)
    x = words(instruction, target, ("middle", "bits", "special") if floating else ("bits", "extreme"), rng)
    for number, choice in enumerate(choices(instruction)):
        expected = execute(instruction, **x, **choice, engine="numpy")
        for level in LEVELS if number == 0 else LEVELS[:1]:
            if level.width > (instruction.n if instruction.sparse else instruction.m):
                continue
            with only(level):
                same(execute(instruction, **x, **choice, engine="native"), expected)


HOPPER = [i for i in instructions("sm_90a") if i.sparse]


@pytest.mark.parametrize("instruction", HOPPER, ids=str)
def test_undefined_metadata_as_an_h200_reads_it(instruction: Instruction) -> None:
    floating = isinstance(instruction.format("A"), FloatFormat)
    rng = np.random.default_rng(9)
    each = ("near", "special") if floating else ("bits", "extreme")
    x = words(instruction, "sm_90a", each, rng, undefined=True) | {"undefined": "hardware"}
    for f in selectors(instruction):
        same(
            execute(instruction, **x, selector=f, engine="native"),
            execute(instruction, **x, selector=f, engine="numpy"),
        )


@each_sample
def test_batches_broadcast(mnemonic: str, target: str, style: str) -> None:
    """Each operand in turn without a batch, with one of 1, and of two dimensions."""
    x = words(parse(mnemonic), target, [style] * 3, np.random.default_rng(10))
    arrays = [name for name, v in x.items() if isinstance(v, np.ndarray)]
    shapes: list[Callable[[Array], Array]] = [
        lambda v: v[0], lambda v: v[:1], lambda v: v.reshape(3, 2, *v.shape[1:]), lambda v: v[:2],
        lambda v: v[:3, None],
    ]  # fmt: skip
    for name in arrays:
        for shape in shapes[:2]:
            y = x | {name: shape(x[name])}
            same(execute(mnemonic, **y, engine="native"), execute(mnemonic, **y, engine="numpy"))
    for number in range(4):
        y = x | {name: shapes[(number + place) % 5](x[name]) for place, name in enumerate(arrays)}
        y |= {name: x[name][0] for name in arrays if y[name].shape == x[name].shape}
        try:
            expected = execute(mnemonic, **y, engine="numpy")
        except ValueError:  # not all of these broadcast; one surely does
            assert number
            continue
        same(execute(mnemonic, **y, engine="native"), expected)
    one = {name: x[name][0] for name in arrays}
    same(execute(mnemonic, **x | one, engine="native"), execute(mnemonic, **x | one, engine="numpy"))


def _records(x: Array) -> Array:
    """Each warp a byte further than it should lie."""
    records = np.zeros(len(x), [("pad", "u1"), ("x", x.dtype, x.shape[1:])])
    records["x"] = x
    return records["x"]


SHIFTED: list[Callable[[Array], Array]] = [
    lambda x: np.repeat(x, 3, axis=0)[::3],
    lambda x: x[::-1].copy()[::-1],
    lambda x: x[::-1, ..., ::-1].copy()[::-1, ..., ::-1],
    _records,
]


@each_sample
def test_registers_may_lie_anywhere(mnemonic: str, target: str, style: str) -> None:
    x = words(parse(mnemonic), target, [style] * 2, np.random.default_rng(11))
    expected = execute(mnemonic, **x, engine="numpy")
    for view in (*VIEWS.values(), *SHIFTED):
        y = {name: view(v) if isinstance(v, np.ndarray) else v for name, v in x.items()}
        for warps in (slice(None), slice(1, 2)):
            cut: dict[str, Any] = {name: v[warps] if isinstance(v, np.ndarray) else v for name, v in y.items()}
            same(execute(mnemonic, **cut, engine="native"), expected[warps])


@each_sample
def test_chunks_and_threads(mnemonic: str, target: str, style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = words(parse(mnemonic), target, [style] * 7, np.random.default_rng(12))
    expected = execute(mnemonic, **x, engine="numpy")
    outputs = parse(mnemonic).layout("D").flat.size
    for chunk in (1, outputs, 3 * outputs, 5 * outputs - 1, 13 * outputs, 14 * outputs):
        monkeypatch.setattr(running, "NATIVE_CHUNK", chunk)
        for threads in (1, 2, 3):
            same(execute(mnemonic, **x, engine="native", threads=threads), expected)
    short: dict[str, Any] = {name: v[:0] if isinstance(v, np.ndarray) else v for name, v in x.items()}
    same(execute(mnemonic, **short, engine="native"), expected[:0])
