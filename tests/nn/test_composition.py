"""Does the contract survive composition? An 8-block decoder-only Transformer, under everything that JAX can do to it.

Nearly all of the time goes into compiling. So programs are few, shared where they can be, and compiled without LLVM's
optimizations (`jit` below), which compute the same several times sooner.
"""

import functools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from mlax_tutorial import nn, optim, saving
from mlax_tutorial.inspection.retracing import counted

VOCABULARY, WIDTH, LENGTH, DEPTH = 11, 8, 6, 8
IDS = np.random.default_rng(0).integers(0, VOCABULARY, (4, LENGTH)).astype("int32")

ABSTRACT_KEY = jax.eval_shape(lambda: jax.random.key(0))

jit = functools.partial(
    jax.jit,
    compiler_options={"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True},
)


class Decoder(nn.Composite):
    """Shared embedding and read-out, blocks between."""

    embed: nn.Layer
    blocks: nn.Layer
    norm: nn.Layer
    decodes = True

    def forward(self, call, ids):
        x = call.blocks(call.embed(ids))
        return call.embed.attend(call.norm(x))


def block(norm=None, rate=0.1):
    norm = norm or nn.RMSNorm()
    attention = nn.MultiHeadAttention(heads=4, kv_heads=2, causal=True, rotary_base=100)
    widen, narrow = nn.Linear(2 * WIDTH), nn.Linear(WIDTH)
    return nn.Series(
        nn.Residual(nn.Series(norm, nn.Scale(), attention, nn.Dropout(rate))),
        nn.Residual(
            nn.Series(norm, nn.Scale(), widen, nn.Bias(), nn.F(jax.nn.gelu), narrow, nn.Dropout(rate))
        ),
    )


def decoder(depth=DEPTH, stacked=True, remat=jax.checkpoint_policies.nothing_saveable, dtype=None, **options):
    blocks = (
        nn.Stack(block(**options), depth, remat=remat)
        if stacked
        else nn.Series(*[nn.Remat(block(**options)) for _ in range(depth)])
    )
    return Decoder(nn.Embed(VOCABULARY, WIDTH, param_dtype=dtype or jnp.float32), blocks, nn.RMSNorm())


def loss_fn(model, trainables, non_trainables, key, ids, dtype=None):
    """Mixed precision as the contract has it: cast the trainables here, and everything that follows has that dtype."""
    if dtype is not None:
        trainables = jax.tree.map(lambda leaf: leaf.astype(dtype), trainables)
    logits, non_trainables = model.fwd(ids[:, :-1], trainables, non_trainables, key=key)
    assert logits.dtype == (dtype or jnp.float32)
    losses = optax.losses.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), ids[:, 1:])
    return losses.mean(), non_trainables


def step(model, optimizer, trainables, non_trainables, state, key, ids, **options):
    loss = functools.partial(loss_fn, model, **options)
    (loss, non_trainables), gradients = jax.value_and_grad(loss, has_aux=True)(
        trainables, non_trainables, key, ids
    )
    updates, state = optimizer.step(gradients, state, trainables)
    return optim.apply_updates(trainables, updates), non_trainables, state, loss


OPTIMIZER = optim.SGD(0.05, momentum=0.9)
MODEL = decoder()
infer = jit(functools.partial(MODEL.fwd, inference_mode=True))
compiled_step = jit(functools.partial(step, MODEL), donate_argnums=(1, 2, 3))


@pytest.fixture(scope="module")
def ensemble():
    """The trainables of two models, on a leading axis."""
    keys = jax.random.split(jax.random.key(0))
    return jit(jax.vmap(lambda key: MODEL.init(key, IDS)[0]))(keys)


@pytest.fixture(scope="module")
def trainables(ensemble):
    """Those of one, which fit all variants: neither dropout nor a norm has any."""
    return pick(ensemble, 0)


@pytest.fixture(scope="module")
def statistics():
    """Running averages, of the variant that has them."""
    return jit(lambda key: decoder(norm=nn.BatchNorm()).init(key, IDS)[1])(jax.random.key(0))


@pytest.fixture(scope="module")
def logits(trainables):
    """Of the whole batch at once, in inference."""
    return infer(IDS, trainables, ())[0]


@pytest.fixture(scope="module")
def trained(trainables):
    """What 100 calls of one compiled step make of them, each call taking over the memory of what the last one gave."""
    variables, losses = (*copy((trainables, ())), OPTIMIZER.init(trainables)), []
    with counted(compiled_step) as traces:
        for seed in range(100):
            *variables, loss = compiled_step(OPTIMIZER, *variables, jax.random.key(seed), IDS)
            losses.append(float(loss))
    return variables, losses, traces()


def pick(tree, index):
    return jax.tree.map(lambda leaf: leaf[index], tree)


def copy(tree):
    return jax.tree.map(jnp.copy, tree)


def close(got, wanted, rtol=1e-4, atol=1e-5):
    assert jax.tree.structure(got) == jax.tree.structure(wanted)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted)):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def mesh():
    return jax.make_mesh((2,), ("batch",), axis_types=(AxisType.Auto,))


def test_it_learns_with_dropout_in_one_compiled_step(trained):
    _, losses, traces = trained
    assert np.isfinite(losses).all() and np.mean(losses[-5:]) < 0.25 * losses[0]
    assert traces == 1


def test_batch_normalized_and_in_bfloat16_it_learns_in_a_scan_over_the_steps(trainables, statistics):
    model = decoder(norm=nn.BatchNorm())

    @jit
    def train(trainables, statistics, keys):
        def one(carry, key):
            *carry, loss = step(model, OPTIMIZER, *carry, key, IDS, dtype=jnp.bfloat16)
            return tuple(carry), loss

        return jax.lax.scan(one, (trainables, statistics, OPTIMIZER.init(trainables)), keys)

    keys = jax.random.split(jax.random.key(1), 100)
    (masters, updated, _), losses = train(trainables, statistics, keys)
    assert np.isfinite(losses).all() and losses[-10:].mean() < 0.5 * losses[0]
    assert {leaf.dtype for leaf in jax.tree.leaves(masters)} == {jnp.dtype("float32")}
    assert jax.tree.structure(updated) == jax.tree.structure(statistics)
    for before, after in zip(jax.tree.leaves(statistics), jax.tree.leaves(updated)):
        assert before.shape == (DEPTH, WIDTH) and (before != after).any(axis=1).all()


def test_what_is_declared_bfloat16_stays_bfloat16():
    model = decoder(dtype=jnp.bfloat16)
    trainables, _ = jax.eval_shape(model.init, ABSTRACT_KEY, IDS)
    state = jax.eval_shape(OPTIMIZER.init, trainables)
    one_step = functools.partial(step, model, OPTIMIZER, dtype=jnp.bfloat16)
    new, *_ = jax.eval_shape(one_step, trainables, (), state, ABSTRACT_KEY, IDS)
    assert {leaf.dtype for leaf in jax.tree.leaves((trainables, new))} == {jnp.dtype("bfloat16")}


def test_embedding_and_read_out_share_one_table(trainables):
    """Both send it gradients: the ids that come in as embeddings, the others as logits alone."""
    assert jax.tree.map(jnp.shape, trainables["embed"]) == {"embed": (VOCABULARY, WIDTH)}
    assert trainables["norm"] == ()
    model = Decoder(nn.Embed(VOCABULARY, WIDTH), nn.F(jnp.tanh), nn.RMSNorm())
    few = np.array([[0, 1, 0, 1, 2]])
    variables = {"embed": trainables["embed"], "blocks": (), "norm": ()}
    gradient = jit(jax.grad(lambda t: loss_fn(model, t, (), None, few)[0]))(variables)["embed"]["embed"]
    assert (gradient != 0).any(axis=1).all()


def test_a_stack_equals_a_series_of_the_same_blocks(trainables):
    """In structure at full depth; in loss and gradients at depth 2, since a series compiles every block."""
    unstacked = tuple(jax.eval_shape(lambda i=i: pick(trainables["blocks"], i)) for i in range(DEPTH))
    series = jax.eval_shape(decoder(stacked=False).init, ABSTRACT_KEY, IDS)[0]
    assert jax.tree.structure(series["blocks"]) == jax.tree.structure(unstacked)

    both = pick(trainables["blocks"], slice(2))
    stacked, series = (decoder(2, stacked, rate=0.0) for stacked in (True, False))
    as_stack = dict(trainables, blocks=both)
    as_series = dict(trainables, blocks=(pick(both, 0), pick(both, 1)))

    def gradients(model, trainables):
        return jit(jax.value_and_grad(lambda t: loss_fn(model, t, (), None, IDS)[0]))(trainables)

    loss, wanted = gradients(stacked, as_stack)
    other_loss, got = gradients(series, as_series)
    close(other_loss, loss)
    close(got, dict(wanted, blocks=(pick(wanted["blocks"], 0), pick(wanted["blocks"], 1))))


def test_vmap_over_examples_and_over_models(ensemble, logits):
    def one(ids, trainables):
        return MODEL.fwd(ids, trainables, (), inference_mode=True)[0]

    each = jax.vmap(one, in_axes=(0, None))
    got = jit(jax.vmap(each, in_axes=(None, 0)))(IDS, ensemble)
    close(got[0], logits)
    close(got[1], infer(IDS, pick(ensemble, 1), ())[0])


@pytest.mark.parametrize("stacked", [True, False], ids=["stacked", "in a series"])
def test_decoding_step_by_step_equals_the_whole(stacked, trainables, logits):
    model = MODEL
    if not stacked:
        model = decoder(2, stacked=False)
        trainables = dict(trainables, blocks=tuple(pick(trainables["blocks"], i) for i in range(2)))
        logits = jit(functools.partial(model.fwd, inference_mode=True))(IDS, trainables, ())[0]
    cache, decode = model.init_cache(IDS[:, :1], length=LENGTH), jit(model.decode)
    once = None  # a composite decodes its parts by the same function, so one trace runs it several times
    with counted(decode) as runs:
        for place in range(LENGTH):
            got, cache = decode(IDS[:, place : place + 1], trainables, (), cache)
            close(got[:, 0], logits[:, place], rtol=1e-3, atol=1e-4)
            once = once or runs()
    assert runs() == once > 0


@pytest.mark.parametrize("whole", [False, True], ids=["each block", "the whole model"])
def test_recomputation_stores_less_and_changes_nothing(whole, trainables):
    """What is stored for the backward pass is what ``jax.vjp`` returns beside the output."""
    model = decoder(remat=None) if whole else MODEL
    fwd = jax.checkpoint(model.fwd) if whole else model.fwd
    key = jax.random.key(3)

    def stored(fwd):
        back = jax.eval_shape(lambda t: jax.vjp(lambda t: fwd(IDS, t, (), key=key)[0], t)[1], trainables)
        return sum(leaf.size for leaf in jax.tree.leaves(back))

    assert stored(fwd) < 0.5 * stored(decoder(remat=None).fwd)


def test_a_sharded_step_equals_one_on_a_single_device(trainables):
    """Dropout included: random numbers do not depend on where they are drawn."""

    def place(leaf):  # the last axis of what has one that two devices can share
        spec = [None] * (leaf.ndim - 1) + ["batch"] if leaf.ndim > 1 and leaf.shape[-1] % 2 == 0 else []
        return NamedSharding(mesh(), PartitionSpec(*spec))

    key = jax.random.split(jax.random.key(0))[0]
    shardings = jax.tree.map(place, jax.eval_shape(MODEL.init, ABSTRACT_KEY, IDS))
    born, _ = jit(MODEL.init, out_shardings=shardings)(key, IDS)
    close(born, trainables)
    state = OPTIMIZER.init(born)
    kernel = lambda tree: tree["blocks"][1]["layer"][2]["kernel"]  # noqa: E731
    assert kernel(born).sharding.spec[-1] == "batch"
    assert kernel(state.velocity).sharding == kernel(born).sharding
    rows = jax.device_put(IDS, NamedSharding(mesh(), PartitionSpec("batch")))

    alone = compiled_step(OPTIMIZER, copy(trainables), (), OPTIMIZER.init(trainables), jax.random.key(9), IDS)
    sharded = compiled_step(OPTIMIZER, born, (), state, jax.random.key(9), rows)
    assert len(kernel(sharded[0]).sharding.device_set) == 2
    close(sharded, alone)


def test_a_shard_map_over_the_batch_equals_the_whole(trainables, statistics):
    """In loss, gradients and running averages: those of the normalization are taken over all shards."""

    def gradients(ids, trainables, statistics, axis_name=None):
        model = decoder(norm=nn.BatchNorm(axis_name=axis_name), rate=0.0)

        def loss(trainables):
            loss, state = loss_fn(model, trainables, statistics, None, ids)
            return (jax.lax.pmean(loss, axis_name) if axis_name else loss), state

        return jax.value_and_grad(loss, has_aux=True)(trainables)

    wanted = jit(gradients)(IDS, trainables, statistics)
    shards = jax.shard_map(
        functools.partial(gradients, axis_name="batch"),
        mesh=mesh(),
        in_specs=(PartitionSpec("batch"), PartitionSpec(), PartitionSpec()),
        out_specs=PartitionSpec(),
    )
    close(jit(shards)(IDS, trainables, statistics), wanted, rtol=1e-3, atol=1e-4)


def test_saved_and_loaded_with_nothing_but_numpy(trained, tmp_path):
    """Plain containers: JAX's own key paths name every array."""
    (trainables, _, state), _, _ = trained
    tree = trainables, state
    leaves = {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}
    assert "[0]['blocks'][0]['layer'][2]['query_kernel']" in leaves
    np.savez(tmp_path / "step.npz", **leaves)
    with np.load(tmp_path / "step.npz") as file:
        loaded = jax.tree.unflatten(jax.tree.structure(tree), [jnp.asarray(file[name]) for name in leaves])
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), loaded, tree))


def test_saved_and_loaded_by_the_library(trained, tmp_path):
    (trainables, _, state), _, _ = trained
    saving.save_weights(tmp_path / "weights.safetensors", trainables)
    target = jax.eval_shape(MODEL.init, ABSTRACT_KEY, IDS)[0]
    weights = saving.load_weights(tmp_path / "weights.safetensors", target)
    with saving.Checkpoints(tmp_path / "checkpoints") as checkpoints:
        checkpoints.save(40, (trainables, state))
        restored = checkpoints.restore(jax.eval_shape(lambda: (trainables, state)))
    assert jax.tree.structure(restored) == jax.tree.structure((trainables, state))
    close((weights, restored), (trainables, (trainables, state)), rtol=0, atol=0)


def test_a_model_pickles():
    assert pickle.loads(pickle.dumps(MODEL)) == MODEL


def test_the_same_key_twice_is_caught(trainables):
    @jax.jit
    def twice(key):
        return [MODEL.fwd(IDS, trainables, (), key=key)[0] for _ in range(2)]

    with pytest.raises(jax.errors.KeyReuseError):
        twice(jax.random.key(5))


def test_no_tracer_leaks(trainables):
    with jax.checking_leaks():
        jax.eval_shape(lambda t: MODEL.fwd(IDS, t, (), key=jax.random.key(0)), trainables)


def test_errors_name_the_way_to_the_layer(trainables):
    trainables = copy(trainables)
    trainables["blocks"][1]["layer"][2]["kernel"] = jnp.ones((DEPTH, 3, 32))
    with pytest.raises(
        nn.LayerError,
        match=r"^model\.blocks\[…\]\[1\]\.layer\[2\]\.Linear: kernel .*\(8, 16\) for x, .*, got float32\[3,32\]",
    ):
        MODEL.fwd(IDS, trainables, (), inference_mode=True)


def test_a_stack_outside_of_jit_is_compiled_once():
    traces = []
    model = nn.Stack(
        nn.Series(nn.F(lambda x: traces.append(x) or 2 * x, decodes=True), nn.Dropout(0.5)), depth=3
    )
    for seed in range(3):
        model.fwd(jnp.ones(4), (), (), key=jax.random.key(seed))
        assert len(traces) == 1
    for _ in range(3):
        y, _ = model.decode(jnp.ones(4), (), (), ())
        assert len(traces) == 2
    np.testing.assert_array_equal(y, 8)


def test_a_child_that_is_never_called_is_named():
    class Forgetful(nn.Composite):
        used: nn.Layer
        unused: nn.Layer

        def forward(self, call, x):
            return call.used(x)

    with pytest.raises(nn.LayerError, match=r"never calls unused"):
        Forgetful(nn.Linear(2), nn.Linear(3)).init(jax.random.key(0), jnp.ones(3))


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (lambda call, x: call.series[0](x), r"^Wrong: call\.series is one layer, Series: apply it whole"),
        (lambda call, x: [layer(x) for layer in call.linear], r"^Wrong: call\.linear is one layer, Halves: "),
        (lambda call, x: len(call.linear), r"^Wrong: call\.linear is one layer, Halves: .*a tuple of layers"),
        (
            lambda call, x: call.pair(x),
            r"^Wrong: call\.pair is no layer but holds some, \[0\], \[1\]: call one",
        ),
        (lambda call, x: call(x), r"^Wrong: call is no layer but holds some, linear, series, pair: "),
        (
            lambda call, x: call.linear(x) + call.linear.halves(x),
            r"^model\.linear\.Halves: halves must return \(y, non_trainables\), got float32\[2,2\]",
        ),
    ],
)
def test_calls_that_lead_nowhere(forward, message):
    class Halves(nn.Linear):
        def halves(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
            return jnp.zeros((2, 2), x.dtype)

    class Wrong(nn.Composite):
        linear: nn.Layer
        series: nn.Layer
        pair: tuple

        def forward(self, call, x):
            return forward(call, x)

    model = Wrong(Halves(2), nn.Series(nn.Linear(2)), (nn.Linear(2), nn.Linear(2)))
    with pytest.raises(nn.LayerError, match=message):
        model.init(jax.random.key(0), jnp.ones((2, 3)))


def test_a_child_that_is_missed_by_name():
    class Wrong(nn.Composite):
        linear: nn.Layer

        def forward(self, call, x):
            return call.liner(x)

    with pytest.raises(AttributeError, match=r"^Wrong: call has no layer 'liner'; it has linear\."):
        Wrong(nn.Linear(2)).init(jax.random.key(0), jnp.ones(3))


def test_some_of_a_tuple_of_layers():
    class Some(nn.Composite):
        layers: tuple

        def forward(self, call, x):
            for layer in (*call.layers[1:], call.layers[-3]):
                x = layer(x)
            return x

    model, x = Some((nn.Linear(2), nn.Linear(3), nn.Linear(4))), jnp.ones((2, 5))
    trainables, _ = model.init(jax.random.key(0), x)
    assert jax.tree.map(jnp.shape, trainables) == {
        "layers": ({"kernel": (4, 2)}, {"kernel": (5, 3)}, {"kernel": (3, 4)})
    }


RESERVED = {
    "decode": lambda: type(
        "Taken", (nn.Composite,), {"__annotations__": {"encode": nn.Layer, "decode": nn.Layer}}
    ),
    "inputs": lambda: type("Taken", (nn.Layer,), {"__annotations__": {"inputs": int}}),
    "init": lambda: type("Taken", (nn.Layer,), {"__annotations__": {"init": float}, "init": 0.5}),
    "check_array": lambda: type("Taken", (nn.Layer,), {"__annotations__": {"check_array": bool}}),
    "forward": lambda: type("Taken", (nn.Composite,), {"__annotations__": {"forward": nn.Layer}}),
    "takes": lambda: type("Taken", (nn.Composite,), {"__annotations__": {"takes": nn.Layer}}),
    "inference_mode": lambda: type(
        "Taken", (nn.Composite,), {"__annotations__": {"inference_mode": nn.Layer}}
    ),
    "_run": lambda: type("Taken", (nn.Composite,), {"__annotations__": {"_run": nn.Layer}}),
}


@pytest.mark.parametrize("name", RESERVED)
def test_fields_that_would_hide_a_method(name):
    with pytest.raises(
        TypeError, match=f"^Taken: a field must not be called {name}, which layers have already: rename it"
    ):
        RESERVED[name]()


def test_fields_that_hide_nothing():
    class Own(nn.Linear):
        kernel_initializer: object = jax.nn.initializers.zeros  # a field of Linear's, with another default
        needs_key: bool = False

    assert not Own(3).init(jax.random.key(0), jnp.ones((1, 2)))[0]["kernel"].any()


def test_a_tuple_of_layers_may_be_empty():
    class Chain(nn.Composite):
        layers: tuple

        def forward(self, call, x):
            for layer in call.layers:
                x = layer(x)
            assert len(call.layers) == len(self.layers)
            return x

    x = jnp.ones((2, 3))
    variables = Chain(()).init(jax.random.key(0), x)
    assert variables == ((), ()) and Chain(()).fwd(x, *variables)[0] is x


def test_a_field_for_one_layer():
    class Own(nn.Composite):
        child: nn.Layer

        def forward(self, call, x):
            return call.child(x)

    with pytest.raises(
        ValueError, match=r"^Own: child must be a layer, got None: .* declare it nn\.Layer \| None"
    ):
        Own(None)


def test_recomputation_draws_the_same_numbers():
    model = nn.Series(nn.Linear(8), nn.Dropout(0.5), nn.Linear(8), nn.Dropout(0.5))
    x, (init_key, key) = jnp.ones((4, 8)), jax.random.split(jax.random.key(0))
    trainables, rest = model.init(init_key, x)

    def gradient(model):
        return jax.grad(lambda t: (model.fwd(x, t, rest, key=jax.random.clone(key))[0] ** 2).sum())(
            trainables
        )

    jax.tree.map(np.testing.assert_allclose, gradient(model), gradient(nn.Remat(model)))
    with jax.debug_key_reuse(True):
        fwd = nn.Remat(model).fwd
        fwd(x, trainables, rest, key=key)
        with pytest.raises(jax.errors.KeyReuseError):
            fwd(x, trainables, rest, key=key)


@pytest.mark.parametrize(
    "model",
    [
        nn.Stack(nn.Series(nn.Linear(4), nn.F(jnp.tanh)), 3),
        nn.Stack(nn.Series(nn.Linear(4), nn.Dropout(0.5)), 3),
        nn.Recurrent(nn.LSTMCell(4)),
        nn.Recurrent(nn.GRUCell(4), output="last"),
        nn.MultiHeadAttention(2, chunk_size=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_an_ensemble_with_a_member_on_each_device(model):
    """Under shard_map weights and keys may vary over the mesh where the data do not."""
    mesh = jax.make_mesh((2,), ("member",), axis_types=(AxisType.Auto,))
    x = jax.random.normal(jax.random.key(0), (3, 5, 4))
    trainables, _ = jax.vmap(lambda key: model.init(key, x))(jax.random.split(jax.random.key(1)))
    keys = jax.random.split(jax.random.key(2))

    def member(trainables, key):
        return model.fwd(x, trainables, (), key=key)[0]

    wanted = jax.vmap(member)(trainables, jax.random.clone(keys))
    spread = jax.shard_map(
        jax.vmap(member), mesh=mesh, in_specs=PartitionSpec("member"), out_specs=PartitionSpec("member")
    )
    np.testing.assert_allclose(jax.jit(spread)(trainables, keys), wanted, rtol=1e-5, atol=1e-6)


MIXES_STEPS = {
    "Conv": nn.Conv(4, (3,), padding=((2, 0),)),
    "ConvTranspose": nn.ConvTranspose(4, (3,), padding="SAME"),
    "AvgPool": nn.AvgPool((3,), strides=1, padding="SAME"),
    "MaxPool": nn.MaxPool((2,), strides=1, padding="SAME"),
    "LayerNorm": nn.LayerNorm(axes=2),
    "RMSNorm": nn.RMSNorm(axes=2),
    "GroupNorm": nn.GroupNorm(2, axes=2),
}


@pytest.mark.parametrize("name", MIXES_STEPS)
def test_what_mixes_steps_does_not_decode(name):
    model = nn.Series(MIXES_STEPS[name], nn.F(jnp.tanh))
    with pytest.raises(nn.LayerError, match=rf"^model\[0\]\.{name}: does not decode: it may mix steps"):
        model.init_cache(jnp.ones((2, 1, 4)), 6)


@pytest.mark.parametrize(
    "layer",
    [nn.Conv(4, (1,)), nn.LayerNorm(), nn.GroupNorm(2, axes=1), nn.MaxPool((2,), axes=-1), nn.BatchNorm()],
    ids=lambda layer: type(layer).__name__,
)
def test_what_mixes_no_steps_decodes(layer):
    x, model = jnp.ones((2, 1, 4)), nn.Series(layer)
    assert model.init_cache(x, 6) == ()
    variables = model.init(jax.random.key(0), x)
    np.testing.assert_array_equal(
        model.decode(x, *variables, ())[0], model.fwd(x, *variables, inference_mode=True)[0]
    )


def test_keys_vary_over_a_mesh_where_nothing_else_does():
    mesh = jax.make_mesh((2,), ("member",), axis_types=(AxisType.Auto,))
    model, x = nn.Stack(nn.Dropout(0.5), 2), jnp.ones((3, 4))
    trainables, _ = model.init(jax.random.key(0), x)
    keys = jax.random.split(jax.random.key(1))

    def member(keys):
        return model.fwd(x, trainables, (), key=keys[0])[0][None]

    spread = jax.shard_map(
        member, mesh=mesh, in_specs=PartitionSpec("member"), out_specs=PartitionSpec("member")
    )
    for y, key in zip(jax.jit(spread)(keys), jax.random.clone(keys)):
        np.testing.assert_array_equal(y, model.fwd(x, trainables, (), key=key)[0])
