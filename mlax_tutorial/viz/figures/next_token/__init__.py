"""``viz.next_token``: which token language models expect next, and which of them would be drawn.

`next_token` asks each model about every beginning of a text; `NextToken` shows the answers: in a notebook as bars, to step through and
to draw from by temperature, top-k and top-p; in a terminal as a listing. The markup is made in `page`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mlax_tutorial.viz.figures.next_token import page

LONGEST, MOST = 48, 512  # pieces of a text, tokens


class NextToken:
    """What `next_token` found; a notebook shows a figure, a terminal a listing.

    Attributes:
      pieces: of the text, as strings: characters, or what was given.
      tokens: the vocabulary, as strings.
      probabilities: by the model's name, each ``(pieces, tokens)``: in row ``t`` what comes after the first ``t + 1`` pieces.
    """

    def __init__(self, pieces: list[str], tokens: list[str], probabilities: dict[str, np.ndarray]):
        self.pieces, self.tokens, self.probabilities = pieces, tokens, probabilities

    def _repr_html_(self):
        return page.write(self)

    def __repr__(self):
        return page.listing(self)


def next_token(models: Any, text: str | Sequence[str], *, tokens: Sequence[str]) -> NextToken:
    """Show the probabilities of the next token after each beginning of a text, and what sampling would leave of them.

    Each model is asked about every beginning, so that counts can be set beside a network. It is called once for each: for a jitted
    one, pad to one length.

    Args:
      models: a function from a text to the probabilities of the next token, one array ``(tokens,)``; or a dict of them, by name.
      text: a string, which is read character by character; or a sequence of strings, whose beginnings are given as tuples.
      tokens: the vocabulary, in the order of the probabilities.

    Returns:
      A `NextToken`: as the last expression of a cell it is a figure with a button for each piece, and sliders for temperature, top-k
      and top-p. It has ``probabilities``, too.

    Raises:
      TypeError: if a model is no function.
      ValueError: if there is no text or no model, or if what one returns is no probabilities, or not one for each token.

    Example:
      >>> from mlax_tutorial import viz
      >>> def alternate(text):
      ...     return [0.9, 0.1] if text[-1] == "b" else [0.2, 0.8]
      >>> viz.next_token(alternate, "ab", tokens="ab")
      after 'a': alternate 'b' 0.80, 'a' 0.20
      after 'ab': alternate 'a' 0.90, 'b' 0.10
    """
    named = _named(models)
    vocabulary = [str(token) for token in tokens]
    if not 1 <= len(vocabulary) <= MOST:
        raise ValueError(f"viz.next_token: tokens must be 1 to {MOST}, got {len(vocabulary)}")
    pieces = [str(piece) for piece in text]
    if not 1 <= len(pieces) <= LONGEST:
        raise ValueError(
            f"viz.next_token: text must have 1 to {LONGEST} pieces, got {len(pieces)}: show a part of it"
        )
    whole = text if isinstance(text, str) else tuple(pieces)
    beginnings = [whole[: end + 1] for end in range(len(pieces))]
    found = {
        name: np.stack([_asked(name, model, beginning, len(vocabulary)) for beginning in beginnings])
        for name, model in named.items()
    }
    return NextToken(pieces, vocabulary, found)


def _named(models) -> dict[str, Callable]:
    if not isinstance(models, Mapping):
        name = getattr(models, "__name__", type(models).__name__)
        models = {"model" if name == "<lambda>" else name: models}
    if not models:
        raise ValueError("viz.next_token: there is no model to ask")
    for name, model in models.items():
        if not callable(model):
            wanted = "must be a function from a text to probabilities"
            raise TypeError(f"viz.next_token: {name} {wanted}, got {type(model).__name__}")
    return {str(name): model for name, model in models.items()}


def _asked(name, model, beginning, size) -> np.ndarray:
    answer = np.asarray(model(beginning), float)
    if answer.shape != (size,):
        wanted = f"one number for each of {size} tokens"
        raise ValueError(
            f"viz.next_token: {name} must return {wanted}, got shape {answer.shape} for {beginning!r}"
        )
    if not (np.isfinite(answer).all() and (answer > -1e-3).all() and abs(answer.sum() - 1) < 1e-2):
        raise ValueError(
            f"viz.next_token: {name} must return probabilities, got numbers from {answer.min():.3g} to {answer.max():.3g} with the sum "
            f"{answer.sum():.3g} for {beginning!r}: are they logits? Then apply jax.nn.softmax"
        )
    return answer
