"""Every public optimizer has a row, whose laws `tests/laws/each/` looks at; and what the package promises besides."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn, optim
from tests.laws.rows import OPTIMIZERS, classes, public_classes


def test_every_public_class_has_a_row():
    held = {cls for optimizer in OPTIMIZERS for cls in classes(optimizer)}
    for base in (optim.Transformation, optim.Schedule):
        missing = public_classes(optim, base) - held
        assert not missing, f"add a row to tests/laws/rows/optimizers.py for {missing}"


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
    """Asked to store its velocity in half precision, it does nothing else there. Between the gradient and the update everything is float32, also the velocity that Nesterov looks along."""
    draw = np.random.default_rng(0).normal
    weight, gradient, velocity = ({"w": jnp.asarray(draw(size=500), dtype)} for _ in range(3))
    g, v = (np.asarray(tree["w"], np.float32) for tree in (gradient, velocity))
    mu, rate = np.float32(0.9), np.float32(0.1)
    for nesterov in (False, True):
        optimizer = optim.SGD(0.1, momentum=0.9, nesterov=nesterov, velocity_dtype=dtype)
        state = optim.SGDState(velocity, jnp.int32(0))
        updates, state = optimizer.step(gradient, state, weight)
        new = mu * v + g
        wanted = -rate * (mu * new + g if nesterov else new)
        np.testing.assert_allclose(updates["w"], wanted, rtol=1e-6, atol=1e-7)
        np.testing.assert_array_equal(state.velocity["w"], jnp.asarray(new, dtype))


def test_the_ends_of_a_range_belong_to_it():
    for momentum in (0, 1):
        optimizer = optim.SGD(0, momentum=momentum)
        assert optimizer.learning_rate == 0 and optimizer.momentum == momentum
    assert optim.SGD(np.finfo(np.float32).max).learning_rate == np.finfo(np.float32).max
    assert nn.Dropout(0).rate == 0 and nn.Dropout(1).rate == 1


def test_optimizers_of_different_class_or_switches_never_share_a_tree_definition():
    class Other(optim.SGD):
        pass

    different = [*OPTIMIZERS, Other(0.1), optim.AdamW(0.1, where=lambda path: "scale" in path)]
    structures = {jax.tree.structure(optimizer) for optimizer in different}
    assert len(structures) == len(different)
