"""A stack of affine layers with an activation between them, as each contender writes it.

All train by SGD with momentum on the cross-entropy. Peers are imported late.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import loops


def weights(sizes):
    """A kernel and a bias for each layer; orthogonal, so that 100 layers neither vanish nor explode."""
    rng = np.random.default_rng(0)
    layers = []
    for fan_in, fan_out in zip(sizes, sizes[1:]):
        tall, _ = np.linalg.qr(rng.normal(size=(max(fan_in, fan_out), min(fan_in, fan_out))))
        kernel, bias = tall if fan_in >= fan_out else tall.T, 0.01 * rng.normal(size=fan_out)
        layers.append((kernel.astype(np.float32), bias.astype(np.float32)))
    return layers


def batch(size, sizes):
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(size, sizes[0])).astype(np.float32)
    return x, rng.integers(sizes[-1], size=size).astype(np.int32)


def contenders(activation):
    """All of them, for stacks with this activation."""
    makers = (by_hand, ours, flax_linen, haiku, equinox, nnx)
    return loops.contenders(*(functools.partial(maker, activation) for maker in makers), algorithm=loops.SGD)


def by_hand(activation, weights):
    def apply(layers, state, key, x):
        for kernel, bias in layers[:-1]:
            x = activation(x @ kernel + bias)
        kernel, bias = layers[-1]
        return x @ kernel + bias, state

    return apply, tuple(weights), ()


def ours(activation, weights):
    from mlax_tutorial import nn

    stack = [layer for _, bias in weights for layer in (nn.Linear(len(bias)), nn.Bias(), nn.F(activation))]
    return nn.Series(*stack[:-1]), jax.tree.leaves(weights)


def flax_linen(activation, weights):
    from flax import linen

    class Stack(linen.Module):
        @linen.compact
        def __call__(self, x):
            for i, (_, bias) in enumerate(weights):
                x = linen.Dense(len(bias), name=f"dense_{i}")(x)
                x = activation(x) if i < len(weights) - 1 else x
            return x

    model = Stack()
    params = {f"dense_{i}": {"kernel": kernel, "bias": bias} for i, (kernel, bias) in enumerate(weights)}
    return lambda params, state, key, x: (model.apply(params, x), state), {"params": params}, ()


def haiku(activation, weights):
    import haiku as hk

    @hk.without_apply_rng
    @hk.transform
    def model(x):
        for i, (_, bias) in enumerate(weights):
            x = hk.Linear(len(bias), name=f"linear_{i}")(x)
            x = activation(x) if i < len(weights) - 1 else x
        return x

    params = {f"linear_{i}": {"w": kernel, "b": bias} for i, (kernel, bias) in enumerate(weights)}
    return lambda params, state, key, x: (model.apply(params, x), state), params, ()


def equinox(activation, weights):
    import equinox as eqx

    class Stack(eqx.Module):
        layers: list

        def __call__(self, x):
            for layer in self.layers[:-1]:
                x = activation(layer(x))
            return self.layers[-1](x)

    key = jax.random.key(0)  # its draws are replaced
    layers = [eqx.nn.Linear(*kernel.shape, key=key) for kernel, _ in weights]
    layers = [
        eqx.tree_at(
            lambda layer: (layer.weight, layer.bias), layer, (jnp.asarray(kernel.T), jnp.asarray(bias))
        )
        for layer, (kernel, bias) in zip(layers, weights)
    ]
    return lambda model, state, key, x: (jax.vmap(model)(x), state), Stack(layers), ()


def nnx(activation, weights):
    from flax import nnx

    class Stack(nnx.Module):
        def __init__(self, rngs):
            self.layers = nnx.List([nnx.Linear(*kernel.shape, rngs=rngs) for kernel, _ in weights])

        def __call__(self, x):
            for i, layer in enumerate(self.layers):
                x = activation(layer(x)) if i < len(self.layers) - 1 else layer(x)
            return x

    model = Stack(nnx.Rngs(0))
    for layer, (kernel, bias) in zip(model.layers, weights):
        layer.kernel[...], layer.bias[...] = jnp.asarray(kernel), jnp.asarray(bias)
    return model
