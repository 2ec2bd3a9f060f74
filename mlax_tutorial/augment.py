"""Images that differ a little each time they are seen: cropped, flipped, erased. On the device, inside the compiled step.

Each function takes a key and a batch of shape ``(n, height, width, channels)``, in any dtype, and draws for each image by
itself. Put them in front of the model in training alone; under ``jax.jit`` they are a part of the step::

    def augmented(key, images):
        crop_key, flip_key = jax.random.split(key)
        return augment.flip(flip_key, augment.crop(crop_key, images, padding=4))
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.arrays import is_array
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked, show
from mlax_tutorial.nn.rules import integer, integers, probability

__all__ = ["crop", "erase", "flip"]


def crop(
    key: jax.Array, images: jax.Array, padding: int = 4, size: tuple[int, int] | None = None
) -> jax.Array:
    """Cut a window out of each image, at a place of its own, after a border of zeros was put round it.

    The zeros are black only where 0 is black: crop before you normalize.

    Args:
      key: a typed key.
      images: shape ``(n, height, width, channels)``.
      padding: the width of the border.
      size: height and width of the window, by default those of the images: they are shifted by up to ``padding``.

    Returns:
      Images of the size, in the same dtype.

    Raises:
      ValueError: if the images are no array of four axes, ``padding`` is no integer of at least 0, ``size`` no two integers of
        at least 1, or the window is larger than what it is cut out of.

    Reference: He et al., *Deep Residual Learning for Image Recognition*, CVPR (2016), section 4.2.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import augment
      >>> augment.crop(jax.random.key(0), jnp.ones((8, 32, 32, 3)), padding=4).shape
      (8, 32, 32, 3)
    """
    count, height, width, channels = _shape("crop", images)
    padding = checked("crop: padding", _from_0, padding)
    size = (height, width) if size is None else checked("crop: size", integers, size)
    if len(size) != 2:
        raise ValueError(f"crop: size must be a height and a width, got {show(size)}.")
    room = jnp.array([height + 2 * padding - size[0], width + 2 * padding - size[1]])
    if size[0] > height + 2 * padding or size[1] > width + 2 * padding:
        raise ValueError(
            f"crop: size {size} is larger than the images, {(height, width)}, with {padding} round them."
        )
    padded = jnp.pad(images, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    places = jax.random.randint(key, (count, 2), 0, room[None] + 1)

    def cut(image, place):
        return jax.lax.dynamic_slice(image, (place[0], place[1], 0), (*size, channels))

    return jax.vmap(cut)(padded, places)


def flip(key: jax.Array, images: jax.Array, chance: float = 0.5) -> jax.Array:
    """Turn some images round, left to right.

    Args:
      key: a typed key.
      images: shape ``(n, height, width, channels)``.
      chance: of each image to be turned; may be traced.

    Raises:
      ValueError: if the images are no array of four axes, or ``chance`` is not in [0, 1].

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import augment
      >>> images = jnp.arange(4).reshape(2, 1, 2, 1)
      >>> augment.flip(jax.random.key(0), images, chance=1.0)[:, 0, :, 0]
      Array([[1, 0],
             [3, 2]], dtype=int32)
    """
    count, *_ = _shape("flip", images)
    chance = _unless_traced("flip: chance", probability, chance)
    turned = jax.random.bernoulli(key, chance, (count, 1, 1, 1))
    return jnp.where(turned, images[:, :, ::-1], images)


def erase(key: jax.Array, images: jax.Array, size: int, value: float = 0) -> jax.Array:
    """Hide a square of each image, at a place of its own: its center lies anywhere, so that less may be hidden at a border.

    Args:
      key: a typed key.
      images: shape ``(n, height, width, channels)``.
      size: of the square, in pixels; may be traced.
      value: what is put there.

    Raises:
      ValueError: if the images are no array of four axes, or ``size`` is no integer of at least 0.

    Reference: DeVries and Taylor, *Improved Regularization of Convolutional Neural Networks with Cutout* (2017).

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import augment
      >>> int(augment.erase(jax.random.key(0), jnp.ones((1, 32, 32, 3)), size=8).sum()) < 32 * 32 * 3
      True
    """
    count, height, width, _ = _shape("erase", images)
    size = _unless_traced("erase: size", _from_0, size)

    def hidden(key, length):
        """Which of the places along an axis, of each image."""
        start = jax.random.randint(key, (count, 1), 0, length) - size // 2
        places = jnp.arange(length)[None]
        return (start <= places) & (places < start + size)

    rows, columns = (hidden(*pair) for pair in zip(jax.random.split(key), (height, width)))
    square = rows[:, :, None, None] & columns[:, None, :, None]
    images = jnp.asarray(images)
    return jnp.where(square, jnp.asarray(value, images.dtype), images)


_from_0 = functools.partial(integer, minimum=0)


def _shape(name, images):
    if not is_array(images) or len(images.shape) != 4:
        wanted = "an array of shape (n, height, width, channels)"
        raise ValueError(f"{name}: images must be {wanted}, got {describe(images)}.")
    return images.shape


def _unless_traced(name: str, canonicalize: Callable, value):
    return value if isinstance(value, jax.core.Tracer) else checked(name, canonicalize, value)
