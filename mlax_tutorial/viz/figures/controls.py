"""What the reader sets on the page: sliders and choices above a figure, hidden until the script runs.

Their style is `controls.css`, and `controls.js` tells the figure's script what is set: it calls ``tuned`` with a function for each control that
says its value in words, and one that gets all values.
"""

import html
from collections.abc import Iterable

from mlax_tutorial.viz.figures import markup


def row(*made: str) -> str:
    """Sliders and choices in a row."""
    return f'<div class="viz-tune" hidden>{"".join(made)}</div>\n'


def slider(label: str, least: int, most: int, at: int, shown: str) -> str:
    """A slider from ``least`` to ``most`` that stands at ``at``, which is ``shown`` in words."""
    return (
        f'<label><span>{html.escape(label)}</span><input type="range" min="{least}" max="{most}" value="{at}" '
        f'aria-valuetext="{markup.attribute(shown)}"><output>{html.escape(shown)}</output></label>'
    )


def choice(label: str, options: Iterable[str], at: str | None = None) -> str:
    """A choice among ``options``; ``at`` is chosen, by default the first."""
    listed = "".join(
        f"<option{' selected' * (option == at)}>{html.escape(option)}</option>" for option in options
    )
    return f"<label><span>{html.escape(label)}</span><select>{listed}</select></label>"
