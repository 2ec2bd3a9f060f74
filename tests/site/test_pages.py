"""Every page: stays on the site, is light, accessible, named, and no wider than a telephone."""

import pytest

LIMIT_PAGE = 1_000_000
LIMIT_REQUEST = 300_000
EXEMPT = ("/mathjax/", ".woff2", ".woff")  # MathJax and fonts


def counted(transfers):
    return {url: size for url, size in transfers.items() if not any(part in url for part in EXEMPT)}


def listing(lines):
    return "\n" + "\n".join(map(str, lines))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_request_leaves_the_site(visit, name, scheme):
    assert len(visit(name, scheme).outside) == 0, listing(visit(name, scheme).outside)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_errors_in_the_console(visit, name, scheme):
    assert not visit(name, scheme).errors, listing(visit(name, scheme).errors)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible_at_level_aa(visit, name, scheme):
    assert not visit(name, scheme).violations, listing(visit(name, scheme).violations)


def test_pictures_have_text_alternatives(visit, name):
    assert not visit(name).unnamed, listing(visit(name).unnamed)


@pytest.mark.parametrize("width", [390, 320])
def test_no_sideways_scrolling(visit, name, width):
    assert not visit(name).wide[width], listing(visit(name).wide[width])


def test_weight(visit, name):
    transfers = visit(name).transfers
    assert any(url.endswith(name) for url in transfers), "the page itself was not measured"
    heavy = {url: size for url, size in counted(transfers).items() if size > LIMIT_REQUEST}
    assert not heavy, f"requests over {LIMIT_REQUEST} bytes: {heavy}"
    total = sum(counted(transfers).values())
    largest = sorted(transfers.items(), key=lambda item: -item[1])[:8]
    assert total <= LIMIT_PAGE, f"{name} loads {total} bytes, of {LIMIT_PAGE}:{listing(largest)}"
