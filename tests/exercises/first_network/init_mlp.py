"""Answers to the exercise first_network.init_mlp."""

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.first_network.init_mlp import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("used twice")
def init_one_key(key, sizes):
    return [
        {"kernel": jax.random.normal(key, (m, n)) * jnp.sqrt(2 / m), "bias": jnp.zeros(n)}
        for m, n in zip(sizes[:-1], sizes[1:])
    ]


@answers.wrong("does not depend on the key")
def init_fixed_seed(key, sizes):
    return solution(jax.random.key(0), sizes)


@answers.wrong("another result when it is called again")
def init_numpy(key, sizes):
    return [
        {
            "kernel": jnp.asarray(np.random.normal(size=(m, n)), jnp.float32) * jnp.sqrt(2 / m),  # noqa: NPY002
            "bias": jnp.zeros(n),
        }
        for m, n in zip(sizes[:-1], sizes[1:])
    ]


@answers.wrong("used twice")
def init_key_used_and_split(key, sizes):
    params = []
    for m, n in zip(sizes[:-1], sizes[1:]):
        kernel = jax.random.normal(key, (m, n)) * jnp.sqrt(2 / m)
        key, _ = jax.random.split(key)
        params.append({"kernel": kernel, "bias": jnp.zeros(n)})
    return params


@answers.wrong("which is the variance")
def init_variance(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"kernel": jax.random.normal(k, (m, n)) * 2 / m, "bias": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


@answers.wrong("lies on its side")
def init_sideways(key, sizes):
    return [{"kernel": layer["kernel"].T, "bias": layer["bias"]} for layer in solution(key, sizes)]


@answers.wrong("He's rule asks for 2/n")
def init_lecun(key, sizes):
    return [
        {"kernel": layer["kernel"] / jnp.sqrt(2.0), "bias": layer["bias"]} for layer in solution(key, sizes)
    ]


@answers.wrong("3 layers, but you return 4")
def init_zip_too_far(key, sizes):
    return solution(key, (*sizes, 1))


@answers.wrong("different trees")
def init_tuple(key, sizes):
    return tuple(solution(key, sizes))


@answers.wrong("inputs of *this* layer")
def init_first_n(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"kernel": jax.random.normal(k, (m, n)) * jnp.sqrt(2 / sizes[0]), "bias": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


@answers.wrong("not normally distributed")
def init_uniform(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"kernel": jax.random.uniform(k, (m, n), minval=-1, maxval=1) * jnp.sqrt(6 / m), "bias": jnp.zeros(n)}
        for k, m, n in zip(keys, sizes[:-1], sizes[1:])
    ]


def truncated(limit, spread):
    """``spread``: that of a normal distribution cut at ``limit``."""

    def init_truncated(key, sizes):
        keys = jax.random.split(key, len(sizes) - 1)
        return [
            {
                "kernel": jax.random.truncated_normal(k, -limit, limit, (m, n)) * jnp.sqrt(2 / m) / spread,
                "bias": jnp.zeros(n),
            }
            for k, m, n in zip(keys, sizes[:-1], sizes[1:])
        ]

    return init_truncated


answers.wrong("not normally distributed")(truncated(2.0, 0.8796))
answers.wrong("not normally distributed")(truncated(3.0, 0.9866))


@answers.wrong("not normally distributed")
def he_normal_of_jax(key, sizes):
    draw = jax.nn.initializers.he_normal()  # truncated
    keys = jax.random.split(key, len(sizes) - 1)
    return [{"kernel": draw(k, (m, n)), "bias": jnp.zeros(n)} for k, m, n in zip(keys, sizes[:-1], sizes[1:])]


@answers.wrong("with a dict for each layer")
def init_pairs(key, sizes):
    return [(layer["kernel"], layer["bias"]) for layer in solution(key, sizes)]


def by_fold_in(number):
    def init_by_fold_in(key, sizes):
        pairs = list(zip(sizes[:-1], sizes[1:]))
        return [
            {
                "kernel": jax.random.normal(jax.random.fold_in(key, number(i, pairs)), (m, n))
                * jnp.sqrt(2 / m),
                "bias": jnp.zeros(n),
            }
            for i, (m, n) in enumerate(pairs)
        ]

    return init_by_fold_in


answers.right(by_fold_in(lambda i, pairs: i))
answers.wrong("of the same size get the same kernel")(by_fold_in(lambda i, pairs: i % 2))
answers.wrong("of different sizes draw the same")(by_fold_in(lambda i, pairs: pairs[:i].count(pairs[i])))


@answers.wrong("6 layers, but you return 3")
def init_three_keys(key, sizes):
    first, second, third = jax.random.split(key, 3)
    return [
        {"kernel": jax.random.normal(k, (m, n)) * jnp.sqrt(2 / m), "bias": jnp.zeros(n)}
        for k, m, n in zip((first, second, third), sizes[:-1], sizes[1:])
    ]


answers.equivalent(
    "len(sizes) - 1 -> len(sizes) + 1",
    "len(sizes) - 1 -> len(sizes) - 0",
    because="there are more keys than layers, and zip leaves the last ones unused",
)
