"""The markup of ``viz.placement``: a drawing that needs no script; names to drag, and lists to choose from, that do."""

import html
import itertools
import math

from mlax_tutorial.viz.figures import markup
from mlax_tutorial.viz.figures.markup import counted, in_bytes

WIDE, TALL = 512, 256  # the room for the drawing, in its own pixels
MOST_AXES = 4  # of an array, for which there is a list
MOST_NAMES = 3  # of a mesh, whose orders are offered, too


def listing(found) -> str:
    """What each device holds."""
    lines = [said(found)]
    for part, devices in itertools.islice(found.held().items(), 32):
        lines.append(f"part {part}: device{'s' if len(devices) > 1 else ''} {', '.join(map(str, devices))}")
    if len(found.held()) > 32:
        lines.append(f"and {len(found.held()) - 32} more")
    return "\n".join(lines)


def said(found) -> str:
    from mlax_tutorial.viz.figures.placement import written

    count = counted(len(found.devices), "device")
    each = "it" if len(found.devices) == 1 else "each"
    return f"{found.dtype} {found.shape} over {count}, {written(found.spec)}: {each} holds {found.shard}, {in_bytes(found.bytes_per_device)}"


def write(found) -> str:
    """The figure as HTML."""
    names = list(found.sizes)
    orders = [()]
    for count in range(1, min(len(names), MOST_NAMES) + 1):
        orders += itertools.permutations(names, count)
    lists = "".join(
        f'<label>{_axis(found.shape, axis)} <select class="viz-placement-axis" data-axis="{axis}">'
        + "".join(
            f'<option value="{markup.attribute(",".join(order))}"{" selected" if order == tuple(found.spec[axis]) else ""}>'
            f"{html.escape(_option(order, found.sizes))}</option>"
            for order in orders
        )
        + "</select></label>"
        for axis in range(min(len(found.shape), MOST_AXES))
    )
    # The lists do the same for a keyboard and a screen reader.
    chips = "".join(
        f'<span class="viz-placement-name" data-name="{markup.attribute(name)}">{html.escape(name)} ({size})</span>'
        for name, size in found.sizes.items()
    )
    wide, tall = _room(found.shape)
    mesh = ", ".join(f"{html.escape(name)} {size}" for name, size in found.sizes.items())
    body = f"""<div class="viz-bar" hidden>
<span class="viz-placement-names" aria-hidden="true">Drag an axis of the mesh onto one of the array, or away: {chips}</span>{lists}<span class="viz-status" aria-live="polite"></span>
</div>
<svg viewBox="0 0 {wide:g} {tall:g}" style="max-width:{wide:g}px" aria-hidden="true">{_drawing(found, wide, tall)}</svg>"""
    data = {
        "shape": found.shape,
        "itemsize": found.dtype.itemsize,
        "sizes": list(found.sizes.values()),
        "names": names,
        "devices": found.devices,
        "spec": [list(axis) for axis in found.spec],
        "room": [wide, tall],
    }
    caption = (
        f"An array of {' × '.join(map(str, found.shape)) or 'one number'}, {in_bytes(found.dtype.itemsize * math.prod(found.shape))}, and a mesh of "
        f"{counted(len(found.devices), 'device')} ({mesh}). Each rectangle is a part of the array; the numbers in it are the devices that hold it."
    )
    return markup.frame("placement", body, said(found), caption=caption, script=bool(lists), data=data)


def _axis(shape, axis):
    word = ["rows", "columns"][axis] if len(shape) == 2 else f"axis {axis}"
    return f"{word} ({shape[axis]}) over"


def _option(order, sizes):
    if not order:
        return "nothing: copied"
    return " and ".join(f"{name} ({sizes[name]})" for name in order)


def _drawing(found, wide, tall):
    """The first two axes; along the others, a part's devices are those of all its parts."""
    down, across = _flat(found.parts)
    held = {}
    for part, devices in found.held().items():
        i, j = (0, *part) if len(part) == 1 else (*part, 0, 0)[:2]
        held.setdefault((i, j), []).extend(devices)
    pieces = []
    for (i, j), devices in held.items():
        x, y, w, h = wide / across * j, tall / down * i, wide / across, tall / down
        pieces.append(
            f'<rect class="viz-placement-{(i * across + j) % 8}" x="{x + 1.5:.1f}" y="{y + 1.5:.1f}" width="{w - 3:.1f}" height="{h - 3:.1f}"/>'
            f'<text x="{x + w / 2:.1f}" y="{y + h / 2 + 5:.1f}" text-anchor="middle">{_numbers(sorted(devices), w)}</text>'
        )
    return "".join(pieces)


def _flat(numbers):
    """Those of two axes: a row for one axis, the first two of more."""
    return (1, *numbers) if len(numbers) == 1 else (*numbers, 1, 1)[:2]


def _room(shape):
    """How wide and how tall the drawing is, in whole pixels: like the array, but not too flat."""
    rows, columns = _flat(shape)
    wide = WIDE if columns >= rows else max(round(WIDE * columns / rows), WIDE // 3)
    tall = TALL if rows >= columns else max(round(TALL * rows / columns), TALL // 3)
    return wide, tall


def _numbers(devices, wide):
    room = max(int(wide / 24), 1)
    if len(devices) <= room:
        return ", ".join(map(str, devices))
    return f"{devices[0]}…{devices[-1]}" if wide > 40 else "…"
