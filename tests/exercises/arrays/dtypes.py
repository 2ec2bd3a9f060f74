"""Answers to the exercise arrays.dtypes."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.arrays.dtypes import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("takes the dtype of the array that it meets")(solution | {"b": "float32"})
answers.wrong("only Python's numbers are weak")(solution | {"c": jnp.bfloat16})
answers.wrong("an integer array, however wide")(solution | {"d": "float64"})
answers.wrong("neither of the two holds the other")(solution | {"h": "bfloat16"})
answers.wrong("2 of 8 answers")(solution | {"e": np.dtype("float64"), "g": "int32"})
answers.wrong("the default float has 32 bits")(solution | {"a": "jnp.float64"})
answers.wrong("the kind changes")(solution | {"a": "int32"})
answers.wrong("No unsigned dtype")(solution | {"f": "uint16"})
answers.wrong("The name of one dtype, with its width")(solution | {"g": "float"})
answers.wrong("The name of one dtype, with its width")(solution | {"g": np.floating})
answers.wrong("The name of one dtype, with its width")(solution | {"a": jnp.arange(3) * 2.5})
answers.wrong("a dict is asked for")(list(solution.values()))


# Right ones of unusual style, and wrong ones that look right


DTYPES = solution


answers.right({name: getattr(jnp, dtype) for name, dtype in DTYPES.items()})
answers.right({name: jnp.dtype(dtype) for name, dtype in DTYPES.items()})
answers.right({name: f" jnp.{dtype.title()} " for name, dtype in DTYPES.items()})
answers.right(DTYPES | {"a": np.float32, "d": "f2", "e": "<f4", "f": "i2"})
