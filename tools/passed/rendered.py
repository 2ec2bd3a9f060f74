"""What a reader's browser gets of a page of the rendered book: the rest of a key, for tests that visit pages."""

import functools
import hashlib
import pathlib
import re
import subprocess
import urllib.parse

from tools.site import browser

# Sphinx writes a style sheet's hash into the address in its second run, and not in its first; the sheet itself is in the key.
VERSION = re.compile(rb"\?v=[0-9a-f]{8}")
# What the key of any page holds, but for the index of the search.
HELD = ("_static/", "_images/")
PICTURE = re.compile(rb'"((?:\.\./)*_images/[^"]+)"')


@functools.cache
def chromium_version() -> str:
    if not pathlib.Path(browser.CHROMIUM).is_file():
        return "no browser"
    return subprocess.run([browser.CHROMIUM, "--version"], capture_output=True, text=True).stdout.strip()


def shared(site: pathlib.Path) -> list[str]:
    """What all pages load, or may. The index of the search changes with each chapter, and is loaded when somebody searches."""
    files = sorted(path for path in (site / "_static").rglob("*") if path.is_file())
    return [_named(site, path) for path in files if not _is_index(path)]


def contents(site: pathlib.Path, page: str) -> list[str]:
    """The page, and its pictures."""
    if not (site / page).is_file():
        return ["missing"]
    html = (site / page).read_bytes()
    pictures = sorted({(site / page).parent / found.decode() for found in PICTURE.findall(html)})
    indexes = [path for path in sorted(site.rglob("*")) if path.is_file() and _is_index(path)]
    used = [*pictures, *(indexes if page.startswith("search") else [])]
    return [_hash(VERSION.sub(b"", html)), *(_named(site, path) for path in used)]


def visited(site: pathlib.Path, pages: list[str]) -> list[str]:
    """All that the visitor of these pages, and of no others, gets."""
    of_pages = [text for page in pages for text in (page, *contents(site, page))]
    return [chromium_version(), *(shared(site) if pages else ()), *of_pages]


def unsaid(pages: list[str], addresses: list[str], site: pathlib.Path, elsewhere=()) -> list[str]:
    """Files of the site that were asked for though the visitor's key does not hold them. Servers of other sites are `elsewhere`."""
    asked = [urllib.parse.urlsplit(url) for url in addresses if not url.startswith(tuple(elsewhere))]
    paths = {urllib.parse.unquote(url.path).removeprefix("/") for url in asked if url.scheme == "http"}
    files = {path + "index.html" if path.endswith("/") or not path else path for path in paths}
    held = {path for path in files if path in pages or path.startswith(HELD) and not _is_index(site / path)}
    return sorted(path for path in files - held if (site / path).is_file())


def _is_index(path: pathlib.Path) -> bool:
    return "index" in path.stem and path.suffix in (".js", ".json")


def _named(site: pathlib.Path, path: pathlib.Path) -> str:
    path = path.resolve()
    content = _hash(path.read_bytes()) if path.is_file() else "missing"
    return f"{path.relative_to(site.resolve()).as_posix()} {content}"


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:24]
