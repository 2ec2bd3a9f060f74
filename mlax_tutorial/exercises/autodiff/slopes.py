"""Seven derivatives, without running anything."""

from mlax_tutorial.checking import Exercise, checks

solution = {"a": 12.0, "b": 12.0, "c": 5.0, "d": (4.0, 6.0), "e": "error", "f": 0.5, "g": 24.0}


def check(given):
    why = {
        "a": {
            4.0: "`argnums=1` is the second argument, counted from 0: the derivative with respect to `y`.",
            (4.0, 12.0): "Only a tuple of `argnums` gives a tuple of gradients.",
        },
        "b": {8.0: "This is the value.", 6.0: "That is the third derivative."},
        "c": {
            2.0: "1 is not greater than 1, so Python takes the other side.",
            "error": "Without `jit`, the tracer of `grad` knows its value, so Python can choose.",
            3.5: "At a kink JAX does not average the sides: Python takes one.",
        },
        "d": {
            4.0: "With `has_aux=True` the second part of the result comes back as well.",
            (4.0, 3.0): "What `has_aux` hands through is the extra itself, not its derivative.",
            (4.0, 4.0, 6.0): "`grad` drops the value; `value_and_grad` would return it.",
            ((4.0, 6.0), 4.0): "`grad` drops the value; `value_and_grad` would return it, in front.",
            "error": "The pair is allowed, because of `has_aux=True`.",
        },
        "e": {
            8.0: "4 is an integer, and `grad` refuses integers.",
        },
        "f": {
            1.0: "At a tie `maximum` splits the derivative evenly between its two inputs.",
            0.0: "At a tie `maximum` splits the derivative evenly between its two inputs.",
            1.5: "`floor` is flat wherever it has a derivative.",
            2.0: "`floor` is flat wherever it has a derivative.",
            "error": "JAX gives a number at kinks and steps, too.",
        },
        "g": {
            18.0: "The inner derivative depends on `x`, too: at 3 it is `x * 6`.",
            12.0: "The inner derivative depends on `x`, too; the product has two terms.",
            36.0: "The inner function is differentiated at 3, and the outer one at 2.",
        },
    }
    checks.answers(given, solution, why)


exercise = Exercise(
    title="Seven derivatives, without running anything",
    stars=1,
    minutes=5,
    why="You know what `grad` returns before you run it: for which argument, what besides, and what it makes of kinks.",
    hints=(
        "`argnums` counts from 0. An integer cannot be moved by a little.",
        "Which side does Python take in `c`? What is the derivative of a step function in `f`, and what do equals share?",
        "In `g` the inner derivative is `x * 2 * 3`: write the outer function without it, then differentiate.",
    ),
    solution=solution,
    check=check,
)
