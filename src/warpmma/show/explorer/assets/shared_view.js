// An operand of wgmma in shared memory: its elements, the lines of memory, and what is known of one element.
import { copyButton, h, labelled, replaceChildren, segmented } from "./dom.js";
import { createGrid, reveal } from "./grid.js";
import { banksOf, majorsOf, readDescriptor, readingOf, sharedSentence } from "./shared_memory.js";
import { state, update } from "./state.js";

const hexadecimal = (x) => `0x${x.toString(16)}`;
const within = (text, count) => Math.min(Math.max(0, Number.parseInt(text, 10) || 0), count - 1);

export function sharedView(record) {
  if (!record.warpgroup)
    return h("p", { class: "note" }, "Only wgmma reads operands from shared memory by descriptors: choose one.");
  const body = h("div", { class: "registers" });
  const said = h("p", { class: "note", id: "descriptor-error", role: "alert" });
  const input = h("input", {
    type: "text",
    id: "descriptor",
    value: state.desc,
    spellcheck: "false",
    autocomplete: "off",
    oninput: () => {
      update({ desc: input.value });
      build();
    },
  });
  const majors = h("div", { class: "majors" });
  function build() {
    const operand = operandOf(record);
    const descriptor = readDescriptor(state.desc);
    input.setAttribute("aria-invalid", Boolean(descriptor.error));
    said.textContent = descriptor.error ?? "";
    const legal = majorsOf(record, operand);
    const choices = legal.map((name) => [name, `${name}-major`]);
    const choose = (major) => {
      update({ major });
      build();
    };
    replaceChildren(majors, segmented("Major", choices, legal.includes(state.major) ? state.major : "K", choose));
    if (descriptor.error) return;
    replaceChildren(body, ...tile(record, readingOf(record, operand, descriptor, state.major), descriptor));
  }
  const operands = [
    ["A", "A"],
    ["B", "B"],
  ];
  const toolbar = h(
    "div",
    { class: "toolbar" },
    segmented("Operand", operands, operandOf(record), (op) => {
      update({ op });
      build();
    }),
    labelled("Descriptor", input),
    majors,
    said,
  );
  build();
  return h("div", {}, toolbar, body);
}

const operandOf = (record) => (state.op === "A" ? "A" : "B");

// The two grids, the fields of the descriptor, and the element that is chosen.
function tile(record, reading, descriptor) {
  const { operand } = reading;
  const details = h("aside", { class: "details", "aria-label": "The chosen element" });
  const chosen = () => reading.locate(within(state.row, reading.rows), within(state.col, reading.columns));
  const lineOf = (cell) => reading.lines.indexOf(Math.floor(cell.address / 128));
  const show = (cell) => {
    for (const view of views) {
      view.lane = cell.access;
      view.redraw();
    }
    replaceChildren(details, ...detailsOfShared(record, reading, descriptor, cell).filter(Boolean));
  };
  const refresh = () => {
    const cell = chosen();
    elements.setActive(cell.row, cell.column, cell.access);
    memory.setActive(lineOf(cell), cell.bank, cell.access);
    show(cell);
  };
  const choose = (cell) => {
    if (!cell) return;
    update({ op: operand, row: cell.row, col: cell.column });
    refresh();
    [elements, memory].forEach(reveal);
  };
  const acting = (at) => ({
    pick: (...place) => choose(at(...place)),
    hover: (place) => show((place && at(...place)) || chosen()),
  });
  const wordAt = (line, bank) => reading.words.get(reading.lines[line] * 32 + bank);
  const elementAt = (row, column) => reading.locate(row, column);
  // Of several elements of a word the chosen one, if it is there.
  const cellAt = (line, bank) => {
    const cells = wordAt(line, bank);
    const { row, column } = chosen();
    return cells?.find((cell) => cell.row === row && cell.column === column) ?? cells?.[0];
  };
  const elements = createGrid(
    {
      id: "cell-elements",
      label: `${operand} by row and column`,
      rows: reading.rows,
      columns: reading.columns,
      run: [1, 1],
      cellSize: [46, 30],
      cell: (row, column) => {
        const cell = elementAt(row, column);
        return { lane: cell.access, block: cell.address.toString(16), name: `b${cell.bank}` };
      },
      describe: (row, column) => sharedSentence(operand, elementAt(row, column)),
    },
    acting(elementAt),
  );
  const memory = createGrid(
    {
      id: "cell-memory",
      label: "Lines of 128 bytes by bank",
      rows: reading.lines.length,
      columns: 32,
      run: [1, 1],
      cellSize: [46, 30],
      rowLabel: (line) => hexadecimal(reading.lines[line] * 128),
      cell: (line, bank) => {
        const cells = wordAt(line, bank);
        if (!cells) return { lane: null, block: "", name: "" };
        const [first] = cells;
        return { lane: first.access, block: `${first.row},${first.column}`, name: `${cells.length}` };
      },
      describe: (line, bank) => {
        const cell = cellAt(line, bank);
        return cell ? sharedSentence(operand, cell) : `nothing is read at bank ${bank} of this line`;
      },
    },
    acting(cellAt),
  );
  const views = [elements, memory];
  refresh();
  requestAnimationFrame(() => views.forEach(reveal));
  const card = (title, text, view) =>
    h("section", { class: "card" }, h("header", {}, h("h2", {}, title), h("p", {}, text)), view.element);
  const read = `${reading.lines.length} lines of 128 bytes that are read, by bank; of each word the first element`;
  return [
    h(
      "div",
      { class: "cards" },
      card(operand, `${reading.rows} \u00d7 ${reading.columns}, with address, hexadecimal, and bank`, elements),
      card("Shared memory", `${read}, and how many it has`, memory),
    ),
    details,
  ];
}

function detailsOfShared(record, reading, descriptor, cell) {
  const { operand, major } = reading;
  const { banks, wavefronts } = banksOf(reading, cell.access);
  const conflict = wavefronts > 1 ? `; the busiest bank gives ${wavefronts} words` : ", without conflict";
  const fields = [
    ["start", hexadecimal(descriptor.start)],
    ["leading", descriptor.leading],
    ["stride", descriptor.stride],
    ["swizzle", descriptor.swizzle ? `${descriptor.swizzle} bytes` : "none"],
    ["base offset", descriptor.base],
  ];
  return [
    h("h2", { class: "sentence", id: "sentence" }, sharedSentence(operand, cell)),
    h("p", {}, `It is read with eight lines by 16 bytes, in colour: ${banks} banks${conflict}.`),
    h("h3", {}, "The descriptor"),
    h("dl", { class: "facts" }, fields.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value))])),
    h(
      "div",
      { class: "quotes" },
      copyButton("Copy as Python", () => pythonOfShared(record, reading, descriptor, cell)),
      copyButton("Copy as command", () => commandOfShared(record, reading, descriptor, cell)),
    ),
    major === "MN" && h("p", { class: "note" }, "MN-major is imm-trans 1."),
  ];
}

export function pythonOfShared(record, { operand, major }, { word }, cell) {
  return (
    `import warpmma as wm\n\ni = "${record.name}"\n` +
    `cell = wm.where(i, "${operand}", ${cell.row}, ${cell.column}, descriptor=${hexadecimal(word)}, major="${major}")\n` +
    `assert (cell.address, cell.bank, cell.linear) == (${hexadecimal(cell.address)}, ${cell.bank}, ${hexadecimal(cell.linear)})\n`
  );
}

export function commandOfShared(record, { operand, major }, { word }, cell) {
  const more = major === "MN" ? " --major MN" : "";
  return `warpmma where ${record.name} ${operand} ${cell.row} ${cell.column} --descriptor ${hexadecimal(word)}${more}`;
}
