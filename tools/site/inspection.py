"""What a browser sees on a page: requests, errors, weight, accessibility, pictures, width. `tests/site` asserts on it."""

import dataclasses

from . import browser

# WCAG 2.0 to 2.2 at levels A and AA, as axe-core names its rules.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]

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


@dataclasses.dataclass
class Visit:
    """One cold visit to a page, in one colour scheme."""

    outside: list[str] = dataclasses.field(default_factory=list)  # addresses elsewhere, all refused
    errors: list[str] = dataclasses.field(
        default_factory=list
    )  # console errors, exceptions, answers of 400 and above
    transfers: dict[str, int] = dataclasses.field(default_factory=dict)  # bytes that came, by address
    violations: list[str] = dataclasses.field(
        default_factory=list
    )  # of WCAG A and AA, as axe-core finds them
    unnamed: list[str] = dataclasses.field(default_factory=list)  # pictures with no text alternative
    wide: dict[int, list[str]] = dataclasses.field(
        default_factory=dict
    )  # what sticks out, by width of the screen


def guard(context, address, outside):
    """Refuse every request that leaves the site, and note it."""

    def refuse(route):
        url = route.request.url
        if url.startswith((address + "/", "data:", "blob:", "about:")):
            route.continue_()
        else:
            outside.append(url)
            route.abort()

    context.route("**/*", refuse)


def inspect(chromium, address, name, scheme="light", widths=(390, 320)):
    """Visit a page with an empty cache and note everything."""
    from axe_playwright_python.sync_playwright import Axe

    visit = Visit()
    context = chromium.new_context(
        viewport={"width": 1280, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    try:
        guard(context, address, visit.outside)
        page = context.new_page()
        page.on("console", lambda message: message.type == "error" and visit.errors.append(message.text))
        page.on("pageerror", lambda error: visit.errors.append(str(error)))
        page.on(
            "response",
            lambda answer: answer.status >= 400 and visit.errors.append(f"{answer.status} {answer.url}"),
        )
        watch_transfers(context, page, visit.transfers)
        page.goto(f"{address}/{name}")
        browser.settle(page)
        page.wait_for_load_state("networkidle")
        visit.unnamed = page.evaluate(UNNAMED)
        options = {
            "runOnly": {"type": "tag", "values": RULES},
            "resultTypes": ["violations"],
            "preload": False,
        }
        for violation in Axe().run(page, options=options).response["violations"]:
            for node in violation["nodes"]:
                visit.violations.append(
                    f"{violation['id']}: {node['html'][:160]} ({node['failureSummary'][:300]})"
                )
        for width in widths:
            page.set_viewport_size({"width": width, "height": 800})
            page.wait_for_timeout(60)
            visit.wide[width] = page.evaluate(WIDE)
    finally:
        context.close()
    return visit


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
