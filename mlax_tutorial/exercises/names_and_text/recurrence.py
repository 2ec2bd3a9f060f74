"""A linear recurrence by an associative scan."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(a, b, start):
    def combine(first, second):
        return second[0] * first[0], second[0] * first[1] + second[1]

    factors, sums = jax.lax.associative_scan(combine, (a, b))
    return factors * start + sums


A = np.array([[0.5, 2], [0.25, -1], [2, 0.5], [1, 0], [-0.5, 1.5]], np.float32)
B = np.array([[1, -2], [3, 0.5], [-1, 4], [2, 1], [0.5, -1]], np.float32)
START = np.array([2.0, -3.0], np.float32)


def _by_hand(a, b, start, late=False, reverse=False):
    h, states = start, []
    for a_t, b_t in list(zip(a, b))[:: -1 if reverse else 1]:
        h = a_t * (h + b_t) if late else a_t * h + b_t
        states.append(h)
    return np.stack(states[:: -1 if reverse else 1])


def check(recurrence):
    given = {"a": A, "b": B, "start": START}
    got = recurrence(*map(jax.device_put, (A, B, START)))
    expected = _by_hand(A, B, START)
    zero = np.zeros(2, np.float32)
    for wrong, said in [
        (_by_hand(A, B, zero), "The start has no effect: these are the states from zero."),
        (_by_hand(A, B, zero) + START, "The start is added unchanged: it is multiplied by all factors up to each step."),
        (_by_hand(A, B, START, reverse=True), "This runs from the end."),
        (np.cumprod(A, axis=0), "These are the products of the factors alone."),
    ]:  # fmt: skip
        if np.shape(got) == wrong.shape and np.allclose(got, wrong, rtol=1e-4):
            raise Failed(said, input=given, expected=expected, got=got)
    if isinstance(got, (tuple, list)):
        raise Failed(
            "`associative_scan` returns the pairs of all beginnings, products and sums: make the states of them.",
            got=got,
        )
    if np.shape(got) == expected.shape and not np.allclose(got, expected, rtol=1e-4):
        swapped = jax.lax.associative_scan(
            lambda x, y: (x[0] * y[0], x[0] * y[1] + x[1]), (jnp.asarray(A), jnp.asarray(B))
        )
        if np.allclose(got, swapped[0] * START + swapped[1], rtol=1e-4):
            raise Failed(
                "The pairs are combined the wrong way round: the *second* step multiplies what the first one has added.",
                input=given,
                expected=expected,
                got=got,
            )
    checks.same(got, jnp.asarray(expected), input=given, rtol=1e-4, atol=1e-4)
    checks.jaxpr(
        recurrence,
        *map(jax.device_put, (A, B, START)),
        forbids=("scan", "while", "cumsum", "cumprod", "cumlogsumexp"),
    )
    checks.gradients(
        recurrence, solution, *map(jax.device_put, (A, B, START)), argnums=(0, 1, 2), finite_differences=False
    )
    sizes = [
        len(str(jax.make_jaxpr(recurrence)(np.ones((n, 2), np.float32), np.ones((n, 2), np.float32), START)))
        for n in (8, 64)
    ]
    if sizes[1] > 4 * sizes[0]:
        raise Failed(
            "The program grows in proportion to the time: a Python loop is unrolled. `associative_scan` grows with the logarithm."
        )
    for time in (1, 6):
        a, b = np.full((time, 3), 0.5, np.float32), np.ones((time, 3), np.float32)
        start = np.array([0.0, 1.0, 2.0], np.float32)
        checks.same(
            recurrence(*map(jax.device_put, (a, b, start))),
            jnp.asarray(_by_hand(a, b, start)),
            input={"a": a, "b": b, "start": start},
            rtol=1e-4,
        )


exercise = Exercise(
    title="A linear recurrence without a loop",
    stars=2,
    minutes=15,
    why="Pairs (product, sum) are combined in any grouping, and that is all that a tree needs: associativity, not commutativity.",
    hints=(
        "Put two steps into each other: a2 (a1 h + b1) + b2. Which factor has h now, and what is added?",
        "`combine(first, second)` returns `(second[0] * first[0], second[0] * first[1] + second[1])`; the parts are arrays of many steps.",
        "Each result is the map of a whole beginning: the state is `factors * start + sums`.",
    ),
    solution=solution,
    check=check,
)
