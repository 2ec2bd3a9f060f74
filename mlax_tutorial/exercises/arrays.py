"""The exercises of the chapter Arrays."""

import functools
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, Mistake, checks, inputs, reader
from mlax_tutorial.inspection import jaxprs

# dtypes

_dtypes = {
    "a": "float32",
    "b": "bfloat16",
    "c": "float32",
    "d": "float16",
    "e": "float32",
    "f": "int16",
    "g": "float32",
    "h": "float32",
}


def _check_dtypes(given):
    half, brain = jnp.ones(3, jnp.float16), jnp.ones(3, jnp.bfloat16)
    asked = {
        "a": jnp.arange(3) * 2.5,
        "b": brain * 2.5,
        "c": brain * np.float32(2.5),
        "d": jnp.arange(3) + half,
        "e": jnp.asarray(np.array([1.0, 2.0])),
        "f": jnp.ones(3, jnp.uint8) + jnp.ones(3, jnp.int8),
        "g": jnp.arange(3) / 1,
        "h": half + brain,
    }
    numpy_says = "That is NumPy's answer. In JAX"
    why = {
        "a": {
            "int32": "An integer array times 2.5 is not whole: the kind changes from integer to floating.",
            "float64": f"{numpy_says} the default float has 32 bits.",
        },
        "b": {
            "float32": "2.5 is a Python number, so it is weak: it takes the dtype of the array that it meets.",
            "float64": "2.5 is a Python number, so it is weak: it takes the dtype of the array that it meets.",
        },
        "c": {
            "bfloat16": "A NumPy scalar has a dtype of its own and is as strong as an array: only Python's numbers "
            "are weak."
        },
        "d": {
            "float64": f"{numpy_says} an integer array, however wide, never widens a floating one.",
            "float32": "An integer array, however wide, never widens a floating one.",
            "int32": "Integer and floating give floating.",
        },
        "e": {"float64": f"{numpy_says} 64-bit arrays become 32-bit ones on the way in."},
        "f": {
            "uint8": "uint8 has no negative numbers: what would -1 become?",
            "int8": "int8 ends at 127, and uint8 goes on to 255.",
            "int32": "A narrower dtype holds both ranges.",
            "uint16": "No unsigned dtype has negative numbers: what would -1 become?",
        },
        "g": {
            "int32": "`/` is true division: it gives floating numbers even where the result is whole.",
            "float64": f"{numpy_says} the default float has 32 bits.",
        },
        "h": {
            "float16": "float16 cannot hold bfloat16's large numbers: neither of the two holds the other.",
            "bfloat16": "bfloat16 cannot hold float16's digits: neither of the two holds the other.",
            "float64": "A narrower dtype holds the digits of the one and the large numbers of the other.",
        },
    }
    why = {name: {jnp.dtype(other): text for other, text in texts.items()} for name, texts in why.items()}
    checks.answers(given, {name: value.dtype for name, value in asked.items()}, why)


dtypes = Exercise(
    title="Predict eight dtypes",
    stars=1,
    minutes=5,
    why="You can say what dtype comes out before you run a line, so no half-precision network turns float32 behind "
    "your back.",
    hints=(
        "Follow the arrows of the figure: the answer is the first name that can be reached from both.",
        "Python's numbers start at the names with a star; a NumPy scalar is as strong as an array.",
        "In (d) NumPy would say float64. In the figure, the way from int32 to float16 passes through the weak float.",
    ),
    solution=_dtypes,
    check=_check_dtypes,
    mistakes=(
        Mistake(_dtypes | {"b": "float32"}, says="takes the dtype of the array that it meets"),
        Mistake(_dtypes | {"c": jnp.bfloat16}, says="only Python's numbers are weak"),
        Mistake(_dtypes | {"d": "float64"}, says="an integer array, however wide"),
        Mistake(_dtypes | {"h": "bfloat16"}, says="neither of the two holds the other"),
        Mistake(_dtypes | {"e": np.dtype("float64"), "g": "int32"}, says="2 of 8 answers"),
        Mistake(_dtypes | {"a": "jnp.float64"}, says="the default float has 32 bits"),
        Mistake(_dtypes | {"a": "int32"}, says="the kind changes"),
        Mistake(_dtypes | {"f": "uint16"}, says="No unsigned dtype"),
        Mistake(_dtypes | {"g": "float"}, says="The name of one dtype, with its width"),
        Mistake(_dtypes | {"g": np.floating}, says="The name of one dtype, with its width"),
        Mistake(_dtypes | {"a": jnp.arange(3) * 2.5}, says="The name of one dtype, with its width"),
        Mistake(list(_dtypes.values()), says="a dict is asked for"),
    ),
)


# squared_error


def _squared_error(predictions, targets):
    if predictions.shape != targets.shape:
        raise ValueError(f"predictions have shape {predictions.shape}, targets {targets.shape}")
    return jnp.mean((predictions - targets) ** 2)


def _check_squared_error(squared_error):
    def pair(*shape):
        def draw_both(draw):
            predictions = draw(inputs.arrays(*shape, sizes=(1, 2, 3, 5)))
            return predictions, draw(inputs.arrays(*predictions.shape))

        return inputs.together(draw_both)

    recognise = [
        (lambda p, t: jnp.sum((p - t) ** 2), "This is the sum of the squares, not their mean."),
        (lambda p, t: jnp.mean(p - t) ** 2, "You average first and square after: opposite errors cancel."),
        (
            lambda p, t: jnp.sqrt(jnp.mean((p - t) ** 2)),
            "This is the root of the mean square: one root too many.",
        ),
        (
            lambda p, t: jnp.mean(jnp.abs(p - t)),
            "You average the sizes of the errors; their squares are asked for.",
        ),
        (lambda p, t: 0.5 * jnp.mean((p - t) ** 2), "This is half of the mean squared error."),
    ]
    by_rows = (
        lambda p, t: jnp.sum((p - t) ** 2) / len(p),
        "You divide by the number of rows; a mean divides by the number of all elements.",
    )
    telling = (jnp.array([3.0, -1.0, 2.0]), jnp.zeros(3))
    checks.values(squared_error, _squared_error, pair("n"), examples=[telling], recognise=recognise)
    checks.values(squared_error, _squared_error, pair("n", 2), recognise=[by_rows])
    for one, other in (((3, 1), (3,)), ((3,), (1,)), ((2, 3), (3, 2)), ((), (3,))):
        checks.refuses(squared_error, jnp.ones(one), jnp.ones(other))
    checks.works_under_jit(squared_error, *telling)


def _squared_error_trusts(predictions, targets):
    return jnp.mean((predictions - targets) ** 2)


def _squared_error_asserts(predictions, targets):
    assert predictions.shape == targets.shape
    return jnp.mean((predictions - targets) ** 2)


def _squared_error_flattens(predictions, targets):
    return jnp.mean((predictions.ravel() - targets.ravel()) ** 2)


def _squared_error_sum(predictions, targets):
    if predictions.shape != targets.shape:
        raise ValueError
    return ((predictions - targets) ** 2).sum()


def _squared_error_numpy(predictions, targets):
    if predictions.shape != targets.shape:
        raise ValueError(f"{predictions.shape} and {targets.shape}")
    return np.mean((np.asarray(predictions) - np.asarray(targets)) ** 2)


def _squared_error_by_rows(predictions, targets):
    if predictions.shape != targets.shape:
        raise ValueError("shapes")
    return jnp.sum((predictions - targets) ** 2) / len(predictions)


def _squared_error_absolute(predictions, targets):
    if predictions.shape != targets.shape:
        raise ValueError("shapes")
    return jnp.abs(predictions - targets).mean()


def _squared_error_half(predictions, targets):
    if predictions.shape != targets.shape:
        raise ValueError("shapes")
    return jnp.mean((predictions - targets) ** 2) / 2


def _squared_error_guarded(predictions, targets):
    with jax.numpy_rank_promotion("raise"):  # (3,) and (1,) have the same rank
        return jnp.mean((predictions - targets) ** 2)


def _squared_error_float(predictions, targets):
    if predictions.shape != targets.shape:
        raise ValueError("shapes")
    return float(jnp.mean((predictions - targets) ** 2))


squared_error = Exercise(
    title="A loss that does not broadcast",
    stars=1,
    minutes=5,
    why="A (n, 1) that meets a (n,) is the most common silent mistake with arrays, and this loss refuses it.",
    hints=(
        "Shapes are known before any number is: `predictions.shape` is a tuple, and an `if` may ask for it.",
        "`raise ValueError(...)` where the two shapes differ; then the mean of the squared differences.",
    ),
    solution=_squared_error,
    check=_check_squared_error,
    mistakes=(
        Mistake(_squared_error_trusts, says="but it returned a result"),
        Mistake(_squared_error_asserts, says="AssertionError"),
        Mistake(_squared_error_flattens, says="but it returned a result"),
        Mistake(_squared_error_sum, says="the sum of the squares"),
        Mistake(_squared_error_numpy, says="NumPy's functions compute on the host"),
        Mistake(_squared_error_by_rows, says="by the number of rows"),
        Mistake(_squared_error_absolute, says="average the sizes of the errors"),
        Mistake(_squared_error_half, says="half of the mean squared error"),
        Mistake(_squared_error_guarded, says="but it returned a result"),
        Mistake(_squared_error_float, says="returned a float"),
    ),
)


# heat_step


def _heat_step(u, source):
    u = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    u = u.at[source].add(1.0)
    return u.at[jnp.array([0, -1])].set(0.0)


def _check_heat_step(heat_step):
    u = jnp.array([1.0, 4.0, 8.0, 2.0, 6.0, 3.0])
    telling = [(u, jnp.int32(2)), (u, jnp.int32(0)), (u, jnp.int32(5))]
    recognise = [
        (
            lambda u, source: u,
            "The rod comes back as it was. `.at[…].add(…)` returns a new array and leaves the old one alone: give "
            "the new one a name (`u = u.at[…]…`).",
        ),
        (_heat_step_one_by_one, "A point is computed from a neighbour that has already been changed."),
        (_heat_step_set, "The source sets the temperature to 1; it must add 1 to what is there."),
        (_heat_step_ends_first, "The ends are set to 0 before the source is added: the order matters."),
        (_heat_step_no_ends, "The two ends are not 0."),
        (lambda u, source: _heat_step(u, source).at[-1].set(u[-1]), "The last point is not 0."),
        (lambda u, source: _heat_step(u, source).at[0].set(u[0]), "The first point is not 0."),
        (
            _heat_step_sets_change,
            "The inner points are set to the change alone, which must be added to what is there: `.add`, not `.set`.",
        ),
        (
            lambda u, source: _heat_step(u.at[source].add(1.0), 0),
            "The source is added before the heat spreads.",
        ),
        (lambda u, source: _heat_step(u, 0), "The source adds no heat."),
        (
            _heat_step_ends_before,
            "The ends are set to 0 before the heat spreads: their neighbours have to feel what was there.",
        ),
    ]
    both = inputs.together(
        lambda draw: (draw(inputs.arrays("n", sizes=(3, 5, 8))), jnp.int32(draw(inputs.integers(0, 2))))
    )
    checks.values(heat_step, _heat_step, both, examples=telling, recognise=recognise)
    checks.works_under_jit(heat_step, *telling[0])


def _heat_step_in_place(u, source):
    u[1:-1] += 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
    u[source] += 1.0
    u[0] = 0.0
    u[-1] = 0.0
    return u


def _heat_step_dropped(u, source):
    u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    u.at[source].add(1.0)
    u.at[0].set(0.0)
    u.at[-1].set(0.0)
    return u


def _heat_step_one_by_one(u, source):
    for i in range(1, len(u) - 1):
        u = u.at[i].add(0.25 * (u[i - 1] - 2 * u[i] + u[i + 1]))
    return u.at[source].add(1.0).at[0].set(0.0).at[-1].set(0.0)


def _heat_step_set(u, source):
    u = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    return u.at[source].set(1.0).at[0].set(0.0).at[-1].set(0.0)


def _heat_step_sets_change(u, source):
    u = u.at[1:-1].set(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    return u.at[source].add(1.0).at[0].set(0.0).at[-1].set(0.0)


def _heat_step_ends_first(u, source):
    u = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    return u.at[0].set(0.0).at[-1].set(0.0).at[source].add(1.0)


def _heat_step_no_ends(u, source):
    u = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    return u.at[source].add(1.0)


def _heat_step_ends_before(u, source):
    return _heat_step(u.at[0].set(0.0).at[-1].set(0.0), source)


def _heat_step_no_source(u, source):
    u = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    return u.at[0].set(0.0).at[-1].set(0.0)


def _heat_step_source_first(u, source):
    u = u.at[source].add(1.0)
    u = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    return u.at[0].set(0.0).at[-1].set(0.0)


def _heat_step_beyond(u, source):
    u = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    return u.at[source].add(1.0).at[0].set(0.0).at[len(u)].set(0.0)


def _heat_step_assigns(u, source):
    u.at[1:-1] += 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
    u.at[source] += 1.0
    return u


def _heat_step_assigns_ends(u, source):
    u.at[0] = 0.0
    return u


def _heat_step_asks(u, source):
    u = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    if 0 < source < len(u) - 1:
        u = u.at[source].add(1.0)
    return u.at[0].set(0.0).at[-1].set(0.0)


@functools.partial(jax.jit, static_argnums=1)
def _heat_step_static(u, source):
    return _heat_step(u, source)


def _heat_step_nothing(u, source):
    u = _heat_step(u, source)


def _heat_step_copy(u, source):
    return jnp.asarray(_heat_step_in_place(np.array(u), source))


heat_step = Exercise(
    title="From in place to functional",
    stars=2,
    minutes=10,
    why="Every line that wrote into an array became a line that returns one, so the function can be jitted, "
    "differentiated and batched.",
    hints=(
        "One line of NumPy becomes one line with `.at`: `u[i] += a` becomes `u = u.at[i].add(a)`.",
        "`.at` takes slices and traced indices, too: `u.at[1:-1].add(…)`, `u.at[source].add(1.0)`.",
        "Keep NumPy's order, and keep a name for each new array: a result that has no name is lost.",
    ),
    solution=_heat_step,
    check=_check_heat_step,
    mistakes=(
        Mistake(_heat_step_in_place, says="immutable"),
        Mistake(_heat_step_dropped, says="comes back as it was"),
        Mistake(_heat_step_one_by_one, says="has already been changed"),
        Mistake(_heat_step_set, says="it must add 1"),
        Mistake(_heat_step_sets_change, says="set to the change alone"),
        Mistake(_heat_step_ends_first, says="the order matters"),
        Mistake(_heat_step_no_ends, says="two ends are not 0"),
        Mistake(_heat_step_copy, says="a traced array was given to NumPy"),
        Mistake(_heat_step_ends_before, says="before the heat spreads: their neighbours"),
        Mistake(_heat_step_no_source, says="The source adds no heat"),
        Mistake(_heat_step_source_first, says="The source is added before"),
        Mistake(_heat_step_beyond, says="The last point is not 0"),
        Mistake(_heat_step_assigns, says="`.at[…]` is no place to assign to"),
        Mistake(_heat_step_assigns_ends, says="`.at[…]` is no place to assign to"),
        Mistake(_heat_step_asks, says="asks for the value of a traced array"),
        Mistake(_heat_step_static, says="declared static"),
        Mistake(_heat_step_nothing, says="is a `return` missing"),
    ),
)


# lookup


def _lookup(table, ids):
    known = (ids >= 0) & (ids < len(table))
    return jnp.where(known[:, None], table[ids], 0)


def _check_lookup(lookup):
    table = jnp.arange(1.0, 7.0).reshape(3, 2)
    recognise = [
        (
            lambda table, ids: table[ids],
            "Ids out of bounds get the rows of others: too large an id is clamped to the last row, and a negative "
            "one counts from the end.",
        ),
        (
            lambda table, ids: table.at[ids].get(mode="fill", fill_value=0),
            "Negative ids still get a row: an index from -len to -1 is not out of bounds, it counts from the end, "
            "and `mode` never sees it.",
        ),
        (
            _lookup_take,
            'Ids that are too large give NaN, which is how `jnp.take` and `mode="fill"` mark them.',
        ),
        (
            _lookup_upper,
            "Negative ids still get a row: they are smaller than `len(table)`, and count from the end.",
        ),
        (_lookup_lower, "Ids that are too large still get a row: they are clamped to the last one."),
        (_lookup_off_by_one, "The id `len(table)` is out of bounds, as the last row is `len(table) - 1`."),
        (
            lambda table, ids: jnp.take(table, ids, axis=0, mode="clip"),
            "Ids out of bounds still get a row: `clip` takes the nearest, the first or the last.",
        ),
        (
            lambda table, ids: jnp.where(_lookup(jnp.ones_like(table), ids) > 0, table[ids], jnp.nan),
            "You found the ids out of bounds, but their rows should be zeros, not NaN.",
        ),
        (_lookup_no_zero, "The id 0 is a row like any other: the first."),
        (_lookup_no_last, "The id `len(table) - 1` is a row like any other: the last."),
        (
            lambda table, ids: table[ids % len(table)],
            "`%` brings every id into the table, so those out of bounds get the rows of others.",
        ),
        (
            lambda table, ids: jnp.where((ids == -1)[:, None], 0, _lookup_fill(table, ids)),
            "Of the negative ids only -1 gets zeros: the others still count from the end.",
        ),
    ]
    everything = jnp.arange(-5, 6)
    drawn = inputs.together(
        lambda draw: (
            draw(inputs.arrays("n", 2, sizes=(1, 3))),
            draw(inputs.arrays("m", dtype="int32", low=-5, high=5, sizes=(1, 4))),
        )
    )
    checks.values(lookup, _lookup, drawn, examples=[(table, everything)], recognise=recognise)
    endless = table.at[-1].set(jnp.inf)
    got, expected = lookup(endless, everything), _lookup(endless, everything)
    if got.shape == expected.shape and bool(jnp.isnan(got).any()):
        raise Failed(
            "You multiply the rows by 0 or 1. Where the table holds an infinite number, 0 times it is NaN: choose "
            "between two values instead.",
            input={"table": endless, "ids": everything},
            expected=expected,
            got=got,
        )
    checks.same(got, expected, input={"table": endless, "ids": everything})
    _check_lookup_of_other_tables(lookup, table, everything)
    checks.works_under_jit(lookup, table, everything)


def _check_lookup_of_other_tables(lookup, table, everything):
    dtypes = {
        jnp.bfloat16: "an array that is made without a dtype is float32.",
        jnp.int32: "`0.0` is a weak float, and turns whole numbers into floating ones; 0 does not.",
    }
    for dtype, why in dtypes.items():
        other = table.astype(dtype)
        got = lookup(other, everything)
        if isinstance(got, jax.Array) and got.dtype != other.dtype:
            raise Failed(
                f"A table of {other.dtype} gives rows of {got.dtype}; they should have the table's dtype. A usual "
                f"cause: {why}",
                input={"table": other, "ids": everything},
                got=got,
            )
        checks.same(got, _lookup(other, everything), input={"table": other, "ids": everything})
    large = jnp.ones((20_003, 2))
    got = lookup(large, jnp.array([-1, 20_002, 20_003]))
    if bool((got[0] != 0).any()):
        raise Failed(
            f"In a table of {len(large):,} rows the id -1 gets a row. Do you send negative ids to a place that you "
            "took to be beyond the end? Ask the table for its length.",
            input="table = ones of shape (20003, 2), ids = [-1, 20002, 20003]",
            got=got,
        )
    checks.same(got, jnp.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]), where="for a table of 20,003 rows")


def _lookup_trusts(table, ids):
    return table[ids]


def _lookup_fill(table, ids):
    return table.at[ids].get(mode="fill", fill_value=0)


def _lookup_take(table, ids):
    return jnp.take(table, ids, axis=0)


def _lookup_upper(table, ids):
    return jnp.where((ids < len(table))[:, None], table[ids], 0)


def _lookup_lower(table, ids):
    return jnp.where((ids >= 0)[:, None], table[ids], 0)


def _lookup_off_by_one(table, ids):
    known = (ids >= 0) & (ids <= len(table))
    return jnp.where(known[:, None], table[ids], 0)


def _lookup_no_zero(table, ids):
    known = (ids > 0) & (ids < len(table))
    return jnp.where(known[:, None], table[ids], 0)


def _lookup_no_last(table, ids):
    known = (ids >= 0) & (ids < len(table) - 1)
    return jnp.where(known[:, None], table[ids], 0)


def _lookup_thousand(table, ids):
    return table.at[jnp.where(ids < 0, 1000, ids)].get(mode="fill", fill_value=0)


def _lookup_float_zeros(table, ids):
    known = (ids >= 0) & (ids < len(table))
    return jnp.where(known[:, None], table[ids], 0.0)


def _lookup_single(table, ids):
    known = (ids >= 0) & (ids < len(table))
    return jnp.where(known[:, None], table[ids], jnp.zeros(table.shape[1]))


def _lookup_wraps(table, ids):
    return table[ids % len(table)]


def _lookup_minus_one(table, ids):
    return jnp.where((ids == -1)[:, None], 0, table.at[ids].get(mode="fill", fill_value=0))


def _lookup_clips(table, ids):
    return jnp.take(table, ids, axis=0, mode="clip")


def _lookup_one_hot(table, ids):
    return jax.nn.one_hot(ids, len(table), dtype=table.dtype) @ table


def _lookup_one_mask(table, ids):
    return jnp.where((ids >= 0) & (ids < len(table)), table[ids], 0)


def _lookup_multiplies(table, ids):
    known = (ids >= 0) & (ids < len(table))
    return known[:, None] * table[ids]


def _lookup_mask(table, ids):
    rows = jnp.zeros((len(ids), table.shape[1]))
    known = (ids >= 0) & (ids < len(table))
    return rows.at[known].set(table[ids[known]])


def _lookup_sets_mask(table, ids):
    known = (ids >= 0) & (ids < len(table))
    return table[ids].at[~known].set(0)


lookup = Exercise(
    title="Find the out-of-bounds bug",
    stars=2,
    minutes=10,
    why="JAX cannot raise an IndexError from inside a compiled program, so what an index out of bounds does is for "
    "you to say.",
    hints=(
        "Print `lookup(table, jnp.arange(-5, 6))` for a table of three rows, and see which ids get a row.",
        "Two things go wrong: large ids are clamped, and negative ones count from the end. A `mode` mends only one.",
        "Work out which ids are known, `(ids >= 0) & (ids < len(table))`, and let `jnp.where` choose. Mind the shape "
        "of the mask: it needs an axis more to meet the rows.",
    ),
    solution=_lookup,
    check=_check_lookup,
    mistakes=(
        Mistake(_lookup_trusts, says="too large an id is clamped"),
        Mistake(_lookup_fill, says="never sees it"),
        Mistake(_lookup_take, says="give NaN"),
        Mistake(_lookup_upper, says="they are smaller than `len(table)`"),
        Mistake(_lookup_lower, says="Ids that are too large still get a row"),
        Mistake(_lookup_off_by_one, says="the last row is `len(table) - 1`"),
        Mistake(_lookup_no_zero, says="a row like any other: the first"),
        Mistake(_lookup_multiplies, says="You multiply the rows"),
        Mistake(_lookup_mask, says="rows of float32"),
        Mistake(_lookup_single, says="rows of float32"),
        Mistake(_lookup_float_zeros, says="rows of float32"),
        Mistake(_lookup_sets_mask, says="a mask as an index"),
        Mistake(_lookup_no_last, says="a row like any other: the last"),
        Mistake(_lookup_thousand, says="Ask the table for its length"),
        Mistake(_lookup_wraps, says="brings every id into the table"),
        Mistake(_lookup_minus_one, says="only -1 gets zeros"),
        Mistake(_lookup_clips, says="`clip` takes the nearest"),
        Mistake(_lookup_one_hot, says="You multiply the rows"),
        Mistake(_lookup_one_mask, says="Incompatible shapes for broadcasting"),
    ),
)


# benchmark


def _benchmark(function, x, clock):
    jax.block_until_ready(function(x))
    times = []
    for _ in range(5):
        start = clock()
        jax.block_until_ready(function(x))
        times.append(clock() - start)
    return statistics.median(times)


class _Laboratory:
    """A device whose every time is known: a queue that works while Python goes on.

    The times are such that each way to go wrong gives a number of its own: the median of the five is neither the
    first of them, nor that in the middle, nor the last, and it moves when the call before them is counted, too.
    """

    dispatch, compile, copy = 0.001, 2.0, 0.05
    work = (0.1, 0.11, 0.19, 0.23, 5.0, 0.17, 0.29, 0.31, 0.37)

    def __init__(self, wrap):
        self.now = self.free = 0.0
        self.calls = self.readings = 0
        self.wrap = wrap
        self.x = jnp.ones(3)

    def clock(self):
        self.readings += 1
        return self.now

    def function(self, x):
        if isinstance(x, jax.core.Tracer):
            raise Failed(
                "Your benchmark traces `function`: do you jit it? It should be called as it is handed in, since it may "
                "be jitted already."
            )
        if x is not self.x:
            raise Failed("`function` should be called with the `x` that your benchmark is given.", got=x)
        self.now += self.dispatch + (self.compile if self.calls == 0 else 0)
        self.free = max(self.free, self.now) + self.work[min(self.calls, len(self.work) - 1)]
        self.calls += 1
        return self.wrap(self, self.free)


class PendingArray:
    """Stands for an array that is still being computed."""

    def __init__(self, laboratory, ready):
        self._laboratory, self._ready = laboratory, ready

    def block_until_ready(self):
        self._laboratory.now = max(self._laboratory.now, self._ready)
        return self

    def is_ready(self):
        return self._laboratory.now >= self._ready

    def __array__(self, dtype=None, copy=None):
        self.block_until_ready()
        self._laboratory.now += self._laboratory.copy
        return np.zeros(3, dtype)

    def __repr__(self):
        return "Array([...], dtype=float32)"


def _in_a_dict(laboratory, ready):
    """The slow one is neither first nor last, whichever way the dict is read."""
    times = {"bias": laboratory.now, "kernel": ready, "loss": laboratory.now}
    return {name: PendingArray(laboratory, time) for name, time in times.items()}


def _measured(benchmark, wrap=PendingArray):
    """What a benchmark returns, and how often it called the function."""
    laboratory = _Laboratory(wrap)
    got = benchmark(laboratory.function, laboratory.x, laboratory.clock)
    return got, laboratory


def _check_benchmark(benchmark):
    expected, _ = _measured(_benchmark)
    said = _wrong_about(benchmark, expected, PendingArray)
    if said:
        raise said
    said = _wrong_about(benchmark, expected, _in_a_dict)
    if said:
        said.message = f"Where the function returns a dict of arrays: {said.message}"
        if isinstance(said, _WrongTime):
            said.message = (
                "Where the function returns a dict of arrays, the time is wrong: wait for all of them. "
                "`jax.block_until_ready` waits for everything in a container."
            )
        raise said
    if not 0 <= float(benchmark(jax.jit(jnp.sin), jnp.ones(3), time.perf_counter)) < 60:
        raise Failed("With a real function and a real clock, the time is no time.")


class _WrongTime(Failed):
    """All is well but the number."""


def _wrong_about(benchmark, expected, wrap):
    """What is wrong with a benchmark on the laboratory's machine: a `Failed`, or None."""
    got, laboratory = _measured(benchmark, wrap)
    asked = "a jitted function on a machine with a clock of its own"
    if laboratory.calls == 0:
        return Failed("Your benchmark never calls `function(x)`.", input=asked)
    if got is None:
        return Failed("Your function returned None: is a `return` missing?", input=asked)
    if laboratory.readings == 0:
        return Failed("Your benchmark does not read the clock that it is given: call `clock()`.", input=asked)
    if isinstance(got, (list, tuple)) or np.ndim(got) > 0:
        return Failed("Return one number, the median, not all of them.", input=asked, got=got)
    if not isinstance(got, (int, float, np.number)) and not getattr(got, "shape", None) == ():
        return Failed("Return a number of seconds.", input=asked, got=got)
    right = abs(float(got) - expected) < _NEAR
    if right and laboratory.calls == 6:
        return None
    count = f"`function` was called {laboratory.calls} times; once to warm up and five times for the clock is six."
    said = "The time is wrong." if laboratory.calls == 6 else count
    for wrong, diagnosis in _LIES:
        lie, others = _measured(wrong)
        if abs(float(got) - lie) < _NEAR and laboratory.calls == others.calls:
            said = diagnosis
            break
    times = ", ".join(f"{seconds:g}" for seconds in _Laboratory.work[:6])
    machine = f"compiling 2 s, dispatch 0.001 s, then the device works {times}, … s"
    shown = {
        "expected": f"{expected:.3f} s",
        "got": f"{float(got):.3f} s",
        "shown": [("the machine", machine)],
    }
    return _WrongTime(said, input=asked, **shown)


def _benchmark_notes(function, x, clock):
    start = clock()
    function(x)
    return clock() - start


def _benchmark_cold(function, x, clock):
    start = clock()
    jax.block_until_ready(function(x))
    return clock() - start


def _benchmark_once(function, x, clock):
    jax.block_until_ready(function(x))
    return _benchmark_cold(function, x, clock)


def _benchmark_no_wait(function, x, clock):
    function(x)
    times = []
    for _ in range(5):
        start = clock()
        function(x)
        times.append(clock() - start)
    return statistics.median(times)


def _benchmark_no_warm_up(function, x, clock):
    times = []
    for _ in range(5):
        start = clock()
        jax.block_until_ready(function(x))
        times.append(clock() - start)
    return statistics.median(times)


def _benchmark_mean(function, x, clock):
    jax.block_until_ready(function(x))
    start = clock()
    for _ in range(5):
        jax.block_until_ready(function(x))
    return (clock() - start) / 5


def _benchmark_minimum(function, x, clock):
    jax.block_until_ready(function(x))
    times = []
    for _ in range(5):
        start = clock()
        jax.block_until_ready(function(x))
        times.append(clock() - start)
    return min(times)


def _benchmark_waits_outside(function, x, clock):
    jax.block_until_ready(function(x))
    times = []
    for _ in range(5):
        start = clock()
        result = function(x)
        times.append(clock() - start)
        jax.block_until_ready(result)
    return statistics.median(times)


def _benchmark_copies(function, x, clock):
    np.asarray(function(x))
    times = []
    for _ in range(5):
        start = clock()
        np.asarray(function(x))
        times.append(clock() - start)
    return statistics.median(times)


def _benchmark_waits_last(function, x, clock):
    jax.block_until_ready(function(x))
    start = clock()
    for _ in range(5):
        result = function(x)
    jax.block_until_ready(result)
    return (clock() - start) / 5


def _benchmark_total(function, x, clock):
    return 5 * _benchmark_mean(function, x, clock)


def _benchmark_ten(function, x, clock):
    jax.block_until_ready(function(x))
    return statistics.median(_benchmark_cold(function, x, clock) for _ in range(10))


def _benchmark_four(function, x, clock):
    jax.block_until_ready(function(x))
    return statistics.median(_benchmark_cold(function, x, clock) for _ in range(4))


def _benchmark_three(function, x, clock):
    jax.block_until_ready(function(x))
    return statistics.median(_benchmark_cold(function, x, clock) for _ in range(3))


def _benchmark_warms_up_twice(function, x, clock):
    jax.block_until_ready(function(x))
    return _benchmark(function, x, clock)


def _benchmark_counts_warm_up(function, x, clock):
    return statistics.median(_benchmark_cold(function, x, clock) for _ in range(6))


def _benchmark_times(function, x, clock):
    jax.block_until_ready(function(x))
    return [_benchmark_cold(function, x, clock) for _ in range(5)]


def _benchmark_unsorted(function, x, clock):
    return _benchmark_times(function, x, clock)[2]


def _benchmark_maximum(function, x, clock):
    return max(_benchmark_times(function, x, clock))


def _benchmark_milliseconds(function, x, clock):
    return 1000 * _benchmark(function, x, clock)


def _benchmark_backwards(function, x, clock):
    return -_benchmark(function, x, clock)


def _benchmark_one_start(function, x, clock):
    jax.block_until_ready(function(x))
    start, times = clock(), []
    for _ in range(5):
        jax.block_until_ready(function(x))
        times.append(clock() - start)
    return statistics.median(times)


def _benchmark_own_x(function, x, clock):
    return _benchmark(function, jnp.ones(1000), clock)


def _benchmark_own_clock(function, x, clock):
    return _benchmark(function, x, time.perf_counter)


def _benchmark_jits(function, x, clock):
    return _benchmark(jax.jit(function), x, clock)


def _benchmark_never(function, x, clock):
    return _benchmark(lambda x: x, x, clock)


def _benchmark_first_part(function, x, clock):
    def waiting(x):
        jax.tree.leaves(function(x))[0].block_until_ready()

    return _benchmark(waiting, x, clock)


def _benchmark_if_it_can(function, x, clock):
    def waiting(x):
        result = function(x)
        if hasattr(result, "block_until_ready"):
            result.block_until_ready()

    return _benchmark(waiting, x, clock)


def _benchmark_prints(function, x, clock):
    print(_benchmark(function, x, clock))


def _benchmark_text(function, x, clock):
    return f"{_benchmark(function, x, clock)} s"


def _benchmark_one_array(function, x, clock):
    function(x).block_until_ready()
    times = []
    for _ in range(5):
        start = clock()
        function(x).block_until_ready()
        times.append(clock() - start)
    return statistics.median(times)


def _benchmark_warms_up_only(function, x, clock):
    function(x)
    return _benchmark_no_warm_up(function, x, clock)


_NEAR = 2e-4  # seconds: float32 may have computed the difference, and no two ways to go wrong are so near

_NO_WAIT = (
    "The clock stops before the result exists: the call has returned, the device is still at work. Wait for the "
    "result between the two readings."
)
_LIES = (
    (
        _benchmark_notes,
        "Nothing is waited for, and the one call that is timed is the first, which also compiles.",
    ),
    (_benchmark_cold, "The one call that is timed is the first, which also traces and compiles."),
    (_benchmark_once, "One call is timed; the median of five is asked for."),
    (_benchmark_no_wait, _NO_WAIT),
    (_benchmark_waits_outside, _NO_WAIT),
    (
        _benchmark_no_warm_up,
        "The first of your five calls also traces and compiles: call once before the clock runs.",
    ),
    (
        _benchmark_mean,
        "This is the mean: one hiccup of the machine, which took 5 s, outweighs the other four together.",
    ),
    (
        _benchmark_waits_last,
        "This is a fifth of five calls together: a mean, in which one hiccup of the machine, which took 5 s, outweighs "
        "all the others. Read the clock around each call.",
    ),
    (_benchmark_total, "This is the sum of the five calls; the median is asked for."),
    (
        _benchmark_minimum,
        "This is the shortest of the five, which is what luck gives; the median is asked for.",
    ),
    (_benchmark_copies, "Your clock also counts a copy of the result to NumPy. Waiting does not need one."),
    (
        _benchmark_warms_up_only,
        "The call that warms up is not waited for, so the first that is timed stands in the queue behind it.",
    ),
    (_benchmark_counts_warm_up, "The call that warms up is among those that are timed."),
    (_benchmark_unsorted, "This is the third time that you measured; the median is the third by size."),
    (_benchmark_maximum, "This is the longest of the five; the median is asked for."),
    (_benchmark_milliseconds, "These are milliseconds; the time is asked for in seconds."),
    (_benchmark_backwards, "The time is negative: the later reading comes first in the difference."),
    (
        _benchmark_one_start,
        "All five times are counted from one start: read the clock anew before each call.",
    ),
)

benchmark = Exercise(
    title="Mend a benchmark that lies",
    stars=2,
    minutes=10,
    why="You measured what a call takes, not what it takes to ask for it. From here on you may believe your own numbers.",
    hints=(
        "Three things are wrong: what the first call does besides, when the clock stops, and that it runs once.",
        "`jax.block_until_ready(result)` waits for everything in the result, be it an array or a dict of them.",
        "Call once and wait. Then five times: read the clock, call and wait, read the clock. `statistics.median`.",
    ),
    solution=_benchmark,
    check=_check_benchmark,
    mistakes=(
        Mistake(_benchmark_notes, says="Nothing is waited for"),
        Mistake(_benchmark_cold, says="The one call that is timed is the first, which also traces"),
        Mistake(_benchmark_once, says="One call is timed"),
        Mistake(_benchmark_no_wait, says="stops before the result exists"),
        Mistake(_benchmark_waits_outside, says="stops before the result exists"),
        Mistake(_benchmark_no_warm_up, says="The first of your five calls"),
        Mistake(_benchmark_mean, says="This is the mean"),
        Mistake(_benchmark_minimum, says="the shortest of the five"),
        Mistake(_benchmark_waits_last, says="a fifth of five calls"),
        Mistake(_benchmark_total, says="the sum of the five calls"),
        Mistake(_benchmark_ten, says="was called 11 times"),
        Mistake(_benchmark_text, says="Return a number of seconds"),
        Mistake(_benchmark_copies, says="a copy of the result"),
        Mistake(_benchmark_one_array, says="'dict' object has no attribute"),
        Mistake(_benchmark_warms_up_only, says="stands in the queue behind it"),
        Mistake(_benchmark_four, says="was called 5 times"),
        Mistake(_benchmark_three, says="was called 4 times"),
        Mistake(_benchmark_warms_up_twice, says="was called 7 times"),
        Mistake(_benchmark_counts_warm_up, says="is among those that are timed"),
        Mistake(_benchmark_times, says="not all of them"),
        Mistake(_benchmark_unsorted, says="the third by size"),
        Mistake(_benchmark_maximum, says="the longest of the five"),
        Mistake(_benchmark_milliseconds, says="These are milliseconds"),
        Mistake(_benchmark_backwards, says="The time is negative"),
        Mistake(_benchmark_one_start, says="counted from one start"),
        Mistake(_benchmark_own_x, says="the `x` that your benchmark is given"),
        Mistake(_benchmark_own_clock, says="does not read the clock"),
        Mistake(_benchmark_jits, says="Your benchmark traces `function`"),
        Mistake(_benchmark_never, says="never calls `function(x)`"),
        Mistake(_benchmark_first_part, says="wait for all of them"),
        Mistake(_benchmark_if_it_can, says="wait for all of them"),
        Mistake(_benchmark_prints, says="is a `return` missing"),
    ),
)


# moving_average


def _moving_average(x, width):
    return jnp.convolve(x, jnp.full(width, 1 / width), mode="valid")


def _check_moving_average(moving_average):
    recognise = [
        (
            lambda x, width: jnp.convolve(x, jnp.ones(width), mode="valid"),
            "This is the sum of each window; the mean is asked for.",
        ),
        (
            lambda x, width: jnp.convolve(x, jnp.full(width, 1 / width), mode="same"),
            "There is a result for every element, so some windows reach beyond the ends, where there is nothing. Only "
            "whole windows count.",
        ),
        (
            lambda x, width: jnp.convolve(x, jnp.full(width, 1 / width)),
            "Some windows reach beyond the ends, where there is nothing. Only whole windows count.",
        ),
        (
            _moving_average_clamped,
            "The last windows would reach beyond the end, and are clamped: they are repeats.",
        ),
        (
            _moving_average_no_first,
            "The first window is missing: a running sum starts before the first element, at 0.",
        ),
        (
            lambda x, width: _moving_average(x, width)[:-1],
            "The last whole window is missing: there are `len(x) - width + 1`.",
        ),
        (
            _moving_average_repeats,
            "The last windows reach beyond the end, where an index is clamped to the last element.",
        ),
        (
            lambda x, width: _moving_average(x, width + 1),
            "The windows are too wide by one.",
        ),
        (
            lambda x, width: jnp.convolve(x, jnp.ones(width), mode="valid") / (width - 1),
            "You divide by `width - 1`, but a window has `width` elements.",
        ),
        (
            lambda x, width: _moving_average(x, width)[::width],
            "The windows stand side by side; one begins at every element.",
        ),
    ]

    def draw_both(draw):
        x = draw(inputs.arrays("n", sizes=(4, 5, 8)))
        return x, draw(inputs.integers(1, 4))

    telling = (jnp.array([1.0, 3.0, 8.0, 0.0, 4.0]), 3)  # with 2, mistakes look alike: 2 - 1 is 1
    checks.values(
        moving_average,
        _moving_average,
        inputs.together(draw_both),
        examples=[telling],
        recognise=recognise,
        count=10,
    )
    checks.works_under_jit(moving_average, *telling, static_argnums=1)

    def program(size, width):
        closed = jax.make_jaxpr(lambda x: moving_average(x, width))(
            jax.ShapeDtypeStruct((size,), jnp.float32)
        )
        equations = [equation for _, equation in jaxprs.walk(closed)]
        if {"while", "scan"} & {equation.primitive.name for equation in equations}:
            raise Failed(
                "There is a loop in the program: JAX's own loops also take one step after the other. Let one "
                "operation take all windows."
            )
        largest = max((out.aval.size for equation in equations for out in equation.outvars), default=0)
        return len(equations), largest

    (base, small), (longer, large), (wider, _) = program(64, 4), program(128, 4), program(64, 32)
    if longer > base or wider > base:
        what = "the array" if longer > base else "the window"
        raise Failed(
            f"The program grows with {what}: Python runs a loop, or a recursion, while JAX records, and each of its "
            "steps leaves equations of its own.",
            shown=[
                ("64 elements, window 4", f"{base} equations"),
                ("128 elements, window 4", f"{longer} equations"),
                ("64 elements, window 32", f"{wider} equations"),
            ],
        )
    if large > 3 * small:
        raise Failed(
            "The largest array in the program grows with the square of the series. One of 20,000 elements would need "
            "gigabytes.",
            shown=[
                ("64 elements, window 4", f"{small:,} numbers"),
                ("128 elements, window 4", f"{large:,} numbers"),
            ],
        )
    x = jnp.where(jnp.arange(20_000) < 10_000, 8000.0, 0.0) + jnp.arange(20_000.0) % 7
    exact = np.convolve(np.asarray(x, np.float64), np.full(7, 1 / 7), "valid")
    got = moving_average(x, 7)
    if np.shape(got) != exact.shape:
        raise Failed(
            f"On a series of 20,000 elements the shape is wrong: expected {exact.shape}, got {np.shape(got)}."
        )
    wrong = np.abs(np.asarray(got, np.float64) - exact)

    def is_what(other):
        return bool(jnp.allclose(got, other(x, 7), rtol=0, atol=1e-2))

    if not bool(np.all(wrong < 0.05)):
        said = "On a long series the means are wrong."
        if is_what(_moving_average_running_sum) or is_what(_moving_average_centred):
            said += (
                " A running sum over 20,000 elements goes to tens of millions, where float32 has no digit left "
                "behind the point; what was lost there is missing in the difference of two such sums."
            )
        elif is_what(_moving_average_half):
            said += " Half precision holds about three digits, and these numbers have four."
        raise Failed(
            said,
            input="x = 8000 + (0, 1, 2, 3, 4, 5, 6, 0, 1, …), 10,000 elements, then 10,000 more without the 8000; "
            "width 7",
            expected="8003, later 3",
            shown=[("got", f"wrong by up to {wrong.max():.2g}")],
        )


def _moving_average_loop(x, width):
    return jnp.stack([x[i : i + width].mean() for i in range(len(x) - width + 1)])


def _moving_average_window_loop(x, width):
    return sum(x[i : len(x) - width + 1 + i] for i in range(width)) / width


def _moving_average_fori(x, width):
    def body(i, means):
        return means.at[i].set(jax.lax.dynamic_slice(x, (i,), (width,)).mean())

    count = len(x) - width + 1
    return jax.lax.fori_loop(0, count, body, jnp.zeros(count))


def _moving_average_sum(x, width):
    return jnp.convolve(x, jnp.ones(width), "valid")


def _moving_average_same(x, width):
    return jnp.convolve(x, jnp.ones(width) / width, "same")


def _moving_average_clamped(x, width):
    starts = jnp.arange(len(x))
    return jax.vmap(lambda start: jax.lax.dynamic_slice(x, (start,), (width,)).mean())(starts)


def _moving_average_no_first(x, width):
    sums = jnp.cumsum(x)
    return (sums[width:] - sums[:-width]) / width


def _moving_average_running_sum(x, width):
    sums = jnp.concatenate([jnp.zeros(1), jnp.cumsum(x)])
    return (sums[width:] - sums[:-width]) / width


def _moving_average_centred(x, width):
    return x.mean() + _moving_average_running_sum(x - x.mean(), width)


def _moving_average_half(x, width):
    return _moving_average(x.astype(jnp.float16).astype(jnp.float32), width)


def _moving_average_matrix(x, width):
    start, place = jnp.arange(len(x) - width + 1)[:, None], jnp.arange(len(x))
    return ((start <= place) & (place < start + width)).astype(x.dtype) @ x / width


def _moving_average_repeats(x, width):
    return x[jnp.arange(len(x))[:, None] + jnp.arange(width)].mean(axis=1)


def _moving_average_short(x, width):
    return x[jnp.arange(len(x) - width)[:, None] + jnp.arange(width)].mean(axis=1)


def _moving_average_wide(x, width):
    return _moving_average(x, width + 1)


def _moving_average_blocks(x, width):
    count = len(x) // width
    return x[: count * width].reshape(count, width).mean(axis=1)


def _moving_average_one_less(x, width):
    return jnp.convolve(x, jnp.ones(width) / (width - 1), mode="valid")


def _moving_average_scan(x, width):
    sums = jax.lax.associative_scan(jnp.add, jnp.pad(x, (1, 0)))
    return (sums[width:] - sums[:-width]) / width


def _moving_average_numpy(x, width):
    return np.convolve(x, np.ones(width) / width, mode="valid")


def _moving_average_shifts(x, width):
    def shift(i, sums):
        return sums + jax.lax.dynamic_slice(x, (i,), sums.shape)

    return jax.lax.fori_loop(0, width, shift, jnp.zeros(len(x) - width + 1)) / width


moving_average = Exercise(
    title="A moving average without a loop",
    stars=2,
    minutes=15,
    why="The program has the same few equations for any length and any window; the loop is the compiler's to write.",
    hints=(
        "A matrix of indices picks all windows at once: what does `jnp.arange(3)[:, None] + jnp.arange(2)` hold?",
        "There are `len(x) - width + 1` whole windows. `x[starts[:, None] + jnp.arange(width)]` has a row for each.",
        "Or look for `jnp.convolve`: with which weights, and which `mode`?",
    ),
    solution=_moving_average,
    check=_check_moving_average,
    mistakes=(
        Mistake(_moving_average_loop, says="grows with the array"),
        Mistake(_moving_average_window_loop, says="grows with the window"),
        Mistake(_moving_average_fori, says="JAX's own loops"),
        Mistake(_moving_average_sum, says="the sum of each window"),
        Mistake(_moving_average_same, says="a result for every element"),
        Mistake(_moving_average_clamped, says="they are repeats"),
        Mistake(_moving_average_no_first, says="The first window is missing"),
        Mistake(_moving_average_running_sum, says="no digit left"),
        Mistake(_moving_average_centred, says="no digit left"),
        Mistake(_moving_average_half, says="Half precision"),
        Mistake(_moving_average_matrix, says="the square of the series"),
        Mistake(_moving_average_repeats, says="clamped to the last element"),
        Mistake(_moving_average_short, says="The last whole window is missing"),
        Mistake(_moving_average_wide, says="too wide by one"),
        Mistake(_moving_average_blocks, says="The windows stand side by side"),
        Mistake(_moving_average_one_less, says="You divide by `width - 1`"),
        Mistake(_moving_average_scan, says="grows with the array"),
        Mistake(_moving_average_numpy, says="NumPy's functions compute on the host"),
        Mistake(_moving_average_shifts, says="JAX's own loops"),
    ),
)


# push


@functools.partial(jax.jit, donate_argnums=0)
def _push(buffer, count, row):
    return buffer.at[count % len(buffer)].set(row)


def _check_push(push):
    def fresh(rows=3):
        return jnp.arange(2.0 * rows).reshape(rows, 2)

    row = jnp.array([70.0, 80.0])
    for rows, count in ((3, 0), (3, 2), (3, 3), (3, 7), (5, 4), (5, 6)):
        expected = _push(fresh(rows), jnp.int32(count), row)
        shown = {"input": {"buffer": fresh(rows), "count": count, "row": row}}
        got = push(fresh(rows), jnp.int32(count), row)
        try:
            checks.same(got, expected, **shown)
        except Failed as failure:
            for wrong, diagnosis in _wrong_pushes(fresh(rows), count, row):
                if isinstance(got, jax.Array) and bool(jnp.array_equal(got, wrong)):
                    failure.message = f"{diagnosis}\n{failure.message}"
                    break
            raise
    checks.is_jitted(push)
    calls = [(fresh(), jnp.int32(count), row) for count in (0, 1, 5)]
    checks.traces(push, *calls, exactly=1)
    buffer = fresh(1000)
    lowered = reader.original(push).lower(buffer, jnp.int32(5), row)
    given = [info.donated for info in jax.tree.leaves(lowered.args_info)]
    if any(given[1:]):
        raise Failed(
            "You donate more than the buffer. The caller may want `count` and `row` again, and their memory is of no "
            "use for the result."
        )
    big = lowered.compile()
    push(buffer, jnp.int32(5), row)
    if not buffer.is_deleted():
        raise Failed(
            "The buffer is not donated: it is still there after the call, so XLA had to copy all of it to write one "
            "row. Tell `jax.jit` with `donate_argnums`.",
            shown=_bytes(big, buffer),
        )
    if _accessed(big) > 0.5 * buffer.nbytes:
        raise Failed(
            "The buffer is donated, but the program still goes over all of it to write one row: use `.at[…].set`, "
            "which writes the row alone.",
            shown=_bytes(big, buffer),
        )


def _wrong_pushes(buffer, count, row):
    """What wrong ways to push make of the buffer, and what is wrong with each."""
    rows = len(buffer)
    if count < rows:
        yield buffer, "The buffer comes back as it was. `.at[…].set(…)` returns a new array: return that one."
        yield buffer.at[count].add(row), "The row is added to what stands there; it should replace it."
    if count == 0:
        yield (
            buffer.at[1].set(row),
            "The row lands one place too far: `count` starts at 0, and 0 means place 0.",
        )
    if count == 2:
        why = f"there are {rows} rows, of {len(row)} numbers each."
        yield buffer.at[0].set(row), f"The row starts again from the top too early: {why}"
    if count == rows:
        why = "the index is out of bounds, so the write is dropped. The buffer has to start again from its first row."
        yield buffer, f"Once the buffer is full, nothing is written: {why}"
    if count > rows:
        why = "the index is out of bounds. The buffer starts again each time that it is full, not once."
        yield buffer, f"With `count` {count} nothing is written: {why}"
    if count >= rows:
        why = "The buffer has to start again from its first row."
        yield buffer.at[-1].set(row), f"Once the buffer is full, every row lands in the last place. {why}"
    if rows == 5:
        why = "but this buffer has 5 rows: ask the buffer for its length."
        yield buffer.at[count % 3].set(row), f"The row goes to place `count % 3`, {why}"
    yield (
        jnp.roll(buffer, -1, axis=0).at[-1].set(row),
        "All rows move up by one; the row must go to place `count % len(buffer)`.",
    )


def _accessed(compiled):
    analysis = compiled.cost_analysis() or {}
    return (analysis[0] if isinstance(analysis, list) else analysis).get("bytes accessed", 0.0)


def _bytes(compiled, buffer):
    return [("the buffer", f"{buffer.nbytes} bytes"), ("read or written", f"{_accessed(compiled):.0f} bytes")]


@jax.jit
def _push_keeps(buffer, count, row):
    return buffer.at[count % len(buffer)].set(row)


def _push_eager(buffer, count, row):
    return buffer.at[count % len(buffer)].set(row)


@functools.partial(jax.jit, donate_argnums=0)
def _push_dropped(buffer, count, row):
    return buffer.at[count].set(row)


@functools.partial(jax.jit, donate_argnums=0)
def _push_clamped(buffer, count, row):
    return jax.lax.dynamic_update_index_in_dim(buffer, row, count, 0)


@functools.partial(jax.jit, donate_argnums=0)
def _push_rolls(buffer, count, row):
    return jnp.roll(buffer, -1, axis=0).at[-1].set(row)


@functools.partial(jax.jit, donate_argnums=0)
def _push_where(buffer, count, row):
    here = jnp.arange(len(buffer)) == count % len(buffer)
    return jnp.where(here[:, None], row, buffer)


@functools.partial(jax.jit, donate_argnums=(0, 2))
def _push_donates_row(buffer, count, row):
    return buffer.at[count % len(buffer)].set(row)


@functools.partial(jax.jit, donate_argnums=0)
def _push_three(buffer, count, row):
    return buffer.at[count % 3].set(row)


@functools.partial(jax.jit, donate_argnums=0)
def _push_if(buffer, count, row):
    if count >= len(buffer):
        count = count - len(buffer)
    return buffer.at[count].set(row)


@functools.partial(jax.jit, donate_argnums=0)
def _push_once_again(buffer, count, row):
    return buffer.at[jnp.where(count >= len(buffer), count - len(buffer), count)].set(row)


@functools.partial(jax.jit, donate_argnums=0)
def _push_loses(buffer, count, row):
    buffer.at[count % len(buffer)].set(row)
    return buffer


@functools.partial(jax.jit, donate_argnums=0)
def _push_adds(buffer, count, row):
    return buffer.at[count % len(buffer)].add(row)


@functools.partial(jax.jit, donate_argnums=0)
def _push_off_by_one(buffer, count, row):
    return buffer.at[(count + 1) % len(buffer)].set(row)


@functools.partial(jax.jit, donate_argnums=0)
def _push_columns(buffer, count, row):
    return buffer.at[count % buffer.shape[1]].set(row)


@functools.partial(jax.jit, donate_argnums=0, static_argnums=1)
def _push_static(buffer, count, row):
    return buffer.at[count % len(buffer)].set(row)


def _push_jits_each_time(buffer, count, row):
    return jax.jit(_push_eager, donate_argnums=0)(buffer, count, row)


def _push_deletes(buffer, count, row):
    new = _push_keeps(buffer, count, row)
    buffer.delete()
    return new


@functools.partial(jax.jit, donate_argnums=0)
def _push_in_place(buffer, count, row):
    buffer[count % len(buffer)] = row
    return buffer


push = Exercise(
    title="Write one row in place",
    stars=3,
    minutes=15,
    why="The source says that a new array is returned, and the machine writes one row: that is how caches, buffers and "
    "parameters are updated in this book.",
    hints=(
        "First make it right: `.at[…].set`, and `%` for the place. `len(buffer)` is a plain number, even under `jit`.",
        "Then let XLA have the memory: `functools.partial(jax.jit, donate_argnums=…)` above the function.",
        "The argument to donate is the first: `donate_argnums=0`.",
    ),
    solution=_push,
    check=_check_push,
    mistakes=(
        Mistake(_push_keeps, says="The buffer is not donated"),
        Mistake(_push_eager, says="is not jitted"),
        Mistake(_push_dropped, says="Once the buffer is full, nothing"),
        Mistake(_push_clamped, says="lands in the last place"),
        Mistake(_push_rolls, says="All rows move up"),
        Mistake(_push_where, says="still goes over all of it"),
        Mistake(_push_donates_row, says="You donate more than the buffer"),
        Mistake(_push_three, says="ask the buffer for its length"),
        Mistake(_push_if, says="TracerBoolConversionError"),
        Mistake(_push_once_again, says="each time that it is full"),
        Mistake(_push_loses, says="The buffer comes back as it was"),
        Mistake(_push_adds, says="The row is added"),
        Mistake(_push_off_by_one, says="one place too far"),
        Mistake(_push_columns, says="there are 3 rows"),
        Mistake(_push_static, says="declared static"),
        Mistake(_push_jits_each_time, says="is not jitted"),
        Mistake(_push_deletes, says="is not jitted"),
        Mistake(_push_in_place, says="immutable"),
    ),
)
