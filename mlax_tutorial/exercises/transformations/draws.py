"""Count the random draws of a function."""

import numbers

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import fresh
from mlax_tutorial.inspection import jaxprs


def solution(function, *args):
    def count(jaxpr):
        total = 0
        for equation in jaxpr.eqns:
            name = equation.primitive.name
            if name == "random_bits":
                total += equation.outvars[0].aval.size
            inner = [count(getattr(program, "jaxpr", program)) for _, program in jaxprs.subjaxprs(equation)]
            if name == "scan":
                total += equation.params["length"] * sum(inner)
            elif name == "cond":
                total += max(inner)
            else:
                total += sum(inner)
        return total

    return count(jax.make_jaxpr(function)(*args).jaxpr)


def check(draws):
    key = jax.eval_shape(lambda: jax.random.key(0))
    x = jax.ShapeDtypeStruct((4,), jnp.float32)

    def both(key):
        one, two = jax.random.split(key)
        return jax.random.normal(one, (3,)), jax.random.uniform(two, (2, 2))

    def walk(key):
        def step(position, key):
            return position + jax.random.normal(key, (3,)), None

        return lax.scan(step, jnp.zeros(3), jax.random.split(key, 5))[0]

    def walks(key):
        return lax.scan(lambda total, key: (total + walk(key), None), jnp.zeros(3), jax.random.split(key, 4))[
            0
        ]

    def branches(key, x):
        return lax.cond(
            x[0] > 0,
            lambda: jax.random.normal(key, (6,)).sum(),
            lambda: jax.random.normal(key, (2,)).sum(),
        )

    def three(key, x):
        sides = [lambda key, n=n: jax.random.normal(key, (n,)).sum() for n in (2, 5, 3)]
        return lax.switch(x.argmax(), sides, key)

    def walk_and_choose(key, x):
        def step(total, key):
            return total + branches(key, x), None

        return lax.scan(step, 0.0, jax.random.split(key, 3))[0]

    def python_loop(key):
        return [jax.random.normal(k, (2,)) for k in jax.random.split(key, 3)]

    def dear(key, x):
        def none(key):
            return (jnp.ones((50, 50)) @ jnp.ones((50, 50)))[0, :2]

        return lax.cond(x[0] > 0, lambda key: jax.random.normal(key, (2,)), none, key)

    @jax.custom_jvp
    def noisy(key):
        return jax.random.normal(key, (4,))

    noisy.defjvp(lambda keys, _: (noisy(*keys), jnp.zeros(4)))
    gamma = "`random_gamma` is left out: it has a generator of its own."
    scan = "The body of a scan is recorded once, and runs `length` times."
    any_depth = (
        "Go into whatever equation holds a program; `jaxprs.subjaxprs` finds them by their kind, not by name."
    )
    cases = {
        "jax.random.normal(key, (3,))": (lambda key: jax.random.normal(key, (3,)), (key,), "Each element of the result of `random_bits` is a draw."),
        "jax.random.bits(key, (2, 5))": (lambda key: jax.random.bits(key, (2, 5)), (key,), "Each element of the result of `random_bits` is a draw."),
        "jax.random.bits(key, (3,), 'uint8')": (lambda key: jax.random.bits(key, (3,), "uint8"), (key,), "A draw is an element, of however many bits."),
        "jax.random.split(key, 7)": (lambda key: jax.random.split(key, 7), (key,), "To split a key draws nothing."),
        "jax.random.gamma(key, x)": (lambda key, x: jax.random.gamma(key, x), (key, x), gamma),
        "jax.random.gamma(key, x), and a normal of 3": (lambda key, x: (jax.random.gamma(key, x), jax.random.normal(key, (3,))), (key, x), gamma),
        "jax.random.beta(key, 1.0, x)": (lambda key, x: jax.random.beta(key, 1.0, x), (key, x), gamma),
        "x + 1, without a key": (lambda x: x + 1, (x,), "Nothing random happens here."),
        "normal of 3 and uniform of 4, with two keys": (both, (key,), "All draws count."),
        "a mask of x, jax.random.bernoulli(key, 0.5, x.shape)": (lambda key, x: jax.random.bernoulli(key, 0.5, x.shape) * x, (key, x), "A mask of four is four draws, whatever becomes of them."),
        "jax.jit(f)(key), f drawing 3": (jax.jit(lambda key: jax.random.normal(key, (3,))), (key,), "Go into the programs that equations hold."),
        "vmap over 5 keys, 3 draws each": (lambda key: jax.vmap(lambda k: jax.random.normal(k, (3,)))(jax.random.split(key, 5)), (key,), "Under `vmap` the parameter `shape` is still that of one example; the result of the equation has all of them."),
        "a Python loop of 3 rounds, 2 draws each": (python_loop, (key,), "All draws count."),
        "a scan of 5 rounds, 3 draws each": (walk, (key,), scan),
        "a scan of 4 rounds over a scan of 5": (walks, (key,), "The rounds multiply: five in each of four."),
        "a cond with 6 draws in one branch, 2 in the other": (branches, (key, x), "Only one branch runs: count the one that draws most."),
        "a cond with 2 draws in one branch, a large product in the other": (dear, (key, x), "What counts is which branch draws most, not which has most work."),
        "a switch with 2, 5 and 3 draws in its branches": (three, (key, x), "A switch is a `cond` with more than two branches: count the one that draws most."),
        "a scan of 3 rounds over a cond with 6 or 2 draws": (walk_and_choose, (key, x), "In each round the branch that draws most counts."),
        "jax.checkpoint(f)(key), f drawing 4": (jax.checkpoint(lambda key: jax.random.normal(key, (4,))), (key,), any_depth),
        "a function with a custom_jvp, drawing 4": (lambda key: noisy(key), (key,), any_depth),
    }  # fmt: skip
    for name, (function, arguments, reason) in cases.items():
        expected = solution(fresh(function), *arguments)
        with checks.says(f"It happens with {name}, and arguments of which only shape and dtype are known."):
            got = draws(fresh(function), *arguments)
        checks.returned(got, input=name, expected=expected)
        if isinstance(got, (jax.Array, np.ndarray)) or not isinstance(got, numbers.Real):
            raise Failed(
                "Return a Python number: how many draws there are.", input=name, expected=expected, got=got
            )
        if got != expected:
            if got == 0 and name.startswith("jax.random.normal"):
                reason = "None was found: `random_bits` stands in a program that an equation holds, `jit` here. Go inside."
            raise Failed(f"The number is not right. {reason}", input=name, expected=expected, got=got)


exercise = Exercise(
    title="Count the random draws of a function",
    stars=2,
    minutes=15,
    why="Random bits are paid for; a program that tells how many it draws tells what its dropout costs.",
    hints=(
        "A function that takes a jaxpr and calls itself for each program inside: `for _, inner in "
        "jaxprs.subjaxprs(equation)`; `getattr(inner, 'jaxpr', inner)` opens it.",
        "`equation.outvars[0].aval.size` is how many elements a result has.",
        "A `scan` counts `equation.params['length']` times what its body does, a `cond` the `max` of its branches, all "
        "else the sum.",
    ),
    solution=solution,
    check=check,
)
