"""The markup of ``viz.convolution``: a grid for each layer that needs no script, and what the script moves over them."""

import html

import numpy as np

from mlax_tutorial.viz.figures import controls, markup

UNIT = 10  # a cell, in the drawing's own pixels


def listing(sight) -> str:
    """A line for each stage."""
    stages = sight.stages
    rows = [
        (
            _short(stage.name),
            _by((*stage.returned, stage.channels[1])),
            f"window {_by(stage.window)}",
            f"field {_by(stage.field)}",
            _mixing(stage),
        )
        for stage in stages
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    first = f"{sight.name} on {_by((*stages[0].given, stages[0].channels[0]))}: an output sees up to {_by(stages[-1].field)}"
    lines = [first] + [
        "  " + "  ".join([*(f"{cell:{width}}" for cell, width in zip(row, widths)), row[4]]).rstrip()
        for row in rows
    ]
    if sight.rest:
        lines.append(f"  not shown: {', '.join(map(_short, sight.rest))}")
    return "\n".join(lines)


def write(sight, window=None) -> str:
    """The figure as HTML; ``window`` is the `windows.Window` that its sliders set."""
    stages = sight.stages
    shapes = [stages[0].given, *(stage.returned for stage in stages)]
    count = int(np.prod(shapes[-1]))
    start = int(np.ravel_multi_index(tuple(size // 2 for size in shapes[-1]), shapes[-1]))
    ways, output = [], np.zeros(shapes[-1])
    output[np.unravel_index(start, shapes[-1])] = 1
    ways.append(output)
    for stage in stages[::-1]:
        ways.insert(0, stage.back(ways[0]))
    titles = [("input", _by((*stages[0].given, stages[0].channels[0])))]
    titles += [(_short(stage.name), _by((*stage.returned, stage.channels[1]))) for stage in stages]
    grids = "".join(
        f'<div class="viz-convolution-grid"><p>{markup.code(title)}<br>{shape}</p>{_grid(size, seen, wide)}</div>'
        for (title, shape), size, seen, wide in zip(titles, shapes, ways, _widths(shapes))
    )
    table = "".join(
        f'<tr><th scope="row">{markup.code(_short(stage.name))}</th><td>{_by(stage.window)}</td><td>{_by(stage.field)}</td>'
        f"<td>{_mixing(stage) or 'all'}</td></tr>"
        for stage in stages
    )
    body = f"""{markup.bar(count - 1, "output", "Outputs", at=start)}
{_sliders(window)}<div class="viz-convolution-grids">{grids}</div>
<table><thead><tr><th scope="col">layer</th><th scope="col">its window</th><th scope="col">receptive field</th><th scope="col">channels it sees</th></tr></thead>
<tbody>{table}</tbody></table>"""
    rest = f" Not shown, since it has no places: {', '.join(map(_short, sight.rest))}." if sight.rest else ""
    caption = (
        f"What one output of {markup.code(sight.name)} sees. From the chosen output, in the last grid, one goes back layer by layer: colored cells lead "
        "to it, and the stronger the color, the more ways there are. The slider goes through the outputs, row by row; in the last grid, "
        f"you can click one.{html.escape(rest)}"
    )
    if window is not None:
        caption = (
            f"What one output of {markup.code(sight.name)} sees: the colored cells of the input. The slider goes through the outputs, row by "
            "row; in the last grid, you can click one. You set kernel size, stride and dilation of a convolution without padding whose "
            "weights are all equal, so each output is the mean of what it sees. The stronger the gray, the larger the number."
        )
    data = {"shapes": [list(shape) for shape in shapes], "maps": [_map(stage) for stage in stages]}
    if window is not None:
        data["tune"] = [float(f"{value:.7g}") for value in window.values.ravel()]
    fields = "; ".join(f"behind {stage.name} {_by(stage.field)}" for stage in stages)
    label = f"Grids of the input and of each layer of {sight.name}, and which inputs an output sees. Receptive field: {fields}."
    return markup.frame(
        "convolution",
        body,
        label,
        caption=caption,
        styles=["table"],
        script=True,
        data=data,
        tuned=window is not None,
    )


def _sliders(window) -> str:
    if window is None:
        return ""
    parts = ("kernel size", 7, window.size), ("stride", 4, window.stride), ("dilation", 4, window.dilation)
    return controls.row(*(controls.slider(name, 1, max(most, at), at, str(at)) for name, most, at in parts))


def _by(shape) -> str:
    return " x ".join(map(str, shape))


def _short(name) -> str:
    return name if len(name) <= 48 else f"{name.split('(')[0]}(…)"


def _mixing(stage) -> str:
    """Which channels an output sees, if not all."""
    if stage.groups == 1:
        return ""
    if stage.groups is None:
        return "some"
    inputs = stage.channels[0] // stage.groups
    return f"{inputs} of {stage.channels[0]}"


def _two(shape):
    return shape if len(shape) == 2 else (1, *shape)


def _widths(shapes):
    """How wide each grid is shown, in pixels: cells are about as large everywhere, within limits."""
    largest = max(_two(shape)[1] for shape in shapes)
    cell = max(4.0, min(14.0, 190 / largest))
    return [max(36, round(cell * _two(shape)[1])) for shape in shapes]


def _grid(shape, ways, wide) -> str:
    rows, columns = _two(shape)
    tall = UNIT if len(shape) == 2 else 2 * UNIT
    width, height = columns * UNIT, rows * tall
    lines = "".join(f"M{i * UNIT} 0V{height}" for i in range(columns + 1))
    lines += "".join(f"M0 {i * tall}H{width}" for i in range(rows + 1))
    cells = _cells(_two(shape), np.asarray(ways).reshape(rows, columns), tall)
    return (
        f'<svg viewBox="-1 -1 {width + 2} {height + 2}" style="width:{wide}px" data-tall="{tall}" aria-hidden="true">'
        f'<g class="viz-convolution-on">{cells}</g><path d="{lines}"/></svg>'
    )


def _cells(shape, ways, tall) -> str:
    most = ways.max() or 1
    return "".join(
        f'<rect x="{j * UNIT}" y="{i * tall}" width="{UNIT}" height="{tall}" opacity="{0.25 + 0.75 * ways[i, j] / most:.2f}"/>'
        for i, j in np.argwhere(ways > 0)
    )


def _map(stage):
    """For each output, along each axis or for all places, the inputs that it sees, as runs: first and last."""
    return [
        [_runs(np.flatnonzero(column)) for column in matrix.T] for matrix in map(np.asarray, stage.places)
    ]


def _runs(indices):
    """Inputs as a flat list of runs with a step: first, last, step.

    >>> import numpy as np
    >>> _runs(np.array([3, 4, 5])), _runs(np.array([0, 2, 4])), _runs(np.array([0, 1, 5]))
    ([3, 5, 1], [0, 4, 2], [0, 1, 1, 5, 5, 1])
    """
    runs, i = [], 0
    while i < len(indices):
        step = int(indices[i + 1] - indices[i]) if i + 1 < len(indices) else 1
        j = i
        while j + 1 < len(indices) and indices[j + 1] - indices[j] == step:
            j += 1
        runs += [int(indices[i]), int(indices[j]), step if j > i else 1]
        i = j + 1
    return runs
