"""How many traces?"""

from mlax_tutorial.checking import Exercise, checks

solution = {"a": 1, "b": 3, "c": 2, "d": 2, "e": 2, "f": 2, "g": 5, "h": 1}


def check(given):
    values = "The numbers are not in the key: all are weak floats."
    why = {
        "a": {3: values, 2: values},
        "b": {
            1: "Python's int, float and bool are three types to JAX: int32, float32 and bool.",
            2: "A bool is a type of its own, it is not the number 1: int32, float32 and bool.",
        },
        "c": {
            1: "A shape is more than the number of elements: (2,) and (1, 2) are two.",
            3: "A NumPy array of the same shape and dtype is the same type as a JAX array.",
        },
        "d": {
            1: "A longer list has more leaves: it is another structure.",
            3: "The third list has the structure and the types of the first.",
        },
        "e": {
            1: "A key that holds None is a part of the structure, though there is no leaf: the second dict has no such key.",
            3: "A dict's order does not count: the third has the structure of the first.",
        },
        "f": {
            1: "Which arguments come by name is a part of the key: `f(x=1.0)` is looked up apart from `f(1.0)`."
        },
        "g": {
            1: "`lambda` makes a new function each time it is run, and the function is the first part of the key.",
            0: "`jax.jit(...)(1.0)` calls the function, so it is traced.",
            6: "range(5) has five rounds.",
        },
        "h": {
            5: "The numbers are not in the key: five times a float32 without axes.",
            0: "The first call finds an empty cache.",
        },
    }
    checks.answers(given, solution, why)


exercise = Exercise(
    title="How many traces?",
    stars=1,
    minutes=5,
    why="Whoever can count traces by looking at the calls has half of all slow JAX programs explained.",
    hints=(
        "Write the key of each call: the structure, and for each leaf shape, dtype and whether it is weak. Then count the different ones.",
        "Python's `1`, `1.0` and `True` have three dtypes. A NumPy array has the type of a JAX array. None is structure, not a leaf.",
        "`g` makes a new function in each round.",
    ),
    solution=solution,
    check=check,
)
