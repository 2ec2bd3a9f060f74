"""The markup of ``viz.exchange``: a ring of devices with their links, and a table of exchanges, whose script marks one after the other."""

import html
import math

from mlax_tutorial.viz.figures import markup
from mlax_tutorial.viz.figures.markup import counted, in_bytes

SIDE, RADIUS, DOT = 300, 118, 19
THIN, THICK, MANY = 1.5, 9, 3  # of a link, by its bytes; the thickest where links cross


def listing(exchange) -> str:
    """One line for each exchange."""
    if not exchange.steps:
        return f"{counted(exchange.devices, 'device')}, nothing is sent"
    lines = [f"{counted(exchange.devices, 'device')}, {counted(len(exchange.steps), 'exchange')}"]
    for number, (step, links) in enumerate(zip(exchange.steps, exchange.links), start=1):
        lines.append(f"{number:3} {_what(step):24} {_among(step):14} {_each(links)}")
    return "\n".join(lines)


def write(exchange) -> str:
    """The figure as HTML."""
    total = exchange.total
    links = sorted(total)
    most = max(total.values(), default=1)
    caption = (
        "One call of the compiled program, exchange by exchange. An arrow is a link from one device to another; the thicker, the more "
        "bytes go over it, if each group passes its data round a ring. Without a step chosen it shows all together."
    )
    rows = "".join(
        f'<tr><th scope="row">{number}</th><td>{html.escape(_what(step))}</td><td>{html.escape(_among(step))}</td>'
        f"<td>{html.escape(', '.join(step.shapes[:2]) + (', …' if len(step.shapes) > 2 else ''))}</td><td>{html.escape(_each(sizes))}</td></tr>"
        for number, (step, sizes) in enumerate(zip(exchange.steps, exchange.links), start=1)
    )
    summary = _summary(exchange)
    if not exchange.steps:
        rows = f'<tr><td colspan="5">{html.escape(summary)}</td></tr>'
    bar = markup.bar(len(exchange.steps), "exchange", "Exchanges") if exchange.steps else ""
    body = f"""{bar}
<div class="viz-exchange-panes"><div>{_ring(exchange, links, total, most)}</div>
<div class="viz-scroll"><table><thead><tr><th scope="col">step</th><th scope="col">exchange</th><th scope="col">among</th>
<th scope="col">result on a device</th><th scope="col">on each link</th></tr></thead><tbody>{rows}</tbody></table></div></div>"""
    data = {
        "widths": [_widths(total, links, most)] + [_widths(sizes, links, most) for sizes in exchange.links],
        "said": [summary]
        + [
            f"{number} of {len(exchange.steps)}: {_what(step)} among {_among(step)}, {_each(sizes)} on each link"
            for number, (step, sizes) in enumerate(zip(exchange.steps, exchange.links), start=1)
        ],
    }
    return markup.frame(
        "exchange", body, summary, caption=caption, styles=["table"], script=bool(exchange.steps), data=data
    )


def _summary(exchange):
    if not exchange.steps:
        return f"{counted(exchange.devices, 'device')}, nothing is sent."
    total = exchange.total
    sent = [
        sum(size for link, size in total.items() if link[0] == device) for device in range(exchange.devices)
    ]
    return (
        f"All together: {counted(sum(step.times for step in exchange.steps), 'exchange')} among {counted(exchange.devices, 'device')}; a device "
        f"sends up to {in_bytes(max(sent))}."
    )


def _what(step):
    return step.kind if step.times == 1 else f"{step.kind}, {step.times} ×"


def _among(step):
    if step.kind == "collective-permute":
        return counted(len(step.groups), "pair")
    if len(step.groups) == 1:
        return f"all {len(step.groups[0])}"
    return f"{len(step.groups)} groups of {len(step.groups[0])}"


def _each(links):
    return in_bytes(max(links.values(), default=0))


def _widths(sizes, links, most):
    thick = THICK if len(sizes) <= 2 * len({device for link in sizes for device in link}) else MANY
    return [round(THIN + (thick - THIN) * sizes[link] / most, 1) if link in sizes else 0 for link in links]


def _point(device, devices):
    angle = 2 * math.pi * device / devices - math.pi / 2
    return SIDE / 2 + RADIUS * math.cos(angle), SIDE / 2 + RADIUS * math.sin(angle)


def _ring(exchange, links, total, most):
    drawn = []
    for link, width in zip(links, _widths(total, links, most)):
        (x0, y0), (x1, y1) = (_point(device, exchange.devices) for device in link)
        length = math.hypot(x1 - x0, y1 - y0)
        ux, uy = (x1 - x0) / length, (y1 - y0) / length
        # From edge to edge, bent to the right, so that the way back is another curve.
        bend = min(22, length / 5)
        middle = (x0 + x1) / 2 - uy * bend, (y0 + y1) / 2 + ux * bend
        start, end = (x0 + ux * DOT, y0 + uy * DOT), (x1 - ux * (DOT + 5), y1 - uy * (DOT + 5))
        path = f"M{start[0]:.1f} {start[1]:.1f}Q{middle[0]:.1f} {middle[1]:.1f} {end[0]:.1f} {end[1]:.1f}"
        head = (
            f"M{end[0] - 5 * ux - 5 * uy:.1f} {end[1] - 5 * uy + 5 * ux:.1f}L{end[0] + 5 * ux:.1f} {end[1] + 5 * uy:.1f}"
            f"L{end[0] - 5 * ux + 5 * uy:.1f} {end[1] - 5 * uy - 5 * ux:.1f}z"
        )
        drawn.append(
            f'<g class="viz-exchange-link"><path d="{path}" stroke-width="{width}"/><path d="{head}"/></g>'
        )
    dots = []
    for device in range(exchange.devices):
        x, y = _point(device, exchange.devices)
        dots.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{DOT}"/><text x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle">{device}</text>'
        )
    return f'<svg viewBox="0 0 {SIDE} {SIDE}" aria-hidden="true">{"".join(drawn)}{"".join(dots)}</svg>'
