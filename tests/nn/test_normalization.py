"""Normalization and Scale: values and gradients against NumPy, running averages, mapped axes, precision, errors."""

import functools
import json
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn
from mlax_tutorial.inspection.dtypes import floating_leaves, strays
from mlax_tutorial.inspection.jaxprs import walk
from mlax_tutorial.nn import normalization


def draw(seed, *shape, dtype=jnp.float32):
    return jnp.asarray(np.random.default_rng(seed).normal(1.5, 2.0, shape), dtype)


def reference(x, axes, epsilon):
    """The normalized values, and the function that takes their gradient back to x; in float64."""
    x = np.asarray(x, np.float64)
    deviation = np.sqrt(x.var(axes, keepdims=True) + epsilon)
    y = (x - x.mean(axes, keepdims=True)) / deviation

    def back(dy):
        mean, slope = dy.mean(axes, keepdims=True), (dy * y).mean(axes, keepdims=True)
        return (dy - mean - y * slope) / deviation

    return y, back


def apply(layer, x, non_trainables=None, **options):
    variables = layer.init(jax.random.key(0), x)
    return layer.fwd(x, variables[0], variables[1] if non_trainables is None else non_trainables, **options)


def assert_like_reference(layer, x, axes, epsilon=1e-5):
    wanted, back = reference(x, axes, epsilon)
    got, vjp = jax.vjp(lambda x: apply(layer, x)[0], x)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
    dy = draw(9, *x.shape)
    np.testing.assert_allclose(vjp(dy)[0], back(np.asarray(dy, np.float64)), rtol=1e-4, atol=1e-4)


# BatchNorm


@pytest.mark.parametrize(
    ("shape", "options", "axes"),
    [
        ((6, 4), {}, (0,)),
        ((2, 3, 5, 4), {}, (0, 1, 2)),
        ((2, 3, 5, 4), {"channel_axis": -3}, (0, 2, 3)),
        ((3, 5, 4), {"channel_axis": -2, "epsilon": 0.5}, (0, 2)),
        ((5, 4), {"channel_axis": -2}, (1,)),
    ],
)
def test_batch_norm_against_numpy(shape, options, axes):
    x, layer = draw(0, *shape), nn.BatchNorm(**options)
    assert_like_reference(layer, x, axes, layer.epsilon)
    _, running = apply(layer, x)
    np.testing.assert_allclose(running["mean"], 0.1 * np.mean(x, axes), rtol=1e-5)
    np.testing.assert_allclose(running["variance"], 0.9 + 0.1 * np.var(x, axes), rtol=1e-5)


@pytest.mark.parametrize("channel_axis", [-1, -2])
def test_inference_uses_the_running_averages_and_keeps_them(channel_axis):
    x, layer = draw(0, 6, 4, 4), nn.BatchNorm(epsilon=0.1, channel_axis=channel_axis)
    at_first, same = apply(layer, x, inference_mode=True)
    np.testing.assert_allclose(at_first, x / np.sqrt(1.1), rtol=1e-6)
    running = {"mean": draw(1, 4), "variance": jnp.square(draw(2, 4))}
    y, same = apply(layer, x, running, inference_mode=True)
    assert same is running
    mean, variance = (
        np.expand_dims(running[name], {-1: (0, 1), -2: (0, 2)}[channel_axis]) for name in running
    )
    np.testing.assert_allclose(y, (x - mean) / np.sqrt(variance + 0.1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("inference_mode", [False, True])
@pytest.mark.parametrize("channel_axis", [-1, -2])
def test_an_affine_batch_norm_is_one_followed_by_scale_and_bias(channel_axis, inference_mode):
    x, dy = draw(0, 6, 5, 4), draw(1, 6, 5, 4)
    channels = x.shape[channel_axis]
    features = (-1,) if channel_axis == -1 else (-1, 1)
    scale, bias = draw(2, channels), draw(3, channels)
    running = {"mean": draw(4, channels), "variance": jnp.square(draw(5, channels))}
    whole = nn.BatchNorm(channel_axis=channel_axis, affine=True)
    parts = nn.Series(nn.BatchNorm(channel_axis=channel_axis), nn.Scale(features), nn.Bias(features))

    def back(layer, non_trainables, trainables):
        y, pull, after = jax.vjp(
            lambda x, p: layer.fwd(x, p, non_trainables, inference_mode=inference_mode),
            x,
            trainables,
            has_aux=True,
        )
        return y, after, pull(dy)

    y, after, (dx, gradients) = back(whole, running, {"scale": scale, "bias": bias})
    shape = (channels, *(1 for _ in features[1:]))
    affine = ((), {"scale": scale.reshape(shape)}, {"bias": bias.reshape(shape)})
    wanted, (wanted_after, _, _), (wanted_dx, wanted_gradients) = back(parts, (running, (), ()), affine)
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(dx, wanted_dx, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradients["scale"], wanted_gradients[1]["scale"].reshape(-1), rtol=1e-4)
    np.testing.assert_allclose(gradients["bias"], wanted_gradients[2]["bias"].reshape(-1), rtol=1e-4)
    jax.tree.map(np.testing.assert_array_equal, after, wanted_after)


@pytest.mark.parametrize("channel_axis", [-1, -3])
def test_an_affine_group_norm_is_one_followed_by_scale_and_bias(channel_axis):
    x, dy = draw(0, 2, 6, 5, 4), draw(1, 2, 6, 5, 4)
    channels, features = x.shape[channel_axis], (-1, *(1,) * (-1 - channel_axis))
    scale, bias = draw(2, channels), draw(3, channels)
    whole = nn.GroupNorm(2, axes=3, channel_axis=channel_axis, affine=True)
    assert jax.tree.map(jnp.shape, whole.init(None, x)) == ({"scale": (channels,), "bias": (channels,)}, ())
    parts = nn.Series(
        nn.GroupNorm(2, axes=3, channel_axis=channel_axis), nn.Scale(features), nn.Bias(features)
    )

    def back(layer, trainables):
        y, pull = jax.vjp(lambda x, p: layer.fwd(x, p, ())[0], x, trainables)
        return y, *pull(dy)

    y, dx, gradients = back(whole, {"scale": scale, "bias": bias})
    shape = (channels, *features[1:])
    apart = ((), {"scale": scale.reshape(shape)}, {"bias": bias.reshape(shape)})
    wanted, wanted_dx, (_, scales, biases) = back(parts, apart)
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(dx, wanted_dx, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradients["scale"], scales["scale"].reshape(-1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradients["bias"], biases["bias"].reshape(-1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("norm", "parts"),
    [(nn.LayerNorm, (nn.Scale, nn.Bias)), (nn.RMSNorm, (nn.Scale,))],
    ids=["LayerNorm", "RMSNorm"],
)
@pytest.mark.parametrize("axes", [1, 2])
def test_an_affine_norm_over_features_is_one_followed_by_scale_and_bias(norm, parts, axes):
    x, dy, features = draw(0, 3, 5, 4), draw(1, 3, 5, 4), (-1,) * axes
    apart = nn.Series(norm(axes=axes), *(part(features) for part in parts))
    names = ("scale", "bias")[: len(parts)]
    values = {name: draw(2 + place, *x.shape[-axes:]) for place, name in enumerate(names)}
    first, _ = norm(axes=axes, affine=True).init(jax.random.key(0), x)
    assert jax.tree.map(jnp.shape, first) == jax.tree.map(jnp.shape, values)
    y, back = jax.vjp(lambda x, p: norm(axes=axes, affine=True).fwd(x, p, ())[0], x, values)
    separate = ((), *({name: values[name]} for name in names))
    wanted, wanted_back = jax.vjp(lambda x, p: apart.fwd(x, p, ((),) * len(separate))[0], x, separate)
    np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)
    (dx, gradients), (wanted_dx, (_, *wanted_gradients)) = back(dy), wanted_back(dy)
    np.testing.assert_allclose(dx, wanted_dx, rtol=1e-4, atol=1e-5)
    for gradient in wanted_gradients:
        for name, leaf in gradient.items():
            np.testing.assert_allclose(gradients[name], leaf, rtol=1e-4, atol=1e-5)


def test_an_affine_batch_norm_begins_as_a_plain_one():
    x, layer = draw(0, 6, 4), nn.BatchNorm(affine=True, param_dtype=jnp.bfloat16)
    trainables, running = layer.init(jax.random.key(0), x)
    assert {name: (p.shape, p.dtype) for name, p in trainables.items()} == {
        "scale": ((4,), jnp.bfloat16),
        "bias": ((4,), jnp.bfloat16),
    }
    y, _ = layer.fwd(x, trainables, running)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, apply(nn.BatchNorm(), x)[0])


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.99, 1.0])
def test_running_averages_over_several_steps(momentum):
    layer = nn.BatchNorm(momentum=momentum)
    _, running = layer.init(jax.random.key(0), draw(0, 8, 3))
    mean, variance = np.zeros(3), np.ones(3)
    step = jax.jit(lambda x, running: layer.fwd(x, (), running)[1])
    for seed in range(5):
        x = draw(seed, 8, 3)
        running = step(x, running)
        mean = momentum * mean + (1 - momentum) * np.mean(x, 0)
        variance = momentum * variance + (1 - momentum) * np.var(x, 0)
    np.testing.assert_allclose(running["mean"], mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(running["variance"], variance, rtol=1e-5, atol=1e-6)


def test_an_empty_batch_changes_nothing():
    running = {"mean": draw(1, 4), "variance": jnp.square(draw(2, 4))}
    y, after = apply(nn.BatchNorm(), jnp.ones((0, 5, 4)), running)
    assert y.shape == (0, 5, 4)
    np.testing.assert_array_equal(after["mean"], running["mean"])
    np.testing.assert_array_equal(after["variance"], running["variance"])


def test_running_averages_keep_their_dtype_and_stop_gradients():
    running = {"mean": jnp.zeros(4, jnp.bfloat16), "variance": jnp.ones(4, jnp.float16)}
    y, after = apply(nn.BatchNorm(), draw(0, 6, 4, dtype=jnp.float16), running)
    assert (y.dtype, after["mean"].dtype, after["variance"].dtype) == (jnp.float16, jnp.bfloat16, jnp.float16)

    def total(x):
        return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(apply(nn.BatchNorm(), x)[1]))

    np.testing.assert_array_equal(jax.grad(total)(draw(0, 6, 4)), np.zeros((6, 4)))


# BatchNorm over mapped axes

X = draw(0, 6, 5, 4)


def train(layer, x, dy, running):
    (y, after), back = jax.vjp(lambda x: layer.fwd(x, (), running), x)
    return y, after, back((dy, jax.tree.map(jnp.zeros_like, after)))[0]


def assert_whole_batch(got, per_example=False):
    wanted = train(nn.BatchNorm(), X, draw(9, *X.shape), nn.BatchNorm().init(jax.random.key(0), X)[1])
    for name in ("mean", "variance"):
        running = got[1][name][0] if per_example else got[1][name]
        np.testing.assert_allclose(running, wanted[1][name], rtol=1e-5)
    np.testing.assert_allclose(got[0].reshape(X.shape), wanted[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[2].reshape(X.shape), wanted[2], rtol=1e-4, atol=1e-5)


def test_axis_name_under_vmap_means_the_whole_batch():
    layer = nn.BatchNorm(axis_name="batch")
    running = layer.init(jax.random.key(0), X)[1]
    mapped = jax.vmap(lambda x, dy: train(layer, x, dy, running), axis_name="batch")
    assert_whole_batch(mapped(X, draw(9, *X.shape)), per_example=True)


def test_two_axis_names():
    layer = nn.BatchNorm(axis_name=("outer", "inner"))
    running = layer.init(jax.random.key(0), X)[1]
    inner = jax.vmap(lambda x, dy: train(layer, x, dy, running), axis_name="inner")
    x, dy = (a.reshape(2, 3, 5, 4) for a in (X, draw(9, *X.shape)))
    got = jax.vmap(inner, axis_name="outer")(x, dy)
    assert_whole_batch((got[0], jax.tree.map(lambda a: a[0], got[1]), got[2]), per_example=True)


def test_without_axis_name_vmap_normalizes_each_example_alone():
    layer = nn.BatchNorm()
    running = layer.init(jax.random.key(0), X)[1]
    y, after = jax.vmap(lambda x: layer.fwd(x, (), running))(X)
    np.testing.assert_allclose(y, reference(X, 1, 1e-5)[0], rtol=1e-4, atol=1e-4)
    assert after["mean"].shape == (6, 4)


def mesh():
    return jax.make_mesh((jax.device_count(),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))


def test_axis_name_under_shard_map_means_the_whole_batch():
    assert jax.device_count() > 1
    layer, split = nn.BatchNorm(axis_name="data"), jax.P("data")
    specs = {"in_specs": (split, split, jax.P()), "out_specs": (split, jax.P(), split)}
    shards = jax.shard_map(lambda *arrays: train(layer, *arrays), mesh=mesh(), **specs)
    assert_whole_batch(jax.jit(shards)(X, draw(9, *X.shape), layer.init(jax.random.key(0), X)[1]))


def test_a_sharded_batch_under_jit_is_one_batch():
    x, dy = jax.device_put((X, draw(9, *X.shape)), jax.NamedSharding(mesh(), jax.P("data")))
    got = jax.jit(train, static_argnums=0)(
        nn.BatchNorm(), x, dy, nn.BatchNorm().init(jax.random.key(0), X)[1]
    )
    assert len(got[0].sharding.device_set) == jax.device_count()
    assert_whole_batch(got)


def test_a_model_is_initialized_outside_of_the_mapped_axis():
    model = nn.Series(nn.Linear(3), nn.BatchNorm(axis_name="batch"), nn.Scale(), nn.Bias())
    trainables, non_trainables = model.init(jax.random.key(0), X)
    assert jax.tree.map(jnp.shape, non_trainables) == ((), {"mean": (3,), "variance": (3,)}, (), ())
    assert len(nn.summary(model, X).rows) == 5

    def fwd(x):
        return model.fwd(x, trainables, non_trainables)[0]

    mapped = jax.vmap(fwd, axis_name="batch")(X)
    whole, _ = nn.Series(nn.Linear(3), nn.BatchNorm(), nn.Scale(), nn.Bias()).fwd(
        X, trainables, non_trainables
    )
    np.testing.assert_allclose(mapped, whole, rtol=1e-4, atol=1e-5)


def test_each_block_of_a_stack_has_running_averages_of_its_own():
    block = nn.Series(nn.BatchNorm(), nn.F(jnp.tanh))
    model = nn.Stack(block, depth=2)
    variables = model.init(jax.random.key(1), X)
    _, running = model.fwd(X, *variables)
    hidden, x = [], X
    for _ in range(2):
        hidden.append(np.mean(x, (0, 1)))
        x, _ = apply(block, x)
    np.testing.assert_allclose(running[0]["mean"], 0.1 * np.stack(hidden), rtol=1e-4, atol=1e-5)


# LayerNorm, RMSNorm, GroupNorm


@pytest.mark.parametrize(
    ("shape", "axes", "epsilon"), [((4,), 1, 1e-5), ((2, 3, 4), 1, 0.1), ((2, 3, 4), 2, 1e-5)]
)
def test_layer_norm_against_numpy(shape, axes, epsilon):
    assert_like_reference(
        nn.LayerNorm(axes=axes, epsilon=epsilon), draw(0, *shape), tuple(range(-axes, 0)), epsilon
    )


@pytest.mark.parametrize(
    ("shape", "axes", "epsilon"), [((4,), 1, 1e-5), ((2, 3, 4), 1, 0.1), ((2, 3, 4), 2, 1e-5)]
)
def test_rms_norm_against_numpy(shape, axes, epsilon):
    layer, x, dy = nn.RMSNorm(axes=axes, epsilon=epsilon), draw(0, *shape), draw(9, *shape)
    exact, over = np.asarray(x, np.float64), tuple(range(-axes, 0))
    root = np.sqrt(np.square(exact).mean(over, keepdims=True) + epsilon)
    y, back = jax.vjp(lambda x: apply(layer, x)[0], x)
    np.testing.assert_allclose(y, exact / root, rtol=1e-5)
    wanted = (dy - exact / root * (dy * exact / root).mean(over, keepdims=True)) / root
    np.testing.assert_allclose(back(dy)[0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "axes", "batch"),
    [((12,), 1, ()), ((2, 3, 6), 2, (2,)), ((2, 3, 4, 5, 6), 3, (2, 3)), ((2, 12), 1, (2,))],
)
@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_group_norm_against_numpy(shape, axes, batch, groups):
    """Each group cut out and normalized by itself."""
    layer, x = nn.GroupNorm(groups, axes=axes, epsilon=0.01), draw(0, *shape)
    over = tuple(range(len(batch), len(shape)))
    parts = [reference(part, over, 0.01) for part in np.split(np.asarray(x), groups, axis=-1)]
    y, back = jax.vjp(lambda x: apply(layer, x)[0], x)
    np.testing.assert_allclose(y, np.concatenate([part for part, _ in parts], -1), rtol=1e-4, atol=1e-5)
    dy = draw(9, *shape)
    gradients = [
        pull(dy) for (_, pull), dy in zip(parts, np.split(np.asarray(dy, np.float64), groups, axis=-1))
    ]
    np.testing.assert_allclose(back(dy)[0], np.concatenate(gradients, -1), rtol=1e-4, atol=1e-4)


def test_group_norm_with_channels_first():
    x = draw(0, 2, 3, 5, 6)
    last, _ = apply(nn.GroupNorm(2, axes=3), x)
    first, _ = apply(nn.GroupNorm(2, axes=3, channel_axis=-3), jnp.moveaxis(x, -1, -3))
    np.testing.assert_allclose(jnp.moveaxis(first, -3, -1), last, rtol=1e-5, atol=1e-6)


def test_one_group_is_layer_norm():
    x = draw(0, 2, 3, 6)
    got, wanted = (apply(layer, x)[0] for layer in (nn.GroupNorm(1, axes=2), nn.LayerNorm(axes=2)))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


ALONE = [nn.LayerNorm(axes=2), nn.RMSNorm(axes=2), nn.GroupNorm(2, axes=2), nn.GroupNorm(4, axes=2)]


@pytest.mark.parametrize("layer", ALONE, ids=repr)
def test_inference_is_training(layer):
    x = draw(0, 3, 5, 4)
    np.testing.assert_array_equal(apply(layer, x)[0], apply(layer, x, inference_mode=True)[0])


@pytest.mark.parametrize("layer", [*ALONE, nn.BatchNorm()], ids=repr)
@pytest.mark.parametrize("value", [0.0, 1e3, -3e-4])
def test_constants_give_no_nan(layer, value):
    x = jnp.full((3, 5, 4), value)
    y, back = jax.vjp(lambda x: apply(layer, x)[0], x)
    if isinstance(layer, nn.RMSNorm):
        np.testing.assert_allclose(y, x / np.sqrt(value**2 + 1e-5), rtol=1e-5)
    else:
        np.testing.assert_allclose(y, np.zeros(x.shape), atol=0.05)  # the rounded mean over sqrt(epsilon)
    assert np.isfinite(back(draw(9, *x.shape))[0]).all()


# Precision


def test_the_variance_of_data_with_a_large_mean():
    """What the comment in `moments` claims: two passes are exact where the textbook's single pass is not."""
    x = np.random.default_rng(0).normal(1000, 1, (65536, 8)).astype(np.float32)
    exact = x.astype(np.float64).var(0)
    _, variance = jax.jit(lambda x: normalization.moments(x, (0,)))(x)
    assert np.abs(variance[0] / exact - 1).max() < 1e-6
    in_one_pass = jnp.mean(jnp.square(x), 0) - jnp.square(jnp.mean(jnp.asarray(x), 0))
    assert np.abs(in_one_pass / exact - 1).max() > 0.01


def test_the_backward_pass_sums_twice_over_the_data():
    """Two sums forward, two backward; a gradient through the mean inside of the variance would be one more."""

    def step(x, dy):
        return jax.vjp(lambda x: apply(nn.BatchNorm(), x)[0], x)[1](dy)

    equations = [equation for _, equation in walk(jax.make_jaxpr(step)(draw(0, 6, 4), draw(9, 6, 4)))]
    sums = [e for e in equations if e.primitive.name == "reduce_sum" and e.invars[0].aval.shape == (6, 4)]
    assert len(sums) == 4


def test_float16_does_not_overflow():
    x = jnp.full((2, 8), 300, jnp.float16) * jnp.array([[1], [-1]], jnp.float16)
    np.testing.assert_array_equal(apply(nn.RMSNorm(), x)[0], np.sign(x))
    np.testing.assert_array_equal(apply(nn.RMSNorm(accum_dtype=jnp.float16), x)[0], 0 * np.asarray(x))
    assert np.isfinite(apply(nn.LayerNorm(), jnp.square(x[:, :4] / 2).at[0].set(0))[0]).all()


NORMS = {
    "BatchNorm": nn.BatchNorm,
    "LayerNorm": nn.LayerNorm,
    "affine LayerNorm": functools.partial(nn.LayerNorm, affine=True),
    "RMSNorm": nn.RMSNorm,
    "GroupNorm": lambda **options: nn.GroupNorm(2, axes=2, **options),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
def test_accum_dtype_of_the_input_is_kept_everywhere(norm, dtype):
    layer, x = norm(accum_dtype=dtype), draw(0, 3, 5, 4, dtype=dtype)
    trainables, running = layer.init(jax.random.key(0), x)
    assert all(leaf.dtype == dtype for leaf in floating_leaves(running))

    def step(x, running, dy):
        y, back, after = jax.vjp(lambda x: layer.fwd(x, trainables, running), x, has_aux=True)
        return y, back(dy), after

    # The factors, fewer than the data, are formed in float32: their derivative is too large for float16.
    found = strays(jax.make_jaxpr(step)(x, running, x), dtype)
    assert [
        each for each in found if math.prod(json.loads(re.search(r" gives \w+(\[.*?\])", each)[1])) >= x.size
    ] == []


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
def test_half_precision_is_rounded_once(norm, dtype):
    x = draw(0, 16, 8, 4, dtype=dtype)
    exact, _ = apply(norm(), x.astype(jnp.float32))
    error = np.abs(np.asarray(apply(norm(), x)[0], np.float32) - exact) / np.maximum(np.abs(exact), 1e-2)
    assert error.max() < jnp.finfo(dtype).eps


def test_running_averages_in_bfloat16_stop_short():
    """Why they are float32: an average that creeps up on 1 stops where a tenth of the rest is rounded away."""

    def converge(layer):
        x = jnp.array([[0], [2]], jnp.bfloat16)
        _, running = layer.init(jax.random.key(0), x)
        step = jax.jit(lambda running: layer.fwd(x, (), running)[1])
        for _ in range(200):
            running = step(running)
        return float(running["mean"][0])

    np.testing.assert_allclose(converge(nn.BatchNorm()), 1, rtol=1e-5)
    assert 0.97 < converge(nn.BatchNorm(accum_dtype=jnp.bfloat16)) < 0.99


# Scale


@pytest.mark.parametrize(
    ("in_features", "shape"),
    [(-1, (4,)), ((-1, 1, 1), (3, 1, 1)), ((1, -1), (1, 4)), (1, (1,)), ((3, 4, 4), (3, 4, 4))],
)
def test_scale_against_numpy(in_features, shape):
    x, layer, scale = draw(0, 2, 3, 4, 4), nn.Scale(in_features), draw(1, *shape)
    trainables, _ = layer.init(jax.random.key(0), x)
    assert trainables["scale"].shape == shape and (trainables["scale"] == 1).all()
    y, back = jax.vjp(lambda x, scale: layer.fwd(x, {"scale": scale}, ())[0], x, scale)
    dy = draw(9, *x.shape)
    dx, gradient = back(dy)
    x, scale, dy = (np.asarray(a, np.float64) for a in (x, scale, dy))
    np.testing.assert_allclose(y, x * scale, rtol=1e-6)
    np.testing.assert_allclose(dx, dy * scale, rtol=1e-6)
    shared = tuple(axis for axis, size in enumerate((1,) * (4 - len(shape)) + shape) if size == 1)
    wanted = (x * dy).sum(shared, keepdims=True).reshape(shape)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("accum_dtype", [None, "float32", "bfloat16"])
def test_the_gradient_of_a_bfloat16_scale_is_summed_in_accum_dtype(accum_dtype):
    """Read off the program: some devices sum in float32 anyway, so the value need not tell."""
    layer, x = nn.Scale(accum_dtype=accum_dtype), jnp.ones((3072, 1), jnp.bfloat16)

    def gradient(scale):
        return jax.vjp(lambda scale: layer.fwd(x, {"scale": scale}, ())[0], scale)[1](x)[0]

    equations = [equation for _, equation in walk(jax.make_jaxpr(gradient)(x[0]))]
    (total,) = [equation for equation in equations if equation.primitive.name == "reduce_sum"]
    assert total.outvars[0].aval.dtype == (accum_dtype or "float32")
    assert accum_dtype == "bfloat16" or gradient(x[0]) == 3072


# Wrong uses

RUNNING = nn.BatchNorm().init(jax.random.key(0), X)[1]
INTEGERS = jnp.ones((3, 4), int)

WRONG = {
    "integers into BatchNorm": (
        lambda: nn.BatchNorm().fwd(INTEGERS, (), RUNNING),
        r"^BatchNorm: x expects floating-point numbers, got int32\[3,4\]: .*astype",
    ),
    "integers into init of BatchNorm": (
        lambda: nn.Series(nn.BatchNorm()).init(jax.random.key(0), INTEGERS),
        r"^model\[0\]\.BatchNorm: x expects floating-point numbers",
    ),
    "no channel axis": (
        lambda: nn.BatchNorm(channel_axis=-3).init(jax.random.key(0), jnp.ones((3, 4))),
        r"^BatchNorm: x expects at least 3 axes, got float32\[3,4\]",
    ),
    "no running averages": (
        lambda: nn.BatchNorm().fwd(X, (), ()),
        r"^BatchNorm: non_trainables expect a dict with keys \['mean', 'variance'\], got a tuple of length 0: "
        r"pass the non_trainables that .*init returned",
    ),
    "no trainables for an affine one": (
        lambda: nn.BatchNorm(affine=True).fwd(X, (), RUNNING),
        r"^BatchNorm: trainables expect a dict with keys \['bias', 'scale'\], got a tuple of length 0: ",
    ),
    "a scale of other channels": (
        lambda: nn.BatchNorm(affine=True).fwd(X, {"scale": jnp.ones(3), "bias": jnp.ones(3)}, RUNNING),
        r"^BatchNorm: scale expects shape \(4,\), got float32\[3\]",
    ),
    "no trainables for an affine GroupNorm": (
        lambda: nn.GroupNorm(2, axes=2, affine=True).fwd(X, (), ()),
        r"^GroupNorm: trainables expect a dict with keys \['bias', 'scale'\], got a tuple of length 0: ",
    ),
    "a scale of other channels for GroupNorm": (
        lambda: nn.GroupNorm(2, axes=2, affine=True).fwd(X, {"scale": jnp.ones(3), "bias": jnp.ones(3)}, ()),
        r"^GroupNorm: scale expects shape \(4,\), got float32\[3\]",
    ),
    "running averages of other channels": (
        lambda: nn.BatchNorm().fwd(X[..., :3], (), RUNNING),
        r"^BatchNorm: mean expects shape \(3,\), got float32\[4\]: these non_trainables, or this input",
    ),
    "a traced mode": (
        lambda: jax.jit(lambda mode: nn.BatchNorm().fwd(X, (), RUNNING, inference_mode=mode))(True),
        r"^BatchNorm: inference_mode must be a Python bool, got bool\[\]",
    ),
    "an axis name without an axis": (
        lambda: nn.Series(nn.BatchNorm(axis_name="batch")).fwd(X, (), (RUNNING,)),
        r"^model\[0\]\.BatchNorm: axis_name='batch' names no axis here .*: train inside jax\.vmap.* or leave it out",
    ),
    "a seed for a key": (lambda: nn.BatchNorm().init(0, X), r"^BatchNorm: expects a typed key, got int 0"),
    "integers into LayerNorm": (
        lambda: nn.LayerNorm().fwd(INTEGERS, (), ()), r"^LayerNorm: x expects floating-point numbers, got int32"
    ),
    "too few axes for LayerNorm": (
        lambda: nn.LayerNorm(axes=2).init(jax.random.key(0), jnp.ones(4)), r"^LayerNorm: x expects at least 2 axes, got float32\[4\]"
    ),
    "a list": (lambda: nn.LayerNorm().fwd([1.0], (), ()), r"^LayerNorm: x expects an array, got a list of length 1"),
    "integers into RMSNorm": (
        lambda: nn.RMSNorm().fwd(INTEGERS, (), ()), r"^RMSNorm: x expects floating-point numbers, got int32"
    ),
    "too few axes for RMSNorm": (
        lambda: nn.RMSNorm(axes=3).fwd(jnp.ones((3, 4)), (), ()), r"^RMSNorm: x expects at least 3 axes, got float32\[3,4\]"
    ),
    "a scalar into RMSNorm": (
        lambda: nn.RMSNorm().init(jax.random.key(0), jnp.float32(1)), r"^RMSNorm: x expects at least 1 axis, got float32\[\]"
    ),
    "integers into GroupNorm": (
        lambda: nn.GroupNorm(2, axes=2).fwd(INTEGERS, (), ()), r"^GroupNorm: x expects floating-point numbers, got int32"
    ),
    "groups that do not divide": (
        lambda: nn.Series(nn.GroupNorm(3, axes=2)).init(jax.random.key(0), X),
        r"^model\[0\]\.GroupNorm: groups=3 must divide the 4 channels \(axis -1\), got float32\[6,5,4\]: choose a divisor",
    ),
    "groups that do not divide, in fwd": (
        lambda: nn.GroupNorm(2, axes=2, channel_axis=-2).fwd(X, (), ()),
        r"^GroupNorm: groups=2 must divide the 5 channels \(axis -2\)",
    ),
    "too few axes for GroupNorm": (
        lambda: nn.GroupNorm(2, axes=3).fwd(jnp.ones((3, 4)), (), ()), r"^GroupNorm: x expects at least 3 axes"
    ),
    "integers into Scale": (
        lambda: nn.Scale().init(jax.random.key(0), INTEGERS), r"^Scale: x expects floating-point numbers, got int32\[3,4\]"
    ),
    "Scale of other sizes": (
        lambda: nn.Scale((2, -1)).init(jax.random.key(0), X),
        r"^Scale: in_features=\(2, -1\) expects trailing axes \(2, 4\), got float32\[6,5,4\]: use -1",
    ),
    "a bias for a scale": (
        lambda: nn.Scale().fwd(X, {"bias": jnp.ones(4)}, ()),
        r"^Scale: trainables expect a dict with keys \['scale'\], got a dict with keys \['bias'\]",
    ),
    "a scale of another shape": (
        lambda: nn.Scale().fwd(X, {"scale": jnp.ones(3)}, ()),
        r"^Scale: scale expects shape \(4,\), got float32\[3\]: these trainables",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_wrong_calls(wrong, message):
    with pytest.raises(nn.LayerError, match=message):
        wrong()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: nn.BatchNorm(0), r"^BatchNorm: epsilon must be above 0 and below 1 .*got 0"),
        (lambda: nn.BatchNorm(momentum=1.1), r"^BatchNorm: momentum must be a number in \[0, 1\], got 1.1"),
        (lambda: nn.BatchNorm(channel_axis=1), r"^BatchNorm: channel_axis must be a negative integer, .*got 1"),
        (lambda: nn.BatchNorm(channel_axis=None), r"^BatchNorm: channel_axis must be a negative integer"),
        (lambda: nn.BatchNorm(axis_name=0), r"^BatchNorm: axis_name must be the name of a mapped axis.*got 0"),
        (lambda: nn.BatchNorm(axis_name=()), r"^BatchNorm: axis_name must be .* a tuple of names, or None"),
        (lambda: nn.BatchNorm(accum_dtype=int), r"^BatchNorm: accum_dtype must be a floating-point dtype"),
        (lambda: nn.LayerNorm(axes=0), r"^LayerNorm: axes must be an integer of at least 1, got 0"),
        (lambda: nn.LayerNorm(axes=(1, 2)), r"^LayerNorm: axes must be an integer of at least 1, got \(1, 2\)"),
        (lambda: nn.LayerNorm(epsilon=-1e-5), r"^LayerNorm: epsilon must be above 0 and below 1"),
        (lambda: nn.RMSNorm(epsilon="1e-5"), r"^RMSNorm: epsilon must be above 0 and below 1 .*got '1e-5'"),
        (lambda: nn.RMSNorm(epsilon=float("nan")), r"^RMSNorm: epsilon must be above 0 and below 1 .*got nan"),
        (lambda: jax.jit(lambda e: nn.RMSNorm(epsilon=e).epsilon)(0.1), r"^RMSNorm: .*traced value: it is static"),
        (lambda: nn.GroupNorm(0, axes=1), r"^GroupNorm: groups must be an integer of at least 1, got 0"),
        (lambda: nn.GroupNorm(2, axes=2, channel_axis=-3), r"^GroupNorm: channel_axis must be one of 2 trailing axes, got -3"),
        (lambda: nn.GroupNorm(2, axes=2.0), r"^GroupNorm: axes must be an integer of at least 1, got 2.0"),
        (lambda: nn.Scale(0), r"^Scale: in_features must be a positive integer or -1, .* got 0"),
        (lambda: nn.Scale(scale_initializer=1.0), r"^Scale: scale_initializer must be a function, got 1.0"),
    ],
)  # fmt: skip
def test_wrong_hyperparameters(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
