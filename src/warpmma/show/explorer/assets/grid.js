// A grid of any size on a canvas: only what is in sight is drawn, so 64 by 256 scroll as 8 by 8 do.
//
// The canvas is for eyes. For keyboards and screen readers there is one real cell, the active one, which takes the
// focus and moves with the arrow keys; ARIA's counts of rows and columns are for grids whose other cells are not there.
import { h, announce } from "./dom.js";
import { laneColours } from "./colours.js";

const LEFT = 38; // of the rows' numbers
const TOP = 22; // of the columns'
const KEYS = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-8, 0],
  PageDown: [8, 0],
  Home: [0, -Infinity],
  End: [0, Infinity],
};

// What a grid shows:
//   label; rows, columns; run: [across, down] cells that are one block; rowName, columnName: words;
//   cell(row, column) -> {lane, block, name}: texts of the block and of the cell; describe(row, column) -> a sentence.
export function createGrid(shown, { pick, hover }) {
  const canvas = h("canvas", { "aria-hidden": true });
  const cell = h("div", { role: "gridcell", tabindex: "0", class: "grid-cell", id: shown.id });
  const line = h("div", { role: "row" }, cell);
  const sizer = h("div", { class: "grid-sizer", role: "presentation" }, canvas, line);
  const element = h(
    "div",
    {
      class: "grid",
      role: "grid",
      "aria-label": shown.label,
      "aria-rowcount": shown.rows,
      "aria-colcount": shown.columns,
    },
    sizer,
  );
  const view = { canvas, element, sizer, cell, line, shown, zoom: 1, active: [0, 0], lane: null, register: null };
  let asked = 0;
  view.redraw = () => {
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(() => draw(view));
  };
  view.setActive = (row, column, lane, { chosen = true } = {}) => {
    view.active = [row, column];
    view.lane = lane;
    view.chosen = chosen;
    place(view);
    view.redraw();
  };
  view.setZoom = (zoom) => {
    view.zoom = zoom;
    resize(view);
    place(view);
    view.redraw();
  };
  element.addEventListener("scroll", view.redraw, { passive: true });
  element.addEventListener("pointermove", (event) => {
    const at = cellAt(view, event);
    if (String(at) === String(view.under)) return;
    view.under = at;
    hover(at);
  });
  element.addEventListener("pointerleave", () => {
    view.under = null;
    hover(null);
  });
  element.addEventListener("click", (event) => {
    const at = cellAt(view, event);
    if (at) pick(...at);
    cell.focus({ preventScroll: true });
  });
  cell.addEventListener("keydown", (event) => {
    const move = KEYS[event.key];
    if (!move || event.altKey || event.metaKey) return;
    event.preventDefault();
    const clamp = (x, most) => Math.max(0, Math.min(most - 1, x));
    const [row, column] = view.active;
    const corner = event.ctrlKey ? move[1] : 0; // Ctrl+Home and Ctrl+End: the first and the last of all
    const to = [
      clamp(row + (Math.abs(corner) === Infinity ? corner : move[0]), shown.rows),
      clamp(column + move[1], shown.columns),
    ];
    pick(...to);
    reveal(view);
    announce(shown.describe(...to));
  });
  new ResizeObserver(view.redraw).observe(element);
  addEventListener("warpmma-theme", function repaint() {
    if (element.isConnected) view.redraw();
    else removeEventListener("warpmma-theme", repaint);
  });
  resize(view);
  return view;
}

// Width and height of a cell: a block has room for its lane's name, and a row of a warp's operand fits on a screen.
function sizes(view) {
  const {
    run: [across, down],
    rows,
    columns,
    cellSize,
  } = view.shown;
  const room = (pixels, count, most) => Math.min(most, pixels / count);
  const beside = [Math.max(50 / across, room(832, columns, 25)), 34];
  const below = [44, Math.max(34 / down, room(560, rows, 17))];
  return (cellSize ?? (down > 1 ? below : beside)).map((size) => Math.max(3, Math.round(size * view.zoom)));
}

function resize(view) {
  const [width, height] = sizes(view);
  view.size = [width, height];
  view.sizer.style.width = `${LEFT + view.shown.columns * width + 1}px`;
  view.sizer.style.height = `${TOP + view.shown.rows * height + 1}px`;
}

// Put the one real cell where the active element is.
function place(view) {
  const [row, column] = view.active;
  const [width, height] = view.size;
  const { cell, line, shown } = view;
  cell.style.transform = `translate(${LEFT + column * width}px, ${TOP + row * height}px)`;
  cell.style.width = `${width}px`;
  cell.style.height = `${height}px`;
  line.setAttribute("aria-rowindex", row + 1);
  cell.setAttribute("aria-colindex", column + 1);
  cell.setAttribute("aria-label", shown.describe(row, column));
  cell.setAttribute("aria-selected", Boolean(view.chosen));
}

// Scroll as little as it takes.
export function reveal(view) {
  const { element, size, active } = view;
  const [top, left] = [active[0] * size[1], active[1] * size[0]];
  const room = [element.clientWidth - LEFT, element.clientHeight - TOP];
  element.scrollLeft = Math.min(left, Math.max(element.scrollLeft, left + size[0] - room[0]));
  element.scrollTop = Math.min(top, Math.max(element.scrollTop, top + size[1] - room[1]));
}

function cellAt(view, event) {
  const box = view.element.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left - LEFT, event.clientY - box.top - TOP];
  if (x < 0 || y < 0) return null;
  const column = Math.floor((x + view.element.scrollLeft) / view.size[0]);
  const row = Math.floor((y + view.element.scrollTop) / view.size[1]);
  return row < view.shown.rows && column < view.shown.columns ? [row, column] : null;
}

function draw(view) {
  const { canvas, element, shown, size } = view;
  const [width, height] = [element.clientWidth, element.clientHeight];
  if (!width || !height) return;
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  const colours = laneColours(element);
  const [across, down] = shown.run;
  const [left, top] = [LEFT - element.scrollLeft, TOP - element.scrollTop];
  const first = [
    Math.floor(element.scrollTop / size[1] / down) * down,
    Math.floor(element.scrollLeft / size[0] / across) * across,
  ];
  const last = [
    Math.min(shown.rows, Math.ceil((element.scrollTop + height) / size[1])),
    Math.min(shown.columns, Math.ceil((element.scrollLeft + width) / size[0])),
  ];
  for (let row = first[0]; row < last[0]; row += down) {
    for (let column = first[1]; column < last[1]; column += across) {
      block(pen, view, colours, row, column, left + column * size[0], top + row * size[1]);
    }
  }
  headings(pen, view, colours, first, last, left, top, width, height);
}

// Cells of one lane side by side: a box, the lane's name once, and a name for each cell.
function block(pen, view, colours, row, column, x, y) {
  const { shown, size } = view;
  const [across, down] = shown.run;
  const [w, hh] = [size[0] * across, size[1] * down];
  const held = shown.cell(row, column);
  const chosen = held.lane === view.lane;
  const empty = held.lane === null;
  pen.fillStyle = empty ? colours.ground : chosen ? colours.chosen : colours.lanes[held.lane % 32];
  const gap = Math.min(w, hh) > 12 ? 1 : 0;
  pen.fillRect(x + gap / 2, y + gap / 2, w - gap, hh - gap);
  pen.fillStyle = chosen ? colours.onChosen : colours.ink;
  const aside = down > 1;
  const names = aside ? size[1] >= 13 && size[0] >= 40 : size[0] >= 18 && size[1] >= 26;
  if (w >= 24 && hh >= 12) {
    pen.font = `600 ${Math.min(aside ? 12 : 13, hh - 2)}px ${colours.font}`;
    const where = aside ? [x + w * (names ? 0.3 : 0.5), y + hh / 2] : [x + w / 2, y + hh * (names ? 0.32 : 0.5)];
    pen.fillText(held.block, ...where);
  }
  marks(pen, view, colours, row, column, x, y);
  if (!names) return;
  pen.font = `11px ${colours.font}`;
  for (let i = 0; i < across * down; i += 1) {
    const name = shown.cell(row + (aside ? i : 0), column + (aside ? 0 : i)).name;
    const where = aside ? [x + w * 0.8, y + (i + 0.5) * size[1]] : [x + (i + 0.5) * size[0], y + hh * 0.74];
    pen.fillText(name, ...where, (aside ? w * 0.4 : size[0]) - 1);
  }
}

// A bar under the elements of the register that is looked at.
function marks(pen, view, colours, row, column, x, y) {
  const { shown, size, lane, register } = view;
  const [across, down] = shown.run;
  for (let i = 0; i < across * down; i += 1) {
    const held = shown.cell(row + (down > 1 ? i : 0), column + (down > 1 ? 0 : i));
    if (held.lane !== lane || held.register !== register) continue;
    pen.fillStyle = colours.mark;
    if (down > 1) pen.fillRect(x + 1, y + i * size[1], 4, size[1]);
    else pen.fillRect(x + i * size[0], y + size[1] - 4, size[0], 3);
  }
}

function headings(pen, view, colours, first, last, left, top, width, height) {
  const { size } = view;
  pen.fillStyle = colours.ground;
  pen.fillRect(0, 0, width, TOP);
  pen.fillRect(0, 0, LEFT, height);
  pen.fillStyle = colours.pale;
  pen.font = `11px ${colours.font}`;
  const every = (pixels, least) => 2 ** Math.max(0, Math.ceil(Math.log2(least / pixels)));
  const named = (column) => String(view.shown.columnLabel?.(column) ?? column);
  const widest = pen.measureText(named(view.shown.columns - 1)).width;
  const [skipColumns, skipRows] = [every(size[0], Math.max(20, widest + 6)), every(size[1], 13)];
  const within = (pixel, from, to) => pixel >= from && pixel <= to;
  for (let column = first[1] - (first[1] % skipColumns); column < last[1]; column += skipColumns) {
    const x = left + (column + 0.5) * size[0];
    if (within(x, LEFT, width)) pen.fillText(named(column), x, TOP / 2 + 1);
  }
  for (let row = first[0] - (first[0] % skipRows); row < last[0]; row += skipRows) {
    const y = top + (row + 0.5) * size[1];
    if (within(y, TOP, height)) pen.fillText(view.shown.rowLabel?.(row) ?? row, LEFT / 2, y);
  }
}
