"""Weight and spectral normalization, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn

LAYERS = {
    "linear": (nn.Linear(3), (2, 4), lambda kernel: kernel.T),
    "transposed": (nn.Linear(3, transposed_kernel=True), (2, 4), lambda kernel: kernel),
    "conv": (nn.Conv(3, (2, 2)), (2, 5, 5, 4), lambda kernel: kernel.reshape(3, -1)),
    "another layout": (nn.ConvTranspose(3, (2,), kernel_spec="WIO"), (2, 5, 4), lambda kernel: kernel.reshape(-1, 3).T),
}  # fmt: skip
layers = pytest.mark.parametrize(("layer", "shape", "rows"), LAYERS.values(), ids=LAYERS)


def made(layer, shape):
    x = jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)
    return x, *layer.init(jax.random.key(0), x)


@layers
def test_weight_norm_changes_nothing_at_first_and_then_the_length(layer, shape, rows):
    x, trainables, _ = made(nn.WeightNorm(layer), shape)
    plain, _ = layer.fwd(x, trainables["layer"], ())
    np.testing.assert_allclose(nn.WeightNorm(layer).fwd(x, trainables, ())[0], plain, atol=1e-5)
    np.testing.assert_allclose(
        trainables["scale"],
        np.linalg.norm(rows(np.asarray(trainables["layer"]["kernel"])), axis=1),
        rtol=1e-6,
    )
    other = {"layer": {"kernel": 7 * trainables["layer"]["kernel"]}, "scale": 2 * trainables["scale"]}
    np.testing.assert_allclose(nn.WeightNorm(layer).fwd(x, other, ())[0], 2 * plain, atol=1e-5)


@layers
def test_spectral_norm_divides_by_the_largest_singular_value(layer, shape, rows):
    wrapped = nn.SpectralNorm(layer, iterations=30)
    x, trainables, non_trainables = made(wrapped, shape)
    largest = np.linalg.svd(rows(np.asarray(trainables["kernel"])), compute_uv=False)[0]
    plain, _ = layer.fwd(x, trainables, ())
    y, non_trainables = wrapped.fwd(x, trainables, non_trainables)
    np.testing.assert_allclose(y, plain / largest, rtol=1e-3, atol=1e-5)
    same, kept = wrapped.fwd(x, trainables, non_trainables, inference_mode=True)
    np.testing.assert_allclose(same, y, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(kept["vector"], non_trainables["vector"])


def test_a_step_of_the_power_iteration_and_its_gradient():
    """Written out: the vectors count as constants."""
    layer = nn.SpectralNorm(nn.Linear(3))
    x, trainables, _ = made(layer, (2, 4))
    kernel, u = np.asarray(trainables["kernel"]), np.ones(3, np.float32)

    def loss(trainables):
        y, kept = layer.fwd(x, trainables, {"vector": jnp.asarray(u)})
        return jnp.sum(jnp.square(y)), kept

    gradient, kept = jax.grad(loss, has_aux=True)(trainables)
    v = kernel @ u / np.linalg.norm(kernel @ u)
    new = kernel.T @ v / np.linalg.norm(kernel.T @ v)
    np.testing.assert_allclose(kept["vector"], new, rtol=1e-5)
    v = kernel @ new / np.linalg.norm(kernel @ new)
    wanted = jax.grad(lambda k: jnp.sum(jnp.square(x @ (k / (new @ (k.T @ v))))))(trainables["kernel"])
    np.testing.assert_allclose(gradient["kernel"], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("wrapper", [nn.WeightNorm, nn.SpectralNorm])
@pytest.mark.parametrize("wrong", [nn.LSTMCell(3), nn.Series(nn.Linear(3)), nn.Linear, 3])
def test_what_has_no_kernel(wrapper, wrong):
    with pytest.raises(ValueError, match="layer must be a Linear, a Conv or a ConvTranspose"):
        wrapper(wrong)


def test_wrong_calls():
    x = jnp.ones((2, 4))
    with pytest.raises(nn.LayerError, match=r"^model\.layer\.Linear: x expects floating-point numbers"):
        nn.WeightNorm(nn.Linear(3)).init(jax.random.key(0), x.astype(int))
    with pytest.raises(ValueError, match="iterations must be an integer of at least 1"):
        nn.SpectralNorm(nn.Linear(3), iterations=0)
    layer = nn.SpectralNorm(nn.Linear(3))
    variables = layer.init(jax.random.key(0), x)
    with pytest.raises(nn.LayerError, match="must be a Python bool"):
        jax.jit(lambda mode: layer.fwd(x, *variables, inference_mode=mode))(True)
