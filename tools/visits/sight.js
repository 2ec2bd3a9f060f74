// What a reader would see to be wrong on a page. Each function looks at the page as it is now and gives a line for each fault; `dots`
// first moves the figures to their last step. `tools/visits/sight.py` says when each is called, `tests/site/gallery/test_sight.py` plants the faults.

(async () => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const words = (element) => (element.innerText ?? element.textContent ?? "").trim().replace(/\s+/g, " ");
  const short = (text) => (text.length > 90 ? text.slice(0, 90) + "…" : text);
  const seen = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const size = (text) => parseFloat(text) || 0;
  const clear = (color) => /^(none|transparent|rgba\(.*, 0\)|.*\/ 0\))$/.test(color);
  const name = (figure) => figure.getAttribute("aria-label") ?? figure.className;
  const figures = () => all(".viz-figure").filter((figure) => seen(figure) || figure.checkVisibility());

  const to_end = async () => {
    for (const figure of figures()) figure.dispatchEvent(new KeyboardEvent("keydown", { key: "End" }));
    // even the shortest transition takes a frame, and what is inherited comes a frame later at each level
    // (behind a closed lid those that are finished stay in the list)
    for (let quiet = 0, frames = 0; quiet < 3 && frames < 120; frames++) {
      await new Promise((done) => (requestAnimationFrame(done), setTimeout(done, 1000)));
      quiet = document.getAnimations().some((each) => each.playState !== "finished") ? 0 : quiet + 1;
    }
  };

  const sight = {
    // The figure of the cache: a dot in each row, round, in its own ink, inside of the frame; and the lines of the programs' lives.
    async dots() {
      await to_end();
      const found = [];
      for (const figure of figures().filter((figure) => figure.matches(".viz-jit-cache"))) {
        const frame = figure.getBoundingClientRect(), rows = all("tbody tr", figure);
        const ground = getComputedStyle(document.body).backgroundColor;
        for (const row of rows) {
          const missing = row.dataset.program === "-1" ? [] : ["circle"];
          const circle = row.querySelector("circle");
          const number = row.firstElementChild.textContent;
          if (missing.length && !circle) found.push(`${name(figure)}: call ${number} has no dot`);
          if (!circle) continue;
          const box = circle.getBoundingClientRect(), style = getComputedStyle(circle);
          if (box.width < 8 || Math.abs(box.width - box.height) > 1) found.push(`${name(figure)}: the dot of call ${number} is ${box.width} by ${box.height}`);
          if (box.left < frame.left || box.right > frame.right)
            found.push(`${name(figure)}: the dot of call ${number} lies at ${Math.round(box.left)} to ${Math.round(box.right)}, outside of the frame (${Math.round(frame.left)} to ${Math.round(frame.right)})`);
          if (!seen(circle) || size(style.strokeWidth) < 1 || clear(style.stroke) || style.stroke === ground)
            found.push(`${name(figure)}: the dot of call ${number} cannot be seen`);
        }
        for (const cell of all(".viz-jit-cache-there, .viz-jit-cache-born", figure)) {
          const style = getComputedStyle(cell);
          if (style.backgroundImage === "none" || size(style.backgroundSize) < 0.5) found.push(`${name(figure)}: a program's line of life is not drawn`);
        }
      }
      return found;
    },

    // The row of the current step has a bar at its left and a tint.
    async markers() {
      await to_end();
      const found = [];
      for (const figure of figures().filter((figure) => figure.matches(".viz-passes, .viz-jit-cache, .viz-batch, .viz-trace"))) {
        if (!figure.querySelector(".viz-bar:not([hidden])")) { found.push(`${name(figure)}: its script did not run`); continue; }
        const last = all("tbody tr, .viz-trace-source > li", figure);
        const now = all(".viz-now", figure);
        if (last.length && !now.length && !figure.matches(".viz-trace")) found.push(`${name(figure)}: no row is marked at the last step`);
        for (const row of now) {
          if (!row.checkVisibility()) continue;
          const bar = getComputedStyle(row.localName === "tr" ? row.querySelector("th") : row);
          if (size(bar.borderLeftWidth) < 3 || bar.borderLeftStyle === "none" || clear(bar.borderLeftColor))
            found.push(`${name(figure)}: the marker of the row ${short(words(row))} is ${bar.borderLeftWidth} of ${bar.borderLeftColor}`);
          if (clear(getComputedStyle(row).backgroundColor)) found.push(`${name(figure)}: the row ${short(words(row))} has no tint`);
        }
      }
      return found;
    },

    // A figure with steps does not scroll inside; while the page scrolls over it, its controls stay in sight.
    tall() {
      const found = [], before = scrollY;
      for (const figure of figures().filter((figure) => figure.querySelector(":scope > .viz-bar:not([hidden])"))) {
        const bar = figure.querySelector(":scope > .viz-bar");
        if (figure.scrollHeight > figure.clientHeight + 1 && getComputedStyle(figure).overflowY !== "visible") found.push(`${name(figure)}: scrolls inside itself`);
        const { bottom } = figure.getBoundingClientRect(), height = bar.getBoundingClientRect().height;
        scrollTo({ top: scrollY + bottom - height - 200, behavior: "instant" }); // its end is near the upper edge of the window
        const end = figure.getBoundingClientRect().bottom;
        if (end < innerHeight && bar.getBoundingClientRect().top < 0) found.push(`${name(figure)}: its controls scroll out of sight`);
      }
      scrollTo({ top: before, behavior: "instant" });
      return found;
    },

    // What scrolls sideways is reached by Tab, and fades where it goes on.
    scrolling() {
      return all("#book *").filter((each) => each.scrollWidth > each.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(each).overflowX) && seen(each)).flatMap((each) => {
        const told = `${each.localName}.${each.className}: ${short(words(each))}`;
        return [
          ...(each.tabIndex < 0 && !each.querySelector("a[href], button, input, [tabindex]") ? [`not reached by Tab: ${told}`] : []),
          ...(each.localName !== "pre" && getComputedStyle(each).maskImage === "none" ? [`goes on without a sign: ${told}`] : []),
        ];
      });
    },

    // Letters of a drawing can be read: nine pixels high at least.
    letters() {
      return all("#book svg :is(text, tspan)").filter((each) => seen(each) && words(each) && !each.closest("mjx-container")).flatMap((each) => {
        const to_screen = each.getScreenCTM?.() ?? each.closest("svg").getScreenCTM();
        const pixels = size(getComputedStyle(each).fontSize) * Math.hypot(to_screen.b, to_screen.d);
        return pixels < 8.95 ? [`${each.closest(".viz-figure, figure")?.className}: ${short(words(each))} is ${pixels.toFixed(1)} pixels high`] : [];
      });
    },

    // A drawing fits its column, its words stay in it, and do not lie on one another.
    crowded() {
      return all("#book :is(figure.viz, .output.text_html) > svg").filter(seen).flatMap((svg) => {
        const whole = svg.getBoundingClientRect(), parent = svg.parentElement, told = name(svg.closest("figure") ?? parent);
        const found = parent.scrollWidth > parent.clientWidth + 1 ? [`is wider than its column: ${short(told)}`] : [];
        const texts = all("text", svg).filter((each) => words(each) && seen(each) && Math.abs(each.getScreenCTM().b) < 0.01);
        const boxes = texts.map((each) => [each, each.getBoundingClientRect()]);
        for (const [i, [each, box]] of boxes.entries()) {
          if (box.right > whole.right + 2 || box.left < whole.left - 2) found.push(`${words(each)} goes beyond the drawing: ${short(told)}`);
          const over = boxes.slice(i + 1).find(([, other]) => Math.min(box.right, other.right) - Math.max(box.left, other.left) > 2 &&
            Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top) > Math.min(box.height, other.height) / 2);
          if (over) found.push(`${words(each)} lies on ${words(over[0])}: ${short(told)}`);
        }
        return found;
      });
    },

    // A figure says what it is, and its first frame what to look for.
    told() {
      return figures().flatMap((figure) => [
        ...(words(figure.querySelector(".viz-caption") ?? figure).length < 30 || !figure.querySelector(".viz-caption") ? [`${name(figure)}: no caption that can stand alone`] : []),
        ...(figure.querySelector(":scope > .viz-bar") && !words(figure.querySelector(".viz-status")) ? [`${name(figure)}: its first frame says nothing`] : []),
      ]);
    },

    // Copy buttons hold a picture made of lines, not a filled square, and do not cover code where nothing hovers.
    copying() {
      return all("#book button.copybtn").flatMap((button) => {
        const found = [], svg = button.querySelector("svg");
        if (!svg) return ["a copy button has no icon"];
        const style = getComputedStyle(svg);
        if (!clear(style.backgroundColor) || style.maskImage !== "none") found.push("the icon of a copy button is filled");
        if (matchMedia("(hover: none)").matches && button.checkVisibility()) {
          const range = document.createRange();
          range.selectNodeContents(button.parentElement.querySelector("pre"));
          const box = button.getBoundingClientRect();
          const covered = [...range.getClientRects()].some((line) => line.width > 1 && line.left < box.right && line.right > box.left && line.top < box.bottom - 1 && line.bottom > box.top + 1);
          if (covered) found.push(`a copy button covers code: ${short(words(button.parentElement))}`);
        }
        return found;
      });
    },

    // Neither code nor what was printed is wider than its column; code is large enough to read, and 72 columns of it fit.
    cut() {
      const found = [], root = size(getComputedStyle(document.documentElement).fontSize);
      for (const pre of all("#book pre").filter((pre) => seen(pre) && !pre.closest(".viz-figure"))) {
        const longest = pre.textContent.split("\n").reduce((a, b) => (b.length > a.length ? b : a), "");
        const told = `${pre.closest(".cell_output") ? "printed" : "code"} of ${longest.length} columns: ${short(longest.trim())}`;
        if (pre.scrollWidth > pre.clientWidth + 1) found.push(told);
        const style = getComputedStyle(pre);
        if (size(style.fontSize) < (14 * root) / 16) found.push(`code of ${style.fontSize}: ${short(words(pre))}`);
        // the width of a character, from a line of the text itself
        const walker = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT), range = document.createRange();
        for (let text; (text = walker.nextNode()); ) {
          const word = /[!-~]{6,}/.exec(text.data);
          if (!word || text.parentElement.closest("b, strong")) continue;
          range.setStart(text, word.index);
          range.setEnd(text, word.index + 6);
          if (range.getClientRects().length !== 1) continue;
          const column = (pre.clientWidth - size(style.paddingLeft) - size(style.paddingRight)) / (range.getBoundingClientRect().width / 6);
          if (pre.closest(".cell_input") && longest.length > column + 0.5) found.push(`${told} is broken at ${Math.floor(column)}`);
          if (!pre.closest("li, dd, .admonition, .book-exercise-foot") && column < 72) found.push(`only ${column.toFixed(1)} columns of code: ${short(words(pre))}`);
          break;
        }
      }
      return found;
    },

    // The line under a name goes below its underscores.
    underlines() {
      return all("#book a").filter((link) => seen(link) && link.querySelector("code") && link.textContent.includes("_")).flatMap((link) => {
        const style = getComputedStyle(link);
        if (!style.textDecorationLine.includes("underline")) return [];
        return size(style.textUnderlineOffset) >= 0.28 * size(style.fontSize) ? [] : [`${words(link)}: underlined at ${style.textUnderlineOffset}`];
      });
    },

    // Nothing after a prediction tells what comes out before the reader opens it.
    spoiled() {
      const found = [];
      const reveals = all("#book details.book-reveal");
      const questions = all("#book .book-predict");
      if (questions.length > reveals.length) found.push(`${questions.length} predictions have ${reveals.length} lids`);
      for (const question of questions) {
        const next = all(".book-predict, details.book-reveal").find((each) => question.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING && !question.contains(each));
        if (!next?.matches("details")) found.push(`the prediction ${short(words(question))} has no lid`);
      }
      for (const reveal of reveals) {
        if (reveal.open) { found.push(`the lid after ${short(words(reveal.previousElementSibling ?? reveal))} is open`); continue; }
        const question = questions.filter((each) => each.compareDocumentPosition(reveal) & Node.DOCUMENT_POSITION_FOLLOWING).at(-1);
        // whole lines that came out, and the numbers in them that are telling
        const printed = all(".book-reveal-output pre", reveal).map((pre) => pre.textContent).join("\n");
        const lines = printed.split("\n").map((line) => line.trim().replace(/\s+/g, " ")).filter((line) => line.length >= 12);
        const numbers = (printed.match(/(?<![\w.])-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?(?![\w.]*\w)/g) ?? []).filter((each) => each.replace(/\D|^0+|0+$/g, "").length >= 3);
        const cells = all("#book .cell").filter((cell) => question && question.compareDocumentPosition(cell) & Node.DOCUMENT_POSITION_FOLLOWING
          && reveal.compareDocumentPosition(cell) & Node.DOCUMENT_POSITION_PRECEDING);
        // what was told before the question, and the code in question, are known
        const before = document.createRange();
        before.setStart(document.querySelector("#book"), 0);
        before.setEndAfter(question ?? reveal);
        const known = [before.toString(), ...cells.map((cell) => cell.textContent)].join(" ").replace(/\s+/g, " ");
        const section = reveal.closest("section");
        const after = all("p, li, td, pre", section).filter((each) =>
          (question ?? reveal).compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING && seen(each) && !each.closest("details:not([open]), .viz-figure")
          && each.closest("section") === section && !(question && question.contains(each)) && !cells.some((cell) => cell.contains(each)));
        for (const each of after) {
          const text = each.textContent.replace(/\s+/g, " ");
          for (const line of lines) if (!known.includes(line) && text.includes(line)) found.push(`what comes out (${short(line)}) stands open in: ${short(text)}`);
          for (const number of new Set(numbers)) {
            const bare = number.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
            if (!each.matches("pre") && !known.includes(number) && new RegExp(`(?<![\\w.])${bare}(?![\\w.]*\\d)`).test(text)) found.push(`what comes out (${number}) stands open in: ${short(text)}`);
          }
        }
      }
      return found;
    },

    // An exercise on a page where nothing runs: hints, a solution, a way to its cell, and nobody's attempt.
    dead() {
      const found = [];
      if (/not attempted/i.test(document.querySelector("#book")?.innerText ?? "")) found.push("the page says `not attempted`");
      for (const card of all("#book .book-exercise")) {
        const lids = all("details > summary", card).map(words);
        const title = words(card.querySelector("h2, h3, h4") ?? card);
        if (!lids.some((lid) => lid.startsWith("Hint"))) found.push(`${title}: no hint`);
        if (!lids.includes("Solution")) found.push(`${title}: no solution`);
        if (all("details[open]", card).length) found.push(`${title}: a hint is open`);
        if (!/#scrollTo=\w/.test(card.querySelector(".book-exercise-colab")?.href ?? "")) found.push(`${title}: no link to its cell`);
      }
      return found;
    },

    // Tests and verdicts are not in sight.
    scaffolding() {
      return all("#book .cell:not(.tag_asserts-by-lesson)").filter((cell) => cell.checkVisibility()).flatMap((cell) => [
        ...all(".cell_input pre", cell).filter(seen).flatMap((pre) => (/^\s*assert\b/m.test(pre.textContent) ? [`an assertion: ${short(/^\s*assert\b.*$/m.exec(pre.textContent)[0].trim())}`] : [])),
        ...all(".cell_output pre", cell).filter(seen).flatMap((pre) => (/^\w+\d+ (holds|no longer holds|does not hold)\b/m.test(pre.textContent) ? [`a verdict: ${short(words(pre))}`] : [])),
      ]);
    },

    // On paper: the title, frames, all that is folded, all steps of a figure; ink on white. Called with `print` emulated.
    printed() {
      const found = [];
      if (!document.querySelector("#book")) return found; // a page of the site, not of the book
      const [lids, hints] = ["details.book-reveal", ".book-exercise-foot"].map((each) => all(`#book ${each}`).length);
      dispatchEvent(new Event("beforeprint"));
      const answers = all("#book #answers .book-answered"), solutions = all("#book #solutions .book-answered");
      if (answers.length !== lids) found.push(`${answers.length} of ${lids} answers stand at the end`);
      if (solutions.length !== hints) found.push(`${solutions.length} of ${hints} solutions stand at the end`);
      for (const each of [...answers, ...solutions]) if (words(each).length < 20) found.push(`an answer is empty: ${short(words(each))}`);
      for (const each of all("#book :is(.cell_input, .cell_output, .admonition, .book-predict, .viz-figure, [class*=highlight-], details, figure)"))
        if (each.checkVisibility() && each.getBoundingClientRect().height > 3 && !words(each) && !each.querySelector("img, svg, canvas")) found.push(`an empty frame: ${each.className}`);
      for (const each of all("#book .book-predict")) {
        const last = [...each.children].filter((part) => part.checkVisibility()).at(-1);
        const blank = each.getBoundingClientRect().bottom - size(getComputedStyle(each).paddingBottom) - last.getBoundingClientRect().bottom;
        if (blank > 4) { found.push(`a blank band below a question: ${short(words(each))}`); break; }
      }
      const title = document.querySelector("#book h1");
      if (!title || !seen(title) || title.getBoundingClientRect().height < 10) found.push("the title is not printed");
      for (const each of all("#book details:not([open])")) if (each.checkVisibility()) found.push(`not printed: ${short(words(each))}`);
      for (const each of all("#book .viz-later, #book .viz-key-tree-verdict")) if (each.checkVisibility() && getComputedStyle(each).visibility !== "visible") { found.push(`a step of a figure is blank: ${short(each.textContent.trim())}`); break; }
      for (const each of all("#book :is(.cell_input, .admonition:not(.hide), .book-predict, .viz-figure)")) {
        if (!each.checkVisibility()) continue;
        const style = getComputedStyle(each);
        if (style.breakInside !== "avoid" && !each.querySelector(".book-long")) { found.push(`breaks in two: ${each.className}`); break; }
        if (["Left", "Right", "Top", "Bottom"].every((side) => !size(style[`border${side}Width`])) ) { found.push(`without a frame: ${each.className}`); break; }
      }
      for (const each of all("#book .viz-figure")) if (each.scrollHeight > each.clientHeight + 1 && getComputedStyle(each).overflowY !== "visible") { found.push(`cut: ${name(each)}`); break; }
      for (const each of all("#book pre").filter((pre) => pre.checkVisibility() && !pre.closest(".viz-figure"))) if (each.scrollWidth > each.clientWidth + 1) { found.push(`cut: ${short(words(each))}`); break; }
      const paper = document.documentElement;
      if (innerWidth < 1000 && paper.scrollWidth > paper.clientWidth + 4) found.push(`wider than the paper: ${paper.scrollWidth} of ${paper.clientWidth}: ${all("#book *").filter((each) => each.getBoundingClientRect().right > paper.clientWidth + 4).slice(-1).map((each) => short(words(each)))}`);
      const ink = (getComputedStyle(title ?? document.body).color.match(/\d+/g) ?? []).slice(0, 3).map(Number);
      if (ink.reduce((a, b) => a + b, 0) > 300) found.push(`the ink is light: ${ink}`);
      if (all(".bd-sidebar-primary, .bd-header-article, .viz-bar button, .viz-bar input, button.copybtn").some((each) => each.checkVisibility())) found.push("controls are printed");
      dispatchEvent(new Event("afterprint"));
      if (all("#book details.book-reveal[open]").length) found.push("answers stay open after printing");
      return found;
    },
  };

  const found = {};
  for (const each of globalThis.asked) found[each] = await sight[each]();
  return found;
})()
