"""Normalization where it has nothing to divide by: one value, zeros, an epsilon that is none."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn

RANDOM = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
ONE = jnp.ones((1, 4))


def train(layer, x, **options):
    return layer.fwd(x, *layer.init(jax.random.key(0), x), **options)


SINGLE = {
    "a batch of one": (lambda: train(nn.BatchNorm(), ONE), r"BatchNorm: x .*for each channel in training, got float32\[1,4\]: give a larger"),
    "of no batch at all": (lambda: train(nn.BatchNorm(), ONE[0]), r"BatchNorm: x .*for each channel in training, got float32\[4\]"),
    "one in each example of vmap": (
        lambda: jax.vmap(lambda x: train(nn.BatchNorm(), x)[0])(jnp.ones((3, 4))),
        r"BatchNorm: x .*average over a mapped one by axis_name",
    ),
    "channel-first": (lambda: train(nn.BatchNorm(channel_axis=-3), jnp.ones((4, 1, 1))), r"BatchNorm: x expects more than one"),
    "in a model": (lambda: train(nn.Series(nn.Linear(3), nn.BatchNorm()), ONE), r"model\[1\]\.BatchNorm: x expects more than"),
    "groups of one": (lambda: nn.GroupNorm(4, axes=1).fwd(ONE, (), ()), r"GroupNorm: x expects more than one value for each group"),
    "one feature": (lambda: nn.LayerNorm().fwd(ONE.T, (), ()), r"LayerNorm: x expects more than one value for each example"),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), SINGLE.values(), ids=list(SINGLE))
def test_one_value_is_refused(wrong, message):
    with pytest.raises(nn.LayerError, match=f"^{message}"):
        wrong()


def test_one_value_in_inference_and_over_devices():
    layer = nn.BatchNorm(axis_name="batch")
    _, non_trainables = layer.init(jax.random.key(0), ONE)
    np.testing.assert_allclose(layer.fwd(ONE, (), non_trainables, inference_mode=True)[0], ONE, rtol=1e-4)
    x = jnp.asarray(RANDOM.T)
    y, _ = jax.vmap(layer.fwd, (0, None, None), axis_name="batch")(x, (), non_trainables)
    np.testing.assert_allclose(y, nn.BatchNorm().fwd(x, (), non_trainables)[0], atol=1e-6)
    with pytest.raises(nn.LayerError, match="more than one value"):
        jax.vmap(layer.fwd, (0, None, None), axis_name="batch")(ONE, (), non_trainables)


NORMS = {
    "BatchNorm": nn.BatchNorm, "LayerNorm": nn.LayerNorm, "RMSNorm": nn.RMSNorm,
    "GroupNorm": lambda **options: nn.GroupNorm(2, axes=1, **options),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize(
    ("epsilon", "dtype"), [(1e-12, "float16"), (1e-30, "float32"), (1e-40, "bfloat16")], ids=str
)
def test_an_epsilon_of_zero_is_refused(name, epsilon, dtype):
    """1e-12 is above 0 as a hyperparameter, and 0 in float16: of zeros, the layer would make NaN. 1e-30 would in the gradient."""
    x = jnp.zeros((3, 4), dtype)
    wanted = rf"^{name}: epsilon={epsilon} is as good as 0 in {dtype}, accum_dtype: make it larger"
    with pytest.raises(nn.LayerError, match=wanted):
        train(NORMS[name](epsilon=epsilon, accum_dtype=dtype), x)


@pytest.mark.parametrize("name", NORMS)
def test_the_gradient_of_a_constant_in_half_precision(name):
    """It has the third power of 1 / sqrt(epsilon), more than float16 can hold. Of zeros, so that RMSNorm has no other variance."""

    def gradient(dtype):
        layer = NORMS[name](accum_dtype=dtype)
        x, weights = jnp.zeros((3, 4), "float16"), jnp.asarray(RANDOM[:3, :1] * np.arange(4), "float16")
        variables = layer.init(jax.random.key(0), x)
        return jax.grad(lambda x: jnp.sum(layer.fwd(x, *variables)[0] * weights, dtype="float32"))(x)

    np.testing.assert_allclose(gradient("float16"), gradient("float32"), rtol=0.02, atol=0.5)
    x = jnp.zeros((3, 4), jnp.float16)
    for fine in (NORMS[name](epsilon=1e-12), NORMS[name](epsilon=1e-7, accum_dtype=jnp.float16)):
        assert not np.any(np.asarray(train(fine, x)[0]))


COLUMN = np.where(np.arange(3) == 1, 0, RANDOM)


@pytest.mark.parametrize(
    "layer",
    [nn.WeightNorm(nn.Linear(3)), nn.SpectralNorm(nn.Linear(3))],
    ids=lambda layer: type(layer).__name__,
)
@pytest.mark.parametrize("kernel", [np.zeros((4, 3), "float32"), COLUMN], ids=["zero", "a column of zeros"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_zeros_stay_zeros_and_have_gradients(layer, kernel, dtype):
    inner = nn.Linear(3, kernel_initializer=lambda key, shape, dtype: jnp.asarray(kernel, dtype))
    layer, x = type(layer)(inner), jnp.eye(4, dtype=dtype)
    trainables, non_trainables = layer.init(jax.random.key(0), x)

    def normalized(trainables):
        y, updated = layer.fwd(x, trainables, non_trainables)
        return jnp.sum(y.astype("float32")), (y, updated)

    gradients, (y, updated) = jax.grad(normalized, has_aux=True)(trainables)
    np.testing.assert_array_equal(y == 0, kernel == 0)
    assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves((y, updated, gradients)))
    assert bool(jnp.any(jax.tree.leaves(gradients)[0][:, 1] != 0)), "weights that are 0 would be so for ever"


def test_a_kernel_that_was_once_zero_is_normalized_again():
    """Its vector must not become zero, from which power iteration would not come back."""
    layer, x = nn.SpectralNorm(nn.Linear(3)), jnp.eye(4)
    _, non_trainables = layer.init(jax.random.key(0), x)
    _, non_trainables = layer.fwd(x, {"kernel": jnp.zeros((4, 3))}, non_trainables)
    kernel = jnp.asarray(RANDOM)
    for _ in range(50):
        y, non_trainables = layer.fwd(x, {"kernel": kernel}, non_trainables)
    np.testing.assert_allclose(y, kernel / np.linalg.norm(kernel, 2), rtol=1e-4)
