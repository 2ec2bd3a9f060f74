"""Whether keys are used once, and what the numbers drawn from them have in common."""

import jax
import numpy as np

from mlax_tutorial.checking import Failed, checks
from mlax_tutorial.checking.guarding import as_theirs, bare
from mlax_tutorial.checking.programs import under
from mlax_tutorial.inspection import jaxprs
from mlax_tutorial.viz.figures import key_tree
from mlax_tutorial.viz.figures.key_tree import page


def own(function, *more):
    """The reader's function of a key alone, without the guard, so that JAX's own errors come through."""
    own = bare(function)
    return lambda key: own(key, *more)


def uses_keys_once(function, *more):
    """No key is used twice, neither for JAX's own check nor for the tree of keys, which sees more."""
    alone = own(function, *more)
    checks.keys(alone, jax.random.key(0), eagerly=False)  # it is recorded eagerly
    try:
        recording = key_tree.record(alone, jax.random.key(0))
    except Exception as error:
        raise as_theirs(error) from None
    if recording.reused:
        raise Failed(
            "One key is used for two things, and JAX's own check does not see it. Each use needs a key of its own.",
            shown=[("keys", page.listing(recording).partition("\n")[2])],
        )
    made = [node.text for node in recording.nodes() if node.text == "clone"]
    if made:
        raise Failed(
            "`clone` says that numbers are to be repeated. Here they are to be independent: split the key."
        )


def from_whole_keys(function, *more):
    """No new key is computed from the words of another: it would have numbers in common with keys that exist."""
    program = jax.make_jaxpr(own(function, *more))(jax.random.key(0))
    names = {equation.primitive.name for _, equation in jaxprs.walk(program)}
    if "random_seed" in names:
        raise Failed(
            "A key is made from a seed, by `jax.random.key`. A seed has only 32 bits: among 77,000 random ones two are "
            "equal with a probability of a half. Make new keys with `jax.random.split` or `jax.random.fold_in`."
        )
    if {"random_unwrap", "random_wrap"} & names:
        raise Failed(
            "A key is taken apart into its words, or made of words. Sums of words are no new randomness: two keys that "
            "lie close together then give some of the same numbers. Make new keys with `jax.random.split` or "
            "`jax.random.fold_in`."
        )


def numbers_drawn(function, *more):
    """How many words of random bits the function draws, those in the rounds of a scan counted as often as they run."""

    def count(jaxpr):
        total = 0
        for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
            if equation.primitive.name == "random_bits":
                total += equation.outvars[0].aval.size
            rounds = equation.params["length"] if equation.primitive.name == "scan" else 1
            total += rounds * sum(count(inner) for _, inner in jaxprs.subjaxprs(equation))
        return total

    return count(jax.make_jaxpr(own(function, *more))(jax.random.key(0)))


def over_keys(function, count, *more, seed=1):
    """What the function gives for many keys at once."""
    many = jax.random.split(jax.random.key(seed), count)
    with under("`jax.vmap`"):
        return jax.jit(jax.vmap(lambda key: function(key, *more)))(many)


def correlation(x, y):
    x, y = np.asarray(x, np.float64).ravel(), np.asarray(y, np.float64).ravel()
    x, y = x - x.mean(), y - y.mean()
    size = np.sqrt((x * x).sum() * (y * y).sum())
    return float((x * y).sum() / size) if size > 0 else 0.0
