"""Rows of a table, and NaN for ids that it does not have."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, checks
from mlax_tutorial.exercises.layers._layers import compare, drawn, variables


class Embed(nn.Layer):
    vocab_size: int
    embed_dim: int
    param_dtype: object = jnp.float32

    def init(self, key, x):
        shape = self.vocab_size, self.embed_dim
        table = jax.random.normal(key, shape) * self.embed_dim**-0.5
        return {"embed": table.astype(self.param_dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        rows = trainables["embed"].at[x]
        return rows.get(mode="fill", fill_value=jnp.nan, wrap_negative_indices=False), non_trainables


IDS = np.array([[2, 0, 2], [4, 1, 3]])


def check(Embed):
    wide = checks.make(Embed, 400, 16)
    trainables, _ = variables(wide, IDS, {"embed": (400, 16)})
    drawn(
        trainables["embed"],
        'trainables["embed"]',
        0.25,
        "draw by `jax.random.normal`, and divide by the square root of embed_dim",
    )
    layer, table = checks.make(Embed, 5, 3), np.arange(15.0).reshape(5, 3) - 4
    compare(layer, IDS, {"embed": table}, (), table[IDS])
    odd = np.array([4, 5, -1, -6, 1000])
    expected = np.where(((odd >= 0) & (odd < 5))[:, None], table[np.clip(odd, 0, 4)], np.nan)
    from_the_end = np.where(odd < 0, odd + 5, odd)
    clipped = table[np.clip(from_the_end, 0, 4)]
    taken = np.where(((odd >= -5) & (odd < 5))[:, None], clipped, np.nan)
    last = np.where((odd <= 5)[:, None], clipped, np.nan)
    up_to_five = np.where((odd >= 0)[:, None], last, np.nan)
    negative = (
        "Negative ids count from the end, as in NumPy: here they are mistakes, too, and should give NaN."
    )
    off_by_one = "The id 5 gives a row, although the table has 5 rows: valid ids go from 0 to vocab_size - 1."
    recognise = [
        (clipped, "Ids that are too large read the last row, as `table[ids]` does: a vocabulary that is too small goes unseen."),
        (taken, negative),
        (np.where((odd < 5)[:, None], clipped, np.nan), negative),
        (last, f"{off_by_one} And negative ids should give NaN, too."),
        (up_to_five, off_by_one),
        (table[np.clip(odd, 0, 4)], "Ids outside of the table are moved to its ends: they should give rows of NaN."),
    ]  # fmt: skip
    compare(layer, odd, {"embed": table}, (), expected, recognise)
    checks.obeys_laws(wide, IDS, ids=400)  # which has been drawn already


exercise = Exercise(
    title="Rows of a table",
    stars=2,
    minutes=12,
    why="An index out of range cannot raise in a compiled program; NaN says at once that there was one, a clipped index never.",
    hints=(
        '`table.at[ids].get(…)` reads like `table[ids]`, but says what to do outside: mode="fill" gives fill_value there.',
        'Negative ids still count from the end, unless you say `wrap_negative_indices=False`: `table.at[x].get(mode="fill", '
        "fill_value=jnp.nan, wrap_negative_indices=False)`.",
    ),
    solution=Embed,
    check=check,
)
