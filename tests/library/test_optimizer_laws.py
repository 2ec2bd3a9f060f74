"""What every optimizer must obey: rows times laws, and what the package promises beyond them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn, optim
from mlax_tutorial.checking.laws import OPTIMIZER
from mlax_tutorial.checking.laws.optimizer_subject import weights
from tests.library.rows import OPTIMIZER_ROWS, OPTIMIZERS, classes, public_classes
from tests.library.rows.judging import judge, pairs

rows = pytest.mark.parametrize("row", OPTIMIZER_ROWS, ids=lambda row: row.id)
OPTIMIZED = {"pure and under jit", "equals Optax"}  # compiled as for a user


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


@pytest.mark.parametrize(("row", "law"), pairs(OPTIMIZER_ROWS, OPTIMIZER))
def test_optimizers_obey_the_laws(row, law, request):
    if law.name in OPTIMIZED:
        request.getfixturevalue("optimized")
    judge(law, row.subject)


@rows
def test_the_optimizer_may_be_an_argument_of_what_is_jitted(row, optimized):
    """As in the README's example; the laws close over it."""
    subject = row.subject
    step = jax.jit(lambda optimizer, *trees: optimizer.step(*trees))
    found = step(row.optimizer, subject.gradients, subject.state, subject.trainables)
    assert jax.tree.structure(found) == jax.tree.structure(subject.stepped)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), found, subject.stepped)


def test_every_public_class_has_a_row():
    held = {cls for optimizer in OPTIMIZERS for cls in classes(optimizer)}
    for base in (optim.Transformation, optim.Schedule):
        missing = public_classes(optim, base) - held
        assert not missing, f"add a row to tests/library/rows/optimizers.py for {missing}"


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
def test_a_copy_prints_alike_and_paths_name_the_numbers(row):
    optimizer = row.optimizer
    again = jax.tree.unflatten(jax.tree.structure(optimizer), jax.tree.leaves(optimizer))
    assert repr(again) == repr(optimizer)
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
