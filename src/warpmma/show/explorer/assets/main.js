// The page, started: what is chosen, and what follows from it.
import { computed, data, formats, instructions, instructionNamed, matching, targets } from "./catalogue.js";
import { commandOfPlace, pythonOfPlace } from "./cell_details.js";
import { chosenCell } from "./cells.js";
import { forgetColours } from "./colours.js";
import { h, press, replaceChildren, segmented } from "./dom.js";
import { explained } from "./explaining.js";
import { elementOf, locate, slotOf } from "./layouts.js";
import { parting } from "./parting.js";
import { isSmall, picker } from "./picker.js";
import { PRESETS } from "./presets.js";
import { commandOf, pythonOf } from "./quoting.js";
import { sumSteps } from "./reference.js";
import { registersView } from "./registers_view.js";
import { readDescriptor, readingOf, sharedSentence } from "./shared_memory.js";
import { commandOfShared, pythonOfShared, sharedView } from "./shared_view.js";
import { readHash, state, update, listen } from "./state.js";
import { readOperands, sumView, typedValues } from "./sum_view.js";
import { encode, readList } from "./values.js";
import { decodedMetadata } from "./words.js";

const VIEWS = {
  registers: ["Registers", registersView],
  shared: ["Shared memory", sharedView],
  sums: ["Sums", sumView],
};
const REBUILT = ["i", "view", "by", "on", "matrix", "selector", "byte_a", "thread_a", "byte_b", "thread_b"];

// What an address may say.
function legal(chosen, defaults) {
  if (!instructionNamed(chosen.i)) chosen.i = matching(chosen.i)[0]?.name ?? defaults.i;
  if (!Object.hasOwn(VIEWS, chosen.view)) chosen.view = defaults.view;
  if (chosen.by !== "lane") chosen.by = defaults.by;
  if (chosen.major !== "MN") chosen.major = defaults.major;
  return chosen;
}

function start() {
  readHash(legal);
  const main = document.getElementById("main");
  const list = picker();
  document.getElementById("picker").append(list.element);
  const build = () => {
    const record = instructionNamed(state.i);
    const view = record.held && state.view === "sums" ? withoutSums : VIEWS[state.view][1];
    replaceChildren(main, heading(record), view(record));
    document.title = `${record.shapeName} ${record.a ?? record.opcode}: warpmma explorer`;
  };
  listen((changed, anew) => {
    if (changed.has("i")) {
      if (!anew) update({ a: "", b: "", c: "", sa: "", sb: "" });
      list.mark();
    }
    if (changed.has("view")) tabs();
    if (anew || REBUILT.some((name) => changed.has(name))) build();
  });
  addEventListener("hashchange", () => {
    readHash(legal);
    tabs();
    list.mark();
    build();
    lookAtChosen();
  });
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address is for what is chosen
    main.focus();
  });
  // On a small screen the list would be in the way of what it chooses from.
  if (isSmall()) document.querySelector(".picker-shell").open = false;
  tabs();
  themes();
  build();
  list.mark();
  lookAtChosen();
}

// What a link leads to may lie further down.
function lookAtChosen() {
  if (state.op !== "A")
    document.querySelector(`[data-operand="${CSS.escape(state.op)}"]`)?.scrollIntoView({ block: "nearest" });
}

function tabs() {
  const place = document.getElementById("views");
  const views = Object.entries(VIEWS).map(([name, [label]]) => [name, label]);
  if (place.firstChild) press(place.firstChild, state.view);
  else place.append(segmented("View", views, state.view, (view) => update({ view })));
}

function withoutSums(record) {
  const moves = `${record.opcode} moves elements and computes no sum.`;
  const chain = "wmma.mma is executed as mma, tile by tile: choose an mma with these types to see its sums.";
  return h("p", { class: "note" }, record.name.startsWith("wmma.mma") ? chain : moves);
}

function heading(record) {
  const first = record.targets[0];
  const recipe = computed(record, first)?.recipe;
  const facts = [
    `${record.targets.length} ${record.targets.length > 1 ? "targets" : "target"}, from ${first}`,
    `PTX ${record.ptx.join(".")}`,
    record.sparse && "A is sparse",
    record.blocks > 0 && `${record.blocks} ${recipe.scale} scale${record.blocks > 1 ? "s" : ""} a row`,
    !record.documented && "not in PTX's grammar, but ptxas takes it",
  ].filter(Boolean);
  return h("header", { class: "heading" }, h("h1", {}, breakable(record.name)), h("p", {}, facts.join(" \u00b7 ")));
}

// A mnemonic may break behind its dots.
function breakable(name) {
  return name.split(/(?<=\.)/).flatMap((part) => [part, h("wbr")]);
}

// Light, dark, or as the system has it; remembered where the browser lets a page do so.
function themes() {
  const stored = () => {
    try {
      return localStorage.getItem("warpmma-theme");
    } catch {
      return null;
    }
  };
  const apply = (theme) => {
    document.body.classList.toggle("warpmma-light", theme === "light");
    document.body.classList.toggle("warpmma-dark", theme === "dark");
    forgetColours();
    dispatchEvent(new Event("warpmma-theme"));
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    forgetColours();
    dispatchEvent(new Event("warpmma-theme"));
  });
  const choose = (theme) => {
    try {
      localStorage.setItem("warpmma-theme", theme);
    } catch {
      // A page that may keep nothing forgets it.
    }
    apply(theme);
  };
  const choices = [
    ["auto", "Auto"],
    ["light", "Light"],
    ["dark", "Dark"],
  ];
  const first = ["light", "dark"].includes(stored()) ? stored() : "auto";
  document.getElementById("themes").append(segmented("Theme", choices, first, choose));
  apply(first);
}

start();

// For tests, and for those who open the console.
globalThis.warpmma = {
  PRESETS,
  chosenCell,
  commandOf,
  commandOfPlace,
  commandOfShared,
  computed,
  data,
  decodedMetadata,
  elementOf,
  encode,
  explained,
  formats,
  instructionNamed,
  instructions,
  locate,
  matching,
  parting,
  pythonOf,
  pythonOfPlace,
  pythonOfShared,
  readDescriptor,
  readingOf,
  sharedSentence,
  readList,
  readOperands,
  slotOf,
  state,
  sumSteps,
  targets,
  typedValues,
  update,
};
