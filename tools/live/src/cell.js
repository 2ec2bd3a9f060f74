// A cell of the page: its editor, its buttons, its output, and what it keeps in the browser.

import { editor } from "./editor.js";
import { button, element } from "./element.js";
import { Output } from "./output.js";

const memory = {
  get(key) {
    try { return localStorage.getItem(`live:${key}`); } catch { return null; }
  },
  set(key, value) { // whether the browser keeps it
    try {
      if (value === null) localStorage.removeItem(`live:${key}`);
      else localStorage.setItem(`live:${key}`, value);
      return true;
    } catch { return value === null; }
  },
};

const seconds = (time) => (time < 0.95 ? `${time.toFixed(2)} s` : `${time.toFixed(1)} s`);

// Where a prediction's outputs stand: behind the lid that follows its cells.
function lid(place) {
  return [...document.querySelectorAll("#book details.book-reveal")].find(
    (each) => place.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING);
}

export class Cell {
  // `told` is the cell of the notebook, `hidden` the code of those behind it that the page does not show.
  constructor(notebook, place, told, number) {
    Object.assign(this, { notebook, place, id: told.id, number, hidden: [], ran: false, kept: true });
    place.dataset.cell = told.id;
    this.pre = place.querySelector(".cell_input pre");
    this.original = this.pre.textContent.replace(/^\n+|\s+$/g, "");
    const head = place.closest(".book-exercise")?.querySelector(".book-exercise-head");
    this.checked = /^ex\.(\w+)\.check\(/m.exec(this.original)?.[1];
    this.exercise = head && this.checked ? head.dataset.exercise : "";
    // What was written for an exercise survives a new edition of its cell.
    this.key = this.exercise || `${notebook.chapter}.${this.id}`;
    this.lid = told.predict ? lid(place) : null;
    this.stored = this.#stored(told);
    this.shown = this.stored;
    this.#build(memory.get(this.key) ?? this.original);
  }

  #stored(told) {
    if (!this.lid) return this.place.querySelector(".cell_output");
    if (!told.output) return null;
    const outputs = [...this.lid.querySelectorAll(".book-reveal-output > .cell_output")];
    return outputs.find((each) => !each.dataset.live && (each.dataset.live = this.id)) ?? null;
  }

  #build(text) {
    const name = this.checked ? `exercise ${this.checked}` : `cell ${this.number}`;
    const verb = this.checked ? "Check" : "Run";
    this.editor = editor({
      text, label: `Code of ${name}`, help: "live-help",
      changed: (now) => this.#edited(now),
      keys: [
        { key: "Shift-Enter", run: () => { this.notebook.run([this], { open: true }); this.notebook.next(this)?.focus(); return true; } },
        { key: "Mod-Enter", run: () => { this.notebook.run([this], { open: true }); return true; } },
      ],
    });
    this.pre.hidden = true;
    this.pre.after(this.editor.dom);
    this.said = element("span", { class: "live-said" });
    this.before = element("span", { class: "live-passed", hidden: "" });
    this.back = button("Reset", () => this.reset(), { "aria-label": `Reset ${name} to the book's text`, title: "The book's text and output again" });
    this.tools = element("div", { class: "live-tools" },
      button(verb, () => this.notebook.run([this], { open: true }), { class: "live-run", "aria-label": `${verb} ${name}` }),
      this.before,
      ...(this.number > 2 ? [button("Run all above", () => this.notebook.run(this.notebook.above(this)), { "aria-label": `Run all above ${name}` })] : []),
      ...this.place.querySelectorAll(".cell_input .copybtn"), // beside the others: on the editor it would lie on code
      this.back, this.said);
    // Below the code; below the lid of folded code, too, unless the whole cell is folded.
    const folded = !this.place.matches(".tag_hide-cell") && this.place.querySelector(":scope > details");
    (folded || this.place.querySelector(".cell_input")).after(this.tools);
    this.#edited(text);
  }

  // Also where the code is folded.
  focus() {
    for (let fold = this.editor.dom; (fold = fold.parentElement.closest("details")); ) fold.open = true;
    this.editor.focus();
  }

  get text() {
    return this.editor.state.doc.toString();
  }

  get edited() {
    return this.text !== this.original;
  }

  #edited(text) {
    const changed = text !== this.original;
    if (this.loaded) {
      this.kept = memory.set(this.key, changed ? text : null);
      if (!this.kept) this.notebook.forgetful();
    }
    this.loaded = true;
    this.pre.textContent = text; // for the button that copies
    this.place.classList.toggle("live-edited", changed);
    this.back.hidden = !changed;
    if (changed) this.place.querySelector(":scope > details")?.setAttribute("open", "");
  }

  // One of: nothing, waiting, running, done, failed, lost.
  become(state, words = "") {
    this.place.dataset.live = state;
    this.said.replaceChildren(words);
  }

  // Says whether the exercise has been passed, and on which day, if that is known.
  pass(passed, day) {
    const known = new Date(`${day}T00:00`); // without a zone: the day of the reader's calendar
    this.before.hidden = !passed;
    this.before.textContent = Number.isNaN(known.getTime()) ? "passed" : `passed on ${known.toLocaleDateString("en-US", { dateStyle: "long" })}`;
  }

  // Takes another text; null stands for the book's.
  take(text) {
    const insert = text ?? this.original;
    if (insert !== this.text) this.editor.dispatch({ changes: { from: 0, to: this.editor.state.doc.length, insert } });
  }

  reset() {
    this.take(null);
    this.#show(this.stored);
    this.problem?.remove();
    if (this.lid) this.lid.open = false;
    this.become("");
    this.editor.focus();
  }

  // Puts an output where the cell's output stands; null takes it away.
  #show(output) {
    if (this.shown === output) return;
    if (this.shown && output) this.shown.replaceWith(output);
    else if (this.shown) this.shown.remove();
    else if (this.lid) {
      const inside = this.lid.querySelector(".book-reveal-output") ?? element("div", { class: "cell book-reveal-output docutils container" });
      if (!inside.isConnected) this.lid.querySelector(":scope > div").prepend(inside);
      inside.append(output);
    } else this.place.append(output);
    this.shown = output;
  }

  // Gives the kernel's reply to the cell, or null if the kernel was lost. `open` lifts the lid of a prediction.
  async run(kernel, open) {
    const output = new Output((made) => this.#show(made)); // until it says something, the old one stands
    const begun = performance.now();
    this.problem?.remove();
    this.problem = null;
    this.become("running", "running");
    let reply;
    try {
      if (this.exercise) await kernel.run(this.notebook.imports(this));
      reply = await kernel.run(this.text, (message) => output.hear(message));
    } catch {
      return this.#lost(output);
    }
    this.ran = reply.status !== "aborted";
    if (this.lid && reply.status === "error") { // which answers no prediction: it stands in front of the lid
      this.#show(this.stored);
      this.problem = output.element;
      this.place.append(this.problem);
    } else if (this.lid && open) this.lid.open = true;
    output.end();
    if (reply.status === "ok") {
      this.become("done", `ran in ${seconds((performance.now() - begun) / 1000)}`);
      try {
        await this.#hidden(kernel);
      } catch {
        return this.#lost(output);
      }
    } else {
      this.become("failed", reply.status === "error" ? reply.ename : "stopped");
      this.place.querySelector(":scope > details")?.setAttribute("open", "");
    }
    return reply;
  }

  #lost(output) {
    output.end();
    this.become("lost", "the kernel was lost");
    return null;
  }

  // What the page does not show runs, too: later cells may need it. Where it fails on the book's own text, the reader should know.
  async #hidden(kernel) {
    for (const code of this.hidden) {
      const reply = await kernel.run(code);
      if (reply.status === "error" && reply.ename !== "KeyboardInterrupt" && !this.notebook.cells.some((each) => each.edited))
        this.said.append(`; a test of the book's own fails on this machine (${reply.ename})`);
    }
  }

  offer(words, action) {
    (this.problem ?? this.shown)?.append(element("p", { class: "live-note" }, words, " ", button(action.text, action.run)));
  }
}
