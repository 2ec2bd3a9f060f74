"""Answers to the exercise precision.numbers."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.precision.numbers import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("257 is a tie")(solution | {"a": 258})
answers.wrong("odd numbers are not among them")(solution | {"b": 259})
answers.wrong("above 2048 its numbers are 2 apart")(solution | {"c": 2049})
answers.wrong("The largest float16 is 65504")(solution | {"d": 120_000})
answers.wrong("it does not stop at the largest number")(solution | {"d": 65504})
answers.wrong("First ask what")(solution | {"e": 0.001})
answers.wrong("which neighbor is nearer")(solution | {"f": 6e-8})
answers.wrong("at 64 it is 64 times as large")(solution | {"g": 64 + 2**-7})
answers.wrong("Two bits of fraction")(solution | {"h": 0.3})
answers.wrong("2 of 8 answers")(solution | {"a": 257.5, "h": 0.5})
answers.wrong("A number is asked for")(solution | {"d": "inf"})
answers.wrong("a dict is asked for")(list(solution.values()))


# Right ones of unusual style, and wrong ones that look right


answers.right({name: jnp.float32(value) for name, value in solution.items()})
answers.right({name: np.float64(value) for name, value in solution.items()})
answers.right(solution | {"a": 256, "b": 260, "c": 2**11, "d": jnp.inf, "e": -0.0, "f": 0})
answers.wrong()(solution | {"d": float("-inf")})
answers.wrong()(solution | {"h": 0.3125 + 1e-6})
answers.wrong("itself of half precision")(solution | {"a": jnp.bfloat16(257)})
answers.wrong("itself of half precision")(solution | {"c": np.float16(2049)})
answers.wrong("itself of half precision")(solution | {"h": jnp.float32(0.3).astype(jnp.float8_e5m2)})
answers.right(solution | {"b": np.int32(260), "g": np.array(64.5)})
