"""What JAX passes to a rule."""

from mlax_tutorial.checking import Exercise, checks

solution = {
    "a": ("x", "g", "n"),
    "b": ("g", "r", "c"),
    "c": 2,
    "d": "zeros",
    "e": "float0",
    "f": "error",
    "g": 0,
}


def check(given):
    why = {
        "a": {
            (
                "g",
                "x",
                "n",
            ): "Only the backward pass gets it in front: the forward pass is called as the function is.",
            ("x", "n"): "The forward pass is called as the function is, with all arguments.",
        },
        "b": {
            ("r", "c", "g"): "What `nondiff_argnums` names comes first, wherever it stands in the function.",
            ("r", "g", "c"): "What `nondiff_argnums` names comes first, wherever it stands in the function.",
            ("r", "c"): "The backward pass needs `g`, too, and residuals are arrays: JAX passes it in front.",
            ("g", "c", "r"): "The residuals come before the cotangent.",
        },
        "c": {
            3: "There is none for an argument that `nondiff_argnums` names.",
            1: "The integer has an entry as well: None.",
        },
        "d": {
            "error": "None is allowed: it stands for something.",
            "None": "JAX writes the array out that None stands for.",
        },
        "e": {
            "error": "There is a tangent, but one that holds nothing.",
            "zeros": "An integer cannot move, so that its tangent has a dtype of its own.",
        },
        "f": {
            "zeros": "From a backward pass JAX cannot make a forward mode.",
        },
        "g": {
            "error": "JAX does not look at your numbers: not to use the tangent says that nothing moves.",
        },
    }
    if isinstance(given, dict):  # of an array they are zeros, of a number it is 0: each says the same
        zero = [n for n in "dg" if isinstance(given.get(n), (int, float, str)) and given[n] in (0, "zeros")]
        given = given | {name: solution[name] for name in zero}
        given = {name: tuple(one) if isinstance(one, list) else one for name, one in given.items()}
    checks.answers(given, solution, why)


exercise = Exercise(
    title="What JAX passes to a rule",
    stars=1,
    minutes=6,
    why="It is JAX that calls your rules: you know what they get, and what they owe.",
    hints=(
        "The forward pass replaces the function, so it is called in the same way.",
        "The table at the top of the section has rows for functions, integers and None.",
    ),
    solution=solution,
    check=check,
)
