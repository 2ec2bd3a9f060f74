"""The markup of ``viz.accuracies``: clouds and a table that need no script, and what the script moves."""

import html
import math
from statistics import NormalDist

from mlax_tutorial.viz.figures import markup
from mlax_tutorial.viz.figures.markup import counted

WIDE, EDGE = 520, 12  # of the drawing, in its own pixels; room beside the clouds
ROWS = (22, 84, 176)  # where the clouds begin
TALL, CLOUD = 250, 30  # of the drawing; of a cloud
IMAGES = (100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
SEEDS = (1, 2, 3, 5, 10, 20, 50, 100)
LISTED_IMAGES, LISTED_SEEDS = (200, 2000, 20_000), (1, 5, 20)
DOTS = 100
# Quantiles of a normal distribution in an order without pattern: for A, for B, and the heights of the dots.
Z = [NormalDist().inv_cdf((i + 0.5) / DOTS) for i in range(DOTS)]


def listing(found) -> str:
    """Means, and how often the second model is ahead."""
    models = ", ".join(
        f"{name} {100 * mean:.1f} % ± {100 * deviation:.1f} by seed"
        for name, mean, deviation in zip(found.names, found.means, found.deviations)
    )
    first = f"{found.names[1]} ahead"
    wide = max(13, len(first))
    lines = [f"{models}, {counted(found.count, 'image')}"]
    lines.append(f"{first:{wide}} " + " ".join(f"{counted(k, 'seed'):8}" for k in LISTED_SEEDS).rstrip())
    for n in LISTED_IMAGES:
        cells = " ".join(f"{_percent(found.ahead(n, k)):8}" for k in LISTED_SEEDS)
        lines.append(f"{counted(n, 'image'):>{wide}}  {cells}".rstrip())
    lines[1] = lines[1].replace(" ahead ", " ahead ")
    return "\n".join(lines)


def write(found) -> str:
    """The figure as HTML."""
    images = min(range(len(IMAGES)), key=lambda i: abs(math.log(IMAGES[i] / found.count)))
    n, k = IMAGES[images], SEEDS[0]
    both = found.covariance is not None
    center, half = sum(found.means) / 2, 2.6 * max(found.spread(200, 1))
    half = max(half, 0.75 * abs(found.means[1] - found.means[0]), 1e-4)
    scale = (WIDE - 2 * EDGE) / (2 * half)
    names = [html.escape(_short(name)) for name in found.names]
    drawing = "".join(
        [
            *(_text(EDGE, ROWS[i] - 7, f"{names[i]}: accuracies") for i in (0, 1)),
            _text(EDGE, ROWS[2] - 7, f"{names[1]} less {names[0]}, in points"),
            *(
                f'<g class="viz-accuracies-{i}">{_dots(found, i, n, k, center, scale, both)}</g>'
                for i in range(3)
            ),
            *(_axis(y, center, half, scale, middle, form) for y, middle, form in ((122, center, "accuracy"), (214, 0.0, "points"))),
            f'<path class="viz-accuracies-zero" d="M{WIDE / 2:g} {ROWS[2] - 2}V214"/>',
        ]
    )  # fmt: skip
    rows = "".join(
        f'<tr><th scope="row">{counted(n, "image")}</th>'
        + "".join(f"<td>{_percent(found.ahead(n, k))}</td>" for k in LISTED_SEEDS)
        + "</tr>"
        for n in LISTED_IMAGES
    )
    heads = "".join(f'<th scope="col">{counted(k, "seed")}</th>' for k in LISTED_SEEDS)
    same = (
        '<label><input type="checkbox" class="viz-accuracies-same" checked> both on the same images</label>'
        if both
        else ""
    )
    body = f"""<div class="viz-bar" hidden>
<label>test images <output>{n:,}</output><input type="range" class="viz-range viz-accuracies-images" min="0" max="{len(IMAGES) - 1}" value="{images}" aria-label="Test images" aria-valuetext="{n:,}"></label>
<label>seeds <output>{k}</output><input type="range" class="viz-range viz-accuracies-seeds" min="0" max="{len(SEEDS) - 1}" value="0" aria-label="Seeds" aria-valuetext="{k}"></label>
{same}<span class="viz-status" aria-live="polite"></span>
</div>
<svg viewBox="0 0 {WIDE} {TALL}" aria-hidden="true">{drawing}</svg>
<div class="viz-scroll"><table><thead><tr><th scope="col">{names[1]} is ahead</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"""
    data = {
        "names": list(found.names),
        "means": [round(mean, 6) for mean in found.means],
        "parts": [[float(f"{one:.5g}") for one in parts] for parts in found.parts()],
        "covariance": found.covariance or 0,
        "images": IMAGES,
        "seeds": SEEDS,
        "center": round(center, 6),
        "scale": round(scale, 3),
        "z": [round(z, 3) for z in Z],
        "wide": WIDE,
        "edge": EDGE,
    }
    ends = "; ".join(
        f"{counted(n, 'image')} and {counted(k, 'seed')}: {_percent(found.ahead(n, k))}"
        for n in LISTED_IMAGES
        for k in LISTED_SEEDS
    )
    given = " and ".join(
        f"{html.escape(name)} ({100 * mean:.1f} %, by seed ± {100 * deviation:.1f})"
        for name, mean, deviation in zip(found.names, found.means, found.deviations)
    )
    caption = (
        f"{given}, measured on {counted(found.count, 'image')}. Each dot is the outcome of one test with as many images and seeds as the sliders "
        f"say; below, the difference of two such outcomes. Where a dot is hollow, {html.escape(found.names[0])} came out ahead. The table says how often "
        f"{html.escape(found.names[1])} does{', on the same images' if both else ''}."
    )
    label = f"How often a test finds {found.names[1]} ahead of {found.names[0]}. {ends}."
    return markup.frame("accuracies", body, label, caption=caption, styles=["table"], script=True, data=data)


def _dots(found, row, images, seeds, center, scale, same):
    """A hundred dots; those of the third cloud are hollow where the first model is ahead."""
    if row < 2:
        middle, spread, origin = found.means[row], found.spread(images, seeds)[row], center
    else:
        middle, origin = found.means[1] - found.means[0], 0.0
        spread = found.spread_of_difference(images, seeds, same)
    parts = []
    for i, z in enumerate(Z):
        value = middle + spread * z
        x = min(max(WIDE / 2 + (value - origin) * scale, EDGE / 2), WIDE - EDGE / 2)
        y = ROWS[row] + 4 + (i * 61 % DOTS) / DOTS * (CLOUD - 6)
        hollow = ' class="viz-accuracies-behind"' if row == 2 and value < 0 else ""
        parts.append(f'<circle{hollow} cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
    return "".join(parts)


def _axis(y, center, half, scale, middle, kind):
    """A line with round numbers."""
    span = 200 * half
    step = next(step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if span / step <= 7)
    low, high = 100 * (middle - half), 100 * (middle + half)
    parts = [f'<path class="viz-accuracies-axis" d="M{EDGE} {y}H{WIDE - EDGE}"/>']
    for number in range(math.ceil((low + 0.04 * span) / step), math.floor((high - 0.04 * span) / step) + 1):
        value = number * step
        x = WIDE / 2 + (value / 100 - middle) * scale
        text = f"{value:g} %" if kind == "accuracy" else f"{value:+g}" if value else "0"
        parts.append(
            f'<path class="viz-accuracies-axis" d="M{x:.1f} {y}v4"/>{_text(x, y + 18, text, "middle")}'
        )
    return "".join(parts)


def _text(x, y, text, anchor="start"):
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}">{text}</text>'


def _percent(share):
    """
    >>> _percent(0.5), _percent(0.996), _percent(0.9996)
    ('50 %', '99.6 %', '100 %')
    """
    return (
        f"{100 * share:.1f} %" if 0.99 <= share < 0.9995 or 0.0005 < share <= 0.01 else f"{100 * share:.0f} %"
    )


def _short(text):
    return text if len(text) <= 24 else text[:23].rstrip() + "…"
