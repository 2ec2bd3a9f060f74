"""Answers to the exercise randomness.bootstrap."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.randomness.bootstrap import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


def boot_with(indices):
    def bootstrap(key, x, statistic, count):
        return jax.vmap(lambda key: statistic(x[indices(key, len(x))]))(jax.random.split(key, count))

    return bootstrap


answers.wrong("draw with replacement")(boot_with(jax.random.permutation))
answers.wrong("draw with replacement")(
    boot_with(lambda key, n: jax.random.choice(key, n, (n,), replace=False))
)
answers.wrong("an array of shape (10,)")(boot_with(lambda key, n: jax.random.randint(key, (10,), 0, n)))


@answers.wrong("All samples are the same")
def boot_one_key(key, x, statistic, count):
    def once(_):
        return statistic(x[jax.random.randint(key, (len(x),), 0, len(x))])

    return jax.vmap(once)(jnp.arange(count))


@answers.wrong("All samples are the same")
def boot_folded(key, x, statistic, count):
    def once(i):
        rows = jax.random.randint(jax.random.fold_in(key, 0 * i), (len(x),), 0, len(x))
        return statistic(x[rows])

    return jax.vmap(once)(jnp.arange(count))


@answers.wrong("grows with `count`")
def boot_loop(key, x, statistic, count):
    rows = [jax.random.randint(k, (len(x),), 0, len(x)) for k in jax.random.split(key, count)]
    return jnp.stack([statistic(x[row]) for row in rows])


@answers.wrong("its columns must stay together")
def boot_columns(key, x, statistic, count):
    def once(key):
        if x.ndim == 1:
            return statistic(jax.random.choice(key, x, x.shape))
        columns = jax.random.split(key, x.shape[1])
        return statistic(jnp.stack([jax.random.choice(k, c, c.shape) for k, c in zip(columns, x.T)], axis=1))

    return jax.vmap(once)(jax.random.split(key, count))


@answers.wrong("made of observations of x")
def boot_normal(key, x, statistic, count):
    def once(key):
        return statistic(x.mean(0) + x.std(0) * jax.random.normal(key, x.shape))

    return jax.vmap(once)(jax.random.split(key, count))


@answers.wrong("does not depend on the key")
def boot_seeds(key, x, statistic, count):
    return solution(jax.random.key(0), x, statistic, count)


def boot_without_last(key, n):
    return jax.random.randint(key, (n,), 0, n - 1)


answers.wrong("equally likely")(boot_with(boot_without_last))


def boot_rounded(key, n):
    return jnp.round(jax.random.uniform(key, (n,)) * (n - 1)).astype(int)


answers.wrong("equally likely")(boot_with(boot_rounded))


def boot_blocks(key, n):
    return (jax.random.randint(key, (), 0, n) + jnp.arange(n) // 2) % n


answers.wrong("depend on each other")(boot_with(boot_blocks))


@answers.wrong("hold each observation equally often")
def boot_balanced(key, x, statistic, count):
    rows = jax.random.permutation(key, jnp.tile(jnp.arange(len(x)), count))
    return jax.vmap(lambda row: statistic(x[row]))(rows.reshape(count, len(x)))


@answers.wrong("The shape is wrong")
def boot_summary(key, x, statistic, count):
    return solution(key, x, statistic, count).std()


@answers.wrong("Results come more than once")
def boot_half_twice(key, x, statistic, count):
    half = solution(key, x, statistic, (count + 1) // 2)
    return jnp.concatenate([half, half])[:count]


@answers.wrong("does not call `statistic`")
def boot_always_means(key, x, statistic, count):
    return solution(key, x, jnp.mean, count)


@answers.wrong("not what `statistic` returned")
def boot_centred(key, x, statistic, count):
    return solution(key, x, statistic, count) - statistic(x)


@answers.wrong("A random key is used twice")
def boot_twice(key, x, statistic, count):
    def once(key):
        rows = jax.random.randint(key, (len(x),), 0, len(x))
        return statistic(x[rows]) + 0 * jax.random.uniform(key)

    return jax.vmap(once)(jax.random.split(key, count))


# Right ones of unusual style, and wrong ones that look right


@answers.right
def by_choice(key, x, statistic, count):
    def once(key):
        return statistic(jax.random.choice(key, x, (x.shape[0],), axis=0))

    return jax.vmap(once)(jax.random.split(key, count))


@answers.right
def all_rows_at_once(key, x, statistic, count):
    rows = jax.random.randint(key, (count, len(x)), 0, len(x))
    return jax.vmap(lambda row: statistic(x[row]))(rows)


@answers.right
def one_by_one(key, x, statistic, count):
    def once(i):
        rows = jax.random.randint(jax.random.fold_in(key, i), x.shape[:1], 0, x.shape[0])
        return statistic(jnp.take(x, rows, axis=0))

    return jax.lax.map(once, jnp.arange(count))


@answers.right
def floored(key, x, statistic, count):
    rows = jnp.floor(jax.random.uniform(key, (count, len(x))) * len(x)).astype(int)
    return jax.vmap(statistic)(x[rows])


@answers.wrong()
def few_samples_again(key, x, statistic, count):
    some = jax.vmap(lambda k: statistic(x[jax.random.randint(k, (len(x),), 0, len(x))]))(
        jax.random.split(key, 5)
    )
    return some[jnp.arange(count) % 5]


@answers.wrong()
def neighbors_share(key, x, statistic, count):
    rows = jax.random.randint(key, ((count + 1) // 2, len(x)), 0, len(x))
    return jax.vmap(lambda row: statistic(x[row]))(jnp.repeat(rows, 2, axis=0)[:count])
