"""What every layer must obey: rows times laws."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn
from mlax_tutorial.checking.laws import LAYER
from tests.library.rows import LAYERS, classes, public_classes
from tests.library.rows.judging import judge, pairs

OPTIMIZED = {"eager equals jit", "scan and checkpoint"}  # compiled as for a user
rows = pytest.mark.parametrize("row", LAYERS, ids=lambda row: row.id)


@pytest.mark.parametrize(("row", "law"), pairs(LAYERS, LAYER))
def test_layers_obey_the_laws(row, law, request):
    if law.name in OPTIMIZED:
        request.getfixturevalue("optimized")
    judge(law, row.subject)


@rows
def test_weights_are_drawn_in_half_precision(row):
    """The laws look at their types, and cast those of float32."""
    subject = row.subject

    @jax.jit
    def init(key):
        return {
            dtype: subject.declared(dtype).init(jax.random.clone(key), subject.outline(dtype))
            for dtype in ("float16", "bfloat16")
        }

    for dtype, made in init(jax.random.key(0)).items():
        types, _ = subject.program(dtype)
        for drawn, kind, wide in zip(*map(jax.tree.leaves, (made, types, subject.variables)), strict=True):
            assert drawn.dtype == kind.dtype
            drawn, wide = (np.asarray(leaf, "float32") for leaf in (drawn, wide))
            assert np.isfinite(drawn).all()
            if np.ptp(wide):  # drawn, and no constant
                assert drawn.std() < 3 * wide.std() and wide.std() < 3 * drawn.std()
            else:
                np.testing.assert_allclose(drawn, wide, rtol=2**-8)


@pytest.mark.parametrize("row", [row for row in LAYERS if not row.subject.always], ids=lambda row: row.id)
def test_one_batch_axis_gives_what_two_give(row):
    """The laws compare one by its shape alone; the examples of two with each by itself."""
    subject = row.subject
    whole, _ = subject.eager(True)
    part, _ = jax.jit(lambda x, variables: row.layer.fwd(x, *variables, inference_mode=True))(
        subject.x[0], subject.variables
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b[0], rtol=1e-5, atol=1e-6), part, whole)


@rows
def test_a_call_leaves_nothing_to_the_garbage_collector(row):
    """A cycle would keep the weights of every call until Python collects, and JAX's check for leaks would have to wait for that."""
    subject, seen = row.subject, []

    def fwd(x, variables, key):
        seen.extend(map(weakref.ref, jax.tree.leaves((x, variables))))
        return row.layer.fwd(x, *variables, key=key)

    key = subject.keys()
    gc.disable()
    try:
        jax.make_jaxpr(fwd)(subject.outline(), subject.outlines, key)
        kept = [held() for held in seen if held() is not None]
    finally:
        gc.enable()
    assert seen and not kept


def test_every_public_layer_has_a_row():
    missing = public_classes(nn, nn.Layer) - {cls for row in LAYERS for cls in classes(row.layer)}
    assert not missing, f"add a row to tests/library/rows/ for {missing}"


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
