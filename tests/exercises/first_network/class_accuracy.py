"""Answers to the exercise first_network.class_accuracy."""

import jax
import jax.flatten_util
import jax.numpy as jnp

from mlax_tutorial.exercises.first_network.class_accuracy import exercise, two_guesses
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("a mask as an index")
def mask(logits, labels):
    hits = jnp.argmax(logits, axis=-1) == labels
    classes = range(logits.shape[-1])
    return jnp.nan_to_num(jnp.array([hits[labels == c].mean() for c in classes]))


@answers.wrong("0 divided by 0")
def nan(logits, labels):
    hits = jnp.argmax(logits, axis=-1) == labels
    is_class = labels[:, None] == jnp.arange(logits.shape[-1])
    return (hits[:, None] & is_class).sum(0) / is_class.sum(0)


@answers.wrong("how often the network *said*")
def precision(logits, labels):
    guesses = jax.nn.one_hot(jnp.argmax(logits, -1), logits.shape[-1])
    true = jax.nn.one_hot(labels, logits.shape[-1])
    return (guesses * true).sum(0) / jnp.maximum(guesses.sum(0), 1)


@answers.wrong("size of the whole batch")
def share(logits, labels):
    hits = jnp.argmax(logits, axis=-1) == labels
    return (hits[:, None] * jax.nn.one_hot(labels, logits.shape[-1])).mean(axis=0)


@answers.wrong("one number for all classes")
def overall(logits, labels):
    return jnp.mean(jnp.argmax(logits, axis=-1) == labels)


@answers.wrong("the program grows with the batch")
def loop(logits, labels):
    hits, counts = jnp.zeros(logits.shape[-1]), jnp.zeros(logits.shape[-1])
    for i in range(len(labels)):
        counts = counts.at[labels[i]].add(1)
        hits = hits.at[labels[i]].add(jnp.argmax(logits[i]) == labels[i])
    return hits / jnp.maximum(counts, 1)


@answers.wrong("one follows the other")
def scan(logits, labels):
    def one(counts, example):
        logits, label = example
        hit = jnp.argmax(logits) == label
        return counts.at[:, label].add(jnp.array([hit, 1])), None

    (hits, counts), _ = jax.lax.scan(one, jnp.zeros((2, logits.shape[-1])), (logits, labels))
    return hits / jnp.maximum(counts, 1)


@answers.wrong("*not* recognised")
def missed(logits, labels):
    is_class = jax.nn.one_hot(labels, logits.shape[-1])
    misses = jnp.argmax(logits, axis=-1) != labels
    return (misses[:, None] * is_class).sum(0) / jnp.maximum(is_class.sum(0), 1)


@answers.wrong("Pictures of other classes")
def one_against_rest(logits, labels):
    guesses = jnp.argmax(logits, axis=-1)
    return jnp.stack([jnp.mean((guesses == c) == (labels == c)) for c in range(logits.shape[-1])])


answers.wrong("two largest logits")(two_guesses)


@answers.wrong("TracerBoolConversionError")
def class_accuracy_if(logits, labels):
    hits, shares = jnp.argmax(logits, axis=-1) == labels, []
    for c in range(logits.shape[-1]):
        count = jnp.sum(labels == c)
        shares.append(jnp.sum(hits & (labels == c)) / count if count > 0 else 0.0)
    return jnp.array(shares)


@answers.wrong("read the number of classes off")
def four_classes(logits, labels):
    hits = jnp.argmax(logits, axis=-1) == labels
    is_class = jax.nn.one_hot(labels, 4)
    return (hits[:, None] * is_class).sum(axis=0) / jnp.maximum(is_class.sum(axis=0), 1)


@answers.wrong("does not say how often that runs")
def while_over_classes(logits, labels):
    hits, classes = jnp.argmax(logits, axis=-1) == labels, logits.shape[-1]

    def one(carry):
        c, shares = carry
        is_class = labels == c
        share = (hits & is_class).sum() / jnp.maximum(is_class.sum(), 1)
        return c + 1, shares.at[c].set(share)

    return jax.lax.while_loop(lambda carry: carry[0] < classes, one, (0, jnp.zeros(classes)))[1]


@answers.right
def python_loop_over_classes(logits, labels):
    hits = jnp.argmax(logits, axis=-1) == labels
    counts = [jnp.sum(labels == c) for c in range(logits.shape[-1])]
    right = [jnp.sum(hits & (labels == c)) for c in range(logits.shape[-1])]
    return jnp.stack([r / jnp.maximum(n, 1) for r, n in zip(right, counts)])


@answers.right
def mapped_over_classes(logits, labels):
    hits = jnp.argmax(logits, axis=-1) == labels

    def share(c):
        return jnp.sum(hits & (labels == c)) / jnp.maximum(jnp.sum(labels == c), 1)

    return jax.lax.map(share, jnp.arange(logits.shape[-1]))


answers.equivalent(
    "-1 -> 1",
    "-1 -> 1 (2)",
    because="the logits have two axes, so that the last axis is the axis 1",
)
