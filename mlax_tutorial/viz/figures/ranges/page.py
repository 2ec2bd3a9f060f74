"""The markup of ``viz.ranges``: a histogram over the ranges of the formats, and a table of what each would lose."""

import base64
import html
import math
import re

import jax.numpy as jnp

from mlax_tutorial.viz.figures import controls, markup
from mlax_tutorial.viz.figures.markup import counted

WIDE, HIGH = 530, 95  # of the histogram
MARGIN = 136  # for the names of the formats, at its right
BAND = 24  # the height of a format's row
COLUMNS = ("becomes 0", "loses digits", "too large")
OWN = "bits of your own"
# Formats that IEEE 754's rule makes of their bits, exponent and fraction. (float8_e4m3fn has no infinity: it has a row of its own.)
KNOWN = {
    "float32": (8, 23),
    "tensorfloat32": (8, 10),
    "bfloat16": (8, 7),
    "float16": (5, 10),
    "float8_e5m2": (5, 2),
    "float8_e4m3": (4, 3),
    "float8_e3m4": (3, 4),
}


def listing(measured, name, tuned=None) -> str:
    """The counts as text."""
    lines = [headline(measured, name), " " * 15 + "".join(f"{c:>{len(c) + 2}}" for c in COLUMNS)]
    rows = {one: shares[0] for one, shares in measured.shares.items()}
    if tuned is not None:
        rows[f"yours, {tuned.exponent} + {tuned.fraction}"] = tuned.share
    for one, share in rows.items():
        cells = cells_of(share, measured.numbers)
        lines.append(f"{one:15}" + "".join(f"{t:>{len(c) + 2}}" for c, t in zip(COLUMNS, cells, strict=True)))
    return "\n".join(lines)


def headline(measured, name) -> str:
    """How many numbers there are, and of what sizes."""
    rest = [
        counted(measured.zeros, "zero"),
        counted(measured.infinite, "infinity", "infinities"),
        counted(measured.nan, "NaN", "NaN"),
    ]
    rest = [text for text in rest if not text.startswith("0 ")]
    if measured.bins:
        said = f"{measured.numbers:,} from 2^{min(measured.bins)} to 2^{max(measured.bins)}"
    else:
        said = "no floating-point number other than zero"
    return f"{name}: {said}" + (f", and {', '.join(rest)}" if rest else "")


def cells_of(share, numbers) -> list[str]:
    """The shares in percent, as they stand in the table."""
    return [percent(count, numbers) for count in (share.zero, share.subnormal, share.too_large)]


def percent(count, of) -> str:
    """A share in words.

    >>> percent(0, 9), percent(1, 10_000), percent(1, 3), percent(3, 3), percent(9999, 10_000)
    ('none', '<0.1%', '33.3%', 'all', '>99.9%')
    """
    if not count:
        return "none"
    if count == of:
        return "all"
    if count / of < 0.001:
        return "<0.1%"
    return ">99.9%" if count / of > 0.999 else f"{count / of:.1%}"


def write(measured, name, tuned=None) -> str:
    """The counts as HTML; ``tuned`` is the `sizes.Tuned` whose bits the reader sets, the last row."""
    most = len(next(iter(measured.shares.values()))) - 1
    cells = {one: [cells_of(share, measured.numbers) for share in s] for one, s in measured.shares.items()}
    heads = "".join(f'<th scope="col">{text}</th>' for text in COLUMNS)
    rows = "".join(
        f'<tr><th scope="row"><code>{one}</code></th>' + "".join(f"<td>{t}</td>" for t in c[0]) + "</tr>"
        for one, c in cells.items()
    )
    if tuned is not None:
        own = cells_of(tuned.kept_share, len(tuned.kept))
        rows += '<tr class="viz-ranges-own"><th scope="row"><code>yours</code></th>'
        rows += "".join(f"<td>{text}</td>" for text in own) + "</tr>"
    low, high = window(measured)
    unit = WIDE / (high - low)
    title = _powers(html.escape(headline(measured, name)).replace("2^-", "2^−"))
    caption = (
        f"Sizes of {title}. Each bar counts the numbers between two powers of two; the bands beneath are what each format can hold, "
        "and the table is what it would lose. The slider multiplies all numbers by a power of two."
    )
    if tuned is not None:
        some = len(tuned.kept) < measured.numbers
        caption += " Choose the bits of one more format, <code>yours</code>: this page rounds " + (
            f"{len(tuned.kept):,} of the numbers, spread evenly over their sizes, to it."
            if some
            else "the numbers to it."
        )
    body = f"""{markup.bar(most, "power of two", "Multiply by two to the power of")}
{_controls(tuned)}{_drawing(measured, low, high, unit, tuned)}
<div class="viz-scroll" tabindex="0" role="group" aria-label="What each format would lose"><table>
<thead><tr><th scope="col">as</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"""
    data = {"unit": round(unit, 3), "cells": list(cells.values())}
    if tuned is not None:
        body += '\n<p class="viz-ranges-said" aria-live="polite" hidden></p>'
        data["tune"] = {
            "kept": base64.b64encode(
                tuned.kept.astype(tuned.kept.dtype.newbyteorder("<")).tobytes()
            ).decode(),
            "bytes": tuned.kept.itemsize,
            "known": KNOWN,
            "window": [low, high, WIDE],
        }
    return markup.frame(
        "ranges",
        body,
        f"Sizes of {headline(measured, name)}",
        caption=caption,
        styles=["table"],
        script=True,
        data=data,
        tuned=tuned is not None,
    )


def _controls(tuned):
    """A list of known formats, and a slider for each kind of bits."""
    if tuned is None:
        return ""
    bits = tuned.exponent, tuned.fraction
    at = next((name for name, known in KNOWN.items() if known == bits), OWN)
    return controls.row(
        controls.choice("yours is", [OWN, *KNOWN], at),
        controls.slider("exponent bits", 2, 8, tuned.exponent, str(tuned.exponent)),
        controls.slider("fraction bits", 1, 23, tuned.fraction, str(tuned.fraction)),
    )


def window(measured) -> tuple[int, int]:
    """The powers of two between which is drawn: float16 always, and all numbers that a float32 could be."""
    low = min([-30, *(e - 1 for e in measured.bins)])
    high = max([20, *(e + 2 for e in measured.bins)])
    return max(low, -152), min(high, 132)


def _powers(text):
    return re.sub(r"2\^(−?\d+)", r"2<sup>\1</sup>", text)


def _drawing(measured, low, high, unit, tuned):
    place = lambda exponent: round((min(max(exponent, low), high) - low) * unit, 1)  # noqa: E731
    tallest = max(measured.bins.values(), default=1)
    bars = ""
    for exponent, count in sorted(measured.bins.items()):
        tall = max(1.5, (HIGH - 10) * count / tallest)
        x = place(exponent)
        bars += f'<rect x="{x}" y="{HIGH - tall:.1f}" width="{max(unit - 1, 1):.1f}" height="{tall:.1f}"/>'
    ranges = {}
    for name in measured.shares:
        info = jnp.finfo(name)
        ranges[name] = (
            math.log2(float(end)) for end in (info.smallest_subnormal, info.smallest_normal, info.max)
        )
    if tuned is not None:
        bias = 2 ** (tuned.exponent - 1) - 1
        ranges["yours"] = 1 - bias - tuned.fraction, 1 - bias, bias + 1
    bands = ""
    for row, (name, (smallest, normal, largest)) in enumerate(ranges.items()):
        y = HIGH + 6 + BAND * row
        ends = place(smallest), place(normal), place(largest)
        bands += (
            f'<rect class="viz-ranges-thin" x="{ends[0]}" y="{y + 8}" width="{max(ends[1] - ends[0], 0):.1f}" height="5"/>'
            f'<rect class="viz-ranges-band" x="{ends[1]}" y="{y + 2}" width="{ends[2] - ends[1]:.1f}" height="17"/>'
            f'<text x="{WIDE + 6}" y="{y + 16}">{name}</text>'
        )
    bottom = HIGH + 6 + BAND * len(ranges)
    every = 10 if high - low <= 80 else 50
    ticks = ""
    for exponent in range(-200, 200, every):
        if low < exponent < high:
            x = place(exponent)
            written = str(exponent).replace("-", "−")
            ticks += f'<line x1="{x}" x2="{x}" y1="{HIGH}" y2="{bottom}"/>'
            ticks += f'<text x="{x}" y="{bottom + 20}" text-anchor="middle">2<tspan dy="-6" font-size="12">{written}</tspan></text>'
    return f"""<svg class="viz-ranges-drawing" viewBox="-16 0 {WIDE + MARGIN + 16} {bottom + 26}" aria-hidden="true">
<g class="viz-ranges-ticks">{ticks}</g>{bands}
<svg x="0" y="0" width="{WIDE}" height="{HIGH}" viewBox="0 0 {WIDE} {HIGH}"><g class="viz-ranges-bars">{bars}</g></svg>
<line class="viz-ranges-floor" x1="0" x2="{WIDE}" y1="{HIGH}" y2="{HIGH}"/></svg>"""
