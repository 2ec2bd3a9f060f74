"""Averages of weights: what each step counts in the average at the end."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.inspection import jaxprs


def solution(decays):
    later = jnp.cumprod(jnp.append(decays[1:], 1.0)[::-1])[::-1]
    return (1 - decays) * later


def _shares(decays):
    kept = np.append(np.cumprod(decays[:0:-1].astype(np.float64))[::-1], 1.0)
    return (1 - decays) * kept


def check(shares):
    decays = np.float32([0.0, 0.5, 0.75, 0.9])
    given = {"decays": decays}
    expected = np.float32(_shares(decays))
    got = shares(jnp.asarray(decays))
    whole = np.cumprod(decays[::-1].astype(np.float64))[::-1]
    kept = np.append(whole[1:], 1.0)
    for wrong, said in [
        ((1 - decays) * whole, "A step's own decay multiplies what was there *before* it: only the later ones shrink its share."),
        (kept, "The factor 1 - decay, by which a step enters, is missing."),
        (1 - decays, "That is what each step enters with. Every later step multiplies it by its decay."),
        (expected[::-1], "The order is the other way round: the first share is that of the first step."),
        ((1 - decays) * np.append(1.0, np.cumprod(decays[:-1])), "This multiplies by the decays of earlier steps; it is the later ones that shrink a share."),
    ]:  # fmt: skip
        if np.shape(got) == wrong.shape and np.allclose(got, wrong, rtol=1e-4, atol=1e-6):
            raise Failed(said, input=given, expected=expected, got=got)
    if np.shape(got) == expected.shape and not np.any(got):
        eights = np.full(4, 0.8, np.float32)
        own = shares(jnp.asarray(eights))
        said = "Where a decay is 0, something divides 0 by 0, and the result is made 0. Multiply from the end instead."
        if np.shape(own) == (4,) and np.allclose(own, (1 - eights) * np.cumprod(eights), rtol=1e-4):
            said = "This multiplies by the decays of earlier steps, and its own; it is the later ones that shrink a share."
        raise Failed(said, input=given, expected=expected, got=got)
    if np.shape(got) == expected.shape and not np.isfinite(got).all():
        raise Failed(
            "With a decay of 0 this divides by 0. Multiply from the end instead.", input=given, got=got
        )
    checks.same(got, jnp.asarray(expected), input=given, rtol=1e-4, atol=1e-6)
    reset = np.float32([0.0, 0.9, 0.0, 0.5])
    got = shares(jnp.asarray(reset))
    if not np.isfinite(got).all():
        raise Failed(
            "With a decay of 0 this divides by 0. Multiply from the end instead.",
            input={"decays": reset},
            got=got,
        )
    checks.same(got, jnp.asarray(_shares(reset), jnp.float32), input={"decays": reset}, rtol=1e-4, atol=1e-6)
    if np.any(np.asarray(got)[:2]):
        raise Failed(
            "What comes before a decay of 0 counts nothing at all, and here it counts a little: a small number stands for the 0. "
            "Multiply from the end; nothing has to be divided.",
            input={"decays": reset},
            expected=_shares(reset),
            got=got,
        )
    constant = np.full(5, 0.8, np.float32)
    got = shares(jnp.asarray(constant))
    if np.isclose(np.sum(got), 1, atol=1e-4):
        raise Failed(
            "These sum to 1. With decays of 0.8 throughout they do not: 0.8⁵, a third, is the share of the weights that the average began with.",
            input={"decays": constant},
            expected=_shares(constant),
            got=got,
        )
    checks.same(got, jnp.asarray(_shares(constant), jnp.float32), input={"decays": constant}, rtol=1e-4)
    checks.works_under_jit(shares, jnp.asarray(constant))
    sizes = [jaxprs.count(shares, jnp.full(n, 0.9)).total() for n in (16, 64)]
    if sizes[1] - sizes[0] >= 48:  # jax.lax.associative_scan adds a few each time that the steps are doubled
        raise Failed(
            f"The program grows with the steps, from {sizes[0]} equations to {sizes[1]}: for 3,000 steps it would never be compiled. "
            "`jnp.cumprod` or `jax.lax.scan` do it without a Python loop."
        )


exercise = Exercise(
    title="Which steps an average remembers",
    stars=2,
    minutes=10,
    why="A decay is a statement about time: a constant one looks back a fixed number of steps, one that grows as 1 - c/n a fixed share of the training.",
    hints=(
        "What step s puts in is (1 - decay_s) of its weights. What does step s + 1 do to that?",
        "The share is (1 - decay_s) times the product of all *later* decays: a cumulative product from the end, `jnp.cumprod(x[::-1])[::-1]`, shifted by one.",
    ),
    solution=solution,
    check=check,
)
