"""A test for memorization: is a sample much nearer to one training image than to all others?"""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.diffusion._gaussian import largest


def solution(samples, images, share):
    def one(sample):
        distances = jnp.sqrt(jnp.sum((images - sample) ** 2, axis=-1))
        nearest = jax.lax.top_k(-distances, 2)[0]
        return -nearest[0] < share * -nearest[1]

    return jax.lax.map(one, samples)


IMAGES = np.array([[0, 0], [10, 0], [0, 10], [7, 7], [7, 6]], np.float32)
# A copy; halfway between two; 1 from one and 6 from the next; between two look-alikes, and nearer to one of them; then 4.2 and 5.8
# from the nearest two, 3.3 and 6.7, 4 and 6, 3.8 and 6.3; and one across a corner, where sums of absolute values would say no.
SAMPLES = np.array(
    [[0, 0], [5, 0], [9, 0], [7, 6.4375], [7, 6.125], [4.25, 0], [3.25, 0], [4, 0], [3.75, 0], [-4, -4]],
    np.float32,
)


def _distances(samples, images):
    return np.sqrt(((samples[:, None].astype(np.float64) - images) ** 2).sum(-1))


def check(copies):
    sorted_ = np.sort(_distances(SAMPLES, IMAGES), axis=-1)
    expected = sorted_[:, 0] < 0.4 * sorted_[:, 1]
    given = {"samples": SAMPLES, "images": IMAGES, "share": 0.4}
    got = copies(jnp.asarray(SAMPLES), jnp.asarray(IMAGES), 0.4)
    squared = sorted_[:, 0] ** 2 < 0.4 * sorted_[:, 1] ** 2
    for wrong, said in [
        (squared, "These are squares of distances: a share of 0.4 of the distance is one of 0.16 of its square."),
        (sorted_[:, 0] < 0.4 * sorted_.mean(-1), "The nearest image is compared with the mean of all; the second nearest is asked for."),
        (sorted_[:, 0] < 0.4 * sorted_[:, -1], "The nearest image is compared with the farthest; the second nearest is asked for."),
        (sorted_[:, 0] < 0.4, "The share is taken for a distance: compare with `share` times the second distance."),
        (~expected, "True and False are exchanged: a copy is where the nearest image is *much* nearer."),
        (sorted_[:, 0] / sorted_[:, 1], "These are the ratios: say which are below the share."),
    ]:  # fmt: skip
        if checks.agrees(got, wrong):
            raise Failed(said, input=given, expected=expected, got=got)
    checks.same(got, jnp.asarray(expected), input=given)
    jitted = checks.works_under_jit(copies, jnp.asarray(SAMPLES), jnp.asarray(IMAGES), 0.4)
    tall = np.random.default_rng(0).normal(10_000.0, 1.0, (6, 40)).astype(np.float32)
    near = tall[:3] + np.float32([[1e-3], [1.0], [1e-3]])
    distances = np.sort(_distances(near, tall), axis=-1)
    checks.same(
        jitted(jnp.asarray(near), jnp.asarray(tall), 0.4),
        jnp.asarray(distances[:, 0] < 0.4 * distances[:, 1]),
        where="for numbers around 10,000, where |x|² - 2 x·y + |y|² rounds the small distances away; subtract first",
    )
    twice = np.float32([[3, 4], [3, 4], [0, 0]])
    checks.same(
        copies(jnp.asarray(twice[:1]), jnp.asarray(twice), 0.4),
        jnp.array([False]),
        where="for a sample that equals two images: neither is nearer than the other",
    )
    outlines = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in [(50, 64), (400, 64), ()]]
    size = largest(copies, *outlines)
    if size >= 50 * 400 * 64:
        raise Failed(
            f"For 50 samples, 400 images and 64 features it makes an array of {size:,} numbers. For 1,000 samples and 10,000 images of 784 "
            "pixels that would be 31 GB. `jax.lax.map` takes one sample after the other.",
        )


exercise = Exercise(
    title="Which samples are copies",
    stars=2,
    minutes=12,
    why="A distance alone says little: what is near depends on the image. The ratio to the second nearest needs no threshold in pixels.",
    hints=(
        "For one sample: all distances to the images, of shape `(len(images),)`, and the two smallest of them. `jax.lax.top_k(-distances, 2)[0]` are those, negative.",
        "`jax.lax.map(function, samples)` applies a function of one sample to each, one after the other.",
    ),
    solution=solution,
    check=check,
)
