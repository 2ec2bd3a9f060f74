"""A loss that compares each with all."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.vmap._growth import does_not_grow, equations


def solution(query, key):
    keys = lax.all_gather(key, "batch")  # (examples, d)
    return -jax.nn.log_softmax(keys @ query)[lax.axis_index("batch")]


def _of_tables(queries, keys):
    scores = queries @ keys.T
    return -jnp.diagonal(jax.nn.log_softmax(scores, axis=1))


def _by_numpy(queries, keys):
    scores = np.asarray(queries, np.float64) @ np.asarray(keys, np.float64).T
    largest = scores.max(axis=1)
    total = largest + np.log(np.exp(scores - largest[:, None]).sum(axis=1))
    return np.float32(total - np.diagonal(scores))


def check(contrast):
    @jax.jit
    def run(query, key):
        return jax.vmap(lambda query, key: contrast(query, key), axis_name="batch")(query, key)

    draw = np.random.default_rng(0)
    queries, keys = (jax.device_put(np.float32(draw.integers(-4, 5, (4, 3)) / 4)) for _ in range(2))
    recognise = [
        (
            lambda q, k: jnp.diagonal(jax.nn.softmax(q @ k.T, axis=1)),
            "These are the probabilities; the loss is minus their logarithm.",
        ),
        (
            lambda q, k: -jnp.diagonal(jax.nn.softmax(q @ k.T, axis=1)),
            "This is minus the probability; the loss is minus its *logarithm*.",
        ),
        (
            lambda q, k: _of_tables(q / jnp.sqrt(q.shape[1]), k),
            "The products are divided by the root of d, as in attention; here they are taken as they are.",
        ),
        (
            lambda q, k: (
                jax.nn.logsumexp(jnp.where(jnp.eye(len(q)) > 0, -jnp.inf, q @ k.T), axis=1)
                - jnp.sum(q * k, 1)
            ),
            "The sum leaves out the example's own key; the softmax is over *all* keys.",
        ),
        (
            lambda q, k: jnp.diagonal(jax.nn.log_softmax(q @ k.T, axis=1)),
            "The sign is wrong: the loss is *minus* the logarithm.",
        ),
        (
            lambda q, k: -jax.nn.log_softmax(q @ k.T, axis=1)[:, 0],
            "All examples look at place 0. Each has its own: `lax.axis_index`.",
        ),
        (
            lambda q, k: -jnp.diagonal(jax.nn.log_softmax(k @ q.T, axis=1)),
            "The softmax goes over all queries for one key; it should go over all keys for one query.",
        ),
        (
            lambda q, k: jax.nn.logsumexp(jnp.sum(q * k, 1)) - jnp.sum(q * k, 1),
            "The sum goes over each example's product with its *own* key. All keys are needed: `lax.all_gather`.",
        ),
        (
            lambda q, k: -jnp.sum(q * k, 1),
            "The other keys do not occur: the softmax is over all keys of the batch.",
        ),
        (
            lambda q, k: jnp.full(len(q), jnp.mean(_of_tables(q, k))),
            "This is the mean over the batch; each example returns its own loss.",
        ),
        (
            lambda q, k: -jax.nn.log_softmax(q @ k.T, axis=1),
            "This is a row of numbers, one for each key; the loss is the one at the example's own place.",
        ),
    ]
    checks.values(run, _by_numpy, examples=[(queries, keys)], count=0, recognise=recognise)
    for n in (1, 7):
        more = [np.float32(draw.integers(-4, 5, (n, 2)) / 4) for _ in range(2)]
        checks.same(run(*more), _by_numpy(*more), input={"queries": more[0], "keys": more[1]})
    large = [jax.device_put(20 * np.asarray(table)) for table in (queries, keys)]
    got = run(*large)
    if not np.isfinite(np.asarray(got)).all():
        raise Failed(
            "For large products the result is not finite: `exp` overflows, or a softmax is rounded to 0 and has no "
            "logarithm. `jax.nn.log_softmax` and `jax.nn.logsumexp` keep both in bounds.",
            got=got,
        )
    checks.same(got, _by_numpy(*large), rtol=1e-3, atol=1e-2, input="twenty times these vectors")
    sizes = [equations(run, *np.ones((2, n, 3), np.float32)) for n in (2, 20)]
    does_not_grow(sizes, "the batch", "`lax.all_gather` gives all keys at once.")
    checks.gradients(run, _of_tables, queries, keys, argnums=(0, 1), finite_differences=False, jit=True)


exercise = Exercise(
    title="A loss that compares each with all",
    stars=3,
    minutes=20,
    why="Losses that compare examples are written for one of them and an axis name; over devices the same collectives communicate.",
    hints=(
        "`lax.all_gather(key, 'batch')` is the table of all keys, of shape (examples, d).",
        "`jax.nn.log_softmax(keys @ query)` has an entry for each key; which one is the example's own?",
        "`lax.axis_index('batch')` is the example's number. Mind the sign.",
    ),
    solution=solution,
    check=check,
)
