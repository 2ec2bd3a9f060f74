"""Which shape comes out?"""

import jax
import jax.numpy as jnp

from mlax_tutorial.checking import Exercise, checks

solution = {
    "a": (4,),
    "b": (4,),
    "c": "error",
    "d": (4, 3, 3),
    "e": (3, 3, 4),
    "f": (4, 5),
    "g": (5, 4),
    "h": (4, 3),
}


def check(given):
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


exercise = Exercise(
    title="Which shape comes out?",
    stars=1,
    minutes=5,
    why="Take the mapped axis away from each input, apply the function, put an axis into the result: that is all of vmap.",
    hints=(
        "Three steps: take the mapped axis away from each input; ask what the function makes of what is left; "
        "put an axis in front of that, or where `out_axes` says.",
        "The mapped axes must be equally long. Where two maps are nested, the outer one's axis comes first.",
    ),
    solution=solution,
    check=check,
)
