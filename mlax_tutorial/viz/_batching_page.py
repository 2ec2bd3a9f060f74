"""The markup of ``viz.batch``: a table that can be read without scripts, and stepped through with them."""

import html

from mlax_tutorial.viz import _figure


def listing(recording) -> str:
    """The recording as text; a star marks the axis of the examples."""
    results = [*recording.inputs, *[value for step in recording.steps for value in step.results]]
    width = max([len(_plain(value)) for value in results], default=0)
    batched = max([len(_starred(value)) for value in results], default=0)
    lines = [f"vmap of {recording.name}, {recording.size} examples"]
    lines += [f"  {v.name:8} {_plain(v):{width}}  ->  {_starred(v)}" for v in recording.inputs]
    for step in recording.steps:
        lines.append(f"  {step.before}")
        said = "done once for all" if step.shared else "; ".join(step.after) or "nothing to do"
        for value in step.results:
            lines.append(
                f"  {'':8} {_plain(value):{width}}  ->  {_starred(value):{batched}}  {said}".rstrip()
            )
            said = ""
        if said and not step.results:
            lines.append(f"  {'':8} {said}")
    if recording.left_out:
        lines.append(f"  ... and {recording.left_out} more equations")
    names = ", ".join(value.name for value in recording.outputs) or "nothing"
    lines.append(f"returns {names}; * marks the axis of the examples")
    return "\n".join(lines)


def _plain(value):
    return f"{value.dtype}[{','.join(map(str, value.shape))}]"


def _starred(value):
    axes = [f"{size}*" if axis == value.axis else str(size) for axis, size in enumerate(value.batched)]
    return f"{value.dtype}[{','.join(axes)}]"


def page(recording) -> str:
    """The recording as HTML."""
    rows = [_row(value.name, (value,), _where(value), "given") for value in recording.inputs]
    for step in recording.steps:
        said = (
            "all examples share it: it is done once"
            if step.shared
            else _primitives(step.after) or "nothing to do"
        )
        rows.append(_row(step.before, step.results, said, "shared" if step.shared else "mapped"))
    names = html.escape(", ".join(value.name for value in recording.outputs) or "nothing")
    more = f" {recording.left_out} more equations are not shown." if recording.left_out else ""
    title = f"vmap of {_figure.code(recording.name)} over {recording.size} examples"
    body = f"""<p class="viz-batch-title">{title}; <b class="viz-batch-axis">{recording.size}</b> \
marks the axis that counts them</p>
{_figure.bar(len(recording.steps), "equation", "Equations")}
<table><thead><tr><th scope="col">recorded for one example</th><th scope="col">one</th>\
<th scope="col">batch</th><th scope="col">what it becomes</th></tr></thead>
<tbody>{"".join(rows)}</tbody></table>
<p class="viz-batch-end">Returns {names}.{more}</p>"""
    label = f"What vmap makes of {recording.name}, equation by equation"
    data = {"inputs": len(recording.inputs)}
    caption = (
        f"Equations of {_figure.code(recording.name)}, one a row: as recorded for one example, and what vmap makes of them for "
        f"{recording.size}. The framed number is the axis that counts the examples; a result without one is shared by all of them."
    )
    return _figure.frame("batch", body, label, caption=caption, styles=["table"], script=True, data=data)


def _where(value):
    if value.axis is None:
        return "shared by all examples"
    return f"mapped over axis {value.axis}"


def _primitives(after):
    return "".join(map(_figure.code, after))


def _row(text, values, said, kind):
    one = "<br>".join(f"<code>{_plain(value)}</code>" for value in values)
    batch = "<br>".join(f"<code>{_marked(value)}</code>" for value in values)
    return (
        f'<tr class="viz-batch-{kind}"><th scope="row">{_figure.code(text)}</th>'
        f"<td>{one}</td><td>{batch}</td><td>{said}</td></tr>"
    )


def _marked(value):
    axes = [
        f'<b class="viz-batch-axis">{size}{_figure.unseen(" examples")}</b>'
        if axis == value.axis
        else str(size)
        for axis, size in enumerate(value.batched)
    ]
    return f"{value.dtype}[{','.join(axes)}]"
