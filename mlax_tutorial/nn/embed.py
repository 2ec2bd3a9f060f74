"""``Embed``: a learned vector for each id, and the read-out that compares with them."""

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.arrays import accumulator
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.linear import multiply
from mlax_tutorial.nn.rules import Dtype, Initializer, Size


def unit_rows(key, shape, dtype):
    """Draw from a normal distribution with variance ``1 / embed_dim``, so that each row has a length of about 1."""
    return jax.random.normal(key, shape, dtype) * jnp.asarray(shape[-1] ** -0.5, dtype)


class Embed(Layer):
    r"""Look up a row for each id: ``(...) -> (..., embed_dim)``, integers in, floating-point numbers out.

    The table has shape ``(vocab_size, embed_dim)``. The default initializer draws with variance ``1 / embed_dim``:
    then the logits of :meth:`attend` start with the variance of what it is given. A model that wants the embeddings
    themselves to start with variance 1 passes ``jax.nn.initializers.normal(1.0)``.

    An id outside ``0, …, vocab_size - 1``, negative ones included, gives a row of NaN and no gradient. Such an id is a
    mistake, which a clipped or wrapped index would hide. It is no error, with or without ``jit``: looking at the values
    would have the program wait for the device.

    The output has the dtype of the table, not of the input. So in mixed precision, where the trainables are cast,
    everything that follows has the lower precision.

    Args:
      vocab_size: number of rows.
      embed_dim: size of a row.
      embed_initializer: ``(key, shape, dtype) -> array``, as in ``jax.nn.initializers``.
      accum_dtype: in which the gradients of a row are summed over its uses; ``None`` is float32 for half precision,
        otherwise that of the table. (In bfloat16 a sum of ones stops growing at 256.)
      param_dtype: of the table.

    Raises:
      LayerError: if ``x`` holds no integers, if what :meth:`attend` gets is not floating or its last axis is not
        ``embed_dim``, or if the table has another shape.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> layer, ids = nn.Embed(vocab_size=100, embed_dim=8), jnp.array([[2, 0, 2]])
      >>> trainables, non_trainables = layer.init(jax.random.key(0), ids)
      >>> y, _ = layer.fwd(ids, trainables, non_trainables)
      >>> y.shape
      (1, 3, 8)
      >>> logits, _ = layer.attend(y, trainables, non_trainables)
      >>> logits.shape, logits.argmax(-1)
      ((1, 3, 100), Array([[2, 0, 2]], dtype=int32))

    Reference: Press and Wolf, *Using the Output Embedding to Improve Language Models* (2017).
    """

    vocab_size: Size
    embed_dim: Size
    embed_initializer: Initializer = unit_rows
    accum_dtype: Dtype | None = None
    param_dtype: Dtype = jnp.dtype("float32")
    decodes = True

    def init(self, key, x):
        self.check_init_key(key)
        self._check_ids(x)
        return {"embed": self.initialize("embed_initializer", key, self._shape, self.param_dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        self._check_ids(x)
        self.check_variables(trainables, {"embed": self._shape})
        table = jnp.asarray(trainables["embed"])
        # Look up in accum_dtype: the transpose of looking up is the sum that makes a row's gradient. (Compiled, the
        # conversion happens to the rows that are looked up, not to the whole table.)
        wide = table.astype(self.accum_dtype or accumulator(table.dtype))
        rows = wide.at[x].get(mode="fill", fill_value=jnp.nan, wrap_negative_indices=False)
        return rows.astype(table.dtype), non_trainables

    def attend(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        """Compare with every row: ``(..., embed_dim) -> (..., vocab_size)``, products of ``x`` and the rows.

        A model that reads its words with the table may so write them with it, too: in a :class:`Composite`,
        ``call.embed.attend(x)`` gives the logits, after ``call.embed(ids)`` was called.

        Args:
          x: floating.
          trainables, non_trainables: those of the layer.
          key, inference_mode: without effect.

        Returns:
          ``(logits, non_trainables)``, the logits in the dtype of ``x``.
        """
        x = self.check_floating(x, minimum_ndim=1)
        self.check_variables(trainables, {"embed": self._shape})
        if x.shape[-1] != self.embed_dim:
            self.expects("attend", f"x of shape (..., {self.embed_dim})", x, "project it to embed_dim first")
        return multiply(x, trainables["embed"], (1,)), non_trainables

    _shape = property(lambda self: (self.vocab_size, self.embed_dim))

    def _check_ids(self, x):
        self.check_array(x)
        if not jnp.issubdtype(x.dtype, jnp.integer):
            mend = "pass ids, not one-hot vectors or features, for instance x.astype(jnp.int32)"
            self.expects("x", "integers", x, mend)
