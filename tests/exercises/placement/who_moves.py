"""Answers to the exercise placement.who_moves."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.placement.who_moves import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)

answers.wrong("goes to where a committed one is")(solution | {"u + a": 0})
answers.wrong("has no place of its own")(solution | {"n + b": 0})
answers.wrong("does not choose between them")(solution | {"a + b": 1})
answers.wrong("moves committed arrays, too")(solution | {"jax.device_put(a, jax.devices()[2]) + b": "error"})
answers.wrong("sees a tracer, which has no device")(solution | {"jax.jit(jnp.zeros_like)(a) + b": 1})
answers.wrong("But now somebody said so")(solution | {"jax.device_put(u, jax.devices()[0]) + a": 1})
answers.wrong("a dict is asked for")(list(solution.values()))

# Right ones of unusual style, and wrong ones that look right

answers.right({name: np.int64(value) if value != "error" else value for name, value in solution.items()})
answers.right({name: jnp.int32(value) if value != "error" else value for name, value in solution.items()})
answers.right(dict(reversed(solution.items())))
answers.wrong()({name: 1 for name in solution})
answers.wrong()({name: str(value) for name, value in solution.items()})
