"""An H200's results for operands that reveal every detectable mistake in a table; and the tool that finds them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from arrays import Array, same

from lab.solve import mutants as tool
from lab.solve.mutants import Mutant, distances, find, main, mutants, noticed, places, read, unnoticed
from lab.solve.positions import MNEMONICS, POINT, VIEWS, View, simulated, turns
from warpmma.arithmetic import (
    Engine,
    Interpolator,
    engines,
    interpolators,
    special_function,
    special_function_reference,
)
from warpmma.operations import elementwise

ENGINES = cast(list[Engine], list(engines()))
H200 = Path(__file__).parents[1] / "data" / "h200_functions.npz"
DEVICE, RECORDED = read(H200)
each_view = pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
each_table = pytest.mark.parametrize("table", interpolators())

K_IS_FREE = {"rcp": 1, "ex2": 1, "tanh 119": 1, "tanh 123": 1, "tanh 124": 1, "sqrt odd": -1}
"""K may be one more, or one less."""
LEAST_TOLD = {"rcp": 24, "rsqrt even": 26, "rsqrt odd": 26, "sqrt odd": 25, "ex2": 24}
"""No partial product of a weight below 2 to the minus this would be noticed: of the first that is left out, 2^-16."""
LEAST_TOLD_OF_LAST = {"tanh 120": 17, "tanh 121": 19, "tanh 126": 28, "tanh 129": 24}
"""Nor would one of the last bit of x and another, or of it alone."""


# Recorded results


def unit_codes(function: str, codes: Array) -> Array:
    """What the machine instruction gets: of sin and cos turns."""
    return turns(codes) if function in ("sin", "cos") else codes


def test_what_was_recorded() -> None:
    assert DEVICE.startswith("NVIDIA H200, driver ")
    assert set(RECORDED) == {view.name for view in VIEWS} | {f"rules of {name}" for name in MNEMONICS}
    assert sum(len(codes) for _, codes, _ in RECORDED.values()) == 15_962


@pytest.mark.parametrize("name", RECORDED)
def test_as_an_h200(name: str) -> None:
    """By every engine, and by the operation of PTX."""
    function, codes, results = RECORDED[name]
    for engine in ENGINES:
        same(special_function(function, unit_codes(function, codes), engine=engine), results)
    same(elementwise(MNEMONICS[function], codes).view(np.uint32), results)


@each_view
def test_the_reference_is_as_an_h200(view: View) -> None:
    """At the operands of tables; `test_function_rules` has those of rules."""
    _, codes, results = RECORDED[view.name]
    got = [special_function_reference(view.function, code) for code in unit_codes(view.function, codes).tolist()]
    same(np.array(got, np.uint32), results)


# Positions, and what a result says of V


def sums(table: Interpolator, positions: Array) -> Array:
    """V by the reference, in units of 2^-41."""
    return np.array([table.sum(position) for position in positions.tolist()], np.int64) << (POINT - table.point)


@cache
def recorded_distances(view: View) -> tuple[Array, Array, Array, Array]:
    """Segments and x of what was recorded, and how far V may be moved until it is not what was recorded."""
    _, codes, results = RECORDED[view.name]
    positions = view.positions(codes)
    least, greatest = view.bracket(results)
    positions, least, greatest = (x[positions >= view.first_told] for x in (positions, least, greatest))
    value = sums(view.interpolator, positions)
    bits = view.interpolator.bits
    return positions >> bits, positions & (1 << bits) - 1, greatest + 1 - value, value - least


@each_view
def test_what_was_recorded_holds_the_sums(view: View) -> None:
    """V lies where the result says, right beside an end of that in each segment, and every segment is there."""
    segment, _, up, down = recorded_distances(view)
    assert up.min() >= 1 and down.min() >= 0
    assert set(segment.tolist()) == set(range(view.segments))
    _, codes, results = RECORDED[view.name]
    least, greatest = view.bracket(results)
    for got, expected in zip(
        view.window(sums(view.interpolator, view.positions(codes))), (least, greatest), strict=True
    ):
        same(got, expected)


@each_view
def test_windows_are_those_of_results(view: View) -> None:
    """What `distances` takes from V alone is what results say: at the first positions, and at some of each segment."""
    bits = view.interpolator.bits
    rng = np.random.default_rng(3)
    some = (np.arange(view.segments)[:, None] << bits) + rng.integers(0, 1 << bits, 32)
    positions = np.unique(np.concatenate([np.arange(view.first_told, 4096), some.ravel()]))
    if view.function == "sin":
        codes = (positions * 2.0**-25).astype(np.float32).view(np.uint32)  # turns
        results = special_function("sin", codes)
    else:
        codes = view.operands()[positions]
        same(view.positions(codes), positions)
        results = simulated(view.function, codes)
    least, greatest = view.bracket(results)
    for segment in range(view.segments):
        here = positions >> bits == segment
        value = sums(view.interpolator, positions[here])
        up, down = (x[positions[here] & (1 << bits) - 1] for x in distances(view, segment))
        same(up, greatest[here] + 1 - value)
        same(down, value - least[here])


def test_positions_of_sin() -> None:
    """At and around what was recorded, sin is that of the position alone."""
    (view,) = (view for view in VIEWS if view.name == "sin")
    near = (RECORDED["sin"][1].astype(np.int64) + np.arange(-3, 4)[:, None]).ravel().astype(np.uint32)
    positions = view.positions(near)
    inside = positions < view.segments << view.interpolator.bits
    of_position = (positions[inside] * 2.0**-25).astype(np.float32).view(np.uint32)
    same(special_function("sin", of_position), special_function("sin", turns(near[inside])))


@pytest.mark.parametrize("code", [0x007FFFFF, 0x00800000, 0x02000000, 0x3F800000, 0x40490FDB, 0x7F7FFFFF, 0x7F800000])
def test_turns_are_a_product_toward_zero(code: int) -> None:
    codes = np.array([code, code | 1 << 31], np.uint32)
    same(turns(codes), elementwise("mul.rz.ftz.f32", codes, np.uint32(0x3E22F983)).view(np.uint32))


def test_results_that_no_sum_gives_are_refused() -> None:
    view = VIEWS[0]
    for strange in (0xBF800000, 0x7F800000):
        with pytest.raises(ValueError, match=r"rcp: results that the law cannot give"):
            view.bracket(np.array([0x3F000000, strange], np.uint32))


# Mutants


def tells(mutant: Mutant, view: View) -> bool:
    """Whether a mutant gives another result than was recorded."""
    segment, x, up, down = recorded_distances(view)
    return bool(noticed(mutant.more(segment, x), up, down).any())


def untold(table: str) -> set[Mutant]:
    """The mutants that nothing tells from a table, by rule."""
    bits = interpolators()[table].bits
    pairs = [(i, j) for i in range(1, bits + 1) for j in range(i, bits + 1)]
    products = {Mutant(table=table, part="product", change=1, pair=pair) for pair in pairs}
    found = {mutant for mutant in products if mutant.weight > LEAST_TOLD.get(table, 99)}
    last = LEAST_TOLD_OF_LAST.get(table, 99)
    found |= {mutant for mutant in products if mutant.pair[1] == bits and mutant.weight > last}
    return found | {Mutant(table=table, part="K", change=K_IS_FREE[table]) for _ in range(table in K_IS_FREE)}


@each_table
def test_every_mutant_is_noticed_or_gives_the_same_everywhere(table: str) -> None:
    """C0, C1, C2 and K one more or less, a partial product more or less."""
    rows, bits = len(interpolators()[table].rows), interpolators()[table].bits
    every = list(mutants(table))
    assert len(set(every)) == len(every) == 2 + 6 * rows + bits * (bits + 1) // 2
    views = [view for view in VIEWS if view.table == table]
    left = [mutant for mutant in every if not any(tells(mutant, view) for view in views)]
    assert set(left) == untold(table)
    assert unnoticed(table, left) == left


def test_the_rule_of_what_is_untold() -> None:
    assert sum(len(untold(table)) for table in interpolators()) == 144


def given_by(mutant: Mutant, view: View, code: int) -> int:
    """Compute an operand by the rules, with the mutant for its table."""
    (given,) = unit_codes(view.function, np.array([code], np.uint32)).tolist()
    return special_function_reference(view.function, given, {**interpolators(), mutant.table: mutant.interpolator})


@each_view
def test_mutants_by_the_reference(view: View) -> None:
    """What `noticed` says of a mutant is what the rules give with its integers and partial products."""
    rng = np.random.default_rng(5)
    _, codes, results = RECORDED[view.name]
    told = view.positions(codes) >= view.first_told
    codes, results = codes[told], results[told]
    segment, x, up, down = recorded_distances(view)
    every = list(mutants(view.table))
    parts = [[m for m in every if (m.part, m.change) == kind] for kind in {(m.part, m.change): 0 for m in every}]
    assert len(parts) == 10
    both = set()
    for mutant in (part[i] for part in parts for i in rng.integers(0, len(part), 3)):
        there = noticed(mutant.more(segment, x), up, down)
        at = rng.integers(0, len(codes), 3).tolist() + np.flatnonzero(there)[:2].tolist()
        for i in at:
            assert (given_by(mutant, view, int(codes[i])) != results[i]) == there[i], (mutant, hex(codes[i]))
        both |= set(there[at].tolist())
    assert both == {True, False}


def test_a_place_is_found_wherever_there_is_one() -> None:
    """`places` tries few positions of many; all of them say the same."""
    view = next(view for view in VIEWS if view.name == "tanh 126")
    every = list(mutants(view.table))
    bits = view.interpolator.bits
    found, x = places(view, every), np.arange(1 << bits)
    each = [distances(view, segment) for segment in range(view.segments)]
    for mutant in every:
        where = [noticed(mutant.more(segment, x), *ends) for segment, ends in enumerate(each)]
        there = [segment << bits | np.flatnonzero(here)[-1] for segment, here in enumerate(where) if here.any()]
        assert found.get(mutant) == (there[0] if there else None)
    assert {mutant for mutant in every if mutant not in found} == untold(view.table)


# The tool


@pytest.mark.parametrize("table", ["tanh 119", "tanh 122", "tanh 125"])
def test_operands_are_found_that_notice_what_the_recorded_ones_notice(table: str) -> None:
    """Which of several that serve as well is found depends on the order in which they are tried."""
    (view,) = (view for view in VIEWS if view.table == table)
    found, recorded = find(table)[table], np.unique(view.positions(RECORDED[table][1]))
    every = list(mutants(table))
    assert _unnoticed_at(view, found, every) == _unnoticed_at(view, recorded, every) == unnoticed(table)


def _unnoticed_at(view: View, positions: Array, those: Iterable[Mutant]) -> list[Mutant]:
    bits, left = view.interpolator.bits, list(those)
    for segment in range(view.segments):
        up, down = distances(view, segment)
        x = positions[positions >> bits == segment] & ((1 << bits) - 1)
        left = [m for m in left if not noticed(m.more(segment, x), up[x], down[x]).any()]
    return left


def test_operands_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kept.npz"
    shutil.copy(H200, path)
    assert main([str(path), "--keep"]) == 0
    assert "simulated: 15962 operands, 0 results differ from ours, " in capsys.readouterr().out
    device, kept = read(path)
    assert device == "simulated"
    for name, (function, codes, results) in RECORDED.items():
        assert kept[name][0] == function
        same(kept[name][1], codes)
        same(kept[name][2], results)


def test_operands_are_kept_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path / "none.npz"), "--keep"])
    assert f"no {tmp_path}/none.npz, whose operands --keep takes" in capsys.readouterr().err


def test_a_gpu_that_differs_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stub:
        device = "no GPU"

        def __init__(self, target: str) -> None:
            assert target == "sm_100a"

        def __call__(self, function: str, codes: Array) -> Array:
            return simulated(function, codes) ^ np.uint32(function == "lg2")

    path = tmp_path / "kept.npz"
    shutil.copy(H200, path)
    monkeypatch.setattr(tool, "FunctionGpu", Stub)
    assert main([str(path), "--keep", "--record", "--target", "sm_100a"]) == 1
    count = sum(len(codes) for function, codes, _ in RECORDED.values() if function == "lg2")
    assert f"no GPU: 15962 operands, {count} results differ from ours, " in capsys.readouterr().out
    assert read(path)[0] == "no GPU"
