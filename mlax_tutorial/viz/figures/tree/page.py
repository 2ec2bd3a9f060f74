"""The markup of ``viz.tree``: nested lists in ``<details>``, which fold without a script."""

import html

from mlax_tutorial.viz.figures import markup
from mlax_tutorial.viz.figures.markup import counted, in_bytes

OPEN_ROWS = 24  # levels are opened as long as no more rows than these are seen
MOST = 100  # children shown of one container


def listing(root) -> str:
    """The tree as text, a line for each node."""
    lines = []

    def add(node, depth):
        lines.append("  " * depth + f"{node.key}  {words(node)}")
        for child in node.children[:MOST]:
            add(child, depth + 1)
        if len(node.children) > MOST:
            lines.append("  " * (depth + 1) + f"... and {len(node.children) - MOST} more")

    add(root, 0)
    return "\n".join(lines)


def words(node) -> str:
    """A node in words: what it is, and how large."""
    said = [node.kind]
    if node.is_leaf:
        said += [] if node.wrong else [in_bytes(node.bytes)]
    elif node.leaves:
        said += [
            counted(node.leaves, "leaf", "leaves"),
            counted(node.numbers, "number"),
            in_bytes(node.bytes),
        ]
    else:
        said += ["no leaves"]
    return ", ".join(said) + (f" ({node.note})" if node.note else "")


def write(root) -> str:
    """The tree as HTML."""
    rows = _rows(root, root.bytes, _open_levels(root), 0)
    body = (
        '<div class="viz-tree-line viz-tree-head" aria-hidden="true"><span class="viz-tree-what">'
        '</span><span class="viz-tree-number">numbers</span>'
        f'<span class="viz-tree-bytes">bytes</span></div>\n<ul>{rows}</ul>'
    )
    caption = (
        f"The pytree {markup.code(root.key)}: containers unfold, and rows inside of them are what they hold. Numbers and bytes of a container are "
        "those of its leaves together; the line below the bytes is its share of the whole."
    )
    return markup.frame(
        "tree", body, f"A tree: {root.key}, {words(root)}", caption=caption, styles=["folding"]
    )


def _open_levels(root) -> int:
    """How many levels can be open without more than `OPEN_ROWS` rows: at least the first."""
    level, seen, depth = [root], 1, 0
    while level:
        level = [child for node in level for child in node.children[:MOST]]
        seen += len(level)
        if depth and seen > OPEN_ROWS:
            break
        depth += 1
    return depth


def _rows(node, total, levels, depth) -> str:
    line = _line(node, total)
    if not node.children:
        return f'<li class="viz-tree-end">{line}</li>'
    inner = "".join(_rows(child, total, levels, depth + 1) for child in node.children[:MOST])
    if len(node.children) > MOST:
        inner += f'<li class="viz-tree-end">… and {len(node.children) - MOST:,} more</li>'
    is_open = " open" if depth < levels else ""
    return f"<li><details{is_open}><summary>{line}</summary><ul>{inner}</ul></details></li>"


def _line(node, total) -> str:
    kind = html.escape(node.kind)
    kind = f"<code>{kind}</code>" if node.is_leaf else f'<span class="viz-tree-kind">{kind}</span>'
    note = f' <span class="viz-tree-note">{html.escape(node.note)}</span>' if node.note else ""
    if node.wrong:
        note = f' <span class="viz-tree-wrong">✗ {html.escape(node.note)}</span>'
    share = 100 * node.bytes / total if total else 0.0
    is_counted = node.leaves and not (node.is_leaf and node.wrong)
    numbers = f"{node.numbers:,}{markup.unseen(' numbers, ')}" if is_counted else ""
    taken = in_bytes(node.bytes) if is_counted else ""
    empty = "" if node.leaves else ' <span class="viz-tree-note">no leaves</span>'
    return (
        f'<span class="viz-tree-line"><span class="viz-tree-what"><code class="viz-tree-key">'
        f"{html.escape(node.key)}</code> {kind}{empty}{note}</span>"
        f'<span class="viz-tree-number">{numbers}</span>'
        f'<span class="viz-tree-bytes" style="--share:{share:.1f}%">{taken}</span></span>'
    )
