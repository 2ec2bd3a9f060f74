"""Answers to the exercise recurrent.weights."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.exercises.recurrent.weights import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)

answers.wrong("The bias is missing: 20 more")(solution | {"a": 600})
answers.wrong("from state to state")(solution | {"a": 220})
answers.wrong("three gates and a candidate")(solution | {"b": 620})
answers.wrong("the second state, c".replace("the", "The", 1))(solution | {"b": 4960})
answers.wrong("a second bias")(solution | {"c": 1860})
answers.wrong("an LSTM has four")(solution | {"c": 2480})
answers.wrong("All steps share one set")(solution | {"d": 124_000})
answers.wrong("weights of its own")(solution | {"e": 620})
answers.wrong("a dict is asked for")(list(solution.values()))

answers.right({name: np.int64(value) for name, value in solution.items()})
answers.right(dict(reversed(solution.items())))
answers.right(solution | {"a": 20 * 31, "b": 4 * 20 * 31})
answers.wrong()(solution | {"a": "620"})
answers.wrong()({name: 2 * value for name, value in solution.items()})


def test_the_package_agrees():
    layers = {
        "a": nn.Recurrent(nn.RNNCell(20)),
        "b": nn.Recurrent(nn.LSTMCell(20)),
        "c": nn.Recurrent(nn.GRUCell(20)),
        "d": nn.Recurrent(nn.LSTMCell(20)),
        "e": nn.Bidirectional(nn.RNNCell(20)),
    }
    for name, layer in layers.items():
        x = jax.ShapeDtypeStruct((50, 10), jnp.float32)
        made, _ = jax.eval_shape(layer.init, jax.random.key(0), x)
        assert sum(leaf.size for leaf in jax.tree.leaves(made)) == solution[name]
