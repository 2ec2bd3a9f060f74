"""Dropout with one mask for a sequence."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(key, x, rate):
    kept = jax.random.bernoulli(key, 1 - rate, (x.shape[0], 1, x.shape[2]))
    return jnp.where(kept, x / (1 - rate), 0)


def check(one_mask):
    key, x = jax.random.key(0), jnp.ones((40, 5, 60))
    got = one_mask(key, x, 0.25)
    checks.returns(one_mask, key, x, 0.25, shape=x.shape, dtype=x.dtype)
    found = np.asarray(got)
    given = {"x": "ones of shape (40, 5, 60)", "rate": 0.25}
    if (found == found[:, :1]).all() is np.False_:
        raise Failed(
            "The mask changes from step to step: draw it with one step, `(batch, 1, features)`, and let it broadcast.",
            input=given,
            got=got,
        )
    if (found == found[:1]).all():
        raise Failed(
            "All sequences of the batch have the same mask. Each should have its own.", input=given, got=got
        )
    if (found == found[..., :1]).all():
        raise Failed(
            "All features of a sequence are dropped together. Each feature has its own draw.",
            input=given,
            got=got,
        )
    dropped = np.mean(found[:, 0] == 0)
    if abs(dropped - 0.75) < 0.05:
        raise Failed(
            "Three quarters are dropped where `rate` is 0.25: `bernoulli(key, p)` is True with the probability `p`.",
            input=given,
            got=got,
        )
    if abs(dropped - 0.25) > 0.05:
        raise Failed(f"For a rate of 0.25 a share of {dropped:.2f} is dropped.", input=given, got=got)
    kept = found[found != 0]
    if np.allclose(kept, 1):
        raise Failed(
            "What stays is not divided by `1 - rate`, so the mean becomes smaller.", input=given, got=got
        )
    if not np.allclose(kept, 4 / 3, rtol=1e-3):
        raise Failed("What stays should be divided by `1 - rate`.", input=given, expected=4 / 3, got=kept[0])
    x = jnp.arange(24.0).reshape(2, 3, 4)
    whole = one_mask(key, x, 0.0)
    checks.same(whole, x, input={"x": x, "rate": 0.0})
    got = np.asarray(one_mask(key, x, 0.5))
    if not np.all((got == 0) | np.isclose(got, 2 * np.asarray(x))):
        raise Failed(
            "Each number should be 0 or its double, for a rate of 0.5.", input={"x": x, "rate": 0.5}, got=got
        )
    lost = jnp.where(jnp.arange(4) < 4, jnp.full((8, 3, 4), jnp.inf), 0)
    if np.isnan(np.asarray(one_mask(key, lost, 0.5))).any():
        raise Failed(
            "Infinity that is dropped becomes NaN: zero times infinity. Choose with `jnp.where`.",
            input={"x": lost, "rate": 0.5},
        )
    half = one_mask(key, jnp.ones((2, 3, 4), jnp.bfloat16), 0.5)
    if half.dtype != jnp.bfloat16:
        raise Failed(f"For bfloat16 the result should be bfloat16, got {half.dtype}.", got=half)
    checks.keys(lambda key: one_mask(key, jnp.ones((8, 3, 4)), 0.5), key)


exercise = Exercise(
    title="One dropout mask for a sequence",
    stars=2,
    minutes=10,
    why="The shape of the draw says what is independent: an axis of size 1 shares its draw over all steps.",
    hints=(
        "`jax.random.bernoulli(key, p, shape)` is True with the probability `p`. Which shape is the same for all steps?",
        "Draw `(x.shape[0], 1, x.shape[2])`; `jnp.where(kept, x / (1 - rate), 0)` broadcasts it over the time.",
    ),
    solution=solution,
    check=check,
)
