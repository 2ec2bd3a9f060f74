// Predictions, exercises, terms and asides. Without this script all of it can be read; with it, it can be answered and remembered.
// What the reader writes stays in this browser.

(() => {

const memory = {
  get(key) {
    try { return localStorage.getItem(`book:${key}`); } catch { return null; }
  },
  keys(beginning) {
    try {
      return Object.keys(localStorage).filter((key) => key.startsWith(`book:${beginning}`)).map((key) => key.slice("book:".length));
    } catch { return []; }
  },
  set(key, value) {
    try {
      if (value) localStorage.setItem(`book:${key}`, value);
      else localStorage.removeItem(`book:${key}`);
    } catch { /* a browser that stores nothing forgets at the end of the visit */ }
  },
};

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

const page = location.pathname.split("/").pop().replace(/\.html$/, "");
globalThis.book = { memory, element, page }; // for the scripts beside this one

// --- predictions: a list of choices, or a line to write on ---

for (const question of document.querySelectorAll(".book-predict")) {
  const key = `${page}:${question.id}`;
  const answered = memory.get(key) ?? "";
  const list = question.querySelector(":scope > ul");
  if (list) {
    const group = element("fieldset", { class: "book-choices" }, element("legend", { class: "book-visually-hidden" }, "Your answer"));
    [...list.children].forEach((item, index) => {
      const id = `${question.id}-${index}`;
      if (item.matches(".book-right")) question.dataset.right = index;
      const input = element("input", { type: "radio", name: question.id, id });
      input.checked = answered === String(index);
      input.addEventListener("change", () => memory.set(key, String(index)));
      const label = element("label", { for: id });
      label.append(...(item.children.length === 1 && item.firstElementChild.localName === "p" ? item.firstElementChild : item).childNodes);
      group.append(element("div", {}, input, label));
    });
    list.replaceWith(group);
  } else {
    const id = `${question.id}-answer`;
    const input = element("input", { type: "text", id, autocomplete: "off", placeholder: "Your answer, before you look" });
    input.value = answered;
    input.addEventListener("input", () => memory.set(key, input.value));
    question.append(element("div", { class: "book-answer" }, element("label", { for: id, class: "book-visually-hidden" }, "Your answer"), input));
  }
}

// The lid after a question asks for an answer first, and sets it beside what came out.
for (const lid of document.querySelectorAll("#book details.book-reveal")) {
  const question = [...document.querySelectorAll(".book-predict")].findLast((each) => each.compareDocumentPosition(lid) & Node.DOCUMENT_POSITION_FOLLOWING);
  const between = question && [...document.querySelectorAll("#book details.book-reveal")].find((each) => question.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING);
  if (between !== lid) continue;
  const summary = lid.querySelector("summary"), written = summary.textContent;
  const said = element("p", { class: "book-yours" });
  const answer = () => {
    const chosen = question.querySelector(".book-choices input:checked");
    if (!chosen) return [question.querySelector(".book-answer input")?.value.trim() ?? ""];
    return [...chosen.labels[0].cloneNode(true).childNodes];
  };
  const show = () => {
    const parts = answer(), given = parts.some((part) => (part.textContent ?? part).trim());
    summary.textContent = lid.open ? "Hide the answer" : given ? written : "Answer first, or look anyway";
    said.replaceChildren(element("b", {}, "You said: "), ...parts);
    if (given && !said.isConnected) summary.after(said);
    if (!given) said.remove();
  };
  question.addEventListener("input", show);
  lid.addEventListener("toggle", show);
  show();
}

// --- a page of questions whose right choices are marked: which chapters its reader can skip ---

const graded = [...document.querySelectorAll(".book-predict[data-right]")];
if (graded.length) {
  const button = element("button", { type: "button", class: "book-count" }, "Count my answers");
  const verdict = element("div", { class: "book-verdict", role: "status" });
  const after = (question) => [...document.querySelectorAll("#book details.book-reveal")].find((lid) => question.compareDocumentPosition(lid) & Node.DOCUMENT_POSITION_FOLLOWING);
  const chapter = (question) => [...after(question).querySelectorAll("a[href$=\".html\"]")].at(-1).cloneNode(true);
  const list = (title, questions) => questions.length ? [element("p", {}, element("b", {}, title)), element("ul", {}, ...questions.map((each) => element("li", {}, chapter(each))))] : [];
  button.addEventListener("click", () => {
    const said = (question) => question.querySelector(".book-choices input:checked")?.id.split("-").pop();
    const open = graded.filter((each) => said(each) === undefined);
    const right = graded.filter((each) => said(each) === each.dataset.right);
    const wrong = graded.filter((each) => !open.includes(each) && !right.includes(each));
    verdict.replaceChildren(
      element("p", {}, `${right.length} of ${graded.length} are right${open.length ? `, ${open.length} not answered yet` : ""}.`),
      ...list("Read", wrong), ...list("You can skip", right),
      ...(wrong.length ? [element("p", {}, "Begin with ", chapter(wrong[0]), ".")] : []));
  });
  const last = [...document.querySelectorAll("#book section:has(> h2)")].at(-1);
  last.append(element("p", {}, button), verdict);
}

// --- exercises: done or not ---

for (const head of document.querySelectorAll(".book-exercise-head[data-exercise]")) {
  const card = head.closest(".book-exercise");
  const key = `done:${head.dataset.exercise}`;
  const box = element("input", { type: "checkbox", id: `done-${head.dataset.exercise}` });
  const show = () => card.classList.toggle("book-done", box.checked);
  box.checked = memory.get(key) !== null;
  box.addEventListener("change", () => {
    memory.set(key, box.checked ? "1" : "");
    show();
    document.dispatchEvent(new Event("book:progress"));
  });
  card.querySelector(".book-exercise-actions").prepend(
    element("label", { class: "book-exercise-done" }, box, document.createTextNode("I have solved it")));
  show();
}

// --- terms: the definition beside the link ---

const terms = JSON.parse(document.getElementById("book-terms")?.textContent ?? "{}");
const bubble = element("div", { class: "book-definition book-above", role: "tooltip", id: "book-definition", hidden: "" });
if (Object.keys(terms).length) document.body.append(bubble);
let asked = null;

const hide = () => {
  bubble.hidden = true;
  asked?.removeAttribute("aria-describedby");
  asked = null;
};

const define = (link, slug) => {
  hide();
  asked = link;
  const more = element("a", { href: link.href, tabindex: "-1" }, "Glossary");
  bubble.replaceChildren(...terms[slug].split(/(`[^`]+`)/).map((part) =>
    part.startsWith("`") ? element("code", {}, part.slice(1, -1)) : part), " ", more);
  bubble.hidden = false;
  link.setAttribute("aria-describedby", bubble.id);
  const at = link.getClientRects()[0] ?? link.getBoundingClientRect();
  const width = Math.min(352, document.documentElement.clientWidth - 16);
  bubble.style.width = `${width}px`;
  const below = at.bottom + bubble.offsetHeight + 12 < innerHeight || at.top < bubble.offsetHeight + 12;
  bubble.style.top = `${scrollY + (below ? at.bottom + 6 : at.top - bubble.offsetHeight - 6)}px`;
  bubble.style.left = `${Math.max(8, Math.min(at.left, document.documentElement.clientWidth - width - 8))}px`;
};

for (const link of document.querySelectorAll('#book a[href*="glossary.html#"]')) {
  const slug = link.hash.slice(1);
  if (!terms[slug]) continue;
  link.classList.add("book-term");
  let touched = false;
  link.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") define(link, slug); });
  link.addEventListener("pointerdown", (event) => { touched = event.pointerType !== "mouse"; });
  link.addEventListener("focus", () => { if (!touched) define(link, slug); });
  link.addEventListener("click", (event) => {
    if (!touched || asked === link) return; // a second tap follows the link
    event.preventDefault();
    define(link, slug);
  });
  link.addEventListener("blur", hide);
  link.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse" && !bubble.contains(event.relatedTarget)) hide();
  });
}
bubble.addEventListener("pointerleave", hide);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
document.addEventListener("pointerdown", (event) => { if (!bubble.contains(event.target) && event.target !== asked) hide(); });

// --- asides stand open in a margin that is wide enough ---

const margin = matchMedia("(min-width: 1280px)");
const place = () => {
  for (const aside of document.querySelectorAll("details.book-aside")) {
    aside.removeAttribute("name"); // those of one name would close each other
    aside.open = margin.matches;
  }
};
margin.addEventListener("change", place);
place();

// --- a step of a figure is in view, between its controls and the end of the window ---

for (const figure of document.querySelectorAll("#book .viz-figure")) {
  const follow = () => requestAnimationFrame(() => {
    const now = figure.querySelector(".viz-now"), bar = figure.querySelector(":scope > .viz-bar:not([hidden])");
    if (!now?.checkVisibility() || !bar) return;
    const { top, bottom } = now.getBoundingClientRect(), above = bar.getBoundingClientRect().bottom + 8;
    if (top < above) scrollBy(0, top - above);
    else if (bottom > innerHeight - 8) scrollBy(0, Math.min(bottom - innerHeight + 8, top - above));
  });
  for (const kind of ["click", "input", "keydown"]) figure.addEventListener(kind, (event) => {
    if (event.target.closest(".viz-bar") || kind === "keydown") follow();
  });
}

// --- what is wider than its column (a drawing, a formula, a table) scrolls from the keyboard, too, and fades where it goes on ---

const WIDE = "#book :is(figure.viz, .output.text_html, .pst-scrollable-table-container, .viz-scroll, div.math, mjx-container[display=true])";
const edges = (each) => {
  const hidden = each.scrollWidth - each.clientWidth, scrolls = hidden > 1 && /auto|scroll/.test(getComputedStyle(each).overflowX);
  const at = each.scrollLeft;
  each.dataset.more = scrolls ? [at > 1 ? "left" : "", at < hidden - 1 ? "right" : ""].join(" ").trim() : "";
  if (scrolls && !each.hasAttribute("tabindex")) { each.tabIndex = 0; each.dataset.reached = ""; }
  if (!scrolls && "reached" in each.dataset) { each.removeAttribute("tabindex"); delete each.dataset.reached; }
};
const sized = new ResizeObserver((changed) => changed.forEach(({ target }) => edges(target)));
const watch_wide = () => {
  for (const each of document.querySelectorAll(WIDE)) if (!("more" in each.dataset)) {
    edges(each);
    each.addEventListener("scroll", () => edges(each), { passive: true });
    sized.observe(each);
  }
};
watch_wide();
addEventListener("load", () => globalThis.MathJax?.startup?.promise?.then(watch_wide)); // which makes the formulas

// Code that scrolls is reached by Tab. The theme sees to it when the window changes; code may find its width later than the window.
const reached = new ResizeObserver((changed) => changed.forEach(({ target }) => { target.tabIndex = target.scrollWidth > target.clientWidth ? 0 : -1; }));
for (const each of document.querySelectorAll("#book pre")) reached.observe(each);

// --- letters of a drawing that shrinks with the window do not shrink below nine pixels ---

const LETTERS = "#book :is(figure.viz, .viz-figure, .output.text_html) svg :is(text, tspan[font-size], tspan[style*=font-size])", SMALLEST = 9;
const designed = new Map(); // the size that a text itself says, if it does
const legible = () => {
  const texts = [...document.querySelectorAll(LETTERS)];
  for (const text of texts) {
    if (!designed.has(text)) designed.set(text, text.style.fontSize);
    text.style.fontSize = designed.get(text);
  }
  const sizes = texts.map((text) => { // all are measured before any changes, so that the page is laid out once
    const to_screen = text.getScreenCTM(), size = parseFloat(getComputedStyle(text).fontSize);
    const pixels = to_screen ? size * Math.hypot(to_screen.b, to_screen.d) : 0; // none behind a lid
    return pixels && pixels < SMALLEST ? size * (SMALLEST + 0.05) / pixels : 0;
  });
  for (const [i, size] of sizes.entries()) if (size) texts[i].style.fontSize = `${size}px`;
};
let resized = 0;
const soon = () => { cancelAnimationFrame(resized); resized = requestAnimationFrame(legible); };
addEventListener("load", soon);
addEventListener("resize", soon);
const drawn = new ResizeObserver(soon); // a drawing may find its width later than the window
for (const each of document.querySelectorAll("#book :is(figure.viz, .viz-figure, .output.text_html) svg")) drawn.observe(each);
document.addEventListener("toggle", soon, { capture: true });

// --- the link that skips the contents leads into the text, not to the buttons above it ---

document.querySelector(".skip-link a")?.addEventListener("click", (event) => {
  const text = document.getElementById("book");
  if (!text) return;
  event.preventDefault();
  history.replaceState(null, "", event.currentTarget.hash);
  text.setAttribute("tabindex", "-1");
  text.focus();
});

// --- a search hit is in view: the first in its section that can be seen ---

addEventListener("load", () => setTimeout(() => {
  const section = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const hits = [...(section?.closest("section, dl") ?? document).querySelectorAll("#book .highlighted")];
  hits.find((hit) => hit.checkVisibility())?.scrollIntoView({ block: "center" });
}, 60));

})();
