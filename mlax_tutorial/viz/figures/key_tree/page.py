"""The markup of ``viz.key_tree``: an SVG that can be read without scripts, and stepped through with them."""

import dataclasses
import html

from mlax_tutorial.viz.figures import markup
from mlax_tutorial.viz.figures.markup import attribute

LETTER = 7.4  # width of a letter, in pixels of the page
HEIGHT, TALL, GAP, BETWEEN = 26, 44, 10, 22
MOST = 160  # nodes


def listing(recording) -> str:
    """The recording as text, a line for each node."""
    lines = [f"keys of {recording.name}"]

    def add(node, depth):
        lines.append("  " * depth + words(node))
        for child in node.children:
            add(child, depth + 1)

    for root in recording.roots:
        add(root, 1)
    if not recording.roots:
        lines.append("  none")
    return "\n".join(lines)


def words(node) -> str:
    text = label(node)
    if node.wrong:
        return f"{text}  <- {node.wrong}"
    return f"{text}  (not used)" if node.unused else text


def label(node) -> str:
    text = node.text
    if node.count > 1 and node.kind == "key":
        text += f"  {node.count} keys"
    for length in node.rounds:
        text += f"  ×{length}" if length is not None else "  × each round"
    return text


@dataclasses.dataclass
class _Box:
    node: object
    children: list
    parent: int = -1
    number: int = 0
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = HEIGHT
    needs: float = 0.0


def write(recording) -> str:
    """The recording as HTML: a tree from left to right, and the same as text, folded away."""
    boxes = _laid_out(recording)
    if not boxes:
        return f"<p>{html.escape(recording.name)} uses no random keys.</p>"
    width = max(box.x + box.width for box in boxes) + 3
    height = max(box.y + box.height / 2 for box in boxes) + 4
    edges = "".join(_edge(boxes[box.parent], box) for box in boxes if box.parent >= 0)
    marks = "".join(_mark(box) for box in boxes)
    wrong = [box.node for box in boxes if box.node.wrong]
    faults = dict.fromkeys(f"{node.text} is {node.wrong}" for node in wrong)
    verdict = f"Wrong: {'; '.join(faults)}." if faults else "Each key is used for one thing only."
    name = html.escape(recording.name)
    count = len(recording.steps)
    body = f"""{markup.bar(count, "use of a key", "Uses of keys", at=count)}
<div class="viz-scroll" tabindex="0" role="group" aria-label="Keys of {name}: a tree, from left to right">
<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="The tree of keys of {name}. {attribute(verdict)}">
{edges}{marks}
</svg></div>
<p class="viz-key-tree-verdict">{html.escape(verdict)}</p>
<details><summary>The same as text</summary><pre>{html.escape(listing(recording))}</pre></details>"""
    label = f"The keys of {recording.name}, use by use"
    data = {"steps": recording.steps}
    caption = (
        f"The random keys of {markup.code(recording.name)}, from left to right: each box is a key or what is drawn from one, and a line leads to "
        "what was made of it. A thick red frame marks a key that is used wrongly, a dotted one a key that is never used."
    )
    return markup.frame("key_tree", body, label, caption=caption, styles=["folding"], script=True, data=data)


def _laid_out(recording):
    boxes, trees = [], []

    def make(node, parent):
        box = _Box(node, [], parent, len(boxes))
        boxes.append(box)
        box.width = LETTER * max(len(label(node)), len(node.wrong) + 2 if node.wrong else 0) + 30
        box.height = TALL if node.wrong else HEIGHT
        for child in node.children:
            if len(boxes) < MOST:
                box.children.append(make(child, box.number))
        below = sum(child.needs for child in box.children)
        box.needs = max(box.height + GAP, below)
        return box

    for root in recording.roots:
        if len(boxes) < MOST:
            trees.append(make(root, -1))

    def place(box, top, left):
        box.x = left
        below = sum(child.needs for child in box.children)
        at = top + (box.needs - below) / 2
        for child in box.children:
            place(child, at, left + box.width + BETWEEN)
            at += child.needs
        ends = [box.children[0].y, box.children[-1].y] if box.children else []
        box.y = sum(ends) / 2 if ends else top + box.needs / 2

    top = 2
    for tree in trees:
        place(tree, top, 3)
        top += tree.needs + GAP
    return boxes


def _edge(parent, child):
    x, y = parent.x + parent.width, parent.y
    middle = (x + child.x) / 2
    return (
        f'<path class="viz-key-tree-edge" data-of="{child.number}" '
        f'd="M{x:.0f} {y:.1f}C{middle:.0f} {y:.1f} {middle:.0f} {child.y:.1f} {child.x:.0f} {child.y:.1f}"/>'
    )


def _mark(box):
    node, top = box.node, box.y - box.height / 2
    kinds = ["viz-key-tree-node", f"viz-key-tree-{node.kind}"]
    kinds += ["viz-key-tree-unused"] * node.unused + ["viz-key-tree-wrong"] * bool(node.wrong)
    behind = ""
    if node.count > 1 or node.rounds:
        behind = f'<rect class="viz-key-tree-behind" x="{box.x + 3:.0f}" y="{top + 3:.1f}" width="{box.width:.0f}" height="{box.height}" rx="13"/>'
    radius = 4 if node.kind == "draw" else 13
    middle = top + 13
    glyph = _DICE if node.kind == "draw" else _KEY
    wrong = (
        f'<text class="viz-key-tree-why" x="{box.x + 24:.0f}" y="{top + 36:.1f}">✗ {html.escape(node.wrong)}</text>'
        if node.wrong
        else ""
    )
    said = attribute(words(node).replace("  <- ", ", wrong: "))
    return (
        f'<g class="{" ".join(kinds)}" data-number="{box.number}" data-parent="{box.parent}" data-step="{node.step}" '
        f'data-wrong="{node.wrong_from}" data-said="{said}" data-source="{attribute(node.source)}">{behind}'
        f'<rect class="viz-key-tree-box" x="{box.x:.0f}" y="{top:.1f}" width="{box.width:.0f}" height="{box.height}" rx="{radius}"/>'
        f'<g transform="translate({box.x + 7:.0f} {middle - 6:.1f})">{glyph}</g>'
        f'<text x="{box.x + 24:.0f}" y="{middle + 4:.1f}">{html.escape(label(node))}</text>{wrong}</g>'
    )


_KEY = '<path class="viz-key-tree-glyph" d="M6 6a2.6 2.6 0 1 1-5.2 0a2.6 2.6 0 1 1 5.2 0H12.4V9M10 6v2.4"/>'
_DICE = (
    '<rect class="viz-key-tree-glyph" x="1" y="1" width="10" height="10" rx="2"/>'
    '<path class="viz-key-tree-dots" d="M4 4h.01M8 8h.01M6 6h.01"/>'
)
