"""All distances in one product."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, inputs
from mlax_tutorial.checking.programs import fresh, under
from mlax_tutorial.exercises.vmap._growth import does_not_grow, equations
from mlax_tutorial.inspection import jaxprs


def solution(x, y):
    products = x @ y.T
    squares = jnp.sum(x * x, axis=1)[:, None] + jnp.sum(y * y, axis=1)
    return jnp.maximum(squares - 2 * products, 0)


def all_differences(x, y):
    return jnp.sum((x[:, None] - y) ** 2, axis=-1)


def _by_numpy(x, y):
    return np.sum((np.asarray(x)[:, None] - np.asarray(y)) ** 2, axis=-1)


def check(distances):
    def tables(draw):
        n, m, d = draw(inputs.one_of((1, 4, 2), (3, 1, 5), (2, 3, 1)))
        return draw(inputs.arrays(n, d)), draw(inputs.arrays(m, d))

    def squares(x):
        return jnp.sum(x * x, axis=1)

    telling = [[0.0, 1.0], [2.0, 3.0], [4.0, -1.0]], [[1.0, 1.0], [5.0, 0.5]]
    telling = [jax.device_put(np.array(points, np.float32)) for points in telling]
    recognise = [
        (
            lambda x, y: jnp.sqrt(all_differences(x, y)),
            "These are the distances; their squares are asked for.",
        ),
        (
            lambda x, y: all_differences(x, y).T,
            "This is the transposed table: rows belong to x, columns to y.",
        ),
        (
            lambda x, y: jnp.maximum(squares(x)[:, None] + squares(y) - x @ y.T, 0),
            "The product counts twice: $-2xy$.",
        ),
        (
            lambda x, y: squares(x)[:, None] + squares(y) + 2 * x @ y.T,
            "The sign of the product is wrong: this is $|x + y|^2$.",
        ),
        (
            lambda x, y: jnp.mean((x[:, None] - y) ** 2, axis=-1),
            "This averages over the coordinates; add them up.",
        ),
        (lambda x, y: x @ y.T, "These are the products; the squares of both lengths are missing."),
        (lambda x, y: -2 * x @ y.T, "The squares of both lengths are missing."),
    ]
    checks.values(distances, _by_numpy, examples=[telling], recognise=recognise)
    jitted = checks.works_under_jit(distances, *telling)
    checks.values(jitted, _by_numpy, inputs.together(tables), recognise=recognise)

    n, m, d = 7, 11, 5
    spec = jax.ShapeDtypeStruct((n, d), jnp.float32), jax.ShapeDtypeStruct((m, d), jnp.float32)
    with under("`jax.make_jaxpr`"):
        program = jax.make_jaxpr(fresh(distances))(*spec)
    found = [equation for _, equation in jaxprs.walk(program)]
    names = [equation.primitive.name for equation in found]
    if loops := {"scan", "while"} & set(names):
        raise Failed(f"There is a loop in the jaxpr (`{min(loops)}`); one product does all pairs at once.")
    shapes = [v.aval.shape for equation in found for v in equation.outvars if hasattr(v.aval, "shape")]
    largest = max(shapes, key=lambda shape: np.prod(shape, dtype=int))
    if np.prod(largest, dtype=int) >= n * m * d:
        raise Failed(
            f"On the way there is an array of shape {largest}: every pair of points, coordinate by coordinate. Use the "
            "formula with the product, in which only numbers for each pair occur.",
            input=f"x of shape {(n, d)}, y of shape {(m, d)}",
        )
    count = names.count("dot_general")
    if count != 1:
        more = "The products of all x with all y are one matrix product."
        if count >= n:
            more = "Rows need not be taken one by one: all products together are `x @ y.T`."
        elif count == 2:
            more = "Is the product written, or a function that holds it called, twice? Keep it in a variable."
        elif count:
            more = "Squares need no product of matrices: `jnp.sum(x * x, axis=1)` adds them up."
        raise Failed(f"The jaxpr of your function holds {count} `dot_general`; it should be one. {more}")
    sizes = [equations(distances, np.ones((3, k), np.float32), np.ones((2, k), np.float32)) for k in (2, 20)]
    does_not_grow(sizes, "the number of coordinates", "One matrix product sums over all of them.")
    draw = np.random.default_rng(1)
    wide = [np.float32(draw.integers(-20, 21, (rows, 60))) for rows in (9, 14)]
    checks.same(
        jitted(*wide),
        _by_numpy(*wide),
        rtol=1e-3,
        atol=1.0,
        input="9 and 14 points of 60 coordinates",
    )
    near = [np.float32(100 + 1e-3 * draw.normal(size=(rows, 60))) for rows in (9, 14)]
    got = jitted(*near)
    if (np.asarray(got) < 0).any():
        raise Failed(
            "Some squared distances are below zero: points far from the origin and close to each other, where "
            "the formula loses its digits. `jnp.maximum(…, 0)` puts that right.",
            got=got,
        )
    with checks.says("Points far from the origin lose digits, but no more than the formula does."):
        checks.same(got, _by_numpy(*near), rtol=0, atol=4.0, input="points near 100, 0.001 apart")
        far = [np.float32(100 + draw.normal(size=(rows, 60))) for rows in (9, 14)]
        checks.same(jitted(*far), _by_numpy(*far), rtol=0, atol=4.0, input="points near 100, 1 apart")
    with checks.says("Small distances are distances, too."):
        small = [np.float32(0.02 * draw.normal(size=(rows, 60))) for rows in (9, 14)]
        checks.same(jitted(*small), _by_numpy(*small), rtol=1e-3, atol=1e-5, input="points near the origin")


exercise = Exercise(
    title="All distances in one product",
    stars=2,
    minutes=15,
    why="vmap batches the formula it is given; the formula is yours, and a matrix product is what hardware does best.",
    hints=(
        "Three parts: $|x|^2$ for each row of x, $|y|^2$ for each row of y, and `x @ y.T`.",
        "The shapes are (n,), (m,) and (n, m). The first needs an axis of length one to be added to the last.",
        "Rounding can make the difference of large numbers negative: `jnp.maximum(…, 0)`.",
    ),
    solution=solution,
    check=check,
)
