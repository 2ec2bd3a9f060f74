"""The site's weight: what the theme ships and no page uses is left out of the built site.

The theme's style sheet holds all of Bootstrap and of Font Awesome (397 kB), and its folder holds icon fonts,
source maps and translations (6 MB). After the build every rule of the style sheet that names a class which no
page and no script mentions is dropped, and so are the files that nothing asks for.

A page itself is made lighter as well: pictures that a cell's output holds as text become files, which weigh a
quarter less, and code loses the marks around plain names.
"""

import base64
import hashlib
import re
import shutil
from pathlib import Path

STYLES = ("_static/styles/pydata-sphinx-theme.css", "_static/sphinx-design.min.css")
UNUSED_FILES = (
    "_static/scripts/fontawesome.js*",
    "_static/scripts/bootstrap.js*",
    "_static/vendor",
    "_static/locales",
    "_static/**/*.map",
    "_static/**/*webpack-macros.html",
    "_static/images",
    "_static/searchtools.js",
    "_static/language_data.js",
    "searchindex.js",
    "_static/sphinx-thebe.*",
    "_static/togglebutton.*",
    "_static/design-tabs.js",
    "_static/file.png",
    "_static/minus.png",
    "_static/plus.png",
    "_static/README.md",
    "_sphinx_design_static",
)
WORD = re.compile(r"[A-Za-z_][\w-]*")
FUNCTION = re.compile(r":(?:not|is|where|has)\((?:[^()]|\([^()]*\))*\)")
CLASS = re.compile(r"\.(-?[A-Za-z_](?:[\w-]|\\.)*)")


# Tokens that code.css leaves in the colour of the text: names, operators, brackets, white space.
PLAIN_TOKEN = re.compile(r'<span class="(?:n|nx|na|o|p|w)">([^<]*)</span>')
EMBEDDED = re.compile(r"data:image/(png|jpeg);base64,([A-Za-z0-9+/=\s]+)")
SMALLEST_FILE = 4_000  # characters; a smaller picture is not worth a request


def lighten(body, folder, prefix):
    """A page's HTML without marks that show nothing, its embedded pictures written to `folder`."""

    def write(match):
        if len(match[2]) < SMALLEST_FILE:
            return match[0]
        content = base64.b64decode(match[2])
        name = f"{hashlib.sha256(content).hexdigest()[:16]}.{match[1]}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        return prefix + name

    return EMBEDDED.sub(write, PLAIN_TOKEN.sub(r"\1", body))


def lighten_page(app, pagename, templatename, context, doctree):
    if "body" in context and app.builder.name == "html":
        prefix = "../" * pagename.count("/") + "_images/"
        context["body"] = lighten(context["body"], Path(app.outdir) / "_images", prefix)


def blocks(text):
    """Split style sheet text into `(prelude, body)`; body is None for statements such as `@import`."""
    position = 0
    while position < len(text):
        match = re.compile(r"[{;]").search(text, position)
        if match is None:
            return
        if match[0] == ";":
            yield text[position : match.end()], None
            position = match.end()
            continue
        depth, end = 1, match.end()
        while depth:
            brace = re.compile(r"[{}]|\"[^\"]*\"|'[^']*'").search(text, end)
            depth += {"{": 1, "}": -1}.get(brace[0], 0)
            end = brace.end()
        yield text[position : match.start()], text[match.end() : end - 1]
        position = end


def selectors(prelude):
    """Split a selector list at its top-level commas."""
    return re.findall(r"(?:[^,(]|\([^()]*(?:\([^()]*\)[^()]*)*\))+", prelude)


def purge(text, used, icons=r"\.fa[srbl]?(?:-|\b)"):
    """Drop the rules whose selectors name a class that is not among the `used` words, and the icon font's."""
    kept = []
    for prelude, body in blocks(re.sub(r"/\*(?!!).*?\*/", "", text, flags=re.S)):
        name = prelude.strip()
        if body is None:
            kept.append(prelude)
        elif name.startswith("@font-face"):
            if "Awesome" not in body:
                kept.append(f"{prelude}{{{body}}}")
        elif name.startswith(("@media", "@supports")):
            if inner := purge(body, used, icons):
                kept.append(f"{prelude}{{{inner}}}")
        elif name.startswith("@"):
            kept.append(f"{prelude}{{{body}}}")
        else:
            wanted = [
                each
                for each in selectors(prelude)
                if all(c.replace("\\", "") in used for c in CLASS.findall(FUNCTION.sub("", each)))
                and not re.search(icons, each)
            ]
            if wanted:
                kept.append(f"{','.join(wanted)}{{{body}}}")
    return "".join(kept)


def words(folder):
    """All words in the pages and scripts: a class that is none of them cannot be on any page."""
    found = set()
    for pattern in ("*.html", "book/**/*.html", "_static/*.js", "_static/scripts/*.js"):
        for path in folder.glob(pattern):
            if path.name == "search-index.js":  # the words of the book, none of them a class
                continue
            found.update(WORD.findall(path.read_text(encoding="utf-8", errors="ignore")))
    return found


def slim(app, exception):
    if exception is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    for pattern in UNUSED_FILES:
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    used = words(folder)
    for style in STYLES:
        if (path := folder / style).is_file():
            path.write_text(purge(path.read_text(encoding="utf-8"), used), encoding="utf-8")


def setup(app):
    app.connect("html-page-context", lighten_page)
    app.connect("build-finished", slim)
