// A word of metadata or of scales, typed in and decoded: as `warpmma.sparsity` and `warpmma.scaling` have it.
import { formats } from "./catalogue.js";
import { h, labelled } from "./dom.js";
import { elementOf } from "./layouts.js";
import { unpack } from "./numbers.js";
import { state, update } from "./state.js";
import { written } from "./values.js";

const FIRST = { metadata: "0x4e4e4e4e", ue8m0: "0x807f7e00", ue4m3: "0x38403000" };

// Columns within a group at which a nibble's stored elements stand.
export function columnsKept(group, nibble) {
  const kept = group / 2;
  const unit = Math.max(1, group / 4);
  return Array.from({ length: kept }, (_, stored) => {
    const index = (nibble >> (2 * Math.floor((2 * stored) / kept))) & 3;
    return (index * group) / 4 + (stored % unit);
  }).map(Math.floor);
}

// What a lane's word of metadata says: of every nibble its row, group, selector, indices and the columns that it keeps.
export function decodedMetadata(record, lane, word) {
  return Array.from({ length: record.metadata.elements }, (_, index) => {
    const { row, column, matrix } = elementOf(record.metadata, lane, index);
    const nibble = (word >>> (4 * index)) & 15;
    const columns = columnsKept(record.group, nibble).map((x) => column * record.group + x);
    return {
      index,
      nibble,
      row,
      group: column,
      selector: matrix,
      indices: [nibble & 3, nibble >> 2],
      columns,
      legal: record.legal.includes(nibble),
    };
  });
}

export function wordView(record, operand, cell) {
  if (operand.id !== "metadata" && !operand.ids) return null;
  const first = FIRST[operand.id] ?? FIRST[record.stype];
  const table = h("div", { class: "word-table", "aria-live": "polite" });
  const show = (text) => {
    const word = /^\s*(?:0x)?([0-9a-f]{1,8})\s*$/i.exec(text);
    if (!word)
      table.replaceChildren(h("p", { class: "problem" }, "Up to eight hexadecimal digits, such as 0x4e4e4e4e."));
    else
      table.replaceChildren(
        (operand.ids ? scaleTable : metadataTable)(record, operand, cell, Number.parseInt(word[1], 16)),
      );
  };
  const input = h("input", {
    type: "text",
    id: "word",
    value: state.word || first,
    spellcheck: "false",
    autocomplete: "off",
    oninput: (event) => {
      update({ word: event.target.value });
      show(event.target.value);
    },
  });
  show(state.word || first);
  const name = operand.ids ? "Word of scales" : "Word of metadata";
  return h("section", { class: "word" }, labelled(`${name} in lane ${cell.lane}`, input), table);
}

const tableOf = (heads, rows) =>
  h(
    "table",
    { class: "words" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        heads.map((name) => h("th", { scope: "col" }, name)),
      ),
    ),
    h("tbody", {}, rows),
  );

function metadataTable(record, operand, cell, word) {
  const rows = decodedMetadata(record, cell.lane, word).map((each) => {
    const used = each.selector === operand.selected();
    const text = each.legal ? `(${each.indices.join(", ")})` : `(${each.indices.join(", ")}): not legal`;
    return h(
      "tr",
      { class: [used ? "used" : "unused", each.index === cell.index ? "here" : ""].join(" ") },
      h("th", { scope: "row" }, `${each.index}: ${each.nibble.toString(16).toUpperCase()}`),
      h("td", {}, used ? `${each.row}, ${each.group}` : `selector ${each.selector}`),
      h("td", {}, text),
      h("td", {}, used && keptView(record, each)),
    );
  });
  return tableOf(["nibble", "row, group", "(i0, i1)", "columns kept"], rows);
}

// A group's columns as boxes, the kept ones filled; and their numbers.
function keptView(record, { columns, group }) {
  const first = group * record.group;
  return [
    h(
      "span",
      { class: "places", "aria-hidden": true },
      Array.from({ length: record.group }, (_, i) =>
        h("i", { class: columns.includes(first + i) ? "stored" : null }),
      ),
    ),
    columns.join(", "),
  ];
}

function scaleTable(record, operand, cell, word) {
  const fmt = formats[record.stype];
  const rows = [0, 1, 2, 3].map((index) => {
    const byte = (word >>> (8 * index)) & 255;
    const { row, column, matrix } = elementOf(operand.layout, cell.lane, index);
    const used = matrix === operand.selected();
    return h(
      "tr",
      { class: [used ? "used" : "unused", index === cell.index ? "here" : ""].join(" ") },
      h("th", { scope: "row" }, `${index}: ${byte.toString(16).padStart(2, "0").toUpperCase()}`),
      h("td", {}, written(unpack(fmt, BigInt(byte) & fmt.mask))),
      h(
        "td",
        {},
        used
          ? `${operand.row} ${row}, block ${column}`
          : `byte-id ${operand.ids[matrix][0]}, thread-id ${operand.ids[matrix][1]}`,
      ),
    );
  });
  return tableOf(["byte", record.stype, "scale of"], rows);
}
