// Colours of lanes, as the style sheet has them for light and dark: read again when the theme changes.

let kept = null;

export function laneColours(element) {
  kept ??= read(element);
  return kept;
}

export function forgetColours() {
  kept = null;
}

function read(element) {
  const style = getComputedStyle(element);
  const value = (name) => style.getPropertyValue(name).trim();
  return {
    lanes: Array.from({ length: 32 }, (_, lane) => value(`--group-${lane >> 2}-${lane & 3}`)),
    chosen: value("--chosen"),
    onChosen: value("--on-chosen"),
    ink: value("--ink"),
    pale: value("--pale"),
    ground: value("--surface"),
    font: style.fontFamily,
  };
}
