"""What every optimizer must obey: rows times laws."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mlax_tutorial import nn, optim
from tests.library.dtypes import DTYPES, accumulator, strays
from tests.library.rows import OPTIMIZERS, public_classes

rows = pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=str)
MODEL = nn.Series(nn.Linear(5), nn.Bias(), nn.F(jnp.tanh), nn.Series(nn.Linear(2)), nn.Bias())
X = np.random.default_rng(0).normal(size=(8, 4))

# Each spelling of a learning rate; all must run the one program.
SPELLINGS = [0.5, 1, np.float64(0.25), np.float32(0.1), jnp.float32(0.1), jnp.array(0.3), jnp.bfloat16(0.5)]


def weights(dtype="float32"):
    return MODEL.init(jax.random.key(0), jnp.asarray(X, dtype))[0]


def gradients(trainables):
    def loss(trainables):
        return jnp.mean(MODEL.fwd(jnp.asarray(X, trainables[0]["kernel"].dtype), trainables, ())[0])

    return jax.grad(loss)(trainables)


def mirrors(optimizer, state):
    """The fields of a state that hold a tree rather than a counter or nothing."""
    return {name: tree for name, tree in state._asdict().items() if jax.tree.leaves(tree)}


def run(optimizer, trainables, steps=3):
    state = optimizer.init(trainables)
    for _ in range(steps):
        updates, state = optimizer.step(gradients(trainables), state, trainables)
        trainables = optim.apply_updates(trainables, updates)
    return trainables, state


def assert_close(first, second, rtol=1e-6, atol=1e-7):
    assert jax.tree.structure(first) == jax.tree.structure(second)
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second)):
        np.testing.assert_allclose(np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=rtol, atol=atol)


def test_every_public_optimizer_has_a_row():
    missing = public_classes(optim, optim.Optimizer) - {type(optimizer) for optimizer in OPTIMIZERS}
    assert not missing, f"add a row to tests/library/rows.py for {missing}"


@rows
def test_state_mirrors_the_trainables(optimizer):
    trainables = weights()
    for state in (optimizer.init(trainables), run(optimizer, trainables)[1]):
        for tree in mirrors(optimizer, state).values():
            assert jax.tree.map(lambda a: (a.shape, a.dtype), tree) == jax.tree.map(
                lambda a: (a.shape, a.dtype), trainables
            )


@rows
def test_state_takes_the_sharding_of_the_trainables(optimizer):
    mesh = jax.make_mesh((jax.device_count(),), ("model",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = jax.NamedSharding(mesh, jax.P("model"))
    trainables = {"kernel": jax.device_put(jnp.ones((4, 2)), sharding)}
    state = optimizer.init(trainables)
    updates, state = optimizer.step(trainables, state, trainables)
    for tree in (updates, *mirrors(optimizer, state).values()):
        assert tree["kernel"].sharding.is_equivalent_to(sharding, 2)


@rows
def test_init_and_step_are_pure_and_jit(optimizer):
    trainables = weights()
    state = optimizer.init(trainables)
    g = gradients(trainables)
    eager = optimizer.step(g, state, trainables)
    assert_close(eager, optimizer.step(g, state, trainables), rtol=0, atol=0)
    assert_close(
        eager,
        jax.jit(lambda o, *trees: o.step(*trees))(
            optimizer, g, jax.jit(optimizer.init)(trainables), trainables
        ),
    )


@rows
def test_a_new_number_never_traces_again(optimizer):
    trainables, traces = weights(), []

    @jax.jit
    def step(optimizer, gradients, state, trainables):
        traces.append(1)
        updates, state = optimizer.step(gradients, state, trainables)
        return optim.apply_updates(trainables, updates), state

    state = optimizer.init(trainables)
    g = gradients(trainables)
    results = []
    for rate in SPELLINGS:
        results.append(step(dataclasses.replace(optimizer, learning_rate=rate), g, state, trainables)[0])
    for rate in SPELLINGS:  # and within jit, where the number is traced
        built = jax.jit(lambda rate: dataclasses.replace(optimizer, learning_rate=rate))(rate)
        results.append(step(built, g, state, trainables)[0])
    assert len(traces) == 1
    assert not np.allclose(results[0][0]["kernel"], results[1][0]["kernel"])
    assert_close(results[0], results[len(SPELLINGS)])


@rows
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_dtype_guarantee(optimizer, dtype, x64):
    """Weights and state keep their dtype; in half precision the arithmetic and the updates are float32."""
    trainables = weights(dtype)
    g = gradients(trainables)
    state = optimizer.init(trainables)

    def step(gradients, state, trainables):
        updates, state = optimizer.step(gradients, state, trainables)
        return updates, state, optim.apply_updates(trainables, updates)

    updates, state, new = step(g, state, trainables)
    assert {leaf.dtype for leaf in jax.tree.leaves((state, new))} == {jnp.dtype(dtype)}
    assert {leaf.dtype for leaf in jax.tree.leaves(updates)} == {jnp.dtype(accumulator(dtype))}
    arithmetic = frozenset({"convert_element_type", "mul", "add", "neg", "sub"})
    assert not strays(jax.make_jaxpr(step)(g, state, trainables), dtype, arithmetic, accumulator(dtype))


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
def test_one_trace_for_different_objects_with_the_same_switches(optimizer):
    copy = jax.tree.unflatten(jax.tree.structure(optimizer), jax.tree.leaves(optimizer))
    assert jax.tree.structure(copy) == jax.tree.structure(optimizer)
    assert type(copy) is type(optimizer)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(optimizer)]
    assert ".learning_rate" in paths
    _, with_paths = jax.tree_util.tree_flatten_with_path(optimizer)
    assert with_paths == jax.tree.structure(optimizer)  # the switches, too


def test_the_ends_of_a_range_belong_to_it():
    for momentum in (0, 1):
        optimizer = optim.SGD(0, momentum=momentum)
        assert optimizer.learning_rate == 0 and optimizer.momentum == momentum
    assert optim.SGD(np.finfo(np.float32).max).learning_rate == np.finfo(np.float32).max
    assert nn.Dropout(0).rate == 0 and nn.Dropout(1).rate == 1


def test_optimizers_of_different_class_never_share_a_tree_definition():
    class Other(optim.SGD):
        pass

    structures = {jax.tree.structure(optimizer) for optimizer in [*OPTIMIZERS, Other(0.1)]}
    assert len(structures) == len(OPTIMIZERS) + 1


@rows
def test_placeholders_and_tracers_pass_through(optimizer):
    doubled = jax.tree.map(lambda leaf: 2 * leaf, optimizer)
    assert doubled.learning_rate == 2 * optimizer.learning_rate
    holes = jax.tree.map(lambda leaf: object(), optimizer)
    assert jax.tree.structure(holes) == jax.tree.structure(optimizer)
    batched = jax.vmap(lambda rate: dataclasses.replace(optimizer, learning_rate=rate))(jnp.arange(3.0))
    assert batched.learning_rate.shape == (3,)


@rows
def test_vmap_over_learning_rates_trains_an_ensemble(optimizer):
    trainables = weights()

    def train(rate):
        return run(dataclasses.replace(optimizer, learning_rate=rate), trainables)[0]

    together = jax.vmap(train)(jnp.array([0.1, 0.5]))
    for index, rate in enumerate((0.1, 0.5)):
        member = jax.tree.map(lambda leaf, index=index: leaf[index], together)
        assert_close(member, train(rate), rtol=1e-5, atol=1e-6)


PEERS = [
    (optim.SGD(0.1), optax.sgd(0.1)),
    (optim.SGD(0.1, momentum=0.9), optax.sgd(0.1, momentum=0.9)),
    (optim.SGD(0.1, momentum=0.9, nesterov=True), optax.sgd(0.1, momentum=0.9, nesterov=True)),
]


@pytest.mark.parametrize(
    ("ours", "theirs"), PEERS, ids=lambda side: str(side) if side in OPTIMIZERS else "optax"
)
def test_fifty_steps_equal_optax(ours, theirs):
    with jax.numpy_dtype_promotion("standard"):  # Optax is not written for strict promotion
        first, second = weights(), weights()
        state, optax_state = ours.init(first), theirs.init(second)
        for _ in range(50):
            updates, state = ours.step(gradients(first), state, first)
            first = optim.apply_updates(first, updates)
            updates, optax_state = theirs.update(gradients(second), optax_state, second)
            second = optim.apply_updates(second, updates)
    assert_close(first, second, rtol=1e-5, atol=1e-6)


def test_peers_cover_every_row():
    assert [str(ours) for ours, _ in PEERS] == [str(optimizer) for optimizer in OPTIMIZERS]


@rows
def test_gradients_flow_through_a_step(optimizer):
    """Learning to learn: the loss after a step is differentiable by the learning rate."""
    trainables = weights()

    def after(rate):
        stepped, _ = run(dataclasses.replace(optimizer, learning_rate=rate), trainables, steps=2)
        return jnp.sum(stepped[0]["kernel"])

    slope = jax.grad(after)(0.1)
    numeric = (after(0.1 + 1e-2) - after(0.1 - 1e-2)) / 2e-2
    np.testing.assert_allclose(slope, numeric, rtol=1e-2)
