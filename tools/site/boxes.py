"""What the fences of a source become on the page: boxes, predictions, asides, the header of a chapter.

docutils' own `tip`, `note` and `warning` have no title: what stands beside the name would become the first
line of the text. Here it is the title, and it names the box's style (`takeaway`, `watch-out`, `on-a-tpu`).
"""

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.parsers.rst.directives import class_option
from docutils.parsers.rst.directives.admonitions import BaseAdmonition

from tools.notebooks import fences


class Box(BaseAdmonition):
    """A box of one of the kinds of `fences.BOXES`, with an optional title."""

    node_class = nodes.admonition
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = {"class": class_option, "name": lambda text: text}

    def run(self):
        title = self.arguments[0] if self.arguments else fences.BOXES[self.name]
        self.arguments = [title]
        styles = dict.fromkeys([self.name, nodes.make_id(title), *self.options.get("class", [])])
        self.options["class"] = list(styles)
        return super().run()


class Region(Directive):
    """A part of the page under a class of its own; `title` is what stands beside the fence's name."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True

    def run(self):
        region = nodes.container(classes=[f"book-{self.name}"])
        region["title"] = self.arguments[0] if self.arguments else ""
        self.state.nested_parse(self.content, self.content_offset, region)
        return [region]


class Aside(Region):
    """A note in the margin; where there is none, it opens at a tap."""

    def run(self):
        (region,) = super().run()
        title = region["title"] or "Aside"
        summary = f'<summary><span>{title}</span></summary><div class="book-aside-text">'
        return [
            html('<details class="book-aside" name="aside">' + summary),
            *region.children,
            html("</div></details>"),
        ]


class Facts(Directive):
    """The header of a chapter: what it takes, needs, teaches and runs on."""

    has_content = True

    def run(self):
        terms = nodes.definition_list(classes=["book-facts"])
        for name, value in fences.facts(fences.Fence("facts", "", list(self.content))):
            definition = nodes.definition()
            self.state.nested_parse([value], self.content_offset, definition)
            terms += nodes.definition_list_item("", nodes.term("", name), definition)
        return [terms]


class Names(Directive):
    """Marks the section as the one that teaches the names beside it; `tools/notebooks/names.py` makes the index of them."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self):
        return []


def html(text):
    return nodes.raw("", text, format="html")


def setup(app):
    for kind in fences.BOXES:
        app.add_directive(kind, Box, override=True)
    app.add_directive("predict", Region)
    app.add_directive("reveal", Region)
    app.add_directive("aside", Aside, override=True)
    app.add_directive("facts", Facts)
    app.add_directive("names", Names)
