"""One table that reads words and writes them."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.layers._layers import compare, drawn, subject, variables


class Tied(nn.Layer):
    vocab_size: int
    embed_dim: int
    param_dtype: object = jnp.float32

    def init(self, key, x):
        shape = self.vocab_size, self.embed_dim
        return {"embed": jax.random.normal(key, shape).astype(self.param_dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        table = trainables["embed"]
        return jnp.tanh(table[x]) @ table.T, non_trainables


IDS = np.array([[2, 0, 2], [4, 1, 3]])


def check(Tied):
    layer, wide = checks.make(Tied, 5, 3), checks.make(Tied, 400, 16)
    trainables, _ = variables(wide, IDS, {"embed": (400, 16)})
    drawn(trainables["embed"], 'trainables["embed"]', 1, "draw by `jax.random.normal`")
    table = np.sin(np.arange(15.0).reshape(5, 3))
    rows = table[IDS]
    recognise = [
        (rows @ table.T, "The tanh between reading and writing is missing."),
        (np.tanh(rows @ table.T), "The tanh stands behind the second product: it belongs between reading and writing."),
    ]  # fmt: skip
    compare(layer, IDS, {"embed": table}, (), np.tanh(rows) @ table.T, recognise)
    given = subject(layer)

    def total(table):
        return jnp.sum(jnp.sin(given.fwd(jnp.asarray(IDS), {"embed": table}, ())[0]))

    def parts(reading, writing):
        return jnp.sum(jnp.sin(jnp.tanh(reading[IDS]) @ writing.T))

    got, read, written = jax.jit(lambda t: (jax.grad(total)(t), *jax.grad(parts, (0, 1))(t, t)))(table)
    got, read, written = (np.asarray(gradient) for gradient in (got, read, written))
    for wrong, text in [
        (written, "The gradient of the reading does not arrive at the table: only that of the writing does."),
        (read, "The gradient of the writing does not arrive at the table: only that of the reading does."),
    ]:
        if np.allclose(got, wrong, atol=1e-4):
            raise Failed(text, expected=read + written, got=got)
    if not np.allclose(got, read + written, atol=1e-4):
        raise Failed(
            "The gradient should be the sum of two: of reading, and of writing.",
            expected=read + written,
            got=got,
        )
    checks.obeys_laws(wide, IDS, ids=400)  # which has been drawn already


exercise = Exercise(
    title="One table for reading and writing",
    stars=2,
    minutes=12,
    why="To share weights is to use one leaf twice: autodiff adds the gradients of both uses, and nothing has to be kept equal.",
    hints=(
        "There is one leaf, and fwd uses it twice: to look rows up, and, transposed, to compare with all rows.",
        '`table = trainables["embed"]`, then `jnp.tanh(table[x]) @ table.T`. A copy in a second leaf would be equal only until '
        "the first step.",
    ),
    solution=Tied,
    check=check,
)
