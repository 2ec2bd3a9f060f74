"""An exercise on the page is a card: number, title, stars, minutes, the task, the code to begin with, hints, a solution.

Hints and solution come from the exercise itself, `mlax_tutorial.exercises.CHAPTER`, so they say what `ex.NAME.hint()` says;
the paragraph that names these calls is left to the notebook.
"""

import html as markup
import json
import re
from pathlib import Path

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from tools import project
from tools.notebooks import sources
from tools.notebooks.places import Book
from tools.site.boxes import html
from tools.site.pages import chapter_number


def cards(app, doctree):
    docname = app.env.docname
    name = docname.removeprefix("book/")
    book = Book(Path(app.srcdir))
    if not docname.startswith("book/") or not book.source(name).exists():
        return
    cells = json.loads(book.notebook(name).read_text(encoding="utf-8"))["cells"]
    number, count = chapter_number(app.srcdir, docname), 0
    for section in list(doctree.findall(nodes.section)):
        found = sources.EXERCISE.match(f"### {section[0].astext()}")
        if found is None:
            continue
        count += 1
        exercise = _exercise(name, found[2])
        section["classes"].append("book-exercise")
        section["ids"].append(f"exercise-{found[2]}")
        label = f"Exercise {number}.{count}" if number else "Exercise"
        section[0].children = [nodes.Text(exercise.title)]
        for paragraph in [
            each for each in section.findall(nodes.paragraph) if _says_how(each.astext(), exercise)
        ]:
            paragraph.parent.remove(paragraph)
        _name_in_contents(app.env, section["ids"][0], f"{number}.{count} " if number else "", exercise)
        section.insert(0, html(_head(label, found[2], found[3], found[4], name)))
        cell = next((cell for cell in cells if f"ex.{found[2]}.check(" in "".join(cell["source"])), None)
        colab = project.colab_url(f"book/{name}.ipynb", book.root) + (
            f"#scrollTo={cell['id']}" if cell else ""
        )
        section.append(html(_foot(exercise, colab)))


def _name_in_contents(env, anchor, number, exercise):
    """On the right of the page the exercise has the name that stands on its card; the one in code comes after it."""
    for reference in env.tocs[env.docname].findall(nodes.reference):
        if reference["anchorname"] == f"#{anchor}":
            code = nodes.inline("", exercise.name, classes=["book-code-name"])
            reference.children = []
            reference += [nodes.Text(f"{number}{exercise.title} "), code]


def _exercise(chapter, name):
    from mlax_tutorial.exercises import catalog

    return next(exercise for exercise in catalog.of(chapter) if exercise.name == name)


def _says_how(text, exercise):
    """Where the notebook says what to call for a hint: on the page the hints stand below."""
    return text.startswith("For a hint, ") and f"ex.{exercise.name}.hint()" in text


def _head(label, name, stars, minutes, chapter):
    filled = stars.count("★")
    return (
        f'<div class="book-exercise-head" data-exercise="{chapter}.{name}"><span class="book-exercise-number">{label}</span>'
        f'<span class="book-exercise-stars" role="img" aria-label="{filled} of 3 stars">{stars}</span>'
        f"<span>{minutes} min</span></div>"
    )


def _foot(exercise, colab):
    hints = "".join(
        f"<details><summary>Hint {number}</summary><p>{_inline(hint)}</p></details>"
        for number, hint in enumerate(exercise.hints, start=1)
    )
    code = highlight(exercise.solution_text(), PythonLexer(), HtmlFormatter(cssclass="highlight"))
    return (
        f'<div class="book-exercise-foot">{hints}<details><summary>Solution</summary>'
        f'<div class="highlight-python notranslate">{code}</div></details>'
        f'<p class="book-exercise-actions"><a class="book-exercise-colab" href="{markup.escape(colab)}">Open in Colab at this exercise</a>'
        "</p></div>"
    )


def _inline(text):
    """A hint as HTML: code between backticks, emphasis between stars."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", markup.escape(text, quote=False))
    return re.sub(r"(?<!\w)\*([^*\s][^*]*)\*(?!\w)", r"<em>\1</em>", text).replace("\n", "<br>")


def setup(app):
    app.connect("doctree-read", cards)
