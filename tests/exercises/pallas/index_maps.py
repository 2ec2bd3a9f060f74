"""Answers to the exercise pallas.index_maps."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from mlax_tutorial.exercises.pallas.index_maps import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)
PLAIN, TURNED, FIRST, BACK, HALVED, TALL = solution

answers.wrong("That is the number of the block")(solution | {PLAIN: (1, 2)})
answers.wrong("The map exchanges the two")(solution | {TURNED: (8, 256)})
answers.wrong("The map does not use `i`")(solution | {FIRST: (8, 256)})
answers.wrong("gone through backwards")(solution | {BACK: (8, 256)})
answers.wrong("Two steps in a row see one block")(solution | {HALVED: (8, 256)})
answers.wrong("A block has 16 rows here")(solution | {TALL: (8, 0)})
answers.wrong("a dict is asked for")(list(solution.values()))
answers.wrong()(solution | {PLAIN: 8})
answers.wrong()(solution | {PLAIN: np.array(8)})
answers.wrong()({question: (8, 256) for question in solution})

answers.right(dict(reversed(solution.items())))
answers.right({question: list(place) for question, place in solution.items()})
answers.right({question: tuple(map(np.int64, place)) for question, place in solution.items()})
answers.right({question: np.array(place) for question, place in solution.items()})
answers.right({question: jnp.array(place) for question, place in solution.items()})
answers.right({question: tuple(jnp.array(place)) for question, place in solution.items()})


def test_pallas_agrees():
    """What step (1, 2) sees, by a kernel: the array holds its own indices."""
    rows, columns = jnp.indices((32, 512))
    for question, place in solution.items():
        index_map = eval("lambda i, j" + question.split("lambda i, j")[1])
        block = eval(question.split(", lambda")[0])

        def kernel(x_ref, y_ref):
            @pl.when((pl.program_id(0) == 1) & (pl.program_id(1) == 2))
            def _():
                y_ref[...] = x_ref[:1, :1]

        seen = pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((1, 1), jnp.int32),
            grid=(2, 4),
            in_specs=[pl.BlockSpec(block, index_map)],
            out_specs=pl.BlockSpec((1, 1), lambda i, j: (0, 0)),
            interpret=True,
        )(1000 * rows + columns)
        assert divmod(int(seen[0, 0]), 1000) == place, question
