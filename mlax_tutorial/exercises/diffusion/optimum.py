"""The exact optimum of the loss: a softmax over the training images."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.diffusion._gaussian import largest


def solution(x, sigma, images):
    # By default a TPU rounds the factors of a product to bfloat16: for a small sigma, other images would win.
    product = functools.partial(jnp.matmul, precision="highest")
    squares = jnp.sum(x**2, axis=-1, keepdims=True) - 2 * product(x, images.T) + jnp.sum(images**2, axis=-1)
    return product(jax.nn.softmax(-squares / (2 * sigma**2), axis=-1), images)


IMAGES = np.array([[0, 0, 1], [2, 0, 1], [0, 3, -1], [-1, 1, 0]], np.float32)
X = np.array([[0.5, 0.25, 1.0], [-1.0, 2.0, 0.5]], np.float32)


def _weighted(x, sigma, images, scale=None, root=False, axis=-1):
    squares = ((x[:, None] - images) ** 2).sum(-1).astype(np.float64)
    logits = -(np.sqrt(squares) if root else squares) / (2 * sigma**2 if scale is None else scale)
    weights = np.exp(logits - logits.max())
    return ((weights / weights.sum(axis=axis, keepdims=True)) @ images).astype(np.float32)


def check(optimum):
    sigma = 1.5
    given = {"x": X, "sigma": sigma, "images": IMAGES}
    expected = _weighted(X, sigma, IMAGES)
    got = optimum(jnp.asarray(X), jnp.float32(sigma), jnp.asarray(IMAGES))
    squares = ((X[:, None] - IMAGES) ** 2).sum(-1)
    for wrong, said in [
        (_weighted(X, sigma, IMAGES, scale=sigma**2), "The exponent of a Gaussian is the square of the distance over 2 sigma²: the 2 is missing."),
        (_weighted(X, sigma, IMAGES, scale=2 * sigma), "The exponent has sigma squared in it, not sigma."),
        (_weighted(X, sigma, IMAGES, scale=sigma), "The exponent is the square of the distance over 2 sigma², not over sigma."),
        (_weighted(X, sigma, IMAGES, root=True), "This takes the distance, and not its square."),
        (_weighted(X, sigma, IMAGES, scale=-2 * sigma**2), "Images far away get the most weight here: the exponent is negative."),
        (_weighted(X, sigma, IMAGES, axis=0), "The weights of each row of `x` must sum to 1: normalize over the images."),
        (IMAGES[squares.argmin(-1)], "This is the nearest image alone: each image counts with its probability."),
        (np.broadcast_to(IMAGES.mean(0), X.shape), "This is the mean of all images, whatever the noise."),
    ]:  # fmt: skip
        if np.shape(got) == wrong.shape and np.allclose(got, wrong, rtol=1e-3):
            raise Failed(said, input=given, expected=expected, got=got)
    weights = np.exp(-squares / (2 * sigma**2))
    if np.shape(got) == squares.shape:
        raise Failed("These are weights, one for each image: return the images' mean by them.", got=got)
    if np.shape(got) == X.shape and np.allclose(got, weights @ IMAGES, rtol=1e-3):
        raise Failed(
            "The weights do not sum to 1: divide by their sum.", input=given, expected=expected, got=got
        )
    checks.same(got, jnp.asarray(expected), input=given, rtol=1e-3, atol=1e-3)
    tiny = np.float32(2**-12)
    got = optimum(jnp.asarray(X * tiny), jnp.float32(sigma * tiny), jnp.asarray(IMAGES * tiny))
    if np.isfinite(got).all() and not np.allclose(got, expected * tiny, rtol=1e-2, atol=1e-2 * tiny):
        raise Failed(
            "With rows, images and sigma 4,096 times smaller, the result should be as many times smaller. Is there a least sigma, or something added to its square?",
            input={"x": X * tiny, "sigma": sigma * tiny, "images": IMAGES * tiny},
            expected=expected * tiny,
            got=got,
        )
    far = jnp.asarray(X * 20)
    got = optimum(far, jnp.float32(0.1), jnp.asarray(IMAGES))
    if not np.isfinite(got).all():
        raise Failed(
            "With little noise, or far from all images, all exponentials are 0 in float32, and 0 / 0 is NaN. `jax.nn.softmax` subtracts the largest exponent first.",
            input={"x": far, "sigma": 0.1},
            got=got,
        )
    nearest = IMAGES[((np.asarray(far)[:, None] - IMAGES) ** 2).sum(-1).argmin(-1)]
    checks.same(got, jnp.asarray(nearest), where="with little noise", rtol=1e-3, atol=1e-3)
    checks.works_under_jit(optimum, jnp.asarray(X), jnp.float32(sigma), jnp.asarray(IMAGES))
    outlines = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in [(50, 64), (), (400, 64)]]
    size = largest(optimum, *outlines)
    if size >= 50 * 400 * 64:
        raise Failed(
            f"For 50 rows, 400 images and 64 features it makes an array of {size:,} numbers. For 1,000 rows and 10,000 images that would be "
            "2.6 GB. Multiply the square out: |x|² - 2 x·y + |y|² needs no array of three axes.",
        )


exercise = Exercise(
    title="The optimal denoiser of a finite set",
    stars=3,
    minutes=20,
    why="A softmax over training images: the loss has an exact optimum, and it is attention with the images as keys and values.",
    hints=(
        "By Bayes' rule, image i has a weight proportional to exp(-|x - image_i|² / (2 sigma²)); the estimate is the weighted mean.",
        "A softmax normalizes such weights, and is safe against underflow: `jax.nn.softmax(-squares / (2 * sigma**2), axis=-1) @ images`.",
        "`squares` without an array of three axes: `jnp.sum(x**2, -1, keepdims=True) - 2 * x @ images.T + jnp.sum(images**2, -1)`.",
    ),
    solution=solution,
    check=check,
)
