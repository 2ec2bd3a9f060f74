"""Mend a reused key."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.describe import describe
from mlax_tutorial.exercises.randomness._keys import correlation, uses_keys_once


def solution(key, images):
    flip_key, noise_key = jax.random.split(key)
    flip = jax.random.bernoulli(flip_key, 0.5, (len(images), 1, 1))
    images = jnp.where(flip, images[:, :, ::-1], images)
    return images + 0.1 * jax.random.normal(noise_key, images.shape)


def _no_hidden_state(function, *arguments):
    first, second = function(*arguments), function(*arguments)
    if not np.array_equal(first, second):
        raise Failed(
            "The same key gives other numbers at the second call, so there is a hidden state, as that of "
            "`np.random`: all randomness is to come from `key`.",
            shown=[("first", describe(first)), ("second", describe(second))],
        )
    if np.array_equal(first, function(jax.random.key(4_711), *arguments[1:])):
        raise Failed(
            "The result does not depend on the key: another one gives the same numbers. Draw from parts of `key`, not "
            "from a key of your own."
        )


def check(augment):
    given = np.float32(np.random.default_rng(0).permutation(64 * 4 * 5).reshape(64, 4, 5))
    images = jax.device_put(given)
    key = jax.random.key(8_271)  # no seed that an answer would choose
    checks.returned(augment(key, images))
    checks.returns(augment, key, images, shape=images.shape, dtype=jnp.float32)
    _no_hidden_state(augment, key, images)
    uses_keys_once(augment, images)
    got = np.asarray(augment(key, images))
    plain, mirrored = got - given, got - given[:, :, ::-1]
    is_plain = np.abs(plain).max(axis=(1, 2)) < 1.5
    is_mirrored = np.abs(mirrored).max(axis=(1, 2)) < 1.5
    if not (is_plain | is_mirrored).all():
        upside = np.abs(got - given[:, ::-1]).max(axis=(1, 2)) < 1.5
        if upside.any():
            raise Failed("Images are turned upside down: mirror the last axis, the width.")
        raise Failed(
            "Each image should be the given one or its mirror image, plus a little noise: some are neither."
        )
    if not 10 <= is_mirrored.sum() <= 54:
        number = int(is_mirrored.sum())
        raise Failed(
            f"Of 64 images {number} were mirrored, where about half should be: each image needs a coin of its own, "
            "so the coins have the shape (n, 1, 1)."
        )
    noise = np.where(is_mirrored[:, None, None], mirrored, plain) / 0.1
    if np.abs(noise).max() < 0.5:
        raise Failed("There is no noise in the result.")
    if correlation(noise[0], noise[1]) > 0.9:
        raise Failed("All images get the same noise: draw it in the shape of all images.")
    if correlation(noise[:, 0], noise[:, 1]) > 0.9:
        raise Failed("All rows of an image get the same noise: draw it in the shape of all images.")
    if correlation(noise[:, :, 0], noise[:, :, 1]) > 0.9:
        raise Failed("All columns of an image get the same noise: draw it in the shape of all images.")
    few_large = np.abs(noise).max() < 2.2  # of more than a thousand normal numbers
    if not (0.85 < noise.std() < 1.15 and abs(noise.mean()) < 0.15) or few_large:
        raise Failed(
            "The noise should be normal, with mean 0 and standard deviation 0.1.",
            shown=[
                ("noise", f"mean {0.1 * noise.mean():.3f}, standard deviation {0.1 * noise.std():.3f}"),
                ("largest", f"{0.1 * np.abs(noise).max():.3f}"),
            ],
        )
    near = [correlation(noise[:, i, j], is_mirrored) for i in range(4) for j in range(5)]
    if max(map(abs, [correlation(noise.ravel()[:64], is_mirrored), *near])) > 0.6:
        raise Failed("The coins and the noise are made of the same bits: each needs a key of its own.")
    flips = [is_mirrored]
    for seed in range(1, 5):
        again = np.asarray(augment(jax.random.key(seed), images))
        plain, turned = again - given, again - given[:, :, ::-1]
        flips.append(np.abs(turned).max(axis=(1, 2)) < 1.5)
        if correlation(np.where(flips[-1][:, None, None], turned, plain), noise) > 0.9:
            raise Failed("The noise is the same for another key: draw it from a part of `key`.")
    if (np.array(flips) == flips[0]).all():
        raise Failed("The same images are mirrored for every key: draw the coins from a part of `key`.")
    mirrored = np.sum(flips)
    if abs(mirrored - 160) > 54:
        raise Failed(f"With five keys {mirrored} of 320 images were mirrored, where about half should be.")
    checks.works_under_jit(augment, key, images)
    fewer = jax.device_put(given[:6, :3, :4])
    with checks.says(
        "It happens with 6 images of 3 x 4 pixels; there were 64 of 4 x 5 before. All sizes come from "
        "`images.shape`."
    ):
        checks.returns(augment, key, fewer, shape=fewer.shape, dtype=jnp.float32)


exercise = Exercise(
    title="Mend a reused key",
    stars=1,
    minutes=10,
    why="Two draws from one key are not independent, and nothing in shapes or histograms shows it: one key, one use.",
    hints=(
        "Count the draws: each needs a key of its own.",
        "`flip_key, noise_key = jax.random.split(key)`, and `key` is used no more.",
    ),
    solution=solution,
    check=check,
)
