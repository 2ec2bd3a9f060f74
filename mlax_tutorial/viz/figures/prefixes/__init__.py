"""``viz.prefixes``: what classifiers make of a text, letter by letter.

`prefixes` asks each classifier about every beginning of a text; `Prefixes` shows the answers: in a notebook as maps to step through,
in a terminal as a listing. The markup is made in `page`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mlax_tutorial.viz.figures.prefixes import page

LONGEST, MOST = 48, 40  # pieces of a text, classes


class Prefixes:
    """What `prefixes` found; a notebook shows a figure, a terminal a listing.

    Attributes:
      pieces: of the text, as strings: letters, or what was given.
      classes: their names.
      probabilities: by the classifier's name, each ``(pieces, classes)``: in row ``t`` its answer to the first ``t + 1`` pieces.
    """

    def __init__(self, pieces: list[str], classes: list[str], probabilities: dict[str, np.ndarray]):
        self.pieces, self.classes, self.probabilities = pieces, classes, probabilities

    def _repr_html_(self):
        return page.write(self)

    def __repr__(self):
        return page.listing(self)


def prefixes(
    classifiers: Any, text: str | Sequence[str], *, classes: Sequence[str] | None = None
) -> Prefixes:
    """Show how the probabilities of classes move while a text is read, piece by piece.

    Each classifier is asked about every beginning of the text, as if the text ended there. So it needs no state, and counts can be
    set beside a network. It is called once for each beginning: for a jitted one, pad to one length.

    Args:
      classifiers: a function from a text to the probabilities of the classes, one array ``(classes,)``; or a dict of them, by name.
      text: a string, which is read letter by letter; or a sequence of strings, such as words, whose beginnings are given to the
        classifiers as tuples.
      classes: their names; by default they are numbered.

    Returns:
      A `Prefixes`: as the last expression of a cell it is a figure with a button for each piece. It has ``probabilities``, too.

    Raises:
      TypeError: if a classifier is no function.
      ValueError: if there is no text or no classifier, if what one returns is no probabilities, or not one for each class.

    Example:
      >>> from mlax_tutorial import viz
      >>> def vowels(text):
      ...     share = sum(letter in "aeiou" for letter in text) / len(text)
      ...     return [share, 1 - share]
      >>> viz.prefixes(vowels, "idea", classes=["vowel", "consonant"])
      idea, 4 steps
        vowels  vowel 1.00 at "i", 0.50 at "id", 0.67 at "ide", 0.75 at "idea"
    """
    named = _named(classifiers)
    letters = isinstance(text, str)
    pieces = [str(piece) for piece in text]
    if not 1 <= len(pieces) <= LONGEST:
        raise ValueError(
            f"viz.prefixes: text must have 1 to {LONGEST} pieces, got {len(pieces)}: show a part of it"
        )
    beginnings = [text[: end + 1] if letters else tuple(pieces[: end + 1]) for end in range(len(pieces))]
    names = None if classes is None else [str(name) for name in classes]
    found = {}
    for name, classifier in named.items():
        found[name] = np.stack([_asked(name, classifier, beginning, names) for beginning in beginnings])
        names = names or [str(number) for number in range(found[name].shape[1])]
    return Prefixes(pieces, names, found)


def _named(classifiers) -> dict[str, Callable]:
    if not isinstance(classifiers, Mapping):
        name = getattr(classifiers, "__name__", type(classifiers).__name__)
        classifiers = {"classifier" if name == "<lambda>" else name: classifiers}
    if not classifiers:
        raise ValueError("viz.prefixes: there is no classifier to ask")
    for name, classifier in classifiers.items():
        if not callable(classifier):
            wanted = "must be a function from a text to probabilities"
            raise TypeError(f"viz.prefixes: {name} {wanted}, got {type(classifier).__name__}")
    return {str(name): classifier for name, classifier in classifiers.items()}


def _asked(name, classifier, beginning, names) -> np.ndarray:
    answer = np.asarray(classifier(beginning), float)
    if answer.ndim != 1 or not 1 <= answer.size <= MOST or (names and answer.size != len(names)):
        wanted = (
            f"one number for each of {len(names)} classes" if names else f"an array of 1 to {MOST} numbers"
        )
        raise ValueError(
            f"viz.prefixes: {name} must return {wanted}, got shape {answer.shape} for {beginning!r}"
        )
    if not (np.isfinite(answer).all() and (answer > -1e-3).all() and abs(answer.sum() - 1) < 1e-2):
        raise ValueError(
            f"viz.prefixes: {name} must return probabilities, got numbers from {answer.min():.3g} to {answer.max():.3g} with the sum "
            f"{answer.sum():.3g} for {beginning!r}: are they logits? Then apply jax.nn.softmax"
        )
    return answer
