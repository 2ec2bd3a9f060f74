"""Answers to the exercise encoder.probe."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.encoder.probe import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("no shares of it")
def in_half(layers, labels, train):
    return solution(layers, labels, train).astype(jnp.float16)


def fitted(layers, labels, fit, test, *, bias=True):
    targets, found = jax.nn.one_hot(labels, 3), []
    for features in layers:
        if bias:
            features = jnp.concatenate([features, jnp.ones((len(features), 1))], axis=1)
        kernel = jnp.linalg.lstsq(features[fit], targets[fit])[0]
        found.append(jnp.mean((features[test] @ kernel).argmax(axis=-1) == labels[test]))
    return jnp.stack(found)


@answers.wrong("how much it can memorize")
def on_the_same(layers, labels, train):
    return fitted(layers, labels, slice(train), slice(train))


@answers.wrong("With 20 classes")
def thirteen(layers, labels, train):
    targets = jax.nn.one_hot(labels, 13)

    def one(features):
        features = jnp.pad(features, ((0, 0), (0, 1)), constant_values=1)
        kernel = jnp.linalg.lstsq(features[:train], targets[:train])[0]
        return jnp.mean((features[train:] @ kernel).argmax(axis=-1) == labels[train:])

    return jax.vmap(one)(layers)


@answers.wrong("those of the test among them")
def fitted_to_all(layers, labels, train):
    return fitted(layers, labels, slice(None), slice(train, None))


@answers.wrong("The probe has no bias")
def no_bias(layers, labels, train):
    return fitted(layers, labels, slice(train), slice(train, None), bias=False)


@answers.wrong("as if class 2 were twice class 1")
def as_numbers(layers, labels, train):
    found = []
    for features in layers:
        features = jnp.concatenate([features, jnp.ones((len(features), 1))], axis=1)
        kernel = jnp.linalg.lstsq(features[:train], labels[:train].astype(jnp.float32))[0]
        found.append(jnp.mean(jnp.clip(jnp.round(features[train:] @ kernel), 0, 2) == labels[train:]))
    return jnp.stack(found)


@answers.wrong("the share of wrong answers")
def errors(layers, labels, train):
    return 1 - solution(layers, labels, train)


@answers.wrong("give each its own probe")
def one_number(layers, labels, train):
    return jnp.full(len(layers), solution(layers, labels, train).mean())


@answers.wrong("One accuracy for each layer")
def mean(layers, labels, train):
    return solution(layers, labels, train).mean()


@answers.wrong("`return` missing")
def nothing(layers, labels, train):
    solution(layers, labels, train)


# Right ones of unusual style


@answers.right
def by_vmap(layers, labels, train):
    targets = jnp.eye(int(labels.max()) + 1)[labels]

    def one(features):
        center = features[:train].mean(axis=0)
        kernel = jnp.linalg.lstsq(features[:train] - center, targets[:train] - targets[:train].mean(axis=0))[
            0
        ]
        scores = (features[train:] - center) @ kernel + targets[:train].mean(axis=0)
        return (jnp.argmax(scores, axis=-1) == labels[train:]).mean()

    return jax.vmap(one)(layers)


@answers.right
def in_numpy(layers, labels, train):
    layers, labels = np.asarray(layers), np.asarray(labels)
    found = []
    for features in np.pad(layers, [(0, 0), (0, 0), (1, 0)], constant_values=1.0):
        kernel = np.linalg.pinv(features[:train]) @ np.eye(labels.max() + 1)[labels[:train]]
        found.append(np.mean(np.argmax(features[train:] @ kernel, axis=1) == labels[train:]))
    return np.array(found)


answers.equivalent(
    "labels.max() + 1 -> labels.max() + 2",
    because="a class that no token has gets the score 0, and those of the others add up to 1, so one of them is larger",
)
answers.equivalent(
    "(len(features), 1) -> (len(features), 2)", because="a second feature of ones changes no fit"
)
answers.equivalent("-1 -> 1", because="scores have two axes, and the last one is axis 1")
