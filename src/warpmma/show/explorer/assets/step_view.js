// A step of a sum, drawn: every addend's bits under one another, what was cut in another colour.
import { h } from "./dom.js";
import { ROUNDINGS, WORDS, ranges } from "./explaining.js";
import { formats } from "./catalogue.js";
import { bitLength, unpack } from "./numbers.js";
import { reach } from "./reference.js";
import { hex, power, written } from "./values.js";

const WIDEST = 120; // columns of bits
const BELOW = 26; // columns below the last one that is kept: what is smaller is only mentioned

// `beside` is the step of the other target that stands beside it: both are drawn in the same columns; `parts` says
// whether the targets part here.
export function stepView(step, number, count, { target, parts = false, beside = null }) {
  // A group that cancels has a say in E, so it is shown.
  const silent = (each) => each.number.kind === "finite" && !each.number.significand && each.source !== "group";
  const zero = step.addends.filter(silent);
  const shown = step.addends.filter((each) => !zero.includes(each));
  const frame = widest(columnsOf(step), beside && columnsOf(beside));
  const title = count === 1 ? WORDS[step.operation] : `Step ${number + 1} of ${count}: ${WORDS[step.operation]}`;
  return h(
    "section",
    { class: parts ? "step parts" : "step" },
    h("h3", {}, capital(title), parts && h("span", { class: "badge part-badge" }, "they part here")),
    h("p", { class: "step-said" }, saidOf(step)),
    h(
      "div",
      {
        class: "bits-scroll",
        tabindex: "0",
        role: "region",
        "aria-label": `Bits of step ${number + 1} on ${target}`,
      },
      h(
        "table",
        { class: "bits" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["addend", "value", "bits"].map((name) => h("th", { scope: "col" }, name)),
          ),
        ),
        h(
          "tbody",
          {},
          shown.map((each) => addendRow(each, step, frame)),
          sumRows(step, frame),
        ),
      ),
    ),
    zero.length > 0 && h("p", { class: "zeros" }, `Zero: ${namesOf(zero)}.`),
  );
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);

function namesOf(addends) {
  const products = addends
    .flatMap((each) => (each.source === "product" ? each.products : []))
    .sort((x, y) => x - y);
  const others = addends.filter((each) => each.source !== "product").map(nameOf);
  return [...(products.length ? [`products ${ranges(products)}`] : []), ...others].join(", ");
}

function nameOf(each) {
  if (each.source === "product") return `k = ${each.products[0]}`;
  if (each.source === "group") return `k = ${ranges(each.products)}`;
  return { C: "C", accumulator: "sum so far", chain: "chain" }[each.source];
}

function saidOf(step) {
  const rules = `${step.rules.length > 1 ? "rules" : "rule"} ${step.rules.join(", ")}`;
  const rounding = `${ROUNDINGS[step.rounding]}${step.bits ? `, to ${step.bits} fraction bits` : ""}`;
  if (step.exponent === null) return `${capital(rounding)} (${rules}).`;
  const kept = `The largest nominal exponent is E = ${step.exponent}; bits below ${power(step.quantum)} are cut`;
  return `${kept}. Then the sum is ${rounding} (${rules}).`;
}

// From which weight to which the columns of bits go; null where nothing is finite.
function columnsOf(step) {
  const reached = [...step.addends.map((each) => each.number), step.sum, resultOf(step)].map(reach).filter(Boolean);
  if (!reached.length) return null;
  let high = Math.max(...reached.map(([top]) => top), step.exponent ?? -Infinity);
  const last = unitOf(step);
  let low = Math.min(...reached.map(([, bottom]) => bottom), step.quantum ?? Infinity);
  const kept = Math.min(step.quantum ?? Infinity, last);
  if (Number.isFinite(kept)) low = Math.max(low, Math.min(kept, high - 1) - BELOW);
  low = Math.max(low, high - WIDEST);
  if (step.operation === "integer" || step.operation === "popcount") [high, low] = [Math.max(high, 7), 0];
  return { high, low };
}

function widest(one, other) {
  if (!one || !other) return one;
  const high = Math.max(one.high, other.high);
  return { high, low: Math.max(Math.min(one.low, other.low), high - WIDEST) };
}

function resultOf(step) {
  return unpack(formats[step.format], step.result);
}

// Weight of the last place that the result has.
function unitOf(step) {
  if (step.sum.kind !== "finite" || !step.bits) return step.bits ? Infinity : 0;
  const fmt = formats[step.format];
  const high = step.sum.significand ? step.sum.exponent + bitLength(step.sum.significand) - 1 : fmt.emin;
  return Math.max(high, fmt.emin) - step.bits;
}

function addendRow(each, step, frame) {
  const lost = each.number.kind === "finite" && step.quantum !== null;
  const cut = lost && each.number.significand !== 0n && reach(each.number)[1] < step.quantum;
  return h(
    "tr",
    { class: cut ? "is-cut" : null },
    h("th", { scope: "row" }, nameOf(each)),
    valueCell(each.number),
    h("td", { class: "digits" }, digits(each.number, frame, step.quantum ?? -Infinity)),
  );
}

const valueCell = (number) => h("td", { class: "value" }, h("span", { title: written(number) }, written(number)));

function sumRows(step, frame) {
  const fmt = formats[step.format];
  const row = (kind, name, number, edge, code = null) =>
    h(
      "tr",
      { class: kind },
      h("th", { scope: "row" }, name),
      valueCell(number),
      h("td", { class: "digits" }, digits(number, frame, edge), code && h("code", {}, code)),
    );
  const result = resultOf(step);
  return [
    row("sum-row", "sum", step.sum, step.bits ? unitOf(step) : -Infinity),
    row("result-row", "result", result, -Infinity, hex(step.result, fmt)),
  ];
}

// A number's digits in the columns of a step: kept ones, then those below the edge.
function digits(number, frame, edge) {
  if (!frame || number.kind !== "finite")
    return number.kind === "finite" ? "" : h("span", { class: "special" }, written(number));
  const { high, low } = frame;
  const runs = [];
  const top = number.significand ? number.exponent + bitLength(number.significand) - 1 : null;
  const bottom = number.significand ? reach(number)[1] : null;
  for (let weight = high; weight >= low; weight -= 1) {
    const inside = top !== null && weight <= top && weight >= bottom;
    const bit =
      inside && (number.significand >> BigInt(weight - number.exponent)) & 1n ? "1" : inside ? "0" : "\u00b7";
    const kind = !inside ? "rest" : weight < edge ? "cut" : "kept";
    const last = runs[runs.length - 1];
    // The edge stands in every row, also where a number has no bits.
    const begins = weight === edge - 1;
    if (last && last.kind === kind && !begins) last.text += bit;
    else runs.push({ kind, text: bit, begins });
    if (weight === 0 && low < 0) runs.push({ kind: "point", text: "." });
  }
  const below = bottom !== null && bottom < low;
  const sign = number.sign ? "\u2212" : "+";
  return [
    h("span", { class: "sign" }, number.significand ? sign : " "),
    runs.map((run) => h("span", { class: run.begins ? `${run.kind} edge` : run.kind }, run.text)),
    below && h("span", { class: edge > low ? "cut" : "rest", title: `down to ${power(bottom)}` }, " \u2026"),
  ];
}
