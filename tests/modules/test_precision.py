"""Policies of dtypes and scaled losses: what is computed in which dtype, what is skipped, and wrong uses."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial import nn, optim, packing, precision, sharding, training, trees
from mlax_tutorial.inspection.jaxprs import count, walk
from mlax_tutorial.precision import (
    DynamicLossScale,
    MixedPrecision,
    Policy,
    ScaledState,
    StaticLossScale,
    accept,
    all_finite,
    cast,
    make_scaled_step,
)
from mlax_tutorial.training import State

MODEL = nn.Series(nn.Linear(5), nn.Bias(), nn.BatchNorm(), nn.F(jnp.tanh), nn.Series(nn.Linear(2), nn.Bias()))
X = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
HALVES = ["bfloat16", "float16"]
halves = pytest.mark.parametrize("half", HALVES)


class Plain(nn.Layer):
    """A layer of one's own, that goes by its input's dtype and has no hyperparameters for dtypes."""

    def init(self, key, x):
        return {"scale": jnp.ones(x.shape[-1:], x.dtype)}, {"last": jnp.zeros(x.shape[-1:], x.dtype)}

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        y = x * jnp.broadcast_to(trainables["scale"], x.shape)
        return y, {"last": y.reshape(-1, y.shape[-1])[-1]}


class Tied(nn.Composite):
    """Words in, logits out, one table for both."""

    embed: nn.Layer
    body: nn.Layer

    def forward(self, call, x):
        return call.embed.attend(call.body(call.embed(x)))


def dtypes(tree):
    return {leaf.dtype.name for leaf in jax.tree.leaves(tree)}


def shapes(model, x):
    return jax.eval_shape(model.init, jax.random.key(0), x)


def products(function, *args):
    """The dtypes of each product: its two inputs' and its result's."""
    return [
        tuple(v.aval.dtype.name for v in (*equation.invars, *equation.outvars))
        for _, equation in walk(jax.make_jaxpr(function)(*args))
        if equation.primitive.name == "dot_general"
    ]


# Policies


@halves
def test_it_is_what_casting_by_hand_gives(half):
    mixed = Policy(half).apply(MODEL)
    trainables, non_trainables = mixed.init(jax.random.key(0), X)
    cast_by_hand = jax.tree.map(lambda leaf: leaf.astype(half), trainables)
    for inference_mode in (False, True):
        got = mixed.fwd(X, trainables, non_trainables, inference_mode=inference_mode)
        y, states = MODEL.fwd(
            jnp.asarray(X, half), cast_by_hand, non_trainables, inference_mode=inference_mode
        )
        assert not trees.differences((y.astype(jnp.float32), states), got)
    exact = MODEL.fwd(X, trainables, non_trainables)[0]
    error = np.abs(mixed.fwd(X, trainables, non_trainables)[0] - exact).max()
    assert 0 < error < 10 * float(jnp.finfo(half).eps)  # rounded, and no more than that


def test_a_part_without_state_may_be_given_one_empty_tuple_for_each_layer():
    model = Policy(jnp.bfloat16).apply(nn.Series(nn.Series(nn.Linear(3), nn.Bias()), nn.BatchNorm()))
    x = jnp.ones((2, 4))
    trainables, (none, averages) = model.init(jax.random.key(0), x)
    assert none == ()
    expected = model.fwd(x, trainables, (none, averages))
    assert not trees.differences(expected, model.fwd(x, trainables, (((), ()), averages)))


@halves
def test_variables_are_the_model_s_own(half):
    trainables, non_trainables = Policy(half).apply(MODEL).init(jax.random.key(0), X)
    own, own_states = MODEL.init(jax.random.key(0), X)
    assert not trees.differences(own, trainables)  # to the last bit: drawn in float32, not rounded on the way
    assert not trees.differences(own_states, non_trainables)  # BatchNorm's sums are float32 in any case
    half_weights, _ = Policy(half, param_dtype=half).apply(MODEL).init(jax.random.key(0), X)
    assert dtypes(half_weights) == {half}


@pytest.mark.parametrize(
    "half, param_dtype", [("bfloat16", "float32"), ("float16", "float64"), ("bfloat16", "bfloat16")]
)
def test_gradients_have_the_weights_dtype(half, param_dtype, x64):
    mixed = Policy(half, param_dtype=param_dtype, output_dtype="float32").apply(MODEL)
    trainables, non_trainables = mixed.init(jax.random.key(0), X)
    assert dtypes(trainables) == {param_dtype}

    def loss(trainables, x):
        y, _ = mixed.fwd(x, trainables, non_trainables)
        assert y.dtype == "float32"
        return jnp.sum(jnp.square(y))

    gradients, of_x = jax.jit(jax.grad(loss, argnums=(0, 1)))(trainables, X)
    assert dtypes(gradients) == {param_dtype} and of_x.dtype == X.dtype
    for gradient, weight in zip(jax.tree.leaves(gradients), jax.tree.leaves(trainables)):
        assert gradient.shape == weight.shape and np.isfinite(np.asarray(gradient, np.float64)).all()


@halves
def test_every_product_is_of_half_precision_forward_and_backward(half):
    mixed = Policy(half).apply(MODEL)
    trainables, states = shapes(mixed, X)

    def loss(trainables, states):
        return jnp.sum(mixed.fwd(X, trainables, states)[0])

    assert products(loss, trainables, states) == 2 * [(half, half, half)]
    assert products(jax.grad(loss), trainables, states) == 5 * [(half, half, half)]
    exact = products(lambda t, s: MODEL.fwd(X, t, s)[0], trainables, states)
    assert exact == 2 * [("float32", "float32", "float32")]
    text = jax.jit(loss).lower(trainables, states).as_text()
    name = {"bfloat16": "bf16", "float16": "f16"}[half]
    dots = [line for line in text.splitlines() if "stablehlo.dot_general" in line]
    assert len(dots) == 2 and all(f"x{name}>" in line and "xf32>" not in line for line in dots)


class Perceptron(nn.Composite):
    """Its children follow from a hyperparameter."""

    sizes: tuple[int, ...]

    def children(self):
        return {"linear": tuple(nn.Linear(size) for size in self.sizes)}

    def forward(self, call, x):
        for linear in call.linear:
            x = linear(x)
        return x


def test_accum_dtype_reaches_what_children_made():
    model = nn.Stack(nn.Series(Perceptron((8, 4))), 2)  # a static argument of a jitted scan
    plain, wide = Policy("bfloat16"), Policy("bfloat16", accum_dtype="float32")
    variables = model.init(jax.random.key(0), X)
    programs = [
        str(jax.make_jaxpr(policy.apply(model).fwd)(X, *variables)) for policy in (plain, wide, plain)
    ]
    found = ["preferred_element_type=float32" in program for program in programs]
    assert found == [False, True, False]
    adapted = wide.apply(Perceptron((8, 4)))._layer
    assert adapted._flat[".linear[1]"].accum_dtype == jnp.float32 and adapted != Perceptron((8, 4))
    assert plain.apply(Perceptron((8, 4)))._layer == Perceptron((8, 4))


def test_accum_dtype_reaches_what_is_open_at_any_depth():
    class Two(nn.Composite):
        parts: tuple

        def forward(self, call, x):
            return call.parts[0](x) + call.parts[1][0](x)

    model = nn.Series(
        a=nn.Linear(4),
        b=nn.Stack(nn.Residual(nn.Linear(4, accum_dtype="bfloat16")), 2),
        c=Two((nn.Linear(3), (nn.Linear(3),))),
    )
    mixed = Policy("bfloat16", accum_dtype="float32").apply(model)
    trainables, _ = shapes(mixed, X)
    wide, narrow = ("bfloat16", "bfloat16", "float32"), ("bfloat16", "bfloat16", "bfloat16")
    assert products(lambda t: mixed.fwd(X, t, ())[0], trainables) == [wide, narrow, wide, wide]
    assert mixed.layer is model and model["a"].accum_dtype is None  # the model itself is as it was
    plain = Policy("bfloat16").apply(model)
    assert products(lambda t: plain.fwd(X, t, ())[0], trainables) == 4 * [narrow]


def test_integers_booleans_and_keys_stay():
    mixed = Policy("bfloat16").apply(nn.Series(nn.Embed(7, 4), nn.Dropout(0.5), nn.Linear(3)))
    ids = jnp.array([[1, 6], [0, 2]])
    trainables, _ = shapes(mixed, ids)
    assert dtypes(trainables) == {"float32"} and mixed.needs_key
    y, _ = jax.eval_shape(lambda t, key: mixed.fwd(ids, t, (), key=key), trainables, jax.random.key(1))
    assert y.dtype == "float32" and y.shape == (2, 2, 3)
    assert products(lambda t: mixed.fwd(ids, t, (), inference_mode=True)[0], trainables) == [
        3 * ("bfloat16",)
    ]
    assert Policy("bfloat16").apply(nn.F(lambda x: x + 1)).fwd(ids, (), ())[0].dtype == ids.dtype


def test_further_inputs_are_cast_and_masks_stay():
    class Adds(nn.Layer):
        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, bias, mask):
            assert bias.dtype == x.dtype == jnp.bfloat16 and mask.dtype == jnp.bool_
            return jnp.where(mask, x + bias, x), non_trainables

    mixed = nn.Series(Policy("bfloat16").apply(Adds()), nn.Linear(2))
    bias, mask = jnp.ones((6, 4)), X > 0
    trainables, _ = mixed.init(jax.random.key(0), X, bias=bias, mask=mask)
    assert mixed.fwd(X, trainables, (), bias=bias, mask=mask)[0].dtype == "float32"


def test_a_layer_of_one_s_own_without_dtypes():
    mixed = Policy("bfloat16").apply(nn.Series(Plain(), nn.Linear(2)))
    trainables, states = mixed.init(jax.random.key(0), X)
    assert dtypes(trainables) == {"float32"} == dtypes(states)  # as for an input of param_dtype
    y, new = mixed.fwd(X, trainables, states)
    assert y.dtype == "float32" and dtypes(new) == {"float32"}
    trained_in_half = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), states)
    assert dtypes(mixed.fwd(X, trainables, trained_in_half)[1]) == {"bfloat16"}


def test_init_is_abstract_and_jits():
    mixed = Policy("bfloat16").apply(MODEL)
    made = mixed.init(jax.random.key(0), X)
    assert not trees.differences(jax.eval_shape(mixed.init, jax.random.key(0), X), made)
    assert not trees.differences(made, jax.jit(mixed.init)(jax.random.key(0), X), rtol=1e-6)
    assert nn.summary(mixed, X).parameters == trees.count(made[0])


@pytest.mark.parametrize(
    "place",
    {
        "in a Series": lambda layer: nn.Series(nn.Linear(4), layer),
        "in a Stack": lambda layer: nn.Stack(layer, 3),
        "in a Remat": lambda layer: nn.Remat(layer),
        "in a policy": lambda layer: Policy("float16").apply(layer),
    }.items(),
    ids=lambda place: place[0],
)
def test_inside_other_layers(place):
    block = nn.Residual(nn.Series(nn.Linear(4), nn.Dropout(0.5)))
    model = place[1](Policy("bfloat16", output_dtype="float32").apply(block))
    if place[0] == "in a policy":
        model = Policy("float16").apply(nn.Series(block, Policy("bfloat16").apply(block)))
    trainables, _ = shapes(model, X)
    y, _ = jax.eval_shape(lambda t, key: model.fwd(X, t, (), key=key), trainables, jax.random.key(1))
    assert y.dtype == "float32" and dtypes(trainables) == {"float32"}
    found = products(lambda t: model.fwd(X, t, (), inference_mode=True)[0], trainables)
    assert 3 * ("bfloat16",) in found


def test_tied_weights_and_vmap():
    mixed = Policy("bfloat16").apply(Tied(nn.Embed(7, 4), nn.Linear(4)))
    ids = jnp.arange(6).reshape(2, 3)
    trainables, _ = mixed.init(jax.random.key(0), ids)
    whole = mixed.fwd(ids, trainables, ())[0]
    each = jax.vmap(lambda ids: mixed.fwd(ids, trainables, ())[0])(ids)
    assert whole.shape == (2, 3, 7) and not trees.differences(whole, each, rtol=0.02, atol=0.02)
    keys = jax.random.split(jax.random.key(5), 2)
    outputs = jax.jit(jax.vmap(lambda key: mixed.fwd(ids, mixed.init(key, ids)[0], ())[0]))(keys)
    assert outputs.shape == (2, 2, 3, 7) and not np.allclose(outputs[0], outputs[1])


def test_decoding_keeps_a_cache_of_half_precision():
    model = nn.Series(nn.MultiHeadAttention(2, causal=True))
    mixed = Policy("bfloat16").apply(model)
    x = jnp.asarray(np.random.default_rng(1).normal(size=(2, 5, 8)), jnp.float32)
    trainables, states = mixed.init(jax.random.key(0), x)
    cache, decode = mixed.init_cache(x[:, :1], 5), jax.jit(mixed.decode)
    held = [leaf for leaf in jax.tree.leaves(cache) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    assert held and dtypes(held) == {"bfloat16"}
    steps = []
    for i in range(5):
        y, cache = decode(x[:, i : i + 1], trainables, states, cache)
        steps.append(y)
    whole, _ = mixed.fwd(x, trainables, states, inference_mode=True)
    assert not trees.differences(whole, jnp.concatenate(steps, 1), rtol=0.05, atol=0.05)


def test_policies_and_what_they_make_count_by_value():
    assert Policy("bfloat16") == Policy(jnp.bfloat16, np.float32, None, None, [])
    assert hash(Policy("bfloat16")) == hash(Policy(jnp.bfloat16))
    assert Policy("bfloat16") != Policy("float16")
    assert repr(Policy("float16")) == (
        "Policy(compute_dtype=float16, param_dtype=float32, accum_dtype=None, output_dtype=None, exempt=())"
    )
    mixed = Policy("bfloat16", accum_dtype="float32").apply(MODEL)
    assert mixed == Policy("bfloat16", accum_dtype="float32").apply(MODEL) != Policy("bfloat16").apply(MODEL)
    assert Policy("float16").apply(MODEL).layer == MODEL and isinstance(mixed, MixedPrecision)


def test_what_is_pickled_computes():
    for model in (MODEL, Policy("bfloat16", accum_dtype="float32").apply(nn.Series(nn.Linear(3), nn.Bias()))):
        variables = model.init(jax.random.key(0), X)
        again = pickle.loads(pickle.dumps(model))
        assert again == model
        assert not trees.differences(model.fwd(X, *variables), again.fwd(X, *variables))


def test_an_error_inside_tells_the_place():
    mixed = nn.Series(nn.Linear(4), Policy("bfloat16").apply(nn.Series(nn.Bias(7))))
    with pytest.raises(nn.LayerError, match=r"^model\[1\]\[0\]\.Bias: in_features"):
        mixed.init(jax.random.key(0), X)


def test_cast():
    tree = {"x": jnp.ones(2), "n": np.float64(1.0), "ids": jnp.arange(2), "key": jax.random.key(0), "no": ()}
    made = cast(tree, "float16")
    assert made["x"].dtype == made["n"].dtype == "float16" and made["no"] == ()
    assert made["ids"] is tree["ids"] and made["key"] is tree["key"]


# Loss scales


@pytest.mark.parametrize(
    "scale", [StaticLossScale(2**10), DynamicLossScale(2**10)], ids=["static", "dynamic"]
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_scaling_and_unscaling_are_inverse(scale, dtype, x64):
    wide = "float64" if dtype == "float64" else "float32"

    def loss(w):
        return jnp.sum(jnp.square(w))

    w = jnp.asarray([0.5, -2.0], dtype)
    scaled = jax.jit(lambda scale, w: scale.scale(loss(w)))(scale, w)
    assert scaled.dtype == wide and scaled == 2**10 * 4.25
    gradients = jax.grad(lambda w: scale.scale(loss(w)))(w)
    assert gradients.dtype == dtype
    assert not trees.differences({"w": jnp.asarray([1.0, -4.0], wide)}, scale.unscale({"w": gradients}))


def test_a_dynamic_scale_follows_its_rules():
    """Against a few lines of Python, over a random course."""
    finite = np.random.default_rng(3).uniform(size=200) < 0.7
    scale = DynamicLossScale(64, factor=4, period=3, minimum=0.25)
    adjust, value, since = jax.jit(lambda scale, finite: scale.adjust(finite)), 64.0, 0
    seen = set()
    for each in finite:
        scale = adjust(scale, each)
        if not each:
            value, since = max(value / 4, 0.25), 0
        elif since == 2:
            value, since = value * 4, 0
        else:
            since += 1
        seen.add(value)
        assert (float(scale.value), int(scale.count)) == (value, since)
    assert 0.25 in seen and len(seen) > 4


def test_a_scale_stays_finite():
    scale = DynamicLossScale(2.0**127, period=1)
    assert scale.adjust(True).value == 2.0**127 and scale.adjust(True).count == 0
    assert scale.adjust(False).value == 2.0**126


def test_adjusting_never_traces_again_and_never_waits():
    traces = []

    @jax.jit
    def adjust(scale, finite):
        traces.append(finite)
        return scale.adjust(finite)

    scale = DynamicLossScale()
    for finite in (True, False, True):
        scale = adjust(scale, jnp.array(finite))
    adjust(DynamicLossScale(7, factor=3, period=5, minimum=0.5), jnp.array(True))
    assert len(traces) == 1
    static = StaticLossScale(8)
    assert static.adjust(jnp.array(False)) is static
    assert repr(DynamicLossScale()) == "DynamicLossScale()" and repr(static) == "StaticLossScale(8.0)"


def test_placeholders_are_cast_as_placeholders():
    outline = jax.eval_shape(lambda: {"w": jnp.ones((2, 3)), "ids": jnp.arange(3)})
    got = cast(outline, "bfloat16")
    assert got == {"w": jax.ShapeDtypeStruct((2, 3), jnp.bfloat16), "ids": outline["ids"]}


def test_a_scale_below_its_minimum_does_not_grow_when_it_should_shrink():
    assert DynamicLossScale(0.5, minimum=1).adjust(False).value == 0.5


def test_all_finite():
    assert all_finite(()) and all_finite({"ids": jnp.arange(3), "key": jax.random.key(0), "x": jnp.ones(3)})
    for wrong in (jnp.inf, -jnp.inf, jnp.nan):
        for dtype in ("float16", "bfloat16", "float32", "complex64"):
            assert not all_finite([jnp.ones(3), {"x": jnp.array([0, wrong], dtype)}])
    assert jax.jit(all_finite)({"x": jnp.ones(3)}).dtype == jnp.bool_


@pytest.mark.parametrize("finite", [True, False])
def test_accept(finite):
    new = {"x": jnp.full(3, jnp.nan), "n": jnp.int32(1), "key": jax.random.key(1), "no": ()}
    old = {"x": jnp.ones(3), "n": jnp.int32(0), "key": jax.random.key(2), "no": ()}
    got = jax.jit(accept)(jnp.array(finite), new, old)
    assert not trees.differences(new if finite else old, got)
    assert "cond" not in count(accept, jnp.array(finite), new, old)


# Training. Each of 65,536 outputs has so small a share of the mean that float16 holds no gradient of it.
# The learning rate halves the error at each step, and the schedule makes the optimizer count its steps.

ROWS, SIZE = 4096, 16
INPUTS = np.random.default_rng(4).normal(size=(ROWS, SIZE)).astype(np.float32)
TARGETS = 3e-5 * INPUTS @ np.random.default_rng(5).normal(size=(SIZE, SIZE)).astype(np.float32)
SMALL = nn.Linear(SIZE, kernel_initializer=jax.nn.initializers.zeros)


def mean_square(outputs, targets):
    return jnp.mean(jnp.square(outputs - targets))


def train(step, policy, scale=None, steps=12):
    optimizer = optim.SGD(4.0)
    model = SMALL if policy is None else policy.apply(SMALL)
    trainables, rest = model.init(jax.random.key(0), INPUTS)
    state = optimizer.init(trainables)
    state = State(trainables, rest, state if scale is None else ScaledState(scale, state))
    step = step(model, mean_square)
    for _ in range(steps):
        state, value = step(optimizer, state, None, INPUTS, TARGETS)
    return state.trainables["kernel"], float(value), state.optimizer_state


def test_float16_underflows_without_a_scale_and_trains_with_one():
    first = float(np.mean(np.square(TARGETS)))
    exact, exact_loss, _ = train(training.make_step, None)
    assert exact_loss < 1e-4 * first
    lost, lost_loss, _ = train(training.make_step, Policy("float16"))
    assert not np.any(lost) and lost_loss == pytest.approx(first, rel=1e-3)  # every gradient was 0
    for scale in (StaticLossScale(2**12), DynamicLossScale()):
        found, loss, state = train(make_scaled_step, Policy("float16"), scale)
        assert loss < 1e-3 * first
        np.testing.assert_allclose(found, exact, atol=1e-6)
        assert state.inner.count == 12


def test_a_scale_too_large_is_found_out_and_lowered():
    """The first steps overflow, and are skipped; the rest train as if they had never been."""
    kernel, _, state = train(make_scaled_step, Policy("float16"), DynamicLossScale(2.0**40), steps=24)
    skipped = 24 - int(state.inner.count)
    assert 4 < skipped < 16 and float(state.scale.value) == 2.0 ** (40 - skipped)
    wanted, _, _ = train(make_scaled_step, Policy("float16"), DynamicLossScale(2.0**15), steps=24 - skipped)
    np.testing.assert_allclose(kernel, wanted, atol=1e-6)


@pytest.mark.parametrize("optimizer", [optim.Adam(1e-2), optax.sgd(1e-2, 0.9)], ids=["ours", "optax"])
def test_a_skipped_step_changes_nothing_but_the_scale(optimizer):
    model = Policy("float16").apply(MODEL)
    step = make_scaled_step(model, mean_square)
    targets = np.zeros((6, 2), np.float32)
    trainables, rest = model.init(jax.random.key(0), X)
    variables = trainables, rest, ScaledState(DynamicLossScale(8, period=3), optimizer.init(trainables))
    kept = jax.tree.map(np.array, variables)  # the arrays themselves are donated

    wrong = X.copy()
    wrong[2, 1] = 1e6  # infinite in float16
    state, value = step(optimizer, State(*variables), None, wrong, targets)
    variables = tuple(state)
    assert not np.isfinite(value)
    assert not trees.differences(kept[:2], tuple(variables[:2]))
    assert not trees.differences(kept[2].inner, variables[2].inner)
    assert variables[2].scale.value == 4 and variables[2].scale.count == 0

    for done in (1, 2, 3):
        before = jax.tree.map(np.array, tuple(variables))
        state, value = step(optimizer, state, None, X, targets)
        variables = tuple(state)
        assert np.isfinite(value)
        changed = "\n".join(trees.differences(before[:2], tuple(variables[:2])))
        for path in ("['kernel']", "['bias']"):  # a weight and, in the second tree, a running mean
            assert path in changed
        assert "[1][2]" in changed
        assert trees.differences(before[2].inner, variables[2].inner)
        scale = variables[2].scale
        assert (float(scale.value), int(scale.count)) == ((4, done) if done < 3 else (8, 0))


def test_a_step_is_one_program_traced_once():
    traces = []

    def loss(outputs, targets):
        traces.append(outputs)
        return mean_square(outputs, targets)

    model, optimizer = Policy("float16").apply(SMALL), optim.Adam(1e-3)
    step = make_scaled_step(model, loss)
    trainables, rest = model.init(jax.random.key(0), INPUTS)
    state = State(trainables, rest, ScaledState(DynamicLossScale(), optimizer.init(trainables)))
    for size in (1.0, 1e30, 1.0):  # finite, infinite, finite
        state, _ = step(optimizer, state, None, np.float32(size) * INPUTS, TARGETS)
    assert len(traces) == 1 and state.optimizer_state.inner.count == 2
    primitives = count(lambda *args: step(*args), optimizer, state, None, INPUTS, TARGETS)
    assert not [name for name in primitives if "callback" in name] and primitives["cond"] == 0


def test_fit_takes_a_scaled_step():
    model, optimizer = Policy("float16").apply(SMALL), optim.SGD(2.0)
    trainables, rest = model.init(jax.random.key(0), INPUTS)
    variables = trainables, rest, ScaledState(DynamicLossScale(), optimizer.init(trainables))
    losses = []
    training.fit(
        jax.random.key(1),
        make_scaled_step(model, mean_square),
        optimizer,
        variables,
        INPUTS,
        TARGETS,
        epochs=3,
        batch_size=1024,
        each_epoch=lambda epoch, trainables, rest, loss: losses.append(loss),
    )
    assert losses[-1] < 0.1 * losses[0]


def test_a_scaled_step_weighs_batches():
    """One and three tokens, accumulated: the step of their four, with and without a loss scale; a batch that overflows counts nothing."""
    model, optimizer = nn.Linear(1), optim.Accumulate(optim.SGD(0.1), steps=2)
    x = jnp.arange(1, 5, dtype="float32")[:, None]
    trainables, rest = model.init(jax.random.key(0), x)
    results = []
    for scale in (None, StaticLossScale(2.0**10)):
        make = training.make_step if scale is None else make_scaled_step
        step = make(model, lambda y, t: jnp.mean((y - t) ** 2), weight=len)
        inner = optimizer.init(trainables)
        state = State(
            jax.tree.map(jnp.copy, trainables), rest, inner if scale is None else ScaledState(scale, inner)
        )
        batches = [x[:1], jnp.full_like(x, jnp.inf), x[1:]] if scale is not None else [x[:1], x[1:]]
        for batch in batches:
            state, _ = step(optimizer, state, None, batch, 2 * batch)
        results.append(state.trainables["kernel"])
    whole = jax.grad(lambda t: jnp.mean((model.fwd(x, t, rest)[0] - 2 * x) ** 2))(trainables)
    for found in results:
        np.testing.assert_allclose(found, trainables["kernel"] - 0.1 * whole["kernel"], rtol=1e-5)
    with pytest.raises(ValueError, match=r"^make_scaled_step: weight must be a function"):
        make_scaled_step(model, mean_square, weight=3)


WRONG = {
    "a dtype of integers": (lambda: Policy("int8"), r"^Policy: compute_dtype must be a floating-point dtype, .* got 'int8'"),
    "no dtype": (lambda: Policy(None), r"^Policy: compute_dtype must be a floating-point dtype, .* got None"),
    "a number for a dtype": (lambda: Policy("float16", accum_dtype=32), r"^Policy: accum_dtype must be a floating-point"),
    "float64 without x64": (lambda: Policy("float16", "float64"), r"^Policy: param_dtype is float64, which JAX has only"),
    "a function for a layer": (
        lambda: Policy("float16").apply(jnp.tanh),
        r"^MixedPrecision: layer must be a layer: wrap a function in nn\.F\(…\), got tanh",
    ),
    "weights for a layer": (
        lambda: Policy("float16").apply({"kernel": jnp.ones(3)}),
        r"^MixedPrecision: layer must be a layer, got \{'kernel'",
    ),
    "a list for x": (lambda: Policy("float16").apply(SMALL).init(jax.random.key(0), [1.0]), r"^MixedPrecision: x\[0\] expects an array"),
    "no key": (
        lambda: Policy("float16").apply(nn.Dropout(0.5)).fwd(X, (), ()),
        r"^Dropout: needs a key in training",
    ),
    "an old key": (
        lambda: Policy("float16").apply(SMALL).init(jnp.zeros(2, jnp.uint32), X),
        r"^MixedPrecision: expects a typed key, got uint32\[2\]",
    ),
    "other weights": (
        lambda: Policy("float16").apply(SMALL).fwd(X, {"kernel": jnp.ones((4, 3))}, ()),
        r"^Linear: kernel expects shape \(4, 16\) for x, float16\[6,4\], got float16\[4,3\]",
    ),
    "cast to integers": (lambda: cast(X, "int8"), r"^cast: dtype must be a floating-point dtype, .* got 'int8'"),
    "cast to None": (lambda: cast(X, None), r"^cast: dtype must be a floating-point dtype, .* got None"),
    "cast to float64": (lambda: cast(X, jnp.float64), r"^cast: dtype is float64, which JAX has only after"),
    "a scale of 0": (lambda: StaticLossScale(0), r"^StaticLossScale: value must be a finite number above 0 \(.*\), got 0\."),
    "an infinite scale": (lambda: StaticLossScale(2.0**128), r"^StaticLossScale: value must be a finite number above 0"),
    "text for a scale": (lambda: StaticLossScale("dynamic"), r"^StaticLossScale: value must be a finite number above 0"),
    "a negative scale": (lambda: DynamicLossScale(-1), r"^DynamicLossScale: value must be a finite number above 0 \(.*\), got -1\."),
    "a factor below 1": (lambda: DynamicLossScale(factor=0.5), r"^DynamicLossScale: factor must be .* at least 1, got 0\.5"),
    "a period of 0": (lambda: DynamicLossScale(period=0), r"^DynamicLossScale: period must be a whole number of at least 1"),
    "a minimum of 0": (lambda: DynamicLossScale(minimum=0), r"^DynamicLossScale: minimum must be a finite number above 0"),
    "half a count": (lambda: DynamicLossScale(count=0.5), r"^DynamicLossScale: count must be a whole number of at least 0"),
    "gradients for finite": (
        lambda: DynamicLossScale().adjust({"w": X}),
        r"^DynamicLossScale: finite must be one bool, got a dict with keys \['w'\]: .*all_finite",
    ),
    "many bools for finite": (
        lambda: StaticLossScale(1).adjust(jnp.isfinite(X)),
        r"^StaticLossScale: finite must be one bool, got bool\[6,4\]",
    ),
    "a number for finite": (lambda: DynamicLossScale().adjust(1.0), r"^DynamicLossScale: finite must be one bool, got float 1"),
    "all_finite of a number": (lambda: all_finite({"a": 1.0}), r"^all_finite: \['a'\] expects an array, got float 1"),
    "all_finite of text": (lambda: all_finite("x"), r"^all_finite: the root expects an array, got str 'x'"),
    "all_finite of a function": (lambda: all_finite([X, len]), r"^all_finite: \[1\] expects an array, got .*len"),
    "accept of many bools": (lambda: accept(jnp.isfinite(X), X, X), r"^accept: finite must be one bool, got bool\[6,4\]"),
    "accept of another dtype": (
        lambda: accept(jnp.array(True), {"w": jnp.ones(3)}, {"w": jnp.ones(3, jnp.bfloat16)}),
        r"^accept: new\['w'\] expects bfloat16\[3\], got float32\[3\]",
    ),
    "accept of another shape": (
        lambda: accept(jnp.array(True), jnp.ones(3), jnp.ones(())),
        r"^accept: new expects float32\[\], got float32\[3\]: a step must keep",
    ),
    "accept of another structure": (
        lambda: accept(jnp.array(True), [X], (X,)),
        r"^accept: new\S* expects the containers .*\(\(\*,\)\), got .*: a step must keep structure",
    ),
    "a state without a scale": (
        lambda: make_scaled_step(SMALL, mean_square)(
            optim.SGD(1.0), State({"kernel": jnp.zeros((4, 16))}, (), optim.SGDState((), jnp.int32(0))), None, X, X
        ),
        r"^make_scaled_step: optimizer_state must be ScaledState\(scale, optimizer\.init\(trainables\)\), got ",
    ),
    "a scale that is a number": (
        lambda: make_scaled_step(SMALL, mean_square)(
            optim.SGD(1.0), State({"kernel": jnp.zeros((4, 16))}, (), ScaledState(8.0, ())), None, X, X
        ),
        r"^make_scaled_step: optimizer_state must be ScaledState",
    ),
    "a class for an optimizer": (
        lambda: make_scaled_step(SMALL, mean_square)(optim.SGD, State((), (), ScaledState(StaticLossScale(8), ())), None, X, X),
        r"^make_scaled_step: optimizer must be of mlax_tutorial\.optim or of Optax, got SGD",
    ),
    "a loss for each example": (
        lambda: make_scaled_step(SMALL, lambda y, t: y)(
            optim.SGD(1.0), State({"kernel": jnp.zeros((4, 16))}, (), ScaledState(StaticLossScale(8), optim.SGDState((), jnp.int32(0)))), None, X, X
        ),
        r"^make_scaled_step: loss must return one floating-point number, got float32\[6,16\], from outputs float32\[6,16\]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_wrong_uses(case):
    call, message = case
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@pytest.mark.parametrize(
    "wrap", [lambda o: o, optim.ExponentialMovingAverage, packing.Packed], ids=["alone", "averaged", "packed"]
)
def test_gradients_of_frozen_weights_skip_no_step(wrap):
    """They overflow here, but nobody uses them."""
    model = nn.Parallel(
        nn.Scale(scale_initializer=jax.nn.initializers.zeros),
        nn.Scale(scale_initializer=jax.nn.initializers.zeros),
    )
    inner = optim.SGD(0.1)
    optimizer = (
        optim.Freeze(wrap(inner), "[0]*") if wrap is packing.Packed else wrap(optim.Freeze(inner, "[0]*"))
    )
    step = make_scaled_step(model, lambda y, target: jnp.sum(y[0]) * 1e35 + jnp.sum(y[1]))
    trainables, rest = model.init(jax.random.key(0), jnp.ones(1))
    state = State(trainables, rest, ScaledState(DynamicLossScale(), optimizer.init(trainables)))
    for _ in range(3):
        state, _ = step(optimizer, state, None, jnp.ones(1), jnp.ones(1))
    trainables, rest, state = state
    np.testing.assert_allclose(trainables[1]["scale"], [-0.3], rtol=1e-6)
    assert trainables[0]["scale"] == 0 and state.scale.value == 2.0**15


def test_a_clipped_norm_uses_all_gradients():
    optimizer = optim.Chain(optim.ClipByGlobalNorm(1.0), optim.Freeze(optim.SGD(0.1), "['a']"))
    assert optimizer.used({"a": jnp.ones(2), "b": jnp.ones(2)})["a"].shape == (2,)
    assert optimizer.parts[1].used({"a": jnp.ones(2), "b": jnp.ones(2)})["a"] == ()


def test_a_scaled_step_keeps_what_is_sharded():
    mesh = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))
    x, optimizer = jax.random.normal(jax.random.key(0), (8, 4)), optim.Adam(0.1)
    *variables, inner = sharding.init(nn.Linear(6), optimizer, jax.random.key(1), x, mesh, [("*", P("data"))])
    places = jax.tree.map(lambda leaf: leaf.sharding, (*variables, inner))
    traces = []
    step = make_scaled_step(nn.Linear(6), lambda y, target: traces.append(1) or jnp.mean(y**2), places)
    scale = jax.device_put(precision.DynamicLossScale(), NamedSharding(mesh, P()))
    state = State(*variables, ScaledState(scale, inner))
    for _ in range(3):
        state, value = step(optimizer, state, None, x, x)
    trainables, _, state = state
    assert len(traces) == 1 and trainables["kernel"].sharding.spec == P("data")
    assert state.inner.first_moment["kernel"].sharding.spec == P("data") and state.scale.count == 3
