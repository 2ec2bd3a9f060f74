"""Few requests: the style sheets of a page become one file, and so do its scripts, those that run at once and those that are deferred.

A file is named by its content, so that a browser never keeps an old one, and pages with the same files share it. MathJax stays by itself.
"""

import hashlib
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from .assets import UNUSED_FILES

SHEET = re.compile(r'[ \t]*<link\b(?=[^>]*\brel="stylesheet")[^>]*\bhref="([^"?]+)[^>]*>\n?')
SCRIPT = re.compile(r'[ \t]*<script\b([^>]*)\bsrc="([^"?]+)[^>]*></script>\n?')
AT_ONCE = re.compile(rf"(?:{SCRIPT.pattern}\s*)+")
IMPORT = re.compile(r"""@import\s+(?:url\()?["']?([^"')]+)["']?\)?\s*;""")
URL = re.compile(r"""url\(\s*(["']?)(?!data:|https?:|/|#)([^"')]+)\1\s*\)""")
FOLDER = "_static/bundles"
APART = "/mathjax/"


def write(site: Path, name: str, texts: Iterable[str]) -> str:
    """Write a file of these texts, with their hash in its name; returns its path in the site."""
    text = "\n".join(texts)
    stem, kind = name.split(".")
    path = f"{FOLDER}/{stem}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.{kind}"
    if not (site / path).is_file():
        (site / FOLDER).mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text, encoding="utf-8")
    return path


def sheet(site: Path, path: str) -> str:
    """The text of a style sheet, whose addresses fit a file in `FOLDER`."""
    place = posixpath.dirname(path)

    def of(address):
        return posixpath.normpath(posixpath.join(place, address))

    # An import counts only at the top of a file, so what it names is put in its place.
    own, *rest = IMPORT.split((site / path).read_text(encoding="utf-8"))
    imported = [sheet(site, of(address)) for address in rest[::2]]
    own = URL.sub(
        lambda match: f'url("{posixpath.relpath(of(match[2]), FOLDER)}")', own + "".join(rest[1::2])
    )
    return "".join([*imported, own])


def bundled(site: Path, page: str, text: str) -> str:
    """The HTML of a page, with its style sheets and scripts as few files."""
    here = posixpath.dirname(page)

    def path(address):  # in the site, of an address on the page
        return posixpath.normpath(posixpath.join(here, address))

    def address(path):
        return posixpath.relpath(path, here or ".")

    def is_ours(script):
        return APART not in script[2] and (site / path(script[2])).is_file()

    def read(script):
        # A semicolon, since the next file might begin with a bracket.
        return (site / path(script[2])).read_text(encoding="utf-8") + "\n;"

    def unused(script):  # and so removed, by `assets`
        return any(map(PurePosixPath(path(script[2])).match, UNUSED_FILES))

    text = SCRIPT.sub(lambda each: "" if unused(each) else each[0], text)

    sheets = list(SHEET.finditer(text))
    if len(sheets) > 1:
        file = write(site, "looks.css", [sheet(site, path(each[1])) for each in sheets])
        whole = f'  <link rel="stylesheet" href="{address(file)}" />\n'
        text = SHEET.sub(lambda each: whole if each.start() == sheets[0].start() else "", text)

    deferred = [each for each in SCRIPT.finditer(text) if "defer" in each[1] and is_ours(each)]
    if len(deferred) > 1:
        file = write(site, "deferred.js", map(read, deferred))
        whole, starts = (
            f'  <script defer src="{address(file)}"></script>\n',
            {each.start() for each in deferred},
        )
        last = max(starts)
        text = SCRIPT.sub(
            lambda each: whole if each.start() == last else "" if each.start() in starts else each[0], text
        )

    def joined(run):
        scripts = list(SCRIPT.finditer(run[0]))
        if len(scripts) < 2 or not all("defer" not in each[1] and is_ours(each) for each in scripts):
            return run[0]
        return f'  <script src="{address(write(site, "at-once.js", map(read, scripts)))}"></script>\n'

    return AT_ONCE.sub(joined, text)


def bundle(app, exception):
    if exception is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    asked = set()
    for file in site.rglob("*.html"):
        page = file.relative_to(site).as_posix()
        text = file.read_text(encoding="utf-8")
        if (now := bundled(site, page, text)) != text:
            file.write_text(now, encoding="utf-8")
        asked |= set(re.findall(rf"{FOLDER}/([\w.-]+)", now))
    for old in (site / FOLDER).glob("*"):
        if old.name not in asked:
            old.unlink()


def setup(app):
    app.connect("build-finished", bundle, priority=900)  # when `assets` has made them smaller
