"""Answers to the exercise randomness.augment."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.randomness.augment import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("A random key is used twice")
def as_given(key, images):
    flip = jax.random.bernoulli(key, 0.5, (len(images), 1, 1))
    images = jnp.where(flip, images[:, :, ::-1], images)
    return images + 0.1 * jax.random.normal(key, images.shape)


@answers.wrong("a hidden state")
def hidden_state(key, images):
    flip = jax.random.bernoulli(key, 0.5, (len(images), 1, 1))
    noise = np.random.normal(size=images.shape).astype(np.float32)  # noqa: NPY002
    return jnp.where(flip, images[:, :, ::-1], images) + 0.1 * noise


@answers.wrong("A random key is used twice")
def split_and_old(key, images):
    flip_key, _ = jax.random.split(key)
    flip = jax.random.bernoulli(flip_key, 0.5, (len(images), 1, 1))
    images = jnp.where(flip, images[:, :, ::-1], images)
    return images + 0.1 * jax.random.normal(key, images.shape)


@answers.wrong("A random key is used twice")
def half_mended(key, images):
    flip_key, noise_key = jax.random.split(key)
    flip = jax.random.bernoulli(flip_key, 0.5, (len(images), 1, 1))
    images = jnp.where(flip, images[:, :, ::-1], images)
    return images + 0.1 * jax.random.normal(flip_key, images.shape)


def augment_with(
    flip_key,
    noise_key,
    probability=0.5,
    flip_shape=None,
    noise_shape=None,
    scale=0.1,
    mirror=None,
    draw=jax.random.normal,
):
    def augment(key, images):
        flip = jax.random.bernoulli(flip_key(key), probability, flip_shape or (len(images), 1, 1))
        turned = images[:, :, ::-1] if mirror is None else mirror(images)
        images = jnp.where(flip, turned, images)
        return images + scale * draw(noise_key(key), noise_shape or images.shape)

    return augment


def first(key):
    return jax.random.split(key)[0]


def second(key):
    return jax.random.split(key)[1]


answers.wrong("A random key is used twice")(augment_with(first, second))


def fold(number):
    return lambda key: jax.random.fold_in(key, number)


answers.wrong("JAX's own check does not see it")(augment_with(fold(0), fold(0)))
answers.wrong("JAX's own check does not see it")(augment_with(lambda key: key, fold(1)))
answers.wrong("`clone` says")(augment_with(lambda key: key, jax.random.clone))
answers.wrong("does not depend on the key")(
    augment_with(lambda _: jax.random.key(0), lambda _: jax.random.key(1))
)


answers.wrong("does not depend on the key")(
    augment_with(lambda _: jax.random.key(0), lambda _: jax.random.key(0))
)
answers.wrong("for every key")(augment_with(lambda _: jax.random.key(0), lambda key: key))
answers.wrong("The noise is the same")(augment_with(lambda key: key, lambda _: jax.random.key(0)))
ours = jax.random.key(7)
answers.wrong("does not depend on the key")(augment_with(lambda _: first(ours), lambda _: second(ours)))


pair = jax.random.split


def split_with(**changes):
    def augment(key, images):
        one, two = pair(key)
        return augment_with(lambda _: one, lambda _: two, **changes)(key, images)

    return augment


answers.wrong("a coin of its own")(split_with(flip_shape=(1, 1, 1)))
answers.wrong("All images get the same noise")(split_with(noise_shape=(4, 5)))
answers.wrong("All rows of an image")(split_with(noise_shape=(64, 1, 5)))
answers.wrong("All columns of an image")(split_with(noise_shape=(64, 4, 1)))
answers.wrong("mean 0 and standard deviation 0.1")(split_with(scale=0.2))
answers.wrong("There is no noise")(split_with(scale=0.0))
answers.wrong("upside down")(split_with(mirror=lambda images: images[:, ::-1]))


@answers.wrong("made of the same bits")
def coins_from_noise(key, images):
    noise = jax.random.normal(key, images.shape)
    flip = noise[:, :1, :1] > 0
    return jnp.where(flip, images[:, :, ::-1], images) + 0.1 * noise


answers.wrong("The noise is the same")(augment_with(lambda key: key, lambda _: jax.random.key(1)))


@answers.wrong("The noise is the same")
def fixed_noise(key, images):
    flip = jax.random.bernoulli(key, 0.5, (len(images), 1, 1))
    noise = np.random.RandomState(0).normal(size=images.shape).astype(np.float32)
    return jnp.where(flip, images[:, :, ::-1], images) + 0.1 * noise


answers.wrong("for every key")(augment_with(lambda _: jax.random.key(1), lambda key: key))


@answers.wrong("for every key")
def every_other(key, images):
    flip = (jnp.arange(len(images)) % 2 == 0)[:, None, None]
    images = jnp.where(flip, images[:, :, ::-1], images)
    return images + 0.1 * jax.random.normal(key, images.shape)


answers.wrong("of 320 images were mirrored")(split_with(probability=0.25))


def uniform(key, shape):
    """Of mean 0 and standard deviation 1, as normal numbers are."""
    return jax.random.uniform(key, shape, minval=-(3**0.5), maxval=3**0.5)


answers.wrong("mean 0 and standard deviation 0.1")(split_with(draw=uniform))


@answers.wrong("`return` missing")
def no_return(key, images):
    solution(key, images)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def folds_in(key, images):
    flip = jax.random.uniform(jax.random.fold_in(key, 0), (images.shape[0],)) < 0.5
    noise = jax.random.normal(jax.random.fold_in(key, 1), images.shape, images.dtype)
    return jnp.where(flip[:, None, None], jnp.flip(images, -1), images) + noise * 0.1


@answers.right
def one_example_mapped(key, images):
    def one(key, image):
        flip, noise = jax.random.split(key)
        image = jax.lax.cond(jax.random.bernoulli(flip), lambda x: x[:, ::-1], lambda x: x, image)
        return image + 0.1 * jax.random.normal(noise, image.shape)

    return jax.vmap(one)(jax.random.split(key, len(images)), images)


@answers.right
@jax.jit
def rebinds(key, images):
    key, new = jax.random.split(key)
    sign = jax.random.rademacher(new, (len(images), 1, 1))
    key, new = jax.random.split(key)
    return jnp.where(sign > 0, images, images[..., ::-1]) + jax.random.normal(new, images.shape) / 10


@answers.wrong()
def coins_from_the_noise(key, images):
    noise = jax.random.normal(key, images.shape)
    flip = noise[:, :1, :1] > 0
    return jnp.where(flip, images[:, :, ::-1], images) + 0.1 * noise


@answers.wrong()
def words_of_the_key(key, images):
    again = jax.random.wrap_key_data(jax.random.key_data(key))
    flip = jax.random.bernoulli(again, 0.5, (len(images), 1, 1))
    return jnp.where(flip, images[:, :, ::-1], images) + 0.1 * jax.random.normal(key, images.shape)


@answers.wrong()
def uniform_noise(key, images):
    flip, noise = jax.random.split(key)
    flip = jax.random.bernoulli(flip, 0.5, (len(images), 1, 1))
    return jnp.where(flip, images[:, :, ::-1], images) + jax.random.uniform(noise, images.shape) * 0.1


answers.wrong("All sizes come from")(split_with(flip_shape=(64, 1, 1)))
answers.wrong("All sizes come from")(split_with(noise_shape=(64, 4, 5)))

answers.equivalent(
    "images + 0.1 * jax.random.normal(noise_key, images.shape) -> images - 0.1 * jax.random.normal(noise_key, images.shape)",
    because="normal noise is as often positive as negative, so its sign does not matter",
)
