"""The markup of ``viz.attention``: heat maps that need no script, and the weights of one query, through which the script steps."""

import base64
import html

import numpy as np

from mlax_tutorial.viz.figures import controls, markup
from mlax_tutorial.viz.figures.markup import counted

LEVELS = 8  # of color
TEMPERATURES = [float(f"{10 ** (i / 20):.2g}") for i in range(-20, 21)]  # from 0.1 to 10
WIDE, LABELS = 460, 58  # of the large map and of the room for names, in its own pixels


def listing(attention) -> str:
    """For each head, the key that each query looks at most."""
    heads = sum(map(len, attention.layers))
    sizes = counted(len(attention.queries), "query", "queries"), counted(len(attention.keys), "key")
    lines = [", ".join([counted(len(attention.layers), "layer"), counted(heads, "head"), *sizes])]
    for layer, weights in enumerate(attention.layers):
        for head, matrix in enumerate(weights):
            most = [
                f"{_line(name)} -> {_most(row, attention.keys)}"
                for name, row in zip(attention.queries, matrix)
            ]
            lines.append(f"  layer {layer} head {head}: {', '.join(most)}")
    return "\n".join(lines)


def _line(name: str) -> str:
    """A name that takes one line: a blank or a new line as it is written."""
    return name if name.strip() and name.isprintable() else repr(name)[1:-1].replace(" ", "␣")


def _most(row, keys) -> str:
    if not np.isfinite(row).all():
        return "not finite"
    if not row.any():
        return "nothing"
    return f"{_line(keys[int(row.argmax())])} {row.max():.2f}"


def write(attention, masks=None) -> str:
    """The figure as HTML; ``masks`` are those to choose from by name, if the reader sets temperature and mask."""
    queries, keys = [_line(name) for name in attention.queries], [_line(name) for name in attention.keys]
    heads = [
        (layer, head, weights[head])
        for layer, weights in enumerate(attention.layers)
        for head in range(len(weights))
    ]
    last, at = len(queries) - 1, len(queries) // 2
    maps = [_cells(matrix) for _, _, matrix in heads]
    percent = [_percent(matrix) for _, _, matrix in heads]
    size = (WIDE - LABELS) / max(len(keys), 8)
    above = 14 + min(max(map(len, keys)), 6) * 7
    tall = round(above + size * len(queries) + 4)
    font = max(4.5, min(14.0, 0.62 * size))
    names = "".join(
        f'<text x="{LABELS - 6}" y="{above + (i + 0.5) * size + font * 0.35:.1f}" text-anchor="end">{_short(name)}</text>'
        for i, name in enumerate(queries)
    )
    if max(map(len, keys)) == 1:  # upright
        columns = "".join(
            f'<text x="{LABELS + (i + 0.5) * size:.1f}" y="{above - 5}" text-anchor="middle">{_short(name)}</text>'
            for i, name in enumerate(keys)
        )
    else:
        columns = "".join(
            f'<text transform="translate({LABELS + (i + 0.5) * size + font * 0.35:.1f},{above - 5}) rotate(-90)">{_short(name)}</text>'
            for i, name in enumerate(keys)
        )
    right = LABELS + size * len(keys)
    thumbs = "".join(
        _thumb(i, *heads[i][:2], maps[i], len(keys), len(queries), len(attention.layers) > 1)
        for i in range(len(heads))
    )
    caption = (
        f"Who looks at whom: {counted(len(attention.layers), 'layer')}, {counted(len(heads), 'head')}. Each row of a map is a query, each column a "
        "key, and the stronger the color, the larger the weight. The small maps are the heads: choose one. The slider goes through the queries, whose "
        "weights stand beside the map, in percent."
    )
    if masks is not None:
        caption += (
            " You set the temperature, by which the scores are divided before the softmax, and a mask. At temperature 1 and without a "
            "mask, the weights are those of the model; what is 0 then stays 0."
        )
    chips = "".join(
        f'<li style="--w:{value / 100:g}"><b>{_short(name, 12)}</b><i>{value if value >= 1 else ""}</i></li>'
        for name, value in zip(keys, percent[0][at])
    )
    body = f"""{markup.bar(last, "query", "Queries", at=at)}
{_controls(masks)}<div class="viz-attention-heads">{thumbs}</div>
<div class="viz-attention-panes">
<svg viewBox="0 0 {WIDE} {tall}" preserveAspectRatio="xMinYMin" aria-hidden="true" font-size="{font:.1f}">{names}{columns}
<g class="viz-attention-map" transform="translate({LABELS},{above}) scale({size:.3f})">{maps[0]}</g>
<rect class="viz-attention-frame" x="{LABELS}" y="{above}" width="{size * len(keys):.1f}" height="{size * len(queries):.1f}"/>
<rect class="viz-attention-row" x="1" y="{above + at * size:.1f}" width="{right - 2:.1f}" height="{size:.1f}" data-top="{above}" data-size="{size:.3f}"/></svg>
<div><p class="viz-attention-query"><b>{_short(queries[at], 12)}</b> looks at</p><ol class="viz-attention-keys">{chips}</ol></div></div>"""
    data = {
        "queries": queries,
        "keys": keys,
        "heads": [f"layer {layer}, head {head}" for layer, head, _ in heads],
    }
    if masks is None:
        data["percent"] = percent
    else:
        weights = np.concatenate([layer.ravel() for layer in attention.layers]).astype("<f4")
        data |= {
            "weights": base64.b64encode(weights.tobytes()).decode(),
            "temperatures": TEMPERATURES,
            "masks": list(masks),
            "allowed": ["".join("01"[int(may)] for may in mask.ravel()) for mask in masks.values()],
        }
    label = f"Attention weights. {listing(attention)}"
    if len(label) > 600:
        label = label[:600].rsplit(",", 1)[0] + " …"
    return markup.frame(
        "attention", body, label, caption=caption, script=True, data=data, tuned=masks is not None
    )


def _controls(masks) -> str:
    if masks is None:
        return ""
    one = TEMPERATURES.index(1.0)
    return controls.row(
        controls.slider("temperature", 0, len(TEMPERATURES) - 1, one, "1"),
        controls.choice("mask", list(masks)),
    )


def _percent(matrix) -> list[list[int]]:
    """Whole percents; what is no number is -1."""
    finite = np.where(np.isfinite(matrix), np.clip(matrix, -9.99, 9.99), -0.01)
    return np.round(100 * finite).astype(int).tolist()


def _cells(matrix) -> str:
    """A heat map in cells of size 1: a path for each level of color."""
    levels = np.ceil(np.clip(np.nan_to_num(matrix), 0, 1) * LEVELS - 0.16).astype(int)
    paths = []
    for level in range(1, LEVELS + 1):
        places = np.argwhere(levels == level)
        if len(places):
            drawn = "".join(f"M{column} {row}h1v1h-1z" for row, column in places.tolist())
            paths.append(f'<path fill-opacity="{level / LEVELS:g}" d="{drawn}"/>')
    return "".join(paths)


def _thumb(index, layer, head, cells, width, height, several) -> str:
    name = f"{layer}.{head}" if several else f"{head}"
    said = f"Layer {layer}, head {head}"
    return (
        f'<button type="button" aria-pressed="{"true" if index == 0 else "false"}" aria-label="{said}" title="{said}">'
        f'<svg viewBox="0 0 {width} {height}" aria-hidden="true" preserveAspectRatio="none"><g>{cells}</g></svg><span>{name}</span></button>'
    )


def _short(name: str, most: int = 6) -> str:
    return html.escape(name if len(name) <= most else name[: most - 1] + "…")
