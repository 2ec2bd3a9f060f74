"""The exercises of the chapter vmap."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, Mistake, checks, inputs
from mlax_tutorial.checking.programs import fresh, under
from mlax_tutorial.inspection import jaxprs

# What several checks share


def _equations(function, *arguments):
    """How many equations the function records, inner ones included."""
    with under("`jax.make_jaxpr`"):
        program = jax.make_jaxpr(fresh(function))(*arguments)
    return sum(1 for _ in jaxprs.walk(program))


def _does_not_grow(sizes, what, cure="Let `jax.vmap` do it."):
    if sizes[-1] > sizes[0] + 8:
        raise Failed(
            f"The program grows with {what}: a Python loop is recorded round by round. {cure}",
            shown=[("equations", " and ".join(map(str, sizes)))],
        )


# shapes

_shapes = {
    "a": (4,),
    "b": (4,),
    "c": "error",
    "d": (4, 3, 3),
    "e": (3, 3, 4),
    "f": (4, 5),
    "g": (5, 4),
    "h": (4, 3),
}


def _check_shapes(given):
    x, y, z = jnp.ones((4, 3)), jnp.ones((5, 3)), jnp.ones((3, 4))
    calls = {
        "a": lambda: jax.vmap(jnp.dot, (0, None))(x, y[0]),
        "b": lambda: jax.vmap(jnp.dot, (0, 1))(x, z),
        "c": lambda: jax.vmap(jnp.dot)(x, y),
        "d": lambda: jax.vmap(jnp.outer)(x, x),
        "e": lambda: jax.vmap(jnp.outer, out_axes=2)(x, x),
        "f": lambda: jax.vmap(jax.vmap(jnp.dot, (None, 0)), (0, None))(x, y),
        "g": lambda: jax.vmap(jax.vmap(jnp.dot, (0, None)), (None, 0))(x, y),
        "h": lambda: jax.vmap(lambda v: v.T, in_axes=1)(z),
    }
    expected = {}
    for name, call in calls.items():
        try:
            expected[name] = jax.eval_shape(call).shape
        except ValueError:
            expected[name] = "error"
    if isinstance(given, dict):  # a list is as good as a tuple
        given = {name: tuple(shape) if isinstance(shape, list) else shape for name, shape in given.items()}
    comma = "A shape is a tuple, also of a single axis: `(4,)`, with a comma."
    a_number = "A dot product of two vectors is a number, so only the axis of the examples is left."
    four_and_five = "One map goes over both at once, row by row, and four rows do not go with five."
    outer_first = (
        "The outer map's axis comes first. Which argument does the outer one map over, and how long is it?"
    )
    why = {
        "a": {
            4: comma,
            (4, 3): a_number,
            (): "There are four rows in `x`, and each gives a number.",
            "error": "`y[0]` is shared by all four rows: `None` says so.",
        },
        "b": {
            4: comma,
            "error": "The second argument is mapped over its axis 1, so that each example gets a column.",
            (4, 4): "One map goes over both at once: row 0 with column 0, and so on, not each with each.",
            (3,): "The mapped axes are those of length 4; the axes of length 3 are summed over.",
        },
        "c": {(4, 5): four_and_five, (4,): four_and_five, (5,): four_and_five, (20,): four_and_five},
        "d": {
            (4, 3): "The outer product of two vectors is a table, here of (3, 3), for each of the four.",
            (4, 4): "The outer product is of two rows, of length 3 each; it is done for each of the four.",
            (4, 4, 3, 3): "One map goes over both arguments at once: four examples, not sixteen.",
            (3, 3): "There are four of these tables.",
            "error": "`jnp.outer` gets two vectors of length 3, which is what it wants.",
        },
        "e": {
            (
                4,
                3,
                3,
            ): "`out_axes` says where the axis of the examples stands in the result. Axis 2 is the last.",
            (3, 4, 3): "`out_axes` counts from 0: axis 2 is the last of three.",
            "error": "The result has three axes, and number 2 is one of them.",
        },
        "f": {
            (5, 4): outer_first,
            "error": "The two maps are separate: one over `x` with `y` shared, one over `y` with a row of `x` shared.",
            (4,): "Two maps, two axes in the result.",
        },
        "g": {
            (4, 5): outer_first,
            "error": "The two maps are separate: one over `x` with `y` shared, one over `y` with a row of `x` shared.",
            (5,): "Two maps, two axes in the result.",
        },
        "h": {
            (
                3,
            ): "That is one column; there are four of them, and the axis that counts them stands in front.",
            (
                3,
                4,
            ): "Inside, `v` is one column, a vector, and `.T` leaves a vector as it is. What `vmap` itself does "
            "is to take the examples from axis 1 and to put them in front.",
            "error": "A vector may be transposed: nothing happens to it.",
        },
    }
    checks.answers(given, expected, why)


shapes = Exercise(
    title="Which shape comes out?",
    stars=1,
    minutes=5,
    why="Take the mapped axis away from each input, apply the function, put an axis into the result: that is all of vmap.",
    hints=(
        "Three steps: take the mapped axis away from each input; ask what the function makes of what is left; "
        "put an axis in front of that, or where `out_axes` says.",
        "The mapped axes must be equally long. Where two maps are nested, the outer one's axis comes first.",
    ),
    solution=_shapes,
    check=_check_shapes,
    mistakes=(
        Mistake(_shapes | {"a": (4, 3)}, says="dot product of two vectors is a number"),
        Mistake(_shapes | {"a": 4}, says="with a comma"),
        Mistake(_shapes | {"d": (4, 3)}, says="of two vectors is a table"),
        Mistake(_shapes | {"h": (3,)}, says="there are four of them"),
        Mistake(_shapes | {"b": (4, 4)}, says="not each with each"),
        Mistake(_shapes | {"b": "error"}, says="each example gets a column"),
        Mistake(_shapes | {"c": (4, 5)}, says="four rows do not go with five"),
        Mistake(_shapes | {"d": (4, 4, 3, 3)}, says="four examples, not sixteen"),
        Mistake(_shapes | {"e": (4, 3, 3)}, says="Axis 2 is the last"),
        Mistake(_shapes | {"f": (5, 4), "g": (4, 5)}, says="The outer map's axis comes first"),
        Mistake(_shapes | {"h": (3, 4)}, says="leaves a vector as it is"),
        Mistake(list(_shapes.values()), says="a dict is asked for"),
    ),
)


# distances


def _distances(x, y):
    products = x @ y.T
    squares = jnp.sum(x * x, axis=1)[:, None] + jnp.sum(y * y, axis=1)
    return jnp.maximum(squares - 2 * products, 0)


def _all_differences(x, y):
    return jnp.sum((x[:, None] - y) ** 2, axis=-1)


def _check_distances(distances):
    def tables(draw):
        x = draw(inputs.arrays("n", "d", sizes=(1, 2, 3, 5)))
        return x, draw(inputs.arrays("n", x.shape[1], sizes=(1, 2, 4)))

    def squares(x):
        return jnp.sum(x * x, axis=1)

    telling = jnp.array([[0.0, 1.0], [2.0, 3.0], [4.0, -1.0]]), jnp.array([[1.0, 1.0], [5.0, 0.5]])
    recognise = [
        (
            lambda x, y: jnp.sqrt(_all_differences(x, y)),
            "These are the distances; their squares are asked for.",
        ),
        (
            lambda x, y: _all_differences(x, y).T,
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
    checks.values(distances, _all_differences, examples=[telling], recognise=recognise)
    checks.values(distances, _all_differences, inputs.together(tables), recognise=recognise)
    checks.works_under_jit(distances, *telling)

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
    sizes = [_equations(distances, jnp.ones((3, k)), jnp.ones((2, k))) for k in (2, 20)]
    _does_not_grow(sizes, "the number of coordinates", "One matrix product sums over all of them.")
    draw = np.random.default_rng(1)
    wide = [jnp.asarray(draw.integers(-20, 21, (rows, 60)), jnp.float32) for rows in (9, 14)]
    checks.same(
        distances(*wide),
        _all_differences(*wide),
        rtol=1e-3,
        atol=1.0,
        input="9 and 14 points of 60 coordinates",
    )
    near = jnp.asarray(np.random.default_rng(0).normal(size=(40, 6)) + 100, jnp.float32)
    if bool((distances(near, near) < 0).any()):
        raise Failed(
            "Some squared distances are below zero: points far from the origin and close to each other, where "
            "the formula loses its digits. `jnp.maximum(…, 0)` puts that right.",
            got=distances(near, near),
        )


def _distances_unclipped(x, y):
    return jnp.sum(x * x, axis=1)[:, None] + jnp.sum(y * y, axis=1) - 2 * x @ y.T


def _distances_by_maps(x, y):
    def one(x, y):
        return jnp.sum((x - y) ** 2)

    return jax.vmap(jax.vmap(one, (None, 0)), (0, None))(x, y)


def _distances_norms_by_products(x, y):
    squares = jnp.einsum("nd,nd->n", x, x)[:, None] + jnp.einsum("md,md->m", y, y)
    return jnp.maximum(squares - 2 * x @ y.T, 0)


def _distances_row_by_row(x, y):
    rows = [jnp.sum(a * a) + jnp.sum(y * y, axis=1) - 2 * y @ a for a in x]
    return jnp.maximum(jnp.stack(rows), 0)


def _distances_scanned(x, y):
    return lax.map(lambda a: jnp.maximum(jnp.sum(a * a) + jnp.sum(y * y, axis=1) - 2 * y @ a, 0), x)


def _distances_by_coordinates(x, y):
    total = 0 * (x @ y.T)
    for k in range(x.shape[1]):
        total += (x[:, k][:, None] - y[:, k]) ** 2
    return total


def _distances_capped(x, y):
    return jnp.clip(_distances(x, y), 0, 1e4)


def _distances_twice(x, y):
    return jnp.where(_distances_unclipped(x, y) < 0, 0, _distances_unclipped(x, y))


def _distances_rooted(x, y):
    return jnp.sqrt(_distances(x, y))


def _distances_once(x, y):
    return jnp.maximum(jnp.sum(x * x, axis=1)[:, None] + jnp.sum(y * y, axis=1) - x @ y.T, 0)


def _distances_no_return(x, y):
    _distances(x, y)


distances = Exercise(
    title="All distances in one product",
    stars=2,
    minutes=15,
    why="vmap batches the formula it is given; the formula is yours, and a matrix product is what hardware does best.",
    hints=(
        "Three parts: $|x|^2$ for each row of x, $|y|^2$ for each row of y, and `x @ y.T`.",
        "The shapes are (n,), (m,) and (n, m). The first needs an axis of length one to be added to the last.",
        "Rounding can make the difference of large numbers negative: `jnp.maximum(…, 0)`.",
    ),
    solution=_distances,
    check=_check_distances,
    mistakes=(
        Mistake(_all_differences, says="coordinate by coordinate"),
        Mistake(_distances_by_maps, says="coordinate by coordinate"),
        Mistake(_distances_norms_by_products, says="Squares need no product of matrices"),
        Mistake(_distances_row_by_row, says="Rows need not be taken one by one"),
        Mistake(_distances_by_coordinates, says="grows with the number of coordinates"),
        Mistake(_distances_capped, says="points of 60 coordinates"),
        Mistake(_distances_twice, says="Keep it in a variable"),
        Mistake(_distances_scanned, says="There is a loop in the jaxpr"),
        Mistake(_distances_unclipped, says="below zero"),
        Mistake(_distances_rooted, says="their squares are asked for"),
        Mistake(_distances_once, says="The product counts twice"),
        Mistake(lambda x, y: _distances(y, x), says="the transposed table"),
        Mistake(lambda x, y: _distances(x, -y), says="this is $|x + y|^2$"),
        Mistake(lambda x, y: -2 * x @ y.T, says="squares of both lengths are missing"),
        Mistake(_distances_no_return, says="`return` missing"),
    ),
)


# powers


def _powers(matrices, exponents):
    def power(matrix, exponent):
        def body(state):
            result, square, rest = state
            result = jnp.where(rest % 2 == 1, result @ square, result)
            return result, square @ square, rest // 2

        one = jnp.eye(len(matrix), dtype=matrix.dtype)
        return lax.while_loop(lambda state: state[2] > 0, body, (one, matrix, exponent))[0]

    return jax.vmap(power)(matrices, exponents)


def _powers_in_numpy(matrices, exponents):
    powers = [
        np.linalg.matrix_power(np.asarray(m, np.float64), int(e))
        for m, e in zip(matrices, exponents, strict=True)
    ]
    return jnp.asarray(np.stack(powers), jnp.float32)


def _cycle(k):
    return jnp.roll(jnp.eye(k), 1, axis=0)


def _check_powers(powers):
    general = jnp.array([[1.0, 1.0], [0.0, 2.0]]), jnp.array([[0.5, -1.0], [2.0, 0.0]])
    matrices = jnp.stack([*general, general[0], general[1], general[0], general[1]])
    exponents = jnp.array([1, 2, 3, 5, 0, 6])

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
    checks.values(powers, _powers_in_numpy, examples=[(matrices, exponents)], recognise=recognise, count=0)
    cycles = jnp.stack([_cycle(5), _cycle(5), _cycle(5)])
    large = jnp.array([1_000_000_003, 999_999, 2])
    try:
        checks.same(
            powers(cycles, large), _powers_in_numpy(cycles, large), input={"exponents": large.tolist()}
        )
    except Failed as failure:
        if "limit of iterations" in failure.message:
            failure.message = (
                "This is right for small exponents, but for a billion it takes far more than 100 rounds: square the "
                "matrix in each round, so that the exponent is halved."
            )
        raise
    sizes = [_equations(powers, jnp.stack([_cycle(3)] * n), jnp.arange(n)) for n in (2, 9)]
    _does_not_grow(sizes, "the batch")
    checks.works_under_jit(powers, matrices, exponents)


def _powers_with(start=None, body=None, done=None):
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


def _powers_one_by_one(matrices, exponents):
    def power(matrix, exponent):
        return lax.fori_loop(0, exponent, lambda _, result: result @ matrix, jnp.eye(len(matrix)))

    return jax.vmap(power)(matrices, exponents)


def _powers_of_elements(matrices, exponents):
    return matrices ** exponents[:, None, None]


def _powers_static(matrices, exponents):
    return jax.vmap(jnp.linalg.matrix_power)(matrices, exponents)


def _powers_by_python(matrices, exponents):
    return jnp.concatenate([_powers(matrices[i : i + 1], exponents[i : i + 1]) for i in range(len(matrices))])


def _powers_of_the_largest(matrices, exponents):
    return _powers(matrices, jnp.full_like(exponents, exponents.max()))


def _powers_doubling(matrices, exponents):
    def power(matrix, exponent):
        return lax.fori_loop(0, exponent, lambda _, square: square @ square, matrix)

    return jax.vmap(power)(matrices, exponents)


def _powers_asking(matrices, exponents):
    result = []
    for matrix, exponent in zip(matrices, exponents, strict=True):
        power = jnp.eye(len(matrix))
        while exponent > 0:
            if exponent % 2:
                power = power @ matrix
            matrix, exponent = matrix @ matrix, exponent // 2
        result.append(power)
    return jnp.stack(result)


def _powers_no_return(matrices, exponents):
    _powers(matrices, exponents)


powers = Exercise(
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
    solution=_powers,
    check=_check_powers,
    iterations=100,
    mistakes=(
        Mistake(_powers_one_by_one, says="far more than 100 rounds"),
        Mistake(_powers_of_elements, says="each element to the power"),
        Mistake(_powers_static, says="TypeError"),
        Mistake(_powers_by_python, says="grows with the batch"),
        Mistake(_powers_asking, says="TracerBoolConversionError"),
        Mistake(_powers_of_the_largest, says="each should stop at its own"),
        Mistake(_powers_with(start=lambda matrix: matrix), says="one power too many"),
        Mistake(
            _powers_with(body=lambda state: (state[0] @ state[1], state[1] @ state[1], state[2] // 2)),
            says="whose bit is set belong to",
        ),
        Mistake(
            _powers_with(body=lambda state: (state[1], state[1] @ state[1], state[2] // 2)),
            says="Only the largest square is left",
        ),
        Mistake(_powers_with(done=lambda state: state[2] > 1), says="the highest bit"),
        Mistake(_powers_doubling, says="as often as the exponent says"),
        Mistake(
            lambda matrices, exponents: _powers(matrices, exponents - (exponents > 0)),
            says="one power too few",
        ),
        Mistake(_powers_no_return, says="`return` missing"),
    ),
)


# clipped


def _clipped(loss, params, x, labels, bound):
    def one(x, label):
        gradient = jax.grad(loss)(params, x, label)
        norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient)))
        scale = jnp.minimum(1.0, bound / jnp.maximum(norm, 1e-12))
        return jax.tree.map(lambda leaf: scale * leaf, gradient)

    return jax.tree.map(lambda leaf: leaf.mean(axis=0), jax.vmap(one)(x, labels))


def _each_gradient(loss, params, x, labels):
    return jax.vmap(jax.grad(loss), (None, 0, 0))(params, x, labels)


def _norms(gradients):
    """The norm of each example's gradient."""
    leaves = jax.tree.leaves(gradients)
    return jnp.sqrt(sum(jnp.sum(leaf.reshape(len(leaf), -1) ** 2, axis=1) for leaf in leaves))


def _scaled(gradients, scale):
    return jax.tree.map(lambda leaf: scale.reshape(-1, *[1] * (leaf.ndim - 1)) * leaf, gradients)


def _mean(gradients):
    return jax.tree.map(lambda leaf: leaf.mean(axis=0), gradients)


def _clipped_the_mean(loss, params, x, labels, bound):
    gradient = _mean(_each_gradient(loss, params, x, labels))
    norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient)))
    return jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, bound / jnp.maximum(norm, 1e-12)), gradient)


def _clipped_by(rule):
    """A wrong answer, made of what happens to the gradients of all examples."""

    def clipped(loss, params, x, labels, bound):
        return rule(_each_gradient(loss, params, x, labels), bound)

    return clipped


def _safe(norm):
    return jnp.maximum(norm, 1e-12)


_clipped_leaf_by_leaf = _clipped_by(
    lambda g, bound: _mean(
        jax.tree.map(lambda leaf: _scaled(leaf, jnp.minimum(1.0, bound / _safe(_norms(leaf)))), g)
    )
)
_clipped_by_one_norm = _clipped_by(
    lambda g, bound: _mean(
        jax.tree.map(
            lambda leaf: (
                leaf
                * jnp.minimum(1.0, bound / _safe(jnp.sqrt(sum(jnp.sum(x**2) for x in jax.tree.leaves(g)))))
            ),
            g,
        )
    )
)
_clipped_norms_added = _clipped_by(
    lambda g, bound: _mean(
        _scaled(g, jnp.minimum(1.0, bound / _safe(sum(_norms(leaf) for leaf in jax.tree.leaves(g)))))
    )
)
_clipped_larger = _clipped_by(lambda g, bound: _mean(_scaled(g, jnp.maximum(1.0, bound / _safe(_norms(g))))))
_clipped_small_dropped = _clipped_by(
    lambda g, bound: _mean(
        _scaled(g, jnp.where(_norms(g) < 1e-3, 0.0, jnp.minimum(1.0, bound / _safe(_norms(g)))))
    )
)
_clipped_always = _clipped_by(lambda g, bound: _mean(_scaled(g, bound / _safe(_norms(g)))))
_clipped_elements = _clipped_by(
    lambda g, bound: _mean(jax.tree.map(lambda leaf: jnp.clip(leaf, -bound, bound), g))
)
_clipped_summed = _clipped_by(
    lambda g, bound: jax.tree.map(
        lambda leaf: leaf.sum(axis=0), _scaled(g, jnp.minimum(1.0, bound / _safe(_norms(g))))
    )
)
_clipped_squared = _clipped_by(
    lambda g, bound: _mean(_scaled(g, jnp.minimum(1.0, bound / _safe(_norms(g)) ** 2)))
)
_clipped_upside_down = _clipped_by(lambda g, bound: _mean(_scaled(g, jnp.minimum(1.0, _norms(g) / bound))))
_clipped_never = _clipped_by(lambda g, bound: _mean(g))
_clipped_dropping = _clipped_by(lambda g, bound: _mean(_scaled(g, (_norms(g) <= bound) * 1.0)))
_clipped_not_averaged = _clipped_by(lambda g, bound: _scaled(g, jnp.minimum(1.0, bound / _safe(_norms(g)))))
_clipped_nan = _clipped_by(
    lambda g, bound: _mean(
        _scaled(g, jnp.where(_norms(g) > bound, 1.0, 0.0) * bound / _norms(g) + (_norms(g) <= bound))
    )
)


def _clipped_padded(loss, params, x, labels, bound):
    gradients = _each_gradient(loss, params, x, labels)
    return _mean(_scaled(gradients, jnp.minimum(1.0, bound / (_norms(gradients) + 1.0))))


def _clipped_first_five(loss, params, x, labels, bound):
    return _clipped(loss, params, x[:5], labels[:5], bound)


def _clipped_loop(loss, params, x, labels, bound):
    each = [_clipped(loss, params, x[i : i + 1], labels[i : i + 1], bound) for i in range(len(x))]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves).mean(axis=0), *each)


def _clipped_no_return(loss, params, x, labels, bound):
    _clipped(loss, params, x, labels, bound)


def _check_clipped(clipped):
    seen = []

    def loss(params, x, label):
        seen.append((jnp.shape(x), jnp.shape(label)))
        score = jnp.sum(x * params["layer"]["kernel"][:, 0]) + params["layer"]["bias"]
        return (params["scale"] * score - label) ** 2 / 2

    params = {
        "layer": {"kernel": jnp.array([[1.0], [-2.0], [0.5]]), "bias": jnp.float32(0.25)},
        "scale": jnp.float32(1.5),
    }
    x = jnp.array([[1.0, 0.0, 0.0], [0.0, 1.0, 2.0], [2.0, -1.0, 0.0], [0.1, 0.0, 0.2], [-1.0, 1.0, 1.0]])
    labels = jnp.array([2.0, 0.0, -1.0, 0.5, 3.0])

    def plain(params, x, label):  # not watched
        score = jnp.sum(x * params["layer"]["kernel"][:, 0]) + params["layer"]["bias"]
        return (params["scale"] * score - label) ** 2 / 2

    bound = 1.0
    shown = {"input": f"a loss of five examples, bound = {bound}"}
    expected = _clipped(plain, params, x, labels, bound)
    got = clipped(loss, params, x, labels, bound)
    if got is None:
        raise Failed("Your function returned None: is a `return` missing?", **shown)
    if not seen:
        raise Failed("Your function does not call `loss`.")
    for x_shape, label_shape in seen:
        if x_shape == x.shape or label_shape == labels.shape:
            raise Failed(
                "`loss` is called with the whole batch, but it is for one example: take its gradient, and map that."
            )
    for wrong, advice in (
        (
            _clipped_the_mean,
            "The mean is clipped; clip each example's gradient, and average afterwards.",
        ),
        (
            _clipped_leaf_by_leaf,
            "Each leaf is clipped by itself. A gradient is scaled as a whole: one norm over all its leaves.",
        ),
        (
            _clipped_always,
            "Small gradients are scaled up to the bound. They should stay as they are: `jnp.minimum(1, …)`.",
        ),
        (
            _clipped_by_one_norm,
            "One norm is taken over all examples together; each example's gradient has its own.",
        ),
        (
            _clipped_norms_added,
            "The norms of the leaves are added up: the norm of the whole is the root of the sum of their *squares*.",
        ),
        (
            _clipped_larger,
            "Here the larger of 1 and bound / norm is the scale: `jnp.minimum`, not `jnp.maximum`.",
        ),
        (_clipped_elements, "Each number is clipped by itself; a gradient keeps its direction, so scale it."),
        (_clipped_summed, "This is the sum over examples; the mean is asked for."),
        (_clipped_squared, "The norm is the square *root* of the sum of squares: it is missing."),
        (_clipped_upside_down, "The scale is upside down: bound / norm, not norm / bound."),
        (_clipped_never, "Nothing is clipped."),
        (_clipped_dropping, "Gradients over the bound are dropped; scale them down to the bound instead."),
        (_clipped_not_averaged, "The gradients of all examples are returned; average them."),
        (_clipped_padded, "Something is added to the norm before the division; only a zero needs care."),
    ):
        if _alike(got, wrong(plain, params, x, labels, bound)):
            raise Failed(advice, expected=expected, got=got, **shown)
    checks.same(got, expected, rtol=1e-3, atol=1e-5, **shown)

    for many in (100.0, 0.01):
        checks.same(
            clipped(plain, params, x, labels, many),
            _clipped(plain, params, x, labels, many),
            rtol=1e-3,
            atol=1e-6,
            input=f"the same loss, bound = {many}",
        )
    flat = jnp.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])

    def linear(params, x, label):
        return label * jnp.sum(params * x)

    got = clipped(linear, jnp.ones(3), flat, jnp.ones(2), 0.5)
    expected = jnp.array([0.25, 0.0, 0.0])
    if bool(jnp.isnan(jax.tree.leaves(got)[0]).any()):
        raise Failed(
            "The gradient of one example is zero, and the result is nan: 0 / 0. Keep the divisor away from zero, "
            "with `jnp.maximum(norm, 1e-12)`, say.",
            got=got,
            expected=expected,
        )
    checks.same(got, expected, input="a bare array as params; the second example has the gradient 0")
    small = 1e-4 * flat
    checks.same(
        clipped(linear, jnp.ones(3), small, jnp.ones(2), 0.5),
        small.mean(axis=0),
        rtol=1e-3,
        atol=1e-8,
        input="gradients far below the bound, which stay as they are",
    )
    draw = np.random.default_rng(2)
    more = jnp.asarray(draw.normal(size=(17, 3)), jnp.float32), jnp.asarray(draw.normal(size=17), jnp.float32)
    checks.same(
        clipped(plain, params, *more, bound),
        _clipped(plain, params, *more, bound),
        rtol=1e-3,
        atol=1e-5,
        input="the same loss, of seventeen examples",
    )
    sizes = []
    for n in (2, 9):
        arguments = params, jnp.ones((n, 3)), jnp.ones(n), 1.0
        sizes.append(_equations(lambda *rest: clipped(plain, *rest), *arguments))
    _does_not_grow(sizes, "the batch")


def _alike(one, two):
    try:
        checks.same(one, two, rtol=1e-4, atol=1e-6)
    except Failed:
        return False
    return True


clipped = Exercise(
    title="Clip the gradient of each example",
    stars=2,
    minutes=15,
    why="Each example's say is bounded, not the average's: that is the heart of differentially private training.",
    hints=(
        "Write a function for one example: its gradient, its norm, its scale. Then `jax.vmap` it over `x` and `labels`.",
        "The norm is over all leaves: the root of the sum, over `jax.tree.leaves(gradient)`, of `jnp.sum(leaf**2)`.",
        "`jnp.minimum(1, bound / jnp.maximum(norm, 1e-12))` is the scale; `jax.tree.map` applies it, and later the mean.",
    ),
    solution=_clipped,
    check=_check_clipped,
    mistakes=(
        Mistake(_clipped_the_mean, says="The mean is clipped"),
        Mistake(_clipped_leaf_by_leaf, says="one norm over all its leaves"),
        Mistake(_clipped_by_one_norm, says="One norm is taken over all examples"),
        Mistake(_clipped_norms_added, says="The norms of the leaves are added up"),
        Mistake(_clipped_larger, says="not `jnp.maximum`"),
        Mistake(_clipped_small_dropped, says="gradients far below the bound"),
        Mistake(_clipped_first_five, says="seventeen examples"),
        Mistake(_clipped_always, says="scaled up to the bound"),
        Mistake(_clipped_elements, says="keeps its direction"),
        Mistake(_clipped_summed, says="This is the sum over examples"),
        Mistake(_clipped_squared, says="square *root*"),
        Mistake(_clipped_upside_down, says="upside down"),
        Mistake(_clipped_never, says="Nothing is clipped"),
        Mistake(_clipped_dropping, says="are dropped"),
        Mistake(_clipped_not_averaged, says="average them"),
        Mistake(_clipped_nan, says="the result is nan"),
        Mistake(_clipped_padded, says="added to the norm"),
        Mistake(_clipped_loop, says="grows with the batch"),
        Mistake(_clipped_no_return, says="`return` missing"),
    ),
)


# contrast


def _contrast(query, key):
    keys = lax.all_gather(key, "batch")  # (examples, d)
    return -jax.nn.log_softmax(keys @ query)[lax.axis_index("batch")]


def _contrast_of_tables(queries, keys):
    scores = queries @ keys.T
    return -jnp.diagonal(jax.nn.log_softmax(scores, axis=1))


def _check_contrast(contrast):
    def run(query, key):
        return jax.vmap(lambda query, key: contrast(query, key), axis_name="batch")(query, key)

    draw = np.random.default_rng(0)
    queries, keys = (jnp.asarray(draw.integers(-4, 5, (4, 3)) / 4, jnp.float32) for _ in range(2))
    recognise = [
        (
            lambda q, k: jnp.diagonal(jax.nn.softmax(q @ k.T, axis=1)),
            "These are the probabilities; the loss is minus their logarithm.",
        ),
        (
            lambda q, k: -jnp.diagonal(jax.nn.softmax(q @ k.T, axis=1)),
            "This is minus the probability; the loss is minus its *logarithm*.",
        ),
        (
            lambda q, k: _contrast_of_tables(q / jnp.sqrt(q.shape[1]), k),
            "The products are divided by the root of d, as in attention; here they are taken as they are.",
        ),
        (
            lambda q, k: (
                jax.nn.logsumexp(jnp.where(jnp.eye(len(q)) > 0, -jnp.inf, q @ k.T), axis=1)
                - jnp.sum(q * k, 1)
            ),
            "The sum leaves out the example's own key; the softmax is over *all* keys.",
        ),
        (
            lambda q, k: jnp.diagonal(jax.nn.log_softmax(q @ k.T, axis=1)),
            "The sign is wrong: the loss is *minus* the logarithm.",
        ),
        (
            lambda q, k: -jax.nn.log_softmax(q @ k.T, axis=1)[:, 0],
            "All examples look at place 0. Each has its own: `lax.axis_index`.",
        ),
        (
            lambda q, k: -jnp.diagonal(jax.nn.log_softmax(k @ q.T, axis=1)),
            "The softmax goes over all queries for one key; it should go over all keys for one query.",
        ),
        (
            lambda q, k: jax.nn.logsumexp(jnp.sum(q * k, 1)) - jnp.sum(q * k, 1),
            "The sum goes over each example's product with its *own* key. All keys are needed: `lax.all_gather`.",
        ),
        (
            lambda q, k: -jnp.sum(q * k, 1),
            "The other keys do not occur: the softmax is over all keys of the batch.",
        ),
        (
            lambda q, k: jnp.full(len(q), jnp.mean(_contrast_of_tables(q, k))),
            "This is the mean over the batch; each example returns its own loss.",
        ),
        (
            lambda q, k: -jax.nn.log_softmax(q @ k.T, axis=1),
            "This is a row of numbers, one for each key; the loss is the one at the example's own place.",
        ),
    ]
    checks.values(run, _contrast_of_tables, examples=[(queries, keys)], count=0, recognise=recognise)
    for n in (1, 7):
        more = [jnp.asarray(draw.integers(-4, 5, (n, 2)) / 4, jnp.float32) for _ in range(2)]
        checks.same(run(*more), _contrast_of_tables(*more), input={"queries": more[0], "keys": more[1]})
    large = 20 * queries, 20 * keys
    got = run(*large)
    if not bool(jnp.isfinite(got).all()):
        raise Failed(
            "For large products the result is not finite: `exp` overflows. `jax.nn.log_softmax` and "
            "`jax.nn.logsumexp` keep it in bounds.",
            got=got,
        )
    checks.same(got, _contrast_of_tables(*large), rtol=1e-3, atol=1e-2, input="twenty times these vectors")
    sizes = [_equations(run, jnp.ones((n, 3)), jnp.ones((n, 3))) for n in (2, 20)]
    _does_not_grow(sizes, "the batch", "`lax.all_gather` gives all keys at once.")
    checks.gradients(run, _contrast_of_tables, queries, keys, argnums=(0, 1), finite_differences=False)


def _contrast_first(query, key):
    return -jax.nn.log_softmax(lax.all_gather(key, "batch") @ query)[0]


def _contrast_queries(query, key):
    return -jax.nn.log_softmax(lax.all_gather(query, "batch") @ key)[lax.axis_index("batch")]


def _contrast_own_pairs(query, key):
    score = query @ key
    return jax.nn.logsumexp(lax.all_gather(score, "batch")) - score


def _contrast_positive(query, key):
    return -_contrast(query, key)


def _contrast_probability(query, key):
    return jax.nn.softmax(lax.all_gather(key, "batch") @ query)[lax.axis_index("batch")]


def _contrast_minus_probability(query, key):
    return -_contrast_probability(query, key)


def _contrast_as_attention(query, key):
    return _contrast(query / jnp.sqrt(len(query)), key)


def _contrast_without_own(query, key):
    scores = lax.all_gather(key, "batch") @ query
    others = jnp.where(jnp.arange(len(scores)) == lax.axis_index("batch"), -jnp.inf, scores)
    return jax.nn.logsumexp(others) - query @ key


def _contrast_unstable(query, key):
    weights = jnp.exp(lax.all_gather(key, "batch") @ query)
    return -jnp.log(weights[lax.axis_index("batch")] / weights.sum())


def _contrast_mean(query, key):
    return lax.pmean(_contrast(query, key), "batch")


def _contrast_row(query, key):
    return -jax.nn.log_softmax(lax.all_gather(key, "batch") @ query)


def _contrast_alone(query, key):
    return -query @ key


def _contrast_unnamed(query, key):
    return -jax.nn.log_softmax(lax.all_gather(key, "examples") @ query)[lax.axis_index("examples")]


def _contrast_for_a_batch(query, key):
    return -jnp.diagonal(jax.nn.log_softmax(query @ key.T, axis=1))


def _contrast_loop(query, key):
    size = lax.axis_size("batch")
    scores = jnp.stack([lax.all_gather(key, "batch")[i] @ query for i in range(size)])
    return -jax.nn.log_softmax(scores)[lax.axis_index("batch")]


def _contrast_no_return(query, key):
    _contrast(query, key)


contrast = Exercise(
    title="A loss that compares each with all",
    stars=3,
    minutes=20,
    why="Losses that compare examples are written for one of them and an axis name; over devices the same collectives communicate.",
    hints=(
        "`lax.all_gather(key, 'batch')` is the table of all keys, of shape (examples, d).",
        "`jax.nn.log_softmax(keys @ query)` has an entry for each key; which one is the example's own?",
        "`lax.axis_index('batch')` is the example's number. Mind the sign.",
    ),
    solution=_contrast,
    check=_check_contrast,
    mistakes=(
        Mistake(_contrast_first, says="All examples look at place 0"),
        Mistake(_contrast_queries, says="over all queries for one key"),
        Mistake(_contrast_own_pairs, says="with its *own* key"),
        Mistake(_contrast_positive, says="The sign is wrong"),
        Mistake(_contrast_probability, says="These are the probabilities"),
        Mistake(_contrast_minus_probability, says="minus its *logarithm*"),
        Mistake(_contrast_as_attention, says="as in attention"),
        Mistake(_contrast_without_own, says="leaves out the example's own"),
        Mistake(_contrast_unstable, says="`exp` overflows"),
        Mistake(_contrast_mean, says="This is the mean over the batch"),
        Mistake(_contrast_row, says="a row of numbers"),
        Mistake(_contrast_alone, says="The other keys do not occur"),
        Mistake(_contrast_unnamed, says="unbound axis name"),
        Mistake(_contrast_for_a_batch, says="diagonal"),
        Mistake(_contrast_loop, says="grows with the batch"),
        Mistake(_contrast_no_return, says="`return` missing"),
    ),
)


# sweep


def _sweep(train, keys, rates):
    over_keys = jax.vmap(train, in_axes=(0, None))
    return jax.vmap(over_keys, in_axes=(None, 0))(keys, rates)


def _check_sweep(sweep):
    calls = []

    def plain(key, rate):
        weights = jax.random.normal(key, (2,))
        return {"loss": rate * jnp.sum(weights**2), "weights": weights - rate}

    def train(key, rate):
        calls.append((jnp.shape(key), jnp.shape(rate)))
        if calls[-1] != ((), ()):
            return {"loss": jnp.zeros(()), "weights": jnp.zeros(2)}
        return plain(key, rate)

    keys, rates = jax.random.split(jax.random.key(0), 3), jnp.array([0.1, 0.5])
    expected = _sweep(plain, keys, rates)
    shown = {"input": "3 keys, rates = [0.1, 0.5], and a `train` that returns a dict"}
    got = sweep(train, keys, rates)
    if got is None:
        raise Failed("Your function returned None: is a `return` missing?", **shown)
    if not calls:
        raise Failed("Your function does not call `train`.")
    for key_shape, rate_shape in calls:
        if key_shape != ():
            raise Failed(f"`train` is called with {key_shape[0]} keys at once; it takes one.")
        if rate_shape != ():
            raise Failed(f"`train` is called with {rate_shape[0]} rates at once; it takes one.")
    if len(calls) > 1:
        raise Failed(
            f"`train` was run {len(calls)} times by Python for this table. Mapped over both arguments it is traced once."
        )
    for wrong, advice in (
        (
            lambda: jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), expected),
            "The axes are swapped: rates first, keys second. The axis of the outer map comes first.",
        ),
        (
            lambda: jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), expected),
            "The table has been flattened: the result has an axis for the rates and one for the keys.",
        ),
        (
            lambda: jax.vmap(jax.vmap(plain, (0, None)), (None, 0))(keys[jnp.array([0, 0, 0])], rates),
            "All runs of a rate are equal: the first key is used for all of them.",
        ),
        (
            lambda: jax.vmap(jax.vmap(plain, (0, None)), (None, 0))(keys, rates[jnp.array([0, 0])]),
            "The first rate is used in all runs.",
        ),
        (
            lambda: expected["loss"],
            "Only a part of what `train` returns is handed on; return all its leaves.",
        ),
    ):
        if _alike(got, wrong()):
            raise Failed(advice, **shown)
    checks.same(got, expected, **shown)
    more = jax.random.split(jax.random.key(1), 2), jnp.array([0.1, 0.2, 0.3, 0.4])
    number = lambda key, rate: rate + jax.random.uniform(key)  # noqa: E731
    checks.same(
        sweep(number, *more), _sweep(number, *more), input="2 keys, 4 rates, a `train` that returns a number"
    )
    same = jax.random.split(jax.random.key(1), 2), jnp.array([0.1, 0.2])
    checks.same(sweep(plain, *same), _sweep(plain, *same), input="2 keys and 2 rates")
    for what, tables in (("the number of rates", ((2, 2), (2, 9))), ("the number of keys", ((2, 2), (9, 2)))):
        sizes = [
            _equations(lambda *both: sweep(plain, *both), jax.random.split(jax.random.key(1), k), jnp.ones(r))
            for k, r in tables
        ]
        _does_not_grow(sizes, what)


def _sweep_swapped(train, keys, rates):
    return jax.vmap(jax.vmap(train, (None, 0)), (0, None))(keys, rates)


def _sweep_loop(train, keys, rates):
    runs = [[train(key, rate) for key in keys] for rate in rates]
    rows = [jax.tree.map(lambda *leaves: jnp.stack(leaves), *row) for row in runs]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)


def _sweep_half_loop(train, keys, rates):
    rows = [jax.vmap(train, (0, None))(keys, rate) for rate in rates]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)


def _sweep_loop_of_jit(train, keys, rates):
    return _sweep_loop(jax.jit(train), keys, rates)


def _sweep_half_loop_of_jit(train, keys, rates):
    fast = jax.jit(jax.vmap(train, (0, None)))
    rows = [fast(keys, rate) for rate in rates]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *rows)


def _sweep_pairs(train, keys, rates):
    return jax.vmap(train)(keys, rates)


def _sweep_flat(train, keys, rates):
    return jax.vmap(train)(jnp.tile(keys, len(rates)), jnp.repeat(rates, len(keys)))


def _sweep_one_key(train, keys, rates):
    return _sweep(train, keys[jnp.zeros(len(keys), int)], rates)


def _sweep_one_rate(train, keys, rates):
    return _sweep(train, keys, jnp.full_like(rates, rates[0]))


def _sweep_keys_only(train, keys, rates):
    return jax.vmap(train, (0, None))(keys, rates)


def _sweep_rates_only(train, keys, rates):
    return jax.vmap(train, (None, 0))(keys, rates)


def _sweep_part(train, keys, rates):
    result = _sweep(train, keys, rates)
    return result["loss"] if isinstance(result, dict) else result


def _sweep_no_return(train, keys, rates):
    _sweep(train, keys, rates)


sweep = Exercise(
    title="All rates times all keys, in one program",
    stars=2,
    minutes=10,
    why="A grid of experiments is two maps of one training function, and the function need not know.",
    hints=(
        "First one map: over the keys, with the rate shared. What are its `in_axes`?",
        "Map the result again, over the rates, with the keys shared. The outer map's axis comes first.",
    ),
    solution=_sweep,
    check=_check_sweep,
    mistakes=(
        Mistake(_sweep_swapped, says="The axes are swapped"),
        Mistake(_sweep_loop, says="was run 6 times"),
        Mistake(_sweep_half_loop, says="was run 2 times"),
        Mistake(_sweep_loop_of_jit, says="grows with the number of rates"),
        Mistake(_sweep_half_loop_of_jit, says="grows with the number of rates"),
        Mistake(_sweep_pairs, says="inconsistent sizes"),
        Mistake(_sweep_flat, says="has been flattened"),
        Mistake(_sweep_one_key, says="the first key is used for all"),
        Mistake(_sweep_one_rate, says="The first rate is used"),
        Mistake(_sweep_keys_only, says="2 rates at once"),
        Mistake(_sweep_rates_only, says="3 keys at once"),
        Mistake(_sweep_part, says="Only a part of what"),
        Mistake(_sweep_no_return, says="`return` missing"),
    ),
)
