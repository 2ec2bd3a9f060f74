// The reader's way through the book: what is solved and read, where they stopped, keys to the neighbors. All of it stays in this browser.
// Who solves an exercise elsewhere on a page writes `book:done:CHAPTER.NAME` and dispatches `book:progress`.

(() => {

const { memory, element, page } = book;
const root = new URL(document.documentElement.dataset.content_root ?? "./", location.href);
const hidden = (text) => element("span", { class: "book-visually-hidden" }, text);
const chapter_of = (link) => new URL(link.href).pathname.split("/").pop().replace(/\.html$/, "");
const contents = [...document.querySelectorAll(".bd-docs-nav a[data-exercises]")];
const here = contents.find((link) => chapter_of(link) === page);
const solved_of = (chapter) => memory.keys(`done:${chapter}.`).length;

// --- the contents: how many exercises of a chapter are solved, or that it was read ---

const show_contents = () => {
  for (const link of contents) {
    const chapter = chapter_of(link), all = Number(link.dataset.exercises), solved = Math.min(all, solved_of(chapter));
    const [mark, told] = solved === all ? ["✓", "all exercises solved"]
      : solved ? [`${solved}/${all}`, `${solved} of ${all} exercises solved`]
      : memory.get(`read:${chapter}`) ? ["read", "read"] : ["", ""];
    link.querySelector(".book-mark")?.remove();
    if (mark) link.append(element("span", { class: "book-mark", title: told }, element("span", { "aria-hidden": "true" }, mark), hidden(`, ${told}`)));
  }
};

// The contents scroll to the current chapter, where it would not be in view.
const show_here = () => {
  const nav = document.querySelector(".sidebar-primary-item:has(.bd-docs-nav)"), link = nav?.querySelector("li.current > a");
  if (!link?.checkVisibility()) return;
  const { top, bottom } = link.getBoundingClientRect(), { top: above, height } = nav.getBoundingClientRect();
  if (top < above || bottom > innerHeight) nav.scrollTop += top - above - height / 2;
};
addEventListener("load", show_here);

// --- the page of all exercises ---

const table_of_exercises = () => {
  const rows = [...document.querySelectorAll("#book tbody tr")].map((row) => {
    const link = row.querySelector("td a");
    return { row, link, name: `${chapter_of(link)}.${[...link.closest("td").querySelectorAll("code")].at(-1).textContent.trim()}` };
  });
  if (!rows.length) return () => {};
  for (const head of document.querySelectorAll("#book thead tr")) head.prepend(element("th", { class: "head book-solved", scope: "col" }, element("span", { "aria-hidden": "true" }, "✓"), hidden("Solved")));
  for (const each of rows) {
    const box = each.box = element("input", { type: "checkbox", "aria-label": `I have solved ${each.name}` });
    box.addEventListener("change", () => { memory.set(`done:${each.name}`, box.checked ? "1" : ""); tell(); });
    each.row.prepend(element("td", { class: "book-solved" }, box));
  }
  const summary = element("p", { class: "book-progress", role: "status" });
  const forget = element("button", { type: "button", class: "book-forget" }, "Forget my progress in this browser");
  forget.addEventListener("click", () => {
    if (!confirm("Forget which exercises you have solved, what you answered, and where you stopped, in this browser?")) return;
    memory.keys("").forEach((key) => memory.set(key, ""));
    tell();
  });
  document.querySelector("#book h1").nextElementSibling.after(summary);
  return () => {
    for (const { name, box } of rows) box.checked = memory.get(`done:${name}`) !== null;
    const done = rows.filter(({ box }) => box.checked).length, next = rows.find(({ box }) => !box.checked);
    const way = next ? [" Next: ", element("a", { href: next.link.href }, next.link.textContent.trim()), "."] : [];
    summary.replaceChildren(`You have solved ${done} of ${rows.length}.`, ...(done ? way : []), " ", ...(memory.keys("").length ? [forget] : []));
  };
};

const show_exercises = document.querySelector(".book-page-exercises") ? table_of_exercises() : () => {};
const show = () => { show_contents(); show_exercises(); };
const tell = () => document.dispatchEvent(new Event("book:progress"));
document.addEventListener("book:progress", show);
addEventListener("storage", (event) => { if (event.key?.startsWith("book:")) show(); });
show();

// --- where the reader stops: the section at the top of the window; at the end of a chapter the next one ---

const path_of = (address) => decodeURI(new URL(address).pathname).slice(decodeURI(root.pathname).length);
const neighbor = (direction) => document.querySelector(`.book-prev-next a[rel=${direction}]`);
const name_of = (link) => [...link.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join("").trim();

const ENOUGH = 30; // seconds on a page, in sight: to scroll through it is not to read it

if (here) {
  let spent = 0;
  const clock = setInterval(() => {
    if (!document.hidden) spent += 1;
    if (spent < ENOUGH) return;
    clearInterval(clock);
    if (end.getBoundingClientRect().top < innerHeight) note();
  }, 1000);
  const sections = [...document.querySelectorAll("#book section[id]")].filter((section) => section.querySelector(":scope > h2"));
  const end = document.querySelector(".book-prev-next");
  const note = () => {
    const chapter = name_of(here), next = neighbor("next");
    if (end.getBoundingClientRect().top < innerHeight && spent >= ENOUGH) {
      memory.set(`read:${page}`, "1");
      show_contents();
      if (next) memory.set("place", JSON.stringify({ path: path_of(next.href), chapter: name_of(next), section: "" }));
      return;
    }
    const at = sections.findLast((section) => section.getBoundingClientRect().top < innerHeight / 2);
    const title = at?.querySelector("h2").cloneNode(true);
    title?.querySelector(".headerlink")?.remove();
    memory.set("place", JSON.stringify({ path: path_of(location.href) + (at ? `#${at.id}` : ""), chapter, section: title?.textContent ?? "" }));
  };
  let waiting = 0;
  addEventListener("scroll", () => { waiting ||= setTimeout(() => { waiting = 0; note(); }, 400); }, { passive: true });
}

const start = document.querySelector("#book[data-start] h1");
if (start) {
  let place = null;
  try { place = JSON.parse(memory.get("place")); } catch { /* nothing that can be read */ }
  if (/^book\/[\w/-]+\.html(#[^"<>]*)?$/.test(place?.path ?? "")) {
    const link = element("a", { href: new URL(place.path, root).href }, element("b", {}, place.chapter), ...(place.section ? [`, ${place.section}`] : []));
    start.after(element("p", { class: "book-go-on" }, element("span", {}, "Go on where you stopped"), link));
  }
}

// --- keys: Shift with an arrow turns the page, but not where arrows mean something else ---

const OTHERS = "input, textarea, select, button, summary, [contenteditable], [role=slider], [role=textbox], .viz-figure, dialog[open], pre";
addEventListener("keydown", (event) => {
  const direction = { ArrowRight: "next", ArrowLeft: "prev" }[event.key];
  if (!direction || !event.shiftKey || event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || event.isComposing) return;
  if (event.target.closest?.(OTHERS) || document.querySelector("dialog[open]") || !getSelection().isCollapsed) return;
  const link = neighbor(direction);
  if (link) { event.preventDefault(); link.click(); }
});

})();
