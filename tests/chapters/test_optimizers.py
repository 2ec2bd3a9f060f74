"""*Optimizers*: the optimizers that its reader types obey the laws, agree with Optax, and train the part's first network."""

import jax
import jax.numpy as jnp
import optax
import pytest

from mlax_tutorial.checking import checks, laws
from tests.chapters import assembled

TWINS = {
    "SGD": optax.sgd(0.1),
    "Momentum": optax.sgd(0.1, momentum=0.9),
    "RMSProp": optax.rmsprop(0.1, eps_in_sqrt=False),
    "Adam": optax.adam(0.1),
    "Lion": optax.lion(0.1, weight_decay=0.0),
}


@pytest.fixture(scope="module")
def code():
    helpers = "zeros", "squared"  # the chapter ends with others than it begins with
    names = "Scheduled", "Cosine", "epoch", "batches", "model", "weights"
    return assembled.definitions("book/optimizers.ipynb", *TWINS, *helpers, *names)


@pytest.mark.parametrize("name", TWINS)
def test_each_obeys_all_laws(code, name):
    checks.obeys_optimizer_laws(code[name], peer=TWINS[name])


def test_a_schedule_obeys_them_too(code):
    def make(rate):
        return code["Scheduled"](code["Momentum"](rate), code["Cosine"](50))

    assert not laws.report_optimizer(make).broken


def test_the_network_trains(code):
    optimizer, weights = code["Scheduled"](code["Adam"](1e-3), code["Cosine"](60)), code["weights"]
    state = optimizer.init(weights)
    _, state, losses = jax.jit(code["epoch"])(optimizer, weights, state, code["batches"][:20])
    assert losses[0] > 2 > 1.2 > losses[-3:].mean()
    assert jnp.isfinite(losses).all() and state[0] == 20
