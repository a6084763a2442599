// Where a wgmma finds an operand in shared memory: as `warpmma.layouts.matrix_descriptors` has it.
//
// 1. Bits 0-13 of a descriptor are the start >> 4, 16-29 the leading and 32-45 the stride dimension byte offset >> 4,
//    49-51 the base offset, 62-63 the swizzle. The hardware ignores the others.
// 2. A line is what lies side by side: K-major along k, MN-major along m or n. w is the swizzle's width in bytes, or 16.
// 3. Byte b of line j is at start + (j mod 8) w + (j div 8) group + (b div w) panel + b mod w before the swizzle. The
//    group is the stride and the panel the leading offset; MN-major without a swizzle they trade places.
// 4. The swizzle changes bits 4 to 6: XOR (((linear >> 7) - base offset) AND (w / 16 - 1)) << 4.
// 5. An access is eight lines by 16 bytes.
import { formats } from "./catalogue.js";

const SWIZZLES = [0, 128, 64, 32];
export const CHUNK = 16;

// The fields of 64 bits, or what is wrong with a text.
export function readDescriptor(text) {
  const written = text.trim();
  if (!/^(0x[0-9a-f]+|[0-9]+)$/i.test(written))
    return { error: `${written || "nothing"} is not a number; expected 64 bits, such as 0x4000004000000040` };
  const word = BigInt(written);
  if (word >> 64n) return { error: `${written} has more than 64 bits` };
  const field = (low, bits) => Number((word >> low) & ((1n << bits) - 1n));
  return {
    word,
    start: field(0n, 14n) * CHUNK,
    leading: field(16n, 14n) * CHUNK,
    stride: field(32n, 14n) * CHUNK,
    base: field(49n, 3n),
    swizzle: SWIZZLES[field(62n, 2n)],
  };
}

export const bitsOf = (record, operand) => formats[operand === "A" ? record.a : record.b].bits;

// Which major-nesses a type has.
export const majorsOf = (record, operand) => (bitsOf(record, operand) === 16 ? ["K", "MN"] : ["K"]);

// What an instruction reads: the operand's shape, where each element lies, and which elements a word of 4 bytes has.
export function readingOf(record, operand, descriptor, chosenMajor) {
  const bits = bitsOf(record, operand);
  const major = majorsOf(record, operand).includes(chosenMajor) ? chosenMajor : "K";
  const [rows, columns] = operand === "A" ? [record.m, record.stored] : [record.k, record.n];
  const width = Math.max(CHUNK, descriptor.swizzle);
  const trade = major === "MN" && !descriptor.swizzle;
  const [group, panel] = trade
    ? [descriptor.leading, descriptor.stride]
    : [descriptor.stride, descriptor.leading];
  const alongRows = (operand === "A") === (major === "MN"); // whether a line runs down the matrix
  const chunks = Math.ceil(((alongRows ? rows : columns) * bits) / 8 / CHUNK);
  const locate = (row, column) => {
    const [line, along] = alongRows ? [column, row] : [row, column];
    const octet = Math.floor((along * bits) / 8);
    const linear =
      descriptor.start +
      (line % 8) * width +
      Math.floor(line / 8) * group +
      Math.floor(octet / width) * panel +
      (octet % width);
    const moved = ((Math.floor(linear / 128) - descriptor.base) & (Math.max(1, descriptor.swizzle / CHUNK) - 1)) << 4;
    const address = linear ^ moved;
    const low = (address % 4) * 8 + ((along * bits) % 8);
    const access = Math.floor(line / 8) * chunks + Math.floor(octet / CHUNK);
    return {
      row,
      column,
      address,
      linear,
      bank: Math.floor(address / 4) % 32,
      low,
      high: low + bits - 1,
      access,
      chunk: Math.floor(address / CHUNK),
    };
  };
  const words = new Map();
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const cell = locate(row, column);
      const word = Math.floor(cell.address / 4);
      if (words.has(word)) words.get(word).push(cell);
      else words.set(word, [cell]);
    }
  }
  const lines = [...new Set([...words.keys()].map((word) => Math.floor(word / 32)))].sort((a, b) => a - b);
  return { operand, rows, columns, bits, major, locate, words, lines };
}

// The banks of an access, and how many words the busiest of them gives; 1 is without conflict.
export function banksOf(reading, access) {
  const words = new Set();
  for (const cells of reading.words.values())
    for (const cell of cells)
      if (cell.access === access) for (let i = 0; i < 4; i += 1) words.add(cell.chunk * 4 + i);
  const counts = new Map();
  for (const word of words) counts.set(word % 32, (counts.get(word % 32) ?? 0) + 1);
  return { banks: counts.size, wavefronts: Math.max(...counts.values()) };
}

export function sharedSentence(operand, cell) {
  const bits = cell.low === cell.high ? `bit ${cell.low}` : `bits ${cell.low}-${cell.high}`;
  const moved =
    cell.linear === cell.address ? "not moved by a swizzle" : `before the swizzle 0x${cell.linear.toString(16)}`;
  const place = `byte 0x${cell.address.toString(16)}, ${bits} of bank ${cell.bank}`;
  return `${operand}[${cell.row}, ${cell.column}] at ${place}; ${moved}`;
}
