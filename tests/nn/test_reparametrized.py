"""Weight and spectral normalization, and low-rank adaptation, against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn, optim

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
    with pytest.raises(nn.LayerError, match=r"^WeightNorm: expects a typed key, got None"):
        nn.WeightNorm(nn.Linear(3)).init(None, x)
    with pytest.raises(ValueError, match="iterations must be an integer of at least 1"):
        nn.SpectralNorm(nn.Linear(3), iterations=0)
    layer = nn.SpectralNorm(nn.Linear(3))
    variables = layer.init(jax.random.key(0), x)
    with pytest.raises(nn.LayerError, match="must be a Python bool"):
        jax.jit(lambda mode: layer.fwd(x, *variables, inference_mode=mode))(True)


# LoRA


@layers
def test_lora_adds_a_product_to_the_kernel(layer, shape, rows):
    model = nn.LoRA(layer, rank=2, alpha=3)
    x, trainables, _ = made(model, shape)
    plain, _ = layer.fwd(x, trainables["layer"], ())
    np.testing.assert_allclose(model.fwd(x, trainables, ())[0], plain, rtol=1e-5, atol=1e-6)
    product = trainables["lora"]["kernel"]
    product["up"] = jax.random.normal(jax.random.key(1), product["up"].shape)
    change = rows(np.asarray(model.merge(trainables)["kernel"] - trainables["layer"]["kernel"]))
    np.testing.assert_allclose(change, 1.5 * (product["down"] @ product["up"]).T, rtol=1e-3, atol=1e-5)
    merged, weights = nn.merge_lora(nn.Series(model), (trainables,))
    assert merged == nn.Series(layer)
    np.testing.assert_allclose(merged.fwd(x, weights, ())[0], model.fwd(x, trainables, ())[0], rtol=1e-5)


def adapted(path, layer):
    return nn.LoRA(layer, rank=2) if isinstance(layer, nn.MultiHeadAttention) else layer


BLOCK = nn.Residual(nn.MultiHeadAttention(2, causal=True, use_bias=True, dropout=0.5))
MODEL = nn.replace(nn.Series(nn.Linear(4), nn.Stack(BLOCK, 3), nn.Linear(2)), adapted)


def test_adapted_attention_shows_its_weights():
    layer, x = nn.LoRA(nn.MultiHeadAttention(2), rank=1), jax.random.normal(jax.random.key(0), (5, 4))
    trainables, _ = layer.init(jax.random.key(1), x)
    trainables["lora"] = jax.tree.map(jnp.ones_like, trainables["lora"])
    _, found = nn.capture(nn.Series(layer), "weights")(x, (trainables,), ())
    _, wanted = nn.capture(nn.Series(layer.layer), "weights")(x, (layer.merge(trainables),), ())
    np.testing.assert_allclose(found["[0]"], wanted["[0]"], rtol=1e-5)


def test_query_and_value_of_a_stack_are_adapted_trained_alone_and_merged():
    x, trainables, _ = made(MODEL, (3, 5, 4))
    optimizer = optim.Freeze(optim.AdamW(0.1), where=lambda path: "['lora']" not in path)

    def loss(trainables):
        return jnp.mean(jnp.square(MODEL.fwd(x, trainables, ((),) * 3, key=jax.random.key(1))[0] - 1))

    @jax.jit
    def step(trainables, state):
        updates, state = optimizer.step(jax.grad(loss)(trainables), state, trainables)
        return optim.apply_updates(trainables, updates), state

    after, state = trainables, optimizer.init(trainables)
    for _ in range(3):
        after, state = step(after, state)
    moved = {jax.tree_util.keystr(p): bool((a != b).any()) for (p, a), b in zip(jax.tree_util.tree_leaves_with_path(after), jax.tree.leaves(trainables))}  # fmt: skip
    lora = "[1]['layer']['lora']['{}_kernel']['{}']"
    assert {p for p, yes in moved.items() if yes} == {
        lora.format(name, part) for name in ("query", "value") for part in ("down", "up")
    }
    merged, weights = nn.merge_lora(MODEL, after)
    assert merged == nn.Series(nn.Linear(4), nn.Stack(BLOCK, 3), nn.Linear(2))
    got, wanted = (
        m.fwd(x, w, ((),) * 3, inference_mode=True)[0] for m, w in ((merged, weights), (MODEL, after))
    )
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: nn.LoRA(nn.Bias(), 2), "^LoRA: layer must be a Linear, a Conv or a ConvTranspose"),
        (lambda: nn.LoRA(nn.Linear(3), 2, kernels=()), r"^LoRA: kernels must be names of kernels, such as"),
        (lambda: made(nn.LoRA(nn.Linear(3), 2, kernels="query"), (2, 4)), r"^LoRA: trainables expect a dict with keys \['query'\]"),
        (
            lambda: nn.LoRA(nn.Linear(3), 2).fwd(jnp.ones((2, 4)), made(nn.LoRA(nn.Linear(3), 1), (2, 4))[1], ()),
            r"^LoRA: down expects shape \(4, 2\), got float32\[4,1\]",
        ),
        (lambda: nn.merge_lora(nn.Linear(3), {}), "replace: change left all layers as they are"),
    ],
)  # fmt: skip
def test_wrong_adaptations(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


@pytest.mark.parametrize("wrapper", [nn.WeightNorm, nn.SpectralNorm, lambda layer: nn.LoRA(layer, rank=2)])
def test_what_is_merged_has_the_dtypes_of_the_layer(wrapper):
    layer, x = wrapper(nn.Linear(3)), jnp.ones((1, 4), jnp.bfloat16)
    merged = layer.merge(*layer.init(jax.random.key(0), x))
    wanted, _ = jax.eval_shape(layer.layer.init, jax.random.key(0), x)
    assert jax.tree.map(lambda leaf: leaf.dtype, merged) == jax.tree.map(lambda leaf: leaf.dtype, wanted)
