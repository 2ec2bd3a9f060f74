"""Adam alone, over many small weights: what a weight costs to pass through an optimizer."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks import loops
from benchmarks.workload import Workload


def weights(layers=500):
    rng = np.random.default_rng(0)

    def normal(*shape):
        return rng.normal(size=shape).astype(np.float32)

    return [(normal(32, 32), normal(32)) for _ in range(layers)]


def batch():
    """The gradients are made from the weights, once: there is no data."""
    return np.zeros(0, np.float32), np.zeros(0, np.int32)


def gradients_of(weights):
    return jax.tree.map(lambda weight: jnp.cos(100 * jnp.asarray(weight)), weights)


def a_sum(weights):
    """In place of a loss: a few of the new weights."""
    leaves = jax.tree.leaves(weights)
    return jnp.sum(leaves[0]) + jnp.sum(leaves[-1])


def by_hand(weights, batch, tally):
    gradients = gradients_of(weights)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def train_step(weights, state, gradients, learning_rate):
        tally()
        weights, state = loops.ADAM.update(weights, state, gradients, learning_rate)
        return weights, state, a_sum(weights)

    first = weights

    def start(learning_rate):
        weights, rate = loops.on_device(first), jnp.float32(learning_rate)
        state = loops.ADAM.init(weights)

        def step():
            nonlocal weights, state
            weights, state, loss = train_step(weights, state, gradients, rate)
            return loss

        return loops.Run(step, lambda: train_step.lower(weights, state, gradients, rate))

    return start


def ours(algorithm, weights, batch, tally):
    """As `training.make_step` does it: leaves cross `jax.jit` flat."""
    from mlax_tutorial import optim, training

    first = tuple(({"kernel": kernel}, {"bias": bias}) for kernel, bias in weights)
    gradients, structure = jax.tree.flatten(gradients_of(first))

    @functools.partial(jax.jit, donate_argnums=1)
    def train_step(optimizer, state, gradients):
        tally()
        trainables, _, optimizer_state = state
        gradients = jax.tree.unflatten(structure, gradients)
        updates, optimizer_state = optimizer.step(gradients, optimizer_state, trainables)
        trainables = optim.apply_updates(trainables, updates)
        return training.State(trainables, (), optimizer_state), a_sum(trainables)

    def start(learning_rate):
        trainables, optimizer = loops.on_device(first), algorithm.ours(learning_rate)
        state = training.State(trainables, (), optimizer.init(trainables))

        def step():
            nonlocal state
            state, loss = train_step(optimizer, state, gradients)
            return loss

        return loops.Run(step, lambda: train_step.lower(optimizer, state, gradients))

    return start


def with_optax(names, weights, batch, tally):
    """Linen's and Haiku's dicts of dicts."""
    first = {f"dense_{i:03}": dict(zip(names, layer)) for i, layer in enumerate(weights)}
    gradients = gradients_of(first)

    def start(learning_rate):
        optimizer = loops.ADAM.optax(learning_rate)

        @functools.partial(jax.jit, donate_argnums=(0, 1))
        def train_step(params, state, gradients):
            tally()
            updates, state = optimizer.update(gradients, state, params)
            params = optax.apply_updates(params, updates)
            return params, state, a_sum([params["dense_000"][names[0]], last(params)[names[1]]])

        params = loops.on_device(first)
        state = optimizer.init(params)

        def step():
            nonlocal params, state
            params, state, loss = train_step(params, state, gradients)
            return loss

        return loops.Run(step, lambda: train_step.lower(params, state, gradients))

    def last(params):
        return params[f"dense_{len(weights) - 1:03}"]

    return start


@functools.cache
def equinox_classes():
    import equinox as eqx

    class Layer(eqx.Module):
        weight: jax.Array
        bias: jax.Array

    class Stack(eqx.Module):
        layers: list

    return Stack, Layer


def equinox_model(weights):
    Stack, Layer = equinox_classes()
    return Stack([Layer(jnp.array(kernel), jnp.array(bias)) for kernel, bias in weights])


def equinox(flattened, weights, batch, tally):
    import equinox as eqx

    gradients = gradients_of(equinox_model(weights))

    def update(optimizer, model, state, gradients):
        tally()
        updates, state = optimizer.update(gradients, state, model)
        model = eqx.apply_updates(model, updates)
        return model, state, a_sum(model)

    def start(learning_rate):
        optimizer, model = loops.ADAM.optax(learning_rate), equinox_model(weights)
        state = optimizer.init(model)

        @eqx.filter_jit(donate="all-except-first")
        def train_step(gradients, model, state):
            return update(optimizer, model, state, gradients)

        def step():
            nonlocal model, state
            model, state, loss = train_step(gradients, model, state)
            return loss

        return loops.Run(step, lambda: train_step.lower(gradients, model, state).lowered)

    def start_flattened(learning_rate):
        optimizer, model = loops.ADAM.optax(learning_rate), equinox_model(weights)
        leaves, structure = jax.tree.flatten((model, optimizer.init(model)))
        flat_gradients = jax.tree.leaves(gradients)

        @functools.partial(jax.jit, donate_argnums=0)
        def train_step(leaves, flat_gradients):
            model, state = jax.tree.unflatten(structure, leaves)
            gradients = jax.tree.unflatten(jax.tree.structure(model), flat_gradients)
            model, state, loss = update(optimizer, model, state, gradients)
            return jax.tree.leaves((model, state)), loss

        def step():
            nonlocal leaves
            leaves, loss = train_step(leaves, flat_gradients)
            return loss

        return loops.Run(step, lambda: train_step.lower(leaves, flat_gradients))

    return start_flattened if flattened else start


def nnx(split, weights, batch, tally):
    from flax import nnx

    class Layer(nnx.Module):
        def __init__(self, kernel, bias):
            self.kernel, self.bias = nnx.Param(jnp.array(kernel)), nnx.Param(jnp.array(bias))

    class Stack(nnx.Module):
        def __init__(self):
            self.layers = nnx.List([Layer(*layer) for layer in weights])

    gradients = gradients_of(nnx.state(Stack(), nnx.Param))

    def update(model, optimizer, gradients):
        tally()
        optimizer.update(model, gradients)
        return jnp.sum(model.layers[0].kernel[...]) + jnp.sum(model.layers[-1].bias[...])

    in_place = nnx.jit(update, donate_argnums=(0, 1))

    def start(learning_rate):
        model = Stack()
        optimizer = nnx.Optimizer(model, loops.ADAM.optax(learning_rate), wrt=nnx.Param)
        return loops.Run(
            lambda: in_place(model, optimizer, gradients),
            lambda: in_place.lower(model, optimizer, gradients).lowered,
        )

    def start_split(learning_rate):
        model = Stack()
        optimizer = nnx.Optimizer(model, loops.ADAM.optax(learning_rate), wrt=nnx.Param)
        structure, state = nnx.split((model, optimizer))

        @functools.partial(jax.jit, donate_argnums=0)
        def train_step(state, gradients):
            model, optimizer = nnx.merge(structure, state)
            loss = update(model, optimizer, gradients)
            return nnx.state((model, optimizer)), loss

        def step():
            nonlocal state
            state, loss = train_step(state, gradients)
            return loss

        return loops.Run(step, lambda: train_step.lower(state, gradients))

    return start_split if split else start


WORKLOAD = Workload(
    name="adam",
    about="an Adam step alone, of 1,000 weights: 500 kernels of 32 x 32 and as many biases",
    weights=weights,
    small=functools.partial(weights, 3),
    batch=batch,
    contenders={
        "by hand": by_hand,
        "mlax_tutorial": functools.partial(ours, loops.ADAM),
        "mlax_tutorial, packed": functools.partial(ours, loops.packed(loops.ADAM)),
        "Flax Linen": functools.partial(with_optax, ("kernel", "bias")),
        "Haiku": functools.partial(with_optax, ("w", "b")),
        "Equinox": functools.partial(equinox, False),
        "Equinox, flattened": functools.partial(equinox, True),
        "Flax NNX": functools.partial(nnx, False),
        "Flax NNX, split once": functools.partial(nnx, True),
    },
    learning_rate=1e-3,
)
