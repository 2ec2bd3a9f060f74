// What the kernel knows of names: completions, and how a function is called.

import { acceptCompletion, autocompletion, completionStatus, startCompletion } from "@codemirror/autocomplete";
import { Prec, StateEffect, StateField } from "@codemirror/state";
import { EditorView, keymap, showTooltip } from "@codemirror/view";
import { element } from "./element.js";

const MOST_NAMES = 500;
const MOST_LINES = 14; // of a signature

// The place in a text of JavaScript that is `count` characters of Python from its beginning.
const place = (text, count) => [...text].slice(0, count).join("").length;

const source = (know) => async ({ state, pos, explicit }) => {
  const code = state.doc.toString();
  const reply = await know("complete_request", code, pos, explicit);
  if (!reply?.matches.length) return null;
  const kinds = new Map((reply.metadata?._jupyter_types_experimental ?? []).map(({ text, type }) => [text, type]));
  return {
    from: place(code, reply.cursor_start),
    to: place(code, reply.cursor_end),
    validFor: /^\w*$/,
    options: reply.matches.slice(0, MOST_NAMES).map((label) => ({
      label, type: kinds.get(label), ...(/(^|\.)_/.test(label) && { boost: -50 }), // private names come last
    })),
  };
};

// Of what IPython tells, the signature and the first sentence.
export function signature(told) {
  const parts = new Map();
  let part = "";
  for (const line of told.replace(/\x1b\[[\d;]*m/g, "").split("\n")) {
    const [, title, rest] = /^([A-Z][\w ]*?):(?:\s+(.*))?$/.exec(line) ?? [];
    if (title && ["Signature", "Init signature", "Call signature", "Docstring", "Init docstring", "Class docstring", "Call docstring", "Type", "Type:", "String form", "File", "Length", "Subclasses"].includes(title)) {
      part = title;
      parts.set(part, rest ? [rest] : []);
    } else parts.get(part)?.push(line);
  }
  const called = parts.get("Call signature") ?? parts.get("Signature") ?? parts.get("Init signature");
  if (!called) return "";
  const lines = called.join("\n").trim().split("\n");
  const about = (parts.get("Docstring") ?? []).join("\n").trim().split(/\n\s*\n/)[0].replace(/\s+/g, " ");
  return [...lines.slice(0, MOST_LINES), ...(lines.length > MOST_LINES ? ["…"] : []), ...(about ? ["", about] : [])].join("\n");
}

const tell = StateEffect.define();
const told = StateField.define({
  create: () => null,
  update: (value, transaction) => {
    for (const effect of transaction.effects) if (effect.is(tell)) return effect.value;
    if (!value || !transaction.docChanged && !transaction.selection) return value;
    // It stays while the arguments are written, and goes when the place is left.
    const pos = transaction.changes.mapPos(value.pos), { head } = transaction.state.selection.main;
    const between = head >= pos ? transaction.state.sliceDoc(pos, head) : "\n\n";
    const depth = [...between].reduce((sum, each) => sum + (each === "(" ? 1 : each === ")" ? -1 : 0), 0);
    return depth < 0 || /\n\s*\n/.test(between) ? null : { ...value, pos };
  },
  provide: (field) => showTooltip.from(field, (value) => value && {
    pos: value.pos,
    above: true,
    create: () => ({ dom: element("div", {}, element("pre", { class: "live-signature", role: "status" }, value.text)) }),
  }),
});

async function explain(view, know, asked) {
  const { state } = view, { head } = state.selection.main;
  const reply = await know("inspect_request", state.doc.toString(), head, asked);
  const text = reply?.found && signature(reply.data["text/plain"] ?? "");
  if (text && view.state.doc.eq(state.doc)) view.dispatch({ effects: tell.of({ pos: head, text }) });
}

// `know(type, code, cursor, asked)` asks the kernel.
export function knowledge(know) {
  return [
    autocompletion({ override: [source(know)], activateOnTyping: false, maxRenderedOptions: 100 }),
    told,
    Prec.highest(keymap.of([
      { key: "Escape", run: (view) => {
        if (!view.state.field(told)) return false;
        view.dispatch({ effects: tell.of(null) });
        return true;
      } },
      { key: "Ctrl-Shift-Space", run: (view) => { explain(view, know, true); return true; } },
      { key: "Tab", run: (view) => {
        if (completionStatus(view.state) === "active") return acceptCompletion(view);
        const { empty, head } = view.state.selection.main;
        return empty && /[\w.]$/.test(view.state.sliceDoc(Math.max(0, head - 1), head)) && startCompletion(view);
      } },
    ])),
    EditorView.updateListener.of((update) => {
      if (!update.transactions.some((each) => each.isUserEvent("input.type"))) return;
      const { head } = update.state.selection.main;
      if (update.state.sliceDoc(head - 1, head) === "(") explain(update.view, know, false);
    }),
    EditorView.domEventHandlers({ blur: (event, view) => { if (view.state.field(told)) view.dispatch({ effects: tell.of(null) }); } }),
  ];
}
