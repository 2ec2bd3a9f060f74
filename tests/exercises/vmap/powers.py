"""Answers to the exercise vmap.powers."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.exercises.vmap.powers import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("far more than 100 rounds")
def one_by_one(matrices, exponents):
    def power(matrix, exponent):
        return lax.fori_loop(0, exponent, lambda _, result: result @ matrix, jnp.eye(len(matrix)))

    return jax.vmap(power)(matrices, exponents)


@answers.wrong("each element to the power")
def of_elements(matrices, exponents):
    return matrices ** exponents[:, None, None]


@answers.wrong("TypeError")
def static(matrices, exponents):
    return jax.vmap(jnp.linalg.matrix_power)(matrices, exponents)


@answers.wrong("grows with the batch")
def by_python(matrices, exponents):
    return jnp.concatenate(
        [solution(matrices[i : i + 1], exponents[i : i + 1]) for i in range(len(matrices))]
    )


@answers.wrong("TracerBoolConversionError")
def asking(matrices, exponents):
    result = []
    for matrix, exponent in zip(matrices, exponents, strict=True):
        power = jnp.eye(len(matrix))
        while exponent > 0:
            if exponent % 2:
                power = power @ matrix
            matrix, exponent = matrix @ matrix, exponent // 2
        result.append(power)
    return jnp.stack(result)


@answers.wrong("each should stop at its own")
def of_the_largest(matrices, exponents):
    return solution(matrices, jnp.full_like(exponents, exponents.max()))


def powers_with(start=None, body=None, done=None):
    """A wrong answer like the solution, but for one part."""

    def own_body(state):
        result, square, rest = state
        return jnp.where(rest % 2 == 1, result @ square, result), square @ square, rest // 2

    def powers(matrices, exponents):
        def power(matrix, exponent):
            first = jnp.eye(len(matrix)) if start is None else start(matrix)
            state = first, matrix, exponent
            return lax.while_loop(done or (lambda state: state[2] > 0), body or own_body, state)[0]

        return jax.vmap(power)(matrices, exponents)

    return powers


answers.wrong("one power too many")(powers_with(start=lambda matrix: matrix))
answers.wrong("whose bit is set belong to")(
    powers_with(body=lambda state: (state[0] @ state[1], state[1] @ state[1], state[2] // 2))
)
answers.wrong("Only the largest square is left")(
    powers_with(body=lambda state: (state[1], state[1] @ state[1], state[2] // 2))
)
answers.wrong("the highest bit")(powers_with(done=lambda state: state[2] > 1))


@answers.wrong("as often as the exponent says")
def doubling(matrices, exponents):
    def power(matrix, exponent):
        return lax.fori_loop(0, exponent, lambda _, square: square @ square, matrix)

    return jax.vmap(power)(matrices, exponents)


answers.wrong("one power too few")(
    lambda matrices, exponents: solution(matrices, exponents - (exponents > 0))
)


@answers.wrong("`return` missing")
def no_return(matrices, exponents):
    solution(matrices, exponents)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def bits_in_a_scan(matrices, exponents):
    def power(matrix, exponent):
        def round(state, bit):
            result, square = state
            return (jnp.where((exponent >> bit) & 1, result @ square, result), square @ square), None

        start = jnp.eye(len(matrix)), matrix
        return lax.scan(round, start, jnp.arange(31))[0][0]

    return jax.vmap(power)(matrices, exponents)


@answers.right
@jax.jit
def one_loop_for_the_batch(matrices, exponents):
    def body(state):
        result, square, rest = state
        odd = (rest % 2 == 1)[:, None, None]
        return jnp.where(odd, result @ square, result), square @ square, rest // 2

    start = jnp.broadcast_to(jnp.eye(matrices.shape[-1]), matrices.shape), matrices, exponents
    return lax.while_loop(lambda state: jnp.any(state[2] > 0), body, start)[0]


@answers.right
def with_cond(matrices, exponents):
    @jax.vmap
    def power(matrix, exponent):
        def body(state):
            result, square, rest = state
            result = lax.cond(rest % 2 == 1, lambda: result @ square, lambda: result)
            return result, square @ square, rest >> 1

        return lax.while_loop(lambda s: s[2] != 0, body, (jnp.eye(len(matrix)), matrix, exponent))[0]

    return power(matrices, exponents)


@answers.wrong()
def too_few_bits(matrices, exponents):
    return solution(matrices, exponents % 2**20)


@answers.wrong()
def without_the_last_bit(matrices, exponents):
    return solution(matrices, exponents % 2**30)


@answers.wrong()
def through_numpy(matrices, exponents):
    powers = [np.linalg.matrix_power(m, int(e)) for m, e in zip(np.asarray(matrices), exponents, strict=True)]
    return jnp.asarray(np.stack(powers))


answers.wrong("TypeError")(powers_with(start=lambda matrix: jnp.eye(2)))

answers.equivalent(
    "jnp.eye(len(matrix), dtype=matrix.dtype) -> jnp.eye(len(matrix))",
    because="the task names no dtype, so matrices have the default one, and `jnp.eye` has it, too",
)
