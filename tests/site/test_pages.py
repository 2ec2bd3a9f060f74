"""Every page: stays on the site, is light, stands still while it loads, is accessible, named, no wider than a telephone, and shows what it should.

A page is one test, which visits it once, turns it dark and back, and lists all that it found. `test_sight.py` plants the
faults that are looked for here on the page of all components, and sees them found.
"""

import dataclasses

from tools.visits import inspection

LIMIT_PAGE = 1_000_000  # all that a first visit loads, fonts and MathJax included, text compressed as GitHub Pages does
LIMIT_REQUEST = 300_000
MOST_REQUESTS = 25
MATHJAX = "/mathjax/"


def too_heavy(name, transfers, mathematics):
    """What is wrong with the bytes that a first visit loads."""
    if not any(name in url for url in transfers):
        yield "the page itself was not measured"
    for url, size in transfers.items():
        if size > LIMIT_REQUEST and MATHJAX not in url:
            yield f"{url} has {size} bytes, over {LIMIT_REQUEST}"
    if len(transfers) > MOST_REQUESTS:
        yield f"{len(transfers)} requests, over {MOST_REQUESTS}"
    if (total := sum(transfers.values())) > LIMIT_PAGE:
        largest = sorted(transfers.items(), key=lambda item: -item[1])[:8]
        yield f"all together {total} bytes, over {LIMIT_PAGE}: {largest}"
    loaded = any(MATHJAX in url for url in transfers)
    if loaded != mathematics:
        yield "MathJax is loaded, and there is no mathematics" if loaded else "mathematics, but no MathJax"


def faults(name, visit):
    """What is wrong with a page, by kind."""
    found = {
        "requests to elsewhere": visit.outside,
        "errors in the console": visit.errors,
        "not accessible at level AA": visit.violations,
        "pictures without a text alternative": visit.unnamed,
        "links to the next or previous page that do not show": visit.unseen,
        "seen": visit.seen,
        "wider than a telephone": visit.wide,
        "moves while it loads": visit.shifts,
        "too heavy": list(too_heavy(name, visit.transfers, visit.mathematics)),
    }
    return {kind: lines for kind, lines in found.items() if lines}


def test_each_kind_of_fault_is_told():
    kinds = [field.name for field in dataclasses.fields(inspection.Visit)]
    for kind in set(kinds) - {"transfers", "mathematics"}:
        assert faults("name", inspection.Visit(**{kind: ["a fault"]})), f"`faults` tells nothing of `{kind}`"


def test_page(chromium, address, name):
    found = faults(name, inspection.inspect(chromium, address, name))
    lines = [f"{kind}:\n  " + "\n  ".join(lines) for kind, lines in found.items()]
    assert not found, f"{name}\n" + "\n".join(lines)


def test_a_search(chromium, address):
    """The page, its index and its excerpts; what a search may load besides its page, `test_search.py` says."""
    visit = inspection.inspect(chromium, address, "search.html?q=jit")
    assert not list(too_heavy("search.html?q=jit", visit.transfers, visit.mathematics))
    assert not visit.violations and not visit.errors and not visit.wide


def test_what_is_too_heavy():
    """Large files, many small ones, and MathJax for nothing. And a page must have been weighed at all."""
    own = {"http://site/page.html": 1000}
    mathjax = {"http://site/mathjax/a.js": 400_000}
    assert not list(too_heavy("page.html", own, False))
    assert not list(too_heavy("page.html", own | mathjax, True))
    assert "no mathematics" in next(too_heavy("page.html", own | mathjax, False))
    assert "no MathJax" in next(too_heavy("page.html", own, True))
    assert "over 300000" in next(too_heavy("page.html", own | {"http://site/a.js": 300_001}, False))
    many = {f"http://site/{number}.js": 200_000 for number in range(6)}
    assert "over 1000000" in next(too_heavy("page.html", own | many, False))
    small = {f"http://site/{number}.js": 100 for number in range(25)}
    assert "26 requests, over 25" in next(too_heavy("page.html", own | small, False))
    assert "not measured" in next(too_heavy("page.html", {}, False))
