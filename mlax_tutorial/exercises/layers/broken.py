"""Which law does each of six layers break?"""

from mlax_tutorial.checking import Exercise, checks

solution = {
    "Standardize": "batch equals loop",
    "Affine": "dtype outside",
    "Center": "any batch axes",
    "Noise": "keys used once",
    "Power": "equal by value",
    "Offset": "init from shapes",
}


def check(given):
    pure = "init has nothing to look at here, so it looks at no numbers."
    axes = "Try it in your mind on one example, of shape (4,), and on (3, 2, 4): which line cares?"
    dtype = "Which dtype has each array for x of bfloat16? Those that are made say it themselves."
    once = "Which of these layers draw random numbers at all?"
    why = {
        "Standardize": {
            "any batch axes": "It takes any number of axes. But what does it average over?",
            "init from shapes": pure,
            "dtype outside": "A mean has the dtype of its input.",
            "keys used once": once,
        },
        "Affine": {
            "any batch axes": "The scale has the size of the last axis, and broadcasts over all in front.",
            "batch equals loop": "Each example is multiplied by the same numbers, alone or in a batch.",
            "init from shapes": "Only x.shape is looked at. But what is not looked at that should be?",
            "keys used once": once,
        },
        "Center": {
            "batch equals loop": "Where it runs at all, each example is centered by itself. For which numbers of axes does it run?",
            "dtype outside": "A mean has the dtype of its input.",
            "init from shapes": pure,
            "keys used once": once,
        },
        "Noise": {
            "dtype outside": "Both draws are made in the dtype of x.",
            "batch equals loop": "With a key for each example a loop draws other numbers: this law does not ask that of layers that draw.",
            "any batch axes": axes,
            "init from shapes": pure,
        },
        "Power": {
            "dtype outside": dtype,
            "any batch axes": axes,
            "init from shapes": pure,
            "keys used once": once,
        },
        "Offset": {
            "any batch axes": "All axes in front are merged before the mean, so any number will do.",
            "dtype outside": dtype,
            "batch equals loop": "fwd adds the same offset to each example. Look at init.",
            "keys used once": once,
        },
    }
    checks.answers(given, solution, why)


exercise = Exercise(
    title="Which law is broken?",
    stars=3,
    minutes=15,
    why="Each of these layers runs and trains: a law that is an equation finds what no error message would.",
    hints=(
        "Read each layer six times, each time with one question: another number of axes, one example alone, bfloat16, a "
        "ShapeDtypeStruct in init, the same layer built again, how often the key is used.",
        "`laws.report(ex.SUSPECTS[0](), jnp.ones((2, 4)))` says which laws the first one breaks; take the one from the list.",
    ),
    solution=solution,
    check=check,
)
