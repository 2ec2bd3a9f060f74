"""``viz.show``: a Matplotlib figure on a page, in the page's own ink, with its text alternative."""

import hashlib
import html
import io
import re
import sys
from xml.etree import ElementTree

from mlax_tutorial.viz.style import COLOURS, SCALE

# A line or a cloud of more points than this is drawn as pixels: as SVG, 5,000 points weigh 528 KiB, as PNG 40.
MANY_POINTS = 2000
PIXELS_PER_INCH = 170  # 1.5 to a pixel of the page


class Figure:
    """A drawing and its words: a notebook shows the drawing, a terminal the words."""

    def __init__(self, markup: str, alt: str):
        self.markup = markup
        self.alt = alt

    def __repr__(self):
        return f"<figure: {self.alt}>"

    def _repr_html_(self):
        return self.markup


def show(fig, *, alt: str, raster: bool | None = None) -> Figure:
    """Shows a figure: write it as the last line of a cell.

    Lines and text become SVG inside the page. Black takes the colour of the text around the figure, and the
    ground is left out, so the same drawing serves a light and a dark page. The same figure gives the same text,
    on every machine and in every run.

    Args:
      fig: a Matplotlib figure, best from :func:`mlax_tutorial.viz.subplots`.
      alt: what the figure shows, in a sentence or two, for those who cannot see it. It is not optional.
      raster: True draws all marks and lines as pixels inside the SVG, False none; by default those of more than
        2,000 points.

    Raises:
      ValueError: if ``alt`` says nothing.

    Example:
      >>> from mlax_tutorial import viz
      >>> fig, ax = viz.subplots(figsize=(5, 3))
      >>> _ = ax.plot([1, 2, 3], [1, 4, 9])
      >>> viz.show(fig, alt="The squares of 1, 2 and 3: a curve that bends upwards.")
      <figure: The squares of 1, 2 and 3: a curve that bends upwards.>
    """
    alt = " ".join(alt.split())
    if not alt:
        raise ValueError("alt is empty: say in a sentence or two what the figure shows")
    for ax in fig.axes:
        _prepare(ax, raster)
    for legend in (*fig.legends, *(ax.get_legend() for ax in fig.axes)):
        if legend is not None:
            legend.get_frame().set(facecolor="none", edgecolor="none")
    drawing = _svg(fig)
    if "matplotlib.pyplot" in sys.modules:  # else a notebook shows a figure of pyplot's a second time
        sys.modules["matplotlib.pyplot"].close(fig)
    words = html.escape(alt, quote=True)
    return Figure(
        f'<figure class="viz" role="img" aria-label="{words}" style="margin:1em 0">\n'
        f"{_own_names(drawing, alt)}\n</figure>",
        alt,
    )


def _prepare(ax, raster):
    for artist in (*ax.lines, *ax.collections):
        if raster is None:
            points = artist.get_xdata() if hasattr(artist, "get_xdata") else artist.get_offsets()
            artist.set_rasterized(len(points) > MANY_POINTS)
        else:
            artist.set_rasterized(raster)


def _svg(fig) -> str:
    """The figure as an ``<svg>`` element that is at home in a page."""
    import matplotlib

    buffer = io.BytesIO()
    settings = {
        "svg.fonttype": "none",  # text stays text
        "svg.hashsalt": "mlax_tutorial",
        "path.simplify": False,  # what is left out would hang on the last bits
    }
    with matplotlib.rc_context(settings):
        fig.savefig(buffer, format="svg", dpi=PIXELS_PER_INCH, transparent=True, metadata={"Date": None})
    root = ElementTree.fromstring(buffer.getvalue())
    _compact(root)
    width, height = (round(96 * size / SCALE) for size in fig.get_size_inches())
    root.attrib = {
        "xmlns": "http://www.w3.org/2000/svg",
        "viewBox": root.get("viewBox"),
        "width": str(width),
        "height": str(height),
        "aria-hidden": "true",  # the words of the figure speak for it
        "fill": "currentColor",  # Matplotlib leaves out what is filled black
        "stroke-linejoin": "round",
        "style": "display:block;max-width:100%;height:auto;font-family:system-ui,sans-serif",
    }
    return ElementTree.tostring(root, encoding="unicode")


# A line may have a contrast of 3:1, letters need 4.5:1 (WCAG 2.2, 1.4.3): their colour is mixed with the page's ink.
INK_IN_LETTERS = 30  # per cent
MIXED = (
    *COLOURS,
    "#808080",
    "#0072b2",
)  # a grey, and Okabe and Ito's own blue, which is too dark for the dark
_COLOURED = re.compile(rf"fill:({'|'.join(MIXED)})")
_MIXED = rf"fill:color-mix(in srgb,\1 {100 - INK_IN_LETTERS}%,currentColor)"
_DECIMAL = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


def _compact(root) -> None:
    """Takes out what a page does not need, and the digits that nobody can see."""
    elements = list(root.iter())
    for element in elements:
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
        element.text, element.tail = (element.text or "").strip() or None, "\n"
    used = set()
    for element in elements:
        for value in (element.get("clip-path", ""), element.get("href", "")):
            used.update(re.findall(r"^(?:url\()?#([^)]*)", value))
        for name, value in element.attrib.items():
            if name == "style":
                value = _style(value)
                element.set(name, _COLOURED.sub(_MIXED, value) if element.tag == "text" else value)
            elif name != "href":
                places = 4 if name == "transform" else 2
                value = _DECIMAL.sub(lambda number, places=places: _rounded(number[0], places), value)
                element.set(name, " ".join(value.split()))
    styles = {element.get("id"): element.get("style") for element in elements}
    for element in elements:
        if element.get("id") not in used:
            element.attrib.pop("id", None)
        if element.tag == "use" and element.get("style") == styles.get(element.get("href", "")[1:]):
            element.attrib.pop("style", None)  # said where the mark is defined
    _unwrap(root)


def _unwrap(parent) -> None:
    """Replaces groups that say nothing of what they hold by what they hold."""
    children = []
    for child in parent:
        _unwrap(child)
        if child.tag == "g" and not child.attrib:
            children.extend(child)
        elif child.tag not in {"metadata", "style"} and not (child.tag == "defs" and not len(child)):
            children.append(child)
    parent[:] = children


def _style(text: str) -> str:
    text = re.sub(r"\s*([:;,])\s*", r"\1", text.strip())
    text = re.sub(r"#000000\b", "currentColor", text)
    text = re.sub(r"font:([^;]*?)([\d.]+px)[^;]*", _font, text)
    text = re.sub(r";?font-family:[^;]*", "", text)  # the page's own font is used
    return _DECIMAL.sub(lambda number: _rounded(number[0], 4), text)


def _font(match) -> str:
    """Size, slant and weight of a font without its name."""
    slant = "font-style:italic;" if "italic" in match[1] or "oblique" in match[1] else ""
    weight = "font-weight:bold;" if re.search(r"\b(?:bold|[6-9]00)\b", match[1]) else ""
    return f"{slant}{weight}font-size:{match[2]}"


def _rounded(number: str, places: int) -> str:
    text = f"{float(number):.{places}f}".rstrip("0").rstrip(".")
    return "0" if text in {"", "-0"} else text


def _own_names(svg: str, alt: str) -> str:
    """Gives ids that no other figure of the page has.

    They come from the words of the figure and from its structure, not from its numbers, whose last bits differ
    between machines, nor from its pixels, which every machine packs in its own way, and not from chance.
    """
    names = list(dict.fromkeys(re.findall(r'\bid="([^"]*)"', svg)))
    structure = re.sub(r"base64,[^\"]*", "", svg)
    for i, name in enumerate(names):
        structure = structure.replace(name, f"#{i}")
    structure = re.sub(r"-?\d+(?:\.\d+)?", "0", structure)
    prefix = "v" + hashlib.sha256(f"{alt}\n{structure}".encode()).hexdigest()[:8]
    for i, name in enumerate(names):
        svg = re.sub(rf'(\bid="|url\(#|href="#){re.escape(name)}(?=["\)])', rf"\g<1>{prefix}-{i}", svg)
    return svg
