"""*Recurrent layers*: the cells that its reader writes obey the laws, remember, and read what is padded."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn, viz
from mlax_tutorial.checking import laws
from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    return assembled.definitions(
        "book/recurrent.ipynb",
        "RNNCell",
        "LSTMCell",
        "read",
        "read_masked",
        "which_first",
        "fit_first",
        "accuracy_of_counts",
        "residual_bytes",
        "again",
        "by_tens",
    )


# What is left out is tested on the package's own cells; the others are those that a cell can break.
COSTLY = {"gradients", "init sharded", "scan and checkpoint", "shard_map", "vmap equals loop"}


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell"])
def test_the_readers_cells_obey_the_laws(code, name):
    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4)
    report = laws.report(nn.Recurrent(code[name](2)), x, but=COSTLY)
    assert not report.broken, report


def test_the_readers_lstm_computes_what_the_package_does(code):
    x = jax.random.normal(jax.random.key(0), (2, 5, 3))
    trainables, _ = nn.LSTMCell(4).init(jax.random.key(1), x[:, 0])
    ours, _ = nn.Recurrent(code["LSTMCell"](4)).fwd(x, trainables, ())
    theirs, _ = nn.Recurrent(nn.LSTMCell(4)).fwd(x, trainables, ())
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    made, _ = code["LSTMCell"](4).init(jax.random.key(1), x[:, 0])
    assert jax.tree.map(jnp.shape, made) == jax.tree.map(jnp.shape, trainables)
    np.testing.assert_array_equal(made["bias"], trainables["bias"])


def test_the_readers_lstm_remembers(code):
    ids, labels = code["which_first"](jax.random.key(5), 160 * 64)
    batches = ids.reshape(160, 64, -1), labels.reshape(160, 64)
    _, right = code["fit_first"](code["LSTMCell"](32, 1.0), batches)
    _, forgot = code["fit_first"](code["LSTMCell"](32, 0.0), batches)
    assert right > 0.9 and forgot < 0.65
    two = jax.nn.initializers.constant(2.0)
    _, right = code["fit_first"](nn.GRUCell(32, update_bias_initializer=two), batches)
    assert right > 0.8


def test_chunks_of_steps_give_the_same_with_fewer_residuals(code):
    cell, x = code["LSTMCell"](4), jax.random.normal(jax.random.key(0), (20, 2, 3))
    trainables, _ = cell.init(jax.random.key(1), x[0])

    def loss(trainables, scan):
        step = lambda carry, x_t: cell.step(carry, x_t, trainables)  # noqa: E731
        carry, y = scan(step, cell.init_carry(x[0]), x)
        return jnp.sum(y**2) + jnp.sum(carry[1])

    plain, *others = (
        jax.value_and_grad(loss)(trainables, scan) for scan in (jax.lax.scan, code["again"], code["by_tens"])
    )
    for other in others:
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), plain, other)
    counts = [
        code["residual_bytes"](cell, 100, scan) for scan in (jax.lax.scan, code["again"], code["by_tens"])
    ]
    assert counts[0] > 3 * counts[1] > 9 * counts[2] / 2


def test_nan_in_the_padding_stays_out_of_states_and_outputs(code):
    cell, x = code["RNNCell"](4), jax.random.normal(jax.random.key(0), (6, 2, 3))
    trainables, _ = cell.init(jax.random.key(1), x[0])
    state, y = code["read_masked"](cell, trainables, x.at[2:, 1].set(jnp.nan), jnp.array([6, 2]))
    assert np.all(np.isfinite(state)) and not np.any(y[2:, 1])


def test_what_is_padded_is_read_as_if_alone(code):
    cell, x = code["RNNCell"](4), jax.random.normal(jax.random.key(0), (6, 2, 3))
    trainables, _ = cell.init(jax.random.key(1), x[0])
    lengths = jnp.array([6, 2])
    state, y = code["read_masked"](cell, trainables, x, lengths)
    alone, _ = code["read"](cell, trainables, x[:2, 1])
    np.testing.assert_allclose(state[1], alone, atol=1e-5)
    assert not np.any(y[2:, 1]) and np.all(np.any(y[:, 0], axis=-1))


def test_counting_finds_what_a_letter_tells(code):
    train = ["aab", "aba", "ccb", "bcc"], [0, 0, 1, 1]
    assert code["accuracy_of_counts"](train, (["aa", "cc"], [0, 1]), 1) == 1


def test_the_readers_cells_can_be_looked_at(code):
    x = jax.random.normal(jax.random.key(0), (5, 3))
    cell = code["LSTMCell"](4)
    figure = viz.gates(cell, cell.init(jax.random.key(1), x[0])[0], x)
    assert list(figure.values) == ["gate 1", "gate 2", "gate 3", "h", "c"]
