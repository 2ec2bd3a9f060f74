"""``viz.denoising``: what denoisers make of noisy images, side by side, from little noise to much.

`denoising` adds noise to some images and asks each denoiser; `Denoising` shows the answers: in a notebook as pictures with a slider over
the noise level, in a terminal as a table of errors. The markup is made in `page`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.nn.arrays import is_key
from mlax_tutorial.viz.figures.denoising import page

LEVELS = (0.1, 0.2, 0.4, 0.75, 1.5, 3.0, 6.0, 12.0, 24.0)
MOST, LARGEST, COLUMNS = 4, 64, 5  # images, pixels a side, denoisers


class Denoising:
    """What `denoising` found; a notebook shows a figure, a terminal a table.

    Attributes:
      names: ``"noisy"``, then those of the denoisers.
      sigmas: the noise levels, rising.
      errors: ``(names, sigmas)``: the root of the mean square by which each is away from the clean images, where the denoisers work.
      pictures: ``(names, sigmas, images, height, width)``, from 0, the lower limit, to 1.
      clean: ``(images, height, width)``, likewise.
    """

    def __init__(self, names, sigmas, errors, pictures, clean):
        self.names, self.sigmas, self.errors, self.pictures, self.clean = (
            names,
            sigmas,
            errors,
            pictures,
            clean,
        )

    def _repr_html_(self):
        return page.write(self)

    def __repr__(self):
        return page.listing(self)


def denoising(
    denoisers: Any, clean: Any, *, key: jax.Array, sigmas: Sequence[float] = LEVELS, decode: Callable | None = None,
    shape: tuple[int, int] = (28, 28), limits: tuple[float, float] = (-1.0, 1.0),
) -> Denoising:  # fmt: skip
    """Show what denoisers make of the same images under more and more noise.

    Args:
      denoisers: a function from noisy images ``(n, features)`` and a noise level, a scalar, to clean ones; or a dict of at most five, by
        name. Each is called once for each level.
      clean: the images, ``(n, features)``, at most four.
      key: for the noise, which is the same at all levels but for its size.
      sigmas: the noise levels, positive and rising.
      decode: from ``(n, features)`` to pixels ``(n, height * width)``, if the features are no pixels.
      shape: height and width of an image.
      limits: the values that are shown as white and as black.

    Returns:
      A `Denoising`: as the last expression of a cell it is a figure with a slider. It has ``errors``, too.

    Raises:
      TypeError: if a denoiser is no function, or ``key`` no typed key.
      ValueError: if there are too many images or denoisers, or none, if shapes do not fit, or the levels do not rise from above 0.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import viz
      >>> def linear(x, sigma):
      ...     return x / (1 + sigma**2)
      >>> clean = jnp.sign(jnp.sin(jnp.arange(64.0)))[None]
      >>> viz.denoising(linear, clean, key=jax.random.key(0), sigmas=[0.1, 1.0, 10.0], shape=(8, 8))
      sigma    0.1     1    10
      noisy   0.10  0.96  9.61
      linear  0.10  0.70  0.99
    """
    named = _named(denoisers)
    clean, sigmas = jnp.asarray(clean), _levels(sigmas)
    if clean.ndim != 2 or not 1 <= len(clean) <= MOST:
        raise ValueError(
            f"viz.denoising: clean must be 1 to {MOST} images (n, features), got shape {clean.shape}: take a few of them"
        )
    if not is_key(key):
        raise TypeError(
            f"viz.denoising: key must be a typed key, as from jax.random.key(0), got {type(key).__name__}"
        )
    if len(shape) != 2 or not all(1 <= side <= LARGEST for side in shape):
        raise ValueError(f"viz.denoising: shape must be (height, width), at most {LARGEST} each, got {shape}")
    noise = jax.random.normal(key, clean.shape)

    def drawn(x, name):
        pixels = np.asarray(x if decode is None else decode(x), float)
        if pixels.size != len(clean) * shape[0] * shape[1]:
            mend = "pass shape=(height, width)" if decode is None else "what does decode return?"
            raise ValueError(
                f"viz.denoising: {name} has shape {pixels.shape}, which is not {len(clean)} images of {shape}: {mend}"
            )
        low, high = limits
        return np.clip((pixels.reshape(-1, *shape) - low) / (high - low), 0, 1)

    errors, pictures = np.zeros((1 + len(named), len(sigmas))), []
    for row, (name, denoiser) in enumerate([("noisy", None), *named.items()]):
        pictures.append([])
        for column, sigma in enumerate(sigmas):
            noisy = clean + sigma * noise
            answer = noisy if denoiser is None else _asked(name, denoiser, noisy, sigma)
            errors[row, column] = jnp.sqrt(jnp.mean((answer - clean) ** 2))
            pictures[-1].append(drawn(answer, name))
    return Denoising(["noisy", *named], sigmas, errors, np.array(pictures), drawn(clean, "clean"))


def _named(denoisers) -> dict[str, Callable]:
    if not isinstance(denoisers, Mapping):
        name = getattr(denoisers, "__name__", type(denoisers).__name__)
        denoisers = {"denoiser" if name == "<lambda>" else name: denoisers}
    if not 1 <= len(denoisers) <= COLUMNS:
        raise ValueError(f"viz.denoising: expects 1 to {COLUMNS} denoisers, got {len(denoisers)}")
    for name, denoiser in denoisers.items():
        if not callable(denoiser):
            raise TypeError(
                f"viz.denoising: {name} must be a function of noisy images and a noise level, got {type(denoiser).__name__}"
            )
    return {str(name): denoiser for name, denoiser in denoisers.items()}


def _levels(sigmas) -> np.ndarray:
    sigmas = np.asarray(sigmas, float)
    if sigmas.ndim != 1 or not 1 <= len(sigmas) <= 12 or not (np.diff(sigmas, prepend=0.0) > 0).all():
        raise ValueError(
            f"viz.denoising: sigmas must be 1 to 12 numbers that rise from above 0, got {sigmas}"
        )
    return sigmas


def _asked(name, denoiser, noisy, sigma):
    answer = jnp.asarray(denoiser(noisy, jnp.asarray(sigma, noisy.dtype)))
    if answer.shape != noisy.shape:
        raise ValueError(
            f"viz.denoising: {name} must return images of shape {noisy.shape}, as it is given, got {answer.shape}"
        )
    if not bool(jnp.isfinite(answer).all()):
        raise ValueError(f"viz.denoising: {name} returned numbers that are not finite, at sigma = {sigma:g}")
    return answer
