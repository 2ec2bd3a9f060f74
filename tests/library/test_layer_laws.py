"""What every layer must obey: rows times laws."""

import functools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn
from mlax_tutorial.inspection.dtypes import DTYPES, floating_leaves, strays
from mlax_tutorial.nn.numeric import accumulator
from tests.library.derivatives import check_derivatives
from tests.library.rows import LAYERS, classes, public_classes

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


def sin_sum(y):
    """A loss whose gradient tells all outputs apart."""
    return jnp.sum(jnp.sin(y))


def assert_equal(first, second, rtol=0.0, atol=0.0):
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second)):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=rtol, atol=atol)


# Nearly all of the time goes into compiling, so what several laws look at is computed once for a row.


@functools.cache
def variables(row):
    return init(row, example(row))


@functools.cache
def eager(row, inference_mode):
    key = keys(row, inference_mode)
    return row.layer.fwd(example(row), *variables(row), key=key, inference_mode=inference_mode)


def differentiable(row):
    """The arguments ``(x, trainables)`` that have a gradient: ids have none."""
    return (0, 1) if row.ids is None else (1,)


@functools.cache
def one_by_one(row):
    """Each example of a batch alone: outputs by mode, and the gradients of training.

    Returns:
      ``outputs[inference_mode]``, stacked as the batch; gradients by ``x``, stacked as well, and by ``trainables``, summed.
    """
    x, (trainables, non_trainables), each = example(row), variables(row), keys(row, shape=BATCH)

    @jax.jit
    def run(x, trainables, key):
        def loss(x, trainables):
            y, _ = row.layer.fwd(x, trainables, non_trainables, key=key)
            return sin_sum(y), y

        (_, y), gradients = jax.value_and_grad(loss, differentiable(row), has_aux=True)(x, trainables)
        return {
            False: y,
            True: row.layer.fwd(x, trainables, non_trainables, inference_mode=True)[0],
        }, gradients

    found = [run(x[i], trainables, None if each is None else clone(each)[i]) for i in np.ndindex(BATCH)]
    outputs, gradients = jax.tree.map(lambda *leaves: np.stack(leaves), *found)
    *by_x, by_trainables = gradients
    whole = jax.tree.map(lambda leaf: leaf.reshape(*BATCH, *leaf.shape[1:]), (outputs, by_x))
    return *whole, jax.tree.map(lambda leaf: leaf.sum(0), by_trainables)


@functools.cache
def at_once(row):
    """The same batch under ``vmap``, as it is, and an empty one, by mode."""
    each, (trainables, non_trainables) = keys(row, shape=BATCH), variables(row)

    def fwd(x, key, inference_mode):
        return row.layer.fwd(x, trainables, non_trainables, key=key, inference_mode=inference_mode)[0]

    def mapped(x, keys, inference_mode):
        one = functools.partial(fwd, inference_mode=inference_mode)
        for _ in BATCH:
            one = jax.vmap(one, in_axes=(0, None if keys is None else 0))
        return one(x, keys)

    @jax.jit
    def run(x, each):
        return {
            "mapped": {False: mapped(x, each, False), True: mapped(x, None, True)},
            # With random numbers, a batch has one key and so another mask.
            "batch": {False: fwd(x, None, False) if each is None else None, True: fwd(x, None, True)},
            "empty": fwd(x[:0], None, True),
        }

    return run(example(row), each)


def test_every_public_layer_has_a_row():
    missing = public_classes(nn, nn.Layer) - {cls for row in LAYERS for cls in classes(row.layer)}
    assert not missing, f"add a row to tests/library/rows/ for {missing}"


@rows
def test_init_is_pure_and_takes_any_leading_axes(row):
    x, first = example(row), variables(row)
    assert_equal(first, init(row, x))
    assert_equal(first, init(row, jax.ShapeDtypeStruct(x.shape, x.dtype)))
    assert_equal(first, init(row, np.asarray(x)))
    for batch in ((4,), (2, 3)):
        other = jax.eval_shape(row.layer.init, jax.random.key(0), example(row, batch=batch))
        assert jax.tree.map(jnp.shape, other) == jax.tree.map(jnp.shape, first)


@rows
def test_init_of_another_key_differs_unless_constant(row):
    leaves = jax.tree.leaves(variables(row))  # an LSTM's bias is 1 at the forget gate, 0 elsewhere
    constants = [leaf for leaf in leaves if np.ptp(np.asarray(leaf)) == 0 or np.isin(leaf, (0, 1)).all()]
    other = row.layer.init(jax.random.key(1), example(row))
    for a, b in zip(leaves, jax.tree.leaves(other)):
        assert not np.array_equal(a, b) or any(a is c or np.array_equal(a, c) for c in constants)


@rows
def test_variables_are_plain_containers_of_arrays(row):
    def plain(tree):
        if isinstance(tree, dict):
            return all(isinstance(name, str) and plain(child) for name, child in tree.items())
        return all(map(plain, tree)) if type(tree) is tuple else isinstance(tree, jax.Array)

    for tree in variables(row):
        assert plain(tree)
        assert jax.tree.leaves(tree) or tree == ()


@rows
@modes
def test_output_is_what_eval_shape_says(row, inference_mode):
    fwd = functools.partial(row.layer.fwd, inference_mode=inference_mode)
    got = eager(row, inference_mode)
    wanted = jax.eval_shape(fwd, example(row), *variables(row), key=keys(row, inference_mode))
    assert jax.tree.map(lambda a: (a.shape, a.dtype), got) == jax.tree.map(
        lambda a: (a.shape, a.dtype), wanted
    )
    assert jax.tree.structure(got[1]) == jax.tree.structure(variables(row)[1])


@rows
@modes
def test_eager_equals_jit(row, inference_mode, optimized):
    fwd = jax.jit(row.layer.fwd, static_argnames="inference_mode")
    key = keys(row, inference_mode)
    jitted = fwd(example(row), *variables(row), key=key, inference_mode=inference_mode)
    assert_equal(eager(row, inference_mode), jitted, rtol=1e-5, atol=1e-6)


@rows
@modes
def test_a_batch_equals_a_loop_equals_vmap(row, inference_mode):
    """For two leading axes; what runs alone has none."""
    loop, found = one_by_one(row)[0][inference_mode], at_once(row)
    assert_equal(found["mapped"][inference_mode], loop, rtol=1e-5, atol=1e-6)
    # With random numbers, a batch has one key and so another mask; and averages are over all of it.
    if inference_mode or not (row.draws or row.averages):
        assert_equal(found["batch"][inference_mode], loop, rtol=1e-5, atol=1e-6)
    assert found["empty"].shape == (0, *loop.shape[1:])


@rows
def test_under_scan_and_checkpoint_it_means_the_same(row, optimized):
    """Values and gradients, compiled as for a user."""
    x, (trainables, non_trainables) = example(row), variables(row)
    outputs, by_x, by_trainables = one_by_one(row)

    @jax.checkpoint
    def one(x, trainables, key):
        return row.layer.fwd(x, trainables, non_trainables, key=key)[0]

    def loss(x, trainables, each):
        _, y = jax.lax.scan(lambda _, item: (None, one(item[0], trainables, item[1])), None, (x, each))
        return sin_sum(y), y

    count = int(np.prod(BATCH))
    run = jax.jit(jax.value_and_grad(loss, differentiable(row), has_aux=True))
    (_, y), gradients = run(x.reshape(count, *row.shape), trainables, keys(row, shape=(count,)))
    *scanned_by_x, scanned_by_trainables = gradients
    assert_equal(y.reshape(outputs[False].shape), outputs[False], rtol=1e-5, atol=1e-6)
    assert_equal([g.reshape(x.shape) for g in scanned_by_x], by_x, rtol=1e-4, atol=1e-5)
    # Gradients of weights in half precision are rounded each time that one is added.
    held = max([jnp.finfo(leaf.dtype).eps for leaf in jax.tree.leaves(by_trainables)], default=0)
    rounding = 4 * float(held) if held > 1e-6 else 1e-4
    assert_equal(scanned_by_trainables, by_trainables, rtol=rounding, atol=rounding / 10)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))


@rows
def test_two_calls_one_trace(row):
    x, traces = example(row), []

    @jax.jit
    def fwd(layer, x, trainables, non_trainables, key):
        traces.append(layer)
        return layer.fwd(x, trainables, non_trainables, key=key)

    def trace(layer, key):  # what a call does before it compiles
        fwd.trace(layer, x, *variables(row), key)

    for seed in (1, 2):
        trace(row.layer, jax.random.key(seed) if row.draws else None)
    trace(pickle.loads(pickle.dumps(row.layer)) if _pickles(row) else row.layer, keys(row))
    assert len(traces) == 1
    if row.same is not None:
        trace(row.same, keys(row))
        assert len(traces) == 1


@rows
def test_inference_is_deterministic_and_needs_no_key(row):
    again = row.layer.fwd(example(row), *variables(row), key=jax.random.key(3), inference_mode=True)
    assert_equal(eager(row, True), again)


@rows
def test_training_draws_by_the_key_alone(row):
    if not row.draws:
        pytest.skip("draws nothing")
    x = example(row, batch=(40,))
    key = jax.random.key(5)
    first, _ = row.layer.fwd(x, *variables(row), key=clone(key))
    again, _ = row.layer.fwd(x, *variables(row), key=clone(key))
    other, _ = row.layer.fwd(x, *variables(row), key=jax.random.key(6))
    assert_equal(first, again)
    assert not np.array_equal(first, other) or row.layer == nn.Dropout(1.0)


@rows
def test_a_reused_key_is_caught(row):
    if not row.draws or row.layer == nn.Dropout(1.0):
        pytest.skip("consumes no key")
    x = example(row)
    key = jax.random.key(5)
    row.layer.fwd(x, *variables(row), key=key)
    with pytest.raises(jax.errors.KeyReuseError):
        row.layer.fwd(x, *variables(row), key=key)


@rows
def test_a_reused_key_is_caught_under_jit(row):
    if not row.draws or row.layer == nn.Dropout(1.0):
        pytest.skip("consumes no key")
    x = example(row)

    @jax.jit
    def twice(key):
        return [row.layer.fwd(x, *variables(row), key=key)[0] for _ in range(2)]

    with pytest.raises(jax.errors.KeyReuseError):
        twice(jax.random.key(5))


def pull(row, dtype):
    """The output of the layer, set to a dtype, and its gradients."""
    layer = row.declared(dtype)

    def run(x, trainables, non_trainables, key):
        def fwd(x, trainables):
            return layer.fwd(x, trainables, non_trainables, key=key)[0]

        y, back = jax.vjp(fwd, x, trainables)
        return y, floating_leaves(back(y))

    return run


@functools.cache
def halves(row):
    """Outputs and gradients in half precision, by dtype: one program, since compiling takes the time."""

    @jax.jit
    def run(xs, key):
        found = {}
        for dtype, x in xs.items():
            variables = row.declared(dtype).init(jax.random.key(0), x)
            found[dtype] = pull(row, dtype)(x, *variables, clone(key))
        return found

    return run({dtype: example(row, dtype) for dtype in DTYPES if accumulator(dtype) != dtype}, keys(row))


@rows
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_dtype_guarantee(row, dtype, x64):
    """Judged on the program; numbers are computed in half precision alone, where they may overflow.

    Those of float32 and float64 are finite by the laws of the scan and of the finite differences.
    """
    x, layer = example(row, dtype), row.declared(dtype)
    trainables, non_trainables = jax.eval_shape(layer.init, jax.random.key(0), x)
    assert all(leaf.dtype == dtype for leaf in jax.tree.leaves(trainables))
    kept = accumulator(dtype) if row.averages else dtype
    assert all(leaf.dtype == kept for leaf in jax.tree.leaves(non_trainables))
    traced = jax.jit(pull(row, dtype)).trace(x, trainables, non_trainables, keys(row))
    assert not strays(traced.jaxpr, dtype, row.accumulates, accumulator(dtype))
    assert all(leaf.dtype == dtype for leaf in jax.tree.leaves(traced.out_info))
    for leaf in jax.tree.leaves(halves(row).get(dtype, ())):
        assert leaf.dtype == dtype and np.isfinite(np.asarray(leaf, np.float64)).all()


@rows
@pytest.mark.parametrize("param_dtype", ["float32", "bfloat16"])
def test_weights_of_another_dtype_do_not_change_the_output_dtype(row, param_dtype):
    x = example(row, "float16")
    made, non_trainables = jax.eval_shape(row.layer.init, jax.random.key(0), x)
    trainables = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, param_dtype), made)

    def loss(trainables, non_trainables):
        y, _ = row.layer.fwd(x, trainables, non_trainables, key=keys(row))
        return jnp.sum(y), y

    gradients, y = jax.eval_shape(jax.grad(loss, has_aux=True), trainables, non_trainables)
    wanted = row.layer.policy.output_dtype if row.of_dtype else x.dtype
    assert y.dtype == (wanted if row.ids is None else param_dtype)
    assert jax.tree.map(lambda g: g.dtype, gradients) == jax.tree.map(lambda t: t.dtype, trainables)


@rows
def test_gradients_against_finite_differences(row, x64):
    x, layer = example(row, "float64"), row.declared("float64")
    trainables, non_trainables = jax.jit(layer.init)(jax.random.key(0), x)

    def fwd(x, trainables):
        return layer.fwd(x, trainables, non_trainables, key=keys(row))[0]

    if row.ids is None:
        check_derivatives(fwd, (x, trainables))
    else:
        check_derivatives(functools.partial(fwd, x), (trainables,))


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
def test_init_jits_and_is_born_sharded(row):
    mesh = jax.make_mesh((jax.device_count(),), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
    replicated = jax.NamedSharding(mesh, jax.P())
    found = jax.jit(row.layer.init, out_shardings=replicated)(jax.random.key(0), example(row))
    assert all(leaf.sharding == replicated for leaf in jax.tree.leaves(found))
    assert_equal(found, variables(row), rtol=1e-6)


@rows
def test_shard_map_means_the_same(row):
    """Without random numbers a shard is a smaller batch; with them each shard needs a key of its own."""
    count = jax.device_count()
    mesh = jax.make_mesh((count,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
    x = example(row, batch=(2 * count,))
    trainables, non_trainables = variables(row)
    each = jax.random.split(jax.random.key(7), count) if row.draws else None

    def shard(x, trainables, key):
        return row.layer.fwd(x, trainables, non_trainables, key=None if key is None else key[0])[0]

    specs = (jax.P("batch"), jax.P(), None if each is None else jax.P("batch"))
    sharded = jax.jit(jax.shard_map(shard, mesh=mesh, in_specs=specs, out_specs=jax.P("batch")))
    alone = jax.jit(shard)
    parts = [
        alone(x[2 * i : 2 * i + 2], trainables, None if each is None else clone(each)[i : i + 1])
        for i in range(count)
    ]
    assert_equal(sharded(x, trainables, clone(each)), np.concatenate(parts), rtol=1e-5, atol=1e-6)


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
