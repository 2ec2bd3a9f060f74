"""Answers to the exercise diffusion.optimum."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.diffusion.optimum import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def squares(x, images):
    return jnp.sum((x[:, None] - images) ** 2, axis=-1)


@answers.wrong("Is there a least sigma")
def at_least_a_tenth(x, sigma, images):
    sigma = jnp.maximum(sigma, 0.1)
    return jax.nn.softmax(-squares(x, images) / (2 * sigma**2)) @ images


@answers.wrong("the 2 is missing")
def without_the_two(x, sigma, images):
    return jax.nn.softmax(-squares(x, images) / sigma**2) @ images


@answers.wrong("has sigma squared in it")
def without_the_square(x, sigma, images):
    return jax.nn.softmax(-squares(x, images) / (2 * sigma)) @ images


@answers.wrong("not over sigma.")
def over_sigma(x, sigma, images):
    return jax.nn.softmax(-squares(x, images) / sigma) @ images


@answers.wrong("takes the distance")
def by_distance(x, sigma, images):
    return jax.nn.softmax(-jnp.sqrt(squares(x, images)) / (2 * sigma**2)) @ images


@answers.wrong("Images far away get the most")
def the_wrong_sign(x, sigma, images):
    return jax.nn.softmax(squares(x, images) / (2 * sigma**2)) @ images


@answers.wrong("normalize over the images")
def over_the_rows(x, sigma, images):
    return jax.nn.softmax(-squares(x, images) / (2 * sigma**2), axis=0) @ images


@answers.wrong("the nearest image alone")
def nearest(x, sigma, images):
    return images[squares(x, images).argmin(axis=-1)]


@answers.wrong("the mean of all images")
def mean(x, sigma, images):
    return jnp.broadcast_to(images.mean(axis=0), x.shape)


@answers.wrong("These are weights")
def weights(x, sigma, images):
    return jax.nn.softmax(-squares(x, images) / (2 * sigma**2))


@answers.wrong("divide by their sum")
def not_normalized(x, sigma, images):
    return jnp.exp(-squares(x, images) / (2 * sigma**2)) @ images


@answers.wrong("0 / 0 is NaN")
def underflows(x, sigma, images):
    weights = jnp.exp(-squares(x, images) / (2 * sigma**2))
    return weights @ images / weights.sum(axis=-1, keepdims=True)


@answers.wrong("needs no array of three axes")
def in_three_axes(x, sigma, images):
    return jax.nn.softmax(-squares(x, images) / (2 * sigma**2)) @ images


# Right ones of unusual style


@answers.right
def row_by_row(x, sigma, images):
    def one(x):
        return jax.nn.softmax(-jnp.sum((x - images) ** 2, axis=-1) / (2 * sigma**2)) @ images

    return jax.lax.map(one, x)


@answers.right
def without_the_rows_square(x, sigma, images):
    """The square of x is the same for all images, and a softmax does not see it."""
    logits = (x @ images.T - jnp.sum(images**2, axis=-1) / 2) / sigma**2
    return jnp.exp(logits - jax.nn.logsumexp(logits, axis=-1, keepdims=True)) @ images


answers.equivalent(
    "functools.partial(jnp.matmul, precision='highest') -> functools.partial(jnp.matmul)",
    because="checks run at the highest precision whatever is said, and a CPU always does",
)
answers.equivalent(
    "jax.nn.softmax(-squares / (2 * sigma ** 2), axis=-1) -> jax.nn.softmax(-squares / (2 * sigma ** 2))",
    "-1 -> 1",
    "-1 -> 1 (2)",
    "-1 -> 1 (3)",
    because="all arrays have two axes, the last one is axis 1, and it is what softmax takes where none is named",
)
answers.equivalent(
    "jnp.sum(x ** 2, axis=-1, keepdims=True) -> jnp.sum(x ** 2, keepdims=True)",
    "x ** 2 -> x * 2",
    "x ** 2 -> x ** 1",
    "x ** 2 -> x ** 3",
    because="the square of x is the same for all images, and a softmax does not change by what is added to all its logits",
)
