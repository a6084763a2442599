// Elements of operands, their places, and how these are said.
import { elementOf, locate, matricesOf } from "./layouts.js";

// What an instruction's grids are: id, title, the letter of its fragment's elements, layout, type.
export function operandsOf(record) {
  const { A, B, C, D } = record.fragments;
  const same = C === D && record.c === record.d;
  return [
    { id: "A", letter: "a", layout: A, type: record.a, title: record.sparse ? "A, stored elements" : "A" },
    { id: "B", letter: "b", layout: B, type: record.b, title: "B" },
    { id: "C", letter: "c", layout: C, type: record.c, title: same ? "C and D" : "C" },
    { id: "D", letter: "d", layout: same ? null : D, type: record.d, title: "D" },
  ].filter((operand) => operand.layout);
}

export function cellOf(operand, row, column, matrix) {
  return { row, column, matrix, ...locate(operand.layout, row, column, matrix) };
}

export function firstOfLane(operand, lane) {
  const { row, column, matrix } = elementOf(operand.layout, lane % operand.layout.lanes, 0);
  return cellOf(operand, row, column, matrix);
}

export function placeName(operand, cell) {
  return `${operand.letter}${cell.index}`;
}

// A sentence: what screen readers say of a cell, and what heads its details.
export function sentence(operand, cell) {
  const what = operand.layout.lanes > 32 ? "thread" : "lane";
  const of = matricesOf(operand.layout) > 1 ? ` of matrix ${cell.matrix}` : "";
  const bits = cell.low === cell.high ? `bit ${cell.low}` : `bits ${cell.low} to ${cell.high}`;
  return `${operand.id}[${cell.row}, ${cell.column}]${of}: ${placeName(operand, cell)} of ${what} ${cell.lane}, register ${cell.register}, ${bits}`;
}
