"""Each matrix to its own power."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.vmap._growth import does_not_grow, equations


def solution(matrices, exponents):
    def power(matrix, exponent):
        def body(state):
            result, square, rest = state
            result = jnp.where(rest % 2 == 1, result @ square, result)
            return result, square @ square, rest // 2

        one = jnp.eye(len(matrix), dtype=matrix.dtype)
        return lax.while_loop(lambda state: state[2] > 0, body, (one, matrix, exponent))[0]

    return jax.vmap(power)(matrices, exponents)


def _in_numpy(matrices, exponents):
    matrices = np.asarray(matrices, np.float64)
    powers = [np.linalg.matrix_power(m, int(e)) for m, e in zip(matrices, np.asarray(exponents), strict=True)]
    return jax.device_put(np.float32(np.stack(powers)))


def _thirds(number):
    """Matrices whose third power is the identity, so that all powers are exact, and every bit of an exponent counts."""
    return jax.device_put(np.float32([[[0, 1, 0], [0, 0, 1], [1, 0, 0]]] * number))


def check(powers):
    general = [[1.0, 1.0], [0.0, 2.0]], [[0.5, -1.0], [2.0, 0.0]]
    matrices = jax.device_put(np.float32([*general, *general, *general]))
    exponents = jax.device_put(np.int32([1, 2, 3, 5, 0, 6]))

    def each(rule):
        return lambda matrices, exponents: jnp.stack(
            [rule(m, int(e)) for m, e in zip(matrices, exponents, strict=True)]
        )

    def power(m, e):
        return jnp.asarray(np.linalg.matrix_power(np.asarray(m, np.float64), e), jnp.float32)

    recognise = [
        (lambda m, e: m ** e[:, None, None], "This raises each element to the power; multiply matrices."),
        (
            each(lambda m, e: power(m, max(e, 1))),
            "The power 0 of a matrix is the identity, `jnp.eye(k)`: begin with it.",
        ),
        (each(lambda m, e: power(m, e + 1)), "This is one power too many: begin with the identity."),
        (
            each(lambda m, e: power(m, max(e - 1, 0))),
            "This is one power too few: the first round must count, too.",
        ),
        (
            lambda m, e: jnp.stack([power(x, int(e.max())) for x in m]),
            "All matrices get the largest exponent: each should stop at its own.",
        ),
        (
            each(lambda m, e: power(m, e - (1 << e.bit_length() - 1) if e else 0)),
            "The last round is missing: the highest bit of the exponent is never multiplied in. Go on until nothing "
            "is left.",
        ),
        (
            each(lambda m, e: power(m, 2 ** int(e).bit_length() - 1)),
            "Every square is multiplied in; only those whose bit is set belong to the exponent.",
        ),
        (
            each(lambda m, e: power(m, 2 ** max(int(e).bit_length() - 1, 0)) if e else power(m, 0)),
            "Only the largest square is left: multiply those squares together whose bits are set.",
        ),
        (
            each(lambda m, e: power(m, 2**e)),
            "This squares as often as the exponent says: the power is $2^n$ and not $n$.",
        ),
    ]
    checks.values(powers, _in_numpy, examples=[(matrices, exponents)], recognise=recognise, count=0)
    thirds = _thirds(7)
    large = jax.device_put(np.int32([1_000_000_003, 999_998, 2, 1, 0, 999_999_999, 2**31 - 1]))
    try:
        checks.same(powers(thirds, large), _in_numpy(thirds, large), input={"exponents": large.tolist()})
    except Failed as failure:
        if "limit of iterations" in failure.message:
            failure.message = (
                "This is right for small exponents, but for a billion it takes far more than 100 rounds: square the "
                "matrix in each round, so that the exponent is halved."
            )
        raise
    sizes = [equations(powers, _thirds(n), np.arange(n, dtype=np.int32)) for n in (2, 9)]
    does_not_grow(sizes, "the batch")
    checks.works_under_jit(powers, matrices, exponents)


exercise = Exercise(
    title="Each matrix to its own power",
    stars=3,
    minutes=20,
    why="A loop of unequal lengths is written for one example; vmap lets it run until the last is done and keeps the rest.",
    hints=(
        "Write `power(matrix, exponent)` for one matrix, with `lax.while_loop`, then `jax.vmap(power)`.",
        "The state is (result, square, rest): from (identity, matrix, exponent) until rest is 0.",
        "In each round: if `rest % 2 == 1`, the result is multiplied by the square (`jnp.where`); the square is squared; "
        "rest is halved, `rest // 2`.",
    ),
    solution=solution,
    check=check,
    iterations=100,
)
