// Values typed in, and their sum on two targets beside each other.
import { computed, data, formats } from "./catalogue.js";
import { announce, copyButton, h, labelled, select } from "./dom.js";
import { explained } from "./explaining.js";
import { parting } from "./parting.js";
import { PRESETS, firstValues } from "./presets.js";
import { commandOf, pythonOf } from "./quoting.js";
import { state, update } from "./state.js";
import { stepView } from "./step_view.js";
import { ValueRefused, briefly, fieldsOf, hex, readList, written } from "./values.js";

const FIELDS = { a: "A's row", b: "B's column", c: "C", sa: "A's scales", sb: "B's scales" };

// Two targets that differ where an instruction has such, and else the first two.
export function targetsOf(record) {
  const first = record.targets[0];
  const recipeOf = (target) => computed(record, target).recipe;
  const other = record.targets.find((target) => recipeOf(target) !== recipeOf(first));
  return [first, other ?? record.targets[1] ?? first];
}

// What is typed, or what an instruction begins with.
export function typedValues(record) {
  const first = firstValues(record);
  return Object.fromEntries(Object.keys(FIELDS).map((name) => [name, state[name] || first[name]]));
}

export function readOperands(record, typed) {
  const read = {};
  const formatOf = { a: record.a, b: record.b, c: record.c, sa: record.stype, sb: record.stype };
  for (const [name, label] of Object.entries(FIELDS)) {
    const count = { c: 1, sa: record.blocks, sb: record.blocks }[name] ?? record.stored;
    try {
      read[name] = formatOf[name]
        ? readList(typed[name], formats[formatOf[name]], count)
        : { codes: [], rounded: 0 };
    } catch (error) {
      if (!(error instanceof ValueRefused)) throw error;
      error.field = name;
      error.label = label;
      throw error;
    }
  }
  const codes = Object.fromEntries(Object.entries(read).map(([name, { codes }]) => [name, codes]));
  const rounded = Object.fromEntries(Object.entries(read).map(([name, { rounded }]) => [name, rounded]));
  return { a: codes.a, b: codes.b, c: codes.c[0], scaleA: codes.sa, scaleB: codes.sb, rounded };
}

export function sumView(record) {
  const typed = typedValues(record);
  const [first, second] = targetsOf(record);
  const chosen = [state.t1, state.t2].map((target, i) =>
    record.targets.includes(target) ? target : [first, second][i],
  );
  const results = h("div", { class: "sum-results" });
  const presets = presetButtons();
  const says = h("p", { class: "note says" });
  const compute = () => {
    fill(results, record, typed, chosen);
    for (const [i, preset] of PRESETS.entries()) presets.children[i].setAttribute("aria-pressed", isChosen(preset));
    says.textContent = PRESETS.find(isChosen)?.says ?? "";
  };
  const inputs = inputFields(record, typed, (name, value) => {
    typed[name] = value;
    update({ [name]: value });
    compute();
  });
  const pickers = ["One target", "Another"].map((label, i) =>
    select(
      label,
      record.targets.map((target) => [target, `${target} (${data.targets[target]})`]),
      chosen[i],
      (target) => {
        chosen[i] = target;
        update({ [`t${i + 1}`]: target });
        compute();
      },
    ),
  );
  compute();
  return h(
    "div",
    { class: "sums" },
    presets,
    says,
    h("div", { class: "sum-inputs" }, h("div", { class: "targets-pair" }, pickers), inputs),
    results,
  );
}

const isChosen = (preset) => ["i", "a", "b", "c", "t1", "t2"].every((name) => state[name] === preset[name]);

function presetButtons() {
  const choose = ({ name, says, ...values }) => {
    update({ sa: "", sb: "", ...values, view: "sums" }, { anew: true });
    announce(`${name}. ${says}`);
  };
  return h(
    "div",
    { class: "presets", role: "group", "aria-label": "Examples" },
    PRESETS.map((preset, i) =>
      h(
        "button",
        { type: "button", class: "preset", id: `preset-${i}`, title: preset.says, onclick: () => choose(preset) },
        preset.name,
      ),
    ),
  );
}

function inputFields(record, typed, changed) {
  const notes = {
    a: `${record.stored} values of ${record.a}${record.sparse ? ", the stored ones" : ""}`,
    b: `${record.stored} values of ${record.b}${record.sparse ? ", those that A's stored values meet" : ""}`,
    c: `one value of ${record.c}`,
    sa: `${record.blocks} of ${record.stype}`,
    sb: `${record.blocks} of ${record.stype}`,
  };
  const names = Object.keys(FIELDS).filter((name) => record.blocks || !name.startsWith("s"));
  return names.map((name) =>
    labelled(
      FIELDS[name],
      h("input", {
        type: "text",
        id: `values-${name}`,
        value: typed[name],
        spellcheck: "false",
        autocomplete: "off",
        autocapitalize: "off",
        "aria-describedby": "sum-problem",
        oninput: (event) => changed(name, event.target.value),
      }),
      { hint: notes[name] },
    ),
  );
}

function fill(results, record, typed, targets) {
  let operands;
  for (const name of Object.keys(FIELDS))
    document.getElementById(`values-${name}`)?.removeAttribute("aria-invalid");
  try {
    operands = readOperands(record, typed);
  } catch (error) {
    if (!(error instanceof ValueRefused)) throw error;
    document.getElementById(`values-${error.field}`)?.setAttribute("aria-invalid", "true");
    results.replaceChildren(
      h("p", { class: "problem", id: "sum-problem", role: "alert" }, `${error.label}: ${error.message}`),
    );
    return;
  }
  const sums = targets.map((target) => explained(record, target, operands));
  const where = parting(...sums);
  const rounded = Object.entries(operands.rounded).filter(([, count]) => count);
  results.replaceChildren(
    rounded.length
      ? h(
          "p",
          { class: "note" },
          `Rounded to their format: ${rounded.map(([name, n]) => `${n} of ${FIELDS[name]}`).join(", ")}.`,
        )
      : "",
    verdict(sums, where),
    h(
      "div",
      { class: "pair" },
      sums.map((sum, i) => panel(sum, sums[1 - i], where)),
    ),
    h(
      "div",
      { class: "quotes" },
      copyButton("Copy as Python", () => pythonOf(record, operands, targets)),
      copyButton("Copy as command", () => commandOf(record, typed, targets)),
    ),
  );
}

// One sentence: do they differ, and where first.
function verdict(sums, where) {
  const [one, other] = sums;
  const equal = one.code === other.code;
  const text = equal
    ? `Both give ${hex(one.code, one.format)}.`
    : `${one.target} gives ${written(one.number)}, ${other.target} ${written(other.number)}.`;
  const why = where && ` They first differ in step ${where.step + 1}: ${where.reason}.`;
  return h("p", { class: equal ? "verdict" : "verdict differs", id: "verdict" }, h("strong", {}, text), why);
}

function panel(sum, other, where) {
  const { evidence, target, steps } = sum;
  const exact = sum.exact && written(sum.exact);
  return h(
    "article",
    { class: "panel", "data-target": target, "data-code": hex(sum.code, sum.format) },
    h("h2", {}, target, h("span", { class: "generation" }, data.targets[target]), evidenceBadge(evidence)),
    h(
      "dl",
      { class: "outcome" },
      h("dt", {}, "result"),
      h("dd", {}, h("span", { class: "big" }, written(sum.number)), h("code", {}, hex(sum.code, sum.format))),
      h("dt", {}, "bits"),
      h("dd", {}, resultBits(sum, other)),
      exact && [h("dt", {}, "exact"), h("dd", {}, exact, errorText(sum))],
    ),
    h("details", { class: "evidence" }, h("summary", {}, "How this is known"), h("p", {}, evidence.text)),
    steps.map((step, i) =>
      stepView(step, i, steps.length, { target, parts: where?.step === i, beside: other.steps[i] ?? null }),
    ),
  );
}

function errorText(sum) {
  if (!sum.error) return "";
  if (!sum.error.significand) return h("span", { class: "error-free" }, "no error");
  const size = Math.abs(sum.ulps ?? Infinity);
  // Units of the last place of a result that has lost all of its places say nothing.
  const ulps = size < 1e6 ? ` (${Number(size.toPrecision(size < 1000 ? 4 : 6))} ulp)` : "";
  const sign = sum.error.sign ? "" : "+";
  return h("span", { class: "error" }, `error ${sign}${briefly(sum.error)}${ulps}`);
}

export function evidenceBadge(evidence) {
  return h("span", { class: `badge ${evidence.kind}`, title: evidence.text }, evidence.kind);
}

// A result's bits by field; those that differ from the other's are marked.
function resultBits(sum, other) {
  const theirs =
    other.format === sum.format
      ? fieldsOf(other.code, other.format)
          .map(([, text]) => text)
          .join("")
      : "";
  let at = 0;
  return h(
    "span",
    { class: "result-bits" },
    fieldsOf(sum.code, sum.format).map(([name, text]) =>
      h(
        "span",
        { class: `bit-field ${name}`, title: name },
        [...text].map((bit) => {
          const differs = theirs && theirs[at] !== bit;
          at += 1;
          return differs ? h("b", {}, bit) : bit;
        }),
      ),
    ),
  );
}
