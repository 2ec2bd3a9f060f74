"""What every optimizer must obey: rows times laws."""

import copy
import functools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn, optim
from mlax_tutorial.inspection.dtypes import DTYPES, strays
from mlax_tutorial.nn.numeric import accumulator
from tests.library.rows import OPTIMIZER_ROWS, OPTIMIZERS, classes, public_classes
from tests.library.rows.optimizers import RATE

rows = pytest.mark.parametrize("row", OPTIMIZER_ROWS, ids=lambda row: row.id)
MODEL = nn.Series(nn.Linear(2), nn.F(jnp.tanh), nn.Series(nn.Bias()))  # tuples, dicts and ()
X = np.random.default_rng(0).normal(size=(8, 4))
TARGETS = np.random.default_rng(1).normal(size=(8, 2))

# Each spelling of a learning rate; all must run the one program.
SPELLINGS = [0.5, 1, np.float64(0.25), np.float32(0.1), jnp.float32(0.1), jnp.array(0.3), jnp.bfloat16(0.5)]


def weights(dtype="float32"):
    return MODEL.init(jax.random.key(0), jnp.asarray(X, dtype))[0]


@jax.jit
def gradients(trainables):
    dtype = trainables[0]["kernel"].dtype

    def loss(trainables):
        outputs, _ = MODEL.fwd(jnp.asarray(X, dtype), trainables, ())
        return jnp.mean(jnp.square(outputs - jnp.asarray(TARGETS, dtype)))

    return jax.grad(loss)(trainables)


def mirrors(state):
    """The trees in a state, ``(name, tree)``: all but counts and what is ``()``."""
    if not hasattr(state, "_asdict"):
        for part in state:
            yield from mirrors(part)
        return
    for name, value in state._asdict().items():
        if name == "inner":
            yield from mirrors(value)
        elif name != "count" and value != ():
            yield name, value


def run(optimizer, trainables, steps=3):
    state = optimizer.init(trainables)
    for _ in range(steps):
        updates, state = optimizer.step(gradients(trainables), state, trainables)
        trainables = optim.apply_updates(trainables, updates)
    return trainables, state


def types(tree):
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype, leaf.weak_type), tree)


def assert_close(first, second, rtol=1e-6, atol=1e-7):
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second)):
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=rtol, atol=atol)


def test_every_public_class_has_a_row():
    held = {cls for optimizer in OPTIMIZERS for cls in classes(optimizer)}
    for base in (optim.Transformation, optim.Schedule):
        missing = public_classes(optim, base) - held
        assert not missing, f"add a row to tests/library/rows/optimizers.py for {missing}"


@rows
def test_state_mirrors_the_trainables(row):
    trainables = weights()
    wanted = jax.tree_util.tree_map_with_path(
        lambda path, leaf: () if row.frozen(jax.tree_util.keystr(path)) else (leaf.shape, leaf.dtype),
        trainables,
    )
    if row.packed:
        wanted = {
            "float32": ((sum(leaf.size for leaf in jax.tree.leaves(trainables)),), jnp.dtype("float32"))
        }
    stepped = jax.eval_shape(lambda trainables: run(row.optimizer, trainables)[1], trainables)
    for state in (row.optimizer.init(trainables), stepped):
        for _, tree in mirrors(state):
            assert jax.tree.map(lambda a: (a.shape, a.dtype), tree) == wanted


@pytest.mark.parametrize("row", [row for row in OPTIMIZER_ROWS if not row.packed], ids=lambda row: row.id)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_state_takes_the_sharding_of_the_trainables(row, dtype):
    mesh = jax.make_mesh((jax.device_count(),), ("model",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = jax.NamedSharding(mesh, jax.P("model"))
    trainables = {name: jax.device_put(jnp.ones((4, 2), dtype), sharding) for name in ("kernel", "bias")}
    state = row.optimizer.init(trainables)
    updates, stepped = row.optimizer.step(trainables, state, trainables)
    for tree in (updates, *(tree for some in (state, stepped) for _, tree in mirrors(some))):
        for leaf in jax.tree.leaves(tree):
            assert leaf.sharding.is_equivalent_to(sharding, 2)


@rows
def test_init_and_step_are_pure_and_jit(row, optimized):
    trainables, optimizer = weights(), row.optimizer
    state = optimizer.init(trainables)
    g = gradients(trainables)
    eager = optimizer.step(g, state, trainables)
    assert_close(eager, optimizer.step(g, state, trainables), rtol=0, atol=0)
    jitted = jax.jit(lambda o, *trees: o.step(*trees))
    assert_close(eager, jitted(optimizer, g, jax.jit(optimizer.init)(trainables), trainables), 1e-5)


@rows
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_state_keeps_its_types_so_that_a_loop_can_carry_it(row, dtype):
    trainables = weights(dtype)
    state = row.optimizer.init(trainables)
    assert types(jax.eval_shape(row.optimizer.init, trainables)) == types(state)
    _, stepped = jax.eval_shape(row.optimizer.step, trainables, state, trainables)
    assert types(stepped) == types(state)


@rows
def test_weights_and_state_may_be_donated_together(row):
    trainables = weights()
    state = row.optimizer.init(trainables)
    step = jax.jit(row.optimizer.step, donate_argnums=(1, 2))
    step(gradients(trainables), state, trainables)


@rows
def test_a_new_number_never_traces_again(row):
    trainables, traces = weights(), []

    @jax.jit
    def train(optimizer, trainables):
        traces.append(1)
        return run(optimizer, trainables, steps=2)[0]

    results = [train(row.make(rate), trainables) for rate in SPELLINGS]
    for rate in SPELLINGS:  # and within jit, where the number is traced
        results.append(train(jax.jit(row.make)(rate), trainables))
    assert len(traces) == 1
    assert not np.allclose(results[0][0]["kernel"], results[1][0]["kernel"])
    for eager, traced in zip(results, results[len(SPELLINGS) :]):
        assert_close(eager, traced)
    for other in (1, 0):  # all other numbers, too, and integers remain integers
        train(jax.tree.map(lambda leaf, other=other: leaf - leaf // 2 + other, row.optimizer), trainables)
    assert len(traces) == 1


@rows
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_dtype_guarantee(row, dtype, x64):
    """Weights and state keep their dtype; in half precision the arithmetic and the updates are float32."""
    trainables, optimizer = weights(dtype), row.optimizer
    g = gradients(trainables)
    state = optimizer.init(trainables)

    def step(gradients, state, trainables):
        updates, state = optimizer.step(gradients, state, trainables)
        return updates, state, optim.apply_updates(trainables, updates)

    updates, state, new = jax.eval_shape(step, g, state, trainables)
    wide = jnp.dtype(accumulator(dtype))
    declared = jnp.dtype("float32") if "float32" in repr(optimizer) else wide
    for name, tree in mirrors(state):
        wanted = {"first_moment": declared}.get(name, wide) if name in row.wide else jnp.dtype(dtype)
        assert {leaf.dtype for leaf in jax.tree.leaves(tree)} == {wanted}, name
    assert {leaf.dtype for leaf in jax.tree.leaves(new)} == {jnp.dtype(dtype)}
    assert {leaf.dtype for leaf in jax.tree.leaves(updates)} == {wide}
    if declared == wide:
        arithmetic = row.arithmetic | {"convert_element_type", "mul", "add", "neg", "sub"}
        assert not strays(jax.make_jaxpr(step)(g, state, trainables), dtype, arithmetic, wide)


def test_half_precision_weights_are_rounded_once():
    """Many small steps that bfloat16 arithmetic would swallow one by one add up in the velocity."""
    weight = {"w": jnp.ones((), jnp.bfloat16)}
    updates = {"w": jnp.float32(2**-9 + 2**-12)}
    # 1 + 2**-9 + 2**-12 rounds up to 1 + 2**-7 only if it passes the midpoint 2**-8: it must stay at 1.
    assert optim.apply_updates(weight, updates)["w"] == 1
    assert optim.apply_updates(weight, {"w": jnp.float32(2**-8 + 2**-16)})["w"] == 1 + 2**-7
    # Rounded to bfloat16 first, the update would be 2**-8 exactly, and ties go to even: 1.
    assert optim.apply_updates(weight, {"w": jnp.bfloat16(2**-8 + 2**-16)})["w"] == 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_rounded_only_where_it_is_stored(dtype):
    """Between the gradient and the update everything is float32, also the velocity that Nesterov looks along."""
    draw = np.random.default_rng(0).normal
    weight, gradient, velocity = ({"w": jnp.asarray(draw(size=500), dtype)} for _ in range(3))
    g, v = (np.asarray(tree["w"], np.float32) for tree in (gradient, velocity))
    mu, rate = np.float32(0.9), np.float32(0.1)
    for nesterov in (False, True):
        state = optim.SGDState(velocity)
        updates, state = optim.SGD(0.1, 0.9, nesterov).step(gradient, state, weight)
        new = mu * v + g
        wanted = -rate * (mu * new + g if nesterov else new)
        np.testing.assert_allclose(updates["w"], wanted, rtol=1e-6, atol=1e-7)
        np.testing.assert_array_equal(state.velocity["w"], jnp.asarray(new, dtype))


@rows
def test_an_optimizer_is_a_pytree_of_its_numbers(row):
    optimizer = row.optimizer
    again = jax.tree.unflatten(jax.tree.structure(optimizer), jax.tree.leaves(optimizer))
    assert type(again) is type(optimizer) and repr(again) == repr(optimizer)
    for other in (again, row.make(0.7), copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert jax.tree.structure(other) == jax.tree.structure(optimizer)
        assert hash(jax.tree.structure(other)) == hash(jax.tree.structure(optimizer))
    assert {leaf.dtype.name for leaf in jax.tree.leaves(optimizer)} <= {"float32", "int32"}
    assert not any(jax.typeof(leaf).weak_type for leaf in jax.tree.leaves(optimizer))
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(optimizer)]
    assert any("learning_rate" in path for path in paths)
    _, with_paths = jax.tree_util.tree_flatten_with_path(optimizer)
    assert with_paths == jax.tree.structure(optimizer)  # the switches, too


def test_the_ends_of_a_range_belong_to_it():
    for momentum in (0, 1):
        optimizer = optim.SGD(0, momentum=momentum)
        assert optimizer.learning_rate == 0 and optimizer.momentum == momentum
    assert optim.SGD(np.finfo(np.float32).max).learning_rate == np.finfo(np.float32).max
    assert nn.Dropout(0).rate == 0 and nn.Dropout(1).rate == 1


def test_optimizers_of_different_class_or_switches_never_share_a_tree_definition():
    class Other(optim.SGD):
        pass

    different = [*OPTIMIZERS, Other(0.1), optim.AdamW(0.1, where=lambda path: "scaler" in path)]
    structures = {jax.tree.structure(optimizer) for optimizer in different}
    assert len(structures) == len(different)


@rows
def test_placeholders_and_tracers_pass_through(row):
    optimizer = row.optimizer
    doubled = jax.tree.map(lambda leaf: 2 * leaf, optimizer)
    assert jax.tree.leaves(doubled) == [2 * leaf for leaf in jax.tree.leaves(optimizer)]
    holes = jax.tree.map(lambda leaf: object(), optimizer)
    assert jax.tree.structure(holes) == jax.tree.structure(optimizer)
    assert type(optimizer).__name__ in repr(holes)
    batched = jax.vmap(row.make)(jnp.arange(3.0))
    assert all(leaf.shape == (3,) for leaf in jax.tree.leaves(batched))
    assert type(optimizer).__name__ in repr(batched)


@rows
def test_numbers_may_be_Pythons_where_they_were_put_in_as_leaves(row):
    """By ``jax.tree.map``, say, or by what reads a configuration: ``step`` casts them."""
    trainables = weights()
    plain = jax.tree.map(lambda leaf: leaf.item(), row.optimizer)
    assert_close(run(plain, trainables), run(row.optimizer, trainables), rtol=1e-5)


@rows
def test_vmap_over_learning_rates_trains_an_ensemble(row):
    trainables = weights()

    @jax.jit
    def train(rate):
        return run(row.make(rate), trainables)[0]

    together = jax.vmap(train)(jnp.array([0.1, 0.5]))
    for index, rate in enumerate((0.1, 0.5)):
        member = jax.tree.map(lambda leaf, index=index: leaf[index], together)
        assert_close(member, train(rate), rtol=1e-4, atol=1e-5)


@rows
def test_fifty_steps_equal_optax(row, optimized):
    ours, theirs = jax.jit(row.optimizer.step), jax.jit(row.peer.update)
    first, second = weights(), weights()
    with jax.numpy_dtype_promotion("standard"):  # Optax is not written for strict promotion
        state, optax_state = row.optimizer.init(first), row.peer.init(second)
        for _ in range(50):
            updates, state = ours(gradients(first), state, first)
            first = optim.apply_updates(first, updates)
            updates, optax_state = theirs(gradients(second), optax_state, second)
            second = optim.apply_updates(second, updates)
    assert_close(first, second, rtol=1e-4, atol=2e-5)
    assert not np.allclose(first[0]["kernel"], weights()[0]["kernel"], atol=1e-2)


@rows
def test_gradients_flow_through_a_step(row, x64):
    """Learning to learn: the loss after two steps is differentiable by the learning rate, and by every other number."""
    trainables = weights("float64")

    @jax.jit
    @functools.partial(jax.value_and_grad, allow_int=True)
    def after(optimizer):
        stepped, _ = run(optimizer, trainables, steps=2)
        return jnp.sum(stepped[0]["kernel"])

    below, above = row.make(RATE - 1e-3), row.make(RATE + 1e-3)
    _, slopes = after(row.optimizer)
    predicted = 0.0
    for slope, low, high in zip(*map(jax.tree.leaves, (slopes, below, above))):
        if slope.dtype != jax.dtypes.float0:
            assert np.isfinite(slope)
            predicted += float(slope) * (float(high) - float(low))
    np.testing.assert_allclose(predicted, after(above)[0] - after(below)[0], rtol=1e-3)
    assert predicted != 0


@rows
@pytest.mark.parametrize("nothing", [(), {}, ({}, ())])
def test_a_model_without_weights(row, nothing):
    state = row.optimizer.init(nothing)
    updates, _ = row.optimizer.step(nothing, state, nothing)
    assert updates == nothing


@rows
def test_wrong_states_and_trees_are_refused(row):
    optimizer, trainables = row.optimizer, weights()
    state, name = row.optimizer.init(trainables), type(row.optimizer).__name__
    with pytest.raises(optim.OptimizerError, match=f"^{name}: state must be what init returned, {name[:4]}"):
        optimizer.step(trainables, None, trainables)
    other = optim.Adam(0.1) if not isinstance(optimizer, optim.Adam) else optim.SGD(0.1)
    with pytest.raises(optim.OptimizerError, match="state must be what init returned.*of the same optimizer"):
        optimizer.step(trainables, other.init(trainables), trainables)
    with pytest.raises(optim.OptimizerError, match=r"gradients.* expects .*got .*: .*one model"):
        optimizer.step(trainables[:2], state, trainables)
    with pytest.raises(
        optim.OptimizerError, match=r"trainables.* expects .*floating-point numbers, got int32"
    ):
        optimizer.init({"kernel": jnp.ones(2), "bias": jnp.ones(2), "table": jnp.arange(3)})
    small = {"kernel": jnp.ones(3), "bias": jnp.ones(2)}
    large = {"kernel": jnp.ones(4), "bias": jnp.ones(2)}
    stale, name, wanted, got = optimizer.init(large), "kernel", 3, 4
    if row.packed:
        name, wanted, got = "float32", 5, 6
    for key, tree in mirrors(stale):
        if jax.tree.leaves(tree[name]):
            with pytest.raises(
                optim.OptimizerError, match=rf"state\.{key}\['{name}'\] expects \({wanted},\), got \({got},\)"
            ):
                optimizer.step(small, stale, small)
            break
