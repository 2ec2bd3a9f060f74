"""*Measuring*: the programs that its reader measures compute what the chapter says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial.inspection import costs
from tests.chapters import assembled

NAMES = "a b corner row turned gradient training_step mlp decoder images labels ids"


@pytest.fixture(scope="module")
def code():
    return assembled.definitions("book/measuring.ipynb", *NAMES.split())


def test_what_was_folded_while_compiling_is_the_product(code):
    a, b = code["a"], code["b"]
    with jax.default_matmul_precision("highest"):
        wanted = a @ b
        np.testing.assert_allclose(jax.jit(lambda: a @ b)(), wanted, atol=1e-3)
    np.testing.assert_allclose(code["corner"](a, b), wanted[0, 0], atol=0.5)
    np.testing.assert_allclose(code["row"](a, b), wanted[0, 0], atol=0.5)


def test_no_shape_shrinks_a_product_to_the_part_that_is_read(code):
    for n in (8, 33):
        square = jax.ShapeDtypeStruct((n, n), jnp.float32)
        assert costs.cost(code["corner"], square, square).flops == 2 * n**3
        assert costs.cost(code["row"], square, square).flops <= 2 * n


def test_remat_changes_no_gradient(code):
    x, weights = jax.random.normal(jax.random.key(0), (5, 4)), jnp.sin(jnp.arange(96.0)).reshape(6, 4, 4)
    with jax.default_matmul_precision("highest"):
        plain, remat = (code["gradient"](remat)(x, weights) for remat in (False, True))
    for one, other in zip(plain, remat, strict=True):  # with respect to x, and to the weights
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def test_a_token_of_the_decoder_knows_none_that_come_later(code):
    step, w, ids, targets = code["training_step"](code["decoder"], code["ids"][:2, :9], code["ids"][:2, 1:10])
    logits, _ = code["decoder"].fwd(ids, w, ())
    other, _ = code["decoder"].fwd(ids.at[:, 6:].set(0), w, ())
    np.testing.assert_allclose(logits[:, :6], other[:, :6], atol=1e-4)
    assert logits.shape == (2, 9, 95) and float(jnp.abs(logits[:, 6:] - other[:, 6:]).max()) > 1e-3


def test_a_step_has_the_loss_of_a_guess_and_a_gradient_for_each_weight(code):
    step, w, x, y = code["training_step"](code["mlp"], code["images"][:4], code["labels"][:4])
    loss, gradients = step(jax.tree.map(jnp.zeros_like, w), x, y)
    assert float(loss) == pytest.approx(np.log(10), rel=1e-5)  # ten classes, all alike
    assert jax.tree.map(jnp.shape, gradients) == jax.tree.map(jnp.shape, w)
