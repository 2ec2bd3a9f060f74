"""A bidirectional LSTM that classifies sequences: a loop of 128 rounds, in each a small product and cheap arithmetic.

The gates stand in the order input, forget, cell, output.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks import loops
from benchmarks.workload import Workload

FEATURES, LENGTH, CLASSES = 64, 128, 10
DIRECTIONS = ("forward", "backward")


def weights(hidden=128):
    rng = np.random.default_rng(0)

    def uniform(*shape):
        return rng.uniform(-(hidden**-0.5), hidden**-0.5, size=shape).astype(np.float32)

    return {
        "forward": (uniform(FEATURES, 4 * hidden), uniform(hidden, 4 * hidden), uniform(4 * hidden)),
        "backward": (uniform(FEATURES, 4 * hidden), uniform(hidden, 4 * hidden), uniform(4 * hidden)),
        "head": (uniform(2 * hidden, CLASSES), uniform(CLASSES)),
    }


def batch(size):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(size, LENGTH, FEATURES)).astype(np.float32)
    return x, rng.integers(CLASSES, size=size).astype(np.int32)


def mean_over_time(x):
    return jnp.mean(x, axis=-2)


def by_hand(weights):
    def lstm(x, kernel, recurrent_kernel, bias, reverse):
        def cell(carry, x):
            h, c = carry
            i, f, g, o = jnp.split(x @ kernel + h @ recurrent_kernel + bias, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((x.shape[1], recurrent_kernel.shape[0]), x.dtype)
        return lax.scan(cell, (zeros, zeros), x, reverse=reverse)[1]

    def apply(weights, state, key, x):
        x = jnp.swapaxes(x, 0, 1)
        both = [lstm(x, *weights[name], reverse=name == "backward") for name in DIRECTIONS]
        kernel, bias = weights["head"]
        return jnp.mean(jnp.concatenate(both, axis=-1), axis=0) @ kernel + bias, state

    return apply, weights, ()


def ours(weights):
    from mlax_tutorial import nn

    hidden = weights["forward"][1].shape[0]
    lstm = nn.Bidirectional(nn.LSTMCell(hidden))
    model = nn.Series(lstm, nn.F(mean_over_time), nn.Linear(CLASSES), nn.Bias())
    cells = {}
    for name in DIRECTIONS:
        kernel, recurrent_kernel, bias = weights[name]
        cells[name] = {"input_kernel": kernel, "recurrent_kernel": recurrent_kernel, "bias": bias}
    return model, jax.tree.leaves((cells, weights["head"]))


def flax_linen(weights):
    from flax import linen

    hidden = weights["forward"][1].shape[0]

    class BiLSTM(linen.Module):
        @linen.compact
        def __call__(self, x):
            both = [linen.RNN(linen.OptimizedLSTMCell(hidden, name=name)) for name in DIRECTIONS]
            return linen.Dense(CLASSES, name="head")(jnp.mean(linen.Bidirectional(*both)(x), axis=1))

    model, params = BiLSTM(), {"head": dict(zip(("kernel", "bias"), weights["head"]))}
    for name in DIRECTIONS:
        kernel, recurrent_kernel, bias = (np.split(array, 4, axis=-1) for array in weights[name])
        params[name] = {f"i{gate}": {"kernel": kernel[i]} for i, gate in enumerate("ifgo")}
        params[name] |= {
            f"h{gate}": {"kernel": recurrent_kernel[i], "bias": bias[i]} for i, gate in enumerate("ifgo")
        }

    def apply(params, state, key, x):
        return model.apply({"params": params}, x), state

    return apply, params, ()


def haiku(weights):
    import haiku as hk

    hidden = weights["forward"][1].shape[0]

    @hk.without_apply_rng
    @hk.transform
    def model(x):
        x, both = jnp.swapaxes(x, 0, 1), []
        for name in DIRECTIONS:
            core = hk.LSTM(hidden, name=name)
            begin = core.initial_state(x.shape[1])
            both.append(hk.dynamic_unroll(core, x, begin, reverse=name == "backward")[0])
        return hk.Linear(CLASSES, name="head")(jnp.mean(jnp.concatenate(both, axis=-1), axis=0))

    params = {"head": dict(zip(("w", "b"), weights["head"]))}
    for name in DIRECTIONS:
        kernel, recurrent_kernel, bias = weights[name]
        i, f, g, o = np.split(np.concatenate([kernel, recurrent_kernel, bias[None]]), 4, axis=-1)
        f[-1] -= 1  # Haiku's cell adds it again
        stacked = np.concatenate([i, g, f, o], axis=-1)
        params[f"{name}/linear"] = {"w": stacked[:-1], "b": stacked[-1]}

    def apply(params, state, key, x):
        return model.apply(params, x), state

    return apply, params, ()


def equinox(weights):
    import equinox as eqx

    key = jax.random.key(0)  # its draws are replaced

    class BiLSTM(eqx.Module):
        forward: eqx.nn.LSTMCell
        backward: eqx.nn.LSTMCell
        head: eqx.nn.Linear

        def __call__(self, x):
            def lstm(cell, reverse):
                def step(carry, x):
                    carry = cell(x, carry)
                    return carry, carry[0]

                zeros = jnp.zeros(cell.hidden_size, x.dtype)
                return lax.scan(step, (zeros, zeros), x, reverse=reverse)[1]

            both = [lstm(self.forward, False), lstm(self.backward, True)]
            return self.head(jnp.mean(jnp.concatenate(both, axis=-1), axis=0))

    def cell(kernel, recurrent_kernel, bias):
        layer = eqx.nn.LSTMCell(kernel.shape[0], recurrent_kernel.shape[0], key=key)
        first = jnp.asarray(kernel.T), jnp.asarray(recurrent_kernel.T), jnp.asarray(bias)
        return eqx.tree_at(lambda layer: (layer.weight_ih, layer.weight_hh, layer.bias), layer, first)

    kernel, bias = map(jnp.asarray, weights["head"])
    head = eqx.nn.Linear(*kernel.shape, key=key)
    head = eqx.tree_at(lambda layer: (layer.weight, layer.bias), head, (kernel.T, bias))
    model = BiLSTM(*(cell(*weights[name]) for name in DIRECTIONS), head)
    return lambda model, state, key, x: (jax.vmap(model)(x), state), model, ()


def nnx(weights):
    from flax import nnx

    rngs = nnx.Rngs(0)  # its draws are replaced

    def lstm(kernel, recurrent_kernel, bias):
        cell = nnx.OptimizedLSTMCell(kernel.shape[0], recurrent_kernel.shape[0], rngs=rngs)
        cell.dense_i.kernel[...] = jnp.asarray(kernel)
        cell.dense_h.kernel[...], cell.dense_h.bias[...] = jnp.asarray(recurrent_kernel), jnp.asarray(bias)
        return nnx.RNN(cell, rngs=rngs)

    class BiLSTM(nnx.Module):
        def __init__(self):
            self.lstm = nnx.Bidirectional(*(lstm(*weights[name]) for name in DIRECTIONS), rngs=rngs)
            kernel, bias = weights["head"]
            self.head = nnx.Linear(*kernel.shape, rngs=rngs)
            self.head.kernel[...], self.head.bias[...] = jnp.asarray(kernel), jnp.asarray(bias)

        def __call__(self, x):
            return self.head(jnp.mean(self.lstm(x), axis=1))

    return BiLSTM()


WORKLOAD = Workload(
    name="bilstm",
    about="an Adam step of a bidirectional LSTM of 128 units, 64 sequences of 128 with 64 features",
    weights=weights,
    small=lambda: weights(8),
    batch=lambda: batch(64),
    contenders=loops.contenders(by_hand, ours, flax_linen, haiku, equinox, nnx, algorithm=loops.ADAM),
    learning_rate=1e-3,
)
