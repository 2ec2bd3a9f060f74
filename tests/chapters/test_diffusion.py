"""*Diffusion*: what its reader defines computes what the chapter says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    names = (
        "denoise",
        "net",
        "noise_levels",
        "sample",
        "unrolled",
        "linear",
        "encode",
        "decode",
    )
    return assembled.definitions("book/diffusion.ipynb", *names)


@pytest.fixture(scope="module")
def weights(code):
    label = jnp.zeros(1, jnp.int32)
    found, _ = jax.jit(code["net"].init)(jax.random.key(0), jnp.ones((1, 64)), sigma=jnp.ones(1), label=label)
    return found


def test_with_little_noise_the_input_is_the_answer_and_with_much_it_does_not_count(code, weights):
    x, label = jax.random.normal(jax.random.key(1), (5, 64)), jnp.arange(5)
    np.testing.assert_allclose(code["denoise"](weights, x, 1e-4, label), x, atol=1e-3)
    far = 1e4 * x
    answer = code["denoise"](weights, far, 1e4, label)
    assert float(jnp.abs(answer).max()) < 20


def test_the_flow_of_the_wiener_filter_ends_in_the_normal_distribution_that_it_assumes(code):
    """For one normal distribution the linear filter is the exact denoiser, so sampling must give its variances back."""
    variance, label = code["variance"], jnp.zeros(4000, jnp.int32)
    drawn = code["sample"](code["linear"], jax.random.key(2), label, code["noise_levels"](160))
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.12)
    few = jnp.zeros(3, jnp.int32)
    levels = code["noise_levels"](7)
    one, other = (
        code[name](code["linear"], jax.random.key(3), few, levels) for name in ("sample", "unrolled")
    )
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_components_are_projections(code):
    images = code["images"]
    assert float(jnp.std(images)) == pytest.approx(1, abs=0.01)
    once = code["decode"](images[:20])
    again = code["decode"](code["encode"](once))
    assert float(jnp.abs(once - again).mean()) < 0.02
