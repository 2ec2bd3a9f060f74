"""The markup of ``viz.passes``: two tables that can be read without scripts, and stepped through with them."""

import hashlib
import html
from importlib import resources


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
    again = "1 equation" if recording.again == 1 else f"{recording.again} equations"
    return f"at most {in_bytes(recording.peak)} held, {again} computed again"


def _said(step):
    said = []
    if step.stored:
        said.append("stored")
    if step.used:
        said.append(f"uses {' '.join(step.used)}")
    if step.again:
        said.append("again")
    return ", ".join(said)


def in_bytes(number: int) -> str:
    """Bytes in words.

    >>> in_bytes(12), in_bytes(4096), in_bytes(2_500_000)
    ('12 B', '4.1 kB', '2.5 MB')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}" if number >= 100 * size else f"{number / size:.2g} {unit}"
    return f"{number} B"


def page(recording) -> str:
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
    body = f"""<p class="viz-passes-title">The two passes of <code>{html.escape(recording.name)}</code>, given \
<code>{html.escape(", ".join(recording.inputs) or "nothing")}</code></p>
<div class="viz-passes-bar" hidden>
<button type="button" class="viz-passes-previous" aria-label="Previous equation">◀</button>
<button type="button" class="viz-passes-next" aria-label="Next equation">▶</button>
<input type="range" min="0" max="{len(recording.forward) + len(recording.backward)}" value="0" \
aria-label="Equations">
<span class="viz-passes-status" aria-live="polite"></span>
</div>
<table>{head.format("forward pass")}<tbody class="viz-passes-forward">{forward or nothing}</tbody></table>
<div class="viz-passes-waiting"><p>Returns <code>{html.escape(_list(recording.outputs))}</code>. Between the passes \
wait {in_bytes(recording.kept)}:</p><ul>{waiting or "<li>nothing</li>"}</ul></div>
<table>{head.format(f"backward pass, from the slope {html.escape(_list(recording.slopes))}")}\
<tbody class="viz-passes-backward">{backward or nothing}</tbody></table>
<p class="viz-passes-end">The gradient is <code>{html.escape(_list(recording.gradients))}</code>; \
{_summary(recording)}.{more}</p>"""
    name = "viz-passes-" + hashlib.sha256(body.encode()).hexdigest()[:10]
    label = html.escape(f"The forward and the backward pass of {recording.name}", quote=True)
    return (
        f'<div class="viz-passes {name}" role="group" aria-label="{label}">\n'
        f"<style>{_style()}</style>\n{body}\n</div>\n"
        f"<script>{_asset('passes.js').replace('NAME', name)}</script>"
    )


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
        f"<code>{html.escape(step.text)}</code>{inner}</th><td>{_happens(step)}</td>"
        f"<td>{bar}{words if held else 'nothing'}</td></tr>"
    )


def _happens(step):
    said = []
    if step.again:
        said.append("↻ computed again")
    elif any(again for _, again in step.inner):
        said.append("↻ computes again")
    if step.stored:
        said.append(f"stores <code>{html.escape(' '.join(step.stored))}</code>")
    if step.used:
        said.append(f"uses <code>{html.escape(' '.join(step.used))}</code>")
    return "; ".join(said)


def _style() -> str:
    """The style of `_batching_page`, whose tables and buttons these are, and what is added."""
    shared = _asset("batching.css").replace("viz-batching", "viz-passes")
    return f"{shared}\n{_asset('passes.css')}"


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(f"_{name}").read_text("utf-8").strip()
