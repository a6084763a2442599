// A sum on a target: its steps, its exact result, and how far the one is from the other.
import { computed, formats } from "./catalogue.js";
import { bitLength, negated, total, unpack } from "./numbers.js";
import { sumSteps } from "./reference.js";

// Everything that is shown of one sum; null where the target lacks the instruction.
export function explained(record, target, operands) {
  const how = computed(record, target);
  if (!how) return null;
  const { a, b, c, scaleA, scaleB } = operands;
  const steps = sumSteps(formats, how.recipe, a, b, c, scaleA, scaleB);
  const last = steps[steps.length - 1];
  const format = formats[last.format];
  const result = unpack(format, last.result);
  const exact = exactOf(steps);
  const error = exact && result.kind === "finite" ? total([result, negated(exact)]) : null;
  return {
    ...how,
    record,
    steps,
    format,
    code: last.result,
    number: result,
    exact,
    error,
    ulps: ulpsOf(error, result, format),
  };
}

// The sum of all products and C; null where one of them is NaN or infinite.
function exactOf(steps) {
  const given = steps
    .flatMap((step) => step.addends)
    .filter((each) => ["product", "group", "C"].includes(each.source));
  return given.every((each) => each.number.kind === "finite") ? total(given.map((each) => each.number)) : null;
}

// An error in units of the last place of a result.
function ulpsOf(error, result, format) {
  if (!error || format.integer) return null;
  if (!error.significand) return 0;
  const high = result.significand ? result.exponent + bitLength(result.significand) - 1 : format.emin;
  const unit = Math.max(high, format.emin) - format.fraction_bits;
  const drop = Math.max(0, bitLength(error.significand) - 53);
  const value = Number(error.significand >> BigInt(drop)) * 2 ** (error.exponent + drop - unit);
  return error.sign ? -value : value;
}

export const WORDS = {
  fused: "one fused sum",
  grouped: "one sum of groups",
  multiply: "a multiplication",
  fma: "a fused multiply-add",
  add: "an addition",
  integer: "an exact sum",
  convert: "a conversion",
  popcount: "a count of ones",
};
export const ROUNDINGS = {
  rn: "rounded to nearest even",
  rz: "rounded toward zero",
  rm: "rounded down",
  rp: "rounded up",
  wrap: "wrapped to 32 bits",
  clamp: "clamped to the range of s32",
};
// Ascending numbers, runs of them by their ends.
export function ranges(numbers) {
  const runs = [];
  for (const number of numbers) {
    const last = runs[runs.length - 1];
    if (last && last[1] + 1 === number) last[1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([first, last]) => (first === last ? `${first}` : `${first}\u2013${last}`)).join(", ") || "none";
}
