"""The markup of ``viz.gates``: maps of gates and states and a table that need no script, and what the script moves along them."""

import html

import numpy as np

from mlax_tutorial.viz.figures import markup
from mlax_tutorial.viz.figures.markup import counted

SHOWN = 12  # features of each gate
WIDE, LEFT = 640, 74  # of the drawing, in its own pixels; room for names
ROW, GAP, TOP = 7, 14, 26  # height of a feature, space between maps, room for labels
SHADES = 8


def listing(gates) -> str:
    """The mean of each gate and state at the first step, in the middle and at the last."""
    steps = len(gates.labels)
    chosen = sorted({0, steps // 2, steps - 1})
    width = max(len(name) for name in gates.values)
    lines = [f"{gates.name}, {counted(steps, 'step')}"]
    for name, values in gates.values.items():
        means = ", ".join(f"{_number(np.mean(values[t]))} at step {t + 1}" for t in chosen)
        lines.append(f"  {name:{width}}  mean {means}")
    return "\n".join(lines)


def write(gates, gate_names) -> str:
    """The figure as HTML."""
    steps, last = len(gates.labels), len(gates.labels) - 1
    across = (WIDE - LEFT) / steps
    rows = _most_moving(gates.values)
    maps, bottom = [], TOP
    for index, (name, values) in enumerate(gates.values.items()):
        gate = name in gate_names
        shown = values[:, rows[name]]
        maps.append(_map(name, shown, gate, index, bottom, across))
        bottom += shown.shape[1] * ROW + GAP
    tall = bottom - GAP + 2
    shades = [_shares(row) for row in gates.influence]
    labels = "".join(_label(t, label, shades[-1][t], across) for t, label in enumerate(gates.labels))
    marker = f'<rect class="viz-gates-marker" x="{LEFT + last * across:.2f}" y="1" width="{across:.2f}" height="{tall - 2}"/>'
    veil = f'<rect class="viz-gates-veil" x="{WIDE}" y="{TOP - 3}" width="0" height="{tall}"/>'
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("", "lowest", "mean", "highest"))
    table = "".join(
        f'<tr><th scope="row">{_swatch(name in gate_names)} {html.escape(name)}</th>'
        + "".join(f"<td>{text}</td>" for text in _three(values[-1]))
        + "</tr>"
        for name, values in gates.values.items()
    )
    body = f"""{markup.bar(last, "step", "Steps", at=last)}
<div class="viz-gates-panes">
<div><svg viewBox="0 0 {WIDE} {tall}" aria-hidden="true">{labels}{"".join(maps)}{veil}{marker}</svg></div>
<div><table><thead><tr>{heads}</tr></thead><tbody>{table}</tbody></table></div></div>"""
    data = {
        "labels": gates.labels,
        "shades": ["".join(map(str, row[: t + 1])) for t, row in enumerate(shades)],
        "table": [[_three(values[t]) for values in gates.values.values()] for t in range(steps)],
        "left": LEFT,
        "across": round(across, 4),
    }
    caption = (
        f"{markup.code(gates.name)} reads {counted(steps, 'step')}, from left to right. One map for each gate and each part of the "
        f"state, a row for each feature{_part(gates.values)}. Gates: the stronger the shade, the more open. States: blue is positive, "
        "orange negative. At the top, the inputs: the greener, the more the output at the marked step depends on it. The table is "
        "about all features at that step. The slider stands at the last step."
    )
    means = ", ".join(f"{name} {_number(np.mean(values[-1]))}" for name, values in gates.values.items())
    label = (
        f"Gates and states of {gates.name} over {counted(steps, 'step')}. Means at the last step: {means}."
    )
    return markup.frame("gates", body, label, caption=caption, styles=["table"], script=True, data=data)


def _part(values):
    most = max(each.shape[1] for each in values.values())
    return f", {SHOWN} of {most}: those whose state moves most" if most > SHOWN else ""


def _most_moving(values):
    """Which features to show of each map: the same of all that have the same size, by the last part of the state."""
    rows = {}
    for name, each in values.items():
        size = each.shape[1]
        like = [other for other in values.values() if other.shape[1] == size][-1]
        moves = np.nan_to_num(np.ptp(like, axis=0), nan=np.inf)
        rows[name] = np.sort(np.argsort(-moves, kind="stable")[:SHOWN])
    return rows


def _map(name, values, gate, index, top, across):
    """Cells of one shade are one path."""
    size = 1.0 if gate else float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values))) or 1.0
    paths = {}
    for t, row in enumerate(values):
        for i, value in enumerate(row):
            if not np.isfinite(value):
                kind = "viz-gates-lost"
            else:
                shade = round(min(abs(value) / size, 1.0) * SHADES)
                if not shade:
                    continue
                color = "gate" if gate else "up" if value > 0 else "down"
                kind = f"viz-gates-{color} viz-gates-{shade}"
            paths.setdefault(kind, []).append(
                f"M{LEFT + t * across:.1f} {top + i * ROW}h{across:.1f}v{ROW}h-{across:.1f}z"
            )
    drawn = "".join(f'<path class="{kind}" d="{"".join(parts)}"/>' for kind, parts in sorted(paths.items()))
    height = values.shape[1] * ROW
    frame = f'<rect class="viz-gates-frame" x="{LEFT}" y="{top}" width="{WIDE - LEFT}" height="{height}"/>'
    short = name if len(name) <= 9 else name[:8] + "…"
    text = (
        f'<text x="{LEFT - 6}" y="{top + height / 2 + 4:.0f}" text-anchor="end">{html.escape(short)}</text>'
    )
    return f"<g>{drawn}{frame}{text}</g>"


def _label(t, label, shade, across):
    x = LEFT + t * across
    shown = {" ": "␣", "\n": "↵", "\t": "⇥"}.get(label, label)
    text = html.escape(shown) if len(shown) * 7.5 <= max(across, 8) else ""
    return (
        f'<g class="viz-gates-label viz-gates-{shade}"><rect x="{x:.2f}" y="2" width="{across:.2f}" height="{TOP - 8}"/>'
        f'<text x="{x + across / 2:.2f}" y="16" text-anchor="middle">{text}</text></g>'
    )


def _swatch(gate):
    kinds = ["gate"] if gate else ["up", "down"]
    wide = 14 // len(kinds)
    parts = "".join(
        f'<rect class="viz-gates-{kind} viz-gates-6" x="{i * wide}" y="0" width="{wide}" height="14"/>'
        for i, kind in enumerate(kinds)
    )
    return f'<svg viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">{parts}</svg>'


def _shares(row):
    """Each influence as a shade, beside the largest of the row."""
    known = np.where(np.isfinite(row), row, 0.0)
    top = known.max()
    return [round(SHADES * value / top) if top > 0 else 0 for value in known]


def _three(values):
    return [_number(value) for value in (values.min(), values.mean(), values.max())]


def _number(value) -> str:
    """Two decimals.

    >>> _number(0.5), _number(-0.001), _number(float("nan")), _number(12345.6)
    ('0.50', '0.00', 'nan', '1.2e+04')
    """
    value = float(value)
    if not np.isfinite(value):
        return "nan" if np.isnan(value) else "inf" if value > 0 else "-inf"
    if abs(value) >= 1000:
        return f"{value:.1e}"
    return f"{value:.2f}".replace("-0.00", "0.00")
