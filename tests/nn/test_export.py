"""Every layer exports with a symbolic batch and a symbolic length, and runs where NaN is an error."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from mlax_tutorial import nn
from tests.laws.rows import LAYERS
from tests.settings import configured

QUICK_TO_COMPILE = True
rows = pytest.mark.parametrize("row", LAYERS, ids=lambda row: row.id)


@rows
def test_it_exports_with_a_symbolic_batch(row):
    """In inference, with variables that were made for another batch; then it is called with two sizes, and each example
    gives the same result in the smaller batch (which the laws of layers ask for)."""
    x, variables = row.subject.example(batch=(3,)), row.arrays
    (batch,) = export.symbolic_shape("batch")
    fwd = functools.partial(row.layer.fwd, inference_mode=True)
    exported = export.export(jax.jit(fwd))(jax.ShapeDtypeStruct((batch, *x.shape[1:]), x.dtype), *variables)

    @jax.jit  # one program, since compiling takes the time
    def run(x, variables):
        return fwd(x, *variables), [exported.call(x[:size], *variables) for size in (3, 1)]

    (wanted, kept), found = run(x, variables)
    for y, updated in found:
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b[: len(a)], rtol=1e-4, atol=1e-5), y, wanted)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), updated, kept)


SEQUENCE_LAYERS = {
    "Linear": nn.Series(nn.Linear(3), nn.Bias(), nn.F(jax.nn.gelu), nn.Scale(), nn.Dropout(0.5)),
    "norms": nn.Series(nn.LayerNorm(), nn.RMSNorm(), nn.GroupNorm(2, axes=2), nn.BatchNorm()),
    "attention": nn.Residual(nn.MultiHeadAttention(2)),
    "causal attention": nn.MultiHeadAttention(2, kv_heads=1, causal=True, rotary_base=100),
    "Recurrent": nn.Series(nn.Recurrent(nn.GRUCell(3)), nn.Bidirectional(nn.LSTMCell(2))),
    "Stack": nn.Stack(nn.Residual(nn.Series(nn.Linear(4), nn.F(jnp.tanh))), 2),
}


@pytest.mark.parametrize("name", SEQUENCE_LAYERS)
def test_it_exports_with_a_symbolic_length(name):
    layer, x = SEQUENCE_LAYERS[name], jax.random.normal(jax.random.key(0), (2, 5, 4))
    variables = layer.init(jax.random.key(1), x)
    shape = export.symbolic_shape("batch, length, 4")
    fwd = functools.partial(layer.fwd, inference_mode=True)
    exported = export.export(jax.jit(fwd))(jax.ShapeDtypeStruct(shape, x.dtype), *variables)
    for part in (x, x[:1, :3]):
        got, wanted = jax.jit(lambda x: (exported.call(x, *variables)[0], fwd(x, *variables)[0]))(part)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.fixture
def nans_are_errors():
    with configured(jax_debug_nans=True):
        yield


@rows
def test_it_runs_where_nan_is_an_error(row, nans_are_errors):
    """Forward, backward and, if it does, decoding: no NaN is made on the way to a finite result. (Of ``init`` the laws say so.)

    Eagerly, where each operation is looked at; of a jitted function the results alone would be, and the laws and `test_decoding.py`
    look at these.
    """
    x = row.subject.example(batch=(2,))
    trainables, non_trainables = row.arrays

    def loss(trainables):
        return jnp.sum(row.layer.fwd(x, trainables, non_trainables, key=row.subject.keys())[0])

    gradients = jax.grad(loss)(trainables)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))
    try:
        cache = row.layer.init_cache(x, x.shape[-2] if row.ids is None and x.ndim > 1 else x.shape[-1])
    except nn.LayerError:
        return
    y, _ = row.layer.decode(x, trainables, non_trainables, cache)
    assert np.isfinite(y).all()
