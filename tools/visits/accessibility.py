"""What axe-core finds on a page against WCAG 2.0 to 2.2, levels A and AA.

Four fifths of axe's time went into the contrast of text, judged for each of some thousand pieces of text (five seconds
a chapter). Here text is sorted by its look first: colors, backgrounds, opacity, font and position of an element and of
all its ancestors. The longest piece of each look is judged. Where axe came to no verdict on that one (it is covered, or
too short), all others of its look are judged, too: eight, then the rest.
"""

import functools

# As axe-core names its rules.
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]

RUN = """async tags => {
    const results = [];
    if (tags.length) {
        const options = {resultTypes: ["violations"], preload: false, rules: {"color-contrast": {enabled: false}}};
        results.push(...(await axe.run(document, {...options, runOnly: {type: "tag", values: tags}})).violations);
    }

    const PARTS = ["color", "backgroundColor", "backgroundImage", "backgroundClip", "opacity", "filter", "mixBlendMode",
        "textShadow", "webkitTextStrokeWidth", "webkitTextFillColor", "fontSize", "fontWeight", "visibility", "display",
        "position", "zIndex", "float", "transform", "clip", "clipPath", "overflow"];
    const numbers = new Map(), look = new Map();
    for (const element of document.querySelectorAll("*")) {
        const style = getComputedStyle(element);
        const text = [look.get(element.parentElement), element.localName === "a", element.disabled, element.ariaDisabled,
            element.ariaHidden, ...PARTS.map(part => style[part])].join("|");
        if (!numbers.has(text)) numbers.set(text, numbers.size);
        look.set(element, numbers.get(text));
    }
    const groups = new Map();
    for (const [element, number] of look) {
        const written = [...element.childNodes].filter(node => node.nodeType === 3).map(node => node.data.trim()).join("");
        const control = /^(input|select|textarea|button)$/.test(element.localName);
        if ((written || control) && element.checkVisibility()) {  // what is folded away axe does not judge either
            const key = control ? element : number;
            groups.set(key, [...(groups.get(key) || []), [element, written.length]]);
        }
    }
    const judge = async elements => {
        for (const element of elements) element.dataset.judged = "";
        axe.configure({rules: [{id: "color-contrast", selector: "[data-judged]"}]});
        const options = {preload: false, elementRef: true, runOnly: {type: "rule", values: ["color-contrast"]}};
        const {passes, violations} = await axe.run(document, options);
        for (const element of elements) delete element.dataset.judged;
        results.push(...violations);
        return new Set([...passes, ...violations].flatMap(rule => rule.nodes).map(node => node.element));
    };
    let open = [...groups.values()].map(group => group.sort((a, b) => b[1] - a[1]).map(([element]) => element));
    for (const some of [1, 8, Infinity]) {
        const tried = open.map(group => [group.splice(0, some), group]);
        const verdicts = await judge(tried.flatMap(([now]) => now));
        open = tried.filter(([now, rest]) => rest.length && !now.some(element => verdicts.has(element))).map(([, rest]) => rest);
        if (!open.length) break;
    }
    return results.flatMap(({id, nodes}) => nodes.map(
        node => `${id}: ${node.html.replace(` data-judged=""`, "").slice(0, 160)} (${(node.failureSummary || "").slice(0, 300)})`));
}"""


@functools.cache
def axe() -> str:
    """The script of axe-core, from the package that brings it as a file."""
    from axe_playwright_python.sync_playwright import Axe

    return Axe().axe_script


def violations(page, *, contrast_alone=False) -> list[str]:
    """A line for each element that breaks a rule; or, where nothing but colors has changed, the rule about contrast alone."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(axe())
    return page.evaluate(RUN, [] if contrast_alone else TAGS)
