// A place to write Python, with the book's face and colors.

import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Prec } from "@codemirror/state";
import { drawSelection, EditorView, keymap } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { knowledge } from "./knowledge.js";

// The tabulator key walks through the page, and indents only after something was typed or clicked: nobody is caught in a cell.
// Escape makes it walk again.
function walkingTab() {
  let pointer = false;
  return [
    EditorView.domEventHandlers({
      mousedown: () => { pointer = true; },
      focus: (event, view) => { view.setTabFocusMode(!pointer); },
      blur: () => { pointer = false; },
    }),
    EditorView.updateListener.of((update) => {
      if (update.transactions.some((each) => each.isUserEvent("input") || each.isUserEvent("delete"))) update.view.setTabFocusMode(false);
    }),
    Prec.high(keymap.of([{ key: "Escape", run: (view) => { view.setTabFocusMode(true); return false; } }])),
  ];
}

// `keys` are key bindings of the page, `changed` is called with each new text, `know` asks the kernel.
export function editor({ text, label, help, keys, changed, know }) {
  const view = new EditorView({
    state: EditorState.create({
      doc: text,
      extensions: [
        Prec.highest(keymap.of(keys)),
        knowledge(know),
        walkingTab(),
        history(),
        drawSelection(),
        python(),
        indentUnit.of("    "),
        indentOnInput(),
        bracketMatching(),
        syntaxHighlighting(classHighlighter),
        keymap.of([indentWithTab, ...defaultKeymap, ...historyKeymap]),
        matchMedia("(min-width: 768px)").matches ? EditorView.lineWrapping : [], // as the book's own code
        EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": help, spellcheck: "false", tabindex: "0" }),
        EditorView.updateListener.of((update) => { if (update.docChanged) changed(update.state.doc.toString()); }),
      ],
    }),
  });
  // What is typed here is for this cell: the page's own keys, such as those for the next chapter, do not hear it.
  view.dom.addEventListener("keydown", (event) => { if (!event.ctrlKey && !event.metaKey) event.stopPropagation(); });
  return view;
}
