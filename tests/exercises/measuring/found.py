"""Answers to the exercise measuring.found."""

import re

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.measuring._program import HLO
from mlax_tutorial.exercises.measuring.found import exercise, solution
from mlax_tutorial.inspection import costs
from tests.exercises.answers import Answers

answers = Answers(exercise)

answers.wrong("Its result has 16 columns")(solution | {"most FLOPs": "ynn_fusion"})
answers.wrong("a product and an addition")(solution | {"its FLOPs": 64 * 512 * 512})
answers.wrong("that the result does not have")(solution | {"its FLOPs": 2 * 64 * 512})
answers.wrong("not written to memory")(solution | {"only moves data": "transpose.0"})
answers.wrong("look who takes `%b.1`")(solution | {"adds the bias": "ynn_fusion.1"})
answers.wrong("nothing is computed for them")(solution | {"operations that run": 8})
answers.wrong("A float32 has 4 bytes")(solution | {"FLOPs a byte of ynn_fusion": 25})
answers.wrong()(solution | {"FLOPs a byte of ynn_fusion": 7})
answers.wrong("a dict is asked for")(list(solution.values()))

# Right ones of unusual style

answers.right(
    {name: np.int64(value) if isinstance(value, int) else value for name, value in solution.items()}
)

answers.right({name: f"%{value}" if isinstance(value, str) else value for name, value in solution.items()})

# The same from the text, and from the program that it was compiled from.


def _step(x, up, b, down):
    x = x.reshape(8, 8, 512).swapaxes(0, 1).reshape(64, 512)
    return jnp.maximum(x @ up + b, 0) @ down


_shapes = [(64, 512), (512, 512), (512,), (512, 16)]
_whole = costs.cost(_step, *(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in _shapes)).flops
_smaller = 2 * 64 * 512 * 16
_bytes = 4 * (64 * 512 + 512 * 16 + 64 * 16)
answers.right(
    solution
    | {
        "its FLOPs": _whole - _smaller - 2 * 64 * 512,  # without the bias and the maximum
        "operations that run": len(re.findall(r"= .* fusion\(", HLO[HLO.index("ENTRY") :])),
        "FLOPs a byte of ynn_fusion": round(_smaller / _bytes),
    }
)
