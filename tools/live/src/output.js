// What a cell puts out, as the book shows stored outputs. It is cut where it would bury the page.

import { classHighlighter, highlightCode } from "@lezer/highlight";
import { pythonLanguage } from "@codemirror/lang-python";
import { Marked } from "marked";
import { ansi } from "./ansi.js";
import { element } from "./element.js";

// What one cell may put on the page.
const MOST = {
  characters: 100_000, // of text
  elements: 20_000, // of HTML: a page with ten times as many stands still for half a minute
  bytes: 30_000_000, // of HTML and pictures
  parts: 300,
};
const LONG = 5_000; // text that is longer scrolls in a frame
const CUT = "The rest of the output is left out: there is too much of it for a page.";
const GOES_ON = " The cell still runs.";

const nonce = document.currentScript.nonce;

const text = (kind, content) =>
  element("div", { class: `output ${kind} highlight-myst-ansi notranslate` },
    element("div", { class: "highlight" }, element("pre", {}, content)));

const note = (words) => element("p", { class: "live-note" }, words);

const count = (number) => number.toLocaleString("en-US");

const picture = (kind) => (data, room) => (data.length > room.bytes
  ? { part: note(`A picture of ${count(Math.ceil(data.length / 1e6))} MB is left out: it is too large for a page.`) }
  : { bytes: data.length, part: element("div", { class: `output image_${kind}` },
    element("img", { src: `data:image/${kind};base64,${data.trim()}`, alt: "A picture that the cell made" })) });

const PROGRAM = /^(module|(text|application)\/javascript)?$/; // other scripts hold data, and stay as they are

// What is made of HTML is counted before the page has to lay it out.
function parsed(kind, data, room) {
  if (data.length > room.bytes) return { part: note(`HTML of ${count(Math.ceil(data.length / 1e6))} MB is left out: it is too large for a page.`) };
  const template = document.createElement("template");
  template.innerHTML = data;
  const elements = template.content.querySelectorAll("*").length;
  if (elements > room.elements) return { part: note(`HTML of ${count(elements)} elements is left out: it is too much for a page.`) };
  const part = element("div", { class: `output ${kind}` });
  part.append(template.content);
  return { bytes: data.length, elements, part };
}

// HTML as it came; its scripts run, as those of the book's figures must, but no handler in an attribute does (by the page's policy).
function html(data, room) {
  const made = parsed("text_html", data, room), { part } = made;
  part.run = () => {
    for (const script of part.querySelectorAll("script")) {
      if (!PROGRAM.test(script.type)) continue;
      // No src: the nonce would admit any.
      const again = element("script", { nonce, ...(script.type && { type: script.type }), ...(script.id && { id: script.id }) });
      again.textContent = script.textContent;
      script.replaceWith(again);
    }
  };
  return made;
}

// Text up to what there is room for; `over` says that this is not all of it.
function plain(data, room) {
  const seen = data.slice(0, Math.max(0, room.characters)), part = text("text_plain", ansi(seen));
  part.querySelector("pre").classList.toggle("live-long", seen.length > LONG);
  return { characters: data.length, over: data.length > room.characters, part };
}

function python(code) {
  const lines = element("pre");
  highlightCode(code, pythonLanguage.parser.parse(code), classHighlighter,
    (part, style) => lines.append(style ? element("span", { class: style }, part) : part), () => lines.append("\n"));
  return element("div", { class: "highlight-python notranslate" }, element("div", { class: "highlight" }, lines));
}

const escaped = (words) => words.replace(/[&<>]/g, (each) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[each]);

// Formulas, which Markdown would take for emphasis: MathJax finds them by their class, and by these brackets.
const formula = (level, name, pattern, [open, close], block) => ({
  name, level,
  start: (source) => source.search(level === "block" ? /\$\$/ : /\$/),
  tokenizer(source) {
    const found = pattern.exec(source);
    return found ? { type: name, raw: found[0], tex: found[1] } : undefined;
  },
  renderer: ({ tex }) => `<${block} class="math">${open}${escaped(tex)}${close}</${block}>`,
});
const marked = new Marked({ extensions: [
  formula("block", "displayed", /^\$\$([^]+?)\$\$/, ["\\[", "\\]"], "div"),
  formula("inline", "inline", /^\$\$?((?:[^$\\\n]|\\.)+?)\$\$?(?!\d)/, ["\\(", "\\)"], "span"),
] });

function markdown(data, room) {
  if (data.length > room.characters) return plain(data, room); // parsing it would take long
  const made = parsed("text_markdown", marked.parse(data), room);
  for (const code of made.part.querySelectorAll("pre > code.language-python")) code.parentElement.replaceWith(python(code.textContent.replace(/\n$/, "")));
  return { ...made, characters: data.length };
}

function latex(data, room) {
  if (data.length > room.characters) return plain(data, room);
  const [, displayed] = /^\s*\$\$([^]*)\$\$\s*$/.exec(data) ?? [];
  const tex = displayed === undefined ? data.replace(/\$((?:[^$\\]|\\.)+)\$/g, "\\($1\\)") : `\\[${displayed}\\]`;
  return { characters: data.length, part: element("div", { class: "output text_latex math" }, tex) };
}

const json = (data, room) => plain(JSON.stringify(data, null, 2), room);

// The first of these that an output has is shown.
const SHOWN = {
  "text/html": html,
  "image/svg+xml": html,
  "image/png": picture("png"),
  "image/jpeg": picture("jpeg"),
  "image/gif": picture("gif"),
  "text/markdown": markdown,
  "text/latex": latex,
  "application/json": json,
  "text/plain": plain,
};

// MathJax stands on the pages that have formulas; where a cell makes one on another page, it is fetched.
let fetched;
const mathjax = () => fetched ??= new Promise((resolve) => {
  globalThis.MathJax = {
    options: { enableMenu: false, processHtmlClass: "tex2jax_process|mathjax_process|math|output_area" },
    startup: { typeset: false },
  };
  const script = element("script", { src: "/_static/mathjax/mathjax.js" });
  script.addEventListener("load", () => globalThis.MathJax.startup.promise.then(resolve));
  document.head.append(script);
});

async function typeset(part) {
  const formulas = part.matches(".math") || part.querySelector(".math");
  if (formulas && (fetched || !globalThis.MathJax)) await mathjax();
  await globalThis.MathJax?.typesetPromise?.([part]);
}

export class Output {
  // `attach` is called with the element once there is something to show, and with null if there is nothing in the end.
  constructor(attach) {
    this.element = element("div", { class: "cell_output docutils container" });
    this.attach = (made = this.element) => { attach(made); this.attach = () => {}; };
    this.clear();
  }

  clear() {
    this.element.replaceChildren();
    this.stream = null; // the last part, if it is printed text that goes on
    this.displays = new Map(); // parts that may be written anew, with their cost, by the name that the cell gave them
    this.room = { ...MOST };
    this.full = null; // the note that tells so
  }

  hear({ header, content }) {
    if (this.wipe && !["status", "execute_input"].includes(header.msg_type)) {
      this.wipe = false;
      this.clear();
    }
    switch (header.msg_type) {
      case "stream": return this.print(content.name, content.text);
      case "display_data":
      case "execute_result": return this.show(content);
      case "update_display_data": return this.renew(content);
      case "error": return this.fail(content.traceback.join("\n").replace(/^\S*-{60,}\S*\n/, "")); // but for a rule on top
      case "clear_output": return content.wait ? void (this.wipe = true) : this.clear();
    }
  }

  // Takes what a part costs from what there is room for, or gives it back (`sign` is -1).
  pay(cost, sign = 1) {
    for (const kind of ["characters", "elements", "bytes"]) this.room[kind] -= sign * (cost[kind] ?? 0);
  }

  add(cost) {
    if (this.full || this.room.parts-- <= 0) return this.cut();
    this.pay(cost);
    this.stream = null;
    this.put(cost.part);
    if (cost.over) this.cut();
  }

  put(part) {
    this.element.append(part);
    this.attach();
    part.run?.();
    typeset(part);
  }

  // An error is shown even after too much output: its end, where the reason stands.
  fail(traceback) {
    this.stream = null;
    const short = traceback.length > MOST.characters;
    this.put(text("traceback", ansi(short ? traceback.slice(-MOST.characters) : traceback)));
    if (short) this.put(note("The beginning of this traceback is left out: it is too long for a page."));
  }

  print(name, written) {
    if (this.full) return;
    if (name === "stderr" && /^IOPub \w+ rate exceeded/.test(written)) return this.cut(); // the server drops what comes too fast
    if (this.stream?.name !== name) {
      const part = text(name === "stderr" ? "stderr" : "stream", "");
      this.add({ part });
      if (this.full) return;
      this.stream = { name, pre: part.querySelector("pre"), line: "", last: element("span") };
      this.stream.pre.append(this.stream.last);
    }
    const stream = this.stream, room = Math.max(0, this.room.characters);
    this.pay({ characters: written.length });
    const lines = (stream.line + written.slice(0, room)).replaceAll("\r\n", "\n");
    const end = lines.lastIndexOf("\n") + 1;
    const seen = (line) => ansi(line.replace(/^.*\r/gm, "")); // a carriage return writes over what stood before it
    stream.last.before(seen(lines.slice(0, end)));
    stream.line = lines.slice(end);
    stream.last.replaceChildren(seen(stream.line.replace(/\r$/, "")));
    stream.pre.classList.toggle("live-long", MOST.characters - this.room.characters > LONG);
    if (written.length > room) this.cut();
  }

  part({ data }) {
    const type = Object.keys(SHOWN).find((each) => data[each] !== undefined) ?? "text/plain";
    const given = data[type] ?? "";
    return SHOWN[type](Array.isArray(given) && type !== "application/json" ? given.join("") : given, this.room);
  }

  show(content) {
    if (this.full) return;
    const cost = this.part(content), name = content.transient?.display_id;
    this.add(cost);
    if (name && cost.part.isConnected) this.displays.set(name, cost);
  }

  renew(content) {
    const name = content.transient?.display_id, old = this.displays.get(name);
    if (!old) return;
    this.pay(old, -1);
    const cost = this.part(content);
    this.pay(cost);
    if (cost.over) cost.part.append(note(CUT));
    old.part.replaceWith(cost.part);
    this.displays.set(name, cost);
    cost.part.run?.();
    typeset(cost.part);
  }

  cut() {
    if (this.full) return;
    this.full = note(CUT + (this.ended ? "" : GOES_ON));
    this.element.append(this.full);
    this.attach();
    this.reach();
  }

  // The cell has ended.
  end() {
    this.ended = true;
    if (this.full) this.full.textContent = CUT;
    this.attach(this.element.childElementCount ? this.element : null);
    this.reach();
  }

  // What scrolls must be in reach of the keyboard.
  reach() {
    for (const pre of this.element.querySelectorAll("pre")) {
      if (pre.scrollWidth > pre.clientWidth || pre.scrollHeight > pre.clientHeight) pre.tabIndex = 0;
    }
  }
}
