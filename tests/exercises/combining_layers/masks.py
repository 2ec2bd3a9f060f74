"""Answers to the exercise combining_layers.masks."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.combining_layers.masks import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def dropped(x, key):
    return jnp.where(jax.random.bernoulli(key, 0.5, x.shape), x / 0.5, 0.0)


@answers.wrong("Within a layer all examples of the batch")
def as_it_was(x, kernels, key=None):
    for kernel in kernels:
        x = jax.nn.relu(x @ kernel)
        if key is not None:
            mask = jax.random.bernoulli(key, 0.5, (x.shape[-1],))
            x = jnp.where(mask, x / 0.5, 0.0)
    return x


@answers.wrong("what one layer keeps, another one keeps")
def one_key(x, kernels, key=None):
    for kernel in kernels:
        x = jax.nn.relu(x @ kernel)
        if key is not None:
            x = dropped(x, key)
    return x


@answers.wrong("`fold_in` does not count as a use")
def by_fold_in(x, kernels, key=None):
    for i, kernel in enumerate(kernels):
        x = jax.nn.relu(x @ kernel)
        if key is not None:
            x = dropped(x, jax.random.fold_in(key, i))
    return x


@answers.wrong("A random key is used twice")
def splits_the_old_key(x, kernels, key=None):
    for kernel in kernels:
        x = jax.nn.relu(x @ kernel)
        if key is not None:
            x = dropped(x, key)
            key, _ = jax.random.split(key)
    return x


@answers.wrong("here other factors come out")
def not_scaled(x, kernels, key=None):
    keys = [None] * len(kernels) if key is None else jax.random.split(key, len(kernels))
    for kernel, layer_key in zip(kernels, keys):
        x = jax.nn.relu(x @ kernel)
        if key is not None:
            x = jnp.where(jax.random.bernoulli(layer_key, 0.5, x.shape), x, 0.0)
    return x


@answers.wrong("Called without a key")
def always_splits(x, kernels, key=None):
    for kernel, layer_key in zip(kernels, jax.random.split(key, len(kernels))):
        x = dropped(jax.nn.relu(x @ kernel), layer_key)
    return x


def keys_of(key, kernels):
    return [None] * len(kernels) if key is None else jax.random.split(key, len(kernels))


@answers.wrong("an example is dropped as a whole")
def rows_only(x, kernels, key=None):
    for kernel, layer_key in zip(kernels, keys_of(key, kernels)):
        x = jax.nn.relu(x @ kernel)
        if layer_key is not None:
            x = jnp.where(jax.random.bernoulli(layer_key, 0.5, (x.shape[0], 1)), x / 0.5, 0.0)
    return x


@answers.wrong("in front of the product")
def before_the_product(x, kernels, key=None):
    for kernel, layer_key in zip(kernels, keys_of(key, kernels)):
        if layer_key is not None:
            x = dropped(x, layer_key)
        x = jax.nn.relu(x @ kernel)
    return x


@answers.wrong("dropped only once")
def behind_the_last(x, kernels, key=None):
    for kernel in kernels:
        x = jax.nn.relu(x @ kernel)
    return x if key is None else dropped(x, key)


@answers.wrong("switches the check off")
def by_clone(x, kernels, key=None):
    key = None if key is None else jax.random.clone(key)
    for kernel, layer_key in zip(kernels, keys_of(key, kernels)):
        x = jax.nn.relu(x @ kernel)
        if layer_key is not None:
            x = dropped(x, layer_key)
    return x


@answers.wrong()
def three_keys(x, kernels, key=None):
    keys = None if key is None else jax.random.split(key, 3)
    for i, kernel in enumerate(kernels):
        x = jax.nn.relu(x @ kernel)
        if key is not None:
            x = dropped(x, keys[i])
    return x


@answers.wrong()
def fixed_key(x, kernels, key=None):
    keys = jax.random.split(jax.random.key(0), len(kernels))
    for kernel, layer_key in zip(kernels, keys):
        x = jax.nn.relu(x @ kernel)
        if key is not None:
            x = dropped(x, layer_key)
    return x


@answers.wrong()
def columns_only(x, kernels, key=None):
    keys = [None] * len(kernels) if key is None else jax.random.split(key, len(kernels))
    for kernel, layer_key in zip(kernels, keys):
        x = jax.nn.relu(x @ kernel)
        if key is not None:
            x = jnp.where(jax.random.bernoulli(layer_key, 0.5, (1, x.shape[-1])), x / 0.5, 0.0)
    return x


@answers.right
def chain_of_keys(x, kernels, key=None):
    for kernel in kernels:
        x = jax.nn.relu(x @ kernel)
        if key is not None:
            key, layer_key = jax.random.split(key)
            x = dropped(x, layer_key)
    return x


@answers.right
def all_masks_at_once(x, kernels, key=None):
    if key is None:
        masks = [1.0] * len(kernels)
    else:
        masks = 2.0 * jax.random.bernoulli(key, 0.5, (len(kernels), *x.shape))
    for kernel, mask in zip(kernels, masks):
        x = jax.nn.relu(x @ kernel) * mask
    return x


@answers.right
def by_layers(x, kernels, key=None):
    layers = [
        layer for _ in kernels for layer in (nn.Linear(x.shape[-1]), nn.F(jax.nn.relu), nn.Dropout(0.5))
    ]
    trainables = tuple(entry for kernel in kernels for entry in ({"kernel": kernel}, (), ()))
    model = nn.Series(*layers)
    return model.fwd(x, trainables, (), key=key, inference_mode=key is None)[0]


@answers.wrong("taking the bits out of the key")
def by_bits(x, kernels, key=None):
    key = None if key is None else jax.random.wrap_key_data(jax.random.key_data(key))
    return chain_of_keys(x, kernels, key)


def with_shapes(shape_of):
    """Dropout whose masks in layer ``i`` have the shape ``shape_of(i, x)``."""

    def noisy(x, kernels, key=None):
        for i, (kernel, layer_key) in enumerate(zip(kernels, keys_of(key, kernels))):
            x = jax.nn.relu(x @ kernel)
            if layer_key is not None:
                x = jnp.where(jax.random.bernoulli(layer_key, 0.5, shape_of(i, x)), x / 0.5, 0.0)
        return x

    return noisy


answers.wrong("in a later one all examples have the same")(
    with_shapes(lambda i, x: x.shape[-1:] if i else x.shape)
)
answers.wrong("in a later one all examples have the same")(
    with_shapes(lambda i, x: x.shape[-1:] if i == 5 else x.shape)
)
answers.wrong("an example is dropped as a whole")(
    with_shapes(lambda i, x: (len(x), 1) if i == 1 else x.shape)
)
answers.right(with_shapes(lambda i, x: x.shape))


@answers.right
def by_fold_in_of_a_split_key(x, kernels, key=None):
    base = None if key is None else jax.random.split(key, 1)[0]
    for i, kernel in enumerate(kernels):
        x = jax.nn.relu(x @ kernel)
        if key is not None:
            x = dropped(x, jax.random.fold_in(base, i))
    return x


@answers.wrong("does `zip` stop early")
def six_keys(x, kernels, key=None):
    keys = [None] * 6 if key is None else jax.random.split(key, 6)
    for kernel, layer_key in zip(kernels, keys):
        x = jax.nn.relu(x @ kernel)
        x = x if layer_key is None else dropped(x, layer_key)
    return x
