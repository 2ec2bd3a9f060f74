"""Compare pictures as a person would: PNG by pixels, SVG by its numbers, both with a tolerance.

The last bits of floats differ between CPUs. A curve drawn from them moves by a thousandth of a pixel, and that is no
difference; a curve that moved so that it can be seen is one.
"""

import base64
import io
import re

# A pixel counts as changed when a channel moves by more than PIXEL_STEP (of 255), and a picture when more than
# PIXEL_SHARE of its pixels changed: of a figure of 700 x 350 that is 4, fewer than one digit of a label has.
PIXEL_STEP = 16
PIXEL_SHARE = 0.00002

# SVG user units are about pixels. A transform holds scales, too: there the step is a share of the number.
SVG_STEP = 0.05
SVG_SHARE = 0.001

_SVG = re.compile(r"<svg\b.*?</svg>", re.DOTALL)
_EMBEDDED = re.compile(r"data:image/(?:png|jpeg);base64,([A-Za-z0-9+/=\s]+)")
_GEOMETRY = re.compile(
    r'(?<=\s)(d|x|y|x1|x2|y1|y2|cx|cy|r|rx|ry|points|transform|width|height|viewBox)="([^"]*)"'
)
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
# What `viz.show` puts before the ids of a figure, so that no two figures of a page share one; nobody sees it.
_PREFIX = re.compile(r'(?<=[#"])v[0-9a-f]{8}(?=-\d)')


def is_picture(mime: str, data) -> bool:
    """Whether an output of this kind is compared here."""
    if mime == "text/html":
        return bool(re.search(r"<svg\b|data:image/", "".join(data)))
    return mime in {"image/png", "image/jpeg", "image/svg+xml"}


def difference(mime: str, stored, fresh) -> str | None:
    """What differs between two pictures of the same kind, in words; None if they look the same."""
    stored, fresh = "".join(stored), "".join(fresh)
    if stored == fresh:
        return None
    if mime in {"image/png", "image/jpeg"}:
        return _pixel_difference(stored, fresh)
    return _markup_difference(stored, fresh)


def _pixel_difference(stored: str, fresh: str) -> str | None:
    import numpy as np
    from PIL import Image

    def pixels(data):
        image = Image.open(io.BytesIO(base64.b64decode(data)))
        return np.asarray(image.convert("RGBA"), np.int16)

    a, b = pixels(stored), pixels(fresh)
    if a.shape != b.shape:
        return f"the picture was {a.shape[1]} x {a.shape[0]} pixels and is {b.shape[1]} x {b.shape[0]}"
    share = (abs(a - b).max(axis=-1) > PIXEL_STEP).mean()
    return f"{100 * share:.2g} % of the picture's pixels changed" if share > PIXEL_SHARE else None


def _markup_difference(stored: str, fresh: str) -> str | None:
    """Compare markup exactly, but for embedded pictures, the prefix of ids and the geometry inside `<svg>` elements."""
    if _skeleton(stored) != _skeleton(fresh):
        return "the markup changed (elements, colours, labels or the text around the drawing)"
    for before, after in zip(_EMBEDDED.findall(stored), _EMBEDDED.findall(fresh), strict=True):
        if before != after and (what := _pixel_difference(before, after)):
            return what
    for before, after in zip(_SVG.findall(stored), _SVG.findall(fresh), strict=True):
        for (attribute, old), (_, new) in zip(
            _GEOMETRY.findall(before), _GEOMETRY.findall(after), strict=True
        ):
            for x, y in zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True):
                step = SVG_SHARE * (1 + abs(float(x))) if attribute == "transform" else SVG_STEP
                if abs(float(x) - float(y)) > step:
                    return f"the drawing moved: {x} became {y}"
    return None


def _skeleton(markup: str) -> str:
    """The markup without what is compared with a tolerance."""

    def without_numbers(drawing):
        return _GEOMETRY.sub(lambda attribute: _NUMBER.sub("0", attribute[0]), drawing[0])

    return _SVG.sub(without_numbers, _PREFIX.sub("v", _EMBEDDED.sub("data:", markup)))
