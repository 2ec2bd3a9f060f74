"""Right answers of unusual style to the exercises of Control flow pass, and wrong ones that look right do not."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.exercises import control_flow

from .right_answers import FAILED, PASSED, Answers

right, wrong = Answers(PASSED), Answers(FAILED)


# recorded

COUNTS = {"a": 5, "b": 0, "c": 2, "d": 1, "e": 1, "f": 2}
right(control_flow.recorded)({name: np.int64(count) for name, count in COUNTS.items()})
right(control_flow.recorded)({name: jnp.array(count) for name, count in COUNTS.items()})
wrong(control_flow.recorded)({name: True for name in COUNTS})


# recurrent


@right(control_flow.recurrent)
def writes_into_an_array(w, u, h, xs):
    def body(i, state):
        h, states = state
        h = jnp.tanh(w @ h + u @ xs[i])
        return h, states.at[i].set(h)

    if len(xs) == 0:
        return h, jnp.zeros((0, len(h)))
    return lax.fori_loop(0, len(xs), body, (h, jnp.zeros((len(xs), len(h)))))


@right(control_flow.recurrent)
@jax.jit
def inputs_first(w, u, h, xs):
    def step(h, y):
        h = jnp.tanh(jnp.dot(w, h) + y)
        return h, h

    return lax.scan(step, h, xs @ u.T, unroll=1)


@right(control_flow.recurrent)
def carries_a_dict(w, u, h, xs):
    def step(carry, x):
        h = jnp.tanh(w @ carry["h"] + u @ x)
        return {"h": h}, h

    last, states = lax.scan(jax.checkpoint(step), {"h": h}, xs)
    return last["h"], states


@wrong(control_flow.recurrent)
def stops_the_gradient(w, u, h, xs):
    return lax.scan(lambda h, x: (jnp.tanh(w @ lax.stop_gradient(h) + u @ x),) * 2, h, xs)


# newton


@right(control_flow.newton)
def value_and_slope(f, x):
    def going(state):
        x, rounds = state
        return jnp.logical_and(jnp.abs(f(x)) > 1e-5, rounds < 50)

    def body(state):
        value, slope = jax.value_and_grad(f)(state[0])
        return state[0] - value / slope, state[1] + 1

    return lax.while_loop(going, body, (x, jnp.int32(0)))


@right(control_flow.newton)
def keeps_the_value(f, x):
    def body(state):
        x, value, rounds = state
        x = x - value / jax.grad(f)(x)
        return x, f(x), rounds + 1

    x, _, rounds = lax.while_loop(lambda s: (abs(s[1]) > 1e-5) & (s[2] < 50), body, (x, f(x), 0))
    return x, rounds


@right(control_flow.newton)
def counts_in_eight_bits(f, x):
    body = lambda s: (s[0] - f(s[0]) / jax.grad(f)(s[0]), s[1] + jnp.uint8(1))  # noqa: E731
    return lax.while_loop(lambda s: (jnp.abs(f(s[0])) > 1e-5) & (s[1] < 50), body, (x, jnp.uint8(0)))


@wrong(control_flow.newton)
def stops_at_forty_nine(f, x):
    going = lambda s: (jnp.abs(f(s[0])) > 1e-5) & (s[1] < 49)  # noqa: E731
    return lax.while_loop(going, lambda s: (s[0] - f(s[0]) / jax.grad(f)(s[0]), s[1] + 1), (x, 0))


# cumulative


@right(control_flow.cumulative)
def in_a_match(x, way):
    match way:
        case "scan":
            first = x[0]
            rest = lax.scan(lambda p, v: (p * v, p * v), first, x[1:])[1]
            return jnp.concatenate([x[:1], rest])
        case "fori_loop":
            return lax.fori_loop(1, x.shape[0], lambda i, y: y.at[i].set(y[i - 1] * x[i]), x)
        case _:
            return lax.associative_scan(lambda a, b: b * a, x)


@right(control_flow.cumulative)
def from_a_table(x, way):
    return {
        "scan": lambda: lax.scan(lambda p, v: (v * p,) * 2, jnp.ones_like(x[0]), x)[1],
        "fori_loop": lambda: lax.fori_loop(1, len(x), lambda i, y: y.at[i].multiply(y[i - 1]), x),
        "associative_scan": lambda: jax.jit(lax.associative_scan, static_argnums=0)(lax.mul, x),
    }[way]()


@wrong(control_flow.cumulative)
def always_the_tree(x, way):
    return lax.associative_scan(jnp.multiply, x)


# settle


@right(control_flow.settle)
def by_cond(a):
    def step(i, x):
        return lax.cond(jnp.abs(x * x - a) > 1e-4 * a, lambda x: 0.5 * (x + a / x), lambda x: x, x)

    return lax.fori_loop(0, 20, step, a)


@right(control_flow.settle)
def with_a_flag(a):
    def body(state, _):
        x, done = state
        done = done | (jnp.abs(x * x - a) <= 1e-4 * a)
        return (jnp.where(done, x, (x + a / x) / 2), done), None

    (x, _), _ = lax.scan(body, (a, jnp.array(False)), None, 20)
    return x


@wrong(control_flow.settle)
def too_patient(a):
    def body(x, _):
        return jnp.where(jnp.abs(x * x - a) > 1e-6 * a, 0.5 * (x + a / x), x), None

    return lax.scan(body, a, length=20)[0]


# norm


@right(control_flow.norm)
def by_cond_of_any(x):
    return lax.cond(jnp.any(x != 0), lambda x: jnp.sqrt(jnp.sum(x * x)), lambda x: 0.0 * jnp.sum(x), x)


@right(control_flow.norm)
def harmless_vector(x):
    zero = jnp.all(x == 0)
    return jnp.where(zero, 0.0, jnp.linalg.norm(jnp.where(zero, jnp.ones_like(x), x)))


@jax.custom_jvp
def with_its_own_rule(x):
    return jnp.sqrt(jnp.sum(x * x))


@with_its_own_rule.defjvp
def _rule(primals, tangents):
    (x,), (t,) = primals, tangents
    length = with_its_own_rule(x)
    return length, jnp.vdot(jnp.where(length > 0, x / jnp.where(length > 0, length, 1.0), 0.0), t)


right(control_flow.norm)(lambda x: with_its_own_rule(x))


@wrong(control_flow.norm)
def gradient_of_one_at_zero(x):
    squares = jnp.sum(x * x)
    return jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1.0)), jnp.sum(x))


test_right_answers_pass, test_wrong_answers_fail = right.test(), wrong.test()
