"""Values and gradients against NumPy, and the compiled step against the same mathematics by hand."""

import collections
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn, optim
from mlax_tutorial.inspection.jaxprs import walk

QUICK_TO_COMPILE = False  # these numbers are computed as for a user
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4)])
def test_linear_and_bias(shape):
    x, kernel, bias = RNG.normal(size=shape), RNG.normal(size=(4, 5)), RNG.normal(size=5)
    cast = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), (x, {"kernel": kernel}, {"bias": bias}))
    y, _ = nn.Series(nn.Linear(5), nn.Bias()).fwd(cast[0], cast[1:], ())
    np.testing.assert_allclose(y, x @ kernel + bias, rtol=1e-5, atol=1e-5)

    def loss(trainables):
        return jnp.sum(nn.Series(nn.Linear(5), nn.Bias()).fwd(cast[0], trainables, ())[0] ** 2)

    gradients = jax.grad(loss)(cast[1:])
    residual = 2 * (x @ kernel + bias).reshape(-1, 5)
    np.testing.assert_allclose(gradients[0]["kernel"], x.reshape(-1, 4).T @ residual, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(gradients[1]["bias"], residual.sum(0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4)])
@pytest.mark.parametrize("initializer", [None, jax.nn.initializers.variance_scaling(1, "fan_out", "normal")])
def test_a_transposed_kernel_is_the_transpose_of_the_plain_one(shape, initializer):
    """When it is drawn, in its product and in all gradients; initializers see the fans of the plain one."""
    x = jnp.asarray(RNG.normal(size=shape), jnp.float32)
    options = {} if initializer is None else {"kernel_initializer": initializer}
    plain, transposed = nn.Linear(5, **options), nn.Linear(5, transposed_kernel=True, **options)
    ((kernel, _), (stored, _)) = (layer.init(jax.random.key(0), x) for layer in (plain, transposed))
    assert stored["kernel"].shape == (5, 4)
    np.testing.assert_array_equal(stored["kernel"].T, kernel["kernel"])

    def loss(layer, x, trainables):
        return jnp.sum(jnp.sin(layer.fwd(x, trainables, ())[0]))

    loss_and_gradients = jax.value_and_grad(loss, argnums=(1, 2))
    value, (x_wanted, wanted) = loss_and_gradients(plain, x, kernel)
    other, (x_got, got) = loss_and_gradients(transposed, x, stored)
    np.testing.assert_allclose(other, value, rtol=1e-5)
    np.testing.assert_allclose(x_got, x_wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got["kernel"].T, wanted["kernel"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("in_features", "shape"),
    [(-1, (4,)), ((-1, 1, 1), (3, 1, 1)), ((1, -1), (1, 4)), (1, (1,)), ((3, 4, 4), (3, 4, 4))],
)
def test_bias_broadcasts_as_numpy_does(in_features, shape):
    x, layer = jnp.asarray(RNG.normal(size=(2, 3, 4, 4)), jnp.float32), nn.Bias(in_features)
    trainables, _ = layer.init(jax.random.key(0), x)
    assert trainables["bias"].shape == shape
    bias = RNG.normal(size=shape).astype(np.float32)
    np.testing.assert_allclose(
        layer.fwd(x, {"bias": jnp.asarray(bias)}, ())[0], np.asarray(x) + bias, rtol=1e-6
    )


@pytest.mark.parametrize(("axes", "shape"), [(1, (2, 3, 4)), (2, (2, 12)), (3, (24,))])
def test_flatten_merges_the_last_axes_in_their_order(axes, shape):
    x = np.arange(24.0).reshape(2, 3, 4)
    np.testing.assert_array_equal(nn.Flatten(axes).fwd(jnp.asarray(x), (), ())[0], x.reshape(shape))


def test_f_applies_its_function_or_the_one_for_inference():
    x, model = jnp.array([0.5, 1.0]), nn.Series(nn.F(jnp.sin, jnp.cos))
    for inference_mode, one, two in [(False, np.sin, np.sin), (True, np.sin, np.cos)]:
        y, _ = nn.F(jnp.sin).fwd(x, (), (), inference_mode=inference_mode)
        np.testing.assert_allclose(y, one([0.5, 1.0]), rtol=1e-6)
        y, _ = model.fwd(x, (), (), inference_mode=inference_mode)
        np.testing.assert_allclose(y, two([0.5, 1.0]), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_of_half_precision_are_summed_in_float32(dtype):
    """What ``accum_dtype=None`` promises: one rounding, of the result."""
    x, kernel = (jnp.asarray(RNG.random(shape), dtype) for shape in [(8, 8192), (8192, 8)])
    exact = np.asarray(x, np.float64) @ np.asarray(kernel, np.float64)
    for accum_dtype in (None, jnp.float32):
        y, _ = nn.Linear(8, accum_dtype=accum_dtype).fwd(x, {"kernel": kernel}, ())
        assert y.dtype == x.dtype
        relative = np.abs(np.asarray(y, np.float64) / exact - 1).max()
        assert relative < jnp.finfo(dtype).eps, relative


def test_the_gradient_of_a_bfloat16_bias_does_not_stall():
    x = jnp.ones((3072, 1), jnp.bfloat16)

    def gradient(layer):
        return float(
            jax.grad(lambda t: jnp.sum(layer.fwd(x, t, ())[0], dtype=jnp.float32))({"bias": x[0]})["bias"][0]
        )

    assert gradient(nn.Bias()) == 3072
    assert gradient(nn.Bias(accum_dtype=jnp.float32)) == 3072


def test_the_gradient_of_a_float32_bias_is_not_rounded_to_float16():
    """70,000 does not exist in float16."""
    x, trainables = jnp.ones((70_000, 1), jnp.float16), {"bias": jnp.zeros(1)}
    gradients = jax.grad(lambda t: jnp.sum(nn.Bias().fwd(x, t, ())[0], dtype=jnp.float32))(trainables)
    assert gradients["bias"].dtype == jnp.float32 and gradients["bias"] == 70_000


def equations(name, function, *args):
    """The parameters and result dtypes of all equations of a name."""
    jaxpr = jax.make_jaxpr(function)(*args)
    return [(e.params, e.outvars[0].aval.dtype) for _, e in walk(jaxpr) if e.primitive.name == name]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_linear_multiplies_as_its_hyperparameters_say(dtype):
    x, kernel = jnp.ones((2, 4), dtype), {"kernel": jnp.ones((4, 3), dtype)}

    def product(**options):
        ((params, result),) = equations(
            "dot_general", lambda x: nn.Linear(3, **options).fwd(x, kernel, ())[0], x
        )
        return params["precision"], result

    highest = jax.lax.Precision.HIGHEST
    assert product() == (None, jnp.dtype(dtype))
    assert product(precision="highest") == ((highest, highest), jnp.dtype(dtype))
    assert product(accum_dtype=jnp.float32) == (None, jnp.float32)


@pytest.mark.parametrize(
    ("dtype", "accum_dtype", "sum_dtype"),
    [
        ("bfloat16", None, "float32"),
        ("float16", None, "float32"),
        ("float32", None, "float32"),
        ("bfloat16", "bfloat16", "bfloat16"),  # the sources' strict guarantee
    ],
)
def test_bias_sums_its_gradient_in_the_dtype_that_it_says(dtype, accum_dtype, sum_dtype):
    x, layer = jnp.ones((8, 3), dtype), nn.Bias(accum_dtype=accum_dtype)

    def gradient(trainables):
        return jax.vjp(lambda t: layer.fwd(x, t, ())[0], trainables)[1](x)

    sums = equations("reduce_sum", gradient, {"bias": jnp.zeros(3, dtype)})
    assert [result for _, result in sums] == [jnp.dtype(sum_dtype)]


@pytest.mark.parametrize("layer", [nn.Linear, nn.Bias])
@pytest.mark.parametrize(("dtype", "param_dtype"), [("bfloat16", "float32"), ("float32", "float16")])
def test_weights_are_born_in_param_dtype(layer, dtype, param_dtype):
    x = jnp.ones((2, 3), dtype)
    trainables, _ = layer(3, param_dtype=param_dtype).init(jax.random.key(0), x)
    assert [leaf.dtype for leaf in jax.tree.leaves(trainables)] == [jnp.dtype(param_dtype)]
    assert layer(3, param_dtype=param_dtype).fwd(x, trainables, ())[0].dtype == x.dtype
    trainables, _ = layer(3).init(jax.random.key(0), x)
    assert [leaf.dtype for leaf in jax.tree.leaves(trainables)] == [x.dtype]


def test_dropout_keeps_the_mean_and_hits_the_rate():
    n = 1_000_001  # odd, so that half a word is left over
    for rate in (1e-4, 0.01, 0.1, 0.5, 0.9, 0.9999):
        y, _ = nn.Dropout(rate).fwd(jnp.ones(n), (), (), key=jax.random.key(0))
        lost = np.asarray(y == 0, np.float64)
        assert abs(lost.mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / n)
        np.testing.assert_allclose(jnp.unique(y), [0, 1 / (1 - rate)], rtol=1e-6)
        # Whichever two elements share a random word: they are lost apart from each other.
        for distance in (1, n // 2, n // 2 + 1):
            pairs = (lost[distance:] - rate) * (lost[:-distance] - rate)
            assert abs(pairs.mean()) < 4 * rate * (1 - rate) / np.sqrt(pairs.size)


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_dropout_of_bfloat16_keeps_the_mean(rate):
    """Of 1 / (1 - rate), rounded to bfloat16, it would be 0.0018 too small, or 0.0014 too large."""
    x = jax.random.normal(jax.random.key(0), (64, 1024), jnp.bfloat16)
    y, _ = nn.Dropout(rate).fwd(x, (), (), key=jax.random.key(1))
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    factor = np.sum(x * y) / np.sum(np.square(x)[y != 0])
    np.testing.assert_allclose(factor * (1 - rate), 1, atol=5e-4)


def test_dropout_draws_for_each_element_of_a_batch():
    """Two masks drawn apart agree on half of the elements at rate 0.5; one mask drawn for both, on all."""
    y, _ = nn.Dropout(0.5).fwd(jnp.ones((2, 2, 20_000)), (), (), key=jax.random.key(0))
    masks = np.asarray(y != 0).reshape(4, -1)
    for i in range(4):
        for j in range(i):
            assert abs(np.mean(masks[i] == masks[j]) - 0.5) < 0.02


@pytest.mark.parametrize("shared_axes", [-1, (-2,), (-1, -3), (-4, -3, -2, -1)])
def test_dropout_along_axes_loses_together_and_draws_for_each_of_the_rest(shared_axes):
    x, key = jnp.ones((40, 5, 6, 50)), jax.random.key(3)
    axes = (shared_axes,) if isinstance(shared_axes, int) else shared_axes
    y, _ = nn.Dropout(0.3, shared_axes).fwd(x, (), (), key=key)
    mask = np.asarray(y != 0)
    draws = mask.max(axes)
    np.testing.assert_array_equal(mask.min(axes), draws)
    np.testing.assert_allclose(y, np.where(mask, 1 / 0.7, 0), rtol=1e-6)
    if draws.size > 1:  # along every other axis neighbours are lost apart from each other: 0.3 of 0.3 times
        assert abs(draws.mean() - 0.7) < 4 * np.sqrt(0.21 / draws.size)
        for axis in range(draws.ndim):
            first, second = draws.take(range(1), axis), draws.take(range(1, 2), axis)
            agree = np.mean(first == second)
            assert abs(agree - 0.58) < 4 * np.sqrt(0.25 / first.size)


@pytest.mark.parametrize(("rate", "words"), [(0.3, 2), (0.5, 2), (1e-4, 3)])
def test_dropout_draws_no_more_bits_than_it_needs(rate, words):
    """One word of 32 bits for two elements, unless the rate is too fine for 16."""
    draw = jax.make_jaxpr(lambda x, key: nn.Dropout(rate, (-3, -2)).fwd(x, (), (), key=key)[0])
    shapes = {
        e.outvars[0].aval.shape
        for _, e in walk(draw(jnp.ones((7, 4, 4, 3)), jax.random.key(0)))
        if e.primitive.name == "random_bits"
    }
    assert shapes == {(7, 1, 1, words)}


@pytest.mark.parametrize("spec", [jax.P("m"), jax.P(None, None, "m")], ids=["batch", "features"])
def test_dropout_of_shards_needs_no_communication(spec):
    mesh = jax.make_mesh((2,), ("m",), axis_types=(jax.sharding.AxisType.Auto,))
    x = jax.device_put(jnp.ones((8, 16, 64)), sharding := jax.NamedSharding(mesh, spec))
    drop = jax.jit(lambda x, key: nn.Dropout(0.3).fwd(x, (), (), key=key)[0], out_shardings=sharding)
    text = drop.lower(x, jax.random.key(0)).compile().as_text()
    assert "num_partitions=2" in text and not re.findall(r"(all|collective)-\w+\(", text)


def test_dropout_is_traced_once_for_all_layers_alike(monkeypatch):
    calls, bits = [], jax.random.bits
    monkeypatch.setattr(jax.random, "bits", lambda *a: calls.append(a) or bits(*a))
    x, keys = jnp.ones((3, 17)), jax.random.split(jax.random.key(0), 3)
    jax.make_jaxpr(lambda keys: [nn.Dropout(0.3).fwd(x, (), (), key=key)[0] for key in keys])(keys)
    assert len(calls) == 1


def test_dropout_drops_infinities_and_stops_their_gradients():
    x = jnp.array([jnp.inf, jnp.nan] * 50)
    y, _ = nn.Dropout(0.5).fwd(x, (), (), key=jax.random.key(0))
    assert (y == 0).any() and not jnp.isfinite(y).all()


def optimized_ops(fun, *args):
    """How often each operation stands in the optimised program."""
    text = jax.jit(fun).lower(*args).compile().as_text()
    ops = (line.split(" = ")[1].split("(")[0].split(" ")[-1] for line in text.splitlines() if " = " in line)
    return collections.Counter(ops)


def test_the_compiled_step_is_that_of_hand_written_jax():
    """Same mathematics, same program: the library adds no operation to what XLA runs."""
    model = nn.Series(
        nn.Flatten(2),
        nn.Linear(32),
        nn.Bias(),
        nn.F(jax.nn.relu),
        nn.Linear(10),
        nn.Bias(),
        nn.F(jax.nn.log_softmax),
    )
    x, labels = jnp.ones((8, 6, 6)), jnp.arange(8) % 10
    trainables, state = model.init(jax.random.key(0), x)
    optimizer = optim.SGD(0.1, momentum=0.9)

    def loss(log_probabilities):
        return -jnp.mean(jnp.take_along_axis(log_probabilities, labels[:, None], axis=1))

    def ours(x, optimizer, trainables, velocity):
        def objective(trainables):
            return loss(model.fwd(x, trainables, state)[0])

        value, gradients = jax.value_and_grad(objective)(trainables)
        updates, velocity = optimizer.step(gradients, velocity, trainables)
        return value, optim.apply_updates(trainables, updates), velocity

    def by_hand(x, rate, momentum, weights, velocity, count):
        def objective(weights):
            w1, b1, w2, b2 = weights
            hidden = jax.nn.relu(x.reshape(8, 36) @ w1 + b1[None])
            return loss(jax.nn.log_softmax(hidden @ w2 + b2[None]))

        value, gradients = jax.value_and_grad(objective)(weights)
        velocity = [momentum * v + g for v, g in zip(velocity, gradients)]
        updates = [-rate * v for v in velocity]  # to be added, as in Optax: that is the contract
        count = count + (count < 2**31 - 1).astype(jnp.int32)  # every optimizer counts its steps
        return value, [w + u for w, u in zip(weights, updates)], velocity, count

    weights = jax.tree.leaves(trainables)
    zeros = jax.tree.map(jnp.zeros_like, weights)
    arguments = (x, optimizer, trainables, optimizer.init(trainables))
    hand_arguments = (x, optimizer.learning_rate, optimizer.momentum, weights, zeros, jnp.int32(0))
    for a, b in zip(
        jax.tree.leaves(jax.jit(ours)(*arguments)), jax.tree.leaves(jax.jit(by_hand)(*hand_arguments))
    ):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
    library, hand = optimized_ops(ours, *arguments), optimized_ops(by_hand, *hand_arguments)
    assert library["dot"] == 5 and library["fusion"]
    assert library == hand


def test_the_recorded_step_holds_no_conversion_in_float32():
    model, x = nn.Series(nn.Linear(3), nn.Bias()), jnp.ones((2, 4))
    trainables, state = model.init(jax.random.key(0), x)
    jaxpr = jax.make_jaxpr(lambda x, t: model.fwd(x, t, state)[0])(x, trainables)
    names = [equation.primitive.name for _, equation in walk(jaxpr)]
    assert [name for name in names if name != "jit"] == ["dot_general", "broadcast_in_dim", "add"]


def test_importing_the_library_imports_nothing_heavy():
    code = (
        "import sys, mlax_tutorial.nn, mlax_tutorial.optim; "
        "print([name for name in ('matplotlib', 'IPython', 'hypothesis', 'optax', 'jupyter', 'PIL') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
