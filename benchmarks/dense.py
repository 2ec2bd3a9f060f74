"""A stack of affine layers with an activation between them, as each contender writes it.

All train by SGD with momentum on the cross-entropy, and all donate the old weights. Peers are imported late.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

MOMENTUM = 0.9


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


def cross_entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def on_device(tree):
    """Fresh arrays each time, since they will be donated."""
    return jax.tree.map(lambda leaf: jnp.array(leaf, copy=True), tree)


def contenders(activation):
    """All of them, for stacks with this activation."""
    return {
        name: functools.partial(contender, activation)
        for name, contender in {
            "by hand": by_hand,
            "mlax_tutorial": mlax_tutorial,
            "Flax Linen": flax_linen,
            "Haiku": haiku,
            "Equinox": equinox,
            "Equinox, flattened": equinox_flattened,
            "Flax NNX": flax_nnx,
            "Flax NNX, split once": flax_nnx_split,
        }.items()
    }


def by_hand(activation, weights, batch, tally):
    def loss_fn(layers, x, labels):
        tally()
        for kernel, bias in layers[:-1]:
            x = activation(x @ kernel + bias)
        kernel, bias = layers[-1]
        logits = x @ kernel + bias
        picked = jnp.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
        return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - picked)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def train_step(layers, velocities, learning_rate, x, labels):
        loss, gradients = jax.value_and_grad(loss_fn)(layers, x, labels)
        velocities = jax.tree.map(lambda v, g: MOMENTUM * v + g, velocities, gradients)
        layers = jax.tree.map(lambda w, v: w - learning_rate * v, layers, velocities)
        return layers, velocities, loss

    x, labels = on_device(batch)

    def start(learning_rate):
        layers = on_device(tuple(weights))
        velocities, rate = jax.tree.map(jnp.zeros_like, layers), jnp.float32(learning_rate)

        def step():
            nonlocal layers, velocities
            layers, velocities, loss = train_step(layers, velocities, rate, x, labels)
            return loss

        return step

    return start


def mlax_tutorial(activation, weights, batch, tally):
    from mlax_tutorial import nn, optim, training

    stack = [layer for _, bias in weights for layer in (nn.Linear(len(bias)), nn.Bias(), nn.F(activation))][
        :-1
    ]
    model = nn.Series(*stack)

    def loss_fn(logits, labels):
        tally()
        return cross_entropy(logits, labels)

    train_step = training.make_step(model, loss_fn)
    x, labels = on_device(batch)

    def start(learning_rate):
        trainables, non_trainables = model.init(jax.random.key(0), x)
        ours = [{"kernel": kernel} if i == 0 else {"bias": bias} for kernel, bias in weights for i in (0, 1)]
        trainables = jax.tree.unflatten(jax.tree.structure(trainables), on_device(jax.tree.leaves(ours)))
        optimizer = optim.SGD(learning_rate, momentum=MOMENTUM)
        state = optimizer.init(trainables)

        def step():
            nonlocal trainables, non_trainables, state
            trainables, non_trainables, state, loss = train_step(
                optimizer, trainables, non_trainables, state, None, x, labels
            )
            return loss

        return step

    return start


def flax_linen(activation, weights, batch, tally):
    from flax import linen

    class Stack(linen.Module):
        @linen.compact
        def __call__(self, x):
            for i, (_, bias) in enumerate(weights):
                x = linen.Dense(len(bias), name=f"dense_{i}")(x)
                x = activation(x) if i < len(weights) - 1 else x
            return x

    model = Stack()
    params = {
        "params": {f"dense_{i}": {"kernel": kernel, "bias": bias} for i, (kernel, bias) in enumerate(weights)}
    }
    return with_optax(model.apply, params, batch, tally)


def haiku(activation, weights, batch, tally):
    import haiku as hk

    @hk.without_apply_rng
    @hk.transform
    def model(x):
        for i, (_, bias) in enumerate(weights):
            x = hk.Linear(len(bias), name=f"linear_{i}")(x)
            x = activation(x) if i < len(weights) - 1 else x
        return x

    params = {f"linear_{i}": {"w": kernel, "b": bias} for i, (kernel, bias) in enumerate(weights)}
    return with_optax(model.apply, params, batch, tally)


def with_optax(apply, params, batch, tally):
    """What Linen and Haiku have in common: a function of plain dicts, and an Optax optimizer in a closure."""

    def loss_fn(params, x, labels):
        tally()
        return cross_entropy(apply(params, x), labels)

    x, labels = on_device(batch)

    def start(learning_rate):
        optimizer = optax.sgd(learning_rate, momentum=MOMENTUM)

        @functools.partial(jax.jit, donate_argnums=(0, 1))
        def train_step(params, state, x, labels):
            loss, gradients = jax.value_and_grad(loss_fn)(params, x, labels)
            updates, state = optimizer.update(gradients, state, params)
            return optax.apply_updates(params, updates), state, loss

        now = on_device(params)
        state = optimizer.init(now)

        def step():
            nonlocal now, state
            now, state, loss = train_step(now, state, x, labels)
            return loss

        return step

    return start


def equinox_model(activation, weights):
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
    return Stack(layers)


def equinox(activation, weights, batch, tally):
    import equinox as eqx

    @eqx.filter_value_and_grad
    def loss_and_gradients(model, x, labels):
        tally()
        return cross_entropy(jax.vmap(model)(x), labels)

    first = equinox_model(activation, weights)
    x, labels = on_device(batch)

    def start(learning_rate):
        optimizer = optax.sgd(learning_rate, momentum=MOMENTUM)

        @eqx.filter_jit(donate="all-except-first")
        def train_step(batch, model, state):
            loss, gradients = loss_and_gradients(model, *batch)
            updates, state = optimizer.update(gradients, state, eqx.filter(model, eqx.is_inexact_array))
            return eqx.apply_updates(model, updates), state, loss

        model = on_device(first)
        state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

        def step():
            nonlocal model, state
            model, state, loss = train_step((x, labels), model, state)
            return loss

        return step

    return start


def equinox_flattened(activation, weights, batch, tally):
    """As in Equinox's documentation, under *Low-overhead training loops*."""
    import equinox as eqx

    @eqx.filter_value_and_grad
    def loss_and_gradients(model, x, labels):
        tally()
        return cross_entropy(jax.vmap(model)(x), labels)

    first = equinox_model(activation, weights)
    x, labels = on_device(batch)

    def start(learning_rate):
        optimizer = optax.sgd(learning_rate, momentum=MOMENTUM)
        model = on_device(first)
        leaves, structure = jax.tree.flatten((model, optimizer.init(eqx.filter(model, eqx.is_inexact_array))))

        @functools.partial(jax.jit, donate_argnums=0)
        def train_step(leaves, x, labels):
            model, state = jax.tree.unflatten(structure, leaves)
            loss, gradients = loss_and_gradients(model, x, labels)
            updates, state = optimizer.update(gradients, state, model)
            return jax.tree.leaves((eqx.apply_updates(model, updates), state)), loss

        def step():
            nonlocal leaves
            leaves, loss = train_step(leaves, x, labels)
            return loss

        return step

    return start


def nnx_model(activation, weights):
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


def nnx_step(tally):
    from flax import nnx

    def train_step(model, optimizer, x, labels):
        def loss_fn(model):
            tally()
            return cross_entropy(model(x), labels)

        loss, gradients = nnx.value_and_grad(loss_fn)(model)
        optimizer.update(model, gradients)
        return loss

    return train_step


def flax_nnx(activation, weights, batch, tally):
    from flax import nnx

    train_step = nnx.jit(nnx_step(tally), donate_argnums=(0, 1))
    x, labels = on_device(batch)

    def start(learning_rate):
        model = nnx_model(activation, weights)
        optimizer = nnx.Optimizer(model, optax.sgd(learning_rate, momentum=MOMENTUM), wrt=nnx.Param)
        return lambda: train_step(model, optimizer, x, labels)

    return start


def flax_nnx_split(activation, weights, batch, tally):
    """As in Flax's documentation, under *Performance considerations*: a functional training loop."""
    from flax import nnx

    update = nnx_step(tally)
    x, labels = on_device(batch)

    def start(learning_rate):
        model = nnx_model(activation, weights)
        optimizer = nnx.Optimizer(model, optax.sgd(learning_rate, momentum=MOMENTUM), wrt=nnx.Param)
        structure, state = nnx.split((model, optimizer))

        @functools.partial(jax.jit, donate_argnums=0)
        def train_step(state, x, labels):
            model, optimizer = nnx.merge(structure, state)
            loss = update(model, optimizer, x, labels)
            return nnx.state((model, optimizer)), loss

        def step():
            nonlocal state
            state, loss = train_step(state, x, labels)
            return loss

        return step

    return start
