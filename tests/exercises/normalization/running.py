"""Answers to the exercise normalization.running."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.normalization.running import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)
stop = jax.lax.stop_gradient


def follow(averages, momentum, mean, variance):
    new = {"mean": mean, "variance": variance}
    return {name: (1 - momentum) * averages[name] + momentum * new[name] for name in new}


@answers.wrong("taken over features, too")
def as_it_stands(averages, x, momentum):
    mean = jnp.mean(x)
    variance = jnp.mean((x - averages["mean"]) ** 2, axis=0)
    return {
        "mean": momentum * averages["mean"] + (1 - momentum) * mean,
        "variance": momentum * averages["variance"] + (1 - momentum) * variance,
    }


@answers.wrong("other way round")
def by_our_momentum(averages, x, momentum):
    x = stop(x)
    return follow(averages, 1 - momentum, x.mean(0), x.var(0, ddof=1))


@answers.wrong("taken over features, too")
def one_mean(averages, x, momentum):
    x = stop(x)
    return follow(averages, momentum, x.mean(), x.var(0, ddof=1))


@answers.wrong("measured from the running mean")
def from_the_old_mean(averages, x, momentum):
    x = stop(x)
    variance = ((x - averages["mean"]) ** 2).sum(0) / (len(x) - 1)
    return follow(averages, momentum, x.mean(0), variance)


@answers.wrong("measured from the new running mean")
def from_the_new_mean(averages, x, momentum):
    x = stop(x)
    mean = (1 - momentum) * averages["mean"] + momentum * x.mean(0)
    variance = ((x - mean) ** 2).sum(0) / (len(x) - 1)
    return {"mean": mean, "variance": (1 - momentum) * averages["variance"] + momentum * variance}


@answers.wrong("is biased")
def biased(averages, x, momentum):
    x = stop(x)
    return follow(averages, momentum, x.mean(0), x.var(0))


@answers.wrong("upside down")
def upside_down(averages, x, momentum):
    x = stop(x)
    return follow(averages, momentum, x.mean(0), x.var(0) * (len(x) - 1) / len(x))


@answers.wrong("A gradient passes")
def with_gradient(averages, x, momentum):
    return follow(averages, momentum, x.mean(0), x.var(0, ddof=1))


@answers.wrong("standard deviation")
def deviations(averages, x, momentum):
    x = stop(x)
    return follow(averages, momentum, x.mean(0), x.std(0, ddof=1))


# Wrong ones that look right


@answers.wrong("should have the shape (3,)")
def with_keepdims(averages, x, momentum):
    x = stop(x)
    return follow(averages, momentum, x.mean(0, keepdims=True), x.var(0, ddof=1, keepdims=True))


@answers.wrong('a dict of "mean" and "variance"')
def as_a_pair(averages, x, momentum):
    x = stop(x)
    return tuple(follow(averages, momentum, x.mean(0), x.var(0, ddof=1)).values())


@answers.wrong("a quarter of the way")
def no_average(averages, x, momentum):
    x = stop(x)
    return {"mean": x.mean(0), "variance": x.var(0, ddof=1)}


@answers.wrong("changes the dict")
def in_place(averages, x, momentum):
    averages.update(follow(averages, momentum, stop(x).mean(0), stop(x).var(0, ddof=1)))
    return averages


@answers.wrong("For a batch of 7 examples the variance is wrong")
def for_four_rows(averages, x, momentum):
    return follow(averages, momentum, stop(x).mean(0), stop(x).var(0) * 4 / 3)


@answers.wrong("subtract the mean before you square")
def one_pass(averages, x, momentum):
    n, x = len(x), stop(x)
    mean = x.mean(0)
    return follow(averages, momentum, mean, ((x**2).mean(0) - mean**2) * n / (n - 1))


@answers.wrong("A gradient passes")
def only_the_mean_is_stopped(averages, x, momentum):
    return follow(averages, momentum, stop(x).mean(0), x.var(0, ddof=1))


@answers.wrong("Under `jax.jit`")
def asks_for_the_value(averages, x, momentum):
    x = stop(x)
    if momentum > 0.5:
        momentum = 1 - momentum
    return follow(averages, momentum, x.mean(0), x.var(0, ddof=1))


# Right ones of unusual style


@answers.right
def by_tree_map(averages, x, momentum):
    batch = {"mean": x.mean(0), "variance": x.var(0, ddof=1)}
    return stop(jax.tree.map(lambda old, new: old + momentum * (new - old), averages, batch))


@answers.right
def by_the_factor(averages, x, momentum):
    n, x = x.shape[0], stop(x)
    return follow(averages, momentum, x.sum(0) / n, x.var(0) * n / (n - 1))


@answers.right
def by_einsum(averages, x, momentum):
    x = stop(x)
    mean = jnp.average(x, axis=0)
    far = x - mean[None]
    return follow(averages, momentum, mean, jnp.einsum("nf,nf->f", far, far) / (x.shape[0] - 1))


@answers.right
@jax.jit
def by_covariance(averages, x, momentum):
    x = stop(x)
    batch = {"variance": jnp.diagonal(jnp.cov(x.T)), "mean": x.mean(0)}
    return {name: averages[name] + (new - averages[name]) * momentum for name, new in batch.items()}


@answers.right
def by_correction(averages, x, momentum):
    return stop(follow(averages, momentum, jnp.mean(x, 0), jnp.var(x, 0, correction=1)))


@answers.wrong("A gradient passes")
def the_old_ones_are_stopped(averages, x, momentum):
    return follow(stop(averages), momentum, x.mean(0), x.var(0, ddof=1))


@answers.wrong("For a batch of 7 examples the variance is wrong")
def features_for_examples(averages, x, momentum):
    n, x = x.shape[1] + 1, stop(x)
    return follow(averages, momentum, x.mean(0), x.var(0) * n / (n - 1))
