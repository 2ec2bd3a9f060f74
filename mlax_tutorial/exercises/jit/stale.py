"""Which value comes out?"""

from mlax_tutorial.checking import Exercise, checks

solution = {"a": 2, "b": 2, "c": 8, "d": 3, "e": 2, "f": 2, "g": 5}


def check(given):
    old = "The type of the argument is known, so Python does not run: the program has the old rate in it, the constant 2."
    why = {
        "a": {3: "When this call was traced, the rate was 2."},
        "b": {3: old},
        "c": {
            12: old,
            2: "The argument is traced: the program multiplies whatever number comes, here 4.",
        },
        "d": {
            2: "A float32 of JAX's is not weak: another type, so the call is traced, and reads the new rate.",
        },
        "e": {
            3: "`grad` calls the jitted function, with an argument whose type is known, and finds the old trace.",
        },
        "f": {
            1: "There are two types, a weak float32 and one that is not weak, and each is traced once.",
            4: "Python appends only while it traces: once for each type.",
            5: "Python appends only while it traces: once for each type.",
            3: "`grad` finds the trace of a weak float32.",
        },
        "g": {
            2: "Here the dict is an argument, so what is in it is traced: the new value counts.",
        },
    }
    checks.answers(given, solution, why)


exercise = Exercise(
    title="Which value comes out?",
    stars=1,
    minutes=5,
    why="A global that is read while tracing is a constant of the program. An argument is not: that is the whole cure.",
    hints=(
        "For each call: is its type new? Only then does Python run, and read `rate` as it is at this moment.",
        "`1.0` and `4.0` have one type, a weak float32. `jnp.float32(1.0)` has another.",
        "`settings` is an argument of `apply`, a pytree, and `rate` is no argument of `scale`.",
    ),
    solution=solution,
    check=check,
)
