"""``Weights``: a layer that is one array."""

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.arrays import canonical, is_floating
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.rules import Dtype, Initializer, Sizes


class Weights(Layer):
    """An array that is learned, of a shape that no input decides: a class token, latents, a table of positions.

    In the ``forward`` of a :class:`Composite`, ``call.token()`` is the array, and ``call.token(x)`` the array in the dtype
    of ``x``, whose numbers and shape do not count.

    Args:
      shape: of the array.
      initializer: ``(key, shape, dtype) -> array``; normal with a standard deviation of 0.02 by default.
      param_dtype: of the array; by default that of ``x`` if it is floating, else float32.

    Example: a token in front of every sequence.
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> class ClassToken(nn.Composite):
      ...     token: nn.Layer
      ...     def forward(self, call, x):
      ...         token = call.token(x)
      ...         return jnp.concatenate([jnp.broadcast_to(token, (*x.shape[:-2], *token.shape)), x], axis=-2)
      >>> model, x = ClassToken(nn.Weights((1, 8))), jnp.ones((2, 5, 8))
      >>> trainables, _ = model.init(jax.random.key(0), x)
      >>> jax.tree.map(jnp.shape, trainables), model.fwd(x, trainables, ())[0].shape
      ({'token': {'weights': (1, 8)}}, (2, 6, 8))
    """

    shape: Sizes
    initializer: Initializer = jax.nn.initializers.normal(0.02)
    param_dtype: Dtype | None = None
    decodes = True

    def init(self, key, x=None):
        self.check_init_key(key)
        dtype = self.param_dtype or (x.dtype if is_floating(x) else jnp.float32)
        return {"weights": self.initialize("initializer", key, self.shape, dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        self.check_variables(trainables, {"weights": self.shape})
        x, weights = canonical(x), jnp.asarray(trainables["weights"])
        return weights.astype(x.dtype) if is_floating(x) else weights, non_trainables
