"""A bootstrap."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.describe import describe
from mlax_tutorial.checking.guarding import bare
from mlax_tutorial.checking.programs import under
from mlax_tutorial.exercises.randomness._growth import does_not_grow, equations
from mlax_tutorial.exercises.randomness._keys import correlation, uses_keys_once


def solution(key, x, statistic, count):
    def once(key):
        rows = jax.random.randint(key, (len(x),), 0, len(x))
        return statistic(x[rows])

    return jax.vmap(once)(jax.random.split(key, count))


def check(bootstrap):
    rng, key = np.random.default_rng(0), jax.random.key(0)
    numbers = np.float32(np.round(rng.normal(3, 2, 40), 2))
    x = jax.device_put(numbers)
    checks.returns(bootstrap, key, x, jnp.mean, 5, shape=(5,), dtype=jnp.float32)

    def run(x, statistic, count):
        with under("`jax.jit`"):
            return np.asarray(jax.jit(lambda key, x: bootstrap(key, x, statistic, count))(key, x))

    does_not_grow(
        [equations(lambda key, n=n: bootstrap(key, x, jnp.mean, n), key) for n in (4, 40)], "`count`"
    )
    seen = []

    def size(sample):
        seen.append(sample.shape)
        return jnp.float32(sample.shape[0])

    sizes = run(x, size, 5)
    if not seen:
        raise Failed("Your function does not call `statistic`.")
    if wrong := [shape for shape in seen[-1:] if not shape or shape[0] != 40]:
        raise Failed(
            f"`statistic` gets an array of shape {wrong[0]}, where x has 40 observations: draw as many as there are."
        )
    if not (sizes == 40).all():
        raise Failed("The results are not what `statistic` returned for the samples.", got=sizes)
    chosen = run(
        np.eye(8, dtype=np.float32), lambda sample: sample.sum(0), 400
    )  # how often each of eight was drawn
    if chosen.shape != (400, 8):
        raise Failed(
            "Here the statistic is a vector of 8 numbers and `count` is 400: the result should have the shape "
            f"(400, 8), but it has {chosen.shape}."
        )
    if (chosen == 1).all():
        raise Failed(
            "Each sample holds every observation once: draw with replacement, so that some come twice."
        )
    if not (chosen == np.round(chosen)).all():
        raise Failed("The samples are to be made of observations of x, as they are.")
    if (chosen == chosen[0]).all():
        raise Failed("All samples are the same: each needs a key of its own.", got=chosen)
    pairs = np.float32([[row, 100 + row] for row in range(30)])
    if run(pairs, lambda sample: jnp.max(jnp.abs(sample[:, 1] - sample[:, 0] - 100)), 5).any():
        raise Failed("In x of shape (n, d) a row is one observation: its columns must stay together.")
    often = chosen.mean(axis=0)
    if np.abs(often - 1).max() > 0.25:
        raise Failed(
            "Not each observation is equally likely to be drawn.",
            shown=[("drawn, on average", describe(often)), ("expected", "1 each, of eight observations")],
        )
    if abs(chosen.var() - 7 / 8) > 0.12:
        raise Failed(
            "The draws of one sample depend on each other.",
            shown=[
                (
                    "an observation is drawn",
                    f"once on average, with variance {chosen.var():.2f}; expected 0.88",
                )
            ],
        )
    total = chosen.sum(axis=0)
    if ((total - 400) ** 2).sum() < 0.05 * 350:  # the variance of each of eight totals is 350
        raise Failed(
            "Taken together, the samples hold each observation equally often, so they are no independent draws: one "
            "permutation was cut into pieces, or the draws were balanced. Draw each row number by itself.",
            shown=[("drawn, in 400 samples", describe(total)), ("expected", "400 each, give or take 19")],
        )
    got = run(x, jnp.mean, 300)
    error = float(numbers.std()) / np.sqrt(40)
    if abs(got.mean() - float(numbers.mean())) > 0.35 * error or not 0.8 < got.std() / error < 1.25:
        raise Failed(
            "The means of the samples are not distributed as those of independent draws.",
            shown=[("they scatter by", f"{got.std():.3g}; expected about {error:.3g}")],
        )
    if len(np.unique(got)) < 250:
        raise Failed(
            "Results come more than once: for `count` results `count` samples are drawn.",
            shown=[("different means, of 300", str(len(np.unique(got))))],
        )
    if abs(correlation(got[:-1], got[1:])) > 0.4:
        raise Failed("The samples depend on each other: each needs a key of its own.")
    own = bare(bootstrap)
    uses_keys_once(lambda key: own(key, x, jnp.mean, 5))


exercise = Exercise(
    title="A bootstrap",
    stars=3,
    minutes=20,
    why="Error bars for any statistic, a median or a correlation, from nothing but the data, keys, and one `vmap`.",
    hints=(
        "One sample: draw `len(x)` row numbers, with replacement, and index with them. `jax.random.randint` draws them.",
        "Write a function of one key that returns the statistic of one sample.",
        "Map it over `jax.random.split(key, count)`.",
    ),
    solution=solution,
    check=check,
)
