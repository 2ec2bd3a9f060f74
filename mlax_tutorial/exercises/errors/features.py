"""A static argument that is a list."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import under


def solution(x, activation, powers):
    return _features_of(x, activation, tuple(powers))


@functools.partial(jax.jit, static_argnames=("activation", "powers"))
def _features_of(x, activation, powers):
    return jnp.stack([activation(x) ** n for n in powers])


def check(features):
    x, runs = jax.device_put(np.float32([0.5, -1.0, 2.0])), []

    def squash(x):
        runs.append("squash")
        return jnp.tanh(x)

    def shift(x):
        runs.append("shift")
        return x + 1.0

    def attempt(x, activation, powers, advice=""):
        before, given = len(runs), list(powers)
        got = features(x, activation, powers)
        now = len(runs) - before
        name = activation.__name__
        shown = {"x": x, "activation": f"<function {name}>", "powers": given}
        y = np.asarray(activation(x))
        expected = jax.device_put(np.stack([y**n for n in given]))
        del runs[before + now :]
        if list(powers) != given:
            raise Failed("Your function changes the caller's list.", input=f"powers = {given}", got=powers)
        with checks.says(advice):
            checks.same(got, expected, input=f"x = {x}, activation = {name}, powers = {given}")
        del shown
        return now

    if attempt(x, squash, [1, 2, 3]) == 0:
        raise Failed("The activation was never called, so these are not its features.")
    again = attempt(2 * x, squash, [1, 2, 3])
    if again:
        raise Failed(
            "Python ran the activation again, for an equal list and an array of the same shape: it is not compiled, or "
            "compiled anew at each call. The cache of `jit` belongs to one function object, and its key must be equal "
            "the next time.",
            input="powers = [1, 2, 3], and then another list [1, 2, 3]",
        )
    new_program = attempt(
        x, squash, [2, 5, 7], "Another list of the same length gets the results of the first."
    )
    attempt(x, squash, [3, 2, 1], "The order of the powers is the order of the results.")
    attempt(x, squash, [2, 2], "A power that stands twice in the list stands twice in the result.")
    attempt(x, shift, [1, 2, 3], "Another activation gets the results of the first.")
    growing = [1, 2]
    attempt(x, squash, growing)
    growing.append(4)
    attempt(
        x,
        squash,
        growing,
        "The list was longer at the second call: look at what is in it, not at which list it is.",
    )
    attempt(x, squash, (2, 1))
    if attempt(3 * x, squash, [1, 2, 3]):
        raise Failed("After other lists, the first one is compiled anew.", input="powers = [1, 2, 3]")
    with under("`jax.jit`"):
        inside = jax.jit(lambda x: features(x, squash, [1, 2]))(x)
    checks.same(inside, jnp.stack([jnp.tanh(x), jnp.tanh(x) ** 2]), where="inside of `jax.jit`")
    asked = _depending(lambda x: features(x, squash, [1, 2]), x)
    if len(asked) > 1:
        raise Failed(
            "Only parts of it are compiled: powers and stack belong into the same program as the activation.",
            shown=[("asked for one by one", ", ".join(asked))],
        )
    if not new_program:
        raise Failed(
            "One program serves all lists of this length, so the powers in it are traced, and each of them is a general "
            "`pow`. With static powers every list has a program of its own, in which a cube is two products.",
            input="powers = [1, 2, 3], and then [2, 5, 7]",
        )


def _depending(function, x):
    """The primitives at the top of a program whose inputs depend on its argument."""
    program = jax.make_jaxpr(function)(x).jaxpr
    known, names = set(program.invars), []
    for equation in program.eqns:
        if any(not hasattr(atom, "val") and atom in known for atom in equation.invars):
            known.update(equation.outvars)
            names.append(equation.primitive.name)
    return names


exercise = Exercise(
    title="A static argument that is a list",
    stars=3,
    minutes=15,
    why="A thin function that makes its static arguments hashable, around a jitted one that is made once: a pattern to keep.",
    hints=(
        "A tuple can be the key of a cache, a list cannot. Who can turn one into the other?",
        "Two functions: the one that is called makes a tuple, and calls the one that is jitted.",
        "The jitted one must be made once, outside, not at each call.",
    ),
    solution=solution,
    check=check,
)
