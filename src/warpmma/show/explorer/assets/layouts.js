// Which lane holds an element, and which element a lane holds: as `warpmma.layouts` has it, a renaming of bits.
//
// A layout's `row`, `column` and `matrix` list, from the lowest bit up, the bit of the place that stands there: "l3" of
// the lane (of a warpgroup the thread), "e0" of the index i into the lane's fragment. What they say stands `repeats`
// times side by side: what comes later in the fragment lies further right.

const allBits = (layout) => [...layout.row, ...layout.column, ...layout.matrix];
const indexBits = (layout) => allBits(layout).filter((name) => name[0] === "e").length;
const bitOf = (name) => [name[0] === "l" ? "lane" : "index", Number(name.slice(1))];

// Lane, index, register and bits of an element.
export function locate(layout, row, column, matrix = 0) {
  const place = { lane: 0, index: (column >> layout.column.length) << indexBits(layout) };
  for (const [names, value] of [
    [layout.matrix, matrix],
    [layout.row, row],
    [layout.column, column],
  ]) {
    names.forEach((name, weight) => {
      const [where, bit] = bitOf(name);
      place[where] |= ((value >> weight) & 1) << bit;
    });
  }
  return { ...place, ...slotOf(layout, place.index) };
}

// Register and bits of the i-th element of a lane's fragment.
export function slotOf(layout, index) {
  const each = layout.width / layout.slot;
  const register = Math.floor(index / each);
  const low = (index % each) * layout.slot + layout.shift;
  return { register, low, high: low + layout.bits - 1 };
}

// Row, column and matrix of the i-th element of a lane.
export function elementOf(layout, lane, index) {
  const source = { lane, index };
  const value = (names) =>
    names.reduce((sum, name, weight) => {
      const [where, bit] = bitOf(name);
      return sum | (((source[where] >> bit) & 1) << weight);
    }, 0);
  const repeat = index >> indexBits(layout);
  const column = value(layout.column) | (repeat << layout.column.length);
  return { row: value(layout.row), column, matrix: value(layout.matrix) };
}

export const matricesOf = (layout) => 1 << layout.matrix.length;

// How many neighbours of an element in one lane stand beside it in its row and in its column: what is drawn as one.
export function runOf(layout) {
  const run = (names) => {
    let length = 0;
    while (length < names.length && names[length][0] === "e") length += 1;
    return 1 << length;
  };
  const [across, down] = [run(layout.column), run(layout.row)];
  const [rows, columns] = layout.shape;
  return across > 1 ? [Math.min(across, columns), 1] : [1, Math.min(down, rows)];
}

// A lane's elements by register: [{register, cells: [{index, row, column, matrix, low, high}]}].
export function held(layout, lane) {
  const registers = [];
  for (let index = 0; index < layout.elements; index += 1) {
    const cell = { index, ...elementOf(layout, lane, index), ...slotOf(layout, index) };
    (registers[cell.register] ??= { register: cell.register, cells: [] }).cells.push(cell);
  }
  return registers;
}
