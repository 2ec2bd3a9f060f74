"""The markup of ``viz.trace``: a page that can be read without scripts, and stepped through with them."""

import html

from mlax_tutorial.viz.figures import markup


def listing(recording) -> str:
    """The recording as text: each source line with the equations below it."""
    lines = [f"tracing {recording.name}, inputs {', '.join(recording.inputs) or 'none'}"]
    lines += [f"  {line}\n{below}".rstrip("\n") for line, below in zip(recording.source, _below(recording))]
    lines += [_indent(recording.equations[index], 6) for index in _homeless(recording)]
    if recording.error:
        lines.append(f"stopped: {recording.error}")
    else:
        lines.append(f"returns {', '.join(recording.outputs) or 'nothing'}")
    return "\n".join(lines)


def _below(recording):
    """For each source line the equations that came from it, indented."""
    texts = []
    for index, line in enumerate(recording.source):
        depth = 4 + len(line) - len(line.lstrip())
        added = [number for step in recording.steps if step.line == index for number in step.equations]
        texts.append("\n".join(_indent(recording.equations[number], depth) for number in added))
    return texts


def _homeless(recording):
    return [number for step in recording.steps if step.line is None for number in step.equations]


def _indent(text: str, depth: int) -> str:
    return "\n".join(" " * depth + line for line in text.split("\n"))


def write(recording) -> str:
    """The recording as HTML: complete without scripts; the script hides what is not yet recorded."""
    source = "".join(f"<li><code>{html.escape(line) or ' '}</code></li>" for line in recording.source)
    if not source:
        source = "<li><em>Python cannot find the source of this function.</em></li>"
    equations = "".join(f"<li>{markup.code(text)}</li>" for text in recording.equations)
    if not equations:
        equations = (
            "<li class='viz-trace-none'><em>No equation: nothing is left for the device to compute.</em></li>"
        )
    ending = (
        f"Tracing stopped: {html.escape(recording.error)}"
        if recording.error
        else f"Returns {html.escape(', '.join(recording.outputs) or 'nothing')}."
    )
    steps = [
        [-1 if step.line is None else step.line, list(step.equations), step.inner + 2 * step.known]
        for step in recording.steps
    ]
    inputs = html.escape(", ".join(recording.inputs) or "none")
    body = f"""{markup.bar(len(steps), "line", "Executed lines", more=_toggle(recording))}
<div class="viz-trace-panes">
<div><p class="viz-trace-head">Python</p><ol class="viz-trace-source">{source}</ol></div>
<div><p class="viz-trace-head">Recorded; inputs {inputs}</p><ol class="viz-trace-equations">{equations}</ol>
<p class="viz-trace-end">{ending}</p></div>
</div>
{_program(recording)}"""
    label = f"Stepping through {recording.name}: source lines and the equations that each adds"
    data = {"steps": steps, "error": recording.error or ""}
    caption = (
        f"The lines of {markup.code(recording.name)} as Python runs them, and the equations that JAX records. The marked line adds the marked "
        "equations; a line that adds none is run by Python alone."
    )
    return markup.frame("trace", body, label, caption=caption, script=True, data=data)


def _toggle(recording) -> str:
    if recording.program is None:
        return ""
    return '<button type="button" class="viz-trace-toggle" aria-pressed="false">Optimised program</button>\n'


def _program(recording) -> str:
    if recording.program is None:
        return ""
    blocks = []
    for block in recording.program.blocks:
        inner = "".join(f"<li>{markup.code(text)}</li>" for text in block.fused)
        if block.fused:
            title = f"fused into one: {markup.code(block.text)}"
            blocks.append(f'<li class="viz-trace-fused">{title}<ol>{inner}</ol></li>')
        else:
            blocks.append(f"<li>{markup.code(block.text)}</li>")
    empty = "<li><em>No instruction: the inputs are returned as they are.</em></li>"
    return (
        '<div class="viz-trace-program"><p class="viz-trace-head">The program that XLA made of it for this '
        f"{html.escape(recording.program.platform.upper())}; fused groups are outlined</p>"
        f"<ol>{''.join(blocks) or empty}</ol></div>"
    )
