"""A recurrent loop as a scan."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, checks, inputs
from mlax_tutorial.inspection import jaxprs


def solution(w, u, h, xs):
    def step(h, x):
        h = jnp.tanh(w @ h + u @ x)
        return h, h

    return lax.scan(step, h, xs)


def check(recurrent):
    def sequence(draw):
        n, m, time = draw(inputs.one_of((1, 2, 4), (3, 2, 1), (2, 2, 2)))
        small = {"low": -1, "high": 1}
        return (
            draw(inputs.arrays(n, n, **small)),
            draw(inputs.arrays(n, m, **small)),
            draw(inputs.arrays(n, **small)),
            draw(inputs.arrays(time, m, **small)),
        )

    def of_size(time):
        w, u = [[0.5, -0.25], [0.75, 0.1]], [[1.0, 0.5, 0.0], [-0.5, 0.25, 1.0]]
        xs = np.sin(np.arange(3 * time)).reshape(time, 3)
        return tuple(jax.device_put(np.array(a, np.float32)) for a in (w, u, [0.1, -0.2], xs))

    telling = of_size(4)
    recognise = [
        (
            previous,
            "The state before the step is given out; the states asked for are those after each step.",
        ),
        (
            forgets,
            "Every step starts from the first state: the new one must be the carry that the body returns.",
        ),
        (
            lambda w, u, h, xs: solution(w.T, u, h, xs),
            "`w @ h` is asked for, and `h @ w` is another product.",
        ),
        (
            lambda w, u, h, xs: lax.scan(lambda h, x: (jnp.tanh(w @ h + u @ x),) * 2, h, xs, reverse=True),
            "The sequence is read from its end.",
        ),
        (
            lambda w, u, h, xs: solution(w, u, jnp.zeros_like(h), xs),
            "The loop starts at zero, not at `h`.",
        ),
        (
            lambda w, u, h, xs: solution(w, jnp.zeros_like(u), h, xs),
            "The inputs have no effect: `u @ x` is missing.",
        ),
        (
            lambda w, u, h, xs: solution(w, u, h, xs)[::-1],
            "The two results are in the wrong order: the last state comes first, then all states.",
        ),
        (
            lambda w, u, h, xs: solution(w, u, h, xs)[1],
            "Two results are asked for: the last state, and all states.",
        ),
    ]
    right = jax.jit(solution)
    checks.values(recurrent, right, examples=[telling], recognise=recognise)
    jitted = checks.works_under_jit(recurrent, *telling)
    checks.values(jitted, right, inputs.together(sequence), recognise=recognise, count=8)
    for time in (5, 20):
        checks.jaxpr(recurrent, *of_size(time), requires=(("scan", "while"),), counts={"tanh": 1})
    if (rounds := unrolled(recurrent, of_size(64))) > unrolled(recurrent, of_size(32)) or rounds >= 64:
        raise Failed(
            "The jaxpr is right, but `unroll` copies the body more often for a longer sequence when it is compiled: the "
            "program grows with the sequence again. A small constant, such as `unroll=4`, is fine."
        )
    with checks.says("This is right, but not for an empty sequence."):
        empty = (*telling[:3], jax.device_put(np.zeros((0, 3), np.float32)))
        checks.same(jitted(*empty), right(*empty), input="a sequence of no steps")
    checks.gradients(jitted, right, *telling, argnums=(0, 1, 2, 3), finite_differences=False)


def unrolled(recurrent, arguments):
    """How many copies of the body the compiler is asked for."""
    equations = jaxprs.walk(jax.make_jaxpr(lambda *arguments: recurrent(*arguments))(*arguments))
    return max((e.params["unroll"] for _, e in equations if e.primitive.name == "scan"), default=1)


def previous(w, u, h, xs):
    return lax.scan(lambda h, x: (jnp.tanh(w @ h + u @ x), h), h, xs)


def forgets(w, u, h, xs):
    last, states = lax.scan(lambda same, x: (same, jnp.tanh(w @ same + u @ x)), h, xs)
    return states[-1], states


exercise = Exercise(
    title="A recurrent loop as a scan",
    stars=2,
    minutes=15,
    why="The program no longer grows with the sequence: this is how every recurrent layer is written in JAX.",
    hints=(
        "The state is handed on, so it is the carry; the steps of the sequence are the inputs of the scan.",
        "The body is a function of `(h, x)` that returns two things: the new carry, and what is to be stacked.",
        "`lax.scan(step, h, xs)`, and `step` returns `h, h` with the new `h`.",
    ),
    solution=solution,
    check=check,
)
