"""The mean prediction of several models, whose weights are stacked."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(predict, stacked, x):
    logits = jax.vmap(predict, in_axes=(0, None))(stacked, x)  # (seeds, n, classes)
    return jax.nn.softmax(logits).mean(axis=0)


def _predict(trainables, x):
    """A network in small: three inputs, four features, five classes."""
    one, two = trainables
    hidden = jax.nn.relu(jnp.matmul(x, one["kernel"], precision="highest") + one["bias"])
    return jnp.matmul(hidden, two["kernel"], precision="highest")


def _given(seeds=3, n=7):
    draw = np.random.default_rng(0)
    normal = lambda *shape: jnp.asarray(draw.normal(size=shape), jnp.float32)  # noqa: E731
    stacked = (
        {"kernel": 2 * normal(seeds, 3, 4), "bias": normal(seeds, 4)},
        {"kernel": 3 * normal(seeds, 4, 5)},
    )
    return stacked, normal(n, 3)


def _votes(predict, stacked, x):
    answers = jax.vmap(predict, (0, None))(stacked, x).argmax(axis=-1)
    return jax.nn.one_hot(answers, 5).mean(axis=0)


WRONG = [
    (lambda predict, stacked, x: jax.nn.softmax(predict(jax.tree.map(lambda leaf: leaf.mean(axis=0), stacked), x)),
     "That is one model with the mean of the *weights*. Average what the models say."),
    (lambda predict, stacked, x: jax.nn.softmax(jax.vmap(predict, (0, None))(stacked, x).mean(axis=0)),
     "You average the logits. Apply `softmax` to those of each model first: a model that is very sure must not outvote all others."),
    (lambda predict, stacked, x: jax.vmap(predict, (0, None))(stacked, x).mean(axis=0),
     "Those are mean logits, not probabilities: apply `jax.nn.softmax` before the mean."),
    (_votes, "Those are the shares of votes. Average the probabilities, which also say how sure each model is."),
    (lambda predict, stacked, x: jax.nn.softmax(jax.vmap(predict, (0, None))(stacked, x)),
     "There is one answer for each model still: take the mean over the first axis."),
    (lambda predict, stacked, x: jax.nn.softmax(jax.vmap(predict, (0, None))(stacked, x)).mean(axis=1),
     "You average over the images. The models are the first axis of what `vmap` returns."),
    (lambda predict, stacked, x: jax.nn.softmax(jax.vmap(predict, (0, None))(stacked, x)).sum(axis=0),
     "The sum of the models' probabilities is no distribution: take their mean."),
]  # fmt: skip


def check(ensemble):
    stacked, x = _given()
    calls = []

    def predict(trainables, x):
        calls.append(jax.tree.leaves(trainables)[0].ndim)
        return _predict(trainables, x)

    got, expected = ensemble(predict, stacked, x), solution(_predict, stacked, x)
    checks.returned(got)
    recognise = ((wrong(_predict, stacked, x), said) for wrong, said in WRONG)
    checks.same(got, expected, rtol=1e-4, atol=1e-6, recognise=recognise)
    if len(calls) > 1:
        raise Failed(
            f"`predict` is called {len(calls)} times, so the program grows with the number of models: map over the stacked weights with `jax.vmap`, which calls it once."
        )
    stacked, x = _given(
        seeds=2, n=2
    )  # as many models as images: an axis mapped by mistake does not fail there
    checks.same(
        ensemble(_predict, stacked, x),
        solution(_predict, stacked, x),
        where="for two models and two images",
        rtol=1e-4,
        atol=1e-6,
    )
    sure = (stacked[0], {"kernel": -200 * stacked[1]["kernel"]})
    got, expected = ensemble(_predict, sure, x), solution(_predict, sure, x)
    if not np.all(np.isfinite(got)):
        raise Failed("For logits of several hundred `exp` overflows: `jax.nn.softmax` subtracts the largest logit first.", expected=expected, got=got)  # fmt: skip
    checks.same(got, expected, where="for models that are very sure", rtol=1e-4, atol=1e-6)
    checks.no_leaks(lambda stacked, x: ensemble(_predict, stacked, x), stacked, x)


exercise = Exercise(
    title="An ensemble in one call",
    stars=1,
    minutes=8,
    why="Weights that are stacked along a new axis make any function of one model a function of many, by one vmap.",
    hints=(
        "`in_axes=(0, None)` maps over the first axis of each array of weights, and gives every model all the images.",
        "From `(seeds, n, classes)` to `(n, classes)`: softmax over the last axis, mean over the first.",
    ),
    solution=solution,
    check=check,
)
