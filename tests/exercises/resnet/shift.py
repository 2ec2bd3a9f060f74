"""Answers to the exercise resnet.shift."""

import jax
import jax.numpy as jnp

from mlax_tutorial import augment
from mlax_tutorial.exercises.resnet.shift import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def cut(images, starts, most):
    padded = jnp.pad(images, ((0, 0), (most, most), (most, most), (0, 0)))
    slice_ = lambda image, start: jax.lax.dynamic_slice(image, (*start, 0), images.shape[1:])  # noqa: E731
    return jax.vmap(slice_)(padded, starts)


def places(key, images, most):
    return jax.random.randint(key, (len(images), 2), 0, 2 * most + 1)


@answers.wrong("All images are shifted by the same offset")
def one_offset(key, images, most):
    start = jax.random.randint(key, (1, 2), 0, 2 * most + 1)
    return cut(images, jnp.broadcast_to(start, (len(images), 2)), most)


@answers.wrong("excludes its upper bound")
def bound_excluded(key, images, most):
    return cut(images, jax.random.randint(key, (len(images), 2), 0, max(2 * most, 1)), most)


@answers.wrong("comes in on the other")
def rolls(key, images, most):
    offsets = places(key, images, most) - most
    return jax.vmap(lambda image, offset: jnp.roll(image, offset, (0, 1)))(images, offsets)


@answers.wrong("its two offsets are one number")
def diagonal(key, images, most):
    start = jax.random.randint(key, (len(images), 1), 0, 2 * most + 1)
    return cut(images, jnp.broadcast_to(start, (len(images), 2)), most)


@answers.wrong("The shape should stay")
def stays_padded(key, images, most):
    return jnp.pad(images, ((0, 0), (most, most), (most, most), (0, 0)))


@answers.wrong("No image is shifted left or right")
def rows_only(key, images, most):
    return cut(images, places(key, images, most).at[:, 1].set(most), most)


@answers.wrong("no shifted image of those")
def shuffles(key, images, most):
    first, second = jax.random.split(key)
    return jax.random.permutation(second, cut(images, places(first, images, most), most))


@answers.wrong("by more than 2 pixels")
def too_far(key, images, most):
    return cut(images, jax.random.randint(key, (len(images), 2), 0, 2 * most + 3), most + 1)


@answers.wrong("Not all offsets are equally probable")
def one_too_many(key, images, most):
    return cut(images, jax.random.randint(key, (len(images), 2), 0, 2 * most + 2), most)


@answers.wrong("Not all offsets are equally probable")
def from_below(key, images, most):
    return cut(images, jax.random.randint(key, (len(images), 2), -most, 2 * most + 1), most)


@answers.wrong()
def own_key(key, images, most):
    return cut(images, places(jax.random.key(0), images, most), most)


@answers.wrong()
def to_float(key, images, most):
    return cut(images.astype(jnp.float32), places(key, images, most), most)


# Right ones of unusual style


@answers.right
def of_the_package(key, images, most):
    return augment.crop(key, images, padding=most)


@answers.right
def by_indices(key, images, most):
    count, height, width, _ = images.shape
    padded = jnp.pad(images, ((0, 0), (most, most), (most, most), (0, 0)))
    rows, columns = places(key, images, most).T
    rows = rows[:, None, None] + jnp.arange(height)[:, None]
    columns = columns[:, None, None] + jnp.arange(width)
    return padded[jnp.arange(count)[:, None, None], rows, columns]


@answers.right
def by_indices_of_the_images(key, images, most):
    count, height, width, _ = images.shape
    rows, columns = jax.random.randint(key, (2, count, 1), -most, most + 1)
    rows, columns = jnp.arange(height) - rows, jnp.arange(width) - columns
    inside = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[:, None, :]
    moved = images[jnp.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]
    return jnp.where(inside[..., None], moved, 0)


@answers.right
def two_keys(key, images, most):
    pairs = [jax.random.randint(k, (len(images),), 0, 2 * most + 1) for k in jax.random.split(key)]
    return cut(images, jnp.stack(pairs, axis=1), most)


@answers.wrong("not a Python loop")
def image_by_image(key, images, most):
    keys = jax.random.split(key, len(images))
    return jnp.concatenate(
        [cut(image[None], places(key, image[None], most), most) for key, image in zip(keys, images)]
    )


answers.equivalent(
    "(len(images), 2) -> (len(images), 3)", because="the third number of an image is never used"
)
answers.equivalent("(0, 0) -> (0, 1) (2)", because="the channel that is added is cut off again")
answers.equivalent(
    "(start[0], start[1], 0) -> (start[0], start[1], -1)",
    "(start[0], start[1], 0) -> (start[0], start[1], 1)",
    because="a window with all channels fits at the channel 0 only, and `dynamic_slice` moves it there",
)
answers.equivalent(
    "start[1] -> start[2]", because="JAX takes the last element for an index outside, and that is start[1]"
)
