"""The markup of ``viz.denoising``: a picture for each noise level, of which the script shows one."""

import base64
import html
import struct
import zlib

import numpy as np

from mlax_tutorial.viz.figures import markup
from mlax_tutorial.viz.figures.markup import counted

GAP = 2  # pixels between images
SHADES = 15


def listing(found) -> str:
    """The errors, a row for each denoiser."""
    width = max(len(name) for name in [*found.names, "sigma"])
    heads = [f"{sigma:g}" for sigma in found.sigmas]
    rows = [[f"{error:.2f}" for error in errors] for errors in found.errors]
    wide = [max(map(len, column)) for column in zip(heads, *rows)]
    return "\n".join(
        f"{name:{width}}  " + "  ".join(f"{cell:>{size}}" for cell, size in zip(row, wide))
        for name, row in zip(["sigma", *found.names], [heads, *rows])
    )


def write(found) -> str:
    """The figure as HTML."""
    start = len(found.sigmas) // 2
    images = [_picture(found, level) for level in range(len(found.sigmas))]
    errors = [[f"{error:.2f}" for error in column] for column in found.errors.T]
    heads = [*found.names, "clean"]
    labels = "".join(
        f'<div><span>{html.escape(name)}</span><span class="viz-denoising-error">{text}</span></div>'
        for name, text in zip(heads, [*errors[start], ""])
    )
    levels = [f"{sigma:g}" for sigma in found.sigmas]
    alt = _said(found, start)
    body = f"""{markup.bar(len(levels) - 1, "noise level", "Noise levels", at=start)}
<div class="viz-denoising-sheet"><img alt="{markup.attribute(alt)}" src="data:image/png;base64,{images[start]}">
<div class="viz-denoising-heads" style="grid-template-columns:repeat({len(heads)},1fr)">{labels}</div></div>"""
    data = {"levels": levels, "start": start, "images": images, "errors": errors, "names": found.names}
    caption = (
        f"{counted(len(found.clean), 'image')}, a row each: with noise, what each denoiser makes of that, and without. The number under a "
        f"column is its error, the root of the mean square over these images. It stands at sigma = {levels[start]}."
    )
    label = f"{counted(len(found.clean), 'image')} under noise of {counted(len(levels), 'level')}, as {counted(len(found.names) - 1, 'denoiser')} would clean them."
    return markup.frame("denoising", body, label, caption=caption, script=True, data=data)


def _said(found, level):
    errors = ", ".join(f"{name} {error:.2f}" for name, error in zip(found.names, found.errors[:, level]))
    return f"At sigma = {found.sigmas[level]:g}, the errors are: {errors}."


def _picture(found, level) -> str:
    """One row for each image, and one column for each denoiser, as a PNG of sixteen grays."""
    columns = [*found.pictures[:, level], found.clean]
    padded = [np.pad(1 - column, ((0, 0), (0, GAP), (0, GAP)), constant_values=1) for column in columns]
    sheet = np.concatenate([column.reshape(-1, column.shape[-1]) for column in padded], axis=1)
    return base64.b64encode(png(np.round(SHADES * sheet).astype(np.uint8))).decode()


def png(grays: np.ndarray) -> bytes:
    """A PNG of four bits a pixel, from numbers between 0 and 15.

    >>> png(np.zeros((2, 3), np.uint8))[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """
    height, width = grays.shape
    even = np.pad(grays, ((0, 0), (0, width % 2)))
    lines = even[:, ::2] << 4 | even[:, 1::2]
    raw = b"".join(b"\0" + line.tobytes() for line in lines)

    def chunk(kind, content):
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", width, height, 4, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(raw, 9))
        + chunk(b"IEND", b"")
    )
