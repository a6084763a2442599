"""Generators of operands: what they refuse, that they follow from their generator, and what their styles promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arrays import same

from lab.generators import (
    instruction_inputs,
    metadata_words,
    mixed,
    operands,
    operation_inputs,
    random_codes,
    recipe_cases,
    styles,
    with_exponents,
)
from warpmma.arithmetic.recipes.lowerings import recipe
from warpmma.errors import MnemonicError, OperandError
from warpmma.formats import FloatFormat, floating
from warpmma.isa import instructions, parse
from warpmma.sparsity import check_metadata, selectors

HALF = recipe("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_90")
SCALED = recipe("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "sm_120a")
BYTES = recipe("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", "sm_90")


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"recipe": "f16"}, r"a recipe is a record, as warpmma\.arithmetic\.recipe returns; got 'f16'"),
        ({"style": "tie"}, r"style is 'tie'; expected 'near', .*'ties'"), ({"style": None}, "style is None; expected"),
        ({"recipe": BYTES, "style": "near"}, "style is 'near'; expected 'bits', 'extreme' or 'turn'"),
        ({"k": 1}, "k is 1; expected an integer from 2 on"), ({"k": 2.0}, r"k is 2\.0; expected an integer from 2 on"),
        ({"rows": 0}, "rows is 0; expected an integer from 1 on"),
        ({"rows": True}, "rows is True; expected an integer"),
        ({"blocks": -1}, "blocks is -1; expected an integer from 0 on"),
        ({"blocks": 2}, "2 blocks of a recipe without scales; expected a divisor of k, of a recipe with scales"),
        ({"recipe": SCALED}, "blocks is 0; expected an integer from 1 on"),
        ({"recipe": SCALED, "blocks": 3}, "3 blocks of 16 products; expected a divisor of k"),
        ({"rng": 7}, r"rng is 7; expected a numpy\.random\.Generator"),
    ],
)  # fmt: skip
def test_what_makes_no_operands_is_refused(changed: dict[str, Any], text: str) -> None:
    given: dict[str, Any] = {"recipe": HALF, "k": 16, "rows": 4, "style": "near", "rng": np.random.default_rng(0)}
    assert operands(**given)["a"].shape == (16, 4)
    with pytest.raises(OperandError, match=text):
        operands(**given | changed)


@pytest.mark.parametrize("case", recipe_cases(), ids=str)
@pytest.mark.alike(3)
def test_every_style_gives_codes_of_the_formats(case: Any) -> None:
    """And from as few products and rows as there may be."""
    how = case.recipe
    for style in styles(how):
        for k, rows in ((case.k, 5), (max(2, case.blocks), 1)):
            made = operands(how, k, rows, style, np.random.default_rng(1), case.blocks)
            again = operands(how, k, rows, style, np.random.default_rng(1), case.blocks)
            assert list(made) == ["a", "b", "c", *(["scale_a", "scale_b"] if how.scale else [])]
            shapes = [(k, rows), (k, rows), (rows,), *[(case.blocks, rows)] * 2]
            for (name, codes), shape in zip(made.items(), shapes, strict=False):
                same(codes, again[name])
                assert codes.shape == shape
            for name, fmt in (("a", case.instruction.format("A")), ("c", case.instruction.format("C"))):
                assert made[name].dtype == fmt.code_dtype and not (made[name] & ~fmt.code_dtype.type(fmt.mask)).any()


def test_exponents_are_those_asked_for() -> None:
    fmt, rng = floating("bf16"), np.random.default_rng(2)
    exponents = rng.integers(fmt.emin, fmt.emax + 1, (3, 100))
    values = fmt.decode(with_exponents(fmt, exponents, rng))
    np.testing.assert_array_equal(np.frexp(values)[1] - 1, exponents)
    powers = fmt.decode(with_exponents(fmt, np.full(50, 10**6), rng, powers=True))
    assert set(np.abs(powers)) == {2.0**fmt.emax} and len(set(powers)) == 2


def test_mixed_codes_are_about_one_but_for_the_rare() -> None:
    fmt, rng = floating("f16"), np.random.default_rng(3)
    assert (np.abs(np.log2(np.abs(fmt.decode(mixed(fmt, (1000,), rng, rare=0))))) < 4).all()
    assert len(set(random_codes(fmt, (1 << 20,), rng).tolist())) == 1 << 16


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_100a"])
def test_metadata_is_legal_for_every_selector(target: str) -> None:
    for i in instructions(target):
        if i.sparse:
            words = metadata_words(i, target, 3, np.random.default_rng(4))
            assert words.shape == (3, 32) and words.dtype == np.uint32
            for selector in selectors(i):
                check_metadata(words, i, selector=selector)


def test_registers_of_scales_serve_every_choice_of_ids() -> None:
    i = parse("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0")
    made = instruction_inputs(i, "sm_120a", "near", 2, np.random.default_rng(5))
    assert {name: x.shape for name, x in made.items()} == {
        "a": (2, 4, 32), "b": (2, 2, 32), "c": (2, 4, 32), "sa": (2, 32), "sb": (2, 32),
    }  # fmt: skip


def test_inputs_of_operations_are_whole_warps() -> None:
    with pytest.raises(OperandError, match="lanes is 33; expected a multiple of 32"):
        operation_inputs("add.f32", 33, 0)
    with pytest.raises(MnemonicError):
        operation_inputs("add.f33", 32, 0)
    first, second = operation_inputs("add.f32", 64, 0)
    assert first.shape == second.shape == (2, 32) and first.dtype == np.uint32
    fmt = floating("f32")
    assert isinstance(fmt, FloatFormat) and np.isnan(fmt.decode(operation_inputs("add.f32", 1 << 12, 0)[0])).any()
