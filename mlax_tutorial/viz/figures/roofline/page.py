"""The markup of ``viz.roofline``: a diagram with logarithmic axes, and a table of kernels, whose script marks one after the other."""

import html
import math

from mlax_tutorial.viz.figures import markup
from mlax_tutorial.viz.figures.markup import counted, in_bytes

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 420, 300, 62, 46, 14, 14


def listing(roof) -> str:
    """One line for each kernel."""
    return "\n".join([_roof(roof), *(f"  {name}  {_said(roof, name)}" for name in roof.kernels)])


def write(roof) -> str:
    """The figure as HTML."""
    caption = (
        "Each dot is a kernel: to the right, the more FLOPs it does with each byte; up, the more FLOPs a second. Both axes are "
        "logarithmic. The line is the roof: left of its bend memory is the bound, right of it arithmetic."
    )
    rows = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td>{_short(roof.intensity(name))}</td>'
        f"<td>{_speed(flops / seconds)}</td><td>{roof.share(name):.0%}</td><td>{roof.bound(name)}</td></tr>"
        for name, (flops, _, seconds) in roof.kernels.items()
    )
    summary = f"{counted(len(roof.kernels), 'kernel')}. {_roof(roof)[0].upper()}{_roof(roof)[1:]}."
    body = f"""{markup.bar(len(roof.kernels), "kernel", "Kernels")}
<div class="viz-roofline-panes"><div>{_diagram(roof)}</div>
<div class="viz-scroll"><table><thead><tr><th scope="col">kernel</th><th scope="col">FLOPs a byte</th><th scope="col">speed</th>
<th scope="col">of the roof</th><th scope="col">bound by</th></tr></thead><tbody>{rows}</tbody></table></div></div>"""
    said = [summary] + [
        f"{number} of {len(roof.kernels)}: {name}, {_said(roof, name)}"
        for number, name in enumerate(roof.kernels, start=1)
    ]
    return markup.frame(
        "roofline", body, summary, caption=caption, styles=["table"], script=True, data={"said": said}
    )


def _roof(roof):
    return (
        f"roof: {_speed(roof.rate)} from {_short(roof.ridge)} FLOPs a byte on, below it "
        f"{in_bytes(round(roof.bandwidth))}/s"
    )


def _said(roof, name):
    flops, _, seconds = roof.kernels[name]
    return (
        f"{_short(roof.intensity(name))} FLOPs a byte, {_speed(flops / seconds)}, {roof.share(name) * 100:.0f} % of the roof, "
        f"bound by {roof.bound(name)}"
    )


def _short(number):
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def _speed(rate):
    for unit, size in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if rate >= 0.9995 * size or unit == "M":
            return f"{rate / size:.3g} {unit}FLOP/s"


def _diagram(roof):
    dots = {
        name: (roof.intensity(name), flops / seconds) for name, (flops, _, seconds) in roof.kernels.items()
    }
    low = min(roof.ridge, *(x for x, _ in dots.values())) / 2
    high = max(roof.ridge, *(x for x, _ in dots.values())) * 4
    floor = min(low * roof.bandwidth, *(y for _, y in dots.values())) / 2
    ceiling = max(roof.rate, *(y for _, y in dots.values())) * 2

    def across(x):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(x / low) / math.log(high / low)

    def up(y):
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * math.log(y / floor) / math.log(ceiling / floor)

    drawn = []
    for power in _powers(low, high):
        x = across(10**power)
        drawn.append(
            f'<path class="viz-roofline-grid" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 17}" text-anchor="middle">{_short(10.0**power)}</text>'
        )
    for power in _powers(floor, ceiling):
        y = up(10**power)
        drawn.append(
            f'<path class="viz-roofline-grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
            f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{_speed(10.0**power).removesuffix("LOP/s")}</text>'
        )
    drawn.append(
        f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">FLOPs a byte</text>'
        f'<path class="viz-roofline-roof" d="M{across(low):.1f} {up(low * roof.bandwidth):.1f}'
        f'L{across(roof.ridge):.1f} {up(roof.rate):.1f}L{across(high):.1f} {up(roof.rate):.1f}"/>'
    )
    for x, y in dots.values():
        drawn.append(f'<circle class="viz-roofline-dot" cx="{across(x):.1f}" cy="{up(y):.1f}" r="6"/>')
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">{"".join(drawn)}</svg>'


def _powers(low, high):
    first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
    return range(first, last + 1, max(1, (last - first) // 6 + 1))
