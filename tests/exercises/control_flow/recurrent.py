"""Answers to the exercise control_flow.recurrent."""

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.control_flow.recurrent import exercise, forgets, previous, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("no `scan` or `while`")
def unrolled(w, u, h, xs):
    states = []
    for x in xs:
        h = jnp.tanh(w @ h + u @ x)
        states.append(h)
    return h, jnp.stack(states)


@answers.wrong("copies the body more often")
def unrolled_later(w, u, h, xs):
    return lax.scan(lambda h, x: (jnp.tanh(w @ h + u @ x),) * 2, h, xs, unroll=True)


@answers.wrong("copies the body more often")
def unrolled_by_halves(w, u, h, xs):
    return lax.scan(lambda h, x: (jnp.tanh(w @ h + u @ x),) * 2, h, xs, unroll=max(1, len(xs) // 2))


answers.wrong("The state before the step")(previous)
answers.wrong("Every step starts from the first state")(forgets)


@answers.wrong("is another product")
def transposed(w, u, h, xs):
    return lax.scan(lambda h, x: (jnp.tanh(h @ w + u @ x),) * 2, h, xs)


@answers.wrong("in the wrong order")
def swapped(w, u, h, xs):
    last, states = solution(w, u, h, xs)
    return states, last


@answers.wrong("Two results are asked for")
def states_only(w, u, h, xs):
    return solution(w, u, h, xs)[1]


@answers.wrong("not for an empty sequence")
def last_of_states(w, u, h, xs):
    states = solution(w, u, h, xs)[1]
    return states[len(states) - 1] if len(states) else jnp.zeros_like(h), states


@answers.wrong("scan body output must be a pair")
def one_result(w, u, h, xs):
    return lax.scan(lambda h, x: jnp.tanh(w @ h + u @ x), h, xs)


@answers.wrong("starts at zero")
def from_zero(w, u, h, xs):
    return solution(w, u, jnp.zeros_like(h), xs)


@answers.wrong("from its end")
def backwards(w, u, h, xs):
    return lax.scan(lambda h, x: (jnp.tanh(w @ h + u @ x),) * 2, h, xs, reverse=True)


@answers.wrong("`tanh` twice")
def twice(w, u, h, xs):
    return lax.scan(lambda h, x: (jnp.tanh(w @ h + u @ x), jnp.tanh(w @ h + u @ x)), h, xs)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def writes_into_an_array(w, u, h, xs):
    def body(i, state):
        h, states = state
        h = jnp.tanh(w @ h + u @ xs[i])
        return h, states.at[i].set(h)

    if len(xs) == 0:
        return h, jnp.zeros((0, len(h)))
    return lax.fori_loop(0, len(xs), body, (h, jnp.zeros((len(xs), len(h)))))


@answers.right
@jax.jit
def inputs_first(w, u, h, xs):
    def step(h, y):
        h = jnp.tanh(jnp.dot(w, h) + y)
        return h, h

    return lax.scan(step, h, xs @ u.T, unroll=1)


@answers.right
def four_at_a_time(w, u, h, xs):
    return lax.scan(lambda h, x: (jnp.tanh(w @ h + u @ x),) * 2, h, xs, unroll=4)


@answers.right
def carries_a_dict(w, u, h, xs):
    def step(carry, x):
        h = jnp.tanh(w @ carry["h"] + u @ x)
        return {"h": h}, h

    last, states = lax.scan(jax.checkpoint(step), {"h": h}, xs)
    return last["h"], states


@answers.wrong()
def stops_the_gradient(w, u, h, xs):
    return lax.scan(lambda h, x: (jnp.tanh(w @ lax.stop_gradient(h) + u @ x),) * 2, h, xs)
