// Formulas: of MathJax, what the book uses, under the names that MathJax's own file gives them. That file weighs 110 kB more.

import { mathjax } from "mathjax-full/js/mathjax.js";
import { TeX } from "mathjax-full/js/input/tex.js";
import "mathjax-full/js/input/tex/base/BaseConfiguration.js";
import "mathjax-full/js/input/tex/ams/AmsConfiguration.js";
import { CHTML } from "mathjax-full/js/output/chtml.js";
import { browserAdaptor } from "mathjax-full/js/adaptors/browserAdaptor.js";
import { RegisterHTMLHandler } from "mathjax-full/js/handlers/html.js";
import { AssistiveMmlHandler } from "mathjax-full/js/a11y/assistive-mml.js";

const { options, startup } = globalThis.MathJax ?? {};
AssistiveMmlHandler(RegisterHTMLHandler(browserAdaptor()));
const formulas = mathjax.document(document, {
  processHtmlClass: options?.processHtmlClass,
  InputJax: new TeX({ packages: ["base", "ams"] }),
  OutputJax: new CHTML({ fontURL: new URL("output/chtml/fonts/woff-v2", document.currentScript.src).href }),
});
const set = () => mathjax.handleRetriesFor(() => formulas.render());

globalThis.MathJax = {
  startup: { promise: startup?.typeset === false ? Promise.resolve() : set() },
  typesetPromise(parts) {
    formulas.options.elements = parts;
    formulas.reset();
    return set();
  },
};
