"""Logits of the most probable tokens: at most k of them, and no more than have the probability p."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(logits, k, p):
    order = jnp.argsort(-logits)
    chances = jax.nn.softmax(jnp.where(jnp.arange(len(logits)) < k, logits[order], -jnp.inf))
    before = jnp.cumsum(chances) - chances  # of the more probable ones
    kept = (chances > 0) & ((before < p) | (jnp.arange(len(logits)) == 0))
    return logits.at[order].set(jnp.where(kept, logits[order], -jnp.inf))


CHANCES = np.array([0.05, 0.4, 0.25, 0.1, 0.2], np.float32)
LOGITS = np.log(CHANCES) + 3
CASES = [(5, 1.0), (2, 1.0), (5, 0.5), (5, 0.68), (3, 0.8), (5, 0.0), (1, 0.9), (4, 0.3), (5, 0.39), (2, 0.6)]


def _kept(k, p, renormalize=True, beyond=True):
    order = np.argsort(-CHANCES)
    chances = np.where(np.arange(5) < k, CHANCES[order], 0)
    chances = chances / chances.sum() if renormalize else chances
    total = np.cumsum(chances)
    few = (total - chances < p if beyond else total <= p) & (np.arange(5) < k)
    few[0] |= beyond
    return frozenset(order[few].tolist())


def check(nucleus):
    logits, found = jnp.asarray(LOGITS), []
    for k, p in CASES:
        got = checks.returned(nucleus(logits, k, p))
        given = {"logits": LOGITS, "k": k, "p": p}
        if np.shape(got) != (5,):
            raise Failed("Logits of the shape of those given are asked for.", input=given, got=got)
        if not jnp.issubdtype(jnp.asarray(got).dtype, jnp.floating):
            raise Failed("Logits are asked for, not places or a mask.", input=given, got=got)
        found.append((k, p, np.asarray(got)))
    finite = [frozenset(np.flatnonzero(np.isfinite(got)).tolist()) for _, _, got in found]
    for wrong, said in (
        (lambda k, p: _kept(k, p, beyond=False), "One token too few stays: their sum is to be at least `p`, so the one with which it gets there stays, too."),
        (lambda k, p: _kept(k, p, renormalize=False), "`p` is a share of the `k` that are left, not of all: scale the probabilities of these `k` so that they add up to 1 first."),
        (lambda k, p: _kept(5, p), "`k` has no influence."),
        (lambda k, p: _kept(k, 1.0), "`p` has no influence."),
    ):  # fmt: skip
        if finite == [wrong(k, p) for k, p in CASES] and finite != [_kept(*case) for case in CASES]:
            raise Failed(said)
    for (k, p, got), kept in zip(found, finite):
        given = {"probabilities": CHANCES, "k": k, "p": p}
        if kept != _kept(k, p):
            if not kept:
                raise Failed(
                    "No token is left. The most probable one always stays.", input=given, got=sorted(kept)
                )
            raise Failed(
                "Other tokens should stay. These are the places of those that stay:", input=given, expected=sorted(_kept(k, p)), got=sorted(kept)
            )  # fmt: skip
        wanted = np.where([i in kept for i in range(5)], LOGITS, -np.inf)
        if not np.allclose(got, wanted, atol=1e-4):
            same = np.allclose(jax.nn.softmax(got), jax.nn.softmax(wanted), atol=1e-4)
            said = "Those that stay should keep their logits" + (
                ", not only their probabilities." if same else "."
            )
            raise Failed(said, input=given, expected=wanted, got=got)
    if np.isfinite(nucleus(jnp.zeros(4), 4, 0.5)).sum() == 3:  # sums of quarters are not rounded
        raise Failed("Of four equally probable tokens, two together reach p=0.5. Three are left.")
    got = nucleus(logits + 200, 5, 0.68)
    high = np.flatnonzero(np.isfinite(got))
    if frozenset(high.tolist()) != _kept(5, 0.68):
        raise Failed(
            "With 200 added to each logit the probabilities are the same, but other tokens are left. `jnp.exp` of such numbers is infinite: `jax.nn.softmax` "
            "takes the largest away first.",
            input={"logits": LOGITS + 200, "k": 5, "p": 0.68},
            expected=sorted(_kept(5, 0.68)),
            got=high.tolist(),
        )
    checks.same(got, nucleus(logits, 5, 0.68) + 200, where="with 200 added to each logit")
    jitted = jax.jit(lambda logits, p: nucleus(logits, 3, p))
    checks.same(jitted(logits, jnp.float32(0.8)), nucleus(logits, 3, 0.8), where="under `jax.jit`")
    rows = jax.random.normal(jax.random.key(0), (64, 40))
    most = int(np.isfinite(jax.vmap(lambda row: nucleus(row, 20, 1.0))(rows)).sum(axis=1).max())
    if most > 20:
        raise Failed(
            f"With k=20 and p=1.0 there are {most} tokens left. A sum of probabilities may stay a little below 1, by rounding: leave out those beyond `k` by "
            "their place.",
            input="64 rows of 40 random logits",
        )
    rows = rows[:3]
    got = jax.vmap(lambda row, p: nucleus(row, 20, p))(rows, jnp.array([0.2, 0.5, 0.9]))
    checks.same(
        got, jax.vmap(lambda row, p: solution(row, 20, p))(rows, jnp.array([0.2, 0.5, 0.9])), where="under `jax.vmap`"
    )  # fmt: skip


exercise = Exercise(
    title="Top-k and top-p under jit",
    stars=2,
    minutes=15,
    why="Shapes must not depend on values, so what is left out stays in the array, with a logit of minus infinity.",
    hints=(
        "Sort first: `order = jnp.argsort(-logits)`. In that order, the first `k` are `jnp.arange(len(logits)) < k`.",
        "The probability of all that come before a token is `jnp.cumsum(chances) - chances`. A token stays while that is below `p`.",
        "Back in the old order: `logits.at[order].set(…)`.",
    ),
    solution=solution,
    check=check,
)
