// Search as you type: sections of the book, those that teach a name first. Index and texts come from `tools/site/search.py`.
// `book.find` looks, `show` makes links of what was found; in the dialog of each page, and on the page of results.

(() => {

const { element } = book;
const root = document.documentElement.dataset.content_root ?? "./";
const FEW = 8, MANY = 40;
const QUOTED = 14; // pages whose texts are loaded for excerpts, at most: with the index 300 kB
const PAUSE = 150; // milliseconds without typing before they are

const load = (path) => new Promise((done, failed) => {
  const script = element("script", { src: `${root}_static/${path}` });
  script.onload = done;
  script.onerror = failed;
  document.head.append(script);
});

const letters = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
const stem = (word) => (word.length > 5 ? word.replace(/(ing|es|ed|s)$/, "") : word.length > 3 ? word.replace(/s$/, "") : word);
const stems = (text) => letters(text).map(stem);

// --- the index ---

let known = null; // { sections, words, names, asked, stop }
book.index = ({ pages, words, names, asked, stop }) => {
  const sections = pages.flatMap(([page, chapter, parts]) =>
    parts.map(([anchor, title], at) => ({ page, chapter, anchor, title, at, low: title.toLowerCase() })));
  const list = words.split("\n").map((line) => {
    const [word, steps] = line.split(" ");
    let place = 0;
    const places = [...steps.matchAll(/([a-z]*[A-Z])(\*?)/g)].map(([, letters, often]) => {
      place += [...letters.toLowerCase()].reduce((sum, letter) => 26 * sum + letter.charCodeAt() - 97, 0);
      return [place, Boolean(often)];
    });
    return { word, places };
  });
  known = { sections, words: list, names: names.map(([name, places]) => [name.toLowerCase(), places]),
    asked: asked.map(([phrase, place]) => [stems(phrase), place]), stop: new Set(stop.split(" ")) };
};
let asked = null;
const ready = () => asked ??= load("search-index.js");

const texts = new Map();
book.quote = ({ page, texts: parts }) => texts.set(page, parts);
const fetched = new Map();
const text_of = async ({ page, at }) => {
  if (!fetched.has(page)) {
    if (fetched.size >= QUOTED) return "";
    fetched.set(page, load(`search/${page.replaceAll("/", "-")}.index.js`).catch(() => {}));
  }
  await fetched.get(page);
  return texts.get(page)?.[at] ?? "";
};

// --- looking ---

const tokens = (query) => {
  const all = letters(query);
  const told = all.filter((word) => word.length > 1 && !known.stop.has(word));
  return told.length ? told : all.slice(-1);
};

// how well a word of the book answers one of the query
const likeness = (word, asked, root) =>
  word === asked ? 4 : word.startsWith(asked) ? 2 : root.length > 2 && word.startsWith(root) ? 1.5 : asked.length > 2 && word.includes(asked) ? 1 : 0;

book.find = (query) => {
  const wanted = tokens(query), whole = query.trim().toLowerCase();
  const scores = new Map(); // of each section: for each word of the query how well it is answered
  wanted.forEach((asked, index) => {
    const root = stem(asked);
    for (const { word, places } of known.words) {
      const value = likeness(word, asked, root);
      if (value) for (const [place, often] of places) {
        const row = scores.get(place) ?? scores.set(place, wanted.map(() => 0)).get(place);
        row[index] = Math.max(row[index], often ? value * 1.5 : value);
      }
    }
  });
  const taught = new Map(), said = stems(query);
  for (const [phrase, place] of known.asked) {
    if (phrase.every((word) => said.includes(word))) taught.set(place, Math.max(phrase.length === said.length ? 60 : 20 + 8 * phrase.length, taught.get(place) ?? 0));
  }
  let found = [...scores];
  const complete = found.filter(([place, row]) => row.every(Boolean) || taught.has(place));
  if (complete.length) found = complete;
  for (const [name, places] of known.names) {
    const last = name.split(".").at(-1);
    const value = name === whole || last === whole ? 30 : wanted.length === 1 && last.startsWith(wanted[0]) ? 8 : wanted.includes(last) ? 8 : 0;
    if (value) places.forEach((place) => taught.set(place, Math.max(value, taught.get(place) ?? 0)));
  }
  return found.map(([place, row]) => {
    const section = known.sections[place], chapter = section.chapter.toLowerCase();
    let score = row.reduce((sum, value) => sum + value, 0) + (taught.get(place) ?? 0);
    if (section.low === whole || section.low.endsWith(`.${whole}`)) score += 25;
    for (const asked of wanted) {
      if (section.low.includes(asked)) score += section.low.split(/[^\p{L}\p{N}_]+/u).includes(asked) ? 12 : 6;
      if (chapter.includes(asked)) score += 2;
    }
    return { ...section, score, place };
  }).sort((a, b) => b.score - a.score || a.place - b.place);
};

// --- what was meant, if the book does not have a word: the nearest name, title or word ---

// How many letters have to be added, left out, replaced or swapped with the next to make one of the other; `most` and more are not told apart.
const distance = (a, b, most) => {
  if (Math.abs(a.length - b.length) >= most) return most;
  let before = [], row = [...Array(b.length + 1).keys()];
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] !== b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) next[j] = Math.min(next[j], before[j - 2] + 1);
    }
    [before, row] = [row, next];
  }
  return row[b.length];
};

const near = (query) => {
  const whole = query.trim().toLowerCase(), most = whole.length < 4 ? 2 : whole.length < 9 ? 3 : 4;
  const titles = known.sections.map(({ low }) => low), names = known.names.flatMap(([name]) => [name, name.split(".").at(-1)]);
  let best = "", least = most;
  for (const each of [...names, ...titles, ...known.words.map(({ word }) => word)]) {
    const far = distance(whole, each, least);
    if (far < least) [best, least] = [each, far];
  }
  return best;
};

// --- showing ---

const pattern = (wanted) => new RegExp(`(${wanted.map((word) => stem(word).replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "iu");
const marked = (text, wanted) => text.split(pattern(wanted)).map((part, at) => (at % 2 ? element("mark", {}, part) : part));

const excerpt = (text, wanted) => {
  const at = Math.max(0, text.search(pattern(wanted)));
  let from = at < 60 ? 0 : text.lastIndexOf(" ", at - 50) + 1;
  const quoted = text.slice(from, from + 170);
  return `${from ? "… " : ""}${quoted.length < text.length - from ? quoted.slice(0, quoted.lastIndexOf(" ")) + " …" : quoted}`;
};

const address = ({ page, anchor }, wanted) =>
  `${root}${page}.html?highlight=${encodeURIComponent(wanted.map(stem).join(" "))}${anchor ? `#${anchor}` : ""}`;

let pause = 0, sight = null;
const show = (query, list, status, most, again) => {
  const waiting = new Map(); // from a hit to what loads its excerpt
  if (!known || !query.trim()) {
    list.replaceChildren();
    status.textContent = "";
    return;
  }
  const wanted = tokens(query), found = book.find(query), shown = found.slice(0, most);
  const count = found.length === 1 ? "1 section" : `${found.length} sections`;
  const none = "Your search did not match any documents.";
  status.textContent = found.length ? (shown.length < found.length ? `${count} found, the best ${most} of them here` : `${count} found`)
    : `${none} Try fewer words, or the beginning of one.`;
  const strange = wanted.some((asked) => !known.words.some(({ word }) => likeness(word, asked, stem(asked))));
  const meant = strange ? near(query) : "";
  if (meant) {
    const button = element("button", { type: "button", class: "book-meant" }, meant);
    button.addEventListener("click", () => again(meant));
    status.replaceChildren(found.length ? `${count} found.` : none, " Did you mean ", button, "?");
  }
  list.replaceChildren(...shown.map((section) => {
    const title = element("span", { class: "book-hit-title" }, ...marked(section.anchor ? section.title : section.chapter, wanted));
    const where = element("span", { class: "book-hit-page" }, section.anchor ? section.chapter : "");
    const quoted = element("span", { class: "book-hit-text" });
    const quote = () => text_of(section).then((text) => text && quoted.replaceChildren(...marked(excerpt(text, wanted), wanted)));
    const hit = element("li", {}, element("a", { href: address(section, wanted) }, title, ...(section.anchor ? [" ", where] : []), " ", quoted));
    waiting.set(hit, quote);
    return hit;
  }));
  clearTimeout(pause);
  sight?.disconnect();
  sight = new IntersectionObserver((seen) => { // texts are loaded for what comes into view, and for no more
    for (const { isIntersecting, target } of seen) if (isIntersecting) {
      sight.unobserve(target);
      waiting.get(target)?.();
    }
  }, { rootMargin: "200px 0px" });
  pause = setTimeout(() => waiting.forEach((quote, hit) => sight.observe(hit)), PAUSE);
};

// --- in the dialog of each page, and on the page of results ---

const begin = (form, list, status, most) => {
  const input = form.querySelector("input[name=q]");
  const again = (query) => {
    input.value = query;
    input.dispatchEvent(new Event("input"));
    input.focus();
  };
  const look = () => ready().then(() => show(input.value, list, status, most, again), () => { status.textContent = "The index could not be loaded."; });
  input.addEventListener("focus", () => ready().catch(() => {}), { once: true });
  input.addEventListener("input", look);
  const links = () => [...list.querySelectorAll("a")];
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && links().length) { event.preventDefault(); links()[0].focus(); }
  });
  list.addEventListener("keydown", (event) => {
    const all = links(), at = all.indexOf(document.activeElement);
    const to = { ArrowDown: Math.min(at + 1, all.length - 1), ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    (all[to] ?? input).focus();
  });
  return { input, look };
};

const dialog = document.getElementById("pst-search-dialog");
if (dialog) {
  const list = element("ul", { class: "search" }), status = element("p", { class: "book-search-status", role: "status" });
  dialog.append(element("div", { class: "book-hits" }, status, list));
  begin(dialog.querySelector("form"), list, status, FEW);
  list.addEventListener("click", (event) => { if (event.target.closest("a")) dialog.close(); }); // to a section of this very page
}

const results = document.getElementById("search-results");
if (results) {
  const list = element("ul", { class: "search" }), status = element("p", { class: "search-summary", role: "status" });
  results.append(status, list);
  const { input, look } = begin(document.querySelector(".bd-search-container form"), list, status, MANY);
  input.value = new URLSearchParams(location.search).get("q") ?? "";
  input.addEventListener("input", () => history.replaceState(null, "", `?q=${encodeURIComponent(input.value)}`));
  look();
}

})();
