"""Answers to the exercise errors.features."""

import functools

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.errors.features import _features_of, exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("unhashable type: 'list'")
@functools.partial(jax.jit, static_argnames=("activation", "powers"))
def broken(x, activation, powers):
    return jnp.stack([activation(x) ** n for n in powers])


@answers.wrong("it is not compiled, or compiled anew")
def not_jitted(x, activation, powers):
    return jnp.stack([activation(x) ** n for n in powers])


@answers.wrong("it is not compiled, or compiled anew")
def jit_inside(x, activation, powers):
    return jax.jit(lambda x: jnp.stack([activation(x) ** n for n in powers]))(x)


@answers.wrong("Only parts of it are compiled")
def activation_only(x, activation, powers):
    y = jax.jit(activation)(x)
    return jnp.stack([y**n for n in powers])


@functools.partial(jax.jit, static_argnames=("activation", "n"))
def feature(x, activation, n):
    return activation(x) ** n


@answers.wrong("Only parts of it are compiled")
def piece_by_piece(x, activation, powers):
    return jnp.stack([feature(x, activation, n) for n in powers])


class ById:
    def __init__(self, powers):
        self.powers = powers


@functools.partial(jax.jit, static_argnames=("activation", "box"))
def boxed(x, activation, box):
    return jnp.stack([activation(x) ** n for n in box.powers])


@answers.wrong("it is not compiled, or compiled anew")
def by_id(x, activation, powers):
    return boxed(x, activation, ById(powers))


programs = {}  # by the activation and the number of powers


@answers.wrong("Another list of the same length")
def by_length(x, activation, powers):
    key = activation, len(powers)
    if key not in programs:
        fixed = tuple(powers)
        programs[key] = jax.jit(lambda x: jnp.stack([activation(x) ** n for n in fixed]))
    return programs[key](x)


@functools.lru_cache
def program(powers):
    return {}


@answers.wrong("Another activation gets")
def by_powers(x, activation, powers):
    powers = tuple(powers)
    programs = program(powers)
    if not programs:
        programs["first"] = jax.jit(lambda x: jnp.stack([activation(x) ** n for n in powers]))
    return programs["first"](x)


@answers.wrong("The order of the powers")
def features_sorted(x, activation, powers):
    return _features_of(x, activation, tuple(sorted(powers)))


@answers.wrong("stands twice in the result")
def as_a_set(x, activation, powers):
    return _features_of(x, activation, tuple(dict.fromkeys(powers)))


@functools.partial(jax.jit, static_argnames="powers")
def traced_function(x, activation, powers):
    return jnp.stack([activation(x) ** n for n in powers])


@answers.wrong("abstract array")
def function_not_static(x, activation, powers):
    return traced_function(x, activation, tuple(powers))


# Right ones of unusual style, and wrong ones that look right


@answers.wrong("the powers in it are traced")
def as_an_array(x, activation, powers):
    return _from_an_array(x, activation, jnp.array(powers))


@functools.partial(jax.jit, static_argnums=1)
def _from_an_array(x, activation, powers):
    return activation(x) ** powers[:, None]


@functools.partial(jax.jit, static_argnames="activation")
def _from_a_tree(x, activation, powers):
    return jnp.stack([activation(x) ** n for n in powers])


@answers.wrong("the powers in it are traced")
def left_traced(x, activation, powers):
    return _from_a_tree(x, activation, list(powers))


@functools.lru_cache
def _program(activation, powers):
    return jax.jit(lambda x: jnp.stack([activation(x) ** n for n in powers]))


answers.right(lambda x, activation, powers: _program(activation, tuple(powers))(x))


@answers.right
def as_text(x, activation, powers):
    return _from_text(x, activation, " ".join(map(str, powers)))


@functools.partial(jax.jit, static_argnames=("activation", "powers"))
def _from_text(x, activation, powers):
    y = activation(x)
    return jnp.stack([y ** int(n) for n in powers.split()])


@answers.wrong()
def remembers_results(x, activation, powers, seen={}):  # noqa: B006
    key = activation, tuple(powers)
    if key not in seen:
        seen[key] = jnp.stack([activation(x) ** n for n in powers])
    return seen[key]


@answers.wrong()
def only_the_last_list(x, activation, powers, kept=[None, None]):  # noqa: B006
    key = activation, tuple(powers)
    if kept[0] != key:
        kept[:] = key, jax.jit(lambda x: jnp.stack([activation(x) ** n for n in key[1]]))
    return kept[1](x)
