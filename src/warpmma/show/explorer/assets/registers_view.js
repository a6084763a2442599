// Operands as grids, and what is known of one element, its lane and its register.
import { detailsOf } from "./cell_details.js";
import { cellOf, chosenCell, firstOfLane, operandsOf, sentence, shortName } from "./cells.js";
import { h, replaceChildren, segmented, select } from "./dom.js";
import { createGrid, reveal } from "./grid.js";
import { elementOf, matricesOf, runOf } from "./layouts.js";
import { state, update } from "./state.js";

export function registersView(record) {
  const operands = operandsOf(record);
  const details = h("aside", { class: "details", "aria-label": "The chosen element" });
  const views = new Map();
  const bar = h("p", { class: "bar", "aria-hidden": true });
  const look = (id, lane, register) => {
    for (const [each, view] of views) {
      Object.assign(view, { lane, register: each === id ? register : null });
      view.redraw();
    }
  };
  const show = (operand, cell) => {
    const found = detailsOf(record, operand, cell, operands, {
      choose,
      look,
      rest: () => look(operand.id, cell.lane, cell.register),
    });
    replaceChildren(details, ...found.flat().filter(Boolean));
    bar.textContent = sentence(operand, cell);
    look(operand.id, cell.lane, cell.register);
  };
  const refresh = () => {
    const chosen = chosenCell(record);
    for (const [id, view] of views) view.follow(chosen, id === chosen.operand.id);
    show(chosen.operand, chosen);
  };
  function choose(operand, row, column, matrix) {
    update({ op: operand.id, row, col: column, ...operand.selecting(matrix) });
    refresh();
    const view = views.get(operand.id);
    if (view) reveal(view);
  }
  const cards = operands.map((operand) => {
    const [card, view] = operandCard(record, operand, {
      pick: (cell) => {
        choose(operand, cell.row, cell.column, cell.matrix);
      },
      hover: (cell) => {
        const chosen = chosenCell(record);
        show(...(cell ? [operand, cell] : [chosen.operand, chosen]));
      },
    });
    views.set(operand.id, view);
    return card;
  });
  refresh();
  // A link may lead to what lies far to the right; where it is, is known when the page is laid out.
  requestAnimationFrame(() => views.forEach(reveal));
  return h(
    "div",
    { class: "registers" },
    toolbar(record, operands),
    h("div", { class: "cards" }, cards),
    details,
    bar,
  );
}

function toolbar(record, operands) {
  const several = operands.filter((operand) => operand.id.length === 1 && matricesOf(operand.layout) > 1);
  const most = Math.max(0, ...several.map((operand) => operand.counted ?? matricesOf(operand.layout)));
  const label = several[0]?.variant === "copy" ? "Copy" : "Matrix";
  const orders = [
    ["element", "Matrices"],
    ["lane", record.warpgroup ? "Threads" : "Lanes"],
  ];
  return h(
    "div",
    { class: "toolbar" },
    segmented("Order", orders, state.by, (by) => update({ by })),
    most > 0 && chooser(label, [...Array(most).keys()], several[0].selected(), (matrix) => update({ matrix })),
    record.held && targetChooser(record),
    record.held && h("p", { class: "note" }, `${record.known}.`),
    record.warpgroup && h("p", { class: "note" }, "B lies in shared memory; A there, or in registers as shown."),
  );
}

// Targets whose layouts differ, by the first of each group.
function targetChooser(record) {
  const differing = record.held.find(({ layouts }) => layouts.length > 1);
  if (!differing) return null;
  const groups = differing.layouts.map(({ targets }) => targets);
  const chosen = groups.find((targets) => targets.includes(state.on)) ?? groups.at(-1);
  const named = (targets) => (targets.length > 1 ? `${targets[0]} to ${targets.at(-1)}` : targets[0]);
  const options = groups.map((targets) => [targets[0], named(targets)]);
  return select("On", options, chosen[0], (on) => update({ on }));
}

const chooser = (label, values, chosen, choose) =>
  select(
    label,
    values.map((value) => [String(value), String(value)]),
    String(chosen),
    choose,
  );

// What chooses one of several matrices of metadata or of scales.
function selectors(operand) {
  if (operand.id === "metadata") {
    const values = Array.from({ length: matricesOf(operand.layout) }, (_, i) => i);
    return [chooser("Selector", values, operand.selected(), (selector) => update({ selector }))];
  }
  if (!operand.ids) return [];
  const side = operand.id.at(-1);
  return [
    ["Byte-id", "byte"],
    ["Thread-id", "thread"],
  ].map(([label, name], i) => {
    const values = [...new Set(operand.ids.map((ids) => ids[i]))];
    const chosen = operand.ids[operand.selected()][i];
    return chooser(`${label} of ${side.toUpperCase()}`, values, chosen, (value) =>
      update({ [`${name}_${side}`]: value }),
    );
  });
}

// A card of one operand; its view knows how to follow what is chosen elsewhere.
function operandCard(record, operand, { pick, hover }) {
  const shown = state.by === "lane" ? laneGrid(operand) : elementGrid(operand);
  const view = createGrid(shown, {
    pick: (row, column) => pick(shown.at(row, column)),
    hover: (at) => hover(at && shown.at(...at)),
  });
  view.follow = (chosen, mine) => {
    const cell = mine ? chosen : firstOfLane(operand, chosen.lane);
    view.setActive(...shown.where(cell), chosen.lane, { chosen: mine });
  };
  const { layout, type } = operand;
  const each = record.warpgroup ? "thread" : "lane";
  const registers = `${layout.registers} ${layout.width}-bit register${layout.registers > 1 ? "s" : ""} a ${each}`;
  const zoom = (by, label, text) =>
    h(
      "button",
      {
        type: "button",
        class: "zoom",
        "aria-label": `${label} ${operand.title}`,
        onclick: () => view.setZoom(Math.min(4, Math.max(0.1, view.zoom * by))),
      },
      text,
    );
  const card = h(
    "section",
    { class: "card", "data-operand": operand.id },
    h(
      "header",
      {},
      h("h2", {}, operand.title),
      h("p", {}, `${layout.shape.join(" \u00d7 ")} ${type}${operand.id.length > 1 ? "" : `, ${registers}`}`),
      h("div", { class: "zooms" }, zoom(1 / 1.4, "Smaller", "\u2212"), zoom(1.4, "Larger", "+")),
    ),
    h("div", { class: "selectors" }, selectors(operand)),
    view.element,
  );
  return [card, view];
}

function elementGrid(operand) {
  const { layout } = operand;
  const matrix = operand.selected();
  const at = (row, column) => cellOf(operand, row, column, matrix);
  return {
    id: `cell-${operand.id}`,
    label: `${operand.title} by ${operand.row} and ${operand.column}`,
    rows: layout.shape[0],
    columns: layout.shape[1],
    run: runOf(layout),
    cell: (row, column) => {
      const cell = at(row, column);
      return { lane: cell.lane, register: cell.register, block: `T${cell.lane}`, name: shortName(operand, cell) };
    },
    at,
    where: (cell) => [cell.row, cell.column],
    describe: (row, column) => sentence(operand, at(row, column)),
  };
}

function laneGrid(operand) {
  const { layout } = operand;
  const at = (lane, index) => {
    const { row, column, matrix } = elementOf(layout, lane, index);
    return cellOf(operand, row, column, matrix);
  };
  const each = layout.width / layout.slot;
  return {
    id: `cell-${operand.id}`,
    label: `${operand.title} by lane and register`,
    rows: operand.lanes ?? layout.lanes,
    columns: layout.elements,
    run: [each, 1],
    cellSize: [each > 8 ? 12 : 42, 30],
    cell: (lane, index) => {
      const cell = at(lane, index);
      return {
        lane,
        register: cell.register,
        block: each > 1 ? `r${cell.register}` : shortName(operand, cell),
        name: `${cell.row},${cell.column}`,
      };
    },
    rowLabel: (lane) => `T${lane}`,
    columnLabel: (index) => `${operand.short}${index}`,
    at,
    where: (cell) => [cell.lane, cell.index],
    describe: (lane, index) => sentence(operand, at(lane, index)),
  };
}
