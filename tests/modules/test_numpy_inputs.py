"""What comes in at the door: NumPy's own True, and NumPy's float64, which any loader gives."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import augment, nn, optim, precision, trees
from mlax_tutorial.nn import attention
from tests.settings import configured


class Draws(nn.Composite):
    """Draws by itself, in training only."""

    draws = True

    def forward(self, call, x):
        return x if call.inference_mode else jax.random.permutation(call.key(), x)


class Asks(nn.Composite):
    """Says what it was told."""

    def forward(self, call, x):
        assert call.inference_mode is True
        return x


class AsksItself(nn.Layer):
    """The same, outside of a Composite."""

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        assert isinstance(inference_mode, bool)
        return x, non_trainables


DROPOUT, NORM = nn.Dropout(0.5), nn.BatchNorm()
MODELS = {
    "a Dropout": DROPOUT,
    "in a Series": nn.Series(nn.Linear(3), NORM, DROPOUT),
    "deeper": nn.Residual(nn.Series(NORM, nn.Residual(DROPOUT))),
    "in a Remat and a Stack": nn.Remat(nn.Stack(nn.Residual(DROPOUT), 2)),
    "attention": nn.MultiHeadAttention(2, dropout=0.5),
    "one that draws by itself": Draws(),
    "one that asks": Asks(),
    "one that asks, in a Series": nn.Series(AsksItself()),
    "in a Vmap": nn.Vmap(AsksItself(), 2, shared=True),
    "in a Remat": nn.Remat(AsksItself()),
    "in a Policy": precision.Policy("bfloat16").apply(AsksItself()),
    "a spectral norm": nn.SpectralNorm(nn.Linear(3)),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_numpys_true_is_inference(model):
    x = jnp.ones((5, 4))
    variables = model.init(jax.random.key(0), x) if not isinstance(model, Asks) else ((), ())
    wanted = model.fwd(x, *variables, inference_mode=True)
    got = model.fwd(x, *variables, inference_mode=np.True_)
    jax.tree.map(np.testing.assert_array_equal, got, wanted)


def test_an_array_is_no_mode_for_who_draws_by_himself():
    with pytest.raises(nn.LayerError, match=r"^Draws: inference_mode must be a Python bool, got bool\[\]"):
        Draws().fwd(jnp.ones(3), (), (), key=jax.random.key(0), inference_mode=jnp.array(False))


IMAGES, SEQUENCES = (np.random.default_rng(0).normal(size=shape) for shape in ((2, 6, 6, 4), (2, 6, 4)))


class Doubles(nn.Composite):
    """Its own arithmetic is NumPy's, if it is let."""

    def forward(self, call, x):
        return x * 2


BATCHES = [
    (nn.Linear(3), SEQUENCES), (nn.Bias(), SEQUENCES), (nn.Scale(), SEQUENCES), (nn.Weights((3,)), SEQUENCES),
    (nn.F(lambda x: x + 1), SEQUENCES), (nn.F(lambda x: x * 2, lambda x: x * 3), SEQUENCES), (nn.Flatten(2), SEQUENCES),
    (nn.Dropout(0.5), SEQUENCES), (nn.Dropout(0), SEQUENCES), (nn.Dropout(1), SEQUENCES), (nn.Embed(5, 3), np.arange(4)),
    (nn.Conv(3, (3, 3)), IMAGES), (nn.Conv(3, (3, 3), padding="CIRCULAR"), IMAGES), (nn.ConvTranspose(3, (3, 3)), IMAGES),
    (nn.MaxPool((2, 2)), IMAGES), (nn.SumPool((2, 2)), IMAGES), (nn.AvgPool((3, 3), padding=1, count_include_pad=False), IMAGES),
    (nn.BatchNorm(affine=True), IMAGES), (nn.LayerNorm(), IMAGES), (nn.RMSNorm(), IMAGES), (nn.GroupNorm(2, axes=3), IMAGES),
    (nn.WeightNorm(nn.Linear(3)), SEQUENCES), (nn.SpectralNorm(nn.Linear(3)), SEQUENCES),
    (nn.MultiHeadAttention(2, use_bias=True), SEQUENCES), (nn.MultiHeadAttention(2, rotary_base=100), SEQUENCES), (nn.MultiHeadAttention(2, chunk_size=2), SEQUENCES),
    (nn.Recurrent(nn.LSTMCell(3)), SEQUENCES), (nn.Recurrent(nn.GRUCell(3)), SEQUENCES), (nn.Bidirectional(nn.RNNCell(3)), SEQUENCES),
    (nn.Series(nn.F(lambda x: x), Doubles()), SEQUENCES), (nn.Parallel(nn.F(lambda x: x), nn.Dropout(0.5)), SEQUENCES),
    (nn.Residual(nn.Dropout(0.5)), SEQUENCES), (nn.Remat(nn.Linear(4)), SEQUENCES), (nn.Stack(nn.Linear(4), 2), SEQUENCES),
    (precision.Policy("float32").apply(nn.F(lambda x: x)), SEQUENCES),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "x"), BATCHES, ids=[repr(layer)[:40] for layer, _ in BATCHES])
@pytest.mark.parametrize("x64", [False, True], ids=["float32", "float64"])
def test_numpys_batches(layer, x, x64):
    """As JAX takes them: float64 where JAX has it, else float32, and not a word about it; what comes out is JAX's."""
    with configured(jax_enable_x64=x64), warnings.catch_warnings():
        warnings.simplefilter("error")
        wanted = jnp.asarray(x)
        for given in (x, jax.ShapeDtypeStruct(x.shape, x.dtype)):
            variables = layer.init(jax.random.key(0), given)
            assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(variables))
        dtypes = {leaf.dtype for leaf in jax.tree.leaves(variables)}
        for mode in (True, False):
            got = layer.fwd(x, *variables, key=jax.random.key(1), inference_mode=mode)
            again = layer.fwd(wanted, *variables, key=jax.random.key(1), inference_mode=mode)
            jax.tree.map(np.testing.assert_array_equal, got, again)
            assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(got))
            dtypes |= {leaf.dtype for leaf in jax.tree.leaves(got)}
        own = isinstance(layer, nn.Embed) or "Policy" in repr(layer)  # the dtype of these is not the input's
        assert dtypes == {jnp.dtype("float32") if own else jnp.result_type(wanted)}


def test_numpys_steps_and_states():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cell, attention = nn.Recurrent(nn.LSTMCell(3)), nn.MultiHeadAttention(2, causal=True, use_bias=True)
        state = np.zeros((2, 3)), np.zeros((2, 3))
        for layer, inputs in ((cell, {"initial_state": state}), (cell, {}), (attention, {})):
            trainables, _ = layer.init(jax.random.key(0), SEQUENCES, **inputs)
            cache = layer.init_cache(SEQUENCES, 6)
            wanted, _ = layer.fwd(jnp.asarray(SEQUENCES), trainables, (), **inputs)
            got, _ = layer.decode(SEQUENCES, trainables, (), cache, **inputs)
            np.testing.assert_allclose(got, wanted, atol=1e-5)
            np.testing.assert_array_equal(layer.fwd(SEQUENCES, trainables, (), **inputs)[0], wanted)


DOUBLES = {"w": np.random.default_rng(1).normal(size=(5, 3))}
OPTIMIZERS = [
    optim.SGD(0.1, momentum=0.9), optim.RMSProp(0.1), optim.Adagrad(0.1), optim.AdamW(0.1), optim.Lion(0.1),
    optim.Chain(optim.ClipByGlobalNorm(1.0), optim.ClipByValue(0.5), optim.SGD(0.1)),
    optim.Chain(optim.WeightDecay(0.1), optim.SGD(1.0), optim.ScaleByTrustRatio(), optim.Scale(0.1)),
    optim.Accumulate(optim.SGD(0.1), 1), optim.ExponentialMovingAverage(optim.SGD(0.1), decay=0.9),
    optim.MasterWeights(optim.SGD(0.1)), optim.Freeze(optim.SGD(0.1), where="*['none']"),
]  # fmt: skip


@pytest.mark.parametrize("x64", [False, True], ids=["float32", "float64"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=repr)
def test_numpys_weights_and_gradients(optimizer, x64):
    with configured(jax_enable_x64=x64), warnings.catch_warnings():
        warnings.simplefilter("error")

        def stepped(weights):
            weights = {**weights, "none": weights["w"]}
            updates, state = optimizer.step(weights, optimizer.init(weights), weights)
            return optim.apply_updates(weights, updates), state

        got, wanted = stepped(DOUBLES), stepped(jax.tree.map(jnp.asarray, DOUBLES))
        assert got[0]["w"].dtype == jnp.result_type(float)
        jax.tree.map(np.testing.assert_array_equal, got, wanted)


def test_numpys_arrays_in_functions():
    x, tree = SEQUENCES[:, :, None], DOUBLES
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function, arguments in [
            (attention.attention_logits, (x, x)), (attention.attend, (x, x, x)), (attention.attend_in_chunks, (x, x, x)),
            (lambda images: augment.erase(jax.random.key(0), images, 2), (IMAGES,)),
            (lambda images: augment.crop(jax.random.key(0), images), (IMAGES,)),
            (lambda images: augment.flip(jax.random.key(0), images), (IMAGES,)),
            (lambda a, b: trees.average(a, b, 0.9), (tree, tree)),
        ]:  # fmt: skip
            wanted = function(*jax.tree.map(jnp.asarray, arguments))
            jax.tree.map(np.testing.assert_array_equal, function(*arguments), wanted)
