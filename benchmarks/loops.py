"""Training loops: how each contender trains a model, whatever the model is.

A loop takes a model in its library's form and returns ``start(learning_rate)``, which makes a :class:`Run`. All
minimize the cross-entropy of the outputs, all donate what they replace, and all get their keys from `keys_for`, except
for NNX, whose models count their own. Peers are imported late.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

MOMENTUM = 0.9
FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-8


@dataclasses.dataclass(frozen=True)
class Run:
    """A training run.

    Attributes:
      step: does one step, and returns its loss.
      lower: returns the program of a step, to be compiled and looked at.
    """

    step: Callable[[], jax.Array]
    lower: Callable[[], jax.stages.Lowered]


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """One optimizer, as each contender has it.

    Attributes:
      init: by hand: weights to state.
      update: by hand: ``(weights, state, gradients, learning_rate) -> (weights, state)``.
      ours, optax: a learning rate to an optimizer.
    """

    init: Callable
    update: Callable
    ours: Callable
    optax: Callable


def _ours(name, **options):
    def make(learning_rate):
        from mlax_tutorial import optim

        return getattr(optim, name)(learning_rate, **options)

    return make


def _sgd(weights, velocities, gradients, learning_rate):
    velocities = jax.tree.map(lambda v, g: MOMENTUM * v + g, velocities, gradients)
    return jax.tree.map(lambda w, v: w - learning_rate * v, weights, velocities), velocities


def _adam_init(weights):
    return jnp.int32(0), jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights)


def _adam(weights, state, gradients, learning_rate):
    count, first, second = state
    count = count + 1
    first = jax.tree.map(lambda m, g: FIRST_DECAY * m + (1 - FIRST_DECAY) * g, first, gradients)
    second = jax.tree.map(lambda v, g: SECOND_DECAY * v + (1 - SECOND_DECAY) * g**2, second, gradients)
    first_correction = 1 - jnp.float32(FIRST_DECAY) ** count
    second_correction = 1 - jnp.float32(SECOND_DECAY) ** count

    def descend(w, m, v):
        return w - learning_rate * (m / first_correction) / (jnp.sqrt(v / second_correction) + EPSILON)

    return jax.tree.map(descend, weights, first, second), (count, first, second)


SGD = Algorithm(
    init=lambda weights: jax.tree.map(jnp.zeros_like, weights),
    update=_sgd,
    ours=_ours("SGD", momentum=MOMENTUM),
    optax=lambda learning_rate: optax.sgd(learning_rate, momentum=MOMENTUM),
)
ADAM = Algorithm(
    init=_adam_init,
    update=_adam,
    ours=_ours("Adam", first_decay=FIRST_DECAY, second_decay=SECOND_DECAY, epsilon=EPSILON),
    optax=lambda learning_rate: optax.adam(learning_rate, FIRST_DECAY, SECOND_DECAY, EPSILON),
)


def cross_entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def on_device(tree):
    """Fresh arrays each time, since they will be donated."""
    return jax.tree.map(lambda leaf: jnp.array(leaf, copy=True), tree)


def keys_for(draws):
    """A key for each step, made before the clock starts; the same ones for all; ``None`` if nothing is drawn."""
    return itertools.cycle(list(jax.random.split(jax.random.key(0), 64)) if draws else [None])


def by_hand_loop(apply, algorithm, weights, state, batch, tally, draws=False):
    """Plain containers, one jitted step that donates them, the learning rate an argument.

    ``apply(weights, state, key, x) -> (outputs, state)`` computes the model.
    """

    def loss_fn(weights, state, key, x, labels):
        tally()
        logits, state = apply(weights, state, key, x)
        picked = jnp.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
        return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - picked), state

    @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
    def train_step(weights, state, moments, learning_rate, key, x, labels):
        (loss, state), gradients = jax.value_and_grad(loss_fn, has_aux=True)(weights, state, key, x, labels)
        weights, moments = algorithm.update(weights, moments, gradients, learning_rate)
        return weights, state, moments, loss

    x, labels = on_device(batch)
    first = weights, state

    def start(learning_rate):
        weights, state = on_device(first)
        moments, rate, keys = algorithm.init(weights), jnp.float32(learning_rate), keys_for(draws)

        def step():
            nonlocal weights, state, moments
            weights, state, moments, loss = train_step(weights, state, moments, rate, next(keys), x, labels)
            return loss

        return Run(step, lambda: train_step.lower(weights, state, moments, rate, next(keys), x, labels))

    return start


def packed(algorithm):
    """The same algorithm; ours works on all weights as one vector."""

    def make(learning_rate):
        from mlax_tutorial import packing

        return packing.Packed(algorithm.ours(learning_rate))

    return dataclasses.replace(algorithm, ours=make)


def ours_loop(model, algorithm, leaves, batch, tally, draws=False):
    """`training.make_step`, as a reader would use it. ``leaves`` are the first trainables, in the order of the tree."""
    from mlax_tutorial import training

    def loss_fn(logits, labels):
        tally()
        return cross_entropy(logits, labels)

    train_step = training.make_step(model, loss_fn)
    x, labels = on_device(batch)

    def start(learning_rate):
        trainables, non_trainables = model.init(jax.random.key(0), x)
        wanted, structure = jax.tree.flatten(trainables)
        assert [leaf.shape for leaf in wanted] == [leaf.shape for leaf in leaves], "weights of another model"
        trainables = jax.tree.unflatten(structure, on_device(list(leaves)))
        optimizer, keys = algorithm.ours(learning_rate), keys_for(draws)
        state = training.State(trainables, non_trainables, optimizer.init(trainables))

        def step():
            nonlocal state
            state, loss = train_step(optimizer, state, next(keys), x, labels)
            return loss

        def lower():
            program = jax.jit(train_step, donate_argnums=1)
            return program.lower(optimizer, state, next(keys), x, labels)

        return Run(step, lower)

    return start


def optax_loop(apply, algorithm, params, state, batch, tally, draws=False):
    """What Linen and Haiku have in common: a function of plain dicts, and an Optax optimizer in a closure."""

    def loss_fn(params, state, key, x, labels):
        tally()
        logits, state = apply(params, state, key, x)
        return cross_entropy(logits, labels), state

    x, labels = on_device(batch)
    first = params, state

    def start(learning_rate):
        optimizer = algorithm.optax(learning_rate)

        @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
        def train_step(params, state, moments, key, x, labels):
            (loss, state), gradients = jax.value_and_grad(loss_fn, has_aux=True)(
                params, state, key, x, labels
            )
            updates, moments = optimizer.update(gradients, moments, params)
            return optax.apply_updates(params, updates), state, moments, loss

        params, state = on_device(first)
        moments, keys = optimizer.init(params), keys_for(draws)

        def step():
            nonlocal params, state, moments
            params, state, moments, loss = train_step(params, state, moments, next(keys), x, labels)
            return loss

        return Run(step, lambda: train_step.lower(params, state, moments, next(keys), x, labels))

    return start


def equinox_loop(forward, algorithm, model, state, batch, tally, draws=False):
    """As in Equinox's introductions. ``forward(model, state, key, x) -> (outputs, state)``, for a batch."""
    import equinox as eqx

    loss_and_gradients = _equinox_loss(forward, tally)
    x, labels = on_device(batch)
    first = model, state

    def start(learning_rate):
        optimizer = algorithm.optax(learning_rate)

        @eqx.filter_jit(donate="all-except-first")
        def train_step(batch, model, state, moments):
            (loss, state), gradients = loss_and_gradients(model, state, *batch)
            updates, moments = optimizer.update(gradients, moments, eqx.filter(model, eqx.is_inexact_array))
            return eqx.apply_updates(model, updates), state, moments, loss

        model, state = _equinox_copy(first)
        moments, keys = optimizer.init(eqx.filter(model, eqx.is_inexact_array)), keys_for(draws)

        def step():
            nonlocal model, state, moments
            model, state, moments, loss = train_step((next(keys), x, labels), model, state, moments)
            return loss

        return Run(step, lambda: train_step.lower((next(keys), x, labels), model, state, moments).lowered)

    return start


def equinox_flattened_loop(forward, algorithm, model, state, batch, tally, draws=False):
    """As in Equinox's documentation, under *Low-overhead training loops*."""
    import equinox as eqx

    loss_and_gradients = _equinox_loss(forward, tally)
    x, labels = on_device(batch)
    first = model, state

    def start(learning_rate):
        optimizer = algorithm.optax(learning_rate)
        model, state = _equinox_copy(first)
        moments, keys = optimizer.init(eqx.filter(model, eqx.is_inexact_array)), keys_for(draws)
        arrays, rest = eqx.partition((model, state, moments), eqx.is_array)
        leaves, structure = jax.tree.flatten(arrays)

        @functools.partial(jax.jit, donate_argnums=0)
        def train_step(leaves, key, x, labels):
            model, state, moments = eqx.combine(jax.tree.unflatten(structure, leaves), rest)
            (loss, state), gradients = loss_and_gradients(model, state, key, x, labels)
            updates, moments = optimizer.update(gradients, moments, eqx.filter(model, eqx.is_inexact_array))
            changed = eqx.apply_updates(model, updates), state, moments
            return jax.tree.leaves(eqx.filter(changed, eqx.is_array)), loss

        def step():
            nonlocal leaves
            leaves, loss = train_step(leaves, next(keys), x, labels)
            return loss

        return Run(step, lambda: train_step.lower(leaves, next(keys), x, labels))

    return start


def _equinox_copy(tree):
    return jax.tree.map(
        lambda leaf: jnp.array(leaf, copy=True) if isinstance(leaf, jax.Array) else leaf, tree
    )


def _equinox_loss(forward, tally):
    import equinox as eqx

    @functools.partial(eqx.filter_value_and_grad, has_aux=True)
    def loss_and_gradients(model, state, key, x, labels):
        tally()
        logits, state = forward(model, state, key, x)
        return cross_entropy(logits, labels), state

    return loss_and_gradients


def _nnx_step(tally):
    from flax import nnx

    def train_step(model, optimizer, x, labels):
        def loss_fn(model):
            tally()
            return cross_entropy(model(x), labels)

        loss, gradients = nnx.value_and_grad(loss_fn)(model)
        optimizer.update(model, gradients)
        return loss

    return train_step


def nnx_loop(make_model, algorithm, batch, tally):
    """As in NNX's introductions."""
    from flax import nnx

    train_step = nnx.jit(_nnx_step(tally), donate_argnums=(0, 1))
    x, labels = on_device(batch)

    def start(learning_rate):
        model = make_model()
        optimizer = nnx.Optimizer(model, algorithm.optax(learning_rate), wrt=nnx.Param)
        return Run(
            lambda: train_step(model, optimizer, x, labels),
            lambda: train_step.lower(model, optimizer, x, labels).lowered,
        )

    return start


def nnx_split_loop(make_model, algorithm, batch, tally):
    """As in Flax's documentation, under *Performance considerations*: a functional training loop."""
    from flax import nnx

    update = _nnx_step(tally)
    x, labels = on_device(batch)

    def start(learning_rate):
        model = make_model()
        optimizer = nnx.Optimizer(model, algorithm.optax(learning_rate), wrt=nnx.Param)
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

        return Run(step, lambda: train_step.lower(state, x, labels))

    return start


def contenders(by_hand, ours, flax_linen, haiku, equinox, nnx, algorithm, draws=False):
    """All contenders of a workload, from one function a library that makes the model from the weights.

    Args:
      by_hand, flax_linen, haiku: ``weights -> (apply, params, state)``.
      ours: ``weights -> (model, leaves)``.
      equinox: ``weights -> (forward, model, state)``.
      nnx: ``weights -> model``.
      algorithm: the optimizer.
      draws: whether a step needs a key.
    """

    def functional(loop, make):
        def contender(weights, batch, tally):
            model, *variables = make(weights)
            return loop(model, algorithm, *variables, batch, tally, draws)

        return contender

    def with_ours(algorithm):
        def contender(weights, batch, tally):
            model, leaves = ours(weights)
            return ours_loop(model, algorithm, leaves, batch, tally, draws)

        return contender

    def with_nnx(loop):
        return lambda weights, batch, tally: loop(functools.partial(nnx, weights), algorithm, batch, tally)

    return {
        "by hand": functional(by_hand_loop, by_hand),
        "mlax_tutorial": with_ours(algorithm),
        "mlax_tutorial, packed": with_ours(packed(algorithm)),
        "Flax Linen": functional(optax_loop, flax_linen),
        "Haiku": functional(optax_loop, haiku),
        "Equinox": functional(equinox_loop, equinox),
        "Equinox, flattened": functional(equinox_flattened_loop, equinox),
        "Flax NNX": with_nnx(nnx_loop),
        "Flax NNX, split once": with_nnx(nnx_split_loop),
    }
