"""Guesses of what was swapped: planted mistakes are named."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from arrays import Array
from mistakes import F16, MXF8, PLANTS, SPARSE, Given, Plant, random_operands

import warpmma as wm
from warpmma.errors import WarpmmaError
from warpmma.formats import FORMATS
from warpmma.testing import Gpu, assert_same_bits, guess, guess_fragment
from warpmma.testing.guessing.problem import posed
from warpmma.testing.guessing.suspects import likely_mistakes, mistakes_in_fragments


@pytest.mark.parametrize("planted", PLANTS, ids=lambda p: p.name)
@pytest.mark.alike(2)
def test_a_planted_mistake_is_named(planted: Plant) -> None:
    given = random_operands(planted.instruction, planted.shape)
    found = guess(planted.instruction, **given, got=planted.kernel(given), target=planted.target)
    assert [x for x in found.mistakes if planted.said in x], str(found)


def test_at_least_so_many_mistakes_are_planted() -> None:
    assert len(PLANTS) >= 111
    assert len({p.instruction for p in PLANTS}) >= 32


def wrong_fragment(order: list[int], **changed: Array) -> tuple[Given, Array]:
    given = random_operands(F16)
    registers = [wm.load(F16, x, (given | changed)[x.lower()]) for x in ("A", "B", "C")]
    registers[0] = registers[0][..., order, :]
    return given | changed, wm.store(F16, "D", wm.execute(F16, *registers, target="sm_90"))


def test_one_guess_is_said() -> None:
    given, got = wrong_fragment([0, 2, 1, 3])
    found = guess(F16, **given, got=got, target="sm_90")
    assert str(found) == "guess: as if registers 1 and 2 of A were swapped"
    assert found.mistakes == ("registers 1 and 2 of A were swapped",)
    assert not found.as_given and not found.alike and found.alone > 500 and not found.pairs
    assert Gpu("sm_90").guess(F16, **given, got=got) == found
    assert guess(F16, **given, got=got, target="sm_90", engine="numpy") == found


def test_registers_and_matrices_are_taken_alike() -> None:
    given, got = wrong_fragment([0, 2, 1, 3])
    registers: dict[str, Any] = {x: wm.load(F16, x.upper(), given[x]) for x in "abc"}  # type: ignore[arg-type]
    d = wm.load(F16, "D", got)
    assert guess(F16, **registers, got=d, target="sm_90").mistakes == ("registers 1 and 2 of A were swapped",)
    mixed = {**given, "b": registers["b"]}
    assert guess(F16, **mixed, got=d, target="sm_90").mistakes == ("registers 1 and 2 of A were swapped",)


def test_a_batch_of_warps_has_one_explanation() -> None:
    given, got = wrong_fragment([0, 2, 1, 3], a=np.random.default_rng(3).standard_normal((3, 2, 16, 16)).astype("f2"))
    assert got.shape == (3, 2, 16, 8)
    assert guess(F16, **given, got=got, target="sm_90").mistakes == ("registers 1 and 2 of A were swapped",)
    rolled = np.roll(given["a"].reshape(6, 16, 16), -1, axis=0).reshape(3, 2, 16, 16)
    found = guess(F16, **given, got=wm.mma(F16, rolled, given["b"], given["c"], target="sm_90"), target="sm_90")
    assert "warps of A were shifted by 1: warp i was warp i + 1, round the end" in found.mistakes


def test_what_is_right_needs_no_guess() -> None:
    given, got = wrong_fragment([0, 1, 2, 3])
    found = guess(F16, **given, got=got, target="sm_90")
    assert found.as_given and not found.mistakes
    assert str(found) == "guess: none needed, the operands as given have this result on sm_90"


def test_operands_that_are_too_much_alike_tell_nothing() -> None:
    ones: Given = {
        "a": np.ones((16, 16), np.float16),
        "b": np.ones((16, 8), np.float16),
        "c": np.zeros((16, 8), np.float32),
    }
    got = np.full((16, 8), 8, np.float32)
    found = guess(F16, **ones, got=got, target="sm_90")
    assert found.alike >= 8 and not found.mistakes
    assert str(found).startswith("guess: none, as ") and str(found).endswith("operands too uniform; use random data")


@pytest.mark.parametrize("seed", range(2))
def test_what_no_mistake_explains_is_not_explained(seed: int) -> None:
    """One bit flipped, elements of A in no order, or results of other operands: a wrong guess is worse than none."""
    rng = np.random.default_rng(seed)
    given = random_operands(F16, seed=seed)
    right = wm.mma(F16, **given, target="sm_90")
    flipped = right.copy()
    flipped.view(np.uint32)[tuple(rng.integers(0, 8, 2))] ^= np.uint32(1 << rng.integers(0, 32))
    shuffled = wm.mma(F16, rng.permuted(given["a"].reshape(-1)).reshape(16, 16), given["b"], given["c"], target="sm_90")
    other = wm.mma(F16, **random_operands(F16, seed=seed + 100), target="sm_90")
    for got in (flipped, shuffled, other):
        found = guess(F16, **given, got=got, target="sm_90", pairs=2000)
        assert not found.mistakes and not found.as_given and not found.alike, str(found)
        assert found.pairs >= 2000
        assert re.match(r"guess: none; no one of \d+ mistakes has this result, nor any of \d+ pairs", str(found))


def test_pairs_are_tried_as_often_as_asked() -> None:
    given, _ = wrong_fragment([0, 1, 2, 3])
    got = guess(F16, **given, got=np.zeros((16, 8), np.float32), target="sm_90", pairs=0)
    assert not got.pairs and "nor any" not in str(got)


def test_every_guess_gives_the_result() -> None:
    """Of mistakes that cannot be told apart, such as k of A or of B in another order, all are named."""
    given, got = wrong_fragment([2, 3, 0, 1])
    found = guess(F16, **given, got=got, target="sm_90")
    assert len(found.mistakes) == 2
    assert str(found).splitlines()[0] == "guess: as if one of these, which the operands do not tell apart"
    swapped = np.roll(given["b"], 8, axis=0)
    assert (wm.mma(F16, given["a"], swapped, given["c"], target="sm_90") == got).all()


@pytest.mark.parametrize("instruction", sorted({p.instruction for p in PLANTS}))
def test_fragments_are_guessed_without_executing(instruction: str) -> None:
    """Whatever is permuted in a fragment is seen there; here registers, or where there is but one, lanes."""
    record, rng = wm.parse(instruction), np.random.default_rng(5)
    for operand in ("A", "B", "C", "D"):
        layout = record.layout(operand)
        right = rng.integers(0, 2**64 - 1, (3, layout.registers, 32), np.uint64, endpoint=True)
        right = right.astype(layout.packing.dtype)
        if record.kind and operand in "AB":
            right = wm.load(record, operand, wm.store(record, operand, right))  # without padding
        assert guess_fragment(record, operand, right, right).as_given
        if layout.registers > 1:
            found = guess_fragment(record, operand, right[:, [1, 0, *range(2, layout.registers)]], right)
            assert any(f"registers 0 and 1 of {operand} were swapped" in x for x in found.mistakes), str(found)
        found = guess_fragment(record, operand, right[:, :, np.arange(32) ^ 4], right)
        assert any(f"lanes t and t ^ 4 of {operand} were swapped" in x for x in found.mistakes), str(found)


def test_reports_of_differences_end_with_a_guess() -> None:
    given, got = wrong_fragment([0, 2, 1, 3])
    expected = wm.mma(F16, **given, target="sm_90")
    with pytest.raises(AssertionError) as caught:
        assert_same_bits(got, expected, instruction=F16, inputs=given)
    assert str(caught.value).splitlines()[-1] == "guess: as if registers 1 and 2 of A were swapped"
    with pytest.raises(AssertionError) as caught:
        assert_same_bits(got, expected + 1, instruction=F16, inputs=given)
    *_, note, said = str(caught.value).splitlines()
    assert note == "note: no target gives the expected result for these inputs; guessed with sm_90"
    assert said == "guess: as if registers 1 and 2 of A were swapped"
    with pytest.raises(AssertionError, match=r"none needed, the operands as given have this result on sm_90$"):
        assert_same_bits(expected, expected + 1, instruction=F16, inputs={**given, "target": "sm_90"})
    a = wm.load(F16, "A", given["a"])
    with pytest.raises(AssertionError, match=r"guess: as if registers 1 and 2 of A were swapped$"):
        assert_same_bits(a[[0, 2, 1, 3]], a, instruction=F16, operand="A")
    with pytest.raises(AssertionError) as caught:
        assert_same_bits(got, expected, instruction=F16)  # of D alone there is nothing to say
    assert "guess" not in str(caught.value)


def test_wrong_inputs_are_refused_and_lose_no_report() -> None:
    given, got = wrong_fragment([0, 2, 1, 3])
    for wrong, words in (
        ({"a": given["a"]}, "inputs has no 'b'; expected 'a' and 'b', and of c, target, metadata"),
        ({**given, "A": 1}, "inputs has 'A'; expected 'a' and 'b'"),
        ({**dict[Any, Any](given), 3: 1}, "inputs has 3; expected"),
        ("ab", "inputs is 'ab'; expected a dict"),
    ):
        inputs: Any = wrong
        with pytest.raises(WarpmmaError, match=words):
            assert_same_bits(got, got, instruction=F16, inputs=inputs)
    with pytest.raises(WarpmmaError, match="expected a dict, with an instruction and operand D"):
        assert_same_bits(got, got, instruction=F16, operand="C", inputs=given)
    with pytest.raises(AssertionError) as caught:
        assert_same_bits(got, got + 1, instruction=F16, inputs={**given, "a": given["b"]})
    assert str(caught.value).startswith("128 of 128 elements of D differ")
    assert (
        str(caught.value).splitlines()[-1].startswith("guess: none, as the inputs are wrong: mma.sync.aligned.m16n8k16")
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"a": np.zeros((16, 15), "f2")}, r"A is float16 \(16, 15\); expected matrices \[..., 16, 16\], whole numbers"),
        ({"a": np.zeros((16, 16), "f4")}, "A: f16: got dtype float32"),
        ({"b": np.zeros((32, 8), "f2")}, "A has 16 of k, and B 32"),
        ({"got": np.zeros((32, 8), "f4")}, r"D is \(32, 8\); expected \(16, 8\)"),
        ({"c": np.zeros((16, 16), "f4")}, r"C is \(16, 16\); expected \(16, 8\)"),
        ({"a": np.zeros((2, 16, 16), "f2"), "b": np.zeros((3, 16, 8), "f2")}, "batches do not broadcast"),
        ({"metadata": np.zeros(32, "u4")}, "takes no metadata"),
        ({"scale_a": np.zeros(32, "u4")}, "takes no scale_a"),
        ({"selector": 1}, "is dense: it takes no selector"),
        ({"selector": [1]}, r"selector is \[1\]; expected an integer"),
        ({"byte_id_a": None}, "byte_id_a is None; expected an integer"),
        ({"a": np.float16(3)}, r"A is float16 \(\); expected matrices"),
        ({"pairs": -1}, "pairs is -1; expected how many pairs"),
        ({"pairs": "many"}, "pairs is 'many'"),
        ({"engine": "fast"}, "engine is 'fast'"),
        ({"target": "sm_70"}, "sm_70"),
    ],
)
def test_what_cannot_be_guessed_is_refused(change: dict[str, Any], words: str) -> None:
    given, got = wrong_fragment([0, 2, 1, 3])
    with pytest.raises(WarpmmaError, match=words):
        guess(F16, **{**given, "got": got, "target": "sm_90", **change})


def test_whole_matrices_of_other_instructions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    i = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16"
    with pytest.raises(WarpmmaError, match=r"expected matrices \[..., 4, 8, 4\]"):
        guess(i, np.zeros((8, 4), "f2"), np.zeros((4, 4, 8), "f2"), got=np.zeros((4, 8, 8), "f4"), target="sm_70")
    monkeypatch.setattr("warpmma.testing.guessing.searching.MOST", 7)
    with pytest.raises(WarpmmaError, match="8 instructions; guesses take 7"):
        zeros = [np.zeros(s, "f2") for s in ((32, 32), (32, 16))]
        guess(F16, *zeros, got=np.zeros((32, 16), "f4"), target="sm_90")
    with pytest.raises(WarpmmaError, match="inputs is 'A'; expected a dict, with an instruction and operand D"):
        assert_same_bits(1, 2, instruction=F16, inputs="A")  # type: ignore[arg-type]
    with pytest.raises(WarpmmaError, match=r"A is uint32 \(0, 4, 32\); expected matrices"):
        guess_fragment(F16, "A", np.zeros((0, 4, 32), "u4"), np.zeros((4, 32), "u4"))
    empty = {**random_operands(SPARSE), "metadata": np.zeros((0, 32), "u4")}
    with pytest.raises(WarpmmaError, match=r"the batch is \(0,\): there is nothing to guess"):
        guess(SPARSE, **empty, got=np.zeros((16, 8), "f4"), target="sm_90")
    with pytest.raises(WarpmmaError, match="A has tiles"):
        guess_fragment(F16, "A", np.zeros((2, 4, 32), "u4"), np.zeros((4, 32), "u4"))


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_results_may_be_rounded_when_they_are_stored(name: str) -> None:
    fmt = FORMATS[name]
    given, got = wrong_fragment([0, 2, 1, 3])
    stored, expected = (x.astype(fmt.dtype) for x in (got, wm.mma(F16, **given, target="sm_90")))
    assert guess(F16, **given, got=stored, target="sm_90").mistakes == ("registers 1 and 2 of A were swapped",)
    with pytest.raises(AssertionError) as caught:
        assert_same_bits(stored, expected, instruction=F16, inputs=given)
    assert str(caught.value).startswith(f"128 of 128 elements of D differ ({name}, mma.sync.aligned.m16n8k16.row")
    assert str(caught.value).splitlines()[-1] == "guess: as if registers 1 and 2 of A were swapped"


def test_a_sparse_a_may_be_dense_and_whole() -> None:
    """64 x 64 of A: two rows of tiles, two tiles along k."""
    rng = np.random.default_rng(7)
    a = wm.sparsity.prune(rng.standard_normal((32, 64)).astype(np.float16), SPARSE)
    b = rng.standard_normal((64, 16)).astype(np.float16)
    right = wm.matmul(a, b, instruction=SPARSE, target="sm_90")
    assert guess(SPARSE, a, b, got=right, target="sm_90").as_given
    found = guess(SPARSE, a, np.roll(b, 32, axis=0), got=right, target="sm_90")
    assert found.mistakes == ("B was one k-tile early, the first at the end",)
    for wrong in (np.float16(1), a[:, :48], np.zeros((0, 32), np.float16)):
        with pytest.raises(WarpmmaError, match=r"without metadata; expected \[..., 16, 32\]"):
            guess(SPARSE, wrong, b, got=right, target="sm_90")


def test_undefined_metadata_is_refused_as_it_is_given() -> None:
    given = random_operands(SPARSE)
    got = np.zeros((16, 8), np.float32)
    with pytest.raises(WarpmmaError, match="metadata nibble 0 of lane 0 is 0x0"):
        guess(SPARSE, **{**given, "metadata": np.zeros(32, np.uint32)}, got=got, target="sm_90")


def test_a_and_b_may_have_been_exchanged() -> None:
    a, b = np.random.default_rng(8).standard_normal((2, 16, 16)).astype(np.float16)
    found = guess(F16, a, b, got=wm.matmul(b, a, instruction=F16, target="sm_90"), target="sm_90")
    assert found.mistakes == ("A and B were exchanged",)


@pytest.mark.parametrize("instruction", [F16, SPARSE, MXF8])
def test_every_mistake_of_the_table_is_another(instruction: str) -> None:
    """No text stands for two changes, no two gathers of an operand are the same, and none changes nothing."""
    record, given = wm.parse(instruction), random_operands(instruction)
    words = {name: given.get(name) for name in ("metadata", "scale_a", "scale_b")}
    problem = posed(record, record.targets[-1], given["a"], given["b"], given["c"], given["c"], **words)
    table = likely_mistakes(problem, 1 << 16)
    assert len({m.text for m in table}) == len(table) > 500
    for operand in ("A", "B", "C", "D"):
        gathers = [m.steps[0].gather for m in mistakes_in_fragments(record, operand)]
        size = record.layout(operand).flat.size
        assert all(x is not None and x.shape == (size,) and x.min() >= -1 and x.max() < size for x in gathers)
        assert len({x.tobytes() for x in [*gathers, np.arange(size)] if x is not None}) == len(gathers) + 1
