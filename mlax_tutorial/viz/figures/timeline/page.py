"""The markup of ``viz.timeline``: two rows of bars for each loop, which need no script, and a table."""

import html

from mlax_tutorial.inspection.timing import in_words
from mlax_tutorial.viz.figures import markup
from mlax_tutorial.viz.figures.markup import counted

MOST = 200  # calls drawn of one loop


def listing(timeline) -> str:
    """The loops as text."""
    lines = []
    for run in timeline.runs:
        lines.append(f"{run.name}: {in_words(run.seconds)}, {_shares(run)}")
        lines += [
            f"  {name}: {calls}, host {host}, device {device}"
            for name, calls, host, device in _rows(run, timeline.names)
        ]
    return "\n".join(lines)


def write(timeline) -> str:
    """The loops as HTML."""
    longest = max(run.seconds for run in timeline.runs)
    count = sum(len(run.calls[:MOST]) for run in timeline.runs)
    legend = "".join(
        f'<li><span class="viz-timeline-key viz-timeline-{i}"></span> {markup.code(name)}</li>'
        for i, name in enumerate(timeline.names)
    )
    body = "\n".join(
        [
            f'<ul class="viz-timeline-legend" aria-label="Functions">{legend}</ul>',
            markup.bar(count, "call", "Calls"),
            *(_run(run, timeline.names, longest) for run in timeline.runs),
            _table(timeline),
        ]
    )
    label = "Host and device, call by call: " + "; ".join(run.name for run in timeline.runs)
    caption = (
        "Loops on one clock, a bar for each call, from left to right. On the host it lasts from call to return; on the device, until the "
        "result is there. A gap means that the row was idle. Step through the calls, or read the sums in the table."
    )
    return markup.frame("timeline", body, label, caption=caption, styles=["table"], script=True)


def _run(run, names, longest):
    calls = run.calls[:MOST]
    left = f" (the first {MOST} of {len(run.calls):,} calls)" if len(run.calls) > MOST else ""
    rows = ""
    for row in ("host", "device"):
        bars = "".join(_bar(call, row, run, names, longest) for call in calls)
        share = run.host if row == "host" else run.device
        said = f"{run.name}, {row}: in these functions for {share:.0%} of {in_words(run.seconds)}"
        rows += (
            f'<div class="viz-timeline-row"><span class="viz-timeline-name">{row}</span>'
            f'<div class="viz-timeline-lane" role="img" aria-label="{markup.attribute(said)}">{bars}</div></div>'
        )
    return (
        f'<div class="viz-timeline-run"><p><b>{html.escape(run.name)}</b>: {in_words(run.seconds)}, '
        f"{_shares(run)}{left}</p>{rows}</div>"
    )


def _bar(call, row, run, names, longest):
    start, end = (call.start, call.end) if row == "host" else (call.begun, call.ready)
    if start is None:
        return ""
    said = f' data-said="{markup.attribute(_said(call, run))}"' if row == "host" else ""
    return (
        f'<i class="viz-timeline-{names.index(call.name)}" data-call="{call.name} {call.number}"{said} '
        f'style="left:{100 * start / longest:.2f}%;width:{100 * (end - start) / longest:.2f}%"></i>'
    )


def _said(call, run):
    text = (
        f"{run.name}: {call.name}, call {call.number}. At {in_words(call.start)} the host called it, "
        f"and was free again {in_words(call.end - call.start)} later"
    )
    if call.ready is None:
        return text + "; the device had nothing to do for it."
    return text + f". The result was ready at {in_words(call.ready)}."


def _shares(run):
    return f"host {run.host:.0%}, device {run.device:.0%} of the time"


def _rows(run, names):
    for name in names:
        calls = [call for call in run.calls if call.name == name]
        if calls:
            device = any(call.ready is not None for call in calls)
            yield (
                name,
                counted(len(calls), "call"),
                in_words(run.median(name)),
                in_words(run.median(name, device=True)) if device else "nothing",
            )


def _table(timeline):
    rows = "".join(
        f'<tr><th scope="row">{html.escape(run.name)}</th><td>{markup.code(name)}</td>'
        + "".join(f"<td>{text}</td>" for text in said)
        + "</tr>"
        for run in timeline.runs
        for name, *said in _rows(run, timeline.names)
    )
    return (
        '<div class="viz-scroll" tabindex="0" role="group" aria-label="Medians of the calls"><table>'
        '<thead><tr><th scope="col">loop</th><th scope="col">function</th><th scope="col">calls</th>'
        '<th scope="col">on the host, median</th><th scope="col">on the device, median</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )
