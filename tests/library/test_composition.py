"""Does the contract survive composition? An 8-block decoder-only Transformer, under everything that JAX can do to it."""

import functools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from mlax_tutorial import nn, optim

VOCABULARY, WIDTH, LENGTH = 11, 16, 6


class Decoder(nn.Composite):
    """Shared embedding and read-out, blocks between."""

    embed: nn.Layer
    blocks: nn.Layer
    norm: nn.Layer

    def forward(self, call, ids):
        x = call.blocks(call.embed(ids))
        return call.embed.attend(call.norm(x))


def block(norm=None, rate=0.1):
    norm = norm or nn.RMSNorm()
    attention = nn.MultiHeadAttention(heads=4, kv_heads=2, causal=True, rotary_base=100)
    widen, narrow = nn.Linear(2 * WIDTH), nn.Linear(WIDTH)
    return nn.Series(
        nn.Residual(nn.Series(norm, nn.Scaler(), attention, nn.Dropout(rate))),
        nn.Residual(nn.Series(norm, nn.Scaler(), widen, nn.Bias(), nn.F(jax.nn.gelu), narrow, nn.Dropout(rate))),
    )


def decoder(dtype=jnp.float32, depth=8, stacked=True, **options):
    blocks = (
        nn.Stack(block(**options), depth, remat=jax.checkpoint_policies.nothing_saveable)
        if stacked
        else nn.Series(*[nn.Remat(block(**options)) for _ in range(depth)])
    )
    return Decoder(nn.Embed(VOCABULARY, WIDTH, param_dtype=dtype), blocks, nn.RMSNorm())


IDS = jnp.asarray(np.random.default_rng(0).integers(0, VOCABULARY, (4, LENGTH)))
VARIANTS = {
    "stacked": {},
    "in a series": {"stacked": False, "depth": 3},
    "bfloat16": {"dtype": jnp.bfloat16},
    "batch-normalized": {"norm": nn.BatchNorm()},
    "without dropout": {"rate": 0.0},
}
variants = pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)


def loss_fn(model, trainables, non_trainables, key, ids):
    logits, non_trainables = model.fwd(ids[:, :-1], trainables, non_trainables, key=key)
    losses = optax.losses.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), ids[:, 1:])
    return losses.mean(), non_trainables


def make_step(model):
    @functools.partial(jax.jit, donate_argnums=(1, 2, 3))
    def step(optimizer, trainables, non_trainables, state, key, ids):
        (loss, non_trainables), gradients = jax.value_and_grad(functools.partial(loss_fn, model), has_aux=True)(
            trainables, non_trainables, key, ids
        )
        updates, state = optimizer.step(gradients, state, trainables)
        return optim.apply_updates(trainables, updates), non_trainables, state, loss

    return step


def begin(model, optimizer=None):
    variables = jax.jit(model.init)(jax.random.key(0), IDS)
    return variables if optimizer is None else (*variables, optimizer.init(variables[0]))


def train(model, steps=30, optimizer=None):
    optimizer = optimizer or optim.SGD(0.1, momentum=0.9)
    variables, step, losses = begin(model, optimizer), make_step(model), []
    for key in jax.random.split(jax.random.key(1), steps):
        *variables, loss = step(optimizer, *variables, key, IDS)
        losses.append(float(loss))
    assert step._cache_size() == 1
    return variables, losses


@variants
def test_it_learns(options):
    (trainables, _, _), losses = train(decoder(**options))
    assert np.isfinite(losses).all() and losses[-1] < 0.5 * losses[0]
    dtype = options.get("dtype", jnp.float32)
    assert {leaf.dtype for leaf in jax.tree.leaves(trainables)} == {jnp.dtype(dtype)}


def test_stacked_equals_a_series_of_blocks():
    stacked, series = decoder(depth=3, rate=0.0), decoder(depth=3, rate=0.0, stacked=False)
    trainables, _ = begin(stacked)
    unstacked = dict(trainables, blocks=tuple(jax.tree.map(lambda leaf, i=i: leaf[i], trainables["blocks"]) for i in range(3)))
    assert jax.tree.structure(unstacked) == jax.tree.structure(begin(series)[0])
    for first, second in (
        (stacked.fwd(IDS, trainables, ())[0], series.fwd(IDS, unstacked, ())[0]),
        (
            jax.grad(lambda t: loss_fn(stacked, t, (), None, IDS)[0])(trainables)["embed"]["embed"],
            jax.grad(lambda t: loss_fn(series, t, (), None, IDS)[0])(unstacked)["embed"]["embed"],
        ),
    ):
        np.testing.assert_allclose(first, second, rtol=1e-4, atol=1e-5)


def test_vmap_over_examples_and_over_models():
    model = decoder()
    trainables, _ = begin(model)
    infer = functools.partial(model.fwd, inference_mode=True)
    whole, _ = infer(IDS, trainables, ())
    each = jax.vmap(lambda ids: infer(ids, trainables, ())[0])(IDS)
    np.testing.assert_allclose(each, whole, rtol=1e-4, atol=1e-5)
    ensemble, _ = jax.vmap(lambda key: model.init(key, IDS))(jax.random.split(jax.random.key(3), 2))
    outputs = jax.vmap(lambda trainables: infer(IDS, trainables, ())[0])(ensemble)
    first = jax.tree.map(lambda leaf: leaf[0], ensemble)
    np.testing.assert_allclose(outputs[0], infer(IDS, first, ())[0], rtol=1e-4, atol=1e-5)


def test_decoding_step_by_step_equals_the_whole():
    for options in ({}, {"stacked": False, "depth": 3}):
        model = decoder(**options)
        trainables, _ = begin(model)
        whole, _ = model.fwd(IDS, trainables, (), inference_mode=True)
        cache, decode = model.init_cache(IDS[:, :1], length=LENGTH), jax.jit(model.decode)
        for place in range(LENGTH):
            logits, cache = decode(IDS[:, place : place + 1], trainables, (), cache)
            np.testing.assert_allclose(logits[:, 0], whole[:, place], rtol=1e-3, atol=1e-4)
        assert decode._cache_size() == 1


def test_remat_stores_less():
    def temporaries(model):
        trainables, non_trainables = jax.eval_shape(model.init, jax.random.key(0), jnp.ones((64, 33), int))
        step = jax.jit(jax.grad(lambda t, ids: loss_fn(model, t, non_trainables, None, ids)[0]))
        ids = jax.ShapeDtypeStruct((64, 33), jnp.int32)
        return step.lower(trainables, ids).compile().memory_analysis().temp_size_in_bytes

    stored = Decoder(nn.Embed(VOCABULARY, WIDTH), nn.Stack(block(rate=0.0), 8), nn.RMSNorm())
    assert temporaries(decoder(rate=0.0)) < 0.5 * temporaries(stored)


def mesh():
    return jax.make_mesh((2,), ("batch",), axis_types=(AxisType.Auto,))


def test_a_sharded_step_equals_one_on_a_single_device():
    model, optimizer = decoder(rate=0.0), optim.SGD(0.1, momentum=0.9)
    *wanted, loss = make_step(model)(optimizer, *begin(model, optimizer), None, IDS)
    rows, columns = NamedSharding(mesh(), PartitionSpec("batch")), NamedSharding(mesh(), PartitionSpec())

    def place(leaf):  # the last axis of what has one that two devices can share
        spec = [None] * (leaf.ndim - 1) + ["batch"] if leaf.ndim > 1 and leaf.shape[-1] % 2 == 0 else []
        return NamedSharding(mesh(), PartitionSpec(*spec))

    abstract = jax.eval_shape(model.init, jax.random.key(0), IDS)
    shardings = jax.tree.map(place, abstract)
    trainables, non_trainables = jax.jit(model.init, out_shardings=shardings)(jax.random.key(0), IDS)
    state = optimizer.init(trainables)
    kernel = lambda tree: tree["blocks"][1]["layer"][2]["kernel"]  # noqa: E731
    assert kernel(trainables).sharding.spec[-1] == "batch" and kernel(state.velocity).sharding == kernel(trainables).sharding
    *got, sharded_loss = make_step(model)(optimizer, trainables, non_trainables, state, None, jax.device_put(IDS, rows))
    np.testing.assert_allclose(loss, sharded_loss, rtol=1e-5)
    assert columns.is_fully_replicated
    for a, b in zip(jax.tree.leaves(got[0]), jax.tree.leaves(wanted[0])):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_shard_map_over_the_batch():
    model = decoder()
    trainables, _ = begin(model)
    split = jax.shard_map(
        lambda ids, trainables: model.fwd(ids, trainables, (), inference_mode=True)[0],
        mesh=mesh(), in_specs=(PartitionSpec("batch"), PartitionSpec()), out_specs=PartitionSpec("batch"),
    )  # fmt: skip
    wanted, _ = model.fwd(IDS, trainables, (), inference_mode=True)
    np.testing.assert_allclose(jax.jit(split)(IDS, trainables), wanted, rtol=1e-4, atol=1e-5)


def test_batch_statistics_across_shards_are_those_of_the_whole_batch():
    whole, sharded = decoder(norm=nn.BatchNorm(), rate=0.0), decoder(norm=nn.BatchNorm(axis_name="batch"), rate=0.0)
    trainables, non_trainables = begin(whole)
    wanted, wanted_state = whole.fwd(IDS, trainables, non_trainables)
    split = jax.shard_map(
        lambda ids, trainables, non_trainables: sharded.fwd(ids, trainables, non_trainables),
        mesh=mesh(), in_specs=(PartitionSpec("batch"), PartitionSpec(), PartitionSpec()),
        out_specs=(PartitionSpec("batch"), PartitionSpec()),
    )  # fmt: skip
    got, state = jax.jit(split)(IDS, trainables, non_trainables)
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)
    for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(wanted_state)):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_saved_by_key_path_and_loaded(tmp_path):
    (trainables, non_trainables, state), _ = train(decoder(), steps=2)
    leaves = {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path((trainables, state))}
    assert "[0]['blocks'][0]['layer'][2]['query']" in leaves
    np.savez(tmp_path / "step.npz", **leaves)
    with np.load(tmp_path / "step.npz") as file:
        loaded = jax.tree.unflatten(jax.tree.structure((trainables, state)), [jnp.asarray(file[name]) for name in leaves])
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), loaded, (trainables, state)))


def test_a_model_pickles():
    model = decoder()
    assert pickle.loads(pickle.dumps(model)) == model


def test_the_same_key_twice_is_caught():
    model = decoder()
    trainables, _ = begin(model)
    key = jax.random.key(5)
    model.fwd(IDS, trainables, (), key=key)
    with pytest.raises(jax.errors.KeyReuseError):
        model.fwd(IDS, trainables, (), key=key)


def test_errors_name_the_way_to_the_layer():
    model = decoder()
    trainables, _ = begin(model)
    trainables["blocks"][1]["layer"][2]["kernel"] = jnp.ones((8, 3, 32))
    with pytest.raises(nn.LayerError, match=r"^model\.blocks\[…\]\[1\]\.layer\[2\]\.Linear: kernel of shape \(3, 32\)"):
        model.fwd(IDS, trainables, (), inference_mode=True)


def test_a_call_inside_another_transformation_is_refused():
    class Careless(nn.Composite):
        layer: nn.Layer

        def forward(self, call, x):
            return jax.checkpoint(call.layer)(x)

    with pytest.raises(nn.LayerError, match=r"call\.layer was used inside another transformation.*nn\.Remat"):
        Careless(nn.Linear(2)).init(jax.random.key(0), jnp.ones(3))


def test_a_child_that_is_never_called_is_named():
    class Forgetful(nn.Composite):
        used: nn.Layer
        unused: nn.Layer

        def forward(self, call, x):
            return call.used(x)

    with pytest.raises(nn.LayerError, match=r"never calls unused"):
        Forgetful(nn.Linear(2), nn.Linear(3)).init(jax.random.key(0), jnp.ones(3))
