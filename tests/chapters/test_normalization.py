"""*Normalization and dropout*: the layers that its reader writes obey the laws, agree with the package's, and make deep networks that learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn
from mlax_tutorial.checking import laws
from tests.chapters import assembled

# A reader's variance is `jnp.var`, which chooses once.
WIDE = laws.STATISTICS | {"select_n"}


@pytest.fixture(scope="module")
def code():
    return assembled.definitions(
        "book/normalization.ipynb",
        "standardize",
        "group_norm",
        "LayerNorm",
        "BatchNorm",
        "Dropout",
        "deep",
        "accuracies",
    )


@pytest.mark.parametrize("name", ["LayerNorm", "BatchNorm", "Dropout"])
def test_the_readers_layers_obey_the_laws(code, name):
    options = {
        "LayerNorm": {"accumulates": WIDE},
        "BatchNorm": {"accumulates": WIDE, "averages": True},
        "Dropout": {"draws": True},
    }[name]
    layer = code[name](0.5) if name == "Dropout" else code[name]()
    report = laws.report(layer, jnp.ones((2, 4)), **options)
    assert not report.broken, report


def test_they_agree_with_the_packages(code):
    x = jnp.asarray(np.random.default_rng(0).normal(2, 3, (5, 4, 6)), jnp.float32)
    for ours, theirs in [
        (code["LayerNorm"](), nn.LayerNorm()),
        (code["BatchNorm"](0.7), nn.BatchNorm(momentum=0.7)),
    ]:
        variables = ours.init(jax.random.key(0), x)
        assert jax.tree.structure(variables) == jax.tree.structure(theirs.init(jax.random.key(0), x))
        for mode in (False, True):
            got, wanted = (layer.fwd(x, *variables, inference_mode=mode) for layer in (ours, theirs))
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), got, wanted)


def test_a_deep_network_of_the_readers_trains(code):
    model = code["deep"](8, code["BatchNorm"](), nn.Scale(), skip=True)
    variables = model.init(jax.random.key(1), code["x_test"][:1])
    assert code["accuracies"](model, *variables).max() > 0.6
