"""The page's arithmetic, in a browser, is Python's reference: every recipe, every style of operands, every step."""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any

import numpy as np
from explorer_page import opened
from oracles import needs

import warpmma as wm
from lab.generators import operands, recipe_cases, styles
from warpmma.arithmetic import Recipe, SumStep, recipe, reference_trace
from warpmma.formats import Number
from warpmma.isa import warpgroup_instructions
from warpmma.layouts import OPERANDS
from warpmma.show import explorer_data

pytestmark = needs("browser")

ROWS = int(os.environ.get("WARPMMA_EXPLORER_ROWS", "2"))  # of every style

# As texts: Playwright takes values apart one by one.
COMPUTE = """rows => JSON.stringify(JSON.parse(rows).map(([number, a, b, c, x, y]) => {
  const codes = (list) => list.map(BigInt);
  const recipe = warpmma.data.recipes[number];
  const text = (n) => [n.kind, n.sign, n.significand.toString(), n.exponent];
  return warpmma.sumSteps(warpmma.formats, recipe, codes(a), codes(b), BigInt(c), codes(x), codes(y)).map((step) => [
    step.operation, step.rules, step.exponent, step.quantum, text(step.sum), step.format, step.bits, step.rounding,
    step.result.toString(),
    step.addends.map((each) => [each.source, each.products, each.nominal, text(each.number), text(each.kept)]),
  ]);
}))"""


@cache
def cases() -> dict[Recipe, tuple[int, int]]:
    """Every recipe with the most products and blocks that it is used with."""
    found: dict[Recipe, tuple[int, int]] = {}
    for case in recipe_cases():
        found[case.recipe] = max(found.get(case.recipe, (0, 0)), (case.k, case.blocks))
    for record in warpgroup_instructions("sm_90a"):
        if record.n == 8:
            found.setdefault(recipe(record, "sm_90a"), (record.k, 0))
    return found


def number_of(how: Recipe) -> int:
    """Which row of the page's recipes it is."""
    unit = {"name": type(how.unit).__name__, **vars(how.unit)}
    fields = {name: value for name, value in vars(how).items() if name != "unit"}
    number: int = explorer_data()["recipes"].index({**fields, "unit": unit})
    return number


def columns_of(drawn: dict[str, Any], column: int) -> list[Any]:
    """Operands of one sum, as JSON can have them: codes of f64 are more than a number of JavaScript holds."""
    none = np.empty(0, int)
    named = [drawn[x][..., column] if x in drawn else none for x in ("a", "b", "c", "scale_a", "scale_b")]
    return [[str(x) for x in each.tolist()] if each.ndim else str(each.item()) for each in named]


def written(number: Number) -> list[Any]:
    return [number.kind, number.sign, str(number.significand), number.exponent]


def told(step: SumStep) -> list[Any]:
    addends = [[x.source, list(x.products), x.nominal, written(x.number), written(x.kept)] for x in step.addends]
    return [
        step.operation, list(step.rules), step.exponent, step.quantum, written(step.sum), step.format, step.bits,
        step.rounding, str(step.result), addends,
    ]  # fmt: skip


def test_every_recipe_is_on_the_page() -> None:
    assert {number_of(how) for how in cases()} == set(range(len(explorer_data()["recipes"])))


def test_every_step_is_that_of_the_reference(browser: Any) -> None:
    rng = np.random.default_rng(0)
    rows, expected = [], []
    for how, (k, blocks) in cases().items():
        for style in styles(how):
            drawn = operands(how, k, ROWS, style, rng, blocks)
            for column in range(ROWS):
                row = columns_of(drawn, column)
                rows.append([number_of(how), *row])
                a, b, x, y = ([*map(int, each)] for each in row[:2] + row[3:])
                expected.append([told(step) for step in reference_trace(how, a, b, int(row[2]), x, y)])
    assert len(rows) > 2000
    with opened(browser) as page:
        found = json.loads(page.evaluate(COMPUTE, json.dumps(rows)))
    wrong = [(row, x, y) for row, x, y in zip(rows, found, expected, strict=True) if x != y]
    assert not wrong, f"{len(wrong)} of {len(rows)}; the first: {wrong[0]}"


EXPLAIN = """([name, targets, a, b, c]) => {
  const record = warpmma.instructionNamed(name);
  const given = { a: a.map(BigInt), b: b.map(BigInt), c: BigInt(c), scaleA: [], scaleB: [] };
  const [one, other] = targets.map((target) => warpmma.explained(record, target, given));
  const where = warpmma.parting(one, other);
  return [one.code.toString(), other.code.toString(), where && [where.step, where.reason]];
}"""

PAIRS = (
    ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_80", "sm_90"),
    ("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", "sm_80", "sm_90"),
    ("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", "sm_75", "sm_100"),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_89", "sm_90"),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32", "sm_90", "sm_120a"),
    ("mma.sync.aligned.m16n8k16.row.col.f16.e4m3.e4m3.f16", "sm_89", "sm_120a"),
    ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "sm_80", "sm_90"),
)


def test_targets_differ_where_explain_says(browser: Any) -> None:
    rng = np.random.default_rng(1)
    reasons = set()
    with opened(browser) as page:
        for name, *targets in PAIRS:
            record = wm.parse(name)
            how = recipe(record, targets[0])
            for style in styles(how):
                drawn = operands(how, record.k, 1, style, rng)
                a, b, c, _, _ = columns_of(drawn, 0)
                found = page.evaluate(EXPLAIN, [name, targets, a, b, c])
                A, B, C = (np.zeros(record.layout(x).shape, record.format(x).code_dtype) for x in OPERANDS[:3])
                A[0], B[:, 0], C[0, 0] = drawn["a"][:, 0], drawn["b"][:, 0], drawn["c"][0]
                one = wm.explain(name, A, B, C, row=0, column=0, target=targets[0], against=targets[1])
                other, where = one.against, one.parting
                assert other is not None
                expected = [str(one.result), str(other.result), where and [where.step, where.reason]]
                assert found == expected, (name, style)
                reasons.add(where and where.reason)
    assert len(reasons) > 5
