"""The markup of ``viz.passes``: two tables that can be read without scripts, and stepped through with them."""

import html

from mlax_tutorial.viz.figures import markup
from mlax_tutorial.viz.figures.markup import counted, in_bytes


def listing(recording) -> str:
    """The recording as text: each equation with the bytes that are held while it runs."""
    steps = recording.forward + recording.backward
    width = max([len(text) for step in steps for text in _texts(step)], default=0)
    width = max(27, min(width, 80))

    def lines(steps):
        for step in steps:
            held = step.kept + step.remade
            said = f"  {step.text:{width}} {in_bytes(held) if held else '':>9}  {_said(step)}".rstrip()
            yield said
            yield from (f"  {line}{'  (again)' if again else ''}" for line, again in step.inner)

    names = " ".join(value.name for value in recording.stored)
    more = f"; {recording.left_out} more equations are not shown" if recording.left_out else ""
    return "\n".join(
        [
            f"passes of {recording.name}, given {', '.join(recording.inputs) or 'nothing'}",
            f"{'forward':{width + 2}} {'held':>9}",
            *lines(recording.forward),
            f"returns {_list(recording.outputs)}, stores {in_bytes(recording.kept)}: {names or 'nothing'}",
            f"backward, from the slope {_list(recording.slopes)}",
            *lines(recording.backward),
            f"gradient {_list(recording.gradients)}; {_summary(recording)}{more}",
        ]
    )


def _texts(step):
    return [step.text]


def _list(names):
    return ", ".join(names) or "nothing"


def _summary(recording):
    return f"at most {in_bytes(recording.peak)} held, {counted(recording.again, 'equation')} computed again"


def _said(step):
    said = []
    if step.stored:
        said.append("stored")
    if step.used:
        said.append(f"uses {' '.join(step.used)}")
    if step.again:
        said.append("again")
    return ", ".join(said)


def write(recording) -> str:
    """The recording as HTML."""
    most = max(recording.peak, 1)
    makers = {name: i for i, step in enumerate(recording.forward) for name in step.stored}
    forward = "".join(_row(step, most, makers) for step in recording.forward)
    backward = "".join(_row(step, most, makers) for step in recording.backward)
    nothing = '<tr class="viz-passes-none"><td colspan="3"><em>No equation.</em></td></tr>'
    waiting = "".join(
        f"<li{' class=viz-passes-given' if value.given else ''}><code>{html.escape(value.name)}:"
        f"{html.escape(value.type)}</code> {'there in any case' if value.given else in_bytes(value.bytes)}</li>"
        for value in recording.stored
    )
    more = f" {recording.left_out} more equations are not shown." if recording.left_out else ""
    head = (
        '<thead><tr><th scope="col">{}</th><th scope="col">what happens</th>'
        '<th scope="col">held meanwhile</th></tr></thead>'
    )
    body = f"""<p class="viz-passes-title">The two passes of {markup.code(recording.name)}, given \
{markup.code(", ".join(recording.inputs) or "nothing")}</p>
{markup.bar(len(recording.forward) + len(recording.backward), "equation", "Equations")}
<table>{head.format("forward pass")}<tbody class="viz-passes-forward">{forward or nothing}</tbody></table>
<div class="viz-passes-waiting"><p>Returns {markup.code(_list(recording.outputs))}. Between the passes \
wait {in_bytes(recording.kept)}:</p><ul>{waiting or "<li>nothing</li>"}</ul></div>
<table>{head.format(f"backward pass, from the slope {html.escape(_list(recording.slopes))}")}\
<tbody class="viz-passes-backward">{backward or nothing}</tbody></table>
<p class="viz-passes-end">The gradient is {markup.code(_list(recording.gradients))}; \
{_summary(recording)}.{more}</p>"""
    label = f"The forward and the backward pass of {recording.name}"
    caption = f"""What the gradient of {markup.code(recording.name)} runs, one equation a row: the forward pass, then the backward pass. The bar shows \
the bytes held meanwhile, solid those stored on the way forward, hatched those computed a second time on the way back (↻)."""
    return markup.frame("passes", body, label, caption=caption, styles=["table"], script=True)


def _row(step, most, makers):
    inner = "".join(
        f'<code class="viz-passes-inner{" viz-passes-second" if again else ""}">{html.escape(line)}'
        f"{' ↻ again' if again else ''}</code>"
        for line, again in step.inner
    )
    sources = " ".join(str(makers[name]) for name in step.used if name in makers)
    kept, remade = (100 * size / most for size in (step.kept, step.remade))
    held = step.kept + step.remade
    bar = (
        f'<span class="viz-passes-held" aria-hidden="true"><i style="width:{kept:.1f}%"></i>'
        f'<b style="width:{remade:.1f}%"></b></span>'
    )
    words = in_bytes(step.kept) if step.kept or not step.remade else ""
    words += f"{' + ' if words else ''}{in_bytes(step.remade)} again" if step.remade else ""
    return (
        f'<tr{" class=viz-passes-again" if step.again else ""} data-from="{sources}"><th scope="row">'
        f"{markup.code(step.text)}{inner}</th><td>{_happens(step)}</td>"
        f"<td>{bar}{words if held else 'nothing'}</td></tr>"
    )


def _happens(step):
    said = []
    if step.again:
        said.append("↻ computed again")
    elif any(again for _, again in step.inner):
        said.append("↻ computes again")
    if step.stored:
        said.append(f"stores {markup.code(' '.join(step.stored))}")
    if step.used:
        said.append(f"uses {markup.code(' '.join(step.used))}")
    return "; ".join(said)
