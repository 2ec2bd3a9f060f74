"""Answers to the exercise layers.broken."""

import collections

import jax.numpy as jnp
import pytest

from mlax_tutorial.checking import laws
from mlax_tutorial.exercises import layers
from mlax_tutorial.exercises.layers.broken import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)

answers.wrong("what does it average over")(solution | {"Standardize": "any batch axes"})
answers.wrong("what is not looked at that should be")(solution | {"Affine": "init from shapes"})
answers.wrong("For which numbers of axes")(solution | {"Center": "batch equals loop"})
answers.wrong("Both draws are made")(solution | {"Noise": "dtype outside"})
answers.wrong("Which of these layers draw")(solution | {"Power": "keys used once"})
answers.wrong("Look at init")(solution | {"Offset": "batch equals loop"})
answers.wrong("a dict is asked for")(list(solution.values()))
answers.wrong("One string is asked for")({name: [law] for name, law in solution.items()})
answers.wrong("No answer for")({name: law for name, law in solution.items() if name != "Noise"})

# Wrong ones that look right

answers.wrong()(solution | {"Standardize": "any batch axes", "Center": "batch equals loop"})
answers.wrong()(solution | {"Power": "static"})

# Right ones of unusual style

answers.right(collections.OrderedDict(reversed(solution.items())))
answers.right({name: law.upper() for name, law in solution.items()})
answers.right({name: f" {law} " for name, law in solution.items()})


@pytest.mark.parametrize("suspect", layers.SUSPECTS, ids=lambda suspect: suspect.__name__)
def test_each_suspect_breaks_its_law_and_no_other_of_the_six(suspect):
    broken = laws.report(suspect(), jnp.ones((2, 4))).broken
    assert set(broken) & set(solution.values()) == {solution[suspect.__name__]}
