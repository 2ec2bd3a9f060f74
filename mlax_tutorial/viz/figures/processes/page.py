"""The markup of ``viz.processes``: a row of bars for each process, and a list that says the same in words, whose script goes through it."""

import html
import itertools
import math

from mlax_tutorial.inspection.timing import in_words
from mlax_tutorial.viz.figures import controls, markup
from mlax_tutorial.viz.figures.markup import counted, listed

SHORT = 5e-4  # seconds; shorter than this, times are drawn to scale, longer ones by their logarithm
APART = 18  # percent of the width between two times that are written under the rows


def listing(figure) -> str:
    """A line for all, and one for each place in the order of calls."""
    return "\n".join([_summary(figure), *(said(figure, meeting) for meeting in figure.meetings)])


def write(runs) -> str:
    """The figure of one run or several, by their names, as HTML."""
    most = max(len(figure.meetings) for figure in runs.values())
    caption = (
        "A row for each process, and in it the calls that it made, from left to right in time; calls one above the other belong together. "
        "Waits of different lengths get more alike in the drawing: it goes by the logarithm of time."
    )
    several = len(runs) > 1
    body = "\n".join(
        [
            controls.row(controls.choice("What happens", runs)) if several else "",
            markup.bar(most, "call", "Calls") if most else "",
            *(_run(figure, name if several else "") for name, figure in runs.items()),
        ]
    )
    data = [
        [_summary(figure), *(said(figure, meeting) for meeting in figure.meetings)]
        for figure in runs.values()
    ]
    label = "; ".join(
        f"{name}: {_summary(figure)}" if several else _summary(figure) for name, figure in runs.items()
    )
    return markup.frame(
        "processes", body, label, caption=caption, script=bool(most) or several, data=data, tuned=several
    )


def _run(figure, name):
    """One run: a row for each process, and all calls in words."""
    place = _axis(figure)
    words = "".join(f"<li>{html.escape(said(figure, meeting))}</li>" for meeting in figure.meetings)
    kinds = {kind for meeting in figure.meetings for kind in _kinds(figure, meeting)}
    legend = "".join(
        f'<li><span class="viz-processes-key viz-processes-{kind}"></span> {text}</li>'
        for kind, text in LEGEND.items()
        if kind in kinds
    )
    return "\n".join(
        [
            '<div class="viz-processes-run">',
            f'<p class="viz-processes-name"><b>{html.escape(name)}</b></p>' if name else "",
            f'<ul class="viz-processes-legend" aria-label="Bars">{legend}</ul>' if legend else "",
            "" if figure.meetings else f"<p>{html.escape(_summary(figure))}</p>",
            *(_row(figure, host, place) for host in figure.run),
            _ticks(figure, place),
            f"<details><summary>All calls in words</summary><ol>{words}</ol></details>" if words else "",
            "</div>",
        ]
    )


LEGEND = {
    "waits": "waits for others",
    "works": "computes, all have come",
    "other": "has met a call of another name",
    "differs": "holds other numbers than process 0",
    "failed": "ended by an error",
}


def said(figure, meeting) -> str:
    """What happened in one place of the order, in sentences."""
    names = meeting.names
    text = [f"Call {meeting.number}, {next(iter(names))}."]
    if len(names) > 1:
        who = ", ".join(f"{_who(processes)} in {name}" for name, processes in names.items())
        met = " They met, and JAX takes them for one computation." if meeting.together else ""
        text = [f"Call {meeting.number}: {who}.{met}"]
    open_ = [process for process, call in meeting.calls.items() if call.ended is None]
    if len(meeting.calls) > 1:
        text.append(_waits(meeting))
    if meeting.missing and open_:
        text.append(f"{_who(open_)} {_verb(open_, 'waits')} for {_absent(figure, meeting)}.")
    elif meeting.missing:
        text.append(f"Without {_absent(figure, meeting)}.")
    elif open_:
        text.append(f"{_who(open_)} {_verb(open_, 'is')} still in it at the end.")
    for process, call in meeting.calls.items():
        if call.error:
            text.append(f"Process {process} got a {call.error} after {in_words(call.ended - call.began)}.")
    if len(copies := meeting.copies) > 1:
        shown = [_shown(meeting, processes) for processes in copies.values()]
        text.append(f"The copies of the result differ: {'; '.join(shown)}.")
    elif copies and (shown := next(iter(meeting.calls.values())).shown):
        text.append(f"The result is {shown}.")
    ended = [call.ended for call in meeting.calls.values() if call.ended is not None and not call.error]
    if ended:
        text.append(f"Done at {in_words(max(ended))}.")
    return _capitals(" ".join(part for part in text if part))


def _capitals(text):
    return ". ".join(part[:1].upper() + part[1:] for part in text.split(". "))


def _waits(meeting):
    order = sorted(meeting.calls, key=lambda process: meeting.calls[process].began)
    last, waits = order[-1], []
    for process in order[:-1]:
        call = meeting.calls[process]
        if call.ended is None or call.ended >= meeting.calls[last].began:
            waits.append(
                f"process {process} waited {in_words(meeting.calls[last].began - call.began)} for it"
            )
    if not waits:
        return f"Nobody waited for process {last}, which came last."
    return f"Process {last} came last: {', '.join(waits)}."


def _shown(meeting, processes):
    numbers = meeting.calls[processes[0]].shown
    return f"{_who(processes)} {_verb(processes, 'holds')} {numbers or 'numbers of its own'}"


def _who(processes):
    return f"process{'es' if len(processes) > 1 else ''} {listed([str(process) for process in processes])}"


def _verb(processes, verb):
    return verb if len(processes) == 1 else {"waits": "wait", "is": "are", "holds": "hold"}[verb]


def _absent(figure, meeting):
    return ", ".join(f"process {process}, which {_end(figure.run[process])}" for process in meeting.missing)


def _end(host):
    at = in_words(host.seconds)
    return {
        "returned": f"returned at {at}",
        "raised": f"raised {host.error.partition(':')[0]} at {at}",
        "died": f"died at {at}: {host.error}",
        "waiting": f"was still waiting at {at}",
    }[host.status]


def _summary(figure):
    text = [f"{counted(len(figure.run), 'process', 'processes')}, {counted(len(figure.meetings), 'call')}."]
    for host in figure.run:
        text.append(f"Process {host.process} {_end(host)}.")
    kinds = [_kinds(figure, meeting) for meeting in figure.meetings]
    for kind, what in (("other", "different calls met"), ("differs", "copies differ")):
        places = [str(number) for number, each in enumerate(kinds, start=1) if kind in each]
        if places:
            text.append(f"In call{'s' if len(places) > 1 else ''} {listed(places)} {what}.")
    return " ".join(text)


# --- bars ---


def _bars(figure, meeting, process):
    """From when to when, and what a process did then."""
    call, met = meeting.calls[process], meeting.met(process)
    end = figure.run[process].seconds if call.ended is None else call.ended
    if met is None:
        return [(call.began, end, ["waits"])]
    kinds = ["failed"] if call.error else ["works"]
    if len(meeting.names) > 1 and meeting.together:
        kinds.append("other")
    if call.held and call.held != next(iter(meeting.copies)):
        kinds.append("differs")
    wait = [(call.began, met, ["waits"])] if met > call.began else []
    return [*wait, (met, max(met, end), kinds)]


def _kinds(figure, meeting):
    return {
        kind for process in meeting.calls for _, _, kinds in _bars(figure, meeting, process) for kind in kinds
    }


def _row(figure, host, place):
    bars = []
    for meeting in figure.meetings:
        if host.process in meeting.calls:
            for begin, end, kinds in _bars(figure, meeting, host.process):
                classes = " ".join(f"viz-processes-{kind}" for kind in kinds)
                left = place(begin)
                bars.append(
                    f'<i class="{classes}" data-call="{meeting.number}" style="left:{left:.2f}%;width:{place(end) - left:.2f}%"></i>'
                )
    last = place(host.seconds)
    bars.append(f'<b class="viz-processes-end viz-processes-{host.status}" style="left:{last:.2f}%"></b>')
    return (
        f'<div class="viz-processes-row"><div><b>process {host.process}</b> {html.escape(_end(host))}</div>'
        f'<div class="viz-processes-lane" role="img" aria-label="{markup.attribute(_lane(figure, host))}">{"".join(bars)}</div></div>'
    )


def _lane(figure, host):
    return f"process {host.process}: {counted(len(host.calls), 'call')}, {_end(host)}"


def _events(figure):
    times = {0.0}
    for host in figure.run:
        times.add(host.seconds)
        for call in host.calls:
            times |= {call.began} | ({call.ended} if call.ended is not None else set())
    return sorted(times)


def _axis(figure):
    """From seconds to percent of the width. Between two events there is the more space the more time passes, by the logarithm."""
    times = _events(figure)
    widths = [math.log1p((end - begin) / SHORT) for begin, end in itertools.pairwise(times)]
    total = sum(widths) or 1.0
    where = dict(zip(times, itertools.accumulate(widths, initial=0.0)))
    return lambda seconds: 98 * where[seconds] / total


def _ticks(figure, place):
    ticks, before = [], -APART
    times = _events(figure)
    for seconds in times:
        # The last one is always written.
        if seconds == times[-1] or place(seconds) - before >= APART and place(seconds) <= 98 - 2 * APART:
            before = place(seconds)
            text = "0" if seconds == 0 else in_words(seconds)
            side = "right" if seconds == times[-1] and seconds else "left"
            ticks.append(
                f'<span class="viz-processes-{side}" style="left:{before:.2f}%">{html.escape(text)}</span>'
            )
    return f'<div class="viz-processes-ticks" aria-hidden="true">{"".join(ticks)}</div>'
