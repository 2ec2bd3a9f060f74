"""``Dropout``: the first layer that draws random numbers."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.nn.arrays import accumulator
from mlax_tutorial.nn.hyperparameters import hyperparameter
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.rules import Probability, axes_from_the_end


class Dropout(Layer):
    """In training, set elements to zero with probability ``rate`` and scale up the rest.

    Shape ``(...) -> (...)``. What is kept is divided by ``1 - rate`` (half precision in float32, and rounded once), so the
    expected output is the input, and inference leaves ``x`` alone. Each element has a draw of its own, or one draw decides for all elements along
    ``shared_axes``: neighboring pixels of a channel, or steps of a feature, tell nearly the same, so that losing one
    of them alone loses nothing. Under ``vmap`` each example needs a key of its own: with one key for all,
    every example would lose the same elements.

    Random bits are what dropout costs. Two elements share a word of 32 bits, unless 16 would miss the rarer outcome by more than
    one part in a thousand.

    Args:
      rate: probability of losing an element, in [0, 1].
      shared_axes: along which axes elements are lost together: one number or a tuple, counted from the end, so that
        batch axes may stand in front. ``(-3, -2)`` loses whole channels of images ``(..., height, width, channels)``,
        ``-2`` whole features of sequences ``(..., length, features)``.

    Raises:
      LayerError: if it trains without one typed key, on a traced ``inference_mode``, on integers, or on too few axes.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> y, _ = nn.Dropout(0.5).fwd(jnp.ones(6), (), (), key=jax.random.key(0))
      >>> sorted(set(y.tolist()))
      [0.0, 2.0]
      >>> nn.Dropout(0.5).fwd(jnp.ones(2), (), (), inference_mode=True)
      (Array([1., 1.], dtype=float32), ())
      >>> nn.Dropout(0.5, shared_axes=-2).fwd(jnp.ones((2, 4)), (), (), key=jax.random.key(1))[0]
      Array([[2., 0., 2., 2.],
             [2., 0., 2., 2.]], dtype=float32)

    References: Srivastava et al., *Dropout: A Simple Way to Prevent Neural Networks from Overfitting*, JMLR 15
    (2014); Tompson et al., *Efficient Object Localization Using Convolutional Networks* (2015), for whole channels.
    """

    rate: Probability
    shared_axes: tuple[int, ...] = hyperparameter(axes_from_the_end, default=())
    decodes = True
    needs_key = property(lambda self: self.rate > 0)

    def check_input(self, x):
        return self.check_floating(x, minimum_ndim=-min(self.shared_axes, default=0))

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        x = self.check_input(x)
        key = self.training_key(key, inference_mode)
        if key is None:
            return x, non_trainables
        if self.rate == 1:
            return jnp.zeros_like(x), non_trainables
        return _drop(self, x, key), non_trainables


# As in linear.py: a function of its own, which JAX traces and differentiates once for all layers alike.
@functools.partial(jax.jit, static_argnums=0, inline=True)
def _drop(layer, x, key):
    shape = tuple(1 if i - x.ndim in layer.shared_axes else size for i, size in enumerate(x.shape))
    kept, wide = _draw(key, shape, 1 - layer.rate), accumulator(x.dtype)
    # In float32, for 1 / 0.9 in bfloat16 is 1.109: what is expected would be 0.0016 too small everywhere.
    scaled = (x.astype(wide) * jnp.asarray(1 / (1 - layer.rate), wide)).astype(x.dtype)
    return jnp.where(kept, scaled, jnp.zeros_like(x))


def _draw(key, shape, probability):
    """A mask, true with a probability. Most of the time of dropout is spent on random bits, so two elements share a word.

    Comparing bits with an integer needs no float in between: uniform numbers would be float32, whatever the input is.
    """
    # The two halves of the words are laid side by side. Were that axis cut over devices, they would have to exchange them; of
    # three axes and more, batches and features are cut, seldom the one between.
    axis = -2 if len(shape) > 2 and shape[-2] > 1 else -1
    size = shape[axis] if shape else 1
    if size == 1 or not _fits_in_16_bits(probability):
        return jax.random.bits(key, shape, jnp.uint32) < np.uint32(min(round(probability * 2**32), 2**32 - 1))
    half = [*shape]
    half[axis] = -(-size // 2)
    words, limit = jax.random.bits(key, half, jnp.uint32), np.uint32(round(probability * 2**16))
    kept = jnp.concatenate([words >> 16 < limit, words & 0xFFFF < limit], axis=axis)
    return jax.lax.slice_in_dim(kept, 0, size, axis=axis)


def _fits_in_16_bits(probability):
    """Whether 16 bits hit the rarer of the two outcomes to one part in a thousand."""
    error = abs(round(probability * 2**16) / 2**16 - probability)
    return error <= 1e-3 * min(probability, 1 - probability)
