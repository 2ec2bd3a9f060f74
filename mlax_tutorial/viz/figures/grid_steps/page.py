"""The markup of ``viz.grid_steps``: arrays cut into blocks, whose script marks those that a step sees, and a table of what is copied."""

import html
import math

from mlax_tutorial.viz.figures import markup
from mlax_tutorial.viz.figures.markup import counted, in_bytes

SIDE, LEAST, MOST = 150, 9, 30  # of a drawing, and of a block in it


def listing(shown) -> str:
    """One line for each array."""
    steps = counted(len(shown.steps), "step")
    lines = [f"{shown.kernel}: grid {shown.grid}, {steps}, {in_bytes(shown.moved)} moved"]
    wide = max(len(operand.name) for operand in shown.operands) + 2
    for operand in shown.operands:
        lines.append(f"  {operand.name:{wide}} {_way(operand):4} {_what(operand)}: {_copies(operand)}")
    return "\n".join(lines)


def write(shown) -> str:
    """The figure as HTML."""
    caption = (
        "The grid, step by step. Marked are the blocks that the kernel sees: orange, if a block is copied for this step, blue, if it is "
        "in VMEM already, or stays there. Inputs are copied before a step, outputs after it."
    )
    drawings = "".join(_drawing(operand) for operand in shown.operands)
    rows = "".join(
        f'<tr><th scope="row">{html.escape(operand.name)}</th><td>{_way(operand)}</td><td>{html.escape(_what(operand))}</td>'
        f"<td>{_copies(operand)}</td></tr>"
        for operand in shown.operands
    )
    summary = f"All {counted(len(shown.steps), 'step')} of {shown.kernel}, grid {shown.grid}: {in_bytes(shown.moved)} are moved."
    body = f"""{markup.bar(len(shown.steps), "step", "Steps")}
<div class="viz-grid-steps-arrays">{drawings}</div>
<div class="viz-scroll"><table><thead><tr><th scope="col">array</th><th scope="col">way</th><th scope="col">blocks</th>
<th scope="col">copied in all</th></tr></thead><tbody>{rows}</tbody></table></div>"""
    moved, said = 0, [summary]
    for number, step in enumerate(shown.steps):
        now = [operand for operand in shown.operands if operand.copied[number]]
        moved += sum(operand.size(number) for operand in now)
        names = ", ".join(operand.name for operand in now) or "nothing"
        place = f"({', '.join(map(str, step))})" if step else "()"
        said.append(f"{number + 1} of {len(shown.steps)}: {place}, copied: {names}; {in_bytes(moved)} so far")
    data = {
        "seen": [
            [_flat(operand, number) for operand in shown.operands] for number in range(len(shown.steps))
        ],
        "copied": [
            [int(operand.copied[number]) for operand in shown.operands] for number in range(len(shown.steps))
        ],
        "said": said,
    }
    return markup.frame(
        "grid_steps", body, summary, caption=caption, styles=["table"], script=True, data=data
    )


def _way(operand):
    return "out" if operand.output else "in"


def _what(operand):
    return f"{operand.dtype}[{','.join(map(str, operand.shape))}] in blocks of {operand.block}"


def _copies(operand):
    return f"{counted(sum(operand.copied), 'copy', 'copies')}, {in_bytes(operand.moved)}"


def _layout(operand):
    """Rows and columns of blocks: the last axis across, all others down."""
    blocks = operand.blocks or (1,)
    return math.prod(blocks[:-1]), blocks[-1]


def _flat(operand, step):
    """The place of a step's block among the rectangles, or -1 where it lies outside of the array."""
    place = 0
    for number, count in zip(operand.seen[step], operand.blocks, strict=True):
        if not 0 <= number < count:
            return -1
        place = place * count + number
    return place


def _drawing(operand):
    rows, columns = _layout(operand)
    width = max(LEAST, min(MOST, SIDE // columns))
    height = max(LEAST, min(MOST, SIDE // rows))
    blocks = "".join(
        f'<rect x="{column * width + 1}" y="{row * height + 1}" width="{width - 2}" height="{height - 2}"/>'
        for row in range(rows)
        for column in range(columns)
    )
    wide, high = columns * width, rows * height
    return (
        f'<figure><svg viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" aria-hidden="true">{blocks}</svg>'
        f"<figcaption>{html.escape(operand.name)}</figcaption></figure>"
    )
