// Text of a terminal: its colors become the classes that the book's style sheet has for stored outputs.

import { element } from "./element.js";

const NAMES = ["Black", "Red", "Green", "Yellow", "Blue", "Magenta", "Cyan", "White"];
const CODE = /\x1b\[([\d;]*)m|\x1b\[[\d;?]*[A-Za-z]|\x1b\][^\x07]*\x07/g;

// The name nearest to a color of many; grays have none, since the page has an ink of its own.
function nearest(rgb) {
  const most = Math.max(...rgb);
  if (most - Math.min(...rgb) < 40) return "";
  return NAMES[rgb.reduce((sum, part, bit) => sum + (part > 0.6 * most ? 1 << bit : 0), 0)];
}

function named(number) {
  if (number < 16) return NAMES[number % 8];
  if (number > 231) return "";
  const cube = number - 16;
  return nearest([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((level) => level * 51));
}

function look(state, codes) {
  const now = { ...state };
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i];
    if (code === 0) Object.assign(now, { color: "", bold: false });
    else if (code === 1) now.bold = true;
    else if (code === 22) now.bold = false;
    else if (code === 39) now.color = "";
    else if (code >= 30 && code < 38) now.color = NAMES[code - 30];
    else if (code >= 90 && code < 98) now.color = NAMES[code - 90];
    else if (code === 38 || code === 48) {
      const many = codes[i + 1] === 2;
      const color = many ? nearest(codes.slice(i + 2, i + 5)) : named(codes[i + 2]);
      if (code === 38) now.color = color;
      i += many ? 4 : 2;
    }
  }
  return now;
}

export function ansi(text) {
  const made = document.createDocumentFragment();
  let at = 0, state = { color: "", bold: false };
  const add = (part) => {
    if (!part) return;
    const classes = [state.color && `-Color -Color-${state.color}`, state.bold && "-Color -Color-Bold"].filter(Boolean);
    made.append(classes.length ? element("span", { class: classes.join(" ") }, part) : part);
  };
  for (const found of text.matchAll(CODE)) {
    add(text.slice(at, found.index));
    at = found.index + found[0].length;
    if (found[1] !== undefined) state = look(state, found[1].split(";").map(Number));
  }
  add(text.slice(at));
  return made;
}
