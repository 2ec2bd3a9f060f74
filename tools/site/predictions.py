"""A prediction: the question with a place to answer, the code, and behind one lid what comes out and why.

In the source a fence `predict` asks, the cells after it have the tag `predict`, and a fence `reveal` explains. The outputs of
those cells and the explanation open together.
"""

from docutils import nodes

from tools.notebooks import fences
from tools.site.boxes import html


def assemble(app, doctree):
    page = app.env.docname.rpartition("/")[2]
    for number, question in enumerate(_regions(doctree, "book-predict"), start=1):
        question["ids"].append(f"predict-{number}")
        title = nodes.paragraph("", question.get("title") or "Predict", classes=["book-predict-title"])
        question.insert(0, title)
        question["names"].append(f"{page}-{number}")
        _mark(question)
    for reveal in list(_regions(doctree, "book-reveal")):
        outputs = _outputs_before(reveal)
        for output in outputs:
            output.parent.remove(output)
        opening = html(
            f'<details class="book-reveal"><summary>{reveal["title"] or fences.REVEAL}</summary><div>'
        )
        shown = nodes.container("", *outputs, classes=["cell", "book-reveal-output"]) if outputs else None
        children = [opening, *([shown] if outputs else []), *reveal.children, html("</div></details>")]
        reveal.replace_self(children)


def _mark(question):
    """The choice that the source marks as right, `- [x]`, gets a class for the page's script; the marks themselves go."""
    for choice in question.findall(nodes.list_item):
        text = next(choice.findall(nodes.Text), None)
        if text is not None and (mark := fences.MARK.match(f"- {text}")):
            text.parent.replace(text, nodes.Text(text[len(mark[0]) - 2 :]))
            choice["classes"] += ["book-right"] if mark[1] == "x" else []


def _regions(doctree, style):
    return [node for node in doctree.findall(nodes.container) if style in node["classes"]]


def _outputs_before(reveal):
    """The outputs of the cells with the tag `predict` that stand before the explanation, in their order."""
    found = []
    for node in _backwards(reveal):
        if isinstance(node, nodes.container) and "cell" in node["classes"]:
            if "tag_predict" in node["classes"]:
                found[:0] = [part for part in node.children if "cell_output" in part.get("classes", ())]
            else:
                break
        elif "book-predict" in getattr(node, "attributes", {}).get("classes", ()):
            break
    return found


def _backwards(node):
    """What stands before a node: its earlier siblings, then those of its parents that are no sections."""
    siblings = node.parent.children
    yield from reversed(siblings[: siblings.index(node)])


def setup(app):
    app.connect("doctree-read", assemble)
