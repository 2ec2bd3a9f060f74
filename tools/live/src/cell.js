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
    this.madeBy = this.original; // the code whose result is shown
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
      know: (...question) => this.notebook.know(...question),
      keys: [
        { key: "Shift-Enter", run: () => { this.notebook.run([this], { open: true }); this.notebook.next(this)?.focus(); return true; } },
        { key: "Mod-Enter", run: () => { this.notebook.run([this], { open: true }); return true; } },
      ],
    });
    this.pre.hidden = true;
    this.pre.after(this.editor.dom);
    this.said = element("span", { class: "live-said" });
    this.before = element("span", { class: "live-passed", hidden: "" });
    this.older = element("span", { class: "live-older", hidden: "" });
    this.back = button("Reset", () => this.reset(), { "aria-label": `Reset ${name} to the book's text`, title: "The book's text and output again" });
    this.tools = element("div", { class: "live-tools" },
      button(verb, () => this.notebook.run([this], { open: true }), { class: "live-run", "aria-label": `${verb} ${name}` }),
      this.before,
      ...(this.number > 2 ? [button("Run all above", () => this.notebook.run(this.notebook.above(this)), { "aria-label": `Run all above ${name}` })] : []),
      ...this.place.querySelectorAll(".cell_input .copybtn"), // beside the others: on the editor it would lie on code
      this.back, this.older, this.said);
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
    this.#age();
    if (changed) this.place.querySelector(":scope > details")?.setAttribute("open", "");
  }

  // Says where the result is not that of the code above it.
  #age() {
    const since = this.ranAs !== undefined && this.ranAs !== this.text;
    const older = this.shown && this.madeBy !== this.text;
    this.older.hidden = !since && !older;
    this.older.textContent = since ? "changed since it ran" : "the result is the book's";
    this.shown?.classList.toggle("live-older-output", Boolean(older));
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
    this.ranAs = undefined;
    this.take(null);
    this.#show(this.stored, this.original);
    this.problem?.remove();
    if (this.lid) this.lid.open = false;
    this.become("");
    this.editor.focus();
  }

  // Puts an output where the cell's output stands; null takes it away. `code` is what made it.
  #show(output, code) {
    this.madeBy = code;
    this.#place(output);
    this.#age();
  }

  #place(output) {
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
    const code = this.text, { output } = this.#begin(code);
    let begun = performance.now(), waits = kernel.another, reply;
    if (waits) this.become("waiting", "waits for the kernel");
    const heard = (message) => {
      if (waits) {
        waits = false;
        begun = performance.now();
        this.become("running", "running");
        this.notebook.begun(this);
      }
      output.hear(message);
    };
    try {
      if (this.exercise) await kernel.run(this.notebook.imports(this));
      reply = await kernel.run(code, { heard, cell: this.id });
    } catch {
      return this.#lost(output);
    }
    for (const page of reply.payload ?? []) if (page.source === "page") output.show(page); // what `?` finds
    this.#end(output, code, reply, (performance.now() - begun) / 1000, open);
    try {
      if (reply.status === "ok") await this.#hidden(kernel);
    } catch {
      return this.#lost(output);
    }
    return reply;
  }

  // A message of a run that another window asked for, or this one before it was loaded anew.
  overhear(message) {
    const { header, parent_header: parent, content } = message, idle = header.msg_type === "status" && content.execution_state === "idle";
    if (this.other?.id !== parent.msg_id) {
      if (idle) return; // it was not run
      this.other = { id: parent.msg_id, begun: header.date, reply: { status: "ok" }, ...this.#begin() };
      this.notebook.heard(this);
    }
    const { output, made, reply, begun } = this.other;
    if (header.msg_type === "execute_input") made.code = content.code;
    if (header.msg_type === "error") Object.assign(reply, { status: "error", ename: content.ename });
    output.hear(message);
    if (!idle) return;
    this.other = null;
    this.#end(output, made.code, reply, (new Date(header.date) - new Date(begun)) / 1000);
    this.notebook.heard(this, reply);
  }

  #begin(code = "") {
    const made = { code };
    this.problem?.remove();
    this.problem = null;
    this.become("running", "running");
    return { made, output: new Output((shown) => this.#show(shown, made.code)) }; // until it says something, the old one stands
  }

  #end(output, code, reply, time, open) {
    this.ran = reply.status === "ok";
    this.ranAs = code;
    if (this.lid && reply.status === "error") { // which answers no prediction: it stands in front of the lid
      this.#show(this.stored, this.original);
      this.problem = output.element;
      this.place.append(this.problem);
    } else if (this.lid && open) this.lid.open = true;
    output.end();
    if (this.ran) this.become("done", `ran in ${seconds(time)}`);
    else {
      this.become("failed", reply.status === "error" ? reply.ename : "stopped");
      this.place.querySelector(":scope > details")?.setAttribute("open", "");
    }
    this.#age();
  }

  #lost(output) {
    output.end();
    const reached = this.notebook.kernel.connection && !["died", "restarting"].includes(this.notebook.kernel.state);
    this.become("lost", reached ? "its end was not heard" : "the kernel was lost");
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
