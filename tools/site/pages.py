"""What each page says about itself: its number, description, and where to open, fetch and edit it."""

import re
from pathlib import Path
from urllib.parse import quote

import yaml
from docutils import nodes

from tools import project
from tools.notebooks.places import Book

# Extensions that Jupyter Book always loads and this book has no use for: their scripts would come from a CDN.
UNUSED_EXTENSIONS = ("sphinx_thebe", "sphinx_comments", "sphinx_togglebutton")
UNUSED_ASSETS = ("thebe", "togglebutton", "toggleHint", "toggleOpenOnPrint", "design-tabs")
# Sphinx loads MathJax on the first page, too, for the equations of the pages below it.
MATHEMATICS = re.compile(r'class="(?:[^"]* )?math[ "]')
GENERATED = {f"book/{path.stem}" for path in Book().generated}  # pages with no source to edit


def source_path(root, pagename):
    """The hand-edited file behind a page, relative to the repository's root; None where there is none."""
    if pagename in GENERATED:
        return None
    folder, _, name = pagename.rpartition("/")
    for path in (f"{folder}/_src/{name}.md", f"{pagename}.md"):
        if (Path(root) / path).is_file():
            return path
    return None


def description(doctree, limit=160):
    """The first paragraph of a page, cut at a word."""
    for paragraph in doctree.findall(nodes.paragraph):
        if not isinstance(paragraph.parent, nodes.section):
            continue
        text = " ".join(paragraph.astext().split())
        if len(text) > limit:
            text = text[:limit].rsplit(" ", 1)[0].rstrip(",;:.") + "…"
        if text:
            return text
    return ""


def attribute(text):
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def metadata(app, title, text, pagename):
    """Description and OpenGraph tags."""
    tags = [("name", "description", text), ("property", "og:description", text)]
    tags += [("property", "og:title", title), ("property", "og:site_name", app.config.html_title)]
    tags += [("property", "og:type", "article")]
    if app.config.html_baseurl:  # OpenGraph wants absolute addresses
        base = app.config.html_baseurl.rstrip("/")
        tags += [("property", "og:url", f"{base}/{pagename}.html")]
        tags += [("property", "og:image", f"{base}/_static/social.png")]
    return "".join(
        f'<meta {kind}="{name}" content="{attribute(value)}" />\n' for kind, name, value in tags if value
    )


def chapter_number(root, pagename):
    """The number in the header of the chapter's source (`chapter: {number: 3}`); None for a page without one."""
    folder, _, name = pagename.rpartition("/")
    source = Path(root) / folder / "_src" / f"{name}.md"
    if not source.is_file():
        return None
    header = yaml.safe_load(source.read_text(encoding="utf-8").split("---")[1])
    return (header.get("chapter") or {}).get("number")


def add_context(app, pagename, templatename, context, doctree):
    root = Path(app.srcdir)
    url, revision = project.repository(root), project.revision(root)
    context["book_repository"] = url
    context["book_licence"] = f"{url}/blob/{revision}/LICENSE"
    context["book_number"] = chapter_number(root, pagename)
    unused = (
        UNUSED_ASSETS
        if MATHEMATICS.search(context.get("body") or "")
        else (*UNUSED_ASSETS, "mathjax", "MathJax")
    )
    for kind in ("css_files", "script_files"):
        context[kind] = [file for file in context[kind] if not is_unused(file, unused)]
    if doctree is None:
        return
    if (source := source_path(root, pagename)) is not None:
        context["book_edit"] = f"{url}/edit/{revision}/{source}"
        context["book_issue"] = f"{url}/issues/new?title={quote('On the page ' + pagename)}"
    if (root / f"{pagename}.ipynb").is_file():
        context["book_colab"] = project.colab_url(f"{pagename}.ipynb", root)
        context["book_notebook"] = True
    title = context.get("title", "")
    context["metatags"] = context.get("metatags", "") + metadata(
        app, title, description(doctree) or title, pagename
    )


def is_unused(file, words):
    text = f"{getattr(file, 'filename', '') or ''} {getattr(file, 'attributes', {}).get('body', '') or ''}"
    return any(word in text for word in words)


def number_chapters(app, env):
    """Write the chapters' own numbers into the table of contents (Sphinx would count the pages of the toc)."""
    for docname, toc in env.tocs.items():
        number = chapter_number(app.srcdir, docname)
        if number is not None:
            for reference in toc.findall(nodes.reference):
                if reference["anchorname"] == "":
                    reference["secnumber"] = (number,)
    return []


def drop_unused_extensions(app, config):
    for listeners in app.events.listeners.values():
        listeners[:] = [
            each
            for each in listeners
            if not (getattr(each.handler, "__module__", "") or "").startswith(UNUSED_EXTENSIONS)
        ]


def setup(app):
    app.connect("config-inited", drop_unused_extensions, priority=0)
    app.connect("env-updated", number_chapters)
    app.connect("html-page-context", add_context, priority=900)
