"""The markup of ``viz.jit_cache``: a table that can be read without scripts, and stepped through with them."""

import dataclasses
import html

from mlax_tutorial.inspection import retracing
from mlax_tutorial.viz.figures import controls, markup
from mlax_tutorial.viz.figures.markup import counted

_DOT = (
    '<svg viewBox="0 0 14 14" width="14" height="14" aria-hidden="true"><circle cx="7" cy="7" r="5"/></svg>'
)


def write(watched, choices=None) -> str:
    """The calls as HTML: a row each, and a column for each program; and further calls to choose from."""
    calls, programs = watched.calls, watched.programs
    first = {}
    for number, call in enumerate(calls):
        if call.program is not None:
            first.setdefault(call.program, number)
    name = html.escape(watched.name)
    heads = "".join(
        f'<th scope="col" class="viz-jit-cache-cell">{i}</th>' for i in range(1, len(programs) + 1)
    )
    rows = "".join(_row(i, call, first) for i, call in enumerate(calls))
    entries = "".join(_entry(i, program, calls) for i, program in enumerate(programs))
    body = f"""<p class="viz-jit-cache-title">The cache of <code>{name}</code>: {counted(len(calls), "call")}, \
{counted(len(programs), "program")}</p>
{_controls(choices)}{markup.bar(len(calls), "call", "Calls", at=len(calls))}
<div class="viz-scroll" tabindex="0" role="group" aria-label="Calls of {name}"><table>
<thead><tr><th scope="col">call</th><th scope="col">with</th>{heads}</tr></thead>
<tbody>{rows}</tbody></table></div>
<p class="viz-jit-cache-legend"><span class="viz-jit-cache-made">{_DOT}</span> traced: the program is made. \
<span class="viz-jit-cache-found">{_DOT}</span> the program is in the cache.</p>
<ol class="viz-jit-cache-entries" aria-label="Programs in the cache">{entries}</ol>"""
    label = f"The cache of {watched.name}, call by call"
    caption = f"""Calls of <code>{name}</code>, one a row, with what the cache sees of their arguments; each numbered column is a program. \
A filled dot: this call was traced, and made the program, which the line below it keeps alive. A ring: the program was there already."""
    if choices is None:
        return markup.frame("jit_cache", body, label, caption=caption, styles=["table"], script=True)
    caption += f" Make further calls: choose the type and shape of {markup.code(choices.name)}, and press <i>call</i>."
    data = _looked_up(watched, choices)
    return markup.frame(
        "jit_cache", body, label, caption=caption, styles=["table"], script=True, data=data, tuned=True
    )


def _controls(choices):
    """Lists of types and shapes, and buttons to call and to begin anew."""
    if choices is None:
        return ""
    kinds, shapes = dict.fromkeys(one.kind for one in choices.all), [str(shape) for shape in choices.shapes]
    return controls.row(
        controls.choice(f"type of {choices.name}", kinds, next(iter(kinds))),
        controls.choice("shape", shapes, shapes[0]),
        '<span><button type="button" class="viz-jit-cache-call">call</button> '
        '<button type="button" class="viz-jit-cache-anew">start over</button></span>',
    )


def _looked_up(watched, choices):
    """What the script compares: of each call the argument's part of the key, and what else differs from the last call."""
    last = watched.calls[-1].key
    before = []
    for call in watched.calls:
        if call.program is None:
            continue
        part = next((part for part in call.key.parts if part.name == choices.name), None)
        parts = tuple(part if own.name == choices.name and part else own for own in last.parts)
        rest = retracing.differences(dataclasses.replace(last, parts=parts), call.key)
        before.append({"program": call.program, "rest": rest, "part": None if part is None else _part(part)})
    further = [
        {
            "kind": one.kind,
            "shape": str(one.shape),
            "part": _part(one.part),
            "key": str(one.key),
            "equations": one.equations,
            "error": one.error,
        }
        for one in choices.all
    ]
    return {"name": choices.name, "calls": before, "further": further}


def _part(part):
    """Shape, dtype and weak type as the key has them, and the three as text."""
    value = part.value
    return {
        "shape": str(getattr(value, "shape", "")),
        "dtype": str(getattr(value, "dtype", "")),
        "weak": bool(getattr(value, "weak_type", False)),
        "text": part.text,
    }


def said(call) -> str:
    """What happened at a call, in a sentence."""
    why = _why(call)
    if call.error:
        return f"It raised {call.error}"
    if call.traced:
        return f"Traced and compiled: {why}." if call.compiled else f"Traced: {why}."
    if call.compiled:
        return f"Not traced, but compiled anew: {why}."
    return "Taken from the cache." + (f" ({why.capitalize()}.)" if why else "")


def _why(call):
    return "; ".join(call.why).replace(" -> ", " → ")


def _row(number, call, first):
    cells = []
    for program, made in sorted(first.items()):
        kinds = (
            ["viz-jit-cache-cell"]
            + ["viz-jit-cache-there"] * (made < number)
            + ["viz-jit-cache-born"] * (made == number)
        )
        mark = ""
        if program == call.program:
            what = "traced" if call.traced else "compiled" if call.compiled else "found"
            mark = f'<span class="viz-jit-cache-{"made" if call.traced or call.compiled else "found"}">{_DOT}</span>'
            mark += markup.unseen(f"{what}: program {program + 1}")
        cells.append(f'<td class="{" ".join(kinds)}">{mark}</td>')
    why = call.error or _why(call)
    words = call.outcome if call.error or not why else f"{call.outcome}: {why}"
    return (
        f'<tr data-program="{-1 if call.program is None else call.program}" '
        f'data-said="{markup.attribute(said(call))}"><th scope="row">{number + 1}</th>'
        f"<td><code>{html.escape(str(call.key)) or 'nothing'}</code> "
        f'<span class="viz-jit-cache-why">{html.escape(words)}</span></td>{"".join(cells)}</tr>'
    )


def _entry(number, program, calls):
    uses = sum(call.program == number for call in calls)
    made = next(i for i, call in enumerate(calls) if call.program == number)
    return (
        f'<li data-made="{made}"><b>program {number + 1}</b> <code>{html.escape(str(program.key)) or "nothing"}</code>, '
        f'{counted(program.equations, "equation")}, <span class="viz-jit-cache-uses">{counted(uses, "call")}</span></li>'
    )
