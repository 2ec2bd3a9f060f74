// On paper nothing can be opened or stepped through. So before a page is printed, answers, hints, solutions and folded code go to its
// end, all other lids open, and a figure with steps shows the step that tells most. Afterwards all is as it was.

(() => {

const { element } = book;
const article = document.getElementById("book");
if (!article) return;

const LONG = 48; // lines of code

let undo = [];
const and_back = (act) => undo.push(act);

// Something is put where another thing stands, until all is undone.
const swap = (there, instead) => {
  there.replaceWith(instead);
  and_back(() => instead.replaceWith(there));
};
const added = (made, add) => {
  add(made);
  and_back(() => made.remove());
};
const open = (details) => {
  if (details.open) return;
  details.open = true;
  and_back(() => { details.open = false; });
};

// What is behind a lid, taken out of it, with the words on the lid before it.
const behind = (details, label) => {
  const inside = [...details.childNodes].filter((node) => node.localName !== "summary");
  and_back(() => details.append(...inside));
  const parts = inside.filter((node) => node.localName !== "div" || node.hasChildNodes()); // an empty one would let a heading stand alone
  const first = parts.find((node) => node.nodeType === 1);
  if (label && first?.localName === "p") added(element("b", {}, `${label}. `), (made) => first.prepend(made));
  else if (label) parts.unshift(element("p", { class: "book-lid" }, label));
  return parts;
};

const number = /\d+/.exec(article.querySelector(".book-eyebrow")?.textContent ?? "")?.[0];
const numbered = (count) => (number ? `${number}.${count}` : `${count}`);
const reference = (text, id, name) => element("p", { class: "book-at-the-end" }, text, element("a", { href: `#${id}` }, name));
const told = (id, title, parts) => element("div", { class: "book-answered", id }, element("h3", {}, title), ...parts);

function answers() {
  const found = [];
  let count = 0;
  for (const each of article.querySelectorAll(".book-predict, details.book-reveal")) {
    if (each.matches(".book-predict")) {
      count += 1;
      const title = each.querySelector(".book-predict-title");
      if (title) added(document.createTextNode(` ${numbered(count)}`), (text) => title.append(text));
      continue;
    }
    const id = `answer-${found.length + 1}`, name = `Prediction ${numbered(count || found.length + 1)}`;
    swap(each, reference("The answer stands at the end of the chapter: ", id, name));
    found.push(told(id, name, behind(each)));
  }
  return found;
}

function solutions() {
  return [...article.querySelectorAll(".book-exercise-foot")].map((foot, index) => {
    const card = foot.closest(".book-exercise"), id = `solution-${index + 1}`;
    const label = card.querySelector(".book-exercise-number").textContent;
    const title = card.querySelector("h2, h3, h4").firstChild.textContent;
    swap(foot, reference("Hints and a solution stand at the end of the chapter: ", id, label));
    const lids = [...foot.querySelectorAll("details")];
    return told(id, `${label}: ${title}`, lids.flatMap((lid) => behind(lid, lid.querySelector("summary").textContent)));
  });
}

// Code that is folded away on the page, but for the set-up, which is the same in each chapter.
function folded() {
  return [...article.querySelectorAll("div.cell:not(.tag_hide-cell) > details.hide")].map((details, index) => {
    const id = `folded-${index + 1}`, name = `Folded code ${numbered(index + 1)}`;
    const lid = details.querySelector("summary .collapsed")?.textContent.trim() ?? "";
    swap(details, reference("The code behind this stands at the end of the chapter: ", id, name));
    const title = lid.startsWith("Show the code") ? name : `${name}: ${lid}`;
    return told(id, title, [element("div", { class: "cell" }, ...behind(details))]);
  });
}

// A figure that asks to be stepped through is shown as after its last step; the others begin where they tell most.
function figures() {
  for (const figure of article.querySelectorAll(".viz-figure")) {
    const range = figure.querySelector(":scope > .viz-bar:not([hidden]) .viz-range"), status = figure.querySelector(".viz-status");
    if (!range || !/▶|^Step through/.test(status?.textContent ?? "")) continue;
    const before = range.value;
    range.value = range.max;
    range.oninput?.();
    and_back(() => { range.value = before; range.oninput?.(); });
  }
}

const prepare = () => {
  if (undo.length) return;
  and_back(() => {});
  for (const [title, id, parts] of [
    ["Answers to the predictions", "answers", answers()],
    ["Hints and solutions", "solutions", solutions()],
    ["Folded code", "folded", folded()],
  ]) {
    const end = article.querySelector(":scope > section") ?? article;
    if (parts.length) added(element("section", { class: "book-at-the-end-of", id }, element("h2", {}, title), ...parts), (made) => end.append(made));
  }
  for (const details of article.querySelectorAll("details:not([open])")) open(details);
  figures();
  for (const pre of article.querySelectorAll("pre")) { // longer than a page: it breaks where it stands
    if (pre.textContent.split("\n").length < LONG) continue;
    pre.classList.add("book-long");
    and_back(() => pre.classList.remove("book-long"));
  }
};

addEventListener("beforeprint", prepare);
addEventListener("afterprint", () => {
  if ("paper" in document.documentElement.dataset) return; // who printed it wants it to stay so
  for (const act of undo.splice(0).reverse()) act();
});

})();
