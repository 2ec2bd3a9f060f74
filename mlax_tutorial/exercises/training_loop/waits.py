"""Which lines of a loop wait for the device?"""

from mlax_tutorial.checking import Exercise, checks

solution = {
    "a": False,
    "b": True,
    "c": False,
    "d": True,
    "e": False,
    "f": True,
    "g": False,
    "h": False,
}


def check(given):
    why = {
        "a": {True: "A list holds references: the array goes in as it is, ready or not."},
        "b": {False: "`if` needs True or False, so Python asks the comparison for its value."},
        "c": {True: "An addition of arrays is one more thing that is handed over to the device."},
        "d": {False: "To print digits one needs digits."},
        "e": {True: "Shape and dtype are known before the first number is: they came with the trace."},
        "f": {False: "NumPy computes on the host, so every array of the list is fetched first."},
        "g": {True: "`jnp.stack` and `jnp.mean` run on the device, after the steps, and return at once."},
        "h": {True: "The step takes arrays that are still being computed: that is how steps queue up."},
    }
    checks.answers(given, solution, why)


exercise = Exercise(
    title="Which lines wait for the device?",
    stars=1,
    minutes=5,
    why="What needs a number on the host waits; what hands arrays on does not. One such line a step makes the device idle.",
    hints=(
        "Ask of each line: does Python need a *number* here, or only the array?",
        "Four kinds of lines need numbers: conversions, conditions, printing, and NumPy.",
    ),
    solution=solution,
    check=check,
)
