"""Answers to the exercise mlp.ensemble."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.mlp.ensemble import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("the mean of the *weights*")
def mean_weights(predict, stacked, x):
    return jax.nn.softmax(predict(jax.tree.map(lambda leaf: leaf.mean(0), stacked), x))


@answers.wrong("must not outvote")
def mean_logits(predict, stacked, x):
    return jax.nn.softmax(jnp.mean(jax.vmap(predict, (0, None))(stacked, x), 0))


@answers.wrong("not probabilities")
def logits(predict, stacked, x):
    return jnp.mean(jax.vmap(predict, (0, None))(stacked, x), 0)


@answers.wrong("shares of votes")
def votes(predict, stacked, x):
    said = jax.vmap(predict, (0, None))(stacked, x)
    return jax.nn.one_hot(said.argmax(-1), said.shape[-1]).mean(0)


@answers.wrong("for each model still")
def each(predict, stacked, x):
    return jax.nn.softmax(jax.vmap(predict, (0, None))(stacked, x))


@answers.wrong("You average over the images")
def over_images(predict, stacked, x):
    return jax.nn.softmax(jax.vmap(predict, (0, None))(stacked, x)).mean(1)


@answers.wrong("is no distribution")
def summed(predict, stacked, x):
    return jax.nn.softmax(jax.vmap(predict, (0, None))(stacked, x)).sum(0)


@answers.wrong("is called 3 times")
def loop(predict, stacked, x):
    models = [jax.tree.map(lambda leaf: leaf[i], stacked) for i in range(len(jax.tree.leaves(stacked)[0]))]  # noqa: B023
    return sum(jax.nn.softmax(predict(model, x)) for model in models) / len(models)


@answers.wrong("`return` missing")
def nothing(predict, stacked, x):
    jax.vmap(predict, (0, None))(stacked, x)


@answers.wrong()
def maps_both(predict, stacked, x):
    return jax.nn.softmax(jax.vmap(predict)(stacked, x)).mean(0)


@answers.wrong()
def over_models(predict, stacked, x):
    return jax.nn.softmax(jax.vmap(predict, (0, None))(stacked, x), axis=0).mean(0)


# Right ones of unusual style


@answers.right
def inside(predict, stacked, x):
    probabilities = jax.vmap(lambda trainables: jax.nn.softmax(predict(trainables, x)))(stacked)
    return jnp.mean(probabilities, axis=0)


@answers.right
def by_images(predict, stacked, x):
    def one(picture):
        said = jax.vmap(lambda trainables: predict(trainables, picture[None])[0])(stacked)
        return jnp.exp(jax.nn.log_softmax(said)).mean(0)

    return jax.vmap(one)(x)


@answers.right
def by_map(predict, stacked, x):
    return jax.lax.map(lambda trainables: jax.nn.softmax(predict(trainables, x)), stacked).mean(0)


@answers.wrong("`exp` overflows")
def by_hand(predict, stacked, x):
    odds = jnp.exp(jax.vmap(predict, (0, None))(stacked, x))
    return (odds / odds.sum(-1, keepdims=True)).mean(0)
