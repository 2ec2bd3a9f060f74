"""Loops that never end, in every place where one can stand, are stopped and reported."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial.inspection.jaxprs import LoopLimitError, limit_loops

LIMIT = 1000


def forever(x):
    return jax.lax.while_loop(lambda x: jnp.all(x > -1), lambda x: x * 0.5 + 1, x)


def ends(x):
    return jax.lax.while_loop(lambda x: jnp.all(x < 100), lambda x: x + 1, x)


def bounds_traced(n):
    return jax.lax.fori_loop(0, n, lambda i, x: x + i, 0)


@jax.custom_jvp
def own_rule(x):
    return forever(x)


own_rule.defjvps(lambda tangent, answer, x: tangent)


@jax.custom_vjp
def own_backward(x):
    return forever(x)


own_backward.defvjp(lambda x: (forever(x), None), lambda _, cotangent: (cotangent,))

ENDLESS = {
    "plain": forever,
    "jit": jax.jit(forever),
    "jit around": jax.jit(lambda x: jax.jit(forever)(x) + 1),
    "second of two": lambda x: forever(ends(x)),
    "first of two": lambda x: ends(forever(x)),
    "scan": lambda x: jax.lax.scan(lambda carry, _: (forever(carry), None), x, None, length=3)[0],
    "cond": lambda x: jax.lax.cond(x > -5, forever, ends, x),
    "cond without operands": lambda x: jax.lax.cond(x > -5, lambda: forever(x), lambda: x),
    "in while": lambda x: jax.lax.while_loop(lambda x: x < 9, lambda x: forever(x) + 1, x),
    "in the condition": lambda x: jax.lax.while_loop(lambda x: forever(x) < 1, lambda x: x + 1, x),
    "both": lambda x: jax.lax.while_loop(lambda x: x > -1, forever, x),
    "three deep": lambda x: jax.lax.while_loop(
        lambda x: x > -1, lambda x: jax.lax.while_loop(lambda x: x > -1, forever, x), x
    ),
    "fresh inner loop": lambda x: jax.lax.while_loop(
        lambda x: x > -1, lambda x: x + jax.lax.while_loop(lambda i: i >= 0, lambda i: i * 0.5, 1.0), x
    ),
    "vmap": lambda x: jax.vmap(forever)(jnp.arange(3.0) + x),
    "vmap, one of three": lambda x: jax.vmap(
        lambda x: jax.lax.while_loop(lambda x: x < 0.5, lambda x: x * x, x)
    )(jnp.float32([1.0, 2.0, 0.25]) + x * 0),
    "checkpoint": jax.checkpoint(forever),
    "custom_jvp": own_rule,
    "custom_vjp": own_backward,
    "grad of custom_vjp": jax.grad(own_backward),
    "jvp": lambda x: jax.jvp(forever, (x,), (x,)),
    "fori with a traced bound": lambda x: bounds_traced(jnp.int32(x + 2**30)),
    "long fori": lambda x: jax.lax.fori_loop(0, 2**31 - 1, lambda i, x: x + i, x),
    "long fori in while": lambda x: ends(jax.lax.fori_loop(0, 2**31 - 1, lambda i, x: x + i, x)),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_loop_is_stopped_and_reported(name):
    with pytest.raises(LoopLimitError, match=r"1,000"):
        limit_loops(ENDLESS[name], LIMIT)(1.0)


ENDING = {
    "while": (ends, 1.0),
    "nested": (lambda x: jax.lax.while_loop(lambda x: x < 300, lambda x: ends(x) + 50, x), 1.0),
    "vmap": (jax.vmap(ends), jnp.arange(4.0)),
    "vmap of nested": (jax.vmap(lambda x: jax.lax.while_loop(lambda x: x < 300, lambda x: ends(x) + x, x)), jnp.ones(4)),
    "fori": (lambda x: jax.lax.fori_loop(0, LIMIT, lambda i, x: x + i, x), 1),
    "fori with a traced bound": (bounds_traced, LIMIT),
    "not entered": (ends, 200.0),
    "scan over many": (lambda x: jax.lax.scan(lambda c, x: (c + x, x), 0.0, x)[0], jnp.ones(5000)),
    "pytree": (
        lambda x: jax.lax.while_loop(lambda s: s["i"] < 5, lambda s: {"i": s["i"] + 1, "x": s["x"] * 2}, {"i": 0, "x": x}),
        jnp.ones(2),
    ),
    "key": (lambda key: jax.random.key_data(jax.lax.while_loop(
        lambda key: jax.random.uniform(key) < 0.9, lambda key: jax.random.split(key)[0], key)), jax.random.key(1)),
}  # fmt: skip


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("name", ENDING)
def test_a_loop_that_ends_is_left_alone(name, jit):
    fun, x = ENDING[name]
    got = limit_loops(jax.jit(fun) if jit else fun, LIMIT)(x)
    jax.tree.map(np.testing.assert_array_equal, got, fun(x))


def test_the_limit_is_exact():
    def steps(n):
        return jax.lax.while_loop(lambda i: i < n, lambda i: i + 1, 0)

    assert limit_loops(steps, 7)(7) == 7
    with pytest.raises(LoopLimitError, match="within 7 iterations"):
        limit_loops(steps, 7)(8)


def test_a_call_does_not_remember_the_last():
    limited = limit_loops(lambda x: jax.lax.while_loop(lambda x: x < 1, lambda x: x * 2, x), 50)
    with pytest.raises(LoopLimitError):
        limited(0.0)
    assert limited(0.25) == 1.0


def test_differentiating_what_is_limited():
    fun = limit_loops(lambda x: jax.lax.while_loop(lambda x: x < 100, lambda x: x * x, x), LIMIT)
    assert jax.jvp(fun, (3.0,), (1.0,))[1] == 8 * 3**7
    with pytest.raises(LoopLimitError):
        jax.jvp(fun, (0.5,), (1.0,))
    with pytest.raises(LoopLimitError):
        jax.grad(limit_loops(own_backward, LIMIT))(1.0)


def test_a_limit_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        limit_loops(ends, 0)
