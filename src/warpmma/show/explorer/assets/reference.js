// How one element of D comes about: a transcription of `warpmma.arithmetic.reference`, rule by rule, that keeps every
// step. Numbers in comments are those of its rules. Tests hold it against the original, bit for bit.
//
// A step is {operation, rules, addends, exponent, quantum, sum, format, bits, rounding, result}, an addend {source,
// products, number, nominal, kept}: the fields of `warpmma.arithmetic.SumStep` and `Addend`.
import { bitLength, exactProduct, exactSum, finite, fromInteger, integerValue, rounded, unpack } from "./numbers.js";

// Steps of a dot product; the result is that of the last. `formats` has formats by name, codes are BigInt.
export function sumSteps(formats, recipe, a, b, c, scaleA = [], scaleB = []) {
  return UNITS[recipe.unit.name](formats, recipe, a, b, c, scaleA, scaleB);
}

// Which products each step of a fused dot-add takes (1).
export function stepsOf(order, products, k) {
  const all = Array.from({ length: k }, (_, i) => i);
  const runs = order === "halves" ? [[0, 1], [2, 3]].map((half) => all.filter((i) => half.includes(i % 4))) : [all];
  const cut = [];
  for (const run of runs) for (let i = 0; i < run.length; i += products) cut.push(run.slice(i, i + products));
  return cut;
}

// The product of the two scales of each of k products, and its nominal exponent; ones without block scales.
function scalesOf(formats, recipe, k, scaleA, scaleB) {
  if (recipe.scale === null) return Array(k).fill([finite(0, 1n, 0), 0]);
  const fmt = formats[recipe.scale];
  const pairs = scaleA.map((x, i) => {
    const pair = exactProduct(unpack(fmt, x), unpack(fmt, scaleB[i]));
    return [pair, pair.exponent + 2 * fmt.fraction_bits];
  });
  return Array.from({ length: k }, (_, i) => pairs[Math.floor(i / (k / pairs.length))]);
}

const addend = (source, number, nominal = null, products = []) => ({ source, products, number, nominal, kept: number });

function fused(formats, recipe, a, b, c, scaleA, scaleB) {
  const unit = recipe.unit;
  const after = recipe.accumulate === "after";
  const d = formats[recipe.d];
  const scales = scalesOf(formats, recipe, a.length, scaleA, scaleB);
  const inner = [recipe.a, recipe.b].map((name) => formats[recipe.convert ?? name]);
  const [rowA, rowB] = [[recipe.a, a], [recipe.b, b]].map(([name, codes], side) =>
    codes.map((code) => {
      const number = unpack(formats[name], code);
      return recipe.convert ? unpack(inner[side], rounded(number, inner[side], "rn")) : number; // 10
    }),
  );
  const fraction = inner[0].fraction_bits + inner[1].fraction_bits;
  let format = after ? d : formats[recipe.c];
  let accumulator = after ? 0n : c;
  const steps = stepsOf(recipe.order, unit.products, a.length).map((step, position) => {
    const addends = step.map((i) => {
      const product = exactProduct(rowA[i], rowB[i]); // 2
      const [scale, nominal] = scales[i];
      return addend("product", exactProduct(product, scale), product.exponent + fraction + nominal, [i]); // 12
    });
    const start = unpack(format, accumulator);
    const source = position === 0 && !after ? "C" : "accumulator";
    addends.push(addend(source, start, start.exponent + format.fraction_bits)); // 1, 3, 11
    const speaking = addends.filter((each) => each.number.significand).map((each) => each.nominal);
    const made = alignedSum("fused", unit, addends, d, speaking);
    [accumulator, format] = [made.result, d];
    return made;
  });
  if (after) {
    const addends = [addend("C", unpack(formats[recipe.c], c)), addend("accumulator", unpack(d, accumulator))];
    steps.push(ieeeSum("add", [11, 14], addends, d, "rn"));
  }
  return steps;
}

function grouped(formats, recipe, a, b, c, scaleA, scaleB) {
  const unit = recipe.unit;
  const scales = scalesOf(formats, recipe, a.length, scaleA, scaleB);
  const start = unpack(formats[recipe.c], c);
  const addends = [addend("C", start, start.exponent + formats[recipe.c].fraction_bits)];
  const speaking = start.significand ? [addends[0].nominal] : [];
  for (let first = 0; first < a.length; first += unit.group) {
    const products = Array.from({ length: Math.min(unit.group, a.length - first) }, (_, i) => first + i);
    const members = products.map((i) => exactProduct(unpack(formats[recipe.a], a[i]), unpack(formats[recipe.b], b[i])));
    const [scale, nominal] = scales[first];
    const sum = members.reduce((sum, product) => exactSum(sum, product), finite());
    // 13: a group that cancels is zero and still has its say.
    const zeros = members.every((product) => !product.significand);
    const silent = zeros || (scale.kind === "finite" && !scale.significand);
    const said = silent ? unit.floor : nominal;
    addends.push(addend("group", exactProduct(sum, scale), said, products));
    speaking.push(said);
  }
  return [alignedSum("grouped", unit, addends, formats[recipe.d], speaking)];
}

// Rules 4 to 9, given the nominal exponents that have a say in E.
function alignedSum(operation, unit, addends, d, speaking) {
  const step = {
    operation, rules: operation === "fused" ? [4, 5, 6, 7, 9] : [4, 5, 6, 7, 9, 13], addends, exponent: null,
    quantum: null, sum: null, format: d.name, bits: unit.result_bits, rounding: unit.rounding, result: 0n,
  };
  const kinds = addends.map((each) => each.number.kind);
  const signs = new Set(addends.filter((each) => each.number.kind === "infinity").map((each) => each.number.sign));
  if (kinds.includes("nan") || signs.size) {
    const nan = kinds.includes("nan") || signs.size === 2; // 8
    step.rules = [8];
    step.sum = { kind: nan ? "nan" : "infinity", sign: nan ? 0 : [...signs][0], significand: 0n, exponent: 0 };
    step.result = rounded(step.sum, d, "rn");
    return step;
  }
  step.exponent = Math.max(unit.floor, ...speaking); // 4
  step.quantum = step.exponent - unit.fraction_bits;
  let sum = 0n;
  for (const each of addends) {
    const shift = each.number.exponent - step.quantum;
    const { significand, sign } = each.number;
    const magnitude = shift >= 0 ? significand << BigInt(shift) : significand >> BigInt(-shift); // 5
    each.kept = finite(sign, magnitude, step.quantum);
    sum += sign ? -magnitude : magnitude; // 6
  }
  step.sum = fromInteger(sum, step.quantum);
  const code = rounded(step.sum, d, unit.rounding, { bits: unit.result_bits, toInfinity: true }); // 7
  step.result = code === d.sign_bit ? 0n : code; // 9
  return step;
}

// Rule 14: exactly, then rounded once.
function ieeeSum(operation, rules, addends, fmt, rounding, result = null) {
  const sum = addends.length === 1 ? addends[0].number : exactSum(addends[0].number, addends[1].number, rounding);
  return {
    operation, rules, addends, exponent: null, quantum: null, sum, format: fmt.name, bits: fmt.fraction_bits, rounding,
    result: result ?? rounded(sum, fmt, rounding),
  };
}

function f64Chain(formats, recipe, a, b, c) {
  const fmt = formats.f64;
  const quiet = 1n << BigInt(fmt.fraction_bits - 1);
  const rounding = recipe.unit.rounding;
  let result = c;
  return a.map((code, i) => {
    const operands = [code, b[i], result].map((each) => [each, unpack(fmt, each)]);
    const [x, y, r] = operands.map(([, number]) => number);
    const ranked = [operands[1], operands[2], operands[0]]; // 15: B's before r's before A's
    const nan = ranked.find(([, number]) => number.kind === "nan");
    const addends = [addend("product", exactProduct(x, y), null, [i]), addend(i ? "accumulator" : "C", r)];
    const exact = exactSum(addends[0].number, r, rounding);
    let made = null;
    if (nan) made = nan[0] | quiet;
    else if (exact.kind === "nan") made = fmt.sign_bit | fmt.inf_code | quiet;
    const step = ieeeSum("fma", [14, 15], addends, fmt, rounding, made);
    result = step.result;
    return step;
  });
}

function f32Chains(formats, recipe, a, b, c) {
  const { length, seed } = recipe.unit;
  const fmt = formats.f32;
  const d = formats[recipe.d];
  const products = a.map((code, i) => exactProduct(unpack(formats[recipe.a], code), unpack(formats[recipe.b], b[i])));
  let sum = unpack(formats[recipe.c], c);
  let source = "C";
  const steps = [];
  for (const step of stepsOf("ascending", length, a.length)) {
    let chain = finite();
    step.forEach((i, position) => { // 16
      const addends = [addend("product", products[i], null, [i])];
      if (position || seed !== "product") addends.push(addend("chain", chain));
      steps.push(ieeeSum("fma", [14, 16], addends, fmt, "rn"));
      chain = unpack(fmt, steps[steps.length - 1].result);
    });
    steps.push(ieeeSum("add", [14, 16], [addend(source, sum), addend("chain", chain, null, step)], fmt, "rn"));
    sum = unpack(fmt, steps[steps.length - 1].result);
    source = "accumulator";
  }
  if (d !== fmt) steps.push(ieeeSum("convert", [16], [addend("accumulator", sum)], d, "rn"));
  return steps;
}

function integers(formats, recipe, a, b, c) {
  const { name, operation, saturate } = recipe.unit;
  const d = formats[recipe.d];
  const ones = (x) => BigInt(x.toString(2).replaceAll("0", "").length);
  const terms = a.map((x, i) => {
    if (name === "Popcount") return ones(operation === "xor" ? x ^ b[i] : x & b[i]); // 18
    return integerValue(formats[recipe.a], x) * integerValue(formats[recipe.b], b[i]); // 17
  });
  const start = integerValue(formats[recipe.c], c);
  const sum = terms.reduce((so, term) => so + term, start);
  const clamped = sum < d.least ? d.least : sum > d.greatest ? d.greatest : sum;
  const addends = terms.map((term, i) => addend("product", fromInteger(term, 0), null, [i]));
  addends.push(addend("C", fromInteger(start, 0)));
  return [{
    operation: name === "Popcount" ? "popcount" : "integer", rules: [name === "Popcount" ? 18 : 17], addends,
    exponent: null, quantum: null, sum: fromInteger(sum, 0), format: d.name, bits: 0,
    rounding: saturate ? "clamp" : "wrap", result: (saturate ? clamped : sum) & d.mask,
  }];
}

const UNITS = {
  FusedDotAdd: fused, GroupedDotAdd: grouped, FmaChain: f64Chain, FloatChains: f32Chains, IntegerSum: integers,
  Popcount: integers,
};

// How far the bits of a number reach: weights of its first and last one; null of zero, NaN and infinity.
export function reach(number) {
  if (number.kind !== "finite" || !number.significand) return null;
  const low = number.significand.toString(2).replace(/0+$/, "").length;
  const high = number.exponent + bitLength(number.significand) - 1;
  return [high, high - low + 1];
}
