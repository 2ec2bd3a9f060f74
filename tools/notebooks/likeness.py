"""Compare pictures as a person would: PNG by pixels, SVG by its numbers, both with a tolerance.

The last bits of floats differ between CPUs. A curve drawn from them moves by a thousandth of a pixel, and that is no
difference; a curve that moved so that it can be seen is one.
"""

import base64
import io
import re

# A pixel counts as changed when a channel moves by more than this (of 255), and a picture when more than this
# share of its pixels changed. A label of one character in a figure of 700 x 350 is about 0.0004 of it.
PIXEL_STEP = 16
PIXEL_SHARE = 0.0002

# SVG user units (points, at the size that the figures are drawn): a line is 1 to 2 wide.
SVG_STEP = 0.05

_SVG = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w#.-])-?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?![\w.])")


def is_picture(mime: str, data) -> bool:
    return mime in {"image/png", "image/jpeg", "image/svg+xml"} or (
        mime == "text/html" and "<svg" in str(data)
    )


def difference(mime: str, stored, fresh) -> str | None:
    """What differs between two outputs of the same kind, in words; None if they look the same."""
    if mime in {"image/png", "image/jpeg"}:
        return png_difference(stored, fresh)
    return svg_difference("".join(stored), "".join(fresh))


def png_difference(stored: str, fresh: str) -> str | None:
    if stored.strip() == fresh.strip():
        return None
    import numpy as np
    from PIL import Image

    def pixels(data):
        image = Image.open(io.BytesIO(base64.b64decode(data)))
        return np.asarray(image.convert("RGBA"), np.int16)

    a, b = pixels(stored), pixels(fresh)
    if a.shape != b.shape:
        return f"its size was {a.shape[1]} x {a.shape[0]} pixels and is {b.shape[1]} x {b.shape[0]}"
    share = (np.abs(a - b).max(axis=-1) > PIXEL_STEP).mean()
    if share > PIXEL_SHARE:
        return f"{100 * share:.3g} % of its pixels changed"
    return None


def svg_difference(stored: str, fresh: str) -> str | None:
    """Compare text with `<svg>` elements in it: exactly, but for numbers inside these elements."""
    if stored == fresh:
        return None
    drawings, new_drawings = _SVG.findall(stored), _SVG.findall(fresh)
    if _SVG.sub("<svg/>", stored) != _SVG.sub("<svg/>", fresh):
        return "the text around the drawing changed"
    for before, after in zip(drawings, new_drawings, strict=True):
        if _NUMBER.sub("0", before) != _NUMBER.sub("0", after):
            return "the drawing has other elements, colours or labels"
        for x, y in zip(_NUMBER.findall(before), _NUMBER.findall(after), strict=True):
            if abs(float(x) - float(y)) > SVG_STEP:
                return f"the drawing moved: {x} became {y}"
    return None
