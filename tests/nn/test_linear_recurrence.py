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


LONG = (2, 300, 4)  # time in the middle


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 1), (0.99, 1.0)])
def test_gradients_equal_those_of_a_loop_in_float64(low, high):
    a = jax.random.uniform(jax.random.key(3), LONG, minval=low, maxval=high)
    b, weights = jax.random.normal(jax.random.key(4), (2, *LONG))
    start = jax.random.normal(jax.random.key(5), (2, 4))

    def function(a, b, start, associative):
        h, last = nn.linear_recurrence(a, b, start, associative=associative)
        return jnp.sum(weights * h) + jnp.sum(last)

    # The same backward, by hand: g is the gradient of the state.
    h = np.concatenate([np.asarray(start, "float64")[:, None], loop(a, b, start)], axis=1)
    g, of_a, of_b = np.ones((2, 4)), np.empty(LONG), np.empty(LONG)
    for t in reversed(range(LONG[1])):
        g = g + np.asarray(weights[:, t], "float64")
        of_a[:, t], of_b[:, t] = g * h[:, t], g
        g = g * np.asarray(a[:, t], "float64")
    gradients = [jax.grad(function, (0, 1, 2))(a, b, start, associative) for associative in (False, True)]
    for wanted, scan, tree in zip((of_a, of_b, g), *gradients):
        largest = np.abs(wanted).max()
        for found in (scan, tree):
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * largest)
        np.testing.assert_allclose(scan, tree, rtol=0, atol=1e-5 * largest)


@both_ways
@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (
            (A[:1], B),
            {},
            r"a and b must be of one shape, got float32\[1,9,3\] and float32\[2,9,3\]: jnp.broadcast_to",
        ),
        ((A[:, :1], B), {}, "a and b must be of one shape"),
        ((A[0, 0], B), {}, "a and b must be of one shape"),
        ((A, B[:, :3]), {}, "a and b must be of one shape"),
        (
            (A.tolist(), B),
            {},
            "a must be an array of floating-point or complex numbers, got a list of length 2",
        ),
        ((A, B.astype(int)), {}, r"b must be an array of floating-point .*, got int32\[2,9,3\]: convert it"),
        ((A > 0, B), {}, r"a must be an array of floating-point .*, got bool\[2,9,3\]"),
        ((A, B, 0.0), {}, "initial must be of shape"),
        (
            (A, B, START[:1]),
            {},
            r"initial must be of shape \(2, 3\), that of one step of float32\[2,9,3\], got float32\[1,3\]",
        ),
        ((A, B, START[0]), {}, "initial must be of shape"),
        ((A, B, B[:, :1]), {}, "initial must be of shape"),
        ((A, B, START), {"axis": -3}, r"initial must be of shape \(9, 3\)"),
        ((A, B, START.astype(int)), {}, "initial must be an array of floating-point"),
        ((A, B, START.astype(complex)), {}, "initial must be real, as a and b are, .*: make b complex"),
        ((A, B), {"axis": 1}, "axis must be a negative integer, .*, got 1"),
        ((A, B), {"axis": -2.0}, "axis must be a negative integer, .*, got -2.0"),
        ((A, B), {"axis": -4}, r"axis -4 must be one of a and b, got float32\[2,9,3\]"),
        ((A[0, 0], B[0, 0]), {}, r"axis -2 must be one of a and b, got float32\[3\]"),
    ],
)
def test_what_does_not_fit_is_refused(associative, arguments, options, message):
    with pytest.raises(ValueError, match=f"^linear_recurrence: {message}"):
        nn.linear_recurrence(*arguments, associative=associative, **options)


def test_associative_is_true_or_false():
    with pytest.raises(ValueError, match="^linear_recurrence: associative must be True or False, got 'yes'"):
        nn.linear_recurrence(A, B, associative="yes")


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
