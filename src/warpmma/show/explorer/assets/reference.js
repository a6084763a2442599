// How one element of D comes about: a transcription of `warpmma.arithmetic.exact.reference`, rule by rule, that keeps every
// step. Numbers in comments are those of its rules. Tests hold it against the original, bit for bit.
//
// A step is {operation, rules, addends, exponent, quantum, sum, format, bits, rounding, result}, an addend {source,
// products, number, nominal, kept}: the fields of `warpmma.arithmetic.SumStep` and `Addend`.
import {
  bitLength,
  exactProduct,
  exactSum,
  finite,
  fromInteger,
  integerValue,
  rounded,
  unpack,
} from "./numbers.js";

// Steps of a dot product; the result is that of the last. `formats` has formats by name, codes are BigInt.
export function sumSteps(formats, recipe, a, b, c, scaleA = [], scaleB = []) {
  return UNITS[recipe.unit.name](formats, recipe, a, b, c, scaleA, scaleB);
}

// Which products each step of a fused dot-add takes (1).
export function stepsOf(order, products, k) {
  const all = Array.from({ length: k }, (_, i) => i);
  const runs =
    order === "halves"
      ? [
          [0, 1],
          [2, 3],
        ].map((half) => all.filter((i) => half.includes(i % 4)))
      : [all];
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

// An addend of which nothing is taken.
const addend = (source, number, products = [], nominal = null) => ({
  source,
  products,
  number,
  nominal,
  kept: number,
});

// What will be an addend once E is known; `heard` says whether its nominal exponent has a say in E.
const term = (source, products, number, nominal, heard) => ({ source, products, number, nominal, heard });

function fused(formats, recipe, a, b, c, scaleA, scaleB) {
  const unit = recipe.unit;
  const after = recipe.accumulate === "after";
  const d = formats[recipe.d];
  const scales = scalesOf(formats, recipe, a.length, scaleA, scaleB);
  const inner = [recipe.a, recipe.b].map((name) => formats[recipe.convert ?? name]);
  const [rowA, rowB] = [
    [recipe.a, a],
    [recipe.b, b],
  ].map(([name, codes], side) =>
    codes.map((code) => {
      const number = unpack(formats[name], code);
      return recipe.convert ? unpack(inner[side], rounded(number, inner[side], "rn")) : number; // 10
    }),
  );
  const fraction = inner[0].fraction_bits + inner[1].fraction_bits;
  const around = [...(recipe.convert ? [10] : []), ...(after ? [11] : []), ...(recipe.scale ? [12] : [])];
  let source = after ? "accumulator" : "C";
  let format = after ? d : formats[recipe.c];
  let accumulator = after ? 0n : c;
  const steps = stepsOf(recipe.order, unit.products, a.length).map((step) => {
    // 1
    const terms = step.map((i) => {
      const product = exactProduct(rowA[i], rowB[i]); // 2
      const [scale, nominal] = scales[i];
      const scaled = recipe.scale ? exactProduct(product, scale) : product; // 12
      return term("product", [i], scaled, product.exponent + fraction + nominal, scaled.significand > 0n);
    });
    terms.push(accumulated(source, accumulator, format));
    const made = alignedStep("fused", [1, 2, 3, 4, 5, 6, 7], around, unit, terms, d);
    [source, accumulator, format] = ["accumulator", made.result, d];
    return made;
  });
  if (!after) return steps;
  const last = [addend("C", unpack(formats[recipe.c], c)), addend("accumulator", unpack(d, accumulator))];
  return [...steps, roundedStep("add", [11, 14], last, d)];
}

function grouped(formats, recipe, a, b, c, scaleA, scaleB) {
  const unit = recipe.unit;
  const scales = scalesOf(formats, recipe, a.length, scaleA, scaleB);
  const products = a.map((code, i) =>
    exactProduct(unpack(formats[recipe.a], code), unpack(formats[recipe.b], b[i])),
  );
  const terms = [];
  for (let first = 0; first < a.length; first += unit.group) {
    const members = products.slice(first, first + unit.group);
    const [scale, nominal] = scales[first];
    const sum = members.reduce((so, product) => exactSum(so, product), finite());
    // 13: a group that cancels is zero and still has its say.
    const zeros = members.every((product) => !product.significand);
    const silent = zeros || (scale.kind === "finite" && !scale.significand);
    const which = members.map((_, i) => first + i);
    terms.push(term("group", which, exactProduct(sum, scale), nominal, !silent));
  }
  terms.push(accumulated("C", c, formats[recipe.c]));
  return [alignedStep("grouped", [3, 4, 5, 6, 7], [13], unit, terms, formats[recipe.d])];
}

// Rule 3: the accumulator as one more addend.
function accumulated(source, code, fmt) {
  const number = unpack(fmt, code);
  return term(source, [], number, number.exponent + fmt.fraction_bits, number.significand > 0n);
}

// Rules 4 to 9.
function alignedStep(operation, rules, around, unit, terms, d) {
  const common = { operation, format: d.name, bits: unit.result_bits, rounding: unit.rounding };
  const nan = terms.some(({ number }) => number.kind === "nan");
  const signs = new Set(terms.filter(({ number }) => number.kind === "infinity").map(({ number }) => number.sign));
  if (nan || signs.size) {
    const invalid = nan || signs.size === 2; // 8
    const sum = {
      kind: invalid ? "nan" : "infinity",
      sign: invalid ? 0 : [...signs][0],
      significand: 0n,
      exponent: 0,
    };
    const addends = terms.map((each) => addend(each.source, each.number, each.products, each.nominal));
    const before = rules.slice(0, rules.indexOf(4));
    const result = rounded(sum, d, "rn");
    return { ...common, rules: [...before, 8, ...around], addends, exponent: null, quantum: null, sum, result };
  }
  const exponent = Math.max(unit.floor, ...terms.filter((each) => each.heard).map((each) => each.nominal)); // 4
  const quantum = exponent - unit.fraction_bits;
  let total = 0n;
  const addends = terms.map(({ source, products, number, nominal }) => {
    const shift = number.exponent - quantum;
    const magnitude = shift >= 0 ? number.significand << BigInt(shift) : number.significand >> BigInt(-shift); // 5
    total += number.sign ? -magnitude : magnitude; // 6
    return {
      source,
      products,
      number,
      nominal,
      kept: shift >= 0 ? number : finite(number.sign, magnitude, quantum),
    };
  });
  const sum = fromInteger(total, quantum);
  const code = rounded(sum, d, unit.rounding, { bits: unit.result_bits, toInfinity: true }); // 7
  const zero = code === 0n || code === d.sign_bit; // 9
  return {
    ...common,
    rules: [...rules, ...(zero ? [9] : []), ...around],
    addends,
    exponent,
    quantum,
    sum,
    result: zero ? 0n : code,
  };
}

// Rule 14: one or two addends, added exactly and rounded once.
function roundedStep(operation, rules, addends, fmt, rounding = "rn") {
  const sum = addends.length === 1 ? addends[0].number : exactSum(addends[0].number, addends[1].number, rounding);
  return {
    operation,
    rules,
    addends,
    exponent: null,
    quantum: null,
    sum,
    format: fmt.name,
    bits: fmt.fraction_bits,
    rounding,
    result: rounded(sum, fmt, rounding),
  };
}

function f64Chain(formats, recipe, a, b, c) {
  const fmt = formats.f64;
  const quiet = 1n << BigInt(fmt.fraction_bits - 1);
  let result = c;
  return a.map((code, i) => {
    const operands = [code, b[i], result].map((each) => [each, unpack(fmt, each)]);
    const [x, y, r] = operands.map(([, number]) => number);
    const ranked = [operands[1], operands[2], operands[0]]; // 15: B's before r's before A's
    const nan = ranked.find(([, number]) => number.kind === "nan");
    const addends = [addend("product", exactProduct(x, y), [i]), addend(i ? "accumulator" : "C", r)];
    const step = roundedStep("fma", [14, 15], addends, fmt, recipe.unit.rounding);
    if (step.sum.kind === "nan") step.result = nan ? nan[0] | quiet : fmt.sign_bit | fmt.inf_code | quiet;
    result = step.result;
    return step;
  });
}

function f32Chains(formats, recipe, a, b, c) {
  const { length, seed } = recipe.unit;
  const fmt = formats.f32;
  const d = formats[recipe.d];
  const products = a.map((code, i) =>
    exactProduct(unpack(formats[recipe.a], code), unpack(formats[recipe.b], b[i])),
  );
  const steps = [];
  const taken = (step) => {
    steps.push(step);
    return unpack(fmt, step.result);
  };
  let [source, sum] = ["C", unpack(formats[recipe.c], c)];
  for (const step of stepsOf("ascending", length, a.length)) {
    // 16
    let chain = finite();
    step.forEach((i, position) => {
      const product = addend("product", products[i], [i]);
      const first = position === 0 && seed === "product";
      const operands = first ? [product] : [product, addend("chain", chain, step.slice(0, position))];
      chain = taken(roundedStep(first ? "multiply" : "fma", [14, 16], operands, fmt));
    });
    sum = taken(roundedStep("add", [14, 16], [addend(source, sum), addend("chain", chain, step)], fmt));
    source = "accumulator";
  }
  if (d !== fmt) steps.push(roundedStep("convert", [14, 16], [addend(source, sum)], d));
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
  const sum = terms.reduce((so, each) => so + each, start);
  const clamped = sum < d.least ? d.least : sum > d.greatest ? d.greatest : sum;
  const addends = terms.map((each, i) => addend("product", fromInteger(each, 0), [i]));
  addends.push(addend("C", fromInteger(start, 0)));
  return [
    {
      operation: name === "Popcount" ? "popcount" : "integer",
      rules: [name === "Popcount" ? 18 : 17],
      addends,
      exponent: null,
      quantum: null,
      sum: fromInteger(sum, 0),
      format: d.name,
      bits: 0,
      rounding: saturate ? "clamp" : "wrap",
      result: (saturate ? clamped : sum) & d.mask,
    },
  ];
}

const UNITS = {
  FusedDotAdd: fused,
  GroupedDotAdd: grouped,
  FmaChain: f64Chain,
  FloatChains: f32Chains,
  IntegerSum: integers,
  Popcount: integers,
};

// How far the bits of a number reach: weights of its first and last one; null of zero, NaN and infinity.
export function reach(number) {
  if (number.kind !== "finite" || !number.significand) return null;
  const low = number.significand.toString(2).replace(/0+$/, "").length;
  const high = number.exponent + bitLength(number.significand) - 1;
  return [high, high - low + 1];
}
