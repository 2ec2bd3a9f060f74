"""The markup of ``viz.descent``: contour lines, whole paths and a table that need no script, and what the script moves along them."""

import html
import math
import re

import numpy as np

from mlax_tutorial.viz.figures import controls, markup
from mlax_tutorial.viz.figures.markup import counted, listed

WIDE = 460  # of a drawing, in its own pixels
LEFT, BELOW = 54, 24  # room for the numbers at the axes, which are larger where the page is narrow
CURVE = 150  # height of the second drawing
FRAMES = 200  # at most so many steps are shown
LEVELS = (0.003, 0.012, 0.03, 0.06, 0.11, 0.18, 0.27, 0.37, 0.48, 0.6, 0.72, 0.84, 0.94)  # shares of the area


def listing(descent) -> str:
    """The first and the last loss of each path."""
    width = max(len(path.name) for path in descent.paths)
    steps = len(descent.paths[0].points) - 1
    lines = [f"{descent.name} from {_place(descent.paths[0].points[0])}, {counted(steps, 'step')}"]
    for path in descent.paths:
        first, last = path.losses[0], path.losses[-1]
        end = f"{_number(last)} at {_place(path.points[-1])}"
        if path.ended is not None:
            end = f"not finite after {counted(path.ended, 'step')}"
        lines.append(f"  {path.name:{width}}  {_number(first)} -> {end}")
    return "\n".join(lines)


def write(descent, heights, tuned=None) -> str:
    """The figure as HTML; ``tuned`` is the `descents.Quadratic` that its sliders go down, the last path."""
    steps = len(descent.paths[0].points) - 1
    frames = sorted({round(i) for i in np.linspace(0, steps, min(steps, FRAMES) + 1)})
    to_map, tall = _scale(descent.window)
    curve = _Curve(descent.paths, frames, tuned is not None)
    shown = [_along(path, frames, to_map, curve) for path in descent.paths]
    start = _place(descent.paths[0].points[0])
    caption = (
        f"{_names(descent)} over {markup.code(descent.name)}, from {start}: contour lines of equal loss with the path of each, and "
        "beside them the loss after each step. The slider goes through the steps; it stands at the last."
    )
    if tuned is not None:
        caption += f" Two more set the rate and the momentum of {markup.code(descent.paths[-1].name)}."
    body = f"""{markup.bar(len(frames) - 1, "step", "Steps", at=len(frames) - 1)}
{_sliders(tuned)}<div class="viz-descent-panes">
<div><svg viewBox="0 0 {WIDE} {tall + BELOW}" aria-hidden="true">{_axes(descent.window, to_map, tall)}
<svg class="viz-descent-map" x="{LEFT}" y="0" width="{WIDE - LEFT}" height="{tall}" viewBox="{LEFT} 0 {WIDE - LEFT} {tall}">
{_contours(heights, descent.window, to_map)}
{"".join(_line(i, each["map"]) for i, each in enumerate(shown))}
{"".join(_mark(i, each["map"]) for i, each in enumerate(shown))}</svg></svg></div>
<div><table><thead><tr><th scope="col">optimizer</th><th scope="col">at</th><th scope="col">loss</th></tr></thead>
<tbody>{"".join(_row(i, path, each) for i, (path, each) in enumerate(zip(descent.paths, shown)))}</tbody></table>
<svg viewBox="0 0 {WIDE} {CURVE + BELOW}" aria-hidden="true">{curve.axes()}
{"".join(_line(i, each["curve"]) for i, each in enumerate(shown))}
{"".join(_mark(i, each["curve"]) for i, each in enumerate(shown))}</svg></div></div>"""
    data = {
        "steps": frames,
        "names": [path.name for path in descent.paths],
        "paths": [{key: each[key] for key in ("at", "loss")} for each in shown],
    }
    if tuned is not None:
        data["tune"] = {
            "rates": _rates(tuned),
            "constant": tuned.constant,
            "slope": tuned.slope.tolist(),
            "curvature": tuned.curvature.tolist(),
            "start": descent.paths[0].points[0].tolist(),
            "map": [float(number) for number in (*to_map(0, 0), *to_map(1, 1))],
            "curve": curve.numbers(),
        }
    ends = "; ".join(
        f"{path.name} ends at {each['at'][-1]}, loss {each['loss'][-1]}"
        for path, each in zip(descent.paths, shown)
    )
    label = f"Contour lines of {descent.name} and the paths of optimizers from {start}. After {counted(steps, 'step')} {ends}."
    return markup.frame(
        "descent",
        body,
        label,
        caption=caption,
        styles=["table"],
        script=True,
        data=data,
        tuned=tuned is not None,
    )


def _rates(tuned):
    """Rates to choose from: of three digits, up to the largest with which any momentum goes down, and the one of the beginning."""
    largest = 4.4 / float(np.linalg.eigvalsh(tuned.curvature).max())
    rates = {float(f"{rate:.3g}") for rate in np.geomspace(largest / 300, largest, 120)}
    return sorted(rates | {tuned.rate})


def _sliders(tuned):
    """A slider for the rate and one for the momentum, hidden until the script runs."""
    if tuned is None:
        return ""
    rates = _rates(tuned)
    return controls.row(
        controls.slider("learning rate", 0, len(rates) - 1, rates.index(tuned.rate), f"{tuned.rate:g}"),
        controls.slider("momentum", 0, 99, round(100 * tuned.momentum), f"{tuned.momentum:.2f}"),
    )


def _names(descent):
    names = [html.escape(path.name) for path in descent.paths]
    if sum(map(len, names)) > 60:
        return counted(len(names), "optimizer")
    return listed(names)


def _scale(window):
    """From numbers to pixels, and how tall the drawing is: one scale for both axes where that is not too flat."""
    (left, right), (low, high) = window
    across = (WIDE - LEFT - 8) / (right - left)
    tall = (high - low) * across
    tall = round(min(max(tall, 200), 380)) if 200 <= tall <= 380 else 300
    up = tall / (high - low)
    return (lambda x, y: (LEFT + (x - left) * across, (high - y) * up)), tall


def _along(path, frames, to_map, curve):
    """A path frame by frame: pixels, which the script reads off the lines, and words. Where it is lost there is no pixel."""
    last = len(path.points) if path.ended is None else path.ended
    known = [frame for frame in frames if frame < last]
    lost = len(frames) - len(known)
    return {
        "map": [_pixels(*to_map(*path.points[i])) for i in known],
        "curve": [_pixels(*curve.at(i, path.losses[i])) for i in known],
        "at": [_place(path.points[i]) for i in known] + ["–"] * lost,
        "loss": [_number(path.losses[i]) for i in known] + ["not finite"] * lost,
    }


def _pixels(x, y):
    """Two numbers with one decimal, no farther out than a drawing can hold."""
    return [round(min(max(float(value), -9999.0), 9999.0), 1) for value in (x, y)]


def _line(index, pixels):
    points = " ".join(f"{x:g},{y:g}" for x, y in pixels)
    return f'<polyline class="viz-descent-{index % 6}" points="{points}"/>'


def _mark(index, pixels):
    x, y = pixels[-1] if pixels else (-9999, -9999)
    return f'<g class="viz-descent-mark viz-descent-{index % 6}" transform="translate({x:g},{y:g})">{_SHAPES[index % 6]}</g>'


_SHAPES = (
    '<circle r="5"/>',
    '<rect x="-4.6" y="-4.6" width="9.2" height="9.2"/>',
    '<path d="M0-6 5.6 4.6-5.6 4.6z"/>',
    '<path d="M0-6.4 6.4 0 0 6.4-6.4 0z"/>',
    '<path d="M0 6 5.6-4.6-5.6-4.6z"/>',
    '<path d="M-5-5 5 5M5-5-5 5" stroke-width="2.5"/>',
)


def _row(index, path, each):
    swatch = f'<svg viewBox="-8 -8 16 16" width="16" height="16" aria-hidden="true"><g class="viz-descent-mark viz-descent-{index % 6}">{_SHAPES[index % 6]}</g></svg>'
    return (
        f'<tr><th scope="row">{swatch} {_breakable(path.name)}</th>'
        f'<td class="viz-descent-at">{each["at"][-1]}</td><td class="viz-descent-loss">{each["loss"][-1]}</td></tr>'
    )


def _axes(window, to_map, tall):
    """A frame, and three numbers at each axis."""
    (left, right), (low, high) = window
    parts = [f'<rect class="viz-descent-frame" x="{LEFT}" y="0" width="{WIDE - LEFT - 1}" height="{tall}"/>']
    for x in _ticks(left, right):
        parts.append(
            f'<text x="{to_map(x, low)[0]:.0f}" y="{tall + 16}" text-anchor="middle">{_tick(x)}</text>'
        )
    for y in _ticks(low, high):
        parts.append(
            f'<text x="{LEFT - 5}" y="{to_map(left, y)[1] + 4:.0f}" text-anchor="end">{_tick(y)}</text>'
        )
    return "".join(parts)


def _ticks(low, high):
    """Two to five round numbers well inside."""
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return []
    unit = 10.0 ** math.floor(math.log10(span))
    for step in (unit, unit / 2, unit / 5):
        first, last = math.ceil((low + 0.04 * span) / step), math.floor((high - 0.04 * span) / step)
        if last - first >= 1:
            return [i * step for i in range(first, last + 1, max(1, (last - first) // 4))]
    return []


def _contours(heights, window, to_map):
    """Lines of equal height, at heights between which a like share of the area lies, as SVG paths."""
    from matplotlib.figure import Figure

    known = heights[np.isfinite(heights)]
    if not known.size or np.ptp(known) == 0:
        return ""
    levels = np.unique(np.quantile(known, LEVELS))
    levels = levels[(levels > known.min()) & (levels < known.max())]
    if not levels.size:
        levels = np.array([(known.min() + known.max()) / 2])
    size = float(np.abs(known).max()) or 1.0  # scaled, or heights near the end of the range would overflow
    x, y = (np.linspace(low, high, heights.shape[0]) for low, high in window)
    drawn = (
        Figure()
        .subplots()
        .contour(x, y, np.ma.masked_invalid(heights) / size, levels=np.unique(levels / size))
    )
    return "".join(
        f'<path class="viz-descent-level" d="{"".join(_contour(to_map, segment) for segment in segments)}"/>'
        for segments in drawn.allsegs
        if segments
    )


def _contour(to_map, segment):
    """A line in whole pixels, without points that lie close to the one before."""
    points = [tuple(round(value) for value in to_map(x, y)) for x, y in segment]
    thinned = points[:1]
    for point in points[1:-1]:
        if math.dist(point, thinned[-1]) >= 5:
            thinned.append(point)
    thinned += points[-1:]
    return "M" + "L".join(f"{x} {y}" for x, y in thinned) if len(thinned) > 1 else ""


class _Curve:
    """The losses over the steps: by their logarithm, if none is negative."""

    def __init__(self, paths, frames, tuned=False):
        self.steps = frames[-1]
        losses = np.concatenate([path.losses[: path.ended] for path in paths])
        self.logarithmic = losses.size > 0 and losses.min() >= 0 and losses.max() > 0
        if self.logarithmic:
            positive = losses[losses > 0]
            self.floor = max(positive.min(), positive.max() * 1e-14, 1e-38)
            top = max(paths[0].losses[0], self.floor)  # a loss that explodes leaves the drawing
            self.low, self.high = (
                math.log10(self.floor),
                math.log10(min(positive.max(), max(top, self.floor) * 1e3)),
            )
        elif losses.size:
            first = paths[0].losses[0]
            self.low = losses.min()
            self.high = (
                min(losses.max(), first + 2 * (first - self.low)) if first > self.low else losses.max()
            )
        else:
            self.low, self.high = 0.0, 1.0
        if tuned and self.logarithmic:  # room for what other rates do
            first = math.log10(max(paths[0].losses[0], self.floor))
            self.low, self.high = min(self.low, first - 6), max(self.high, first + 1)
            self.floor = min(self.floor, 10.0**self.low)
        if not self.high > self.low:
            self.low, self.high = self.low - 0.5, self.low + 0.5

    def numbers(self):
        """What the script needs to place a loss as `at` does."""
        return {
            "steps": self.steps,
            "low": self.low,
            "high": self.high,
            "floor": self.floor if self.logarithmic else None,
        }

    def at(self, step, loss):
        value = math.log10(max(loss, self.floor)) if self.logarithmic else loss
        share = (value - self.low) / (self.high - self.low)
        return LEFT + 4 + (WIDE - LEFT - 14) * step / self.steps, 8 + (CURVE - 14) * (1 - min(share, 1.3))

    def axes(self):
        parts = [
            f'<path class="viz-descent-frame" d="M{LEFT} 0V{CURVE}H{WIDE}"/>',
            f'<text x="{WIDE - 2}" y="12" text-anchor="end">loss</text>',
            f'<text x="{WIDE - 2}" y="{CURVE + 16}" text-anchor="end">step {self.steps}</text>',
            f'<text x="{LEFT + 4}" y="{CURVE + 16}">0</text>',
        ]
        for value in (self.high, self.low):
            text = _tick(10.0**value, ".0e") if self.logarithmic else _tick(value, ".2g")
            y = self.at(0, 10.0**value if self.logarithmic and value < 308 else value)[1]
            parts.append(f'<text x="{LEFT - 5}" y="{y + 4:.0f}" text-anchor="end">{text}</text>')
        return "".join(parts)


def _place(point):
    return f"({', '.join(_number(value) for value in point)})"


def _breakable(name):
    """A name that breaks where one would break it by hand: behind brackets, commas and signs of equality."""
    return re.sub(r"([(,=\[{/])", r"\1<wbr>", html.escape(name))


def _tick(value, form=".3g") -> str:
    """A number at an axis, as short as it can be.

    >>> _tick(1e-05), _tick(-2e30), _tick(250.0), _tick(3.2e-11, ".0e"), _tick(2.0, ".0e")
    ('1e-5', '-2e30', '250', '3e-11', '2')
    """
    text = f"{float(value):{form}}" if value else "0"
    return re.sub(r"e([+-])0*", lambda sign: "e" + sign[1].strip("+"), text).removesuffix("e")


def _number(value) -> str:
    """Three digits; what is nothing beside 1 is 0 only if it is zero.

    >>> _number(0.00001234), _number(1.5), _number(-2e30)
    ('1.23e-05', '1.5', '-2e+30')
    """
    value = float(value)
    return f"{value:.3g}" if value else "0"
