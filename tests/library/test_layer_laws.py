"""What every layer must obey: rows times laws."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from mlax_tutorial import nn
from mlax_tutorial.inspection.dtypes import DTYPES, floating_leaves, strays
from mlax_tutorial.nn.numeric import accumulator
from tests.library.rows import LAYERS, classes, public_classes

QUICK_TO_COMPILE = True
BATCH = (3, 2)
rows = pytest.mark.parametrize("row", LAYERS, ids=lambda row: row.id)
modes = pytest.mark.parametrize("inference_mode", [False, True], ids=["training", "inference"])


def example(row, dtype="float32", batch=BATCH):
    """An input with values away from the kinks of relu and the like."""
    if row.ids is not None:
        return jnp.asarray(np.random.default_rng(0).integers(row.ids, size=(*batch, *row.shape)), "int32")
    values = np.random.default_rng(0).uniform(0.2, 1.0, (*batch, *row.shape))
    signs = np.random.default_rng(1).choice([-1, 1], values.shape)
    return jnp.asarray(values * signs, dtype)


def keys(row, inference_mode=False, shape=()):
    if not row.draws or inference_mode:
        return None
    key = jax.random.key(7)
    return jax.random.split(key, shape) if shape else key


def clone(key):
    """The same key for a second, deliberate use: these laws compare two runs of the same randomness."""
    return None if key is None else jax.random.clone(key)


def init(row, x):
    return row.layer.init(jax.random.key(0), x)


def assert_equal(first, second, rtol=0.0, atol=0.0):
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second)):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=rtol, atol=atol)


def test_every_public_layer_has_a_row():
    missing = public_classes(nn, nn.Layer) - {cls for row in LAYERS for cls in classes(row.layer)}
    assert not missing, f"add a row to tests/library/rows/ for {missing}"


@rows
def test_init_is_pure_and_jits(row):
    x = example(row)
    first = init(row, x)
    assert_equal(first, init(row, x))
    assert_equal(first, init(row, jax.ShapeDtypeStruct(x.shape, x.dtype)))
    assert_equal(first, init(row, np.asarray(x)))
    assert_equal(first, jax.jit(row.layer.init)(jax.random.key(0), x), rtol=1e-6)


@rows
def test_init_of_another_key_differs_unless_constant(row):
    x = example(row)
    leaves = jax.tree.leaves(init(row, x))  # an LSTM's bias is 1 at the forget gate, 0 elsewhere
    constants = [leaf for leaf in leaves if np.ptp(np.asarray(leaf)) == 0 or np.isin(leaf, (0, 1)).all()]
    other = row.layer.init(jax.random.key(1), x)
    for a, b in zip(jax.tree.leaves(init(row, x)), jax.tree.leaves(other)):
        assert not np.array_equal(a, b) or any(a is c or np.array_equal(a, c) for c in constants)


@rows
def test_variables_are_plain_containers_of_arrays(row):
    def plain(tree):
        if isinstance(tree, dict):
            return all(isinstance(name, str) and plain(child) for name, child in tree.items())
        return all(map(plain, tree)) if type(tree) is tuple else isinstance(tree, jax.Array)

    trainables, non_trainables = init(row, example(row))
    for tree in (trainables, non_trainables):
        assert plain(tree)
        assert jax.tree.leaves(tree) or tree == ()


@rows
@modes
def test_output_is_what_eval_shape_says(row, inference_mode):
    x = example(row)
    trainables, non_trainables = init(row, x)
    key = keys(row, inference_mode)

    def fwd(x, trainables, non_trainables, key):
        return row.layer.fwd(x, trainables, non_trainables, key=key, inference_mode=inference_mode)

    got = fwd(x, trainables, non_trainables, key)
    wanted = jax.eval_shape(fwd, x, trainables, non_trainables, clone(key))
    assert jax.tree.map(lambda a: (a.shape, a.dtype), got) == jax.tree.map(
        lambda a: (a.shape, a.dtype), wanted
    )
    assert jax.tree.structure(got[1]) == jax.tree.structure(non_trainables)


@rows
@modes
def test_eager_equals_jit(row, inference_mode, optimized):
    x = example(row)
    variables = init(row, x)
    key = keys(row, inference_mode)
    fwd = jax.jit(row.layer.fwd, static_argnames="inference_mode")
    jitted = fwd(x, *variables, key=clone(key), inference_mode=inference_mode)
    eager = row.layer.fwd(x, *variables, key=key, inference_mode=inference_mode)
    assert_equal(eager, jitted, rtol=1e-5, atol=1e-6)


@rows
@modes
def test_a_batch_equals_a_loop_equals_vmap(row, inference_mode):
    x = example(row, batch=(4,))
    trainables, non_trainables = init(row, x)
    each = keys(row, inference_mode, (4,))

    def one(x, key):
        return row.layer.fwd(x, trainables, non_trainables, key=key, inference_mode=inference_mode)[0]

    mapped = jax.vmap(one, in_axes=(0, None if each is None else 0))(x, clone(each))
    loop = jnp.stack([one(item, None if each is None else clone(each)[i]) for i, item in enumerate(x)])
    assert_equal(mapped, loop, rtol=1e-5, atol=1e-6)
    # With random numbers, a batch has one key and so another mask; and averages are over all of it.
    if each is None and (inference_mode or not row.averages):
        assert_equal(one(x, None), loop, rtol=1e-5, atol=1e-6)


@rows
def test_under_scan_and_checkpoint_it_means_the_same(row):
    x = example(row, batch=(4,))
    trainables, non_trainables = init(row, x)
    each = keys(row, shape=(4,))

    def one(x, trainables, key):
        return row.layer.fwd(x, trainables, non_trainables, key=key)[0]

    def looped(x, trainables):
        return jnp.stack([one(x[i], trainables, None if each is None else clone(each)[i]) for i in range(4)])

    def scanned(x, trainables):
        rematted = jax.checkpoint(one)
        return jax.lax.scan(
            lambda _, item: (None, rematted(item[0], trainables, item[1])), None, (x, clone(each))
        )[1]

    def gradients(function):
        argnums = (0, 1) if jnp.issubdtype(x.dtype, jnp.floating) else 1  # ids have no gradient
        return jax.grad(lambda x, trainables: jnp.sum(jnp.sin(function(x, trainables))), argnums)

    assert_equal(looped(x, trainables), scanned(x, trainables), rtol=1e-5, atol=1e-6)
    assert_equal(
        gradients(looped)(x, trainables), jax.jit(gradients(scanned))(x, trainables), rtol=1e-4, atol=1e-5
    )


@rows
def test_any_leading_axes(row):
    x = example(row, batch=(2, 3))
    variables = init(row, x)
    whole, _ = row.layer.fwd(x, *variables, inference_mode=True)
    for index in np.ndindex(2, 3):
        assert_equal(
            whole[index], row.layer.fwd(x[index], *variables, inference_mode=True)[0], rtol=1e-5, atol=1e-6
        )
    empty, _ = row.layer.fwd(x[:0], *variables, inference_mode=True)
    assert empty.shape == (0, *whole.shape[1:])


@rows
def test_two_calls_one_trace(row):
    x, traces = example(row), []

    @jax.jit
    def fwd(layer, x, trainables, non_trainables, key):
        traces.append(layer)
        return layer.fwd(x, trainables, non_trainables, key=key)

    variables = init(row, x)
    for seed in (1, 2):
        fwd(row.layer, x + seed, *variables, jax.random.key(seed) if row.draws else None)
    fwd(pickle.loads(pickle.dumps(row.layer)) if _pickles(row) else row.layer, x, *variables, keys(row))
    assert len(traces) == 1
    if row.same is not None:
        fwd(row.same, x, *variables, keys(row))
        assert len(traces) == 1


@rows
def test_inference_is_deterministic_and_needs_no_key(row):
    x = example(row)
    variables = init(row, x)
    assert_equal(
        row.layer.fwd(x, *variables, inference_mode=True),
        row.layer.fwd(x, *variables, key=jax.random.key(3), inference_mode=True),
    )


@rows
def test_training_draws_by_the_key_alone(row):
    if not row.draws:
        pytest.skip("draws nothing")
    x = example(row, batch=(40,))
    variables = init(row, x)
    key = jax.random.key(5)
    first, _ = row.layer.fwd(x, *variables, key=clone(key))
    again, _ = row.layer.fwd(x, *variables, key=clone(key))
    other, _ = row.layer.fwd(x, *variables, key=jax.random.key(6))
    assert_equal(first, again)
    assert not np.array_equal(first, other) or row.layer == nn.Dropout(1.0)


@rows
def test_a_reused_key_is_caught(row):
    if not row.draws or row.layer == nn.Dropout(1.0):
        pytest.skip("consumes no key")
    x = example(row)
    variables = init(row, x)
    key = jax.random.key(5)
    row.layer.fwd(x, *variables, key=key)
    with pytest.raises(jax.errors.KeyReuseError):
        row.layer.fwd(x, *variables, key=key)


@rows
def test_a_reused_key_is_caught_under_jit(row):
    if not row.draws or row.layer == nn.Dropout(1.0):
        pytest.skip("consumes no key")
    x = example(row)
    variables = init(row, x)

    @jax.jit
    def twice(key):
        return [row.layer.fwd(x, *variables, key=key)[0] for _ in range(2)]

    with pytest.raises(jax.errors.KeyReuseError):
        twice(jax.random.key(5))


@rows
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_dtype_guarantee(row, dtype, x64):
    x, layer = example(row, dtype), row.declared(dtype)
    trainables, non_trainables = layer.init(jax.random.key(0), x)
    assert all(leaf.dtype == dtype for leaf in jax.tree.leaves(trainables))
    kept = accumulator(dtype) if row.averages else dtype
    assert all(leaf.dtype == kept for leaf in jax.tree.leaves(non_trainables))

    def pull(x, trainables, key):
        def fwd(x, trainables):
            return layer.fwd(x, trainables, non_trainables, key=key)[0]

        y, back = jax.vjp(fwd, x, trainables)
        return y, floating_leaves(back(y))

    traced = jax.jit(pull).trace(x, trainables, keys(row))
    assert not strays(traced.jaxpr, dtype, row.accumulates, accumulator(dtype))
    for leaf in jax.tree.leaves(traced.lower().compile()(x, trainables, keys(row))):
        assert leaf.dtype == dtype and np.isfinite(np.asarray(leaf, np.float64)).all()


@rows
@pytest.mark.parametrize("param_dtype", ["float32", "bfloat16"])
def test_weights_of_another_dtype_do_not_change_the_output_dtype(row, param_dtype):
    x = example(row, "float16")
    trainables, non_trainables = init(row, x)
    trainables = jax.tree.map(lambda leaf: leaf.astype(param_dtype), trainables)

    def loss(trainables):
        y, _ = row.layer.fwd(x, trainables, non_trainables, key=keys(row))
        return jnp.sum(y), y

    gradients, y = jax.eval_shape(jax.grad(loss, has_aux=True), trainables)
    wanted = row.layer.policy.output_dtype if row.of_dtype else x.dtype
    assert y.dtype == (wanted if row.ids is None else param_dtype)
    assert jax.tree.map(lambda g: g.dtype, gradients) == jax.tree.map(lambda t: t.dtype, trainables)


@rows
def test_gradients_against_finite_differences(row, x64):
    x, layer = example(row, "float64"), row.declared("float64")
    trainables, non_trainables = layer.init(jax.random.key(0), x)
    key = keys(row)

    @jax.jit  # each derivative is one program, not one for each operation
    def fwd(x, trainables):
        return layer.fwd(x, trainables, non_trainables, key=clone(key))[0]

    if row.ids is None:
        check_grads(fwd, (x, trainables), order=2, modes=["fwd", "rev"], atol=1e-5, rtol=1e-5)
    else:
        check_grads(lambda t: fwd(x, t), (trainables,), order=2, modes=["fwd", "rev"], atol=1e-5, rtol=1e-5)


@rows
def test_values_not_identities_make_layers_equal(row):
    layer = row.layer
    assert layer == layer and hash(layer) == hash(layer)
    if row.same is not None:
        assert layer == row.same and hash(layer) == hash(row.same) and repr(layer) == repr(row.same)
    for other in row.unlike:
        assert layer != other
        assert jax.tree.structure(layer) != jax.tree.structure(other)
    assert layer != "layer"


@rows
def test_layers_are_static_and_frozen(row):
    assert jax.tree.leaves(row.layer) == []
    with pytest.raises(AttributeError):
        row.layer.rate = 3


def test_layers_of_different_class_or_type_never_compare_equal():
    class Same(nn.Layer):
        value: object = 1

        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
            return x, non_trainables

    class Other(Same):
        pass

    assert Same(1) == Same(1) != Other(1)
    for a, b in [(1, 1.0), (1, True), (0.0, -0.0), ("1", 1), ((1,), (1.0,)), (np.float32(1), 1.0)]:
        assert Same(a) != Same(b), (a, b)
        assert jax.tree.structure(Same(a)) != jax.tree.structure(Same(b))
    assert Same(float("nan")) == Same(float("nan"))
    assert jax.tree.structure(Same(1)) != jax.tree.structure(Other(1))


@rows
def test_sharded_init_and_batch(row):
    mesh = jax.make_mesh((jax.device_count(),), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
    replicated = jax.NamedSharding(mesh, jax.P())
    x = example(row)
    variables = jax.jit(row.layer.init, out_shardings=replicated)(jax.random.key(0), x)
    assert all(leaf.sharding == replicated for leaf in jax.tree.leaves(variables))
    assert_equal(variables, init(row, x), rtol=1e-6)


@rows
def test_shard_map_means_the_same(row):
    """Without random numbers a shard is a smaller batch; with them each shard needs a key of its own."""
    count = jax.device_count()
    mesh = jax.make_mesh((count,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
    x = example(row, batch=(2 * count,))
    trainables, non_trainables = init(row, x)
    each = jax.random.split(jax.random.key(7), count) if row.draws else None

    def shard(x, trainables, key):
        return row.layer.fwd(x, trainables, non_trainables, key=None if key is None else key[0])[0]

    specs = (jax.P("batch"), jax.P(), None if each is None else jax.P("batch"))
    sharded = jax.jit(jax.shard_map(shard, mesh=mesh, in_specs=specs, out_specs=jax.P("batch")))
    parts = [
        shard(x[2 * i : 2 * i + 2], trainables, None if each is None else clone(each)[i : i + 1])
        for i in range(count)
    ]
    assert_equal(sharded(x, trainables, clone(each)), jnp.concatenate(parts), rtol=1e-5, atol=1e-6)


def test_one_key_for_all_examples_gives_them_all_the_same_mask():
    """The two exceptions of the contract, shown: under vmap and shard_map a single key repeats its mask."""
    x, key = jnp.ones((4, 64)), jax.random.key(0)
    repeated = jax.vmap(lambda x: nn.Dropout(0.5).fwd(x, (), (), key=jax.random.clone(key))[0])(x)
    assert (repeated == repeated[:1]).all()
    each = jax.random.split(key, 4)
    own = jax.vmap(lambda x, key: nn.Dropout(0.5).fwd(x, (), (), key=key)[0])(x, each)
    assert not (own == own[:1]).all()


def _pickles(row):
    try:
        pickle.dumps(row.layer)
    except (AttributeError, pickle.PicklingError, TypeError):
        return False
    return True
