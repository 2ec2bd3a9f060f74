"""A linear probe for each layer."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(layers, labels, train):
    targets = jax.nn.one_hot(labels, labels.max() + 1)

    def one(features):
        features = jnp.concatenate([features, jnp.ones((len(features), 1))], axis=1)
        kernel = jnp.linalg.lstsq(features[:train], targets[:train])[0]
        return jnp.mean((features[train:] @ kernel).argmax(axis=-1) == labels[train:])

    return jnp.stack([one(features) for features in layers])


def _made(seed=0, size=900, features=6):
    """Labels that the first layer hides, the second shows in part, and the third wholly."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, size)
    noise = random.normal(size=(3, size, features))
    layers = noise + np.array([0.0, 1.0, 6.0])[:, None, None] * np.eye(features)[labels] + 5
    layers[:, :, -1] = 0.3 * noise[:, :, -1] + np.array([0.0, 0.5, 1.0])[:, None] * (labels == 1) + 5
    return layers.astype(np.float32), labels.astype(np.int32)


def _accuracies(layers, labels, train, *, bias=True, fitted=slice(None), tested=slice(None), plain=False):
    found = []
    targets = labels[:, None].astype(float) if plain else np.eye(labels.max() + 1)[labels]
    for features in layers.astype(np.float64):
        if bias:
            features = np.concatenate([features, np.ones((len(features), 1))], axis=1)
        kernel = np.linalg.lstsq(features[fitted], targets[fitted], rcond=None)[0]
        scores = features[tested] @ kernel
        guesses = np.clip(np.round(scores[:, 0]), 0, labels.max()) if plain else scores.argmax(axis=-1)
        found.append(np.mean(guesses == labels[tested]))
    return np.array(found)


def check(probe):
    layers, labels = _made()
    train = 300
    first, rest = slice(0, train), slice(train, None)
    expected = _accuracies(layers, labels, train, fitted=first, tested=rest)
    got = probe(jnp.asarray(layers), jnp.asarray(labels), train)
    shown = {"input": {"layers": "(3, 900, 6)", "train": train}, "expected": expected, "got": got}
    checks.returned(got)
    if np.shape(got) != (3,):
        raise Failed("One accuracy for each layer is asked for, an array of shape (layers,).", **shown)
    got = np.asarray(got)
    for options, said in [
        ({"fitted": first, "tested": first}, "The probe is tested on the tokens it was fitted to: that tells how much it can memorize."),
        ({}, "The probe is fitted to all tokens, and tested on the same ones."),
        ({"fitted": slice(None), "tested": rest}, "The probe is fitted to all tokens, those of the test among them."),
        ({"fitted": rest, "tested": first}, "The probe is fitted to the test tokens, and tested on the first ones."),
        ({"bias": False, "fitted": first, "tested": rest}, "The probe has no bias: add a feature that is always 1."),
        ({"plain": True, "fitted": first, "tested": rest}, "The probe predicts the class as a number, as if class 2 were twice class 1: use `jax.nn.one_hot`, and the largest score."),
    ]:  # fmt: skip
        wrong = _accuracies(layers, labels, train, **options)
        if np.allclose(got, wrong, atol=2e-4) and not np.allclose(wrong, expected, atol=2e-4):
            raise Failed(said, **shown)
    if np.allclose(got, 1 - expected, atol=2e-4):
        raise Failed("This is the share of wrong answers.", **shown)
    if np.allclose(got, expected.mean(), atol=2e-4):
        raise Failed("All layers have the same number: give each its own probe.", **shown)
    if not np.allclose(got, expected, atol=0.006):
        raise Failed("The accuracies are wrong: fit by least squares, without a penalty.", **shown)
    right = np.float64(got) * 600
    if np.abs(right - right.round()).max() > 0.01:
        raise Failed(
            "Of 600 tokens a whole number is right, and these are no shares of it: is something rounded to half precision?",
            **shown,
        )
    few = probe(jnp.asarray(layers[:2, :400]), jnp.asarray(labels[:400]), 250)
    expected = _accuracies(layers[:2, :400], labels[:400], 250, fitted=slice(0, 250), tested=slice(250, None))
    if np.shape(few) != (2,) or not np.allclose(few, expected, atol=0.021):  # three tokens of 150
        raise Failed("The accuracies are wrong for other numbers of layers and tokens.", input="(2, 400, 6), train=250", expected=expected, got=few)  # fmt: skip
    random = np.random.default_rng(1)
    labels = random.integers(0, 20, 400)
    layers = np.float32(random.normal(size=(1, 400, 20)) + 6 * np.eye(20)[labels])
    expected = _accuracies(layers, labels, 250, fitted=slice(0, 250), tested=slice(250, None))
    many = probe(jnp.asarray(layers), jnp.asarray(labels, jnp.int32), 250)
    if not np.allclose(many, expected, atol=0.021):
        raise Failed("With 20 classes the accuracy is wrong. Does their number come from the labels?", expected=expected, got=many)  # fmt: skip


exercise = Exercise(
    title="A linear probe for each layer",
    stars=2,
    minutes=12,
    why="What a linear map can read off a layer, the next layer can use; the test on other tokens keeps you honest.",
    hints=(
        "For each layer: add a column of ones, fit `jnp.linalg.lstsq(features[:train], one_hot[:train])[0]`, and compare the largest score with the label on the rest.",
        "`jnp.stack([one(features) for features in layers])`, or `jax.vmap(one)(layers)`, where `one` returns `jnp.mean(scores.argmax(axis=-1) == labels[train:])`.",
    ),
    solution=solution,
    check=check,
)
