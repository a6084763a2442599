// The page's data, read once: instructions, their layouts, recipes and evidence, and who has which.
//
// Products, `mma` and `wgmma`, have a plan: recipes and evidence of their sums. What moves fragments, and `wmma`, has
// `held` in place of it: operands whose layouts may differ between targets.
import { prepared } from "./numbers.js";

export const data = JSON.parse(document.getElementById("data").textContent);

export const formats = Object.fromEntries(
  Object.entries(data.formats).map(([name, row]) => [name, prepared(name, row)]),
);
export const targets = Object.keys(data.targets);

const products = data.instructions.map((row) => {
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

const heldOperands = data.held.map(([id, type, variant, layouts]) => ({
  id,
  type,
  variant,
  layouts: layouts.map(([layout, counted, on]) => ({ layout: data.layouts[layout], counted, targets: data.lists[on] })),
}));
const moves = data.moves.map((row) => {
  const record = Object.fromEntries(data.move_columns.map((name, i) => [name, row[i]]));
  const targets = data.lists[record.targets];
  const held = record.held.map((number) => heldOperands[number]);
  return {
    ...record,
    targets,
    known: data.texts[record.known],
    held,
    kinds: [...new Set(held.map(({ type }) => type))].filter((type) => type !== "address"),
    opcode: record.name.split(".")[0],
    blocks: 0,
    documented: true,
    sparse: false,
    sparsity: "",
    warpgroup: false,
  };
});

export const instructions = [...products, ...moves];

const byName = new Map(instructions.map((record) => [record.name, record]));
export const instructionNamed = (name) => byName.get(name);

// Recipe and evidence of a product on a target; null where the target lacks it.
export function computed(record, target) {
  if (record.held) return null;
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
  const parts = [...name.split(/[.:]+/), ...(record.kinds ?? [])];
  // A word is a part of the name, or the beginning of one: `f8` finds f8f6f4, `m16n8k1` m16n8k16 and m16n8k128.
  return parts.some((part) => part.startsWith(word)) || name.includes(word);
}

export const FAMILIES = {
  dense: { label: "mma, dense", has: (r) => !r.held && !r.warpgroup && !r.sparse && !r.blocks },
  sparse: { label: "mma.sp, sparse A", has: (r) => !r.warpgroup && r.sparse && !r.blocks },
  scaled: { label: "block scales", has: (r) => r.blocks > 0 },
  warpgroup: { label: "wgmma", has: (r) => r.warpgroup },
  matrices: { label: "ldmatrix, stmatrix, movmatrix", has: (r) => r.held && r.opcode !== "wmma" },
  wmma: { label: "wmma", has: (r) => r.opcode === "wmma" },
};
