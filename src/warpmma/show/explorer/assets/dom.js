// Elements of the document, made in one expression.

// h("button", {class: "chip", onclick: f, "aria-pressed": true}, "text", child): false and null leave things out.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : String(value));
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

// What screen readers are told when nothing on the page has the focus that says it.
export function announce(text) {
  document.getElementById("live").textContent = text;
}

// A group of buttons of which one is pressed.
export function segmented(label, options, chosen, choose) {
  const group = h("div", { class: "segmented", role: "group", "aria-label": label });
  const buttons = options.map(([value, text]) =>
    h(
      "button",
      {
        type: "button",
        id: `${label}-${value}`,
        "data-value": value,
        onclick: () => {
          press(group, value);
          choose(value);
        },
      },
      text,
    ),
  );
  group.append(...buttons);
  press(group, chosen);
  return group;
}

export function press(group, value) {
  for (const button of group.children) button.setAttribute("aria-pressed", button.dataset.value === value);
}

// Put other children in place; what had the focus, and is there again by its id, has it afterwards.
export function replaceChildren(container, ...children) {
  const focused = container.contains(document.activeElement) ? document.activeElement.id : "";
  container.replaceChildren(...children);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

export function labelled(label, control, { hint = "" } = {}) {
  return h(
    "label",
    { class: "field" },
    h("span", { class: "field-name" }, label),
    control,
    hint && h("small", {}, hint),
  );
}

export function select(label, options, chosen, choose) {
  const control = h(
    "select",
    { id: `select-${label.replace(/\W+/g, "-")}`, onchange: (event) => choose(event.target.value) },
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)),
  );
  return labelled(label, control);
}

// A button that puts a text on the clipboard, and says that it did.
export function copyButton(label, text) {
  const button = h("button", { type: "button", class: "copy" }, label);
  button.addEventListener("click", async () => {
    await copied(typeof text === "function" ? text() : text);
    button.textContent = "Copied";
    announce("Copied");
    setTimeout(() => (button.textContent = label), 1500);
  });
  return button;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers that let no page from the file system near the clipboard take what is selected.
    const area = h("textarea", { class: "offscreen", value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
