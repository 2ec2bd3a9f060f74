"""Answers to the exercise combining_layers.insert."""

import jax
import jax.numpy as jnp
import pytest

from mlax_tutorial import nn
from mlax_tutorial.exercises.combining_layers.insert import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)

FIRST, SECOND, THIRD = (f"{which} Linear's kernel" for which in ("first", "second", "third"))
answers.wrong("the first of seven keys is the first of six")(solution | {FIRST: "changed"})
answers.wrong("draws from the fourth key")(solution | {SECOND: "same"})
answers.wrong("a bias begins at zero")(solution | {"Bias's bias": "changed"})
answers.wrong("it is still the second of two")(solution | {"second Dropout's mask": "changed"})
answers.wrong("so the two Dropouts still share")(solution | {"first Dropout's mask": "changed"})
answers.wrong("At the end nobody stands behind it")(
    solution | {"the kernels, if the ReLU were appended at the end": "changed"}
)
answers.wrong("not 'other'")(solution | {SECOND: "other"})
answers.wrong()(solution | {THIRD: "same"})
answers.wrong()(dict.fromkeys(solution, "changed"))
answers.right({name: answer.upper() for name, answer in solution.items()})
answers.right(dict(reversed(solution.items())))
answers.right({name: f" {answer} " for name, answer in solution.items()})


@pytest.fixture(scope="module")
def before_and_after():
    before = (
        nn.Linear(8),
        nn.Dropout(0.5),
        nn.Linear(8),
        nn.Bias(),
        nn.Dropout(0.5),
        nn.Linear(2),
    )
    after = (*before[:2], nn.F(jax.nn.relu), *before[2:])
    return nn.Series(*before), nn.Series(*after), nn.Series(*before, nn.F(jax.nn.relu))


def test_the_weights_are_so(before_and_after):
    x, key = jnp.ones((2, 4)), jax.random.key(3)
    before, after, appended = (model.init(key, x)[0] for model in before_and_after)

    def answer(one, two):
        return "same" if jnp.array_equal(one, two) else "changed"

    assert answer(before[0]["kernel"], after[0]["kernel"]) == solution[FIRST]
    assert answer(before[2]["kernel"], after[3]["kernel"]) == solution[SECOND]
    assert answer(before[5]["kernel"], after[6]["kernel"]) == solution[THIRD]
    assert answer(before[3]["bias"], after[4]["bias"]) == solution["Bias's bias"]
    ends = {answer(before[place]["kernel"], appended[place]["kernel"]) for place in (0, 2, 5)}
    assert ends == {solution["the kernels, if the ReLU were appended at the end"]}


def test_the_masks_are_so(before_and_after):
    x, key = jnp.ones((2, 4)), jax.random.key(3)
    masks = []
    for model, places in zip(before_and_after, [(1, 4), (1, 5)]):
        trainables, non_trainables = model.init(jax.random.key(0), x)
        trainables = jax.tree.map(jnp.ones_like, trainables)
        _, captured = nn.capture(model)(x, trainables, non_trainables, key=key)
        masks.append([captured[f"[{place}]"] != 0 for place in places])
    for name, one, two in zip(("first", "second"), *masks):
        assert solution[f"{name} Dropout's mask"] == "same" and jnp.array_equal(one, two)
