"""Padding that is not zeros on both sides: circular, reflect, causal."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn

X = jnp.asarray(np.random.default_rng(0).normal(size=(2, 6, 5, 3)), jnp.float32)


def run(layer, x):
    return layer.fwd(x, *layer.init(jax.random.key(0), x))[0]


@pytest.mark.parametrize(("word", "mode"), [("CIRCULAR", "wrap"), ("reflect", "reflect")])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("strides", [1, 2])
@pytest.mark.parametrize("window", [(3, 2), (2, 3)])
def test_against_numpy(word, mode, dilation, strides, window):
    """As many elements as SAME with strides of 1, but not zeros."""
    before = [(dilation * (size - 1)) // 2 for size in window]
    after = [dilation * (size - 1) - rim for size, rim in zip(window, before)]
    padded = np.pad(X, [(0, 0), *zip(before, after), (0, 0)], mode=mode)
    options = {"strides": strides, "dilation": dilation}
    got = run(nn.Conv(4, window, padding=word, **options), X)
    np.testing.assert_allclose(got, run(nn.Conv(4, window, **options), jnp.asarray(padded)), atol=1e-5)
    if strides == 1:
        assert got.shape[1:3] == X.shape[1:3]


def test_the_layout_says_which_axes_are_padded():
    last = run(nn.Conv(4, (3, 3), padding="CIRCULAR", kernel_spec="OHWI"), X)
    first = run(
        nn.Conv(4, (3, 3), padding="CIRCULAR", input_spec="CHW", kernel_spec="OHWI"), jnp.moveaxis(X, -1, 1)
    )
    np.testing.assert_allclose(jnp.moveaxis(first, 1, -1), last, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"dilation": 2}, {"strides": 2}, {"input_spec": "CW"}])
def test_causal_outputs_ignore_later_inputs(options):
    x = X[0]  # (6, 5, 3): a batch of sequences
    x = jnp.moveaxis(x, -1, 1) if "input_spec" in options else x
    layer = nn.Conv(4, (3,), padding="causal", **options)
    time = 2 if "input_spec" in options else 1
    trainables, _ = layer.init(jax.random.key(0), x)
    y, _ = layer.fwd(x, trainables, ())
    early = jax.lax.slice_in_dim(x, 0, 3, axis=time)
    short, _ = layer.fwd(early, trainables, ())
    np.testing.assert_allclose(jax.lax.slice_in_dim(y, 0, short.shape[time], axis=time), short, atol=1e-6)
    if "strides" not in options:
        assert y.shape[time] == x.shape[time]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: nn.Conv(4, (3, 3), padding="CAUSAL"), r"Conv: padding='CAUSAL' is for sequences, .* got \(3, 3\)"),
        (lambda: nn.Conv(4, (3,), padding="WRAP"), "Conv: padding must be 'VALID', .*'CIRCULAR', 'REFLECT', 'CAUSAL'"),
        (lambda: nn.ConvTranspose(4, (3,), padding="CIRCULAR"), "ConvTranspose: padding must be 'VALID'"),
        (lambda: nn.MaxPool((2,), padding="REFLECT"), "MaxPool: padding must be 'VALID'"),
    ],
)  # fmt: skip
def test_wrong_words(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
