"""What does the count say after three calls?"""

from mlax_tutorial.checking import Exercise, checks

solution = {"a": 3, "b": 0, "c": "error", "d": "error", "e": 3, "f": 1, "g": 3, "h": 0, "i": 7, "j": "error"}


def check(given):
    tracer = "`scale` is closed over: it is your object itself that is written to while tracing. With what?"
    why = {
        "a": {
            0: "Our `jit` returns what the boxes hold after the call, and `update` writes it into yours.",
            1: "Each call runs the program, and each result is written back.",
        },
        "b": {
            3: "`jax.jit` hands your function a new object. Who sees it afterwards?",
            1: "The function writes to a new object while it is traced; yours is never written to.",
            "error": "Nothing leaks: what is written to is a new object, which is forgotten.",
        },
        "c": {3: tracer, 0: tracer, 1: tracer},
        "d": {
            3: "A bound method brings its object along, and not as an argument.",
            0: "A bound method brings its object along, and not as an argument: so it is your object that is written to.",
            1: "A bound method brings its object along. What is written to it while tracing?",
        },
        "e": {
            1: "One traced call of the outer function, but how often does Python run the inner one in it?",
            0: "The outer function gets the module as its argument, and our `jit` writes back.",
            "error": "The list of results is a pytree: it may be returned.",
        },
        "f": {
            3: "`vmap` runs the function once, on a batched tracer. Is what it adds to the count batched?",
            0: "`scale` is closed over, so your own object is written to.",
            "error": "Look at what is written: `calls + 1` does not depend on the batched input.",
        },
        "g": {
            0: "`update` walks any tree to its boxes: a dict of modules will do.",
            "error": "Nothing here needs a module: `update` walks any tree to its boxes, a dict of modules, too.",
            1: "Each call runs the program, and each result is written back.",
        },
        "h": {
            1: "Which argument is written back? `scale` is the second one here.",
            "error": "`scale` is an argument, so nothing leaks. Which argument is written back?",
        },
        "i": {
            0: "The new box has the name of the old one, so the structure is the same. What does `update` find in it?",
            1: "The lambda does not call `scale`: it puts a new box in the place of `calls`. What is in it?",
            "error": "The new box has the name of the old one, so the structure has not changed. What does `update` find in it?",
        },
        "j": {
            0: "`last` is an attribute that was not there before. What does `pure` compare?",
            1: "The lambda does not call `scale`: it sets an attribute that was not there before.",
        },
    }
    checks.answers(given, solution, why)


exercise = Exercise(
    title="Find the state that leaked",
    stars=2,
    minutes=10,
    why="State is kept, lost or leaks by two questions: is the object an argument, and is what was written returned.",
    hints=(
        "For each: is `scale` an argument of the jitted function, or closed over? And which `jit` is it?",
        "For c and d: under a trace `calls + 1` is a tracer, and your own box gets it. For i and j: compare the structure before and after.",
    ),
    solution=solution,
    check=check,
)
