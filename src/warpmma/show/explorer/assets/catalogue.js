// The page's data, read once: instructions, their layouts, recipes and evidence, and who has which.
import { prepared } from "./numbers.js";

export const data = JSON.parse(document.getElementById("data").textContent);

export const formats = Object.fromEntries(
  Object.entries(data.formats).map(([name, row]) => [name, prepared(name, row)]),
);
export const targets = Object.keys(data.targets);

export const instructions = data.instructions.map((row) => {
  const record = Object.fromEntries(data.columns.map((name, i) => [name, row[i]]));
  const [m, n, k] = record.shape;
  const [d, a, b, c] = ["D", "A", "B", "C"].map((operand) => record.types["ABCD".indexOf(operand)]);
  const sparse = record.sparsity !== "";
  const plan = data.plans[record.plan];
  return {
    ...record,
    m,
    n,
    k,
    d,
    a,
    b,
    c,
    sparse,
    stored: sparse ? k / 2 : k,
    warpgroup: record.name.startsWith("wgmma"),
    shapeName: `m${m}n${n}k${k}`,
    targets: plan.map(([target]) => target),
    metadata: data.layouts[record.metadata] ?? null,
    scales:
      record.scales && record.scales.map(([layout, ids]) => ({ layout: data.layouts[layout], ids: data.ids[ids] })),
    fragments: Object.fromEntries(
      [..."ABCD"].map((operand, i) => [operand, data.layouts[record.layouts[i]] ?? null]),
    ),
  };
});

const byName = new Map(instructions.map((record) => [record.name, record]));
export const instructionNamed = (name) => byName.get(name);

// Recipe and evidence of an instruction on a target; null where the target lacks it.
export function computed(record, target) {
  const row = data.plans[record.plan].find(([name]) => name === target);
  return row ? { target, recipe: data.recipes[row[1]], evidence: data.evidence[row[2]] } : null;
}

// Instructions that have every fragment of a filter in their name, or as a target or generation of theirs.
export function matching(text, { target = "", family = "" } = {}) {
  const words = text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean);
  return instructions.filter(
    (record) =>
      (!target || record.targets.includes(target)) &&
      (!family || FAMILIES[family].has(record)) &&
      words.every((word) => speaksOf(record, word)),
  );
}

function speaksOf(record, word) {
  if (word.startsWith("sm_")) return record.targets.includes(word);
  const name = record.name.toLowerCase();
  const parts = name.split(/[.:]+/);
  // A word is a part of the name, or the beginning of one: `f8` finds f8f6f4, `m16n8k1` m16n8k16 and m16n8k128.
  return parts.some((part) => part.startsWith(word)) || name.includes(word);
}

export const FAMILIES = {
  dense: { label: "mma, dense", has: (r) => !r.warpgroup && !r.sparse && !r.blocks },
  sparse: { label: "mma.sp, sparse A", has: (r) => !r.warpgroup && r.sparse && !r.blocks },
  scaled: { label: "block scales", has: (r) => r.blocks > 0 },
  warpgroup: { label: "wgmma", has: (r) => r.warpgroup },
};
