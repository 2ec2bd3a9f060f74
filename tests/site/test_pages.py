"""Every page: stays on the site, is light, accessible, named, and no wider than a telephone.

A page is one test, which visits it once in the light and once in the dark and lists all that it found.
"""

from tools.site import inspection

LIMIT_PAGE = 1_000_000
LIMIT_REQUEST = 300_000
EXEMPT = ("/mathjax/", ".woff2", ".woff")  # MathJax and fonts


def counted(transfers):
    return {url: size for url, size in transfers.items() if not any(part in url for part in EXEMPT)}


def too_heavy(name, transfers):
    """What is wrong with the bytes that a first visit loads."""
    if not any(url.endswith(name) for url in transfers):
        yield "the page itself was not measured"
    for url, size in counted(transfers).items():
        if size > LIMIT_REQUEST:
            yield f"{url} has {size} bytes, over {LIMIT_REQUEST}"
    if (total := sum(counted(transfers).values())) > LIMIT_PAGE:
        largest = sorted(transfers.items(), key=lambda item: -item[1])[:8]
        yield f"all together {total} bytes, over {LIMIT_PAGE}: {largest}"


def faults(name, visit):
    """What is wrong with a page, by kind."""
    found = {
        "requests to elsewhere": visit.outside,
        "errors in the console": visit.errors,
        "not accessible at level AA": visit.violations,
        "pictures without a text alternative": visit.unnamed,
        "links to the next or previous page that do not show": visit.unseen,
        "wider than a telephone": visit.wide,
        "too heavy": list(too_heavy(name, visit.transfers)),
    }
    return {kind: lines for kind, lines in found.items() if lines}


def test_page(chromium, address, name):
    found = faults(name, inspection.inspect(chromium, address, name))
    lines = [f"{kind}:\n  " + "\n  ".join(lines) for kind, lines in found.items()]
    assert not found, f"{name}\n" + "\n".join(lines)


def test_what_is_too_heavy():
    """Large files, and many small ones; but not MathJax and fonts. And a page must have been weighed at all."""
    own = {"http://site/page.html": 1000}
    assert not list(too_heavy("page.html", own | {"http://site/mathjax/a.js": 400_000}))
    assert "over 300000" in next(too_heavy("page.html", own | {"http://site/a.js": 300_001}))
    many = {f"http://site/{number}.js": 200_000 for number in range(6)}
    assert "over 1000000" in next(too_heavy("page.html", own | many))
    assert "not measured" in next(too_heavy("page.html", {}))
