// The list of instructions, and what narrows it.
import { FAMILIES, data, matching, targets } from "./catalogue.js";
import { announce, h, labelled, select } from "./dom.js";
import { state, update } from "./state.js";

// Kept while another instruction is chosen, and not in the address: it says nothing about what is shown.
const filter = { text: "", target: "", family: "" };

export const isSmall = () => matchMedia("(max-width: 1099px)").matches;

export function picker() {
  const list = h("ul", { class: "instructions", role: "listbox", "aria-label": "Instructions", tabindex: "0" });
  const count = h("p", { class: "count", role: "status" });
  const refresh = () => fillList(list, count);
  const search = h("input", {
    type: "search",
    id: "filter",
    placeholder: "m16n8k16 f16",
    value: filter.text,
    spellcheck: "false",
    autocomplete: "off",
    oninput: (event) => {
      filter.text = event.target.value;
      refresh();
    },
    onkeydown: (event) => {
      if (event.key === "ArrowDown") {
        event.preventDefault();
        list.focus();
      }
      if (event.key === "Enter" && list.firstChild) {
        event.preventDefault();
        take(list, list.firstChild);
      }
    },
  });
  list.addEventListener("keydown", (event) => step(event, list));
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) take(list, option);
  });
  refresh();
  const element = h(
    "nav",
    { class: "picker", "aria-label": "Choose an instruction" },
    labelled("Instruction", search, { hint: "Shape, types, kind, sp, wgmma, ldmatrix, in any order" }),
    h(
      "div",
      { class: "filters" },
      select(
        "Target",
        [["", "any"], ...targets.map((name) => [name, `${name} (${data.targets[name]})`])],
        "",
        (target) => {
          filter.target = target;
          refresh();
        },
      ),
      select(
        "Kind",
        [["", "all"], ...Object.entries(FAMILIES).map(([name, { label }]) => [name, label])],
        "",
        (family) => {
          filter.family = family;
          refresh();
        },
      ),
    ),
    count,
    list,
  );
  return { element, mark: () => mark(list), chosen: () => list.querySelector("[aria-selected=true]") };
}

function take(list, option) {
  update({ i: option.dataset.name });
  announce(option.textContent);
  // On a small screen the list lies above what was chosen.
  if (isSmall()) list.closest("details").open = false;
}

// What was asked for, where nothing is that.
function nothing() {
  const typed = filter.text.trim();
  const words = typed.length > 60 ? `${typed.slice(0, 60)}\u2026` : typed;
  const on = filter.target && ` on ${filter.target}`;
  const among = filter.family && ` among ${FAMILIES[filter.family].label}`;
  return `no instruction${words && ` matches '${words}'`}${on}${among}`;
}

function fillList(list, count) {
  const found = matching(filter.text, filter);
  count.textContent = found.length === 0 ? nothing() : found.length === 1 ? "1 instruction" : `${found.length} instructions`;
  list.hidden = !found.length;
  list.replaceChildren(...found.map(option));
  mark(list);
}

function option(record) {
  return h(
    "li",
    {
      role: "option",
      id: `option-${record.name.replace(/\W/g, "-")}`,
      "data-name": record.name,
      "aria-selected": false,
    },
    h("span", { class: "shape" }, record.shapeName),
    h("span", { class: "types" }, (record.kinds ?? [record.d, record.a, record.b, record.c]).join(" ")),
    h("span", { class: "rest" }, restOf(record)),
  );
}

// What shape and types do not say.
export function restOf(record) {
  if (record.held) {
    const said = new Set([record.shapeName, "sync", "aligned"]);
    return record.name
      .split(".")
      .filter((part) => !said.has(part))
      .join(" ");
  }
  const parts = record.name.split(".").slice(record.warpgroup ? 4 : 3);
  const said = new Set([
    record.shapeName,
    record.d,
    record.a,
    record.b,
    record.c,
    "row",
    "col",
    "aligned",
    "sync",
    "mma_async",
  ]);
  const rest = parts.filter((part) => !said.has(part));
  const layouts = /\.(row|col)\.(row|col)\./.exec(record.name);
  if (layouts && layouts[0] !== ".row.col.") rest.unshift(`${layouts[1]}.${layouts[2]}`);
  if (record.sparse) rest.unshift(record.sparsity);
  if (record.warpgroup) rest.unshift("wgmma");
  return rest.join(" ");
}

function mark(list) {
  for (const chosen of list.querySelectorAll("[aria-selected=true]")) chosen.setAttribute("aria-selected", "false");
  const option = list.querySelector(`[data-name="${CSS.escape(state.i)}"]`);
  list.removeAttribute("aria-activedescendant");
  if (!option) return;
  option.setAttribute("aria-selected", "true");
  list.setAttribute("aria-activedescendant", option.id);
  const [top, bottom] = [option.offsetTop, option.offsetTop + option.offsetHeight];
  if (top < list.scrollTop || bottom > list.scrollTop + list.clientHeight)
    list.scrollTop = top - list.clientHeight / 3;
}

function step(event, list) {
  const options = [...list.children];
  const at = options.findIndex((each) => each.getAttribute("aria-selected") === "true");
  const to = {
    ArrowDown: at + 1,
    ArrowUp: at - 1,
    Home: 0,
    End: options.length - 1,
    PageDown: at + 8,
    PageUp: at - 8,
  }[event.key];
  if (to === undefined || !options.length) return;
  event.preventDefault();
  const next = options[Math.min(options.length - 1, Math.max(0, to))];
  update({ i: next.dataset.name });
  announce(next.textContent);
}
