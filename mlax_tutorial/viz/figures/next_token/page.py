"""The markup of ``viz.next_token``: a table of bars that needs no script, and what the script makes of it by three sliders."""

import html

import numpy as np

from mlax_tutorial.viz.figures import markup
from mlax_tutorial.viz.figures.markup import counted

ROWS, BAR, SCALE = (
    10,
    100,
    10_000,
)  # tokens that are shown; the longest bar; probabilities are kept in units of 1 / SCALE
TEMPERATURES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 2.0]
KEPT = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0]
SIZES = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500]


def listing(found) -> str:
    """The two most probable tokens after each beginning."""
    lines = []
    for t, text in enumerate(_texts(found)):
        each = []
        for name, rows in found.probabilities.items():
            best = np.argsort(-rows[t], kind="stable")[:2]
            each.append(f"{name} " + ", ".join(f"{found.tokens[i]!r} {rows[t, i]:.2f}" for i in best))
        lines.append(f"after {text!r}: " + "; ".join(each))
    return "\n".join(lines)


def write(found) -> str:
    """The figure as HTML."""
    texts, last = _texts(found), len(found.pieces) - 1
    names = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in found.probabilities)
    final = [rows[last] for rows in found.probabilities.values()]
    order = np.argsort(-sum(final), kind="stable")[:ROWS]
    rows = "".join(
        f'<tr><th scope="row">{html.escape(_seen(found.tokens[i]))}</th>'
        + "".join(_cell(each[i]) for each in final)
        + "</tr>"
        for i in order
    )
    rest = "".join(_cell(max(0.0, 1 - float(each[order].sum()))) for each in final)
    rows += f'<tr><th scope="row">others</th>{rest}</tr>'
    sizes = [size for size in SIZES if size < len(found.tokens)] + [len(found.tokens)]
    sliders = "".join(
        _slider(kind, label, values, at, shown)
        for kind, label, values, at, shown in (
            ("temperature", "temperature", TEMPERATURES, TEMPERATURES.index(1.0), "1"),
            ("k", "top-k", sizes, len(sizes) - 1, "all"),
            ("p", "top-p", KEPT, len(KEPT) - 1, "1"),
        )
    )
    body = f"""{markup.bar(last, "token", "Tokens", at=last)}
<div class="viz-next-token-sliders" hidden>{sliders}</div>
<div class="viz-scroll"><table><thead><tr><th scope="col">next</th>{names}</tr></thead><tbody>{rows}</tbody></table></div>"""
    data = {
        "texts": [_seen(text) for text in texts],
        "tokens": [_seen(token) for token in found.tokens],
        "names": list(found.probabilities),
        "tables": [np.rint(SCALE * each).astype(int).tolist() for each in found.probabilities.values()],
        "temperatures": TEMPERATURES,
        "sizes": sizes,
        "kept": KEPT,
    }
    caption = (
        f"What comes after {markup.code(_seen(texts[-1]))} and after each of its beginnings: the {ROWS} most probable tokens, and all "
        "others together. The sliders change what would be drawn from: they lower the temperature, keep the k most probable tokens, or "
        "the fewest that have the probability p."
    )
    ends = "; ".join(
        f"{name}: {_seen(found.tokens[int(each.argmax())])} {each.max():.2f}"
        for name, each in zip(found.probabilities, final)
    )
    label = f"Probabilities of the next of {counted(len(found.tokens), 'token')} after {_seen(texts[-1])}. {ends}."
    return markup.frame("next_token", body, label, caption=caption, styles=["table"], script=True, data=data)


def _slider(kind, label, values, at, shown):
    return (
        f'<label>{label} <output>{shown}</output><input type="range" class="viz-next-token-{kind}" min="0" max="{len(values) - 1}" value="{at}" '
        f'aria-label="{label}" aria-valuetext="{shown}"></label>'
    )


def _texts(found):
    """The text up to each piece: characters side by side, as are tokens, which bring their own blanks."""
    return ["".join(found.pieces[: end + 1]) for end in range(len(found.pieces))]


def _cell(value):
    width = round(BAR * min(max(float(value), 0.0), 1.0))
    return (
        f'<td><svg viewBox="0 0 {BAR} 10" preserveAspectRatio="none" aria-hidden="true"><rect width="{width}" height="10"/></svg>'
        f"<span>{100 * float(value):.0f} %</span></td>"
    )


def _seen(text):
    """Blanks as signs that can be seen.

    >>> _seen("a b"), _seen(chr(10))
    ('a␣b', '↵')
    """
    return text.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥")
