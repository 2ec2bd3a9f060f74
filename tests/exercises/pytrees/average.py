"""Answers to the exercise pytrees.average."""

import functools

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.pytrees.average import (
    average_all,
    average_sum,
    average_with,
    exercise,
    floating,
    in_new,
    keeps_counts,
    mean,
    promoted,
    rounded,
    solution,
    swapped,
)
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("the wrong way round")(swapped)
answers.wrong("added whole")(average_sum)
answers.wrong("the parameters themselves")(lambda old, params, decay: params)
answers.wrong("the tree is gone")(lambda old, params, decay: jax.tree.leaves(solution(old, params, decay)))
answers.wrong("the old average as it is")(lambda old, params, decay: old)


@answers.wrong("of any kind and depth")
def average_dict(old, params, decay):
    return {name: mean(old[name], params[name], decay) for name in old}


@answers.wrong("of any kind and depth")
def of_a_dict(old, params, decay):
    return {name: solution(old[name], params[name], decay) for name in old}


def but_for(*dtypes):
    return average_with(lambda a, b, d: b if a.dtype in dtypes else mean(a, b, d))


answers.wrong("Integers of every size")(but_for(jnp.int32))
answers.wrong("Integers of every size")(but_for(jnp.int32, jnp.bool_))


def only_for(*dtypes):
    return average_with(lambda a, b, d: mean(a, b, d) if a.dtype in dtypes else b)


answers.wrong("float16 is floating")(only_for(jnp.float32, jnp.bfloat16))
answers.wrong("is rounded to bfloat16 before")(rounded)
answers.wrong("small steps are not lost")(in_new)
answers.wrong("loses digits")(
    average_with(floating(lambda a, b, d: mean(a.astype(b.dtype), b, d).astype(a.dtype)))
)
answers.wrong("is rounded to bfloat16 here")(
    average_with(floating(lambda a, b, d: mean(a, b, jnp.asarray(d, b.dtype).astype(a.dtype))))
)
answers.wrong("has no average: leaves")(average_all)
answers.wrong("even becomes floating")(
    average_with(lambda a, b, d: d * a + (1 - d) * b.astype(jnp.promote_types(a.dtype, b.dtype)))
)
answers.wrong("not from `old`")(keeps_counts)
answers.wrong("cast the result back")(promoted)


@answers.wrong("in place")
def in_place(old, params, decay):
    for name in old:
        old[name] = solution(old[name], params[name], decay)
    return old


@answers.wrong("has none yet")
def average_float(old, params, decay):
    return solution(old, params, float(decay))


@answers.wrong("has none yet")
def branch(old, params, decay):
    if decay == 0:
        return params
    return solution(old, params, decay)


@answers.wrong("should be once")
@functools.partial(jax.jit, static_argnames="decay")
def static(old, params, decay):
    return solution(old, params, decay)


@answers.wrong("is a `return` missing")
def prints(old, params, decay):
    print(solution(old, params, decay))


# Right ones of unusual style, and wrong ones that look right


@answers.right
@jax.jit
def jitted(old, params, decay):
    def one(a, b):
        if a.dtype.kind in "iub":
            return b
        return (a + (1 - decay) * (b.astype(a.dtype) - a)).astype(a.dtype)

    return jax.tree.map(one, old, params)


@answers.right
def flat(old, params, decay):
    olds, structure = jax.tree.flatten(old)
    news = structure.flatten_up_to(params)
    leaves = []
    for a, b in zip(olds, news, strict=True):
        if jnp.issubdtype(a.dtype, jnp.inexact):
            b = jnp.asarray(decay, a.dtype) * a + jnp.asarray(1 - decay, a.dtype) * jnp.asarray(b, a.dtype)
        leaves.append(jnp.asarray(b, a.dtype))
    return structure.unflatten(leaves)


@answers.right
def in_float32(old, params, decay):
    def one(path, a, b):
        if not jnp.isdtype(a.dtype, "real floating"):
            return b
        wide = jnp.float32
        return (decay * a.astype(wide) + (1 - decay) * b.astype(wide)).astype(a.dtype)

    return jax.tree.map_with_path(one, old, params)
