// Elements of operands, their places, and how these are said. Metadata and scales are operands too: their elements are
// nibbles and bytes, and selectors tell which of several matrices of them is meant.
import { elementOf, locate, matricesOf } from "./layouts.js";
import { state } from "./state.js";

// What an instruction's grids are:
//   id, title; layout, type; variant: what its matrices are called;
//   counted: how many of its matrices are read or written, lanes: of which lanes, if not of all;
//   target: whose layout it is, where targets differ;
//   short, long: what its elements are called, in cells and in sentences; row, column: what these are;
//   selected(): the matrix that is chosen; selecting(matrix): what to change in the state to choose it;
//   named(matrix): a text.
export function operandsOf(record) {
  if (record.held) return record.held.map(heldOperand);
  const { A, B, C, D } = record.fragments;
  const same = C === D && record.c === record.d;
  return [
    fragment("A", A, record.a, record.sparse ? "A, stored" : "A"),
    record.metadata && metadataOf(record),
    fragment("B", B, record.b, "B"),
    fragment("C", C, record.c, same ? "C and D" : "C"),
    fragment("D", same ? null : D, record.d, "D"),
    ...["a", "b"].map((side, i) => record.scales && scaleWords(record, side, record.scales[i])),
  ].filter((operand) => operand && operand.layout);
}

function fragment(id, layout, type, title) {
  const letter = id.toLowerCase();
  return {
    id,
    layout,
    type,
    title,
    short: letter,
    long: letter,
    variant: "matrix",
    row: "row",
    column: "column",
    selected: () => (layout.matrix.length ? bounded(state.matrix, matricesOf(layout)) : 0),
    selecting: (matrix) => (layout.matrix.length ? { matrix } : {}),
    named: (matrix) => (layout.matrix.length ? ` of matrix ${matrix}` : ""),
  };
}

// An operand of what moves fragments, with the layout of the target that is chosen; of the newest if none is.
function heldOperand({ id, type, variant, layouts }) {
  const { layout, counted, targets } = layouts.find((each) => each.targets.includes(state.on)) ?? layouts.at(-1);
  const addresses = id === "address";
  const letter = addresses ? "p" : id.toLowerCase();
  const several = layout.matrix.length > 0;
  return {
    id,
    layout,
    counted,
    type: addresses ? "" : type,
    title: addresses ? "Addresses of rows" : id,
    short: letter,
    long: letter,
    variant,
    row: "row",
    column: "column",
    lanes: addresses ? counted * layout.shape[0] : layout.lanes,
    target: layouts.length > 1 ? targets[0] : "",
    selected: () => (several ? bounded(state.matrix, counted) : 0),
    selecting: (matrix) => (several ? { matrix } : {}),
    named: (matrix) => (!several ? "" : variant === "copy" ? `, copy ${matrix}` : ` of matrix ${matrix}`),
  };
}

function metadataOf(record) {
  const layout = record.metadata;
  return {
    id: "metadata",
    layout,
    type: "nibbles",
    title: "Metadata",
    short: "n",
    long: "nibble ",
    row: "row",
    column: "group",
    variant: "selector",
    selected: () => bounded(state.selector, matricesOf(layout)),
    selecting: (selector) => ({ selector }),
    named: (selector) => `, selector ${selector}`,
  };
}

function scaleWords(record, side, { layout, ids }) {
  const chosen = () =>
    ids.findIndex(
      ([byte, thread]) => `${byte}` === state[`byte_${side}`] && `${thread}` === state[`thread_${side}`],
    );
  return {
    id: `scale_${side}`,
    layout,
    ids,
    type: record.stype,
    title: `Scales of ${side.toUpperCase()}`,
    short: "b",
    long: "byte ",
    variant: "ids",
    row: side === "a" ? "row" : "column",
    column: "block",
    selected: () => Math.max(0, chosen()),
    selecting: (matrix) => ({ [`byte_${side}`]: ids[matrix][0], [`thread_${side}`]: ids[matrix][1] }),
    named: (matrix) => `, byte-id ${ids[matrix][0]}, thread-id ${ids[matrix][1]}`,
  };
}

const bounded = (text, count) => Math.min(Math.max(0, Number.parseInt(text, 10) || 0), count - 1);

// The chosen operand, and its chosen element, brought into it.
export function chosenCell(record) {
  const operands = operandsOf(record);
  const named = (id) => operands.find((each) => each.id === id);
  const operand = named(state.op) ?? named(state.op === "D" ? "C" : "A") ?? operands[0]; // D may be shown with C
  const [rows, columns] = operand.layout.shape;
  const cell = cellOf(operand, bounded(state.row, rows), bounded(state.col, columns), operand.selected());
  return { operand, ...cell };
}

export function cellOf(operand, row, column, matrix) {
  return { row, column, matrix, ...locate(operand.layout, row, column, matrix) };
}

// A lane's first element in the matrix that is chosen; of none the very first.
export function firstOfLane(operand, lane) {
  const { layout } = operand;
  for (let index = 0; index < layout.elements; index += 1) {
    const { row, column, matrix } = elementOf(layout, lane % layout.lanes, index);
    if (matrix === operand.selected()) return cellOf(operand, row, column, matrix);
  }
  return cellOf(operand, 0, 0, operand.selected());
}

export const shortName = (operand, cell) => `${operand.short}${cell.index}`;

// A sentence: what screen readers say of a cell, and what heads its details.
export function sentence(operand, cell) {
  const what = operand.layout.lanes > 32 ? "thread" : "lane";
  const bits = cell.low === cell.high ? `bit ${cell.low}` : `bits ${cell.low} to ${cell.high}`;
  const place = `${operand.long}${cell.index} of ${what} ${cell.lane}`;
  const register = operand.long === operand.short ? `register ${cell.register}, ` : "";
  return `${elementName(operand, cell)}${operand.named(cell.matrix)}: ${place}, ${register}${bits}`;
}

export const elementName = (operand, cell) => `${operand.id}[${cell.row}, ${cell.column}]`;
