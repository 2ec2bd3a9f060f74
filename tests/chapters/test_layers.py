"""*Layers*: the layers that its reader writes make a network that learns, and obey the laws."""

import jax
import jax.numpy as jnp
import pytest

from mlax_tutorial import viz
from mlax_tutorial.checking import laws
from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    return assembled.definitions(
        "book/layers.ipynb",
        "Linear",
        "Bias",
        "F",
        "flat",
        "init",
        "forward",
        "loss",
        "step",
        "batches",
        "network",
    )


def test_the_readers_network_trains(code):
    network = (
        code["flat"],
        code["Linear"](32),
        code["Bias"](),
        code["F"](jax.nn.relu),
        code["Linear"](10),
    )
    images, labels = (leaf[:10] for leaf in code["batches"])
    outline = jax.ShapeDtypeStruct(images.shape[1:], images.dtype)
    code["network"] = network  # the loss of the chapter reads it
    trainables = jax.jit(code["init"])(network, jax.random.key(0), outline)
    before = code["loss"](trainables, images[0], labels[0])
    for _ in range(5):
        trainables, _ = jax.lax.scan(code["step"], trainables, (images, labels))
    assert code["loss"](trainables, images[0], labels[0]) < 0.5 * before


@pytest.mark.parametrize("name", ["Linear", "Bias", "F"])
def test_the_readers_layers_obey_the_laws(code, name):
    layer = {
        "Linear": lambda: code["Linear"](3),
        "Bias": lambda: code["Bias"](),
        "F": lambda: code["F"](jnp.tanh),
    }
    assert not laws.report(layer[name](), jnp.ones((2, 4))).broken


def test_the_readers_linear_can_be_looked_at(code):
    shown = repr(viz.model(code["Linear"](3), jnp.ones((2, 4))))
    assert "float32[2,4] -> float32[2,3], 12 numbers, 48 B, 48 FLOPs" in shown
