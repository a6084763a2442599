// One element in words, bits and formulas; and all that its lane holds.
import { elementName, sentence, shortName } from "./cells.js";
import { copyButton, h } from "./dom.js";
import { held, locate } from "./layouts.js";
import { wordView } from "./words.js";

// `choose` takes an element, `look` a register that is pointed at, `rest` ends that.
export function detailsOf(record, operand, cell, operands, { choose, look, rest }) {
  const what = operand.layout.lanes > 32 ? "Thread" : "Lane";
  return [
    h("h2", { class: "sentence", id: "sentence" }, sentence(operand, cell)),
    addressOf(operand, cell, operands),
    registerStrip(operand, cell, choose),
    wordView(record, operand, cell),
    formulaList(operand, cell),
    h("h3", {}, `${what} ${cell.lane} holds`),
    laneStepper(operand, cell, choose, what),
    operands.map((each) => heldBy(each, cell, operand, { choose, look, rest })),
    h(
      "div",
      { class: "quotes" },
      copyButton("Copy as Python", () => pythonOfPlace(record, operand, cell)),
      copyButton("Copy as command", () => commandOfPlace(record, operand, cell)),
    ),
  ];
}

// Which lane points to an element's row, where elements are in rows of memory.
function addressOf(operand, cell, operands) {
  const addresses = operands.find(({ id }) => id === "address");
  if (!addresses || operand === addresses) return null;
  const { lane } = locate(addresses.layout, cell.row, 0, cell.matrix);
  return h("p", { class: "note", id: "row-address" }, `Row ${cell.row} is at the address of lane ${lane}.`);
}

export function pythonOfPlace(record, operand, cell) {
  const { row, column, matrix, lane, register, low, high } = cell;
  const more = Object.entries(operand.selecting(matrix)).map(
    ([name, value]) => `, ${name.replace(/_[ab]$/, "_id")}=${value}`,
  );
  if (operand.target) more.push(`, target="${operand.target}"`);
  return (
    `import warpmma as wm\n\ni = "${record.name}"\n` +
    `cell = wm.lookup.where(i, "${operand.id}", ${row}, ${column}${more.join("")})\n` +
    `assert (cell.lane, cell.register, cell.low, cell.high) == (${lane}, ${register}, ${low}, ${high})\n`
  );
}

export function commandOfPlace(record, operand, cell) {
  const more = Object.entries(operand.selecting(cell.matrix)).map(
    ([name, value]) => ` --${name.replace(/_[ab]$/, "-id")} ${value}`,
  );
  if (operand.target) more.push(` --target ${operand.target}`);
  return `warpmma where ${record.name} ${operand.id} ${cell.row} ${cell.column}${more.join("")}`;
}

// The register's bits from the highest to the lowest, a box for each element.
function registerStrip(operand, cell, choose) {
  const { layout } = operand;
  const cells = held(layout, cell.lane)[cell.register].cells.slice().reverse();
  return h(
    "figure",
    { class: "strip" },
    h("figcaption", {}, `Register ${cell.register} of ${layout.lanes > 32 ? "thread" : "lane"} ${cell.lane}`),
    h(
      "div",
      { class: cells.length > 8 ? "slots many" : "slots" },
      cells.map((each) =>
        h(
          "button",
          {
            type: "button",
            class: "slot",
            id: `slot-${each.index}`,
            "aria-pressed": each.index === cell.index,
            title: sentence(operand, { ...each, lane: cell.lane }),
            "aria-label": cells.length > 8 && sentence(operand, { ...each, lane: cell.lane }),
            onclick: () => choose(operand, each.row, each.column, each.matrix),
          },
          cells.length <= 8 &&
            h(
              "span",
              {},
              cells.length > 4 || operand.id.length > 1 ? `${each.row},${each.column}` : elementName(operand, each),
            ),
          cells.length <= 4 && h("small", {}, `${each.high}\u2026${each.low}`),
        ),
      ),
    ),
    layout.bits !== layout.slot &&
      h("p", { class: "note" }, `Of every ${layout.slot} bits ${layout.bits} carry the element.`),
  );
}

// PTX's formulas, with the numbers of this element.
function formulaList(operand, cell) {
  const known = {
    groupID: (cell.lane % 32) >> 2,
    threadID_in_group: cell.lane & 3,
    laneid: cell.lane % 32,
    warpid: cell.lane >> 5,
    i: cell.index,
    row: cell.row,
    col: cell.column,
    matrix: cell.matrix,
  };
  const { formulas } = operand.layout;
  const line = (name) =>
    formulas[name] &&
    h(
      "li",
      {},
      h("code", {}, `${name} = ${formulas[name]}`.replaceAll("matrix", operand.variant)),
      h("span", {}, ` = ${known[name]}`),
    );
  const given = ["groupID", "threadID_in_group", "i"].map((name) => `${name} = ${known[name]}`).join(", ");
  return h(
    "details",
    { class: "formulas", open: true },
    h("summary", {}, "Formulas"),
    h("p", {}, `${operand.short}i, with ${given}:`),
    h("ul", {}, line("matrix"), line("row"), line("col")),
    h("p", {}, "and back:"),
    h("ul", {}, line("warpid"), line("laneid"), line("i")),
  );
}

function laneStepper(operand, cell, choose, what) {
  const most = (operand.lanes ?? operand.layout.lanes) - 1;
  const go = (lane) => {
    const registers = held(operand.layout, Math.min(most, Math.max(0, lane)));
    const same = registers[cell.register].cells.find((each) => each.index === cell.index);
    choose(operand, same.row, same.column, same.matrix);
  };
  return h(
    "label",
    { class: "field lane-field" },
    h("span", { class: "field-name" }, what),
    h("input", {
      type: "number",
      min: 0,
      max: most,
      value: cell.lane,
      id: "lane",
      onchange: (event) => go(Number.parseInt(event.target.value, 10) || 0),
    }),
  );
}

// Registers of a lane as buttons, each with the elements that it holds.
function heldBy(operand, cell, chosen, { choose, look, rest }) {
  if (cell.lane >= (operand.lanes ?? Infinity)) return null; // its address does not count
  const registers = held(operand.layout, cell.lane % operand.layout.lanes);
  return h(
    "div",
    { class: "held" },
    h("h4", {}, operand.title),
    h(
      "div",
      { class: "chips" },
      registers.map(({ register, cells }) =>
        h(
          "button",
          {
            type: "button",
            class: "chip",
            id: `chip-${operand.id}-${register}`,
            "aria-pressed": operand.id === chosen.id && register === cell.register,
            onclick: () => choose(operand, cells[0].row, cells[0].column, cells[0].matrix),
            onpointerenter: () => look(operand.id, cell.lane, register),
            onpointerleave: rest,
          },
          h(
            "b",
            {},
            cells.length > 1
              ? `${shortName(operand, cells[0])}\u2013${cells[cells.length - 1].index}`
              : shortName(operand, cells[0]),
          ),
          ` ${operand.id}[${spanOf(cells, "row")}, ${spanOf(cells, "column")}]`,
          operand.counted > 1 && operand.named(cells[0].matrix),
        ),
      ),
    ),
  );
}

function spanOf(cells, name) {
  const values = cells.map((cell) => cell[name]);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low === high ? `${low}` : `${low}\u2013${high}`;
}
