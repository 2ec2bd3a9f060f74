"""Predict eight dtypes."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, checks

solution = {
    "a": "float32",
    "b": "bfloat16",
    "c": "float32",
    "d": "float16",
    "e": "float32",
    "f": "int16",
    "g": "float32",
    "h": "float32",
}


def check(given):
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


exercise = Exercise(
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
    solution=solution,
    check=check,
)
