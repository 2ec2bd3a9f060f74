"""What a browser sees on a page: requests, errors, weight, shifts, accessibility, pictures, width. `tests/site` asserts on it."""

import contextlib
import dataclasses

from . import accessibility, browser, sight

# Pictures that a screen reader would meet and could not name.
UNNAMED = """() => {
    const named = element => {
        const by = (element.getAttribute("aria-labelledby") || "").split(" ").filter(Boolean);
        return (element.getAttribute("aria-label") || "").trim()
            || (element.getAttribute("alt") || "").trim()
            || by.some(id => document.getElementById(id)?.textContent.trim())
            || (element.localName === "svg" && element.querySelector(":scope > title")?.textContent.trim());
    };
    const hidden = element => element.closest("[aria-hidden=true], [role=presentation], button, mjx-container");
    return [...document.querySelectorAll("img, svg, canvas, [role=img]")]
        .filter(element => !hidden(element) && !named(element) && !element.parentElement.closest("svg, [role=img]"))
        .map(element => element.outerHTML.slice(0, 160));
}"""

# What sticks out at the right, where the page as a whole can be moved sideways.
WIDE = """() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const clipped = element => {
        for (let e = element.parentElement; e && e !== document.body; e = e.parentElement)
            if (getComputedStyle(e).overflowX !== "visible") return true;
        return false;
    };
    const wide = [...document.body.querySelectorAll("*")]
        .filter(e => e.getBoundingClientRect().right > width + 1 && !clipped(e))
        .map(e => `${e.localName}.${e.className} reaches ${Math.round(e.getBoundingClientRect().right)} of ${width}`);
    return [`the page is ${document.documentElement.scrollWidth} wide`, ...wide.slice(0, 8)];
}"""


# Links to the next and the previous page that cannot be seen.
UNSEEN = """() => [...document.querySelectorAll("a[rel=next], a[rel=prev]")]
    .filter(e => !e.checkVisibility({visibilityProperty: true}) || !e.getBoundingClientRect().width)
    .map(e => e.outerHTML.slice(0, 160))"""


# Whether a page stays light when the system turns dark, which it may notice a moment later. (Pages of the tests have no theme.)
STAYS_LIGHT = """async () => {
    const light = () => (document.documentElement.dataset.theme || "dark") !== "dark";
    for (let frames = 0; light() && frames < 120; frames++) await new Promise(done => (requestAnimationFrame(done), setTimeout(done, 1000)));
    return light();
}"""


# How far the page moved by itself: the sum of Chromium's layout shifts, of which 0.1 and less is good (web.dev/cls).
MOST_SHIFT = 0.1
WATCH_SHIFTS = """
    globalThis.shifted = {sum: 0, moved: new Set()};
    globalThis.shift = ({value, hadRecentInput, sources}) => {
        if (hadRecentInput) return;
        shifted.sum += value;
        if (value > 0.01) for (const {node} of sources) shifted.moved.add(`${node?.nodeName} ${(node?.textContent || "").trim().slice(0, 40)}`);
    };
    globalThis.watched = new PerformanceObserver(list => list.getEntries().forEach(shift));
    watched.observe({type: "layout-shift", buffered: true});
"""
SHIFTS = """async () => {
    await new Promise(done => setTimeout(done, 150));  // a shift is told a frame later
    watched.takeRecords().forEach(shift);
    return [shifted.sum, [...shifted.moved].slice(0, 6)];
}"""


@dataclasses.dataclass
class Visit:
    """What was seen on a page, in the light and in the dark."""

    outside: list[str] = dataclasses.field(default_factory=list)  # addresses elsewhere
    errors: list[str] = dataclasses.field(
        default_factory=list
    )  # console errors, exceptions, answers of 400 and above
    transfers: dict[str, int] = dataclasses.field(default_factory=dict)  # bytes that came, by address
    violations: list[str] = dataclasses.field(
        default_factory=list
    )  # of WCAG A and AA, as axe-core finds them
    unnamed: list[str] = dataclasses.field(default_factory=list)  # pictures with no text alternative
    unseen: list[str] = dataclasses.field(default_factory=list)  # links to the neighbors that do not show
    seen: list[str] = dataclasses.field(
        default_factory=list
    )  # what a reader would see to be wrong: cut, hidden, told too early
    wide: list[str] = dataclasses.field(default_factory=list)  # what sticks out on a telephone
    shifts: list[str] = dataclasses.field(
        default_factory=list
    )  # at which width the page moves too much while it loads
    mathematics: bool = False  # whether there is any on the page


def inspect(chromium, address, name, widths=(390, 320)):
    """Visit a page with an empty cache, light and then dark, and note everything; anew, where it was not drawn."""
    for _ in range(3):
        with contextlib.suppress(sight.NotDrawn):
            return visited(chromium, address, name, widths)
    raise sight.NotDrawn(f"{name}: three times Chromium did not draw it at a new size")


def visited(chromium, address, name, widths):
    visit = Visit()
    with opened(chromium, address, name, visit) as page:
        visit.unnamed = page.evaluate(UNNAMED)
        visit.unseen = page.evaluate(UNSEEN)
        visit.mathematics = page.locator(".math").count() > 0
        visit.seen = sight.at_the_desk(page)
        # From here on in the dark, where only colors differ. (`tests/site/test_behaviour.py` sees a page that begins in it.)
        page.emulate_media(color_scheme="dark")
        if page.evaluate(STAYS_LIGHT):
            visit.errors.append("the page stays light when the system turns dark")
        visit.violations += [f"dark: {line}" for line in accessibility.violations(page, contrast_alone=True)]
        visit.seen += sight.on_paper_and_telephone(page)
        for width in widths:
            sight.resize(page, (width, 800))
            visit.wide += [f"{width}: {line}" for line in page.evaluate(WIDE)]
    visit.shifts += shifts_of_a_telephone(chromium, f"{address}/{name}")
    return visit


def shifts_of_a_telephone(chromium, url):
    """What moves on a narrow page, which is loaded for this alone, with an empty cache."""
    width, height = sight.TELEPHONE
    context = chromium.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
    try:
        page = context.new_page()
        page.add_init_script(WATCH_SHIFTS)
        page.goto(url)
        browser.settle(page)
        return shifts(page, width)
    finally:
        context.close()


def shifts(page, width):
    """A line if a page, loaded with `WATCH_SHIFTS`, has moved by more than is good."""
    total, moved = page.evaluate(SHIFTS)
    return [f"{width}: {total:.2f}, among it {moved}"] if total > MOST_SHIFT else []


@contextlib.contextmanager
def opened(chromium, address, name, visit):
    """A page, loaded in the light, weighed, and examined for accessibility."""
    width, height = sight.DESK
    context = chromium.new_context(
        viewport={"width": width, "height": height}, color_scheme="light", reduced_motion="reduce"
    )

    def note(request):  # the browser's flags refuse what would leave
        if not request.url.startswith((address + "/", "data:", "blob:", "about:")):
            visit.outside.append(request.url)

    context.on("request", note)
    try:
        page = context.new_page()
        page.on("console", lambda message: message.type == "error" and visit.errors.append(message.text))
        page.on("pageerror", lambda error: visit.errors.append(str(error)))
        page.on(
            "response",
            lambda answer: answer.status >= 400 and visit.errors.append(f"{answer.status} {answer.url}"),
        )
        watch_transfers(context, page, visit.transfers)
        page.add_init_script(WATCH_SHIFTS)
        page.goto(f"{address}/{name}")
        browser.settle(page)
        visit.shifts += shifts(page, width)
        visit.violations += [f"light: {line}" for line in accessibility.violations(page)]
        page.wait_for_load_state("networkidle")
        yield page
    finally:
        context.close()


def watch_transfers(context, page, transfers):
    """Count the bytes of each answer as they come over the wire, headers included."""
    session = context.new_cdp_session(page)
    addresses = {}
    session.on(
        "Network.responseReceived",
        lambda event: addresses.update({event["requestId"]: event["response"]["url"]}),
    )

    def finished(event):
        url = addresses.get(event["requestId"], "")
        if url.startswith("http"):
            transfers[url] = int(event["encodedDataLength"])

    session.on("Network.loadingFinished", finished)
    session.send("Network.enable")
