"""Answers to the exercise diffusion.copies."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.diffusion.copies import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("neither is nearer than the other")
def as_near_as_the_share(samples, images, share):
    def one(sample):
        nearest, second = jnp.sort(jnp.sqrt(jnp.sum((images - sample) ** 2, axis=-1)))[:2]
        return nearest <= share * second

    return jax.lax.map(one, samples)


def each(rule, root=True):
    def copies(samples, images, share):
        def one(sample):
            squares = jnp.sum((images - sample) ** 2, axis=-1)
            return rule(jnp.sort(jnp.sqrt(squares) if root else squares), share)

        return jax.lax.map(one, samples)

    return copies


answers.wrong("These are squares of distances")(each(lambda d, share: d[0] < share * d[1], root=False))
answers.wrong("The result is wrong.")(each(lambda d, share: d[0] < 0.7 * d[1]))
answers.wrong("compared with the mean of all")(each(lambda d, share: d[0] < share * d.mean()))
answers.wrong("compared with the farthest")(each(lambda d, share: d[0] < share * d[-1]))
answers.wrong("The share is taken for a distance")(each(lambda d, share: d[0] < share))
answers.wrong("True and False are exchanged")(each(lambda d, share: d[0] >= share * d[1]))
answers.wrong("These are the ratios")(each(lambda d, share: d[0] / d[1]))


@answers.wrong("rounds the small distances away")
def multiplied_out(samples, images, share):
    squares = (samples**2).sum(-1)[:, None] - 2 * samples @ images.T + (images**2).sum(-1)
    distances = jnp.sort(jnp.sqrt(jnp.maximum(squares, 0)), axis=-1)
    return distances[:, 0] < share * distances[:, 1]


@answers.wrong("takes one sample after the other")
def all_at_once(samples, images, share):
    distances = jnp.sort(jnp.sqrt(jnp.sum((samples[:, None] - images) ** 2, axis=-1)), axis=-1)
    return distances[:, 0] < share * distances[:, 1]


# Right ones of unusual style


@answers.right
def by_scan(samples, images, share):
    def step(carry, sample):
        squares = jnp.sum((images - sample) ** 2, axis=-1)
        first = squares.argmin()
        second = squares.at[first].set(jnp.inf).min()
        return carry, squares[first] < share**2 * second

    return jax.lax.scan(step, None, samples)[1]


answers.right(each(lambda d, share: d[1] * share > d[0]))


@answers.wrong()
def sums_of_absolute_values(samples, images, share):
    def one(sample):
        nearest = -jax.lax.top_k(-jnp.abs(images - sample).sum(-1), 2)[0]
        return nearest[0] < share * nearest[1]

    return jax.lax.map(one, samples)


@answers.wrong("rounds the small distances away")
def product_by_product(samples, images, share):
    def one(sample):
        squares = sample @ sample - 2 * images @ sample + (images**2).sum(-1)
        nearest = -jax.lax.top_k(-jnp.sqrt(jnp.maximum(squares, 0)), 2)[0]
        return nearest[0] < share * nearest[1]

    return jax.lax.map(one, samples)


answers.equivalent(
    "jax.lax.top_k(-distances, 2) -> jax.lax.top_k(-distances, 3)", because="the third distance is not used"
)
answers.equivalent("-1 -> 1", because="the differences have two axes, and the last one is axis 1")
answers.equivalent(
    "nearest[1] -> nearest[2]",
    because="JAX takes the last element for an index outside, and that is nearest[1]",
)
