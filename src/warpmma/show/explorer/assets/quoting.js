// What is on the page, as Python and as a command: for a test, a bug report, or a look on one's own machine.
import { formats } from "./catalogue.js";

const quoted = (text) => `"${text}"`;

// Codes as Python's list; runs of one code are written once.
function list(codes, fmt) {
  const parts = [];
  for (let i = 0; i < codes.length;) {
    let n = 1;
    while (i + n < codes.length && codes[i + n] === codes[i]) n += 1;
    const code = `0x${codes[i].toString(16).padStart(Math.ceil(fmt.bits / 4), "0")}`;
    parts.push(n > 3 ? `*[${code}] * ${n}` : Array(n).fill(code).join(", "));
    i += n;
  }
  return `[${parts.join(", ")}]`;
}

const dtypeOf = (fmt) => `np.uint${[8, 16, 32, 64].find((width) => fmt.bits <= width)}`;

// Columns of A, and rows of B, at which what is stored of a sparse row stands: the first half of every group.
export function columnsOfStored(record) {
  if (!record.sparse) return null;
  const width = record.group;
  return Array.from({ length: record.stored }, (_, i) => Math.floor(i / (width / 2)) * width + (i % (width / 2)));
}

export function pythonOf(record, operands, targets) {
  const [a, b, c] = [record.a, record.b, record.c].map((name) => formats[name]);
  const four = record.fragments.A?.matrix.length ? "4, " : "";
  const at = four ? "0, " : "";
  const columns = columnsOfStored(record);
  const along = columns ? "columns" : ":";
  const lines = [
    "import numpy as np, warpmma as wm",
    "",
    `i = ${quoted(record.name)}`,
    `A = np.zeros((${four}${record.m}, ${record.k}), ${dtypeOf(a)})  # codes of ${a.name}`,
    `B = np.zeros((${four}${record.k}, ${record.n}), ${dtypeOf(b)})`,
    `C = np.zeros((${four}${record.m}, ${record.n}), ${dtypeOf(c)})`,
    columns ? `columns = ${plainList(columns)}  # where the stored elements of the row stand` : null,
    `A[${at}0, ${along}] = ${list(operands.a, a)}`,
    `B[${at}${along}, 0] = ${list(operands.b, b)}`,
    `C[${at}0, 0] = 0x${operands.c.toString(16)}`,
  ].filter((line) => line !== null);
  const more = [`target=${quoted(targets[0])}`, `against=${quoted(targets[1])}`];
  if (record.blocks) {
    const scale = formats[record.stype];
    lines.push(
      `scale_a = np.zeros((${record.m}, ${record.blocks}), np.uint8)`,
      `scale_b = np.zeros((${record.blocks}, ${record.n}), np.uint8)`,
      `scale_a[0] = ${list(operands.scaleA, scale)}`,
      `scale_b[:, 0] = ${list(operands.scaleB, scale)}`,
    );
    more.push("scale_a=scale_a", "scale_b=scale_b");
  }
  lines.push(`print(wm.explain(i, A, B, C, 0, 0, ${more.join(", ")}).text())`);
  return `${lines.join("\n")}\n`;
}

const plainList = (numbers) => `[${numbers.join(", ")}]`;

export function commandOf(record, typed, targets) {
  const values = [`--a "${typed.a}"`, `--b "${typed.b}"`, `--c "${typed.c}"`];
  if (record.blocks) values.push(`--scale-a "${typed.sa}"`, `--scale-b "${typed.sb}"`);
  return `warpmma explain ${record.name} ${values.join(" ")} --target ${targets[0]} --against ${targets[1]}`;
}
