// Where two targets part: as `warpmma.analysis.partings` has it. Two steps are alike if they add the same values of the
// same products, keep the same of each, and come to the same result. If not, the most telling reason is given.
import { negated, total } from "./numbers.js";

// The first step in which two explanations part: {step, reason}; null if there is none.
export function parting(told, other) {
  const length = Math.max(told.steps.length, other.steps.length);
  for (let step = 0; step < length; step += 1) {
    const x = { ...told, step: told.steps[step] };
    const y = { ...other, step: other.steps[step] };
    if (!x.step || !y.step) {
      const [more, less] = x.step ? [told, other] : [other, told];
      const where = x.step ? step : told.steps.length - 1;
      return { step: where, reason: `${more.target} takes further steps, ${less.target} does not` };
    }
    if (!alikeSteps(x.step, y.step)) return { step, reason: reasonOf(x, y) };
  }
  return null;
}

const alikeSteps = (x, y) => x.result === y.result && x.format === y.format && keptOf(x) === keptOf(y);

// Of every addend that is not zero its products, its value, and what is lost of it.
function keptOf(step) {
  const rows = step.addends
    .filter(({ number }) => number.kind !== "finite" || number.significand)
    .map(({ products, number, kept }) => [products, valueText(number), valueText(lostOf(number, kept))].join(" "));
  return rows.sort().join(";");
}

const lostOf = (number, kept) => (number.kind === "finite" ? total([number, negated(kept)]) : number);

function valueText(number) {
  if (number.kind !== "finite") return "none";
  if (!number.significand) return "0";
  const zeros = /0*$/.exec(number.significand.toString(2))[0].length;
  return `${number.sign} ${number.significand >> BigInt(zeros)} ${number.exponent + zeros}`;
}

const MADE = {
  fused: "adds all products of a step at once",
  grouped: "adds groups of scaled products at once",
  multiply: "adds one product after the other",
  fma: "adds one product after the other",
  add: "adds two sums",
  convert: "converts the sum",
  integer: "adds integers",
  popcount: "counts bits",
};

const productsOf = ({ step }) => step.addends.flatMap((each) => each.products).sort((i, j) => i - j);
const listed = (products) => products.slice(0, 4).join(", ") + (products.length > 4 ? ", ..." : "");

function reasonOf(x, y) {
  const [here, there] = [x.target, y.target];
  const [made, theirs] = [MADE[x.step.operation], MADE[y.step.operation]];
  if (made !== theirs) return `${here} ${made} where ${there} ${theirs}`;
  if (x.recipe.accumulate !== y.recipe.accumulate) {
    const [after, within] = x.recipe.accumulate === "after" ? [here, there] : [there, here];
    return `${after} adds C after all products, ${within} with the first of them`;
  }
  const [mine, others] = [productsOf(x), productsOf(y)];
  if (mine.length !== others.length)
    return `a step takes ${mine.length} products on ${here}, and ${others.length} on ${there}`;
  if (String(mine) !== String(others))
    return `a step takes products ${listed(mine)} on ${here}, and ${listed(others)} on ${there}`;
  if (keptOf(x.step) !== keptOf(y.step)) return reasonOfAddends(x, y);
  return reasonOfRounding(x, y);
}

function reasonOfAddends(x, y) {
  const [mine, theirs] = [x.recipe.unit, y.recipe.unit];
  const aligned = [mine, theirs].every((unit) => "fraction_bits" in unit);
  if (aligned && mine.fraction_bits !== theirs.fraction_bits) {
    const kept = `${x.target} keeps ${mine.fraction_bits} bits of an addend below the largest exponent`;
    return `${kept}, ${y.target} ${theirs.fraction_bits}`;
  }
  if (aligned && mine.floor !== theirs.floor) {
    return `the largest exponent is at least ${mine.floor} on ${x.target}, and ${theirs.floor} on ${y.target}`;
  }
  return `${x.target} and ${y.target} add other numbers in this step`;
}

function reasonOfRounding(x, y) {
  if (x.recipe.unit.name === "IntegerSum" && x.step.rounding !== y.step.rounding) {
    return `${x.target} ${x.step.rounding}s a sum that is too large, ${y.target} ${y.step.rounding}s it`;
  }
  const said = ({ step }) =>
    `${step.rounding === "rn" ? "to nearest even" : "toward zero"} to ${step.bits} fraction bits`;
  return `${x.target} rounds the sum ${said(x)}, ${y.target} ${said(y)}`;
}
