// A chapter of the book with a kernel behind it: every cell can be changed and run where it stands.
//
// The server adds this script to the pages of the public site, and to nothing else.

import { pythonLanguage } from "@codemirror/lang-python";
import { Cell } from "./cell.js";
import { button, element } from "./element.js";
import { ask, Kernel, reason } from "./kernel.js";

const PATIENCE = 5000; // milliseconds until an interrupt that does nothing is spoken of

const SAID = {
  none: "Nothing runs yet. The first run starts a kernel.",
  starting: "The kernel starts.",
  idle: "The kernel is ready.",
  busy: "The kernel runs.",
  restarting: "The kernel starts anew.",
  interrupting: "The kernel is interrupted.",
  died: "The kernel died, and was started again. Its variables are gone: run the cells anew.",
  dead: "The kernel is dead. The next run starts another.",
  "cut off": "The server does not answer. If it still runs, load this page again; if not, start it, and open the address that it prints. What you wrote is kept in this browser.",
  "cut off, not kept": "The server does not answer. What you wrote is lost when the page is closed: copy it first. Then start the server, and open the address that it prints.",
};

// The cells of the page beside those of the notebook: by their text, so that no cell is ever taken for another.
function matched(told) {
  const places = [...document.querySelectorAll("#book div.cell")].filter((each) => each.querySelector(".cell_input"));
  const shown = told.filter((each) => each.shown);
  const same = (place, { source }) => {
    const text = place.querySelector(".cell_input pre").textContent.trim();
    return [source.trim(), source.replace(/^#@title .*\n/, "").trim()].includes(text); // Colab's title is not on the page
  };
  return places.length === shown.length && places.every((each, index) => same(each, shown[index])) ? places : null;
}

class Notebook {
  constructor(chapter) {
    this.chapter = chapter;
    this.cells = [];
    this.queue = [];
    this.kernel = new Kernel(chapter, {
      told: (state) => this.#kernel(state),
      overheard: (id, message) => this.cells.find((each) => each.id === id)?.overhear(message),
      met: (ran) => this.#met(new Set(ran)),
    });
    this.#bar();
  }

  async begin() {
    const { cells: told, ended } = await ask(`/live/cells/${this.chapter}`);
    if (document.readyState !== "complete") await new Promise((done) => addEventListener("load", done, { once: true })); // copy buttons are there
    const places = matched(told);
    if (!places) {
      this.say("This page and its notebook differ, so nothing can run here. Build the book anew.");
      return;
    }
    for (const each of told) {
      if (each.shown) this.cells.push(new Cell(this, places[this.cells.length], each, this.cells.length + 1));
      else this.cells.at(-1)?.hidden.push(each.source);
    }
    for (const each of this.bar.querySelectorAll("button")) each.disabled = false;
    addEventListener("storage", ({ key, newValue }) => { // written in another window
      this.cells.find((each) => `live:${each.key}` === key)?.take(newValue);
    });
    this.#states();
    this.passed();
    if (await this.kernel.find()) this.#left();
    else this.say(ended ? `${ended} The next run starts another.` : SAID.none);
  }

  // What has run in the kernel, in whatever window.
  #met(ran) {
    for (const cell of this.cells) if (ran.has(cell.id) && !cell.ran) {
      cell.ran = true;
      if (!cell.place.dataset.live) cell.become("", "ran before; the kernel still knows its names");
    }
  }

  // Cells that waited when the page was left wait for ever.
  #left() {
    let left = [];
    try {
      left = JSON.parse(sessionStorage.getItem(`live:waiting:${this.kernel.id}`) ?? "[]");
    } catch { /* then nobody knows */ }
    this.#wait([]);
    for (const cell of this.cells) if (left.includes(cell.id)) cell.become("", "was not run: the page was left while it waited");
  }

  #wait(ids) {
    try { sessionStorage.setItem(`live:waiting:${this.kernel.id}`, JSON.stringify(ids)); } catch { /* as above */ }
  }

  // A cell runs, or is done, that this page may not have asked for.
  heard(cell, reply) {
    if (this.going) return;
    clearTimeout(this.patience);
    this.#stopped(reply?.status === "error");
    if (!reply) this.say(`Cell ${cell.number} runs.`, cell);
    else if (reply.status === "ok") this.say("Done.");
    else this.say(`Cell ${cell.number} stopped: ${reply.ename}.`, cell);
    if (reply && cell.exercise) progress();
  }

  // A cell that had to wait for a run of another window.
  begun(cell) {
    this.say(`Cell ${cell.number} runs${this.queue.length ? `, ${this.queue.length} wait` : ""}.`, cell);
  }

  // Says beside each exercise whether it has been passed, in this browser or anywhere else.
  passed() {
    for (const cell of this.cells) if (cell.exercise) cell.pass(cell.exercise in passed, passed[cell.exercise]);
  }

  #bar() {
    this.light = element("span", { class: "live-light", "aria-hidden": "true" });
    this.status = element("span", { class: "live-status", role: "status" });
    this.bar = element("section", { class: "live-bar book-above", "aria-label": "Kernel" }, this.light, this.status,
      element("span", { class: "live-buttons" },
        button("Run all", () => this.run(this.cells), { disabled: "" }),
        button("Interrupt", () => this.interrupt(), { disabled: "", class: "live-interrupt" }),
        button("Restart", () => this.restart(), { disabled: "", class: "live-restart" })),
      element("details", { class: "live-keys" }, element("summary", {}, "Keys"), element("ul", { id: "live-help", class: "book-above" },
        ...["Shift and Enter: run the cell, go to the next", "Ctrl (or ⌘) and Enter: run the cell",
          "Tab: on through the page; once you have written, indent, or complete a name", "Ctrl and Space: complete a name",
          "Ctrl, Shift and Space: how a function is called", "A name with ? behind it, run: its documentation",
          "Escape, then Tab: leave the cell"].map((each) => element("li", {}, each)))));
    document.body.prepend(this.bar);
    document.querySelector(".skip-link")?.after(this.bar); // which stays the first stop
  }

  // Says something; what it says of a cell leads to that cell.
  say(words, cell) {
    if (!cell) return this.status.replaceChildren(words);
    const link = element("a", { href: "#" }, words);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      cell.place.scrollIntoView({ block: "center" });
      cell.focus();
    });
    this.status.replaceChildren(link);
  }

  #states() {
    const running = Boolean(this.kernel.connection);
    this.bar.dataset.state = this.kernel.state;
    this.bar.querySelector(".live-interrupt").disabled = !running || (this.kernel.state !== "busy" && !this.going);
    this.bar.querySelector(".live-restart").disabled = !running;
  }

  #kernel(state) {
    if (["restarting", "died", "dead", "none"].includes(state)) for (const cell of this.cells) {
      cell.ran = false;
      if (cell.place.dataset.live === "done") cell.become("", "ran before the kernel was lost");
    }
    this.#states();
    // (A kernel that died and was started anew may say so late, as one does that another window has restarted.)
    if (state === "restarting" && !this.lost) this.#stopped(false);
    if (state === "died") {
      this.lost = true; // says so until the next run
      this.#stopped(true);
    }
    if (this.lost && ["died", "starting", "idle"].includes(state)) this.say(SAID.died);
    else if (state === "idle" || state === "busy") {
      // what a run says of itself stays
      if (!this.going && Object.values(SAID).includes(this.status.textContent)) this.say(SAID[state]);
    } else this.#tell(state);
  }

  // The light tells until the next run that the last one stopped, as the words beside it do.
  #stopped(stopped) {
    this.bar.toggleAttribute("data-stopped", stopped);
  }

  #tell(state) {
    this.say(SAID[state === "cut off" && this.cells.some((each) => !each.kept) ? "cut off, not kept" : state]);
  }

  // Says once that the browser does not keep what is written, and has it ask before the page is closed.
  forgetful() {
    if (this.warned) return;
    this.warned = true;
    this.say("This browser keeps nothing: what you write is lost when the page is closed.");
    addEventListener("beforeunload", (event) => { if (this.cells.some((each) => !each.kept)) event.preventDefault(); });
  }

  above(cell) {
    return this.cells.slice(0, this.cells.indexOf(cell));
  }

  // The next cell whose code is in sight.
  next(cell) {
    return this.cells.slice(this.cells.indexOf(cell) + 1).find((each) => each.editor.dom.checkVisibility());
  }

  // What the cells above import that have not run yet, so that an exercise can be tried before them.
  imports(cell) {
    return this.above(cell).filter((each) => !each.ran).flatMap(({ text }) => {
      const whole = pythonLanguage.parser.parse(text).topNode;
      const places = [whole, ...whole.getChildren("StatementGroup")].flatMap((each) => each.getChildren("ImportStatement"));
      return places.map(({ from, to }) => text.slice(from, to));
    }).join("\n");
  }

  // Runs cells one after the other; an error ends the row. `open` lifts the lid of a prediction, which running many leaves shut.
  run(cells, { open = false } = {}) {
    if (this.kernel.state === "cut off") return this.#tell("cut off");
    for (const cell of cells) {
      if (this.queue.some((each) => each.cell === cell)) continue;
      this.queue.push({ cell, open });
      cell.become("waiting", "waits");
    }
    if (this.kernel.id) this.#wait(this.queue.map((each) => each.cell.id));
    this.going ??= this.#go().finally(() => {
      this.going = null;
      this.#states();
    });
  }

  async #go() {
    let count = 0, failed = false;
    this.lost = false;
    this.#stopped(false);
    try {
      await this.kernel.start();
    } catch (error) {
      this.#stopped(true);
      this.say(`No kernel could be started: ${reason(error)}`);
      return this.#forget();
    }
    try {
      while (this.queue.length) {
        const setup = this.cells[0];
        if (!setup.ran && this.queue[0].cell !== setup) {
          this.queue = [{ cell: setup, open: false }, ...this.queue.filter((each) => each.cell !== setup)];
        }
        const { cell, open } = this.queue.shift();
        this.#states();
        this.#wait(this.queue.map((each) => each.cell.id));
        if (this.kernel.another) this.say(`Cell ${cell.number} waits: the kernel runs what was begun in another window, or before this page was loaded.`, cell);
        else this.begun(cell);
        const reply = await cell.run(this.kernel, open);
        if (reply?.ename === "NameError" && this.above(cell).some((each) => !each.ran)) this.#missing(cell);
        if (cell.exercise) progress();
        if (reply?.status === "ok") count += 1;
        else {
          failed = true;
          if (reply) {
            this.#stopped(true);
            this.say(`Cell ${cell.number} stopped: ${reply.ename ?? "it was not run"}.`, cell);
          }
          break;
        }
      }
      if (!failed) this.say(count === 1 ? "Done." : `Done: ${count} cells.`);
    } catch (error) {
      this.#stopped(true);
      this.say(`This page failed: ${error.message}`);
    }
    clearTimeout(this.patience);
    this.#forget();
  }

  #forget() {
    for (const { cell } of this.queue) cell.become("");
    this.queue = [];
    if (this.kernel.id) this.#wait([]);
  }

  #missing(cell) {
    cell.offer("Cells above have not run yet. Perhaps one of them makes this name.", {
      text: "Run all above, then this",
      run: () => { this.run(this.above(cell).filter((each) => !each.ran)); this.run([cell], { open: true }); },
    });
  }

  async interrupt() {
    this.#forget();
    this.say(SAID.interrupting);
    try {
      await this.kernel.interrupt();
    } catch (error) {
      return this.say(`The kernel could not be interrupted: ${reason(error)}`);
    }
    clearTimeout(this.patience);
    this.patience = setTimeout(() => {
      if (this.kernel.state === "busy") this.say("It does not stop: compiled code cannot be interrupted. Wait, or restart the kernel.");
    }, PATIENCE);
  }

  // What the kernel knows of a name; `asked` if the reader asked for it, and is to hear why there is nothing.
  async know(type, code, cursor, asked) {
    const known = await this.kernel.know(type, code, cursor);
    if (!known && asked && !this.going && ["none", "dead"].includes(this.kernel.state)) this.say("The kernel completes and explains names, and none runs yet: run a cell first.");
    else if (!known && asked && !this.going && this.kernel.state === "busy") this.say("The kernel runs. It completes and explains names when the cell has ended.");
    return known;
  }

  async restart() {
    this.#forget();
    this.lost = false;
    try {
      await this.kernel.restart();
    } catch (error) {
      this.say(`The kernel could not be restarted: ${reason(error)}`);
    }
  }
}

// Marks what the reader has passed, here or anywhere else, as the page marks it by itself: once, since a mark can be taken away.
async function progress() {
  const told = await ask("/live/progress").catch(() => null);
  if (!told) return;
  passed = told.passed;
  notebook?.passed();
  const names = Object.keys(passed);
  let marked = [];
  try {
    marked = JSON.parse(localStorage.getItem("live:passed") ?? "[]");
    localStorage.setItem("live:passed", JSON.stringify(names));
  } catch { /* then each page marks them again */ }
  for (const name of names.filter((each) => !marked.includes(each))) {
    const box = document.getElementById(`done-${name}`);
    if (box && !box.checked) box.click();
    try {
      if (!box) localStorage.setItem(`book:done:${name}`, "1"); // where the book's own script keeps it, for other pages
    } catch { /* then they do not show it */ }
  }
  document.dispatchEvent(new Event("book:progress"));
}

// The token has done its work: the browser has a cookie now.
const address = new URL(location.href);
if (address.searchParams.has("token")) {
  address.searchParams.delete("token");
  history.replaceState(null, "", address);
}

let passed = {}, notebook; // what the reader has passed, with the day; the notebook of the page, if it is a chapter
progress();
const { chapter } = document.currentScript.dataset;
if (chapter) {
  notebook = new Notebook(chapter);
  notebook.begin().catch((error) => notebook.say(`This page cannot be live: ${reason(error)}`));
}
