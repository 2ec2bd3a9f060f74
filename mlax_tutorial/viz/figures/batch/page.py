"""The markup of ``viz.batch``: a table that can be read without scripts, and stepped through with them."""

import html

from mlax_tutorial.viz.figures import controls, markup


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


def write(recording, choices=None) -> str:
    """The recording as HTML, with all that can be chosen."""
    title, rows, end = _state(recording)
    chosen, stored = "", ""
    if choices is not None:
        begin = next(choice for choice in choices.all if choice.axes == choices.axes)
        chosen = (
            _controls(choices) + f'<p class="viz-batch-said" aria-live="polite" hidden>{_said(begin)}</p>\n'
        )
        stored = "".join(map(_stored, choices.all))
    body = f"""<p class="viz-batch-title">{title}</p>
{chosen}{markup.bar(len(recording.steps), "equation", "Equations")}
<table><thead><tr><th scope="col">recorded for one example</th><th scope="col">one</th>\
<th scope="col">batch</th><th scope="col">what it becomes</th></tr></thead>
<tbody>{rows}</tbody></table>
<p class="viz-batch-end">{end}</p>{stored}"""
    label = f"What vmap makes of {recording.name}, equation by equation"
    data = {"inputs": len(recording.inputs)}
    caption = (
        f"Equations of {markup.code(recording.name)}, one a row: as recorded for one example, and what vmap makes of them for "
        f"{'all' if choices else recording.size}. The framed number is the axis that counts the examples; a result without one is shared by all of them."
    )
    if choices is not None:
        caption += " Choose which axis of each argument that is, or <code>None</code> to share it."
    return markup.frame(
        "batch",
        body,
        label,
        caption=caption,
        styles=["table"],
        script=True,
        data=data,
        tuned=choices is not None,
    )


def _state(recording):
    """The title, the rows and the last line: what another choice of axes changes."""
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
    title = (
        f"vmap of {markup.code(recording.name)} over {recording.size} examples; "
        f'<b class="viz-batch-axis">{recording.size}</b> marks the axis that counts them'
    )
    return title, "".join(rows), f"Returns {names}.{more}"


def _controls(choices):
    """A list of axes for each argument."""
    return controls.row(
        *(
            controls.choice(f"in_axes of {name}", map(str, options), str(axis))
            for name, options, axis in zip(choices.names, choices.options, choices.axes, strict=True)
        )
    )


def _stored(choice):
    """A choice as the script finds it."""
    title = rows = end = ""
    if choice.recording is not None:
        title, rows, end = _state(choice.recording)
    axes = ",".join(map(str, choice.axes))
    return (
        f'<template data-axes="{axes}"><p>{title}</p><p>{_said(choice)}</p>'
        f"<table><tbody>{rows}</tbody></table><p>{end}</p></template>"
    )


def _said(choice):
    """What comes of a choice, in words."""
    takes = [
        markup.code(taken) if axis is not None else f"all of {markup.code(taken)}"
        for axis, taken in zip(choice.axes, choice.takes, strict=True)
    ]
    pairs = f"Example <code>i</code> takes {markup.listed(takes)}."
    if choice.recording is None:
        why = html.escape(choice.refused)
        some = any(axis is not None for axis in choice.axes)
        return f"<b>This does not work.</b> {f'{pairs} But {why}' if some else why[0].upper() + why[1:]}"
    size = choice.recording.size
    results = [
        f"{value.dtype}[{','.join(map(str, (size, *value.shape)))}]" for value in choice.recording.outputs
    ]
    many = "result has" if len(results) == 1 else "results have"
    return f"{pairs} " + (
        f"The {many} the shape {', '.join(map(markup.code, results))}." if results else "Nothing is returned."
    )


def _where(value):
    if value.axis is None:
        return "shared by all examples"
    return f"mapped over axis {value.axis}"


def _primitives(after):
    return "".join(map(markup.code, after))


def _row(text, values, said, kind):
    one = "<br>".join(f"<code>{_plain(value)}</code>" for value in values)
    batch = "<br>".join(f"<code>{_marked(value)}</code>" for value in values)
    return (
        f'<tr class="viz-batch-{kind}"><th scope="row">{markup.code(text)}</th>'
        f"<td>{one}</td><td>{batch}</td><td>{said}</td></tr>"
    )


def _marked(value):
    axes = [
        f'<b class="viz-batch-axis">{size}{markup.unseen(" examples")}</b>'
        if axis == value.axis
        else str(size)
        for axis, size in enumerate(value.batched)
    ]
    return f"{value.dtype}[{','.join(axes)}]"
