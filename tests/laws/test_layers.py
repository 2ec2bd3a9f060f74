"""Every public layer has a row, whose laws `tests/laws/each/` looks at; and what the contract says besides."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from tests.laws.rows import LAYERS, classes, public_classes


def test_every_public_layer_has_a_row():
    missing = public_classes(nn, nn.Layer) - {cls for row in LAYERS for cls in classes(row.layer)}
    assert not missing, f"add a row to tests/laws/rows/ for {missing}"


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


def test_one_key_for_all_examples_gives_them_all_the_same_mask():
    """The two exceptions of the contract, shown: under vmap and shard_map a single key repeats its mask."""
    x, key = jnp.ones((4, 64)), jax.random.key(0)
    repeated = jax.vmap(lambda x: nn.Dropout(0.5).fwd(x, (), (), key=jax.random.clone(key))[0])(x)
    assert (repeated == repeated[:1]).all()
    each = jax.random.split(key, 4)
    own = jax.vmap(lambda x, key: nn.Dropout(0.5).fwd(x, (), (), key=key)[0])(x, each)
    assert not (own == own[:1]).all()
