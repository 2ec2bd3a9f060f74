"""`:::{tip} Takeaway`: boxes that take a title.

docutils' own `tip`, `note` and `warning` have no title: what stands beside the name would become the first
line of the text. Here it is the title, and it names the box's style (`takeaway`, `watch-out`, `on-a-tpu`).
"""

from docutils import nodes
from docutils.parsers.rst.directives import class_option
from docutils.parsers.rst.directives.admonitions import BaseAdmonition

KINDS = {"note": "Note", "tip": "Tip", "warning": "Watch out"}


class Box(BaseAdmonition):
    """A box of one of `KINDS`, with an optional title."""

    node_class = nodes.admonition
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = {"class": class_option, "name": lambda text: text}

    def run(self):
        title = self.arguments[0] if self.arguments else KINDS[self.name]
        self.arguments = [title]
        styles = dict.fromkeys([self.name, nodes.make_id(title), *self.options.get("class", [])])
        self.options["class"] = list(styles)
        return super().run()


def setup(app):
    for kind in KINDS:
        app.add_directive(kind, Box, override=True)
