"""What is looked at in every function that passes its check: its derivative, and its floats."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Failed, checks

X, Y = jnp.arange(1.0, 4.0), jnp.array([0.5, 1.5, -2.0])
PRODUCT = functools.partial(checks.values, reference=lambda x, y: x * y, examples=[(X, Y)])


def verdict(grade, answer, check=PRODUCT, solution=lambda x, y: x * y, **options):
    outcome = grade(answer, check, solution=solution, **options)
    return outcome.text if outcome.status != "passed" else "passed"


def test_a_lost_gradient_is_refused_and_the_argument_named(grade):
    assert verdict(grade, lambda x, y: y * x) == "passed"
    assert "no gradient reaches `y`" in verdict(grade, lambda x, y: x * jax.lax.stop_gradient(y))
    assert "no gradient reaches `x`" in verdict(grade, jax.jit(lambda a, b: jax.lax.stop_gradient(a) * b))
    assert "no gradient reaches `x`" in verdict(grade, lambda x, y: (4 * x).astype(int) / 4 * y)


def test_in_the_bodies_of_loops_and_branches_too(grade):
    def loops(x, y, change=lambda y: y):
        return jax.lax.scan(lambda c, pair: (c, pair[0] * change(pair[1])), 0, (x, y))[1]

    def branches(x, y, change=lambda y: y):
        return jax.lax.cond(x[0] > 0, lambda: x * change(y), lambda: change(y) * x)

    stop = jax.lax.stop_gradient
    for function in (loops, branches):
        assert verdict(grade, function) == "passed"
        assert "no gradient reaches `y`" in verdict(grade, functools.partial(function, change=stop))


def test_what_the_solution_does_not_differentiate_need_not_be(grade):
    def stops(x, y):
        return x * jax.lax.stop_gradient(y)

    assert verdict(grade, lambda x, y: x * y, solution=stops) == "passed"
    assert verdict(grade, stops, differentiable=False) == "passed"


def test_a_rounding_on_the_way_is_refused(grade):
    """These numbers are exact in float16, so that no comparison of values can see it."""

    def rounds(x, y, dtype=jnp.float16):
        return jax.jit(lambda x: x.astype(dtype).astype(x.dtype))(x) * y

    assert "goes through `float16`" in verdict(grade, rounds)
    assert "goes through `bfloat16`" in verdict(grade, functools.partial(rounds, dtype=jnp.bfloat16))
    assert verdict(grade, rounds, solution=rounds) == "passed"


def test_half_precision_is_no_rounding_where_it_is_given(grade):
    half = X.astype(jnp.bfloat16)

    def check(double):
        checks.same(double(half), 2 * half)

    def wide(x):
        return (2 * x.astype(jnp.float32)).astype(x.dtype)

    for answer, solution in ((lambda x: x + x, wide), (wide, lambda x: x + x)):
        assert verdict(grade, answer, check, solution) == "passed"


def test_floats_that_are_neither_given_nor_returned_are_no_rounding(grade):
    key = jax.random.key(0)

    def check(order):
        if sorted(np.asarray(order(key, 5)).tolist()) != list(range(5)):
            raise Failed("No order.")

    assert (
        verdict(
            grade,
            lambda key, n: jnp.argsort(jax.random.uniform(key, (n,))),
            check,
            lambda key, n: jax.random.permutation(key, n),
        )
        == "passed"
    )


def test_what_cannot_be_traced_is_let_alone(grade):
    """A check that asks for ``jax.jit`` says so itself."""
    assert verdict(grade, lambda x, y: jnp.asarray(np.array([float(a) * float(b) for a, b in zip(x, y)]))) == "passed"  # fmt: skip


def test_calls_with_keywords_and_trees_of_arrays(grade):
    def solution(params, *, scale):
        return params["w"] * scale

    def check(scaled):
        checks.same(scaled({"w": X}, scale=jnp.float32(2)), 2 * X)

    assert verdict(grade, lambda params, *, scale: scale * params["w"], check, solution) == "passed"
    lost = verdict(
        grade, lambda params, *, scale: jax.lax.stop_gradient(scale) * params["w"], check, solution
    )
    assert "no gradient reaches `scale`" in lost
    lost = verdict(
        grade, lambda params, *, scale: scale * jax.lax.stop_gradient(params["w"]), check, solution
    )
    assert "no gradient reaches `params`" in lost
