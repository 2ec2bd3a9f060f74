"""The markup of ``viz.prefixes``: maps of probabilities and a table that need no script, and what the script moves along them."""

import html

import numpy as np

from mlax_tutorial.viz.figures import markup
from mlax_tutorial.viz.figures.markup import counted

WIDE, LEFT = 520, 96  # of a map, in its own pixels; room for the names of the classes
ROW, TOP = 17, 26  # height of a class, room for the pieces
SHADES = 9
BAR = 100  # the longest bar


def listing(prefixes) -> str:
    """The class that each classifier ends with, and its probability on the way."""
    width = max(len(name) for name in prefixes.probabilities)
    texts = _texts(prefixes)
    lines = [f"{texts[-1]}, {counted(len(texts), 'step')}"]
    for name, rows in prefixes.probabilities.items():
        last = int(rows[-1].argmax())
        way = ", ".join(f'{rows[t, last]:.2f} at "{text}"' for t, text in enumerate(texts))
        lines.append(f"  {name:{width}}  {prefixes.classes[last]} {way}")
    return "\n".join(lines)


def write(prefixes) -> str:
    """The figure as HTML."""
    texts, last = _texts(prefixes), len(prefixes.pieces) - 1
    across = (WIDE - LEFT) / len(texts)
    maps = "".join(
        f'<div><p class="viz-prefixes-name">{html.escape(name)}</p>{_map(prefixes, rows, across)}</div>'
        for name, rows in prefixes.probabilities.items()
    )
    names = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in prefixes.probabilities)
    rows = "".join(
        f'<tr><th scope="row">{html.escape(label)}</th>'
        + "".join(_cell(each[-1, index]) for each in prefixes.probabilities.values())
        + "</tr>"
        for index, label in enumerate(prefixes.classes)
    )
    body = f"""{markup.bar(last, "letter", "Letters", at=last)}
<div class="viz-prefixes-panes"><div class="viz-prefixes-maps">{maps}</div>
<div class="viz-scroll"><table><thead><tr><th scope="col">class</th>{names}</tr></thead><tbody>{rows}</tbody></table></div></div>"""
    tables = [np.round(each, 3).tolist() for each in prefixes.probabilities.values()]
    data = {
        "texts": texts,
        "names": list(prefixes.probabilities),
        "classes": prefixes.classes,
        "tables": tables,
        "left": LEFT,
        "across": round(across, 4),
    }
    ends = "; ".join(
        f"{name}: {_best(prefixes.classes, each[-1])}" for name, each in prefixes.probabilities.items()
    )
    caption = (
        f"{markup.code(texts[-1])}, read piece by piece. A column is the answer to the text up to there, as if it ended there; the "
        "stronger the shade, the more probable the class in this row. The table has the marked column as numbers and bars; it stands at "
        "the whole text."
    )
    label = f"Probabilities of {counted(len(prefixes.classes), 'class', 'classes')} while {texts[-1]} is read. At its end, {ends}."
    return markup.frame("prefixes", body, label, caption=caption, styles=["table"], script=True, data=data)


def _texts(prefixes):
    """The text up to each piece: letters side by side, words with blanks between them."""
    between = "" if all(len(piece) == 1 for piece in prefixes.pieces) else " "
    return [between.join(prefixes.pieces[: end + 1]) for end in range(len(prefixes.pieces))]


def _best(classes, row):
    index = int(row.argmax())
    return f"{classes[index]} {row[index]:.2f}"


def _map(prefixes, rows, across):
    """A row for each class; cells of one shade are one path."""
    tall = TOP + ROW * len(prefixes.classes)
    paths = {}
    for t, row in enumerate(rows):
        for index, value in enumerate(row):
            if shade := round(min(max(float(value), 0.0), 1.0) * SHADES):
                paths.setdefault(shade, []).append(
                    f"M{LEFT + t * across:.1f} {TOP + index * ROW}h{across:.1f}v{ROW}h-{across:.1f}z"
                )
    drawn = "".join(
        f'<path class="viz-prefixes-{shade}" d="{"".join(parts)}"/>' for shade, parts in sorted(paths.items())
    )
    lines = "".join(f"M{LEFT} {TOP + index * ROW}H{WIDE}" for index in range(1, len(prefixes.classes)))
    names = "".join(
        f'<text x="{LEFT - 6}" y="{TOP + index * ROW + 13}" text-anchor="end">{html.escape(_short(label, 12))}</text>'
        for index, label in enumerate(prefixes.classes)
    )
    pieces = "".join(
        f'<text x="{LEFT + (t + 0.5) * across:.1f}" y="17" text-anchor="middle">{html.escape(_short(_seen(piece), max(1, int(across / 8))))}</text>'
        for t, piece in enumerate(prefixes.pieces)
    )
    last = LEFT + (len(rows) - 1) * across
    return (
        f'<svg viewBox="0 0 {WIDE + 2} {tall + 2}" aria-hidden="true">{pieces}{names}{drawn}<path class="viz-prefixes-line" d="{lines}"/>'
        f'<rect class="viz-prefixes-frame" x="{LEFT}" y="{TOP}" width="{WIDE - LEFT}" height="{tall - TOP}"/>'
        f'<rect class="viz-prefixes-marker" x="{last:.2f}" y="2" width="{across:.2f}" height="{tall - 2}"/></svg>'
    )


def _cell(value):
    width = round(BAR * min(max(float(value), 0.0), 1.0))
    return (
        f'<td><svg viewBox="0 0 {BAR} 10" preserveAspectRatio="none" aria-hidden="true"><rect width="{width}" height="10"/></svg>'
        f"<span>{100 * float(value):.0f} %</span></td>"
    )


def _seen(piece):
    return {" ": "␣", "\n": "↵", "\t": "⇥"}.get(piece, piece)


def _short(text, most):
    """At most so many characters.

    >>> _short("Croatian", 12), _short("a long name of a class", 12)
    ('Croatian', 'a long name…')
    """
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
