// What a cell puts out, as the book shows stored outputs. It is cut where it would bury the page.

import { classHighlighter, highlightCode } from "@lezer/highlight";
import { pythonLanguage } from "@codemirror/lang-python";
import { ansi } from "./ansi.js";
import { element } from "./element.js";

const MOST_CHARACTERS = 100_000; // of text, per cell
const LONG = 5_000; // what is longer scrolls in a frame
const MOST_PARTS = 300;
const CUT = "The rest of the output is left out: there is too much of it for a page. The cell goes on until it ends, or is interrupted.";

const nonce = document.currentScript.nonce;

const text = (kind, content) =>
  element("div", { class: `output ${kind} highlight-myst-ansi notranslate` },
    element("div", { class: "highlight" }, element("pre", {}, content)));

const picture = (kind) => (data) => element("div", { class: `output image_${kind}` },
  element("img", { src: `data:image/${kind};base64,${data.trim()}`, alt: "A picture that the cell made" }));

const PROGRAM = /^(module|(text|application)\/javascript)?$/; // other scripts hold data, and stay as they are

// HTML as it came; its scripts run, as those of the book's figures must, but no handler in an attribute does (by the page's policy).
function html(data) {
  const made = element("div", { class: "output text_html" });
  made.innerHTML = data;
  made.run = () => {
    for (const script of made.querySelectorAll("script")) {
      if (!PROGRAM.test(script.type)) continue;
      // No src: the nonce would admit any.
      const again = element("script", { nonce, ...(script.type && { type: script.type }), ...(script.id && { id: script.id }) });
      again.textContent = script.textContent;
      script.replaceWith(again);
    }
  };
  return made;
}

// Quoted source; other Markdown is shown as it is written.
function markdown(data) {
  const code = /^```python\n([^]*)\n```\s*$/.exec(data)?.[1];
  if (code === undefined) return text("text_plain", data);
  const lines = element("pre");
  highlightCode(code, pythonLanguage.parser.parse(code), classHighlighter,
    (part, style) => lines.append(style ? element("span", { class: style }, part) : part), () => lines.append("\n"));
  return element("div", { class: "highlight-python notranslate" }, element("div", { class: "highlight" }, lines));
}

// The first of these that an output has is shown.
const SHOWN = {
  "text/html": html,
  "image/svg+xml": html,
  "image/png": picture("png"),
  "image/jpeg": picture("jpeg"),
  "image/gif": picture("gif"),
  "text/markdown": markdown,
  "text/latex": (data) => element("div", { class: "output text_latex math" }, data),
  "text/plain": (data) => text("text_plain", ansi(data)),
};

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
    this.displays = new Map(); // parts that may be written anew, by the name that the cell gave them
    this.characters = this.parts = 0;
    this.full = false;
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
      case "error": return this.add(text("traceback", ansi(content.traceback.join("\n").replace(/^\S*-{60,}\S*\n/, "")))); // but for a rule on top
      case "clear_output": return content.wait ? void (this.wipe = true) : this.clear();
    }
  }

  add(part) {
    if (this.full || ++this.parts > MOST_PARTS) return this.cut();
    this.stream = null;
    this.element.append(part);
    this.attach();
    part.run?.();
    globalThis.MathJax?.typesetPromise?.([part]);
  }

  print(name, written) {
    if (this.full) return;
    if (name === "stderr" && /^IOPub \w+ rate exceeded/.test(written)) return this.cut(); // the server drops what comes too fast
    if (this.stream?.name !== name) {
      const part = text(name === "stderr" ? "stderr" : "stream", "");
      this.add(part);
      if (this.full) return;
      this.stream = { name, pre: part.querySelector("pre"), line: "", last: element("span") };
      this.stream.pre.append(this.stream.last);
    }
    const stream = this.stream, room = MOST_CHARACTERS - this.characters;
    this.characters += written.length;
    const lines = (stream.line + written.slice(0, room)).replaceAll("\r\n", "\n");
    const end = lines.lastIndexOf("\n") + 1;
    const seen = (line) => ansi(line.replace(/^.*\r/gm, "")); // a carriage return writes over what stood before it
    stream.last.before(seen(lines.slice(0, end)));
    stream.line = lines.slice(end);
    stream.last.replaceChildren(seen(stream.line.replace(/\r$/, "")));
    stream.pre.classList.toggle("live-long", this.characters > LONG);
    if (written.length > room) this.cut();
  }

  part({ data }) {
    const type = Object.keys(SHOWN).find((each) => data[each] !== undefined);
    const given = data[type] ?? "";
    return SHOWN[type ?? "text/plain"](Array.isArray(given) ? given.join("") : given);
  }

  show(content) {
    const part = this.part(content), name = content.transient?.display_id;
    this.add(part);
    if (name && part.isConnected) this.displays.set(name, part);
  }

  renew(content) {
    const name = content.transient?.display_id, old = this.displays.get(name);
    if (!old) return;
    const part = this.part(content);
    old.replaceWith(part);
    this.displays.set(name, part);
    part.run?.();
  }

  cut() {
    if (this.full) return;
    this.full = true;
    this.element.append(element("p", { class: "live-note" }, CUT));
    this.end();
  }

  // What scrolls must be in reach of the keyboard.
  end() {
    this.attach(this.element.childElementCount ? this.element : null);
    for (const pre of this.element.querySelectorAll("pre")) {
      if (pre.scrollWidth > pre.clientWidth || pre.scrollHeight > pre.clientHeight) pre.tabIndex = 0;
    }
  }
}
