"""What each row of an optimizer owes: all laws, and what the package promises beyond them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import optim
from mlax_tutorial.checking.laws import OPTIMIZER as LAWS  # noqa: F401
from mlax_tutorial.checking.laws.optimizer_subject import weights
from tests.laws.rows.judging import judge

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


def test_optimizers_obey_the_laws(row, law, request):
    if law.name in OPTIMIZED:
        request.getfixturevalue("optimized")
    judge(law, row.subject)


def test_the_optimizer_may_be_an_argument_of_what_is_jitted(row, optimized):
    """As in the README's example; the laws close over it."""
    subject = row.subject
    step = jax.jit(lambda optimizer, *trees: optimizer.step(*trees))
    found = step(row.optimizer, subject.gradients, subject.state, subject.trainables)
    assert jax.tree.structure(found) == jax.tree.structure(subject.stepped)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), found, subject.stepped)


def test_a_copy_prints_alike_and_paths_name_the_numbers(row):
    optimizer = row.optimizer
    again = jax.tree.unflatten(jax.tree.structure(optimizer), jax.tree.leaves(optimizer))
    assert repr(again) == repr(optimizer)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(optimizer)]
    assert any("learning_rate" in path for path in paths)
    _, with_paths = jax.tree_util.tree_flatten_with_path(optimizer)
    assert with_paths == jax.tree.structure(optimizer)  # the switches, too


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
