"""The markup of ``viz.blocks``: tables that need no script, and what its switches change."""

import html

from mlax_tutorial.viz.figures import markup
from mlax_tutorial.viz.figures.markup import counted

STEP, TALL = 90, 92  # of the drawing, in its own pixels: from block to block, and its height


def listing(found) -> str:
    """The accuracy of the whole, and without each block."""
    width = max(map(len, found.names))
    head = f"{counted(len(found.names), 'block')}, {counted(int(found.sizes.sum()), 'example')}, {found.accuracy():.1%} right"
    lines = [head.replace("%", " %")]
    for number, name in enumerate(found.names):
        lines.append(f"  without {name:{width}}  {100 * found.accuracy(number):5.1f} %")
    return "\n".join(lines)


def write(found) -> str:
    """The figure as HTML."""
    count = len(found.names)
    switches = "".join(
        f'<button type="button" class="viz-blocks-switch" aria-pressed="true" aria-label="block {i + 1}">{i + 1}</button>'
        for i in range(count)
    )
    whole = found.accuracy()
    alone = "".join(_alone(i, found) for i in range(count))
    classes = "".join(_class(i, found) for i in range(len(found.classes)))
    heads = "".join(
        f'<th scope="col" class="viz-blocks-{head}">{head}</th>' for head in ("without", "output", "right")
    )
    body = f"""{markup.bar(count, "block", "Which block is dropped", more=switches)}
{_drawing(count)}
<div class="viz-blocks-panes">
<div><table class="viz-blocks-alone"><thead><tr>{heads}</tr></thead><tbody>
<tr><th scope="row">nothing</th><td class="viz-blocks-output"></td>{_bar(whole)}</tr>{alone}</tbody></table></div>
<div><table class="viz-blocks-classes"><thead><tr><th scope="col">class</th><th scope="col" class="viz-blocks-head">right, all blocks</th></tr></thead>
<tbody>{classes}</tbody></table></div></div>"""
    caption = (
        f"A network of {counted(count, 'residual block')}, on {counted(int(found.sizes.sum()), 'example')}. The first table: how many are "
        "right when one block is dropped, so that only its shortcut is left. The second: how many of each class; the tick is the whole "
        "network. The buttons with numbers switch each block off and on; ◀ ▶ drop one block after the other."
    )
    worst = min(range(count), key=found.accuracy)
    label = (
        f"Accuracy of a residual network without some of its {counted(count, 'block')}: {_percent(whole)} with all, "
        f"{_percent(found.accuracy(worst))} without block {worst + 1}, the lowest."
    )
    data = {"right": found.right.tolist(), "sizes": found.sizes.tolist(), "classes": found.classes}
    return markup.frame("blocks", body, label, caption=caption, styles=["table"], script=True, data=data)


def _percent(share) -> str:
    return f"{100 * share:.1f} %"


def _bar(share, tick=None):
    """A cell with a bar and the number."""
    mark = "" if tick is None else f'<i style="left:{100 * tick:.1f}%"></i>'
    return (
        f'<td><div class="viz-blocks-share"><div><b style="width:{100 * share:.1f}%"></b>{mark}</div>'
        f"<span>{_percent(share)}</span></div></td>"
    )


def _alone(number, found):
    output = " x ".join(map(str, found.shapes[number][1]))
    name = f"block {number + 1} <code>{html.escape(found.names[number])}</code>"
    return f'<tr><th scope="row">{name}</th><td class="viz-blocks-output">{output}</td>{_bar(found.accuracy(number))}</tr>'


def _class(number, found):
    share = found.right[0, number] / max(found.sizes[number], 1)
    return f'<tr><th scope="row">{html.escape(found.classes[number])}</th>{_bar(share, share)}</tr>'


def _drawing(count):
    """The path through the network, and a branch for each block."""
    wide = count * STEP + 60
    middle = TALL - 22
    parts = [f'<path class="viz-blocks-path" d="M8 {middle}H{wide - 12}m-7-5 7 5-7 5"/>']
    for number in range(count):
        left = 34 + number * STEP
        parts.append(
            f'<g class="viz-blocks-branch"><path d="M{left} {middle}V44a10 10 0 0 1 10-10H{left + 12}'
            f'M{left + 52} 34h4a10 10 0 0 1 10 10V{middle - 7}"/><rect x="{left + 12}" y="18" width="40" height="32" rx="5"/>'
            f'<text x="{left + 32}" y="39" text-anchor="middle">{number + 1}</text></g>'
            f'<circle class="viz-blocks-sum" cx="{left + 66}" cy="{middle}" r="7"/>'
            f'<path class="viz-blocks-plus" d="M{left + 62} {middle}h8m-4-4v8"/>'
        )
    return (
        f'<div class="viz-scroll"><svg class="viz-blocks-drawing" viewBox="0 0 {wide} {TALL}" style="max-width:{wide}px" '
        f'aria-hidden="true">{"".join(parts)}</svg></div>'
    )
