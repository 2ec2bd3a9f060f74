"""What the interactive figures share: the frame, the bar of buttons that steps through one, styles and scripts.

A figure is HTML that can be read without scripts. Its style is `figure.css` and the `style.css` in its folder; `table.css` and
`folding.css` are for those that hold tables or lists to unfold, `controls` for those in which the reader sets something. On a page with
several figures these come again with each one, so a rule of a figure's own that changes a common one must be the more specific: ``.viz-figure.viz-tree``. A figure with
steps has a bar, hidden until the script runs. Its own `script.js` defines ``begin(root, data)``, which calls ``steps`` of `figure.js`.
"""

import hashlib
import html
import json
from collections.abc import Sequence
from importlib import resources


def frame(
    name: str,
    body: str,
    label: str,
    *,
    caption: str,
    styles=(),
    script: bool = False,
    data=None,
    tuned: bool = False,
) -> str:
    """A whole figure.

    Args:
      name: that of its function and of its folder; in classes with hyphens, ``viz-jit-cache``.
      body: the markup.
      label: what the figure is, for those who cannot see it.
      caption: markup that stands above it, where a tall figure shows it, too: what the rows, lines and marks are, so that the figure can be read without the text around it.
      styles: further style sheets, by name.
      script: whether there is one.
      data: what the script gets, as JSON.
      tuned: whether the reader sets something, with `controls`.
    """
    given = "" if data is None else f' data-figure="{attribute(json.dumps(data, ensure_ascii=False))}"'
    tune = ["controls"] if tuned else []
    style = "\n".join(
        [*(_file(f"{sheet}.css") for sheet in ("figure", *styles, *tune)), _file(name, "style.css")]
    )
    kind = f"viz-{name.replace('_', '-')}"
    one = f"{kind}-" + hashlib.sha256(f"{body}{given}".encode()).hexdigest()[:10]
    figure = (
        f'<div class="viz-figure {kind} {one}" role="group" aria-label="{attribute(label)}"{given}>\n'
        f'<style>{style}</style>\n<p class="viz-caption">{caption}</p>\n{body}\n</div>'
    )
    if not script:
        return figure
    begin = "\n".join([*(_file(f"{each}.js") for each in tune), _file(name, "script.js")])
    code = _file("figure.js").replace("BEGIN", begin).replace("NAME", one)
    return f"{figure}\n<script>{code}</script>"


def bar(count: int, step: str, steps: str, *, at: int = 0, more: str = "") -> str:
    """Buttons and a slider for ``count`` steps.

    Args:
      step, steps: what one is, and what they are, in words for the buttons and the slider.
      at: the step that is shown first.
      more: further buttons.
    """
    return f"""<div class="viz-bar" hidden>
<button type="button" class="viz-previous" aria-label="Previous {step}">◀</button>
<button type="button" class="viz-next" aria-label="Next {step}">▶</button>
<input type="range" class="viz-range" min="0" max="{count}" value="{at}" aria-label="{steps}">
{more}<span class="viz-status" aria-live="polite"></span>
</div>"""


def attribute(text: str) -> str:
    """Text between double quotes in a tag."""
    return html.escape(text, quote=True)


def code(text: str) -> str:
    """Text as code."""
    return f"<code>{html.escape(text)}</code>"


def unseen(text: str) -> str:
    """Words for those who cannot see the figure."""
    return f'<span class="viz-unseen">{html.escape(text)}</span>'


def counted(number: int, one: str, many: str = "") -> str:
    """A number and what it counts.

    >>> counted(1, "leaf", "leaves"), counted(2000, "call")
    ('1 leaf', '2,000 calls')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def listed(words: Sequence[str]) -> str:
    """Words in a row.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def in_bytes(count: int) -> str:
    """Bytes in three digits.

    >>> in_bytes(12), in_bytes(4096), in_bytes(2_500_000)
    ('12 B', '4.1 kB', '2.5 MB')
    """
    if count < 1000:
        return f"{count} B"
    for unit in ("kB", "MB", "GB", "TB", "PB"):
        count /= 1000
        if count < 999.5 or unit == "PB":
            return f"{count:.3g} {unit}"


def in_flops(count: int) -> str:
    """Floating-point operations in three digits.

    >>> in_flops(12), in_flops(4096), in_flops(2_500_000)
    ('12 FLOPs', '4.1 kFLOPs', '2.5 MFLOPs')
    """
    for unit in ("", "k", "M", "G", "T", "P"):
        if count < 999.5 or unit == "P":
            return f"{count:.3g} {unit}FLOPs" if unit else f"{count} FLOPs"
        count /= 1000


def _file(*path: str) -> str:
    return resources.files(__package__).joinpath(*path).read_text("utf-8").strip()
