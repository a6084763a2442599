// Colours of lanes, as the style sheet has them for light and dark: read again when the theme changes.

let coloursKept = null;

export function laneColours(element) {
  coloursKept ??= readColours(element);
  return coloursKept;
}

export function forgetColours() {
  coloursKept = null;
}

function readColours(element) {
  const style = getComputedStyle(element);
  const value = (name) => style.getPropertyValue(name).trim();
  return {
    lanes: Array.from({ length: 32 }, (_, lane) => value(`--warpmma-lane${lane}`)),
    chosen: value("--chosen"),
    onChosen: value("--on-chosen"),
    mark: value("--mark"),
    ink: value("--warpmma-ink"),
    pale: value("--warpmma-pale"),
    ground: value("--warpmma-paper"),
    font: style.fontFamily,
  };
}
