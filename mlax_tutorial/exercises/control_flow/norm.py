"""A length whose gradient is no NaN."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, checks, inputs


def solution(x):
    squares = jnp.sum(x * x)
    harmless = jnp.where(squares > 0, squares, 1.0)
    return jnp.where(squares > 0, jnp.sqrt(harmless), 0.0)


def check(norm):
    recognise = [
        (lambda x: jnp.sum(x * x), "This is the square of the length: the root is missing."),
        (lambda x: jnp.sum(jnp.abs(x)), "This is the sum of the sizes, which is another length."),
        (lambda x: jnp.sqrt(jnp.mean(x * x)), "You average the squares; they should be added up."),
        *(
            (
                lambda x, asked=asked: jnp.where(asked(x) == 0, 0.0, jnp.sqrt(jnp.sum(x * x))),
                "A vector that is not zero gets the length 0. Its numbers may add up to 0, and some of them may be 0: ask all of them, "
                "or the sum of the squares.",
            )
            for asked in (jnp.sum, jnp.prod, jnp.max, lambda x: x[0])
        ),
    ]
    x, zeros, short, shortest, long, one, balanced, late, low = jax.device_put(
        [
            np.float32(x)
            for x in (
                [3, 0, -4],
                [0, 0, 0],
                [3e-15, 0, -4e-15],
                [1e-15, 0, 0],
                [3e14, 0, -4e14],
                [-2],
                [2, -2],
                [0, 3, 4],
                [0, -3, -4],
            )
        ]
    )
    examples = [(x,), (one,), (long,), (balanced,), (late,), (low,)]
    checks.values(norm, solution, examples=examples, recognise=recognise)
    zero, small = norm(zeros), norm(short)
    checks.returns(lambda x: zero, zeros, shape=(), dtype=jnp.float32)
    advice = "The length of a zero vector is 0."
    if zero < 1e-3:
        advice = (
            "The length of a zero vector is 0, exactly: add nothing to its square, and put no bound on it."
        )
    with checks.says(advice):
        checks.same(zero, jax.device_put(np.float32(0)), input="x = [0, 0, 0]", rtol=0, atol=0)
    with checks.says("This is wrong for short vectors: add nothing, and put no bound on anything."):
        checks.same(small, solution(short), input=f"x = {short.tolist()}", rtol=1e-4, atol=0)
        checks.same(norm(shortest), solution(shortest), input=f"x = {shortest.tolist()}", rtol=1e-4, atol=0)
    checks.values(norm, solution, inputs.arrays("n", sizes=(1, 3)), recognise=recognise, count=8)
    jitted, right = checks.works_under_jit(norm, x), jax.jit(solution)
    checks.gradients(jitted, right, x)
    for x, advice in (
        (
            zeros,
            "At zero the gradient should be zero. The derivative of the root is infinite there, and a "
            "`where` behind it comes too late: see to it that the root never sees a 0.",
        ),
        (short, "A short vector has a gradient of length 1, as any other."),
    ):
        with checks.says(advice):
            checks.gradients(jitted, right, x, finite_differences=False)
    rows = jax.device_put(np.float32([[0, 0, 0], [3, 0, 4]]))
    checks.works_under_vmap(jitted, rows)
    batched = jax.jit(jax.grad(lambda rows: jax.vmap(jitted)(rows).sum()))
    expected = np.array([[0.0, 0.0, 0.0], [0.6, 0.0, 0.8]], np.float32)
    checks.same(batched(rows), expected, where="in the gradient of a batch", input={"rows": rows})


exercise = Exercise(
    title="A length whose gradient is no NaN",
    stars=2,
    minutes=10,
    why="One zero vector in a batch turns all parameters to NaN in the next update: the double where keeps it from that.",
    hints=(
        "Where does the NaN come from? The derivative of the root at 0 is infinite, and `where` multiplies it by zero.",
        "Two `where`s: one so that the root gets something harmless instead of 0, one to pick the result.",
        "`harmless = jnp.where(squares > 0, squares, 1.0)`",
    ),
    solution=solution,
    check=check,
)
