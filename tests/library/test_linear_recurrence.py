"""A linear recurrence equals a loop in float64, by scan and as a tree."""

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest

from mlax_tutorial import nn

A = jax.random.uniform(jax.random.key(0), (2, 9, 3))
B, START = jax.random.normal(jax.random.key(1), A.shape), jax.random.normal(jax.random.key(2), (2, 3))
both_ways = pytest.mark.parametrize("associative", [False, True])


def loop(a, b, state):
    a, b, state = (np.asarray(x, "float64") for x in (a, b, state))
    states = []
    for t in range(a.shape[1]):
        state = a[:, t] * state + b[:, t]
        states.append(state)
    return np.stack(states, 1)


@both_ways
def test_equals_a_loop_in_float64_whole_and_in_parts(associative):
    options = {"associative": associative}
    h, last = nn.linear_recurrence(A, B, START, **options)
    np.testing.assert_allclose(h, loop(A, B, START), rtol=1e-5, atol=1e-5)
    first, state = nn.linear_recurrence(A[:, :4], B[:, :4], START, **options)
    rest, again = nn.linear_recurrence(A[:, 4:], B[:, 4:], state, **options)
    np.testing.assert_allclose(jnp.concatenate([first, rest], 1), h, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(again, last, rtol=1e-5, atol=1e-6)
    other, _ = nn.linear_recurrence(jnp.moveaxis(A, 1, 0), jnp.moveaxis(B, 1, 0), axis=-3, **options)
    np.testing.assert_allclose(jnp.moveaxis(other, 0, 1), loop(A, B, 0 * START), rtol=1e-5, atol=1e-5)


@both_ways
def test_no_steps_hand_the_state_on(associative):
    h, last = nn.linear_recurrence(A[:, :0], B[:, :0], START, associative=associative)
    assert h.shape == (2, 0, 3) and last.tolist() == START.tolist()
    assert not nn.linear_recurrence(A[:, :0], B[:, :0], associative=associative)[1].any()


@both_ways
def test_gradients(associative):
    def function(a, b, start):
        return jnp.sum(jnp.sin(nn.linear_recurrence(a, b, start, associative=associative)[0]))

    jax.test_util.check_grads(function, (A, B, START), order=1, modes=["rev"], atol=1e-2, rtol=1e-2)


@both_ways
def test_states_of_half_precision_are_float32(associative):
    ones = jnp.ones((600, 1), jnp.bfloat16)
    h, last = nn.linear_recurrence(ones, ones, associative=associative)
    assert (
        h.dtype == "bfloat16" and last.dtype == "float32" and last.item() == 600
    )  # in bfloat16, it stops at 256


@both_ways
def test_a_real_input_of_complex_factors_has_complex_states(associative):
    turns = jax.lax.complex(jnp.cos(A), jnp.sin(A))
    h, last = nn.linear_recurrence(turns, B, associative=associative)
    wanted, _ = nn.linear_recurrence(turns, B.astype("complex64"), associative=associative)
    assert h.dtype == last.dtype == "complex64"
    np.testing.assert_allclose(h, wanted, rtol=1e-5)
