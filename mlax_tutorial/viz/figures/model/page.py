"""The markup of ``viz.model``: blocks in ``<details>``, which open without a script, and between them what flows."""

import html

from mlax_tutorial.viz.figures import markup
from mlax_tutorial.viz.figures.markup import code, counted, in_bytes, in_flops

OPEN_BLOCKS = 16  # levels are opened as long as no more blocks than these are seen
MOST = 100  # children shown of one block
_OF_KEYS = frozenset("random_split random_unwrap random_wrap random_fold_in unstack".split())


def listing(root) -> str:
    """The model as text, a line for each block."""
    lines = []

    def add(block, depth):
        lines.append("  " * depth + f"{block.place}  {words(block)}")
        for child in block.children[:MOST]:
            add(child, depth + 1)
        if len(block.children) > MOST:
            lines.append("  " * (depth + 1) + f"... and {len(block.children) - MOST} more")

    add(root, 0)
    return "\n".join(lines)


def words(block) -> str:
    """A block in words."""
    said = [block.title]
    if block.visits:
        said += [f"{block.visits[0].given} -> {block.visits[0].returned}"]
    if block.numbers:
        said += [counted(block.numbers, "number"), in_bytes(block.bytes)]
    said += [in_flops(block.flops + block.transcendentals)] if block.visits else ["not called"]
    return ", ".join(said + [text for text in _notes(block) if text])


def _notes(block):
    """What else is to be said: repetition and keys."""
    times = f"runs {block.times} times" if block.times > 1 else ""
    calls = f"called {len(block.visits)} times" if len(block.visits) > 1 else ""
    return [times, calls, _keys(block)]


def _keys(block):
    if not block.key:
        return ""
    done = [f"splits it into {count}" for count in block.splits]
    if block.draws:
        done += [f"draws {counted(block.draws, 'random word')}"]
    getting = [child.place for child in block.children if child.key]
    if getting:
        handed = "hands them to" if block.splits else "hands it to"
        done += [f"{handed} {', '.join(getting)}"]
    return "gets a key" + (f": {', '.join(done)}" if done else "")


def write(root) -> str:
    """The model as HTML."""
    caption = (
        "A model: each block is a layer, and opens to what it holds and does. Arrows say what flows between them. The bars are a "
        'block\'s share of the <span class="viz-model-blue">bytes</span> and of the '
        '<span class="viz-model-orange">FLOPs</span> of the forward pass.'
    )
    body = f'<ol class="viz-model-flow">{_arrow(root, False)}{_block(root, root, _open_levels(root), 0)}{_end(root)}</ol>'
    label = f"A model as blocks: {root.place}, {words(root)}"
    return markup.frame("model", body, label, caption=caption, styles=["folding"])


def _open_levels(root) -> int:
    """How many levels can be open without more than `OPEN_BLOCKS` blocks: at least the first."""
    level, seen, depth = [root], 1, 0
    while level:
        level = [child for block in level for child in block.children[:MOST]]
        seen += len(level)
        if depth and seen > OPEN_BLOCKS:
            break
        depth += 1
    return depth


def _block(block, root, levels, depth):
    is_open = " open" if block.children and depth < levels else ""
    return (
        f'<li class="viz-model-item"><details class="viz-model-block"{is_open}>'
        f"<summary>{_line(block, root)}</summary>{_inside(block, root, levels, depth)}</details></li>"
    )


def _line(block, root):
    chips = [f"× {block.times}"] if block.times > 1 else []
    chips += [f"{len(block.visits)} calls"] if len(block.visits) > 1 else []
    chips += ["key"] if block.key else []
    chips += ["not called"] if not block.visits else []
    shown = "".join(f' <span class="viz-model-chip">{chip}</span>' for chip in chips)
    work, all_work = (one.flops + one.transcendentals for one in (block, root))
    weights = in_bytes(block.bytes) if block.numbers else "&nbsp;"
    return (
        f'<span class="viz-model-line"><span class="viz-model-what"><code class="viz-model-place">{html.escape(block.place)}</code> '
        f'<span class="viz-model-title">{html.escape(block.title)}</span>{shown}</span>'
        f'<span class="viz-model-bytes" style="--share:{_share(block.bytes, root.bytes)}">{weights}</span>'
        f'<span class="viz-model-flops" style="--share:{_share(work, all_work)}">{in_flops(work) if work else "&nbsp;"}</span></span>'
    )


def _share(part, whole):
    return f"{100 * part / whole if whole else 0:.1f}%"


def _inside(block, root, levels, depth):
    parts = [_facts(block)]
    if block.children:
        parts.append(f'<ol class="viz-model-flow">{_flow(block, root, levels, depth)}</ol>')
    return f'<div class="viz-model-inside">{"".join(parts)}</div>'


def _facts(block):
    """What stands in an open block, before its children."""
    facts = []
    for visit in block.visits[:8] if len(block.visits) > 1 or not block.children else ():
        facts.append(
            (
                "in, out" if visit is block.visits[0] else "again",
                f"{code(visit.given)} → {code(visit.returned)}",
            )
        )
    if block.numbers:
        total = f"{counted(block.numbers, 'number')}, {in_bytes(block.bytes)}"
        if block.trainables < block.numbers:
            total += f", {block.trainables:,} of them trainable"
        facts.append(("holds", total))
    for array in block.arrays[:MOST]:
        kept = "" if array.role == "trainable" else " (non-trainable)"
        facts.append(("", f"{code(array.path)} {code(array.kind)}, {in_bytes(array.bytes)}{kept}"))
    if block.flops or block.transcendentals:
        functions = f", {counted(block.transcendentals, 'transcendental')}" if block.transcendentals else ""
        facts.append(("work", f"{block.flops:,} FLOPs{functions}"))
    if block.operations and not block.children:
        facts.append(("by", _operations(block)))
    if block.uncounted:
        facts.append(("not counted", ", ".join(map(code, block.uncounted))))
    if keys := _keys(block):
        facts.append(("key", html.escape(keys)))
    if not block.visits:
        facts.append(("", "not called in this trace"))
    rows = "".join(f"<div><dt>{name}</dt><dd>{text}</dd></div>" for name, text in facts)
    return f'<dl class="viz-model-facts">{rows}</dl>'


def _operations(block):
    """The primitives that a block asks for itself; what handles keys is told in words."""
    named = [(name, count) for name, count in block.operations if not (block.key and name in _OF_KEYS)]
    return ", ".join(code(name) + (f" × {count}" if count > 1 else "") for name, count in named[:24])


def _flow(block, root, levels, depth):
    """The children, those with the same input side by side, and what flows between them."""
    rows, shown, before = [], block.children[:MOST], "input"
    place = 0
    while place < len(shown):
        group = [shown[place]]
        while place + len(group) < len(shown) and _beside(group[0], shown[place + len(group)]):
            group.append(shown[place + len(group)])
        place += len(group)
        inner = [_block(child, root, levels, depth + 1) for child in group]
        rows.append(_arrow(group[0], before))
        if len(group) > 1:
            rows.append(f'<li class="viz-model-row"><ol>{"".join(inner)}</ol></li>')
            before = ""
        else:
            rows += inner
            before = group[0].place
    if len(block.children) > MOST:
        rows.append(f"<li>… and {len(block.children) - MOST:,} more</li>")
    if own := _operations(block):
        rows.append(f'<li class="viz-model-arrow"><span class="viz-model-note">itself:</span> {own}</li>')
    return "".join(rows) + _end(block)


def _beside(one, other):
    if not (one.visits and other.visits):
        return False
    return one.visits[0].source == other.visits[0].source == "input"


def _arrow(block, before):
    """What flows into a block; and from where, if not from the block above."""
    if not block.visits:
        return ""
    visit = block.visits[0]
    source = ""
    if before is not False and visit.source != before:
        places = {"input": "from the input", "computed": "computed", "": ""}
        source = places.get(visit.source, f"from {visit.source}")
    return _flowing(visit.given, source)


def _end(block):
    return _flowing(block.visits[-1].returned, "out") if block.visits else ""


def _flowing(what, note):
    note = f' <span class="viz-model-note">{html.escape(note)}</span>' if note else ""
    return f'<li class="viz-model-arrow"><span aria-hidden="true">↓</span> {code(what)}{note}</li>'
