// What is chosen, kept in the address behind `#`, so that a link leads back to it.

const DEFAULTS = {
  i: "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
  view: "registers", // or "shared", "sums"
  op: "A",
  row: "3",
  col: "5",
  matrix: "0",
  by: "element", // or "lane"
  on: "", // target, where layouts differ between targets
  selector: "0",
  byte_a: "0",
  thread_a: "0",
  byte_b: "0",
  thread_b: "0",
  word: "",
  desc: "0x4000004000000040", // of an operand in shared memory
  major: "K", // or "MN"
  t1: "",
  t2: "",
  a: "",
  b: "",
  c: "",
  sa: "",
  sb: "",
};

export const state = { ...DEFAULTS };
const listeners = new Set();

export function listen(listener) {
  listeners.add(listener);
}

// Change what is chosen, and tell everybody what has changed; `anew` if nothing that is shown of it can stay.
export function update(changes, { anew = false } = {}) {
  const changed = Object.keys(changes).filter((name) => state[name] !== String(changes[name]));
  for (const name of changed) state[name] = String(changes[name]);
  if (!changed.length) return;
  history.replaceState(null, "", hashOf(state));
  for (const listener of listeners) listener(new Set(changed), anew);
}

export function hashOf(chosen) {
  const written = Object.entries(chosen).filter(([name, value]) => value !== DEFAULTS[name]);
  return `#${new URLSearchParams(written)}`;
}

// What the address says; unknown names in it are overlooked, and so is what `legal` refuses.
export function readHash(legal) {
  const said = new URLSearchParams(location.hash.slice(1));
  const chosen = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS)) if (said.has(name)) chosen[name] = said.get(name);
  Object.assign(state, legal(chosen, DEFAULTS));
}
