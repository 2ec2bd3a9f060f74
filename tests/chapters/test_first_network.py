"""*A first network*: the network, the loss and the step that its reader writes in plain JAX learn to tell clothes apart."""

import jax

from tests.chapters import assembled


def test_the_network_in_plain_jax_trains():
    code = assembled.definitions(
        "book/first_network.ipynb", "init", "train_step", "accuracy", "train_x", "train_y"
    )
    images, labels = code["train_x"][:1000], code["train_y"][:1000]
    params = code["init"](jax.random.key(0))
    before = code["accuracy"](params, images, labels)
    for _ in range(30):
        params, _ = code["train_step"](params, images, labels, 0.2)
    assert before < 0.3 and code["accuracy"](params, images, labels) > 0.6
